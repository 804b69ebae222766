//! The samples of an archive, in order.

use super::name::key_and_suffix;
use crate::stream::{ByteStream, VALUE_BYTES, cut_off, stream_error};
use std::io::{self, Read};
use tar::{Archive, Entry};
use tensilo::import::FormatFile;
use tensilo::{Error, Result};

/// The files of one sample.
pub(super) struct ArchivedSample {
    pub key: String,
    /// Suffixes and contents.
    pub files: Vec<(String, Vec<u8>)>,
}

/// A file that is part of a sample.
struct SampleFile {
    key: String,
    suffix: String,
    content: Vec<u8>,
}

/// Reads the samples of an archive some at a time. The reader of entries borrows the archive, so
/// that it is made anew each time, where the last one has ended.
pub(super) struct ArchivedSamples {
    blocks: Blocks,
    /// The first file of the next sample.
    next: Option<SampleFile>,
    is_over: bool,
    /// Whether the content of files is read, or only its first bytes.
    whole: bool,
}

/// The bytes of an archive, and the number of those that were read.
struct Blocks {
    stream: ByteStream,
    position: u64,
}

impl Read for Blocks {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let count = self.stream.read(out)?;
        self.position = self.position.saturating_add(u64::try_from(count).unwrap_or(u64::MAX));
        Ok(count)
    }
}

impl Blocks {
    /// Goes to the start of the next header: content is padded to whole blocks.
    fn align(&mut self) -> io::Result<()> {
        const BLOCK: u64 = 512;
        let padding = self.position.next_multiple_of(BLOCK).saturating_sub(self.position);
        io::copy(&mut self.take(padding), &mut io::sink()).map(|_| ())
    }
}

const ARCHIVE: &str = "the archive";

impl ArchivedSamples {
    pub(super) fn open(file: &FormatFile, whole: bool) -> Result<Self> {
        let blocks = Blocks { stream: ByteStream::open(file)?, position: 0 };
        Ok(Self { blocks, next: None, is_over: false, whole })
    }

    /// Returns the next samples, with about so many bytes together. There are none behind the last.
    pub(super) fn some(&mut self, most_samples: usize, most_bytes: usize) -> Result<Vec<ArchivedSample>> {
        let mut samples: Vec<ArchivedSample> = Vec::new();
        let mut bytes = 0_usize;
        let mut file = self.next.take();
        if self.is_over {
            samples.extend(file.map(sample));
            return Ok(samples);
        }
        self.blocks.align().map_err(|error| stream_error(&error, ARCHIVE))?;
        let whole = self.whole;
        let mut archive = Archive::new(&mut self.blocks);
        let mut entries = archive.entries().map_err(|error| stream_error(&error, ARCHIVE))?;
        loop {
            let next = match file.take() {
                Some(file) => file,
                None => match next_file(&mut entries, whole)? {
                    Some(file) => file,
                    None => {
                        self.is_over = true;
                        return Ok(samples);
                    }
                },
            };
            let is_same = samples.last().is_some_and(|sample| sample.key == next.key);
            if !is_same && (samples.len() >= most_samples || bytes >= most_bytes) {
                self.next = Some(next);
                return Ok(samples);
            }
            bytes = bytes.saturating_add(next.content.len());
            match samples.last_mut().filter(|_| is_same) {
                Some(last) => add(last, next)?,
                None => samples.push(sample(next)),
            }
        }
    }

    /// Reads to the end of the file: the checksum of a compressed archive is there.
    pub(super) fn finish(mut self) -> Result<()> {
        let rest = io::copy(&mut self.blocks, &mut io::sink());
        rest.map(|_| ()).map_err(|error| stream_error(&error, ARCHIVE))
    }
}

fn sample(first: SampleFile) -> ArchivedSample {
    ArchivedSample { key: first.key, files: vec![(first.suffix, first.content)] }
}

fn add(sample: &mut ArchivedSample, file: SampleFile) -> Result<()> {
    let SampleFile { key, suffix, content } = file;
    if sample.files.iter().any(|(other, _)| *other == suffix) {
        return Err(Error::bad_input(format!(
            "sample {key:?} of the archive has two files with the suffix {suffix:?}"
        )));
    }
    sample.files.push((suffix, content));
    Ok(())
}

/// Returns the next file that is part of a sample.
fn next_file<'a, R: Read + 'a>(
    entries: &mut impl Iterator<Item = io::Result<Entry<'a, R>>>,
    whole: bool,
) -> Result<Option<SampleFile>> {
    for entry in entries {
        let mut entry = entry.map_err(|error| stream_error(&error, ARCHIVE))?;
        if !entry.header().entry_type().is_file() {
            continue;
        }
        let path = entry.path_bytes().into_owned();
        let path = String::from_utf8(path).map_err(|_| Error::bad_input("a name in the archive is not UTF-8"))?;
        let Some((key, suffix)) = key_and_suffix(&path) else { continue };
        let content = content(&mut entry, &path, whole)?;
        return Ok(Some(SampleFile { key: key.to_owned(), suffix, content }));
    }
    Ok(None)
}

/// Reads a file, and returns its bytes, or the first of them. Memory is allocated for bytes that
/// are there.
fn content<R: Read>(entry: &mut Entry<'_, R>, path: &str, whole: bool) -> Result<Vec<u8>> {
    /// More than the header of most arrays.
    const HEAD_BYTES: u64 = 4 << 10;
    let (size, what) = (entry.size(), format!("{path:?} in the archive"));
    if size > VALUE_BYTES {
        return Err(Error::bad_input(format!("{what} has {size} bytes, more than {VALUE_BYTES}")));
    }
    let count = if whole { size } else { size.min(HEAD_BYTES) };
    let failed = |error: io::Error| stream_error(&error, &what);
    let mut bytes = Vec::new();
    entry.take(count).read_to_end(&mut bytes).map_err(failed)?;
    let rest = io::copy(entry, &mut io::sink()).map_err(failed)?;
    let found = u64::try_from(bytes.len()).ok().and_then(|read| read.checked_add(rest));
    if found == Some(size) { Ok(bytes) } else { Err(cut_off(&what)) }
}
