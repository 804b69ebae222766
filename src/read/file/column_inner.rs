//! One column of an open file, shared by all handles to it: its tables, and the search for the
//! chunk of a sample (chapters 6 and 10).
//!
//! The footer lists the runs of a column: consecutive chunks that one commit added, with their
//! index pages. If all chunks of a run have the same number of samples, the entry of a chunk is
//! found by a division. Otherwise the search has two steps. First it finds the page, starting where
//! the entry would be if all chunks had the same number of samples. Then it finds the entry in that
//! page by bisection.
//!
//! A page is verified when it is first touched, and every lookup of a chunk goes through that check
//! (`check_page`).
//!
//! Lookups read pages one after another, and each page costs a round trip if the file is remote. So
//! a reader first computes which pages it will probably need ([`ColumnInner::index_ranges`]), and
//! prefetches them all at the same time.

use super::records::CheckedUnits;
use super::state::{ChunkBlockIndex, ChunkLocation, ColumnIndex, IndexPage, ReaderInner, Verification};
use crate::bytes::le::u64_of;
use crate::bytes::memory;
use crate::codec::{Tables, ZstdDictionary, encoding};
use crate::format::ColumnSchema;
use crate::format::index::{ChunkRun, ENTRY_BYTES, PAGE_BYTES, PAGE_ENTRIES, PageHeader, parse_entry};
use crate::format::region::{HEADER_LEN, RegionHeader, RegionKind};
use crate::format::schema::Layout;
use crate::open::coalesce::range_length;
use crate::open::source::FileBytes;
use crate::open::{check_encodings, missing_table};
use crate::{Error, ErrorKind, Result};
use std::ops::Range;
use std::sync::Arc;

/// A column of an open file. Cloning only increments a reference count.
#[derive(Clone)]
pub(in crate::read) struct ColumnInner {
    pub file: Arc<ReaderInner>,
    /// Less than the number of columns.
    number: usize,
}

impl ColumnInner {
    pub(in crate::read) fn new(file: &Arc<ReaderInner>, number: usize) -> Option<Self> {
        let is_column = number < file.schema.columns.len() && number < file.columns.len();
        is_column.then(|| Self { file: file.clone(), number })
    }

    /// Returns the number of the column, counted from 0.
    pub(in crate::read) fn number(&self) -> usize {
        self.number
    }

    #[inline]
    pub(in crate::read) fn schema(&self) -> &ColumnSchema {
        &self.file.schema.columns[self.number] // in bounds: checked by `new`, and the list never changes
    }

    #[inline]
    pub(in crate::read) fn index(&self) -> &ColumnIndex {
        &self.file.columns[self.number] // in bounds: checked by `new`, and the list never changes
    }

    #[inline]
    pub(in crate::read) fn layout(&self) -> &Layout {
        &self.index().layout
    }

    #[inline]
    pub(in crate::read) fn check_sample(&self, i: u64) -> Result<()> {
        let count = self.file.sample_count;
        if i < count {
            return Ok(());
        }
        Err(Error::bad_argument(format!("out of range: the file has {count} samples, numbered from 0")))
    }

    /// Returns whether a chunk of a file in memory can be opened without verification. This is true
    /// if its header and block index count as verified under the reader's policy, or, for a chunk
    /// without blocks, if the whole chunk does.
    #[inline]
    pub(in crate::read) fn is_open(&self, chunk: u64) -> bool {
        self.is_checked(chunk) || self.checked(chunk).has_block_index()
    }

    /// Returns which blocks of a chunk count as verified under the reader's policy. (With
    /// [`Verification::Never`], the whole chunk counts as verified once its header is.)
    pub(in crate::read) fn checked(&self, chunk: u64) -> CheckedUnits {
        match self.file.verification {
            Verification::FirstTouch => self.index().checked_blocks.get(chunk),
            _ => CheckedUnits::NONE,
        }
    }

    /// Returns whether the whole chunk counts as verified under the reader's policy, so that ranges
    /// of it can be read individually.
    #[inline]
    pub(in crate::read) fn is_checked(&self, chunk: u64) -> bool {
        self.file.verification != Verification::Always && self.index().checked_chunks.get(chunk)
    }

    /// Returns the block index of the chunk that contains sample `i`, if it is cached and can be
    /// found without the index.
    pub(in crate::read) fn cached_block_index(&self, i: u64) -> Option<Arc<ChunkBlockIndex>> {
        let index = self.index();
        let (number, run) = index.run_of(i)?;
        let entry = i.checked_sub(run.first_sample)?.checked_div(run.samples_per_chunk.into())?;
        let chunk = index.before.get(number)?.1.checked_add(entry)?;
        index.block_indexes.get(chunk).filter(|block_index| block_index.location.entry.samples().contains(&i))
    }

    /// Tells the source that these ranges will probably be read soon.
    pub(in crate::read) fn prefetch(&self, ranges: &[Range<u64>]) {
        if !ranges.is_empty() {
            self.file.source.prefetch(ranges);
        }
    }

    /// Adds the file and the column to an error.
    pub(in crate::read) fn in_column(&self, error: Error) -> Error {
        self.file.in_file(error.with_column(&self.schema().name))
    }

    /// Adds the file, the column and the sample to an error.
    pub(in crate::read) fn at_sample(&self, error: Error, i: u64) -> Error {
        self.in_column(error.with_samples(i..i.saturating_add(1)))
    }

    /// Returns the bodies of the tables 0, 1, 2, ... of the column, or `None` if one of them is
    /// lost or damaged.
    pub(in crate::read) fn table_bodies(&self) -> Result<Option<Vec<Vec<u8>>>> {
        let mut bodies = Vec::new();
        for (number, slot) in (0..).zip(&self.index().tables) {
            match slot.body(&*self.file.source, self.file.file_id) {
                Ok(body) if slot.entry.table == number => bodies.push(body),
                Err(error) if error.kind() != ErrorKind::Corrupt => return Err(self.in_column(error)),
                _ => return Ok(None),
            }
        }
        Ok(Some(bodies))
    }

    /// Reads the first tables of a column if its chunks need tables, so that decoding does no I/O.
    /// Ignores errors, because they are reported when a chunk needs the table.
    pub(in crate::read) fn load_tables(&self) {
        let index = self.index();
        if index.facts.encodings.iter().any(|&(id, _)| encoding(id).is_ok_and(|encoding| encoding.needs_table())) {
            for slot in index.tables.iter().take(MAX_PRELOADED_TABLES) {
                let _ = slot.zstd_dictionary(&*self.file.source, self.file.file_id);
            }
        }
    }

    /// Finds the chunk that contains sample `i`.
    pub(in crate::read) fn locate(&self, bytes: FileBytes<'_>, i: u64) -> Result<ChunkLocation> {
        self.check_sample(i)?;
        let index = self.index();
        if let Some(salvaged_chunks) = &index.salvaged_chunks {
            return salvaged_chunks.locate(i);
        }
        let (number, run) = index.run_of(i).ok_or_else(|| index_mismatch("the footer"))?;
        let in_run = i.saturating_sub(run.first_sample);
        let (entry, first_sample) = match u64::from(run.samples_per_chunk) {
            0 => (self.search(bytes, number, run, i)?, None),
            per_chunk => (in_run / per_chunk, Some(i - in_run % per_chunk)),
        };
        let location = self.entry(bytes, number, run, entry)?;
        let starts_right = first_sample.is_none_or(|first| first == location.entry.first_sample);
        let is_right = starts_right && location.entry.samples().contains(&i);
        if is_right { Ok(location) } else { Err(index_mismatch("the footer")) }
    }

    /// Refuses lost samples of a salvaged file. They can be in a chunk that is open.
    #[inline]
    pub(in crate::read) fn check_not_lost(&self, samples: &Range<u64>) -> Result<()> {
        self.index().salvaged_chunks.as_ref().map_or(Ok(()), |salvaged_chunks| salvaged_chunks.check(samples))
    }

    /// Finds chunk number `chunk` of the column, counted from 0; `None` after the last chunk.
    pub(in crate::read) fn locate_chunk(&self, chunk: u64) -> Result<Option<ChunkLocation>> {
        let index = self.index();
        if let Some(salvaged_chunks) = &index.salvaged_chunks {
            return Ok(salvaged_chunks.chunk(chunk));
        }
        let after = index.before.partition_point(|&(_, chunks)| chunks <= chunk);
        let Some(number) = after.checked_sub(1) else { return Ok(None) };
        let (Some(run), Some((_, before))) = (index.facts.runs.get(number), index.before.get(number)) else {
            return Ok(None);
        };
        match chunk - before {
            entry if entry < run.chunk_count => self.entry(self.file.bytes(), number, run, entry).map(Some),
            _ => Ok(None),
        }
    }

    /// Adds the ranges of the index pages that probably list the chunks of these samples, unless
    /// they have been read before. For runs with chunks of different sizes, the pages are guessed.
    pub(in crate::read) fn index_ranges(&self, samples: &Range<u64>, out: &mut Vec<Range<u64>>) -> Result<()> {
        let (index, end) = (self.index(), samples.end.min(self.file.sample_count));
        let mut sample = samples.start;
        while sample < end {
            let Some((number, run)) = index.run_of(sample).filter(|(_, run)| run.end_sample() > sample) else { break };
            let next = end.min(run.end_sample());
            let pages_before = index.before.get(number).map_or(0, |(pages, _)| *pages);
            for page in pages_of(run, &(sample..next)) {
                let range = run.page_range(page);
                if !index.checked_pages.get(pages_before.saturating_add(page)) && out.last() != Some(&range) {
                    memory::reserve(out, 1)?;
                    out.push(range);
                }
            }
            sample = next;
        }
        Ok(())
    }

    /// Finds the entry of a sample in a run with chunks of different sizes: first the page, then
    /// the entry in it.
    fn search(&self, bytes: FileBytes<'_>, number: usize, run: &ChunkRun, sample: u64) -> Result<u64> {
        let starts_after =
            |index: u64| -> Result<bool> { Ok(self.entry(bytes, number, run, index)?.entry.first_sample > sample) };
        let of_page = |page: u64| starts_after(page.saturating_mul(PAGE_ENTRIES));
        let page = first_after(0..run.page_count(), guessed_page(run, sample), of_page)?;
        let page = page.saturating_sub(1);
        let (first, entries) = (page.saturating_mul(PAGE_ENTRIES), run.page_entries(page));
        let within = bisect(0..entries, |index| starts_after(first.saturating_add(index)))?;
        Ok(first.saturating_add(within.saturating_sub(1)))
    }

    /// Reads entry `entry` of a run. Verifies its page on first touch, and caches it unless the
    /// file is in memory.
    fn entry(&self, bytes: FileBytes<'_>, number: usize, run: &ChunkRun, entry: u64) -> Result<ChunkLocation> {
        let index = self.index();
        let (page, in_page) = (entry / PAGE_ENTRIES, entry % PAGE_ENTRIES);
        if entry >= run.chunk_count {
            return Err(index_mismatch("the footer"));
        }
        let &(pages_before, chunks_before) = index.before.get(number).ok_or_else(|| index_mismatch("the footer"))?;
        let bit = pages_before.saturating_add(page);
        let is_checked = index.checked_pages.get(bit);
        let offset = run.page_offset(page);
        let at = HEADER_LEN + in_page * u64_of(ENTRY_BYTES); // in bounds: inside the page
        let entry_bytes = match bytes.memory() {
            // in bounds, because the page was verified
            Some(_) if is_checked => bytes.array(offset + at)?,
            None if is_checked => match self.file.index_pages.get(offset / PAGE_BYTES) {
                Some(cached) if cached.offset == offset => array_in(&cached.bytes, at)?,
                _ => bytes.array(offset + at)?,
            },
            memory => {
                let mut buffer = Vec::new();
                let checked = self.check_page(bytes, run, page, chunks_before, &mut buffer);
                let checked = checked.map_err(|error| error.with_offset(offset))?;
                index.checked_pages.set(bit);
                let found = array_in(checked, at)?;
                if memory.is_none() {
                    let page = Arc::new(IndexPage { offset, bytes: buffer });
                    self.file.index_pages.insert(offset / PAGE_BYTES, &page);
                }
                found
            }
        };
        Ok(ChunkLocation { entry: parse_entry(&entry_bytes), chunk: chunks_before.saturating_add(entry) })
    }

    /// Reads a page with one request, and returns its header and body. Checks for the column,
    /// then, and then that the page agrees with the footer.
    #[cold]
    fn check_page<'b>(
        &self,
        bytes: FileBytes<'b>,
        run: &ChunkRun,
        page: u64,
        chunks_before: u64,
        buffer: &'b mut Vec<u8>,
    ) -> Result<&'b [u8]> {
        let facts = &self.index().facts;
        check_encodings(facts).map_err(|error| error.with_offset(self.file.footer_offset))?;
        let range = run.page_range(page);
        let stored = bytes.get(range.start, range_length(&range), buffer)?;
        let (header, body) = stored.split_first_chunk().ok_or_else(|| index_mismatch("the footer"))?;
        let header = RegionHeader::parse(header, range.start)?;
        header.expect(RegionKind::IndexPage, self.file.file_id)?;
        let parsed = PageHeader::parse(&header, self.file.columns.len())?;
        if u64::from(parsed.entry_count) != run.page_entries(page) {
            return Err(Error::corrupt("R-6.3", "the page does not have the expected number of entries"));
        }
        header.check_body(body)?; // the page has exactly the length of its entries
        let first = body.first_chunk::<ENTRY_BYTES>().map(parse_entry);
        if first.map(|entry| entry.first_sample) != Some(parsed.first_sample) {
            let message = "the first sample in the header of the page differs from the first sample of its first entry";
            return Err(Error::corrupt("R-6.1", message));
        }
        let first_chunk = chunks_before.saturating_add(page.saturating_mul(PAGE_ENTRIES));
        if parsed.column != self.index().number || parsed.first_chunk != first_chunk {
            return Err(index_mismatch("the footer"));
        }
        Ok(stored)
    }
}

impl Tables for ColumnInner {
    fn zstd_dictionary(&self, table: u32) -> Result<Arc<ZstdDictionary>> {
        let tables = &self.index().tables;
        let found = tables.binary_search_by_key(&table, |slot| slot.entry.table).ok();
        let slot = found.and_then(|at| tables.get(at)).ok_or_else(|| missing_table(table))?;
        slot.zstd_dictionary(&*self.file.source, self.file.file_id)
    }
}

/// The maximum number of tables of a column to read before a chunk needs them. Writers create one
/// table, and a second one only if the first is damaged.
const MAX_PRELOADED_TABLES: usize = 16;

#[cold]
pub(in crate::read) fn index_mismatch(what: &str) -> Error {
    Error::corrupt("R-6.2", format!("the index does not agree with {what}"))
}

/// Returns the pages of a run that probably contain the entries of these samples.
fn pages_of(run: &ChunkRun, samples: &Range<u64>) -> Range<u64> {
    let last = samples.end.saturating_sub(1);
    let page = |sample: u64| {
        Some(sample.saturating_sub(run.first_sample).checked_div(run.samples_per_chunk.into())? / PAGE_ENTRIES)
    };
    let (pages, about) = match page(samples.start).zip(page(last)) {
        Some((first, last)) => (first..last.saturating_add(1), 0),
        None => (guessed_page(run, samples.start)..guessed_page(run, last).saturating_add(1), 1),
    };
    pages.start.saturating_sub(about)..pages.end.saturating_add(about).min(run.page_count())
}

/// Returns the page of a run that contains the entry of a sample if all chunks have about the same
/// length.
fn guessed_page(run: &ChunkRun, sample: u64) -> u64 {
    let before = u128::from(sample.saturating_sub(run.first_sample));
    // no overflow: below 2^128
    let page = before * u128::from(run.page_count()) / u128::from(run.sample_count.max(1));
    u64::try_from(page).unwrap_or(u64::MAX).min(run.page_count().saturating_sub(1))
}

/// Returns the entry that starts `at` bytes into a page.
fn array_in(page: &[u8], at: u64) -> Result<[u8; ENTRY_BYTES]> {
    let found = usize::try_from(at).ok().and_then(|at| page.get(at..)?.first_chunk());
    found.copied().ok_or_else(|| Error::internal("an index page is shorter than its entries"))
}

/// Returns the first number in a range for which `is_after` holds, or the end of the range.
/// `is_after` must change from false to true at most once. Gallops from `guess`, then bisects, so
/// the cost is logarithmic in the distance from the guess.
fn first_after(range: Range<u64>, guess: u64, is_after: impl Fn(u64) -> Result<bool>) -> Result<u64> {
    let Range { start: mut low, end: mut high } = range;
    let mut step = 1_u64;
    let guess = guess.min(high.saturating_sub(1)).max(low);
    if low < high && is_after(guess)? {
        high = guess;
        while low < high {
            let probe = high.saturating_sub(step).max(low);
            if !is_after(probe)? {
                low = probe + 1; // no overflow: at most `high`
                break;
            }
            (high, step) = (probe, step.saturating_mul(2));
        }
    } else if low < high {
        low = guess + 1; // no overflow: at most `high`
        while low < high {
            let probe = (low - 1).saturating_add(step).min(high - 1); // no underflow: `low` is above `guess`
            if is_after(probe)? {
                high = probe;
                break;
            }
            (low, step) = (probe + 1, step.saturating_mul(2));
        }
    }
    bisect(low..high, is_after)
}

/// Like [`first_after`], but without a guess.
fn bisect(range: Range<u64>, is_after: impl Fn(u64) -> Result<bool>) -> Result<u64> {
    let Range { start: mut low, end: mut high } = range;
    while low < high {
        let middle = low + (high - low) / 2;
        match is_after(middle)? {
            true => high = middle,
            false => low = middle + 1,
        }
    }
    Ok(low)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn a_search_finds_the_first_number_from_any_guess_in_logarithmic_time() {
        for end in [0_u64, 1, 2, 3, 10, 100] {
            for (guess, expected) in (0..=end).flat_map(|guess| (0..=end).map(move |expected| (guess, expected))) {
                let probes = Cell::new(0);
                let is_after = |number: u64| {
                    assert!(number < end);
                    probes.set(probes.get() + 1);
                    Ok(number >= expected)
                };
                assert_eq!(first_after(0..end, guess, is_after).unwrap(), expected, "{guess} of {end}");
                let distance = guess.abs_diff(expected) + 2;
                assert!(probes.get() <= 2 * distance.ilog2() + 3, "{} probes, {distance}", probes.get());
            }
        }
    }
}
