//! Judges the chunks of a damaged file by its index and its footers.
//!
//! A file id can be derived from the inputs, so an older file of the same schema can have the same
//! id. If a chunk of that older file is still in this file, it has the right file id and valid
//! checksums. Only the rest of this file can expose it. An entry of the index repeats all fields of
//! a chunk's header, so it confirms the chunk as surely as CRC-32 can. But the index page itself
//! can be stale. The content id settles that: it is a hash of the pages of a commit, its footer and
//! the previous content id (chapter 7.5). If it matches, the pages and the footer belong together,
//! and every chunk they list is *confirmed*. All other chunks in the range of that commit are
//! contradicted.
//!
//! A damaged or stale page does no harm if the chunk headers are intact, because its entries repeat
//! the fields of these headers. The pages of a *run* list the chunks that one commit added to one
//! column. The entries of a run are restored from chunk headers: forwards from the first sample of
//! the run, and backwards from its last sample. The content id shows whether the result is correct.
//!
//! Confirmed commits form *chains*, because each content id includes the previous one. A mixture of
//! two files can contain several chains, each valid for its own file, but only one of them can be
//! trusted. This is the chain with the content id that the caller supplies, or else the chain that
//! confirms the largest number of chunks.
//!
//! Outside the chain, nothing is confirmed. Pages there can only contradict a chunk, namely one
//! that overlaps an entry without matching it.

use super::links::Claim;
use super::scan::{Identity, Region};
use crate::bytes::le::u64_of;
use crate::bytes::memory;
use crate::format::ContentId;
use crate::format::chunk::{ChunkEntry, ChunkHeader};
use crate::format::footer::{ContentHasher, Footer, TableEntry, TableHeader, Trailer};
use crate::format::index::{ChunkRun, ENTRY_BYTES, PAGE_ENTRIES, PageHeader, entry_to_bytes, parse_entry};
use crate::format::region::{HEADER_LEN, RegionHeader, RegionKind};
use crate::open::body;
use crate::open::source::Source;
use crate::read::losses::LostSamples;
use crate::{ErrorKind, Result};
use std::ops::Range;

/// The verdict of the index and the footers on a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It belongs to the file, as surely as CRC-32 can show.
    Confirmed,
    /// Nothing shows whether it belongs to the file.
    Unconfirmed,
    /// It does not belong to the file.
    Contradicted,
}

/// A column number and an entry of its index.
type IndexedChunk = (u32, ChunkEntry);

/// Consecutive commits whose content ids match.
struct Chain {
    /// The offset of the footer before the first commit; 0 if that commit is the first of the file.
    after: u64,
    /// The offset of the footer of the last commit.
    footer: u64,
    /// The content id of the last commit.
    content_id: ContentId,
    /// The samples that these commits added to each column.
    samples: Range<u64>,
    /// All tables up to the last commit.
    tables: Vec<TableEntry>,
    /// The chunks that these commits added, by offset.
    chunks: Vec<IndexedChunk>,
    /// How many of `chunks` have intact headers.
    found: u64,
}

impl Chain {
    fn covers(&self, offset: u64) -> bool {
        self.after < offset && offset < self.footer
    }
}

/// The contents of pages and footers outside the chain.
#[derive(Default)]
struct Claims {
    /// Sorted by offset.
    chunks: Vec<IndexedChunk>,
    /// The samples of `chunks`, for each column.
    samples: Vec<LostSamples>,
    /// Sorted by column and number.
    tables: Vec<TableEntry>,
}

/// The evidence of the index and the footers about the chunks and tables of a file.
pub(super) struct Evidence {
    chain: Option<Chain>,
    claims: Claims,
}

impl Evidence {
    /// Reads the index and the footers. `content_id` identifies the last commit, if it is known.
    ///
    /// Cost: reads the footers twice and each page of the index at most three times. Allocates at
    /// most 200 bytes for each entry of a page.
    pub(super) fn collect(
        source: &dyn Source,
        identity: &Identity,
        regions: &[Region],
        content_id: Option<ContentId>,
    ) -> Result<Self> {
        // in a valid file, each header, page and footer is examined for only one commit
        let budget = source.byte_count();
        let mut collector = Collector { source, identity, regions, budget };
        let mut evidence = Self { chain: collector.chain(content_id)?, claims: Claims::default() };
        evidence.claims = collector.claims(&evidence)?;
        Ok(evidence)
    }

    /// Returns whether this offset is before the last footer of the chain, which states the sample
    /// count up to that point.
    pub(super) fn knows_samples_at(&self, offset: u64) -> bool {
        self.chain.as_ref().is_some_and(|chain| offset < chain.footer)
    }

    /// Returns whether the footer at this offset is the last of the chain, or no chain exists.
    pub(super) fn may_trust_footer_at(&self, offset: u64) -> bool {
        self.chain.as_ref().is_none_or(|chain| offset == chain.footer)
    }

    /// Judges a chunk by its header.
    pub(super) fn judge(&self, chunk: &ChunkHeader) -> Verdict {
        let (offset, samples) = (chunk.entry.offset, chunk.entry.samples());
        if let Some(chain) = &self.chain {
            if chain.covers(offset) {
                let is_listed = agrees(&chain.chunks, chunk.column, &chunk.entry);
                return if is_listed { Verdict::Confirmed } else { Verdict::Contradicted };
            }
            let is_before = offset < chain.footer;
            if is_before && samples.end > chain.samples.start || !is_before && samples.start < chain.samples.end {
                return Verdict::Contradicted;
            }
        }
        let Claims { chunks, samples: claimed, .. } = &self.claims;
        let of_column = usize::try_from(chunk.column).ok().and_then(|column| claimed.get(column));
        let is_claimed = !at_offset(chunks, offset).is_empty() || of_column.is_some_and(|of| of.touches(&samples));
        match agrees(chunks, chunk.column, &chunk.entry) || !is_claimed {
            true => Verdict::Unconfirmed,
            false => Verdict::Contradicted,
        }
    }

    /// Judges a region of any kind by its header.
    pub(super) fn claim(&self, header: &RegionHeader, column_count: usize) -> Claim {
        let is_last_footer = |offset| self.chain.as_ref().is_some_and(|chain| chain.footer == offset);
        let own = |is_own| if is_own { Claim::Own } else { Claim::Unknown };
        match header.kind {
            RegionKind::Chunk => match ChunkHeader::parse(header, column_count).map(|chunk| self.judge(&chunk)) {
                Ok(Verdict::Confirmed) => Claim::Own,
                Ok(Verdict::Contradicted) => Claim::Foreign,
                Ok(Verdict::Unconfirmed) | Err(_) => Claim::Unknown,
            },
            RegionKind::Table if !self.allows(&TableHeader::unchecked(header).entry(header)) => Claim::Foreign,
            RegionKind::Footer => own(is_last_footer(header.offset)),
            RegionKind::Trailer => {
                own(Trailer::parse(header).is_ok_and(|trailer| is_last_footer(trailer.footer_offset)))
            }
            _ => Claim::Unknown,
        }
    }

    /// Returns whether nothing contradicts a table. The chain lists every table that a confirmed
    /// chunk needs, so the chunk is never decoded with a different table.
    pub(super) fn allows(&self, table: &TableEntry) -> bool {
        // `None` if `tables` has no table with this number
        let agrees = |tables: &[TableEntry]| {
            let number = |entry: &TableEntry| (entry.column, entry.table);
            let first = tables.get(tables.partition_point(|entry| number(entry) < number(table)));
            let is_listed = || tables.binary_search_by_key(&table_key(table), table_key).is_ok();
            first.filter(|first| number(first) == number(table)).map(|_| is_listed())
        };
        let chain = self.chain.as_ref();
        match chain.and_then(|chain| agrees(&chain.tables)) {
            Some(agrees) => agrees,
            None if chain.is_some_and(|chain| table.offset < chain.footer) => false,
            None => agrees(&self.claims.tables).unwrap_or(true),
        }
    }
}

/// Returns the chunks at an offset. `chunks` is sorted by offset.
fn at_offset(chunks: &[IndexedChunk], offset: u64) -> &[IndexedChunk] {
    let start = chunks.partition_point(|(_, entry)| entry.offset < offset);
    let rest = chunks.get(start..).unwrap_or(&[]);
    rest.get(..rest.partition_point(|(_, entry)| entry.offset == offset)).unwrap_or(&[])
}

/// Returns the sort key of a table: all fields, column and number first.
fn table_key(entry: &TableEntry) -> (u32, u32, u64, u32, u32) {
    (entry.column, entry.table, entry.offset, entry.body_bytes, entry.body_crc)
}

fn agrees(chunks: &[IndexedChunk], column: u32, entry: &ChunkEntry) -> bool {
    at_offset(chunks, entry.offset).contains(&(column, *entry))
}

/// Returns the better of two chains: `other`, which is later, unless `best` confirms more chunks.
/// If the content id is known, only a chain with that id qualifies.
fn better(best: Option<Chain>, other: Option<Chain>, content_id: Option<ContentId>) -> Option<Chain> {
    let other = other.filter(|chain| content_id.is_none_or(|known| chain.content_id == known));
    match (best, other) {
        (Some(best), Some(other)) if other.found < best.found => Some(best),
        (best, other) => other.or(best),
    }
}

/// Restores the entries of a run from the headers of consecutive chunks, forwards from its first
/// sample and backwards from its last. The other entries are `None`.
fn restore(headers: &[IndexedChunk], column: u32, run: &ChunkRun) -> Result<Vec<Option<ChunkEntry>>> {
    let start = headers.partition_point(|(of, _)| *of < column);
    let end = headers.partition_point(|(of, _)| *of <= column);
    let headers = headers.get(start..end).unwrap_or(&[]);
    let mut entries = Vec::new();
    memory::resize(&mut entries, usize::try_from(run.chunk_count).unwrap_or(usize::MAX), None)?;
    let mut missing = entries.iter_mut();
    let mut next = run.first_sample;
    for (_, entry) in headers {
        if entry.first_sample == next {
            let Some(slot) = missing.next() else { break };
            *slot = Some(*entry);
            next = entry.samples().end;
        }
    }
    let mut end = run.end_sample();
    for (_, entry) in headers.iter().rev() {
        if entry.samples().end == end {
            let Some(slot) = missing.next_back() else { break };
            *slot = Some(*entry);
            end = entry.first_sample;
        }
    }
    Ok(entries)
}

/// The footer before the one being examined.
struct PreviousFooter {
    offset: u64,
    commit: u32,
    content_id: ContentId,
}

struct Collector<'a> {
    source: &'a dyn Source,
    identity: &'a Identity,
    regions: &'a [Region],
    /// The number of bytes that may still be examined. Without a limit, all footers of a malicious
    /// file could list the same pages.
    budget: u64,
}

impl<'a> Collector<'a> {
    /// Returns the intact regions of one kind that have the file's id, in file order.
    fn intact(&self, kind: RegionKind) -> impl Iterator<Item = &'a RegionHeader> + use<'a> {
        let file_id = self.identity.file_id;
        let regions = self.regions.iter().filter(move |region| region.is_intact && region.header.kind == kind);
        regions.map(|region| &region.header).filter(move |header| header.file_id == file_id)
    }

    /// Parses a footer; `None` if it is invalid.
    fn footer(&self, header: &RegionHeader) -> Result<Option<(Footer, Vec<u8>)>> {
        let body = body(self.source, header)?;
        match Footer::parse(header, &body, &self.identity.schema, &self.identity.schema_block) {
            Ok(footer) => Ok(Some((footer, body))),
            Err(error) if error.kind() == ErrorKind::Corrupt => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns the chain to trust.
    fn chain(&mut self, content_id: Option<ContentId>) -> Result<Option<Chain>> {
        let mut best: Option<Chain> = None;
        let mut current: Option<Chain> = None;
        let mut before: Option<PreviousFooter> = None;
        for header in self.intact(RegionKind::Footer) {
            let Some((footer, bytes)) = self.footer(header)? else { continue };
            let found = match (footer.commit.checked_sub(1), &before) {
                (None, _) => self.commit(header, &footer, &bytes, 0, ContentId::default())?,
                (Some(number), Some(before)) if before.commit == number => {
                    self.commit(header, &footer, &bytes, before.offset, before.content_id)?
                }
                _ => None,
            };
            before =
                Some(PreviousFooter { offset: header.offset, commit: footer.commit, content_id: footer.content_id });
            let Some(mut found) = found else { continue };
            current = match current.take() {
                // the content id of this commit includes the previous one
                Some(chain) if found.after == chain.footer => {
                    let Chain { after, samples, mut chunks, found: count, .. } = chain;
                    memory::reserve(&mut chunks, found.chunks.len())?;
                    chunks.append(&mut found.chunks);
                    let samples = samples.start..found.samples.end;
                    Some(Chain { after, samples, chunks, found: count.saturating_add(found.found), ..found })
                }
                other => {
                    best = better(best, other, content_id);
                    Some(found)
                }
            };
        }
        Ok(better(best, current, content_id))
    }

    /// Returns a commit as a chain if its content id matches. `after` and `previous` are the offset
    /// and the content id of the previous footer.
    fn commit(
        &mut self,
        header: &RegionHeader,
        footer: &Footer,
        footer_bytes: &[u8],
        after: u64,
        previous: ContentId,
    ) -> Result<Option<Chain>> {
        let columns = (0..).zip(&footer.columns);
        let runs = columns.flat_map(|(column, facts): (u32, _)| facts.runs.iter().map(move |run| (column, *run)));
        let mut runs: Vec<(u32, ChunkRun)> = runs.filter(|(_, run)| run.offset > after).collect();
        // a commit adds at most one run to a column (chapter 6)
        let has_one_each = runs.is_sorted_by(|(column, _), (next, _)| column < next);
        runs.sort_unstable_by_key(|(_, run)| run.offset);
        let (_, content) = Footer::split_content_id(footer_bytes)?;
        let entries = runs.iter().map(|(_, run)| run.chunk_count).fold(0, u64::saturating_add);
        // each entry is in a page or is restored from a header
        let regions = u64_of(self.between(&(after..header.offset)).len());
        if !has_one_each || entries > regions.saturating_mul(PAGE_ENTRIES) {
            return Ok(None);
        }
        let headers = regions.saturating_mul(HEADER_LEN);
        let pages = entries.saturating_mul(u64_of(ENTRY_BYTES));
        let cost = headers.saturating_add(pages).saturating_add(u64_of(content.len()));
        let Some(left) = self.budget.checked_sub(cost) else { return Ok(None) };
        self.budget = left;
        for restores in [false, true] {
            let Some(pages) = self.pages(&runs, after..header.offset, restores)? else { continue };
            let mut hasher = ContentHasher::after(previous);
            hasher.add_page(&pages);
            if hasher.finish(content) == footer.content_id {
                return self.chain_of(header, footer, after, &runs, &pages).map(Some);
            }
        }
        Ok(None)
    }

    /// Returns the entries of all pages of these runs, which belong to one commit; `None` if some
    /// are missing. Prefers intact pages, and restores the other pages from chunk headers. If
    /// `restores` is set, prefers restored pages, because intact ones can be stale.
    fn pages(&self, runs: &[(u32, ChunkRun)], commit: Range<u64>, restores: bool) -> Result<Option<Vec<u8>>> {
        let mut all = Vec::new();
        let mut headers: Option<Vec<IndexedChunk>> = None;
        for (column, run) in runs {
            let mut restored: Option<Vec<Option<ChunkEntry>>> = None;
            for page in 0..run.page_count() {
                let stored = self.page(*column, run, page)?;
                if let (false, Some(stored)) = (restores, &stored) {
                    memory::extend(&mut all, stored)?;
                    continue;
                }
                if restored.is_none() {
                    if headers.is_none() {
                        headers = Some(self.headers(&commit)?);
                    }
                    let headers = headers.as_deref().unwrap_or(&[]);
                    restored = Some(restore(headers, *column, run)?);
                }
                let first = usize::try_from(page.saturating_mul(PAGE_ENTRIES)).unwrap_or(usize::MAX);
                let count = usize::try_from(run.page_entries(page)).unwrap_or(0); // exact: at most 126
                let entries = restored.as_deref().and_then(|all| all.get(first..first.checked_add(count)?));
                let entries: Option<Vec<_>> = entries.and_then(|entries| entries.iter().copied().collect());
                match (entries, stored) {
                    (Some(entries), _) => {
                        for entry in &entries {
                            memory::extend(&mut all, &entry_to_bytes(entry))?;
                        }
                    }
                    (None, Some(stored)) => memory::extend(&mut all, &stored)?,
                    (None, None) => return Ok(None),
                }
            }
        }
        Ok(Some(all))
    }

    /// Returns the entries of a page of a run if the page is intact and at the expected offset.
    fn page(&self, column: u32, run: &ChunkRun, page: u64) -> Result<Option<Vec<u8>>> {
        let offset = run.page_offset(page);
        let Some(region) = self.region(offset).filter(|region| region.is_intact) else { return Ok(None) };
        let header = &region.header;
        let is_page = header.kind == RegionKind::IndexPage && header.file_id == self.identity.file_id;
        let parsed = is_page.then(|| PageHeader::parse(header, self.identity.schema.columns.len()).ok()).flatten();
        let fits =
            |parsed: &PageHeader| parsed.column == column && u64::from(parsed.entry_count) == run.page_entries(page);
        match parsed.filter(fits) {
            Some(_) => body(self.source, header).map(Some),
            None => Ok(None),
        }
    }

    fn region(&self, offset: u64) -> Option<&'a Region> {
        let at = self.regions.binary_search_by_key(&offset, |region| region.header.offset).ok()?;
        self.regions.get(at)
    }

    fn between(&self, offsets: &Range<u64>) -> &'a [Region] {
        let start = self.regions.partition_point(|region| region.header.offset < offsets.start);
        let end = self.regions.partition_point(|region| region.header.offset < offsets.end);
        self.regions.get(start..end).unwrap_or(&[])
    }

    /// Returns the chunks with intact headers between two offsets, by column and then by offset.
    fn headers(&self, offsets: &Range<u64>) -> Result<Vec<IndexedChunk>> {
        let regions = self.between(offsets);
        let mut headers = memory::with_capacity(regions.len())?;
        headers.extend(regions.iter().filter_map(|region| self.chunk(region)));
        headers.sort_unstable_by_key(|(column, entry)| (*column, entry.offset));
        Ok(headers)
    }

    /// Returns the column and the entry of a region if it is a chunk of this file.
    fn chunk(&self, region: &Region) -> Option<IndexedChunk> {
        let header = &region.header;
        let is_chunk = header.kind == RegionKind::Chunk && header.file_id == self.identity.file_id;
        let chunk = is_chunk.then(|| ChunkHeader::parse(header, self.identity.schema.columns.len()).ok()).flatten()?;
        Some((chunk.column, chunk.entry))
    }

    /// Builds the chain of a commit whose pages have these entries.
    fn chain_of(
        &self,
        header: &RegionHeader,
        footer: &Footer,
        after: u64,
        runs: &[(u32, ChunkRun)],
        pages: &[u8],
    ) -> Result<Chain> {
        let entries = pages.as_chunks::<ENTRY_BYTES>().0;
        let mut chunks: Vec<IndexedChunk> = memory::with_capacity(entries.len())?;
        let mut rest = entries.iter().map(parse_entry);
        for (column, run) in runs {
            let count = usize::try_from(run.chunk_count).unwrap_or(usize::MAX);
            chunks.extend(rest.by_ref().take(count).map(|entry| (*column, entry)));
        }
        chunks.sort_unstable_by_key(|(_, entry)| entry.offset);
        let is_found = |&&(column, entry): &&IndexedChunk| {
            self.region(entry.offset).and_then(|region| self.chunk(region)) == Some((column, entry))
        };
        let found = u64_of(chunks.iter().filter(is_found).count());
        let start = runs.iter().map(|(_, run)| run.first_sample).min().unwrap_or(footer.sample_count);
        Ok(Chain {
            after,
            footer: header.offset,
            content_id: footer.content_id,
            samples: start..footer.sample_count,
            tables: footer.tables.clone(),
            chunks,
            found,
        })
    }

    /// Collects the contents of pages and footers that the chain in `evidence` does not cover.
    fn claims(&self, evidence: &Evidence) -> Result<Claims> {
        let mut claims = Claims::default();
        let is_covered =
            |header: &RegionHeader| evidence.chain.as_ref().is_some_and(|chain| chain.covers(header.offset));
        let mut samples: Vec<Vec<Range<u64>>> = vec![Vec::new(); self.identity.schema.columns.len()];
        for header in self.intact(RegionKind::IndexPage).filter(|header| !is_covered(header)) {
            let Ok(page) = PageHeader::parse(header, samples.len()) else { continue };
            let Some(of_column) = usize::try_from(page.column).ok().and_then(|column| samples.get_mut(column)) else {
                continue;
            };
            let body = body(self.source, header)?;
            let entries = body.as_chunks::<ENTRY_BYTES>().0.iter().map(parse_entry);
            for entry in entries.filter(|entry| entry.sample_count > 0) {
                memory::reserve(&mut claims.chunks, 1)?;
                claims.chunks.push((page.column, entry));
                memory::reserve(of_column, 1)?;
                of_column.push(entry.samples());
            }
        }
        for header in self.intact(RegionKind::Footer).filter(|header| !evidence.knows_samples_at(header.offset)) {
            let Some((footer, _)) = self.footer(header)? else { continue };
            memory::reserve(&mut claims.tables, footer.tables.len())?;
            claims.tables.extend(footer.tables);
        }
        claims.chunks.sort_unstable_by_key(|(_, entry)| entry.offset);
        claims.tables.sort_unstable_by_key(table_key);
        claims.samples = samples.into_iter().map(|ranges| LostSamples::of_ranges(u64::MAX, ranges)).collect();
        Ok(claims)
    }
}
