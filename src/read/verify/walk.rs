//! The walk of chapter 2: from region to region, over every byte.

use super::commit::CommitCheck;
use super::{Damage, passing};
use crate::checksum::Crc;
use crate::format::region::{HEAD, HEAD_BYTES, RegionHead, RegionKind, align, place};
use crate::open::OpenedHeader;
use crate::open::source::{Source, fetch, fetch_array, read};
use crate::{Error, Result};
use std::ops::Range;

/// Bytes read at once where the file is not in memory.
const BLOCK_BYTES: usize = 1 << 20;

/// A walk over a file.
pub(super) struct Walk<'a, S> {
    source: &'a S,
    header: &'a OpenedHeader,
    /// Where the last valid trailer ends, or the file if there is none.
    end: u64,
    /// Where the region before ended.
    at: u64,
    check: CommitCheck<'a>,
    damages: Vec<Damage>,
    /// Which of them are of bytes that cannot be a region.
    unnamed: Vec<usize>,
    buffer: Vec<u8>,
    is_over: bool,
}

impl<'a, S: Source> Walk<'a, S> {
    pub(super) fn new(source: &'a S, header: &'a OpenedHeader, end: u64, decode: bool, damages: Vec<Damage>) -> Self {
        let at = header.head.end();
        let check = CommitCheck::new(header, decode);
        Self { source, header, end, at, check, damages, unnamed: Vec::new(), buffer: Vec::new(), is_over: false }
    }

    /// Checks the next region; `None` at the end. The number is that of the bytes checked so far.
    pub(super) fn step(&mut self) -> Result<Option<u64>> {
        if self.is_over {
            return Ok(None);
        }
        if self.at >= self.end {
            self.check_end();
            return Ok(None);
        }
        match self.next_region() {
            Ok(head) => self.region(&head)?,
            Err(error) => self.skip_damage(passing(error)?)?,
        }
        Ok(Some(self.at))
    }

    pub(super) fn finish(self) -> (Vec<Damage>, u64) {
        (self.damages, self.check.intact_chunks)
    }

    /// The head of the next region, where says it stands; the padding before it is zero.
    fn next_region(&mut self) -> Result<RegionHead> {
        let other = align(self.at, HEAD);
        let chunk = place(RegionKind::Chunk, self.at, self.header.header.alignment.into());
        if other >= self.end {
            let message = "the file ends without a trailer: it is truncated, or its writer has not committed";
            return Err(Error::corrupt("R-2.9", message).with_offset(self.at));
        }
        let first: [u8; HEAD_BYTES] = fetch_array(self.source, other)?;
        let at = match RegionHead::parse(&first, other) {
            Ok(_) => other,
            Err(_) if first.starts_with(&[0; 4]) && chunk > other => chunk,
            Err(_) if chunk > other && self.is_chunk(chunk) => chunk,
            Err(_) if first.starts_with(&[0; 4]) => {
                let message = "no region stands where the next one must";
                return Err(Error::corrupt("R-2.7", message).with_offset(other));
            }
            Err(error) => return Err(error),
        };
        let head = RegionHead::parse(&fetch_array(self.source, at)?, at)?;
        head.expect(head.kind, self.header.header.file_id)?;
        head.check_inside(self.end)?;
        if place(head.kind, self.at, self.header.header.alignment.into()) != at {
            let message = format!("a {} stands where it must not", head.kind);
            return Err(Error::corrupt("R-2.7", message).with_offset(at));
        }
        self.check_padding(self.at..at)?;
        Ok(head)
    }

    fn is_chunk(&self, at: u64) -> bool {
        let head = fetch_array(self.source, at).and_then(|bytes| RegionHead::parse(&bytes, at));
        head.is_ok_and(|head| matches!(head.kind, RegionKind::Chunk | RegionKind::Table))
    }

    /// The range is shorter than two alignments.
    fn check_padding(&mut self, range: Range<u64>) -> Result<()> {
        let length = usize::try_from(range.end - range.start).unwrap_or(0);
        let padding = fetch(self.source, range.start, length, &mut self.buffer)?;
        match padding.iter().position(|&byte| byte != 0) {
            None => Ok(()),
            Some(at) => {
                let offset = range.start + at as u64; // exact: usize has at most 64 bits
                Err(Error::corrupt("R-2.8", "padding is not zero").with_offset(offset))
            }
        }
    }

    /// Checks the body of a region and what it says.
    fn region(&mut self, head: &RegionHead) -> Result<()> {
        self.at = head.end();
        let is_clean = self.damages.is_empty();
        let length = usize::try_from(head.body_bytes).unwrap_or(usize::MAX);
        let body = if self.check.needs_body(head.kind) || self.source.as_bytes().is_some() {
            fetch(self.source, head.body_offset(), length, &mut self.buffer)
                .and_then(|body| head.check_body(body).map(|()| body))
        } else {
            stream_body(self.source, head, &mut self.buffer).map(|()| &[][..])
        };
        let result = match body {
            Ok(body) => self.check.region(head, body, is_clean),
            Err(error) => {
                self.check.damaged_region(head);
                Err(error)
            }
        };
        if let Err(error) = result {
            let error = passing(error)?;
            let (column, samples) = self.check.place_of(head);
            let file_range = head.offset..head.end();
            self.damages.push(Damage { file_range, region: Some(head.kind), column, samples, error });
        }
        for lost in self.check.take_lost() {
            lost.report(&mut self.damages, &self.unnamed);
        }
        Ok(())
    }

    /// Reports what cannot be a region, up to the next place where one of this file stands.
    fn skip_damage(&mut self, error: Error) -> Result<()> {
        let start = self.at;
        let next = self.find_region(align(self.at, HEAD).saturating_add(1))?;
        let file_range = start..next.unwrap_or(self.end);
        self.unnamed.push(self.damages.len());
        self.damages.push(Damage { file_range, region: None, column: None, samples: None, error });
        match next {
            Some(next) => {
                let head = RegionHead::parse(&fetch_array(self.source, next)?, next)?;
                self.region(&head)
            }
            None => {
                self.at = self.end;
                Ok(())
            }
        }
    }

    /// The next place at or after `from` where a region of this file stands.
    fn find_region(&mut self, from: u64) -> Result<Option<u64>> {
        let mut at = align(from, HEAD);
        let file_id = self.header.header.file_id;
        while at.saturating_add(HEAD) <= self.end {
            let length = (self.end - at).min(BLOCK_BYTES as u64) & !(HEAD - 1);
            let length = usize::try_from(length).unwrap_or(BLOCK_BYTES);
            let block = fetch(self.source, at, length, &mut self.buffer)?;
            let heads = block.as_chunks::<HEAD_BYTES>().0;
            for (place, bytes) in (at..).step_by(HEAD_BYTES).zip(heads) {
                let head = bytes.starts_with(b"TSL").then(|| RegionHead::parse(bytes, place));
                if let Some(Ok(head)) = head
                    && head.file_id == file_id
                    && head.check_inside(self.end).is_ok()
                {
                    return Ok(Some(place));
                }
            }
            at = at.saturating_add(length as u64); // exact: at most BLOCK_BYTES
        }
        Ok(None)
    }

    /// The end of the file: for what stands after the last trailer, R-7.8, R-2.9.
    fn check_end(&mut self) {
        self.is_over = true;
        let file_bytes = self.source.byte_count();
        let error = if self.end < file_bytes {
            let message = format!("{} bytes stand after the last valid trailer", file_bytes - self.end);
            Error::corrupt("R-2.7", message)
        } else if self.damages.is_empty() && !self.check.ends_with_trailer() {
            let message = "the file ends without a trailer: it is truncated, or its writer has not committed";
            Error::corrupt("R-2.9", message)
        } else if self.damages.is_empty() && !self.check.is_finished {
            let message = "the file is readable but not finished: its writer is at work, or was stopped after a commit";
            Error::corrupt("R-7.8", message)
        } else {
            return;
        };
        let error = error.with_offset(self.end);
        let file_range = self.end..file_bytes;
        self.damages.push(Damage { file_range, region: None, column: None, samples: None, error });
    }
}

/// for a body that is not held in memory.
fn stream_body(source: &impl Source, head: &RegionHead, buffer: &mut Vec<u8>) -> Result<()> {
    let mut crc = Crc::new();
    let mut at = head.body_offset();
    while at < head.end() {
        let length = usize::try_from(head.end() - at).unwrap_or(BLOCK_BYTES).min(BLOCK_BYTES);
        buffer.resize(length, 0);
        read(source, at, buffer)?;
        crc.add(buffer);
        at = at.saturating_add(length as u64); // exact: at most BLOCK_BYTES
    }
    head.check_body_crc(crc.finish())
}
