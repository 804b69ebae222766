//! Names lost regions in damaged bytes, by the index, the footer, and the chunks before and after.

use super::report::{Damage, DamageKind};
use crate::format::chunk::ChunkEntry;
use crate::format::index::{PAGE_BYTES, PAGE_ENTRIES, Run};
use crate::format::region::{HEAD, RegionKind, align};
use crate::{Error, limits};
use std::ops::Range;
use std::sync::Arc;

/// A region that must have been in the file, and that the walk has not met.
pub(super) struct Lost {
    pub region: RegionKind,
    pub column: Option<Arc<str>>,
    pub samples: Option<Range<u64>>,
    pub bytes: LostBytes,
}

/// The bytes of a lost region.
pub(super) enum LostBytes {
    /// Exactly these bytes.
    Exactly(Range<u64>),
    /// Some of these bytes.
    Within(Range<u64>),
}

impl Lost {
    /// Returns the loss of a chunk that the index lists.
    pub(super) fn chunk(entry: &ChunkEntry, column: Option<Arc<str>>) -> Self {
        let bytes = LostBytes::Exactly(file_range(entry));
        Self { region: RegionKind::Chunk, column, samples: Some(entry.samples()), bytes }
    }
}

/// Returns the bytes of a chunk: head and body.
fn file_range(entry: &ChunkEntry) -> Range<u64> {
    let stored = u64::from(entry.stored_bytes.min(limits::CHUNK_BYTES));
    entry.offset..entry.offset.saturating_add(HEAD).saturating_add(stored)
}

/// Returns the samples from `from` on that no chunk of `known` contains, each with the range that
/// must have contained their chunks. `last` has the sample count and the end of the chunks, if that
/// is known.
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

/// Returns the samples of page `page` of a run. The chunks of the run were all met, or have one
/// size.
pub(super) fn samples_of_page(run: &Run, page: u64, chunks: &[ChunkEntry]) -> Option<Range<u64>> {
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

/// Damages, and which of them are of bytes that cannot be a region.
#[derive(Default)]
pub(super) struct Damages {
    pub all: Vec<Damage>,
    /// The indices of the latter, in ascending order of their ranges.
    unnamed: Vec<usize>,
}

impl Damages {
    /// Adds bytes that cannot be a region.
    pub(super) fn push_unnamed(&mut self, damage: Damage) {
        self.unnamed.push(self.all.len());
        self.all.push(damage);
    }

    /// Returns the damages of [`Damages::push_unnamed`] that overlap a range.
    fn touching(&self, range: &Range<u64>) -> &[usize] {
        let bytes = |number: &usize| self.all.get(*number).map_or(0..0, |damage| damage.file_range.clone());
        let from = self.unnamed.partition_point(|number| bytes(number).end <= range.start);
        let to = self.unnamed.partition_point(|number| bytes(number).start < range.end);
        self.unnamed.get(from..to).unwrap_or(&[])
    }

    /// Reports a loss, in the damage of its bytes if that contains nothing else.
    pub(super) fn report(&mut self, lost: Lost) {
        let (mut file_range, is_exact) = match &lost.bytes {
            LostBytes::Exactly(range) => (range.clone(), true),
            LostBytes::Within(range) => (range.clone(), false),
        };
        let head = align(file_range.start, HEAD);
        let touching = self.touching(&if is_exact { head..head.saturating_add(1) } else { file_range.clone() });
        let (first, last) = match touching {
            // no damage is the cause: the bytes of these chunks are reported
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
            && let Some(damage) = first.and_then(|number| self.all.get_mut(number))
            && damage.region.is_none()
        {
            damage.region = Some(lost.region);
            damage.column = lost.column;
            damage.samples = lost.samples;
            return;
        }
        let error = match lost.region {
            RegionKind::Chunk if is_exact => Error::corrupt("R-6.2", "a chunk that the index lists is missing"),
            RegionKind::Chunk => Error::corrupt("R-4.2", "the chunks of these samples are missing"),
            _ => Error::corrupt("R-7.3", "a page of the index is missing"),
        };
        let error = error.with_offset(file_range.start);
        let Lost { region, column, samples, .. } = lost;
        self.all.push(Damage { file_range, kind: DamageKind::Damaged, region: Some(region), column, samples, error });
    }

    /// Returns the lost pages of these runs, which ascend and do not overlap: the number of the run
    /// and that of the page. Their bytes cannot be a region.
    pub(super) fn lost_pages(&self, runs: &[Run], from: u64) -> Vec<(usize, u64)> {
        let mut lost = Vec::new();
        let first = self
            .unnamed
            .partition_point(|number| self.all.get(*number).is_none_or(|damage| damage.file_range.end <= from));
        for damage in self.unnamed.iter().skip(first).filter_map(|number| self.all.get(*number)) {
            let start = runs.partition_point(|run| run.end() <= damage.file_range.start);
            let touched = runs.iter().enumerate().skip(start);
            for (number, run) in touched.take_while(|(_, run)| run.offset < damage.file_range.end) {
                let page_of = |at: u64| at.saturating_sub(run.offset).div_ceil(PAGE_BYTES);
                let pages = page_of(damage.file_range.start)..page_of(damage.file_range.end).min(run.page_count());
                lost.extend(pages.map(|page| (number, page)));
            }
        }
        lost
    }
}
