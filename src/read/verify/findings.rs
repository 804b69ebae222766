//! Combines the findings about regions and bodies, in the order of the file.

use super::body::{BodyFinding, load_body};
use super::commit::CommitCheck;
use super::lost::Damages;
use super::report::{Damage, DamageKind, VerifyReport, passing};
use super::tail::is_uncommitted;
use super::walk::Met;
use crate::codec::DamagedChunk;
use crate::format::chunk::ChunkHead;
use crate::format::region::RegionHead;
use crate::le::u64_of;
use crate::open::OpenedHeader;
use crate::open::source::Source;
use crate::{Error, Result, memory};

pub(super) struct Findings<'a> {
    source: &'a dyn Source,
    header: &'a OpenedHeader,
    check: CommitCheck<'a>,
    damages: Damages,
    buffer: Vec<u8>,
}

impl<'a> Findings<'a> {
    pub(super) fn new(source: &'a dyn Source, header: &'a OpenedHeader, decode: bool) -> Self {
        let check = CommitCheck::new(header, decode);
        Self { source, header, check, damages: Damages::default(), buffer: Vec::new() }
    }

    /// Adds the next region or damage of the file.
    pub(super) fn add(&mut self, met: Met, body: BodyFinding) -> Result<()> {
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
    pub(super) fn finish(mut self, end: u64, trailer_crc: u32, report: &mut VerifyReport) -> Result<()> {
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
        self.damages.all.extend(found.map(|(kind, error)| Damage {
            file_range: end..file_bytes,
            kind,
            region: None,
            column: None,
            samples: None,
            error: error.with_offset(end),
        }));
        report.chunk_count = self.check.intact_chunks;
        report.damages = self.damages.all;
        // losses are found after the bytes that follow them
        report.damages.sort_by_key(|damage| damage.file_range.start);
        Ok(())
    }
}
