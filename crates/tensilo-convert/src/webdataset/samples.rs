//! The samples of an archive, in order.

use super::members::{Content, Members};
use super::name::key_and_suffix;
use tensilo::import::FormatFile;
use tensilo::{Error, Result, limits};

/// The files of one sample.
pub(super) struct ArchivedSample {
    pub key: String,
    /// Suffixes and contents.
    pub files: Vec<(String, Content)>,
}

/// A file that is part of a sample.
struct SampleFile {
    key: String,
    suffix: String,
    content: Content,
}

/// Reads the samples of an archive some at a time.
pub(super) struct ArchivedSamples {
    members: Members,
    /// The first file of the next sample.
    next: Option<SampleFile>,
    /// The most bytes of each file that are read.
    most_bytes: u64,
}

impl ArchivedSamples {
    /// Opens an archive. Of each file, only the first `most_bytes` are read.
    pub(super) fn open(file: &FormatFile, most_bytes: u64) -> Result<Self> {
        Ok(Self { members: Members::open(file)?, next: None, most_bytes })
    }

    /// Returns the next samples, with about so many bytes together. There are none behind the last.
    pub(super) fn some(&mut self, most_samples: usize, most_bytes: usize) -> Result<Vec<ArchivedSample>> {
        let mut samples: Vec<ArchivedSample> = Vec::new();
        let mut bytes = 0_usize;
        loop {
            let next = match self.next.take() {
                Some(file) => file,
                None => match self.next_file()? {
                    Some(file) => file,
                    None => return Ok(samples),
                },
            };
            let is_same = samples.last().is_some_and(|sample| sample.key == next.key);
            if !is_same && (samples.len() >= most_samples || bytes >= most_bytes) {
                self.next = Some(next);
                return Ok(samples);
            }
            bytes = bytes.saturating_add(next.content.as_ref().map_or(0, Vec::len));
            match samples.last_mut().filter(|_| is_same) {
                Some(last) => add(last, next)?,
                None => samples.push(ArchivedSample { key: next.key, files: vec![(next.suffix, next.content)] }),
            }
        }
    }

    /// Returns the next file that is part of a sample.
    fn next_file(&mut self) -> Result<Option<SampleFile>> {
        while let Some(member) = self.members.next_member()? {
            let Some((key, suffix)) = key_and_suffix(&member.path) else { continue };
            let key = key.to_owned();
            let content = self.members.read(member, self.most_bytes)?;
            return Ok(Some(SampleFile { key, suffix, content }));
        }
        Ok(None)
    }
}

fn add(sample: &mut ArchivedSample, file: SampleFile) -> Result<()> {
    let SampleFile { key, suffix, content } = file;
    if sample.files.len() >= limits::COLUMNS {
        return Err(Error::bad_input(format!("sample {key:?} of the archive has more than {} files", limits::COLUMNS)));
    }
    if sample.files.iter().any(|(other, _)| *other == suffix) {
        return Err(Error::bad_input(format!(
            "sample {key:?} of the archive has two files with the suffix {suffix:?}"
        )));
    }
    sample.files.push((suffix, content));
    Ok(())
}
