//! The samples of an archive, in order.

use super::members::{Content, Members};
use super::name::{is_metadata, key_and_suffix};
use indexmap::IndexMap;
use std::collections::HashSet;
use tensilo::import::FormatFile;
use tensilo::{Error, Result, limits};

/// The files of one sample.
pub(super) struct ArchivedSample {
    pub key: String,
    /// The contents by suffix.
    pub files: IndexMap<String, Content>,
}

/// A file that is part of a sample.
struct SampleFile {
    key: String,
    /// The suffix and the content; `None` if the suffix is not selected.
    file: Option<(String, Content)>,
}

/// Reads the samples of an archive some at a time.
pub(super) struct ArchivedSamples {
    members: Members,
    /// The first file of the next sample.
    next: Option<SampleFile>,
    /// The most bytes of each file that are read.
    most_bytes: u64,
    /// The suffixes of the files that are read; `None` for all.
    suffixes: Option<HashSet<String>>,
    /// The number of files so far that have no key and suffix.
    pub without_suffix: u64,
}

impl ArchivedSamples {
    /// Opens an archive, to read the first `most_bytes` of each file.
    pub(super) fn open(file: &FormatFile, most_bytes: u64) -> Result<Self> {
        Ok(Self { members: Members::open(file)?, next: None, most_bytes, suffixes: None, without_suffix: 0 })
    }

    /// Selects the suffixes of the files that are read. Samples lack the others.
    pub(super) fn of_suffixes(self, suffixes: HashSet<String>) -> Self {
        Self { suffixes: Some(suffixes), ..self }
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
            let content = next.file.as_ref().and_then(|(_, content)| content.as_ref().ok());
            bytes = bytes.saturating_add(content.map_or(0, Vec::len));
            if !is_same {
                bytes = bytes.saturating_add(next.key.len());
                samples.push(ArchivedSample { key: next.key, files: IndexMap::new() });
            }
            if let (Some(sample), Some((suffix, content))) = (samples.last_mut(), next.file) {
                add(sample, suffix, content)?;
            }
        }
    }

    /// Returns the next file that is part of a sample.
    fn next_file(&mut self) -> Result<Option<SampleFile>> {
        while let Some(member) = self.members.next_member()? {
            let Some((key, suffix)) = key_and_suffix(&member.path) else {
                let is_other = !is_metadata(&member.path);
                self.without_suffix = self.without_suffix.saturating_add(is_other.into());
                continue;
            };
            let key = key.to_owned();
            let is_selected = self.suffixes.as_ref().is_none_or(|suffixes| suffixes.contains(&suffix));
            let file = match is_selected {
                true => Some((suffix, self.members.read(member, self.most_bytes)?)),
                false => None,
            };
            return Ok(Some(SampleFile { key, file }));
        }
        Ok(None)
    }
}

fn add(sample: &mut ArchivedSample, suffix: String, content: Content) -> Result<()> {
    let ArchivedSample { key, files } = sample;
    if files.len() >= limits::COLUMNS {
        return Err(Error::bad_input(format!("sample {key:?} of the archive has more than {} files", limits::COLUMNS)));
    }
    if files.contains_key(&suffix) {
        return Err(Error::bad_input(format!(
            "sample {key:?} of the archive has two files with the suffix {suffix:?}"
        )));
    }
    files.insert(suffix, content);
    Ok(())
}
