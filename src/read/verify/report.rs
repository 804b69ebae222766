//! The report of a verification.

use crate::format::RegionKind;
use crate::open::Source;
use crate::{Error, ErrorKind, Result};
use std::ops::Range;
use std::sync::Arc;

/// What a finding of a verification means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DamageKind {
    /// Bytes are wrong, or missing.
    Damaged,
    /// An append is at work, or was stopped, and has not committed the bytes: intact regions, the
    /// last of which may be cut off. They hold no sample of the file.
    Uncommitted,
    /// The file ends with a commit, but its writer has not finished it.
    Unfinished,
}

impl DamageKind {
    /// Returns the name that the program prints, such as `"uncommitted"`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Damaged => "damaged",
            Self::Uncommitted => "uncommitted",
            Self::Unfinished => "unfinished",
        }
    }
}

/// The verdict on a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FileState {
    /// All bytes are right, and the writer has finished.
    Intact,
    /// All samples of the last commit are intact, but a writer has not finished: it is at work, or
    /// was stopped. A later verification may find the file intact.
    Unfinished,
    /// Something is damaged.
    Damaged,
}

impl FileState {
    /// Returns the name that the program prints, such as `"unfinished"`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Intact => "ok",
            Self::Unfinished => "unfinished",
            Self::Damaged => "damaged",
        }
    }
}

/// A damaged region, or what a writer that has not finished has left.
#[derive(Debug)]
#[non_exhaustive]
pub struct Damage {
    /// What the finding means.
    pub kind: DamageKind,
    /// The bytes concerned. Of a chunk in blocks whose front is intact, the damaged blocks: those
    /// that follow each other are one damage.
    pub file_range: Range<u64>,
    /// The kind of the damaged region, if known.
    pub region: Option<RegionKind>,
    /// The column whose chunk or index it is, if that can be told.
    pub column: Option<Arc<str>>,
    /// The samples that are lost or in doubt, if known: the first to the last. Of damaged blocks,
    /// these have a byte in one of them; so empty samples between them are not lost. For a page of
    /// the index, the samples that are found through it.
    pub samples: Option<Range<u64>>,
    /// The error, which names the rule of the specification.
    pub error: Error,
}

/// The result of [`verify`](crate::verify::verify).
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct VerifyReport {
    /// Length of the file.
    pub file_bytes: u64,
    /// Intact chunks.
    pub chunk_count: u64,
    /// Samples in the last valid commit, if there is one.
    pub sample_count: Option<u64>,
    /// Everything that was found, in the order of the file. Empty: the file is intact.
    pub damages: Vec<Damage>,
}

impl VerifyReport {
    /// Returns the verdict.
    pub fn state(&self) -> FileState {
        match self.damages.as_slice() {
            [] => FileState::Intact,
            all if all.iter().any(|damage| damage.kind == DamageKind::Damaged) => FileState::Damaged,
            _ => FileState::Unfinished,
        }
    }
}

/// Returns damage as a value; other errors end the verification.
pub(super) fn passing(error: Error) -> Result<Error> {
    if error.kind() == ErrorKind::Corrupt { Ok(error) } else { Err(error) }
}

pub(super) fn whole_file(source: &dyn Source, error: Error) -> Damage {
    let region = Some(RegionKind::Header);
    let (kind, file_range) = (DamageKind::Damaged, 0..source.byte_count());
    Damage { kind, file_range, region, column: None, samples: None, error }
}
