//! Verifies a file from its first byte to its last.
//!
//! Regions are visited in batches, in file order, and threads verify their bodies. The findings are
//! then combined in file order, which determines what each one means: a region that agrees with the
//! regions before it, damage, or a loss that earlier damage explains. So the report does not depend
//! on the number of threads.
//!
//! The bytes after the last commit are examined at the end. They do not count as damage if an
//! append has left them. A writer writes regions in order and commits them with a trailer. So an
//! append that is in progress, or was stopped, leaves intact regions without a trailer, and the
//! last of these regions can be truncated at any byte. Whatever is left of its padding and its
//! header must be valid. Anything else is damage, such as a later commit whose trailer or footer is
//! damaged, because its samples were committed. An append that loses bytes in a power failure
//! cannot be distinguished from such damage, so it also counts as damage.

use super::batch::Batch;
use super::body::{BodyCheck, BodyFinding, SeenTables, load_body};
use super::commit::CommitCheck;
use super::report::{Finding, FindingKind, Findings, VerifyOptions, VerifyReport, as_finding};
use super::walk::{SpanBytes, Walk, WalkItem, span_bytes};
use crate::bytes::le::u64_of;
use crate::bytes::memory;
use crate::codec::DamagedChunk;
use crate::error::check_cancelled;
use crate::format::chunk::ChunkHeader;
use crate::format::region::{HEADER_LEN, RegionHeader, RegionKind, next_offset};
use crate::open::source::{Source, fetch};
use crate::open::{FileHeader, open_header, open_last_commit};
use crate::{Error, ErrorKind, Result};
use std::error::Error as _;
use std::io;

/// Checks every byte of a file: structure, checksums, padding, and the consistency of all regions
/// (chapter 10 of the specification).
///
/// Damage and an unfinished file are reported, not returned as errors. The [`FindingKind`] of each
/// finding and [`VerifyReport::state`] distinguish them. An error means that the source could not
/// be read, that memory ran out, or that the file needs a newer release or a different build. Works
/// even on files that cannot be opened.
///
/// Cost: one pass over the file, limited by the speed of its source, or by how fast the threads
/// compute CRC-32. Small chunks are fetched several MiB at a time; see [`Source::coalesce`].
/// Allocates 40 bytes for each chunk of a commit, and at most 7 MiB for each thread. A thread that
/// decodes also allocates the stored and decoded size of the largest chunk. A damaged chunk that
/// has blocks is read again, and its validity and shape are decoded.
pub fn verify(source: &dyn Source, mut options: VerifyOptions<'_>) -> Result<VerifyReport> {
    let mut report = VerifyReport { file_bytes: source.byte_count(), ..VerifyReport::default() };
    let file_header = match open_header(source) {
        Ok(file_header) => file_header,
        Err(error) => {
            let (all, error) = (0..source.byte_count(), as_finding(error)?);
            report.findings.push(Finding::of_bytes(FindingKind::Damaged, all, Some(RegionKind::FileHeader), error));
            return Ok(report);
        }
    };
    let (end, trailer_crc, chunk_count) = match open_last_commit(source, &file_header) {
        Ok(commit) => {
            commit.check_encodings(&file_header.schema)?;
            report.sample_count = Some(commit.footer.sample_count);
            let chunks = commit.footer.columns.iter().map(|facts| facts.chunk_count);
            let end = commit.trailer_offset.saturating_add(HEADER_LEN);
            (end, commit.trailer_crc, chunks.fold(0, u64::saturating_add))
        }
        Err(error) => {
            as_finding(error)?; // the walk will find the damage again, with its offset
            (source.byte_count(), 0, 0)
        }
    };
    let span_bytes = span_bytes(source, end.checked_div(chunk_count));
    let layouts = file_header.schema.columns.iter().map(|column| column.layout()).collect::<Result<Vec<_>>>()?;
    let tables = SeenTables::new(source, file_header.fields.file_id);
    let worker = |_| BodyCheck::new(source, &layouts, &tables, options.deep);
    let mut workers: Vec<_> = (0..options.threads.max(1)).map(worker).collect();
    let mut walk = Walk::new(source, &file_header, end);
    let mut file_check = FileCheck::new(source, &file_header, options.deep);
    loop {
        let (visited, error) = Batch::check(&mut walk, &tables, &mut workers, span_bytes);
        let is_over = visited.is_empty();
        visited.into_iter().try_for_each(|(visited, body)| file_check.add(visited, body))?;
        if let Some(error) = error {
            return Err(error);
        }
        if is_over {
            file_check.finish(end, trailer_crc, &mut report)?;
            return Ok(report);
        }
        if let Some(progress) = &mut options.progress {
            check_cancelled(progress(walk.at()))?;
        }
    }
}

/// The findings so far.
struct FileCheck<'a> {
    source: &'a dyn Source,
    file_header: &'a FileHeader,
    check: CommitCheck<'a>,
    findings: Findings,
    buffer: Vec<u8>,
}

impl<'a> FileCheck<'a> {
    fn new(source: &'a dyn Source, file_header: &'a FileHeader, decode: bool) -> Self {
        let check = CommitCheck::new(file_header, decode);
        Self { source, file_header, check, findings: Findings::default(), buffer: Vec::new() }
    }

    /// Adds the next region or damage in file order.
    fn add(&mut self, visited: WalkItem, body: BodyFinding) -> Result<()> {
        match visited {
            WalkItem::Region(header) => self.region(&header, body),
            // a region that does not follow its predecessor
            WalkItem::Finding(finding) if finding.region.is_some() => {
                self.findings.all.push(finding);
                Ok(())
            }
            WalkItem::Finding(finding) => {
                self.findings.push_unidentified(finding);
                Ok(())
            }
        }
    }

    fn region(&mut self, header: &RegionHeader, body: BodyFinding) -> Result<()> {
        let page;
        let (bytes, parts) = match body {
            BodyFinding::Unread => (load_body(self.source, header, &mut self.buffer), None),
            BodyFinding::Damaged(error) => (Err(error), None),
            BodyFinding::Intact => (Ok(&[][..]), None),
            BodyFinding::Page(bytes) => {
                page = bytes;
                (Ok(page.as_slice()), None)
            }
            BodyFinding::Decoded(parts) => (Ok(&[][..]), Some(parts)),
            BodyFinding::DamagedBlocks(damaged) => return self.blocks(header, &damaged),
        };
        let result = match bytes {
            Ok(bytes) => self.check.region(header, bytes, parts, &self.findings),
            Err(error) => {
                self.check.damaged_region(header);
                Err(error)
            }
        };
        if let Err(error) = result {
            let error = as_finding(error)?;
            let (column, samples) = self.check.column_and_samples(header);
            let file_range = header.offset..header.end();
            let kind = FindingKind::Damaged;
            self.findings.all.push(Finding { file_range, kind, region: Some(header.kind), column, samples, error });
        }
        self.report_lost();
        Ok(())
    }

    /// Adds the damaged blocks of a chunk whose block index is intact, with the samples that are
    /// lost with them.
    fn blocks(&mut self, header: &RegionHeader, damaged: &DamagedChunk) -> Result<()> {
        self.check.damaged_region(header);
        let (column, _) = self.check.column_and_samples(header);
        let entry = ChunkHeader::unchecked(header).entry;
        for run in &damaged.block_ranges {
            // no overflow: inside the body of the chunk
            let byte = |at: usize| header.body_offset().saturating_add(u64_of(at));
            let sample = |at: usize| entry.first_sample.saturating_add(u64_of(at));
            memory::reserve(&mut self.findings.all, 1)?;
            self.findings.all.push(Finding {
                kind: FindingKind::Damaged,
                file_range: byte(run.bytes.start)..byte(run.bytes.end),
                region: Some(header.kind),
                column: column.clone(),
                samples: Some(sample(run.samples.start)..sample(run.samples.end)),
                error: run.error(entry.sample_count, damaged.block_count).with_offset(byte(run.bytes.start)),
            });
        }
        self.report_lost();
        Ok(())
    }

    fn report_lost(&mut self) {
        self.check.take_lost().into_iter().for_each(|lost| self.findings.report(lost));
    }

    /// Checks the end of the file: for the bytes after the last trailer, then and
    /// The trailer ends at `end`, and its `header_crc` is `trailer_crc`.
    fn finish(mut self, end: u64, trailer_crc: u32, report: &mut VerifyReport) -> Result<()> {
        if !self.findings.all.is_empty() {
            self.check.find_gaps(None);
            self.report_lost();
        }
        let (file_bytes, is_clean) = (self.source.byte_count(), self.findings.all.is_empty());
        let found = if end < file_bytes {
            let bytes = file_bytes - end;
            let (kind, message) = match is_uncommitted(self.source, self.file_header, end, trailer_crc)? {
                true => (
                    FindingKind::Uncommitted,
                    format!(
                        "{bytes} bytes follow the last commit: an append is running, or was stopped before it committed"
                    ),
                ),
                false => (
                    FindingKind::Damaged,
                    format!("{bytes} bytes follow the last valid trailer: a damaged commit, or bytes of another file"),
                ),
            };
            Some((kind, Error::corrupt("R-2.7", message)))
        } else if is_clean && !self.check.ends_with_trailer() {
            let message = "the file ends without a trailer: it is truncated, or its writer has not committed";
            Some((FindingKind::Damaged, Error::corrupt("R-2.9", message)))
        } else if is_clean && !self.check.is_finished {
            let message = "the file is readable but not finished: its writer is running, or was stopped after a commit";
            Some((FindingKind::Unfinished, Error::corrupt("R-7.8", message)))
        } else {
            None
        };
        self.findings
            .all
            .extend(found.map(|(kind, error)| Finding::of_bytes(kind, end..file_bytes, None, error.with_offset(end))));
        report.chunk_count = self.check.intact_chunks;
        report.findings = self.findings.all;
        // a loss can be found after damage at a higher offset
        report.findings.sort_by_key(|finding| finding.file_range.start);
        Ok(())
    }
}

/// Returns whether the bytes after the last commit, from `start` to the end of the file, were left
/// by an uncommitted append. `trailer_crc` is the `header_crc` of the trailer that ends at `start`;
/// bytes left by an older file do not link to it.
///
/// Cost: reads these bytes.
fn is_uncommitted(source: &dyn Source, file_header: &FileHeader, start: u64, trailer_crc: u32) -> Result<bool> {
    let mut walk = Walk::of_tail(source, file_header, start, trailer_crc);
    let tables = SeenTables::new(source, file_header.fields.file_id);
    let mut bodies = BodyCheck::new(source, &[], &tables, false);
    loop {
        let header = match walk.next_intact(SpanBytes::default()) {
            Ok(header) => header,
            Err(error) => return Ok(ends_early(error)? && begins_region(source, file_header, &walk)?),
        };
        if header.kind == RegionKind::Trailer {
            return Ok(false); // this trailer is invalid; otherwise the last commit would end here
        }
        match bodies.check_checksum(&header, SpanBytes::default()) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::Corrupt => return Ok(false),
            Err(error) => return ends_early(error),
        }
    }
}

/// Returns whether the bytes at which a walk has ended can be the start of another region:
/// whatever is present of its padding and its header must be valid.
fn begins_region(source: &dyn Source, file_header: &FileHeader, walk: &Walk<'_>) -> Result<bool> {
    let (at, Some(previous)) = (walk.at(), walk.previous()) else { return Ok(false) };
    let (alignment, file_id) = (file_header.fields.alignment.into(), file_header.fields.file_id);
    let until = next_offset(RegionKind::Chunk, at, alignment).saturating_add(HEADER_LEN).min(source.byte_count());
    // less than twice the alignment
    let length = usize::try_from(until.saturating_sub(at)).unwrap_or(usize::MAX);
    let mut buffer = Vec::new();
    let bytes = match fetch(source, at, length, &mut buffer) {
        Ok(bytes) => bytes,
        Err(error) => return ends_early(error),
    };
    let begins = |kind: RegionKind| {
        let offset = next_offset(kind, at, alignment);
        let padding = usize::try_from(offset.saturating_sub(at)).unwrap_or(usize::MAX);
        let (padding, header) = bytes.split_at_checked(padding).unwrap_or((bytes, &[]));
        padding.iter().all(|byte| *byte == 0) && RegionHeader::can_begin(kind, file_id, previous, offset, header)
    };
    Ok(RegionKind::ALL.into_iter().filter(|kind| *kind != RegionKind::FileHeader).any(begins))
}

/// Returns whether an error means that the file ends here. If an append has failed since the file
/// was opened, the file can be shorter than the source states.
fn ends_early(error: Error) -> Result<bool> {
    if error.kind() == ErrorKind::Corrupt {
        return Ok(matches!(error.rule(), Some("R-2.5" | "R-2.9")));
    }
    let cause = error.source().and_then(|cause| cause.downcast_ref::<io::Error>());
    match cause.map(io::Error::kind) {
        Some(io::ErrorKind::UnexpectedEof) => Ok(true),
        _ => Err(error),
    }
}
