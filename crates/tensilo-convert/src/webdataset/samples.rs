//! Reads the samples of an archive, in order.
//!
//! A path is split into the key of a sample and a suffix. Consecutive files with the same key form
//! a sample. If the files of a sample were separated, it would silently become two samples. To
//! detect this, keys are remembered.

use super::members::{Content, Members};
use indexmap::IndexMap;
use std::collections::hash_map::{Entry, RandomState};
use std::collections::{HashMap, HashSet};
use std::hash::BuildHasher;
use tensilo::import::FormatFile;
use tensilo::{Error, Result, limits};

/// The files of one sample.
pub(super) struct ArchiveSample {
    pub key: String,
    /// The contents by suffix.
    pub files: IndexMap<String, Content>,
}

/// A file of a sample.
struct SampleFile {
    key: String,
    /// The suffix and the content; `None` if the suffix is not selected.
    file: Option<(String, Content)>,
}

/// Reads the samples of an archive in batches.
pub(super) struct ArchiveSamples {
    members: Members,
    /// The first file of the next sample.
    next: Option<SampleFile>,
    /// The maximum number of bytes that are read from each file.
    max_bytes: u64,
    /// The suffixes of the files that are read; `None` for all.
    suffixes: Option<HashSet<String>>,
    /// The number of files read so far whose path cannot be split into a key and a suffix.
    pub without_suffix: u64,
}

impl ArchiveSamples {
    /// Opens an archive. Only the first `max_bytes` bytes of each file are read.
    pub(super) fn open(file: &FormatFile, max_bytes: u64) -> Result<Self> {
        Ok(Self { members: Members::open(file)?, next: None, max_bytes, suffixes: None, without_suffix: 0 })
    }

    /// Selects the suffixes of the files that are read. Samples omit all other files.
    pub(super) fn with_suffixes(self, suffixes: HashSet<String>) -> Self {
        Self { suffixes: Some(suffixes), ..self }
    }

    /// Returns the next samples, at most `max_samples`, with about `max_bytes` bytes in total.
    /// Returns no samples at the end.
    pub(super) fn next_samples(&mut self, max_samples: usize, max_bytes: usize) -> Result<Vec<ArchiveSample>> {
        let mut samples: Vec<ArchiveSample> = Vec::new();
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
            if !is_same && (samples.len() >= max_samples || bytes >= max_bytes) {
                self.next = Some(next);
                return Ok(samples);
            }
            let content = next.file.as_ref().and_then(|(_, content)| content.as_ref().ok());
            bytes = bytes.saturating_add(content.map_or(0, Vec::len));
            if !is_same {
                bytes = bytes.saturating_add(next.key.len());
                samples.push(ArchiveSample { key: next.key, files: IndexMap::new() });
            }
            if let (Some(sample), Some((suffix, content))) = (samples.last_mut(), next.file) {
                add(sample, suffix, content)?;
            }
        }
    }

    /// Returns the next file of a sample.
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
                true => Some((suffix, self.members.read(member, self.max_bytes)?)),
                false => None,
            };
            return Ok(Some(SampleFile { key, file }));
        }
        Ok(None)
    }
}

fn add(sample: &mut ArchiveSample, suffix: String, content: Content) -> Result<()> {
    let ArchiveSample { key, files } = sample;
    if files.len() >= limits::COLUMNS {
        return Err(Error::bad_input(format!("sample {key:?} of the archive has more than {} files", limits::COLUMNS)));
    }
    if files.contains_key(&suffix) {
        return Err(Error::bad_input(format!("sample {key:?} of the archive has two files with suffix {suffix:?}")));
    }
    files.insert(suffix, content);
    Ok(())
}

/// The name of the key column.
pub(crate) const KEY: &str = "__key__";

/// Splits a path at the first dot of its last component, into the key of the sample and the suffix
/// in lower case. As in the WebDataset library, returns `None` if the last component begins with a
/// dot or has no dot, or if the file describes the archive.
pub(crate) fn key_and_suffix(path: &str) -> Option<(&str, String)> {
    let name_start = path.rfind('/').map_or(0, |slash| slash + 1);
    let dot = name_start + path.get(name_start..)?.find('.')?;
    let (key, suffix) = (path.get(..dot)?, path.get(dot + 1..)?);
    (dot > name_start && !suffix.is_empty() && !is_metadata(path)).then(|| (key, suffix.to_lowercase()))
}

/// Returns whether a file describes the archive: as in the WebDataset library, the first component
/// of its path is `__name__`.
fn is_metadata(path: &str) -> bool {
    let first = path.split('/').next().unwrap_or(path);
    first.len() >= 4 && first.starts_with("__") && first.ends_with("__")
}

/// The hashes of all keys so far, about 40 bytes for each key. Among 10^6 keys, two have the same
/// hash with a probability of 10^-7. In that case, an archive can be refused unnecessarily.
#[derive(Default)]
pub(crate) struct Keys {
    seen: HashMap<u64, KeyEntry>,
    hasher: RandomState,
    count: u64,
}

struct KeyEntry {
    sample: u64,
    /// The hash of the suffixes, independent of their order.
    suffixes: u64,
}

impl Keys {
    /// Adds the next sample. If an earlier sample has the same key but different suffixes, returns
    /// the number of the earlier sample: the two are one sample whose files were separated.
    ///
    /// Samples with the same key and the same suffixes are complete, and come from archives that
    /// were concatenated.
    pub(crate) fn split_from<'a>(&mut self, key: &str, suffixes: impl Iterator<Item = &'a str>) -> Option<u64> {
        let suffixes = suffixes.fold(0_u64, |sum, suffix| sum.wrapping_add(self.hasher.hash_one(suffix)));
        let (sample, next) = (self.count, self.count.saturating_add(1));
        self.count = next;
        match self.seen.entry(self.hasher.hash_one(key)) {
            Entry::Occupied(entry) if entry.get().suffixes != suffixes => Some(entry.get().sample),
            entry => {
                entry.insert_entry(KeyEntry { sample, suffixes });
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_split_at_the_first_dot_of_the_last_component() {
        let split = |path| key_and_suffix(path).map(|(key, suffix)| (key.to_owned(), suffix));
        assert_eq!(split("a/b.c/d.Seg.PNG"), Some(("a/b.c/d".to_owned(), "seg.png".to_owned())));
        assert_eq!(split("000001.cls"), Some(("000001".to_owned(), "cls".to_owned())));
        for path in ["", "a", "a/.hidden", "a.b/c", "x.", "__worker.info__", "__meta__/info.json", "____/a.b"] {
            assert_eq!(split(path), None, "{path}");
        }
        for path in ["__x/y.z__", "__a.b_", "___/a.b", "a/__b.c__", "a__/b.c"] {
            assert!(split(path).is_some(), "{path}");
        }
    }
}
