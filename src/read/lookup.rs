//! From a sample's number to its chunk: runs, index pages, entries (chapters 6 and 10).

use super::bitmap::Bitmap;
use super::listed::Listed;
use super::source::{Source, fetch, fetch_array};
use super::{Reader, Verification};
use crate::format::ColumnSchema;
use crate::format::chunk::{ChunkEntry, ChunkHead};
use crate::format::footer::ColumnFacts;
use crate::format::index::{ENTRY_BYTES, PAGE_ENTRIES, PageHead, Run, parse_entry};
use crate::format::region::{HEAD_BYTES, RegionHead, RegionKind};
use crate::format::schema::Layout;
use crate::{Error, Result, memory};

/// What a reader keeps of a column: its runs, and what has been checked.
pub(super) struct ColumnIndex {
    pub number: u32,
    pub layout: Layout,
    pub facts: ColumnFacts,
    /// For each run, the pages and chunks of the runs before it.
    before: Vec<(u64, u64)>,
    checked_pages: Bitmap,
    /// Instead of runs and pages, if the file was salvaged.
    listed: Option<Listed>,
    /// Chunks that were checked once as the reader's policy asks: with [`Verification::Never`] their heads alone.
    pub checked_chunks: Bitmap,
}

/// A chunk that was looked up.
#[derive(Clone, Copy, Debug)]
pub(super) struct Located {
    pub entry: ChunkEntry,
    /// Its number within the column.
    pub chunk: u64,
}

impl ColumnIndex {
    pub(super) fn new(number: u32, column: &ColumnSchema, facts: ColumnFacts) -> Result<Self> {
        let (mut pages, mut chunks) = (0_u64, 0_u64);
        let mut before = memory::with_capacity(facts.runs.len())?;
        for run in &facts.runs {
            before.push((pages, chunks));
            pages = pages.saturating_add(run.page_count());
            chunks = chunks.saturating_add(run.chunk_count);
        }
        Ok(Self {
            number,
            layout: column.layout()?,
            facts,
            before,
            checked_pages: Bitmap::new(pages),
            listed: None,
            checked_chunks: Bitmap::new(chunks),
        })
    }

    /// Of a salvaged file: `facts` has no runs.
    pub(super) fn salvaged(number: u32, layout: Layout, facts: ColumnFacts, listed: Listed) -> Self {
        let checked_chunks = Bitmap::new(facts.chunk_count);
        let (before, checked_pages) = (Vec::new(), Bitmap::new(0));
        Self { number, layout, facts, before, checked_pages, listed: Some(listed), checked_chunks }
    }

    /// The run that holds sample `sample`, and its number.
    fn run_of(&self, sample: u64) -> Option<(usize, &Run)> {
        let number = match self.facts.runs.len() {
            1 => 0,
            _ => self.facts.runs.partition_point(|run| run.end_sample() <= sample),
        };
        Some((number, self.facts.runs.get(number)?))
    }
}

#[cold]
fn disagree(what: &str) -> Error {
    Error::corrupt("R-6.2", format!("the index does not agree with {what}"))
}

impl<S: Source> Reader<S> {
    /// The chunk that holds a sample, which is below the sample count.
    pub(super) fn locate(&self, column: &ColumnIndex, sample: u64) -> Result<Located> {
        if let Some(listed) = &column.listed {
            return listed.locate(sample);
        }
        let (number, run) = column.run_of(sample).ok_or_else(|| disagree("the footer"))?;
        let in_run = sample.saturating_sub(run.first_sample);
        let (index, first_sample) = match u64::from(run.samples_per_chunk) {
            0 => (self.search(column, number, run, sample)?, None),
            per_chunk => (in_run / per_chunk, Some(sample - in_run % per_chunk)),
        };
        let located = self.entry(column, number, run, index)?;
        let starts_right = first_sample.is_none_or(|first| first == located.entry.first_sample);
        let is_right = starts_right && located.entry.samples().contains(&sample);
        if is_right { Ok(located) } else { Err(disagree("the footer")) }
    }

    /// Chunk number `chunk` of a column, if there is one.
    pub(super) fn locate_chunk(&self, column: &ColumnIndex, chunk: u64) -> Result<Option<Located>> {
        if let Some(listed) = &column.listed {
            return Ok(listed.chunk(chunk));
        }
        let after = column.before.partition_point(|&(_, chunks)| chunks <= chunk);
        let Some(number) = after.checked_sub(1) else { return Ok(None) };
        let (Some(run), Some((_, before))) = (column.facts.runs.get(number), column.before.get(number)) else {
            return Ok(None);
        };
        match chunk - before {
            index if index < run.chunk_count => self.entry(column, number, run, index).map(Some),
            _ => Ok(None),
        }
    }

    /// The entry of a run whose chunks differ in size, by bisection: pages first, then the entries of one page.
    fn search(&self, column: &ColumnIndex, number: usize, run: &Run, sample: u64) -> Result<u64> {
        let starts_after =
            |index: u64| -> Result<bool> { Ok(self.entry(column, number, run, index)?.entry.first_sample > sample) };
        let page = bisect(run.page_count(), |page| starts_after(page.saturating_mul(PAGE_ENTRIES)))?;
        let page = page.saturating_sub(1);
        let first = page.saturating_mul(PAGE_ENTRIES);
        let within = bisect(run.page_entries(page), |index| starts_after(first.saturating_add(index)))?;
        Ok(first.saturating_add(within.saturating_sub(1)))
    }

    /// Entry `index` of a run, from a page that is checked when first touched.
    fn entry(&self, column: &ColumnIndex, number: usize, run: &Run, index: u64) -> Result<Located> {
        let page = index / PAGE_ENTRIES;
        if index >= run.chunk_count {
            return Err(disagree("the footer"));
        }
        let &(pages_before, chunks_before) = column.before.get(number).ok_or_else(|| disagree("the footer"))?;
        let bit = pages_before.saturating_add(page);
        if !column.checked_pages.get(bit) {
            self.check_page(column, run, page, chunks_before)
                .map_err(|error| error.with_offset(run.page_offset(page)))?;
            column.checked_pages.set(bit);
        }
        let at = run.page_offset(page) + 64 + index % PAGE_ENTRIES * 32; // inside the file: the page was checked
        let bytes: [u8; ENTRY_BYTES] = fetch_array(&self.source, at)?;
        Ok(Located { entry: parse_entry(&bytes), chunk: chunks_before.saturating_add(index) })
    }

    /// and what the footer says of the page.
    #[cold]
    fn check_page(&self, column: &ColumnIndex, run: &Run, page: u64, chunks_before: u64) -> Result<()> {
        let offset = run.page_offset(page);
        let head = RegionHead::parse(&fetch_array(&self.source, offset)?, offset)?;
        head.expect(RegionKind::IndexPage, self.file_id)?;
        let parsed = PageHead::parse(&head, self.columns.len())?;
        let mut buffer = Vec::new();
        let length = usize::try_from(head.body_bytes).unwrap_or(usize::MAX);
        let body = fetch(&self.source, head.body_offset(), length, &mut buffer)?;
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
        if parsed.column != column.number || parsed.first_chunk != first_chunk {
            return Err(disagree("the footer"));
        }
        Ok(())
    }

    /// The head and the body of a chunk, checked as the reader's policy asks. `buffer` is room for them where the file
    /// is not in memory.
    pub(super) fn load_chunk<'a>(
        &'a self,
        column: &ColumnIndex,
        located: &Located,
        buffer: &'a mut Vec<u8>,
    ) -> Result<(ChunkHead, &'a [u8])> {
        let (head, chunk, body) = self.fetch_chunk(column, &located.entry, buffer)?;
        if !self.is_checked(column, located.chunk) {
            if self.verification != Verification::Never {
                head.check_body(body)?;
            }
            column.checked_chunks.set(located.chunk);
        }
        Ok((chunk, body))
    }

    /// A chunk's head, checked, and its body, which is not.
    pub(super) fn fetch_chunk<'a>(
        &'a self,
        column: &ColumnIndex,
        entry: &ChunkEntry,
        buffer: &'a mut Vec<u8>,
    ) -> Result<(RegionHead, ChunkHead, &'a [u8])> {
        let length = usize::try_from(entry.stored_bytes).ok().and_then(|bytes| bytes.checked_add(HEAD_BYTES));
        let length = length.ok_or_else(|| Error::over_limit("the chunk is too large for this machine"))?;
        let bytes = fetch(&self.source, entry.offset, length, buffer)?;
        let (head, body) = bytes.split_first_chunk::<HEAD_BYTES>().ok_or_else(|| disagree("the chunk"))?; // never: `length` is at least that
        let (head, chunk) = self.parse_chunk_head(column, entry, head)?;
        self.check_decoded_bytes(chunk.raw_bytes.into())?;
        Ok((head, chunk, body))
    }

    /// The head of a chunk, checked; its body is not touched.
    pub(super) fn chunk_head(&self, column: &ColumnIndex, entry: &ChunkEntry) -> Result<ChunkHead> {
        let head = fetch_array(&self.source, entry.offset)?;
        self.parse_chunk_head(column, entry, &head).map(|(_, chunk)| chunk)
    }

    fn parse_chunk_head(
        &self,
        column: &ColumnIndex,
        entry: &ChunkEntry,
        bytes: &[u8; HEAD_BYTES],
    ) -> Result<(RegionHead, ChunkHead)> {
        let head = RegionHead::parse(bytes, entry.offset)?;
        head.expect(RegionKind::Chunk, self.file_id)?;
        let chunk = ChunkHead::parse(&head, self.columns.len())?;
        if chunk.column != column.number || chunk.entry != *entry {
            return Err(disagree("the chunk's head"));
        }
        Ok((head, chunk))
    }

    /// Whether a chunk was checked before as the reader's policy asks, so that parts of it can be read alone.
    pub(super) fn is_checked(&self, column: &ColumnIndex, chunk: u64) -> bool {
        self.verification != Verification::Always && column.checked_chunks.get(chunk)
    }
}

/// The least `i` below `count` for which `is_after(i)` holds, or `count`; `is_after` goes from false to true.
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
