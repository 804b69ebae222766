//! The report of a verification.

use crate::format::RegionKind;
use crate::open::Source;
use crate::{Error, ErrorKind, Result};
use std::ops::Range;
use std::sync::Arc;

/// A damaged region.
#[derive(Debug)]
#[non_exhaustive]
pub struct Damage {
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
    /// Everything that is wrong, in the order of the file. Empty: the file is intact.
    pub damages: Vec<Damage>,
}

/// Returns damage as a value; other errors end the verification.
pub(super) fn passing(error: Error) -> Result<Error> {
    if error.kind() == ErrorKind::Corrupt { Ok(error) } else { Err(error) }
}

pub(super) fn whole_file(source: &dyn Source, error: Error) -> Damage {
    let region = Some(RegionKind::Header);
    Damage { file_range: 0..source.byte_count(), region, column: None, samples: None, error }
}
