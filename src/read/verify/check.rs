//! The check of a file from its first byte to its last.
//!
//! Batches of regions are met in order, and their bodies checked by threads. The findings are then
//! combined in the order of the file, which decides what each means: regions that agree with each
//! other, damage, or losses that a damage explains. So the report does not depend on the number of
//! threads.
//!
//! At the end, what follows the last commit is examined. A writer writes front to back and commits
//! with a trailer. So an append that is at work, or was stopped, has left intact regions without a
//! trailer, and the last may be cut off at any byte. What is there of its padding and its head must
//! be right. All else is damage, such as a later commit whose trailer or footer is damaged: its
//! samples were there. Bytes that a failure of power has lost cannot be told from these, and are
//! damage, too.

use super::batch::Batch;
use super::body::{BodyCheck, BodyFinding, MetTables, load_body};
use super::commit::CommitCheck;
use super::report::{Damage, DamageKind, Damages, VerifyOptions, VerifyReport, passing};
use super::walk::{Met, SpanBytes, Walk, span_bytes};
use crate::bytes::le::u64_of;
use crate::bytes::memory;
use crate::codec::DamagedChunk;
use crate::error::go_on;
use crate::format::chunk::ChunkHead;
use crate::format::region::{HEAD, RegionHead, RegionKind, next_offset};
use crate::open::source::{Source, fetch};
use crate::open::{OpenedHeader, open_header, open_last_commit};
use crate::{Error, ErrorKind, Result};
use std::error::Error as _;
use std::io;

/// Checks every byte of a file: structure, checksums, padding, and that all parts agree (chapter 10
/// of the specification).
///
/// Damage is reported, not returned, and so is a file whose writer has not finished: the
/// [`DamageKind`] of each finding, and [`VerifyReport::state`], tell one from the other. An error
/// means that the source could not be read, that memory ran out, or that the file needs a newer
/// release or another build. Works on files that cannot be opened.
///
/// Cost: one pass over the file, at the speed of its source or of CRC-32 on each thread. Small
/// chunks are fetched several MiB at a time, see [`Source::coalesce`]. Memory: 40 bytes for each
/// chunk of a commit, and for each thread at most 7 MiB and, if it decodes, the largest chunk,
/// stored and decoded. A damaged chunk in blocks is read again, and its validity and shape are
/// decoded.
pub fn verify(source: &dyn Source, mut options: VerifyOptions<'_>) -> Result<VerifyReport> {
    let mut report = VerifyReport { file_bytes: source.byte_count(), ..VerifyReport::default() };
    let header = match open_header(source) {
        Ok(header) => header,
        Err(error) => {
            let (all, error) = (0..source.byte_count(), passing(error)?);
            report.damages.push(Damage::of_bytes(DamageKind::Damaged, all, Some(RegionKind::Header), error));
            return Ok(report);
        }
    };
    let (end, trailer_crc, chunk_count) = match open_last_commit(source, &header) {
        Ok(commit) => {
            commit.check_encodings(&header.schema)?;
            report.sample_count = Some(commit.footer.sample_count);
            let chunks = commit.footer.columns.iter().map(|facts| facts.chunk_count);
            let end = commit.trailer_offset.saturating_add(HEAD);
            (end, commit.trailer_crc, chunks.fold(0, u64::saturating_add))
        }
        Err(error) => {
            passing(error)?; // the walk will meet it, and name the offset
            (source.byte_count(), 0, 0)
        }
    };
    let span_bytes = span_bytes(source, end.checked_div(chunk_count));
    let layouts = header.schema.columns.iter().map(|column| column.layout()).collect::<Result<Vec<_>>>()?;
    let tables = MetTables::new(source, header.header.file_id);
    let worker = |_| BodyCheck::new(source, &layouts, &tables, options.decode);
    let mut workers: Vec<_> = (0..options.threads.max(1)).map(worker).collect();
    let mut walk = Walk::new(source, &header, end);
    let mut findings = Findings::new(source, &header, options.decode);
    loop {
        let (met, error) = Batch::check(&mut walk, &tables, &mut workers, span_bytes);
        let is_over = met.is_empty();
        met.into_iter().try_for_each(|(met, body)| findings.add(met, body))?;
        if let Some(error) = error {
            return Err(error);
        }
        if is_over {
            findings.finish(end, trailer_crc, &mut report)?;
            return Ok(report);
        }
        if let Some(progress) = &mut options.progress {
            go_on(progress(walk.at()))?;
        }
    }
}

/// What was found so far.
struct Findings<'a> {
    source: &'a dyn Source,
    header: &'a OpenedHeader,
    check: CommitCheck<'a>,
    damages: Damages,
    buffer: Vec<u8>,
}

impl<'a> Findings<'a> {
    fn new(source: &'a dyn Source, header: &'a OpenedHeader, decode: bool) -> Self {
        let check = CommitCheck::new(header, decode);
        Self { source, header, check, damages: Damages::default(), buffer: Vec::new() }
    }

    /// Adds the next region or damage of the file.
    fn add(&mut self, met: Met, body: BodyFinding) -> Result<()> {
        match met {
            Met::Region(head) => self.region(&head, body),
            // a region that does not follow the one before
            Met::Damage(damage) if damage.region.is_some() => {
                self.damages.all.push(damage);
                Ok(())
            }
            Met::Damage(damage) => {
                self.damages.push_unnamed(damage);
                Ok(())
            }
        }
    }

    fn region(&mut self, head: &RegionHead, body: BodyFinding) -> Result<()> {
        let page;
        let (bytes, parts) = match body {
            BodyFinding::Unread => (load_body(self.source, head, &mut self.buffer), None),
            BodyFinding::Damaged(error) => (Err(error), None),
            BodyFinding::Intact => (Ok(&[][..]), None),
            BodyFinding::Page(bytes) => {
                page = bytes;
                (Ok(page.as_slice()), None)
            }
            BodyFinding::Decoded(parts) => (Ok(&[][..]), Some(parts)),
            BodyFinding::DamagedBlocks(damaged) => return self.blocks(head, &damaged),
        };
        let result = match bytes {
            Ok(bytes) => self.check.region(head, bytes, parts, &self.damages),
            Err(error) => {
                self.check.damaged_region(head);
                Err(error)
            }
        };
        if let Err(error) = result {
            let error = passing(error)?;
            let (column, samples) = self.check.column_and_samples(head);
            let file_range = head.offset..head.end();
            let kind = DamageKind::Damaged;
            self.damages.all.push(Damage { file_range, kind, region: Some(head.kind), column, samples, error });
        }
        self.report_lost();
        Ok(())
    }

    /// Adds the damaged blocks of a chunk whose front is intact, with the samples that they cost.
    fn blocks(&mut self, head: &RegionHead, damaged: &DamagedChunk) -> Result<()> {
        self.check.damaged_region(head);
        let (column, _) = self.check.column_and_samples(head);
        let entry = ChunkHead::unchecked(head).entry;
        for run in &damaged.runs {
            // inside the body, and in the chunk
            let byte = |at: usize| head.body_offset().saturating_add(u64_of(at));
            let sample = |at: usize| entry.first_sample.saturating_add(u64_of(at));
            memory::reserve(&mut self.damages.all, 1)?;
            self.damages.all.push(Damage {
                kind: DamageKind::Damaged,
                file_range: byte(run.bytes.start)..byte(run.bytes.end),
                region: Some(head.kind),
                column: column.clone(),
                samples: Some(sample(run.samples.start)..sample(run.samples.end)),
                error: run.error(entry.sample_count, damaged.block_count).with_offset(byte(run.bytes.start)),
            });
        }
        self.report_lost();
        Ok(())
    }

    fn report_lost(&mut self) {
        self.check.take_lost().into_iter().for_each(|lost| self.damages.report(lost));
    }

    /// Checks the end of the file: for bytes after the last trailer, which ends at `end` and
    /// has this `head_crc`, then.
    fn finish(mut self, end: u64, trailer_crc: u32, report: &mut VerifyReport) -> Result<()> {
        if !self.damages.all.is_empty() {
            self.check.find_gaps(None);
            self.report_lost();
        }
        let (file_bytes, is_clean) = (self.source.byte_count(), self.damages.all.is_empty());
        let found = if end < file_bytes {
            let bytes = file_bytes - end;
            let (kind, message) = match is_uncommitted(self.source, self.header, end, trailer_crc)? {
                true => (
                    DamageKind::Uncommitted,
                    format!(
                        "{bytes} bytes follow the last commit: an append is at work, or was stopped before it committed"
                    ),
                ),
                false => (DamageKind::Damaged, format!("{bytes} bytes follow the last valid trailer")),
            };
            Some((kind, Error::corrupt("R-2.7", message)))
        } else if is_clean && !self.check.ends_with_trailer() {
            let message = "the file ends without a trailer: it is truncated, or its writer has not committed";
            Some((DamageKind::Damaged, Error::corrupt("R-2.9", message)))
        } else if is_clean && !self.check.is_finished {
            let message = "the file is readable but not finished: its writer is at work, or was stopped after a commit";
            Some((DamageKind::Unfinished, Error::corrupt("R-7.8", message)))
        } else {
            None
        };
        self.damages
            .all
            .extend(found.map(|(kind, error)| Damage::of_bytes(kind, end..file_bytes, None, error.with_offset(end))));
        report.chunk_count = self.check.intact_chunks;
        report.damages = self.damages.all;
        // losses are found after the bytes that follow them
        report.damages.sort_by_key(|damage| damage.file_range.start);
        Ok(())
    }
}

/// Returns whether the bytes from `start`, the end of the last commit, to the end of the file are
/// what an append has left that has not committed. `trailer_crc` is the `head_crc` of the trailer
/// that ends there: what an older file has left does not follow it.
///
/// Cost: reads these bytes.
fn is_uncommitted(source: &dyn Source, header: &OpenedHeader, start: u64, trailer_crc: u32) -> Result<bool> {
    let mut walk = Walk::of_tail(source, header, start, trailer_crc);
    let tables = MetTables::new(source, header.header.file_id);
    let mut bodies = BodyCheck::new(source, &[], &tables, false);
    loop {
        let head = match walk.next_intact(SpanBytes::default()) {
            Ok(head) => head,
            Err(error) => return Ok(ends_early(error)? && begins_region(source, header, &walk)?),
        };
        if head.kind == RegionKind::Trailer {
            return Ok(false); // it was not valid, or the commit would end here
        }
        match bodies.check_sum(&head, SpanBytes::default()) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::Corrupt => return Ok(false),
            Err(error) => return ends_early(error),
        }
    }
}

/// Returns whether the bytes where a walk has ended are padding and the head of another region, as
/// far as they are there.
fn begins_region(source: &dyn Source, header: &OpenedHeader, walk: &Walk<'_>) -> Result<bool> {
    let (at, Some(previous)) = (walk.at(), walk.previous()) else { return Ok(false) };
    let (alignment, file_id) = (header.header.alignment.into(), header.header.file_id);
    let until = next_offset(RegionKind::Chunk, at, alignment).saturating_add(HEAD).min(source.byte_count());
    // less than two alignments
    let length = usize::try_from(until.saturating_sub(at)).unwrap_or(usize::MAX);
    let mut buffer = Vec::new();
    let bytes = match fetch(source, at, length, &mut buffer) {
        Ok(bytes) => bytes,
        Err(error) => return ends_early(error),
    };
    let begins = |kind: RegionKind| {
        let offset = next_offset(kind, at, alignment);
        let padding = usize::try_from(offset.saturating_sub(at)).unwrap_or(usize::MAX);
        let (padding, head) = bytes.split_at_checked(padding).unwrap_or((bytes, &[]));
        padding.iter().all(|byte| *byte == 0) && RegionHead::can_begin(kind, file_id, previous, offset, head)
    };
    Ok(RegionKind::ALL.into_iter().filter(|kind| *kind != RegionKind::Header).any(begins))
}

/// Returns whether an error means that the file ends here. If an append has failed in the meantime,
/// that is earlier than when it was opened. Other damage is not an end.
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
