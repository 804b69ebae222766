//! From a sample's number to its chunk: runs, index pages, entries (chapters 6 and 10).

use super::chunk_location::ChunkLocation;
use crate::format::index::{ENTRY_BYTES, PAGE_ENTRIES, PageHead, Run, parse_entry};
use crate::format::region::{RegionHead, RegionKind};
use crate::open::check_encodings;
use crate::open::source::FileBytes;
use crate::read::batch::selection::Selection;
use crate::read::file::opened_column::OpenedColumn;
use crate::{Error, Result};
use std::ops::Range;

#[cold]
pub(in crate::read) fn disagree(what: &str) -> Error {
    Error::corrupt("R-6.2", format!("the index does not agree with {what}"))
}

impl OpenedColumn {
    /// Finds the chunk that holds sample `i`.
    pub(in crate::read) fn locate(&self, bytes: FileBytes<'_>, i: u64) -> Result<ChunkLocation> {
        self.check_sample(i)?;
        let index = self.index();
        if let Some(listed) = &index.listed {
            return listed.locate(i);
        }
        let (number, run) = index.run_of(i).ok_or_else(|| disagree("the footer"))?;
        let in_run = i.saturating_sub(run.first_sample);
        let (entry, first_sample) = match u64::from(run.samples_per_chunk) {
            0 => (self.search(bytes, number, run, i)?, None),
            per_chunk => (in_run / per_chunk, Some(i - in_run % per_chunk)),
        };
        let location = self.entry(bytes, number, run, entry)?;
        let starts_right = first_sample.is_none_or(|first| first == location.entry.first_sample);
        let is_right = starts_right && location.entry.samples().contains(&i);
        if is_right { Ok(location) } else { Err(disagree("the footer")) }
    }

    /// Refuses lost samples of a salvaged file. A chunk that is held may have some.
    #[inline]
    pub(in crate::read) fn check_listed(&self, samples: &Range<u64>) -> Result<()> {
        self.index().listed.as_ref().map_or(Ok(()), |listed| listed.check(samples))
    }

    /// Refuses a selection with lost samples of a salvaged file.
    pub(in crate::read) fn check_selection(&self, selection: &Selection) -> Result<()> {
        self.schema().check_known()?;
        if self.index().listed.is_none() {
            return Ok(());
        }
        let sample = |rank| selection.get(rank).0;
        if let (true, Some(last)) = (selection.is_range(), selection.last()) {
            return self.check_listed(&(sample(0)..last.saturating_add(1)));
        }
        (0..selection.sample_count()).map(sample).try_for_each(|i| self.check_listed(&(i..i.saturating_add(1))))
    }

    /// Finds chunk number `chunk` of the column, counted from 0; `None` after the last.
    pub(in crate::read) fn locate_chunk(&self, chunk: u64) -> Result<Option<ChunkLocation>> {
        let index = self.index();
        if let Some(listed) = &index.listed {
            return Ok(listed.chunk(chunk));
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

    /// Finds the entry of a run whose chunks differ in size, by bisection: first the page, then the
    /// entry in it.
    fn search(&self, bytes: FileBytes<'_>, number: usize, run: &Run, sample: u64) -> Result<u64> {
        let starts_after =
            |index: u64| -> Result<bool> { Ok(self.entry(bytes, number, run, index)?.entry.first_sample > sample) };
        let page = bisect(run.page_count(), |page| starts_after(page.saturating_mul(PAGE_ENTRIES)))?;
        let page = page.saturating_sub(1);
        let first = page.saturating_mul(PAGE_ENTRIES);
        let within = bisect(run.page_entries(page), |index| starts_after(first.saturating_add(index)))?;
        Ok(first.saturating_add(within.saturating_sub(1)))
    }

    /// Reads entry `entry` of a run. Its page is checked when it is first touched.
    fn entry(&self, bytes: FileBytes<'_>, number: usize, run: &Run, entry: u64) -> Result<ChunkLocation> {
        let index = self.index();
        let page = entry / PAGE_ENTRIES;
        if entry >= run.chunk_count {
            return Err(disagree("the footer"));
        }
        let &(pages_before, chunks_before) = index.before.get(number).ok_or_else(|| disagree("the footer"))?;
        let bit = pages_before.saturating_add(page);
        if !index.checked_pages.get(bit) {
            self.check_page(bytes, run, page, chunks_before)
                .map_err(|error| error.with_offset(run.page_offset(page)))?;
            index.checked_pages.set(bit);
        }
        // inside the file: the page was checked
        let at = run.page_offset(page) + 64 + entry % PAGE_ENTRIES * 32;
        let parsed = parse_entry(&bytes.array::<ENTRY_BYTES>(at)?);
        Ok(ChunkLocation { entry: parsed, chunk: chunks_before.saturating_add(entry) })
    }

    /// Checks of the column, then, and that the page agrees with
    /// the footer. Every way to a chunk leads through here.
    #[cold]
    fn check_page(&self, bytes: FileBytes<'_>, run: &Run, page: u64, chunks_before: u64) -> Result<()> {
        let facts = &self.index().facts;
        check_encodings(facts).map_err(|error| error.with_offset(self.file.footer_offset))?;
        let offset = run.page_offset(page);
        let head = RegionHead::parse(&bytes.array(offset)?, offset)?;
        head.expect(RegionKind::IndexPage, self.file.file_id)?;
        let parsed = PageHead::parse(&head, self.file.columns.len())?;
        let mut buffer = Vec::new();
        let length = usize::try_from(head.body_bytes).unwrap_or(usize::MAX);
        let body = bytes.get(head.body_offset(), length, &mut buffer)?;
        head.check_body(body)?;
        let first = body.first_chunk::<ENTRY_BYTES>().map(parse_entry);
        if first.map(|entry| entry.first_sample) != Some(parsed.first_sample) {
            let message = "the page's first sample is not that of its first entry";
            return Err(Error::corrupt("R-6.1", message));
        }
        if u64::from(parsed.entry_count) != run.page_entries(page) {
            return Err(Error::corrupt("R-6.3", "the page has not as many entries as it must"));
        }
        let first_chunk = chunks_before.saturating_add(page.saturating_mul(PAGE_ENTRIES));
        if parsed.column != self.index().number || parsed.first_chunk != first_chunk {
            return Err(disagree("the footer"));
        }
        Ok(())
    }
}

/// Returns the least `i` below `count` for which `is_after(i)` holds, or `count`; `is_after` goes
/// from false to true.
fn bisect(count: u64, is_after: impl Fn(u64) -> Result<bool>) -> Result<u64> {
    let (mut low, mut high) = (0, count);
    while low < high {
        let middle = low + (high - low) / 2;
        if is_after(middle)? {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    Ok(low)
}
