//! The options and the report of a verification: damage, and the samples that are lost to it.
//!
//! The walk over a file finds regions, and bytes that cannot be a region. Such bytes do not show
//! which region they have replaced. The index, the footer, or the chunks before and after show that
//! later: the index lists a chunk that was not found, a page is missing between two others, or no
//! chunk contains some samples. If a damaged range covers exactly one loss, the loss is added to
//! that finding, so that nothing is reported twice. Otherwise the loss is a separate finding.

use crate::format::chunk::ChunkEntry;
use crate::format::index::{ChunkRun, PAGE_BYTES, PAGE_ENTRIES};
use crate::format::region::{HEADER_LEN, RegionKind, align};
use crate::{Error, ErrorKind, Result, limits};
use std::ops::{ControlFlow, Range};
use std::sync::Arc;

/// The options of [`verify`](crate::verify::verify).
#[non_exhaustive]
pub struct VerifyOptions<'a> {
    pub(super) deep: bool,
    pub(super) threads: usize,
    pub(super) progress: Option<&'a mut dyn FnMut(u64) -> ControlFlow<()>>,
}

impl Default for VerifyOptions<'_> {
    fn default() -> Self {
        Self { deep: false, threads: 1, progress: None }
    }
}

impl<'a> VerifyOptions<'a> {
    /// Returns the defaults: one thread checks every byte and decodes no chunk.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets whether to decode chunks and check every value (default: no): bools are 0 or 1, text is
    /// valid UTF-8, nulls are zero.
    ///
    /// Cost: decodes every chunk. A chunk of a few hundred bytes can decode to 64 MiB, so a hostile
    /// file of a megabyte can take minutes. Use [`VerifyOptions::progress`] to limit the time.
    pub fn deep(mut self, deep: bool) -> Self {
        self.deep = deep;
        self
    }

    /// Sets the number of threads that verify and decode chunks, including the calling thread. The
    /// default is 1, and 0 also means 1. The report does not depend on this number.
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = threads;
        self
    }

    /// Sets a function that is called from time to time with the number of bytes checked. If it
    /// returns [`Break`](ControlFlow::Break), the verification ends with an error of kind
    /// [`Cancelled`](crate::ErrorKind::Cancelled).
    pub fn progress(mut self, progress: &'a mut dyn FnMut(u64) -> ControlFlow<()>) -> Self {
        self.progress = Some(progress);
        self
    }
}

/// The meaning of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FindingKind {
    /// Bytes are wrong or missing.
    Damaged,
    /// An append is in progress, or was stopped before it committed the bytes. The bytes are intact
    /// regions, except that the last region can be cut off. They contain no samples of the file.
    Uncommitted,
    /// The file ends with a commit, but its writer has not declared it complete.
    Unfinished,
}

impl FindingKind {
    /// Returns the name that the command line prints, such as `"uncommitted"`.
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
    /// All bytes are valid, and the writer has finished.
    Intact,
    /// All samples of the last commit are intact, but a writer has not finished: it is running, or
    /// was stopped. A later verification can find the file intact.
    Unfinished,
    /// Something is damaged.
    Damaged,
}

impl FileState {
    /// Returns the name that the command line prints, such as `"unfinished"`. The name of
    /// [`Intact`](Self::Intact) is `"ok"`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Intact => "ok",
            Self::Unfinished => "unfinished",
            Self::Damaged => "damaged",
        }
    }
}

/// A damaged region, or bytes that an unfinished writer has left.
#[derive(Debug)]
#[non_exhaustive]
pub struct Finding {
    /// The meaning of the finding.
    pub kind: FindingKind,
    /// The damaged range of the file. If the values of a chunk are divided into blocks and the
    /// block index is intact, this range covers only damaged blocks. Adjacent damaged blocks are
    /// one finding.
    pub file_range: Range<u64>,
    /// The kind of the damaged region, if known.
    pub region: Option<RegionKind>,
    /// The column of the damaged chunk, table or index page, if known.
    pub column: Option<Arc<str>>,
    /// The range of samples that are or may be lost, if known. For damaged blocks, the samples
    /// with a byte in one of the blocks are lost, but empty samples in this range are not. For an
    /// index page, these are the samples that are found through it.
    pub samples: Option<Range<u64>>,
    /// The error, which names the broken rule of the specification.
    pub error: Error,
}

impl Finding {
    /// Returns a finding for bytes whose column and samples are not known.
    pub(super) fn of_bytes(
        kind: FindingKind,
        file_range: Range<u64>,
        region: Option<RegionKind>,
        error: Error,
    ) -> Self {
        Self { kind, file_range, region, column: None, samples: None, error }
    }
}

/// The result of [`verify`](crate::verify::verify).
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct VerifyReport {
    /// The length of the file.
    pub file_bytes: u64,
    /// The number of intact chunks.
    pub chunk_count: u64,
    /// The number of samples in the last valid commit, if there is one.
    pub sample_count: Option<u64>,
    /// All findings, in file order. Empty if the file is intact.
    pub findings: Vec<Finding>,
}

impl VerifyReport {
    /// Returns the verdict.
    pub fn state(&self) -> FileState {
        match self.findings.as_slice() {
            [] => FileState::Intact,
            all if all.iter().any(|finding| finding.kind == FindingKind::Damaged) => FileState::Damaged,
            _ => FileState::Unfinished,
        }
    }
}

/// Returns `Ok(error)` if the error reports damage. Fails with any other error, which ends the
/// verification.
pub(super) fn as_finding(error: Error) -> Result<Error> {
    if error.kind() == ErrorKind::Corrupt { Ok(error) } else { Err(error) }
}

/// A region that must have been in the file, but that the walk has not found.
pub(super) struct LostRegion {
    pub region: RegionKind,
    pub column: Option<Arc<str>>,
    pub samples: Option<Range<u64>>,
    pub bytes: LostBytes,
}

/// The location of a lost region.
pub(super) enum LostBytes {
    /// Exactly this range.
    Exactly(Range<u64>),
    /// Somewhere in this range.
    Within(Range<u64>),
}

impl LostRegion {
    /// Returns the loss of a chunk that the index lists.
    pub(super) fn chunk(entry: &ChunkEntry, column: Option<Arc<str>>) -> Self {
        let bytes = LostBytes::Exactly(file_range(entry));
        Self { region: RegionKind::Chunk, column, samples: Some(entry.samples()), bytes }
    }
}

/// Returns the range of a chunk in the file: header and body.
fn file_range(entry: &ChunkEntry) -> Range<u64> {
    let stored = u64::from(entry.stored_bytes.min(limits::CHUNK_BYTES));
    entry.offset..entry.offset.saturating_add(HEADER_LEN).saturating_add(stored)
}

/// Returns the ranges of samples that no chunk in `known` contains, each with the range of bytes
/// that must have contained their chunks. `from` is the first sample and the start of the bytes;
/// `last` is the sample count and the end of the bytes, if known.
pub(super) fn gaps(
    from: (u64, u64),
    known: impl Iterator<Item = ChunkEntry>,
    last: Option<(u64, u64)>,
) -> Vec<(Range<u64>, Range<u64>)> {
    let mut known: Vec<_> = known.map(|entry| (entry.samples(), file_range(&entry))).collect();
    known.sort_unstable_by_key(|(samples, _)| samples.start);
    known.extend(last.map(|(samples, offset)| (samples..samples, offset..offset)));
    let (mut sample, mut offset) = from;
    let mut gaps = Vec::new();
    for (samples, bytes) in known {
        if samples.start > sample {
            gaps.push((sample..samples.start, offset..bytes.start));
        }
        sample = sample.max(samples.end);
        offset = offset.max(bytes.end);
    }
    gaps
}

/// Returns the samples of the chunks that page `page` of a run lists. They are known if all chunks
/// of the run were found, if all have the same number of samples, or if the run has a single page.
/// Otherwise returns `None`.
pub(super) fn samples_of_page(run: &ChunkRun, page: u64, chunks: &[ChunkEntry]) -> Option<Range<u64>> {
    let entries = page.saturating_mul(PAGE_ENTRIES);
    if run.samples_per_chunk > 0 {
        let per_chunk = u64::from(run.samples_per_chunk);
        let first = run.first_sample.saturating_add(entries.saturating_mul(per_chunk));
        let end = first.saturating_add(PAGE_ENTRIES.saturating_mul(per_chunk));
        return Some(first..end.min(run.end_sample()));
    }
    if run.page_count() == 1 {
        return Some(run.first_sample..run.end_sample());
    }
    let complete = u64::try_from(chunks.len()) == Ok(run.chunk_count);
    let rest = chunks.get(usize::try_from(entries).ok()?..).filter(|_| complete)?;
    let last = rest.iter().take(usize::try_from(PAGE_ENTRIES).ok()?).next_back()?;
    Some(rest.first()?.first_sample..last.samples().end)
}

/// All findings, and which of them are for bytes that cannot be a region.
#[derive(Default)]
pub(super) struct Findings {
    pub all: Vec<Finding>,
    /// The indices in `all` of the findings for bytes that cannot be a region, in ascending order
    /// of their ranges.
    unidentified: Vec<usize>,
}

impl Findings {
    /// Adds a finding for bytes that cannot be a region.
    pub(super) fn push_unidentified(&mut self, finding: Finding) {
        self.unidentified.push(self.all.len());
        self.all.push(finding);
    }

    /// Returns the indices of the unidentified findings that overlap a range.
    fn touching(&self, range: &Range<u64>) -> &[usize] {
        let bytes = |number: &usize| self.all.get(*number).map_or(0..0, |finding| finding.file_range.clone());
        let from = self.unidentified.partition_point(|number| bytes(number).end <= range.start);
        let to = self.unidentified.partition_point(|number| bytes(number).start < range.end);
        self.unidentified.get(from..to).unwrap_or(&[])
    }

    /// Reports a loss. If exactly one finding covers the lost bytes and does not name a region yet,
    /// adds the loss to that finding.
    pub(super) fn report(&mut self, lost: LostRegion) {
        let (mut file_range, is_exact) = match &lost.bytes {
            LostBytes::Exactly(range) => (range.clone(), true),
            LostBytes::Within(range) => (range.clone(), false),
        };
        let header = align(file_range.start, HEADER_LEN);
        let touching = self.touching(&if is_exact { header..header.saturating_add(1) } else { file_range.clone() });
        let (first, last) = match touching {
            // no unidentified finding is the cause; the damage to these chunks was already reported
            [] if !is_exact => return,
            [] => (None, None),
            [first, .., last] => (Some(*first), Some(*last)),
            [only] => (Some(*only), Some(*only)),
        };
        let bytes =
            |number: Option<usize>| number.and_then(|number| self.all.get(number)).map(|d| d.file_range.clone());
        if let (false, Some(from), Some(to)) = (is_exact, bytes(first), bytes(last)) {
            file_range = from.start..to.end;
        }
        if first == last
            && let Some(finding) = first.and_then(|number| self.all.get_mut(number))
            && finding.region.is_none()
        {
            finding.region = Some(lost.region);
            finding.column = lost.column;
            finding.samples = lost.samples;
            return;
        }
        let error = match lost.region {
            RegionKind::Chunk if is_exact => Error::corrupt("R-6.2", "a chunk that the index lists is missing"),
            RegionKind::Chunk => Error::corrupt("R-4.2", "the chunks of these samples are missing"),
            _ => Error::corrupt("R-7.3", "a page of the index is missing"),
        };
        let error = error.with_offset(file_range.start);
        let LostRegion { region, column, samples, .. } = lost;
        self.all.push(Finding { file_range, kind: FindingKind::Damaged, region: Some(region), column, samples, error });
    }

    /// Returns the lost pages of these runs as pairs of run index and page number. The runs are in
    /// ascending order and do not overlap. A page is lost if its bytes cannot be a region.
    pub(super) fn lost_pages(&self, runs: &[ChunkRun], from: u64) -> Vec<(usize, u64)> {
        let mut lost = Vec::new();
        let first = self
            .unidentified
            .partition_point(|number| self.all.get(*number).is_none_or(|finding| finding.file_range.end <= from));
        for finding in self.unidentified.iter().skip(first).filter_map(|number| self.all.get(*number)) {
            let start = runs.partition_point(|run| run.end() <= finding.file_range.start);
            let touched = runs.iter().enumerate().skip(start);
            for (number, run) in touched.take_while(|(_, run)| run.offset < finding.file_range.end) {
                let page_of = |at: u64| at.saturating_sub(run.offset).div_ceil(PAGE_BYTES);
                let pages = page_of(finding.file_range.start)..page_of(finding.file_range.end).min(run.page_count());
                lost.extend(pages.map(|page| (number, page)));
            }
        }
        lost
    }
}
