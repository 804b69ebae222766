//! How a file is verified, and the report of what was found.

use crate::format::RegionKind;
use crate::open::Source;
use crate::{Error, ErrorKind, Result};
use std::ops::{ControlFlow, Range};
use std::sync::Arc;

/// A damaged region.
#[derive(Debug)]
#[non_exhaustive]
pub struct Damage {
    /// The bytes concerned.
    pub file_range: Range<u64>,
    /// The kind of the damaged region, if known.
    pub region: Option<RegionKind>,
    /// The column whose chunk or index it is, if that can be told.
    pub column: Option<Arc<str>>,
    /// The samples that are lost or in doubt, if known. For a page of the index, the samples that
    /// are found through it.
    pub samples: Option<Range<u64>>,
    /// The error, which names the rule of the specification.
    pub error: Error,
}

/// How a file is verified.
#[derive(Default)]
pub struct VerifyOptions<'a> {
    pub(super) decode: bool,
    pub(super) threads: usize,
    pub(super) progress: Option<&'a mut dyn FnMut(u64) -> ControlFlow<()>>,
}

impl<'a> VerifyOptions<'a> {
    /// The default: every byte, without decoding.
    pub fn new() -> Self {
        Self::default()
    }

    /// Also decodes every chunk and checks what it holds (bools are 0 or 1, texts are UTF-8, nulls
    /// are zero ...).
    pub fn decode(mut self, decode: bool) -> Self {
        self.decode = decode;
        self
    }

    /// Sets the number of threads that check and decode chunks, this one included. The report does
    /// not depend on it. Default: 1.
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = threads;
        self
    }

    /// Calls `progress` with the number of bytes checked so far, now and then. If it breaks, the
    /// work ends with an error of kind [`Cancelled`](ErrorKind::Cancelled).
    pub fn progress(mut self, progress: &'a mut dyn FnMut(u64) -> ControlFlow<()>) -> Self {
        self.progress = Some(progress);
        self
    }
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
