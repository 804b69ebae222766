//! Checks every byte of a file.

mod batch;
mod body;
mod commit;
mod findings;
mod lost;
mod walk;

use crate::error::go_on;
use crate::format::region::HEAD;
use crate::open::Source;
use crate::open::{open_header, open_last_commit};
use crate::{Error, ErrorKind, RegionKind, Result};
use batch::Batch;
use body::BodyCheck;
use findings::Findings;
use std::ops::{ControlFlow, Range};
use std::sync::Arc;
use walk::Walk;

/// A damaged region.
#[derive(Debug)]
#[non_exhaustive]
pub struct Damage {
    /// The bytes concerned.
    pub file_range: Range<u64>,
    /// The kind of region that stands there, if that can be told.
    pub region: Option<RegionKind>,
    /// The column whose chunk or index it is, if that can be told.
    pub column: Option<Arc<str>>,
    /// The samples that are lost or in doubt, if that can be told; of a page of the index, those that are found through it.
    pub samples: Option<Range<u64>>,
    /// What is wrong; names the rule of the specification.
    pub error: Error,
}

/// How a file is verified.
#[derive(Default)]
pub struct VerifyOptions<'a> {
    decode: bool,
    threads: usize,
    progress: Option<&'a mut dyn FnMut(u64) -> ControlFlow<()>>,
}

impl<'a> VerifyOptions<'a> {
    /// The default: every byte, without decoding.
    pub fn new() -> Self {
        Self::default()
    }

    /// Also decodes every chunk and checks what it holds (bools are 0 or 1, texts are UTF-8, nulls are zero ...).
    pub fn decode(mut self, decode: bool) -> Self {
        self.decode = decode;
        self
    }

    /// Checks and decodes chunks on so many threads, this one included. The report is the same. Default: 1.
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

/// What [`verify`] found.
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

/// Checks every byte of a file: structure, checksums, padding, and that all parts agree (chapter 10 of the specification).
///
/// Damage is reported, not returned: an error means that the source could not be read, that memory ran out, or that the file needs a
/// newer release or another build. Works on files that cannot be opened. Cost: one pass over the file, at the speed of its source or of
/// CRC-32 on each thread; memory for the largest chunk on each thread if it decodes, else 1 MiB, and 40 bytes for each chunk of a commit.
pub fn verify(source: &dyn Source, mut options: VerifyOptions<'_>) -> Result<VerifyReport> {
    let mut report = VerifyReport { file_bytes: source.byte_count(), ..VerifyReport::default() };
    let header = match open_header(source) {
        Ok(header) => header,
        Err(error) => {
            report.damages.push(whole_file(source, passing(error)?));
            return Ok(report);
        }
    };
    let end = match open_last_commit(source, &header) {
        Ok(commit) => {
            report.sample_count = Some(commit.footer.sample_count);
            commit.trailer_offset.saturating_add(HEAD)
        }
        Err(error) => {
            passing(error)?; // the walk will meet it, and name the place
            source.byte_count()
        }
    };
    let layouts = header.schema.columns.iter().map(|column| column.layout()).collect::<Result<Vec<_>>>()?;
    let worker = |_| BodyCheck::new(source, &layouts, options.decode);
    let mut workers: Vec<_> = (0..options.threads.max(1)).map(worker).collect();
    let mut walk = Walk::new(source, &header, end);
    let mut findings = Findings::new(source, &header, options.decode);
    loop {
        let (met, error) = Batch::check(&mut walk, &mut workers);
        let is_over = met.is_empty();
        met.into_iter().try_for_each(|(met, body)| findings.add(met, body))?;
        if let Some(error) = error {
            return Err(error);
        }
        if is_over {
            findings.finish(end, &mut report);
            return Ok(report);
        }
        if let Some(progress) = &mut options.progress {
            go_on(progress(walk.at()))?;
        }
    }
}

/// Damage goes on; other errors end the verification.
fn passing(error: Error) -> Result<Error> {
    if error.kind() == ErrorKind::Corrupt { Ok(error) } else { Err(error) }
}

fn whole_file(source: &dyn Source, error: Error) -> Damage {
    let region = Some(RegionKind::Header);
    Damage { file_range: 0..source.byte_count(), region, column: None, samples: None, error }
}
