//! Checks that the regions of a commit agree with each other (chapters 4, 6 and 7).
//!
//! Each region is checked against the regions before it, in file order: a chunk continues the
//! samples of its column, an index page lists the chunks that were found, and a footer states the
//! facts of all of them. The facts are recomputed from the chunks and compared.
//!
//! These checks stop at the first sign of damage, because after it they would only report the same
//! damage again. From then on, regions that the index or the footer lists but the walk has not
//! found are recorded as lost.

use super::report::{Findings, LostBytes, LostRegion, gaps, samples_of_page};
use crate::bytes::le::u64_of;
use crate::codec::{SideFacts, encoding};
use crate::format::Flags;
use crate::format::chunk::{ChunkEntry, ChunkHeader};
use crate::format::column_record::ColumnRecord;
use crate::format::footer::{ContentHasher, ContentId, Footer, TableEntry, TableHeader, Trailer};
use crate::format::index::{
    ChunkRun, ENTRY_BYTES, PAGE_BYTES, PAGE_ENTRIES, PageHeader, parse_entry, samples_per_chunk,
};
use crate::format::region::{HEADER_LEN, RegionHeader, RegionKind, align};
use crate::open::FileHeader;
use crate::{Error, Result};
use std::ops::Range;
use std::sync::Arc;

/// The state of the check for one column.
struct ColumnCheck {
    pub name: Arc<str>,
    pub next_sample: u64,
    pub facts: ColumnRecord,
    pub table_count: u32,
    /// The chunks of this commit.
    pub chunks: Vec<ChunkEntry>,
    /// How many of `chunks` the index has listed so far.
    pub listed: usize,
    /// The chunks that the index lists but the walk has not found.
    pub missing: Vec<ChunkEntry>,
}

impl ColumnCheck {
    /// Returns the samples of the chunks that an index page lists, starting at sample `first`;
    /// `None` if some of these chunks were not found.
    fn listed_from(&self, first: u64, body_bytes: u32) -> Option<Range<u64>> {
        let count = usize::try_from(body_bytes).ok()? / ENTRY_BYTES;
        let at = self.chunks.partition_point(|chunk| chunk.first_sample < first);
        let chunks = self.chunks.get(at..)?.get(..count)?;
        let follow = chunks.is_sorted_by(|a, b| a.samples().end == b.first_sample);
        let (from, to) = (chunks.first()?.first_sample, chunks.last()?.samples().end);
        (follow && from == first).then_some(from..to)
    }

    /// Begins or continues the run of this commit. Checks for `first_chunk`.
    fn start_page(&mut self, page: &PageHeader, offset: u64) -> Result<()> {
        let before = self.facts.chunk_count.saturating_sub(u64_of(self.chunks.len()));
        if page.first_chunk != before.saturating_add(u64_of(self.listed)) {
            let message =
                format!("the page begins at chunk {}, which is not the next chunk of its column", page.first_chunk);
            return Err(Error::corrupt("R-6.2", message).with_offset(offset));
        }
        if self.listed == 0
            && let (Some(first), Some(last)) = (self.chunks.first(), self.chunks.last())
        {
            self.facts.runs.push(ChunkRun {
                offset,
                first_sample: first.first_sample,
                sample_count: last.samples().end.saturating_sub(first.first_sample),
                chunk_count: u64_of(self.chunks.len()),
                samples_per_chunk: samples_per_chunk(self.chunks.iter().map(|entry| entry.sample_count)),
            });
        }
        Ok(())
    }

    /// Checks that every chunk is listed and that the facts are correct.
    fn compare(&self, found: &ColumnRecord, decoded: bool) -> Result<()> {
        if self.listed != self.chunks.len() {
            let message =
                format!("{} of {} chunks are not in the index", self.chunks.len() - self.listed, self.chunks.len());
            return Err(Error::corrupt("R-6.2", message));
        }
        let mut expected = self.facts.clone();
        expected.cast = found.cast;
        if !decoded {
            expected.null_count = found.null_count;
            let found_only =
                found.encodings.iter().filter(|&&(id, chunks)| chunks == 0 && expected.encoding(id).is_none());
            // the parts that were not decoded can have these encodings
            let side: Vec<u16> = found_only.map(|&(id, _)| id).collect();
            side.into_iter().for_each(|id| expected.count_encoding(id, 0));
        }
        if *found == expected {
            return Ok(());
        }
        Err(Error::corrupt("R-7.4", differences(found, &expected)))
    }
}

/// Says which facts of a column in the footer differ from those that the file implies.
#[cold]
fn differences(found: &ColumnRecord, expected: &ColumnRecord) -> String {
    let encodings = |record: &ColumnRecord| {
        let counts = record.encodings.iter().map(|(id, chunks)| format!("{chunks} chunks with encoding {id}"));
        counts.collect::<Vec<_>>().join(", ")
    };
    let facts = |record: &ColumnRecord| {
        [
            format!("{} raw bytes", record.raw_bytes),
            format!("{} stored bytes", record.stored_bytes),
            format!("{} nulls", record.null_count),
            format!("{} chunks", record.chunk_count),
            encodings(record),
            format!("an index of {} runs", record.runs.len()),
        ]
    };
    let differing: Vec<String> = facts(found)
        .into_iter()
        .zip(facts(expected))
        .filter(|(found, expected)| found != expected)
        .map(|(found, expected)| format!("{found}, expected {expected}"))
        .collect();
    match differing.is_empty() {
        true => "the runs of the index in the footer do not match the chunks of the file".to_owned(),
        false => format!("the footer does not match the chunks of the file: it states {}", differing.join("; ")),
    }
}

/// The state of the check, from commit to commit.
pub(super) struct CommitCheck<'a> {
    file_header: &'a FileHeader,
    decode: bool,
    columns: Vec<ColumnCheck>,
    tables: Vec<TableEntry>,
    flags: Flags,
    /// The kind of the previous region, which determines which kinds can follow it.
    last_kind: RegionKind,
    last_page: Option<(u32, u32)>,
    last_footer: Option<(u64, u64)>,
    content: ContentHasher,
    last_trailer: u64,
    commits: u32,
    sample_count: u64,
    lost: Vec<LostRegion>,
    pub(super) intact_chunks: u64,
    pub(super) is_finished: bool,
}

impl<'a> CommitCheck<'a> {
    pub(super) fn new(file_header: &'a FileHeader, decode: bool) -> Self {
        let columns = file_header.schema.columns.iter().map(|column| ColumnCheck {
            name: column.name.as_str().into(),
            next_sample: 0,
            facts: ColumnRecord::default(),
            table_count: 0,
            chunks: Vec::new(),
            listed: 0,
            missing: Vec::new(),
        });
        Self {
            file_header,
            decode,
            columns: columns.collect(),
            tables: Vec::new(),
            flags: file_header.fields.flags,
            last_kind: RegionKind::FileHeader,
            last_page: None,
            last_footer: None,
            content: ContentHasher::after(ContentId::default()),
            last_trailer: 0,
            commits: 0,
            sample_count: 0,
            lost: Vec::new(),
            intact_chunks: 0,
            is_finished: false,
        }
    }

    pub(super) fn ends_with_trailer(&self) -> bool {
        self.last_kind == RegionKind::Trailer
    }

    /// Returns the losses found since the last call.
    pub(super) fn take_lost(&mut self) -> Vec<LostRegion> {
        std::mem::take(&mut self.lost)
    }

    /// Checks a region whose header and body are intact.
    ///
    /// The body of a chunk is not passed. If it was decoded, `parts` has the result. Compares the
    /// region with other regions only if `findings` is empty.
    pub(super) fn region(
        &mut self,
        header: &RegionHeader,
        body: &[u8],
        parts: Option<Result<SideFacts>>,
        findings: &Findings,
    ) -> Result<()> {
        let is_clean = findings.all.is_empty();
        if is_clean {
            self.check_order(header)?;
        }
        self.last_kind = header.kind;
        match header.kind {
            RegionKind::FileHeader => Ok(()),
            RegionKind::Chunk => self.chunk(header, parts, is_clean),
            RegionKind::Table => self.table(header, is_clean),
            RegionKind::IndexPage => self.page(header, body, is_clean),
            RegionKind::Footer => self.footer(header, body, findings),
            RegionKind::Trailer => self.trailer(header, is_clean),
        }
    }

    /// Records a region whose body is damaged.
    pub(super) fn damaged_region(&mut self, header: &RegionHeader) {
        self.last_kind = header.kind;
        if header.kind == RegionKind::Chunk
            && let Ok(chunk) = ChunkHeader::parse(header, self.columns.len())
            && let Some(column) = column_mut(&mut self.columns, chunk.column)
        {
            column.chunks.push(chunk.entry);
        }
    }

    /// Returns the column and the samples that the header of a region states.
    pub(super) fn column_and_samples(&self, header: &RegionHeader) -> (Option<Arc<str>>, Option<Range<u64>>) {
        let column = |number| usize::try_from(number).ok().and_then(|number: usize| self.columns.get(number));
        let (column, samples) = match header.kind {
            RegionKind::Chunk => {
                let chunk = ChunkHeader::unchecked(header);
                (column(chunk.column), Some(chunk.entry.samples()))
            }
            RegionKind::IndexPage => {
                let page = PageHeader::unchecked(header);
                let column = column(page.column);
                (column, column.and_then(|column| column.listed_from(page.first_sample, header.body_bytes)))
            }
            RegionKind::Table => (column(TableHeader::unchecked(header).column), None),
            _ => (None, None),
        };
        (column.map(|column| column.name.clone()), samples)
    }

    /// Records the samples of this commit that no chunk contains. If the footer was found, `footer`
    /// has its sample count, which includes this commit, and its offset.
    pub(super) fn find_gaps(&mut self, footer: Option<(u64, u64)>) {
        let from = (self.sample_count, self.commit_start());
        for column in &self.columns {
            let known = column.chunks.iter().chain(&column.missing).copied();
            self.lost.extend(gaps(from, known, footer).into_iter().map(|(samples, bytes)| LostRegion {
                region: RegionKind::Chunk,
                column: Some(column.name.clone()),
                samples: Some(samples),
                bytes: LostBytes::Within(bytes),
            }));
        }
    }

    /// Returns the lowest offset at which the regions of this commit can start.
    fn commit_start(&self) -> u64 {
        self.last_footer.map_or(self.file_header.header.end(), |(_, end)| end)
    }

    /// Records the pages of this commit that the walk has not found.
    fn find_lost_pages(&mut self, footer: &Footer, findings: &Findings) {
        let from = self.commit_start();
        let of_column = |(facts, column): (&'_ ColumnRecord, _)| {
            facts
                .runs
                .iter()
                .rev()
                .take_while(move |run| run.offset >= from)
                .map(move |run| (*run, column))
                .collect::<Vec<_>>()
        };
        let mut runs: Vec<(ChunkRun, &ColumnCheck)> =
            footer.columns.iter().zip(&self.columns).flat_map(of_column).collect();
        // they do not overlap: parsing has checked
        runs.sort_unstable_by_key(|(run, _)| run.offset);
        let (runs, columns): (Vec<_>, Vec<_>) = runs.into_iter().unzip();
        for (number, page) in findings.lost_pages(&runs, from) {
            let (Some(run), Some(column)) = (runs.get(number), columns.get(number)) else { continue };
            let start = run.page_offset(page);
            self.lost.push(LostRegion {
                region: RegionKind::IndexPage,
                column: Some(column.name.clone()),
                samples: samples_of_page(run, page, &column.chunks),
                bytes: LostBytes::Exactly(start..start.saturating_add(PAGE_BYTES).min(run.end())),
            });
        }
    }

    /// Checks.
    fn check_order(&self, header: &RegionHeader) -> Result<()> {
        use RegionKind::{Chunk, FileHeader, Footer, IndexPage, Table, Trailer};
        let allowed = match header.kind {
            FileHeader => false,
            Chunk | Table => matches!(self.last_kind, FileHeader | Trailer | Chunk | Table),
            IndexPage => matches!(self.last_kind, Chunk | Table | IndexPage | FileHeader | Trailer),
            Footer => self.last_kind != Footer,
            Trailer => self.last_kind == Footer,
        };
        if allowed {
            return Ok(());
        }
        let message = format!("a region of kind {} cannot follow one of kind {}", header.kind, self.last_kind);
        Err(Error::corrupt("R-2.9", message).with_offset(header.offset))
    }

    fn chunk(&mut self, header: &RegionHeader, parts: Option<Result<SideFacts>>, is_clean: bool) -> Result<()> {
        let chunk = ChunkHeader::parse(header, self.columns.len())?;
        let entry = chunk.entry;
        let column = column_mut(&mut self.columns, chunk.column).ok_or_else(|| unknown_column(header))?;
        let next_sample = std::mem::replace(&mut column.next_sample, entry.samples().end);
        column.chunks.push(entry);
        if is_clean && entry.first_sample != next_sample {
            let message = format!("the chunk begins at sample {}, expected {next_sample}", entry.first_sample);
            return Err(Error::corrupt("R-4.2", message).with_offset(header.offset));
        }
        encoding(entry.encoding).map_err(|error| error.with_offset(header.offset))?;
        column.facts.raw_bytes = column.facts.raw_bytes.saturating_add(chunk.raw_bytes.into());
        column.facts.stored_bytes = column.facts.stored_bytes.saturating_add(entry.stored_bytes.into());
        column.facts.chunk_count += 1;
        column.facts.count_encoding(entry.encoding, 1);
        if let Some(parts) = parts {
            let SideFacts { null_count, encodings } = parts.map_err(|error| error.with_offset(header.offset))?;
            encodings.into_iter().flatten().for_each(|id| column.facts.count_encoding(id, 0));
            column.facts.null_count = column.facts.null_count.saturating_add(null_count);
        }
        self.intact_chunks += 1;
        Ok(())
    }

    /// Checks a table.
    fn table(&mut self, header: &RegionHeader, is_clean: bool) -> Result<()> {
        let TableHeader { column: number, table } = TableHeader::parse(header)?;
        let column = column_mut(&mut self.columns, number).filter(|column| !is_clean || column.table_count == table);
        let column = column.ok_or_else(|| {
            let message = format!("table {table} of column number {number} is out of order");
            Error::corrupt("R-4.11", message).with_offset(header.offset)
        })?;
        column.table_count = table.saturating_add(1);
        self.tables.push(TableHeader { column: number, table }.entry(header));
        Ok(())
    }

    /// Checks an index page.
    fn page(&mut self, header: &RegionHeader, body: &[u8], is_clean: bool) -> Result<()> {
        let page = PageHeader::parse(header, self.columns.len())?;
        self.content.add_page(body);
        let entries = body.as_chunks::<ENTRY_BYTES>().0;
        if entries.first().map(|entry| parse_entry(entry).first_sample) != Some(page.first_sample) {
            let message = "the first sample in the header of the page differs from the first sample of its first entry";
            return Err(Error::corrupt("R-6.1", message).with_offset(header.offset));
        }
        if is_clean {
            self.check_page_order(&page).map_err(|error| error.with_offset(header.offset))?;
        }
        self.last_page = Some((page.column, page.entry_count));
        let column = column_mut(&mut self.columns, page.column).ok_or_else(|| unknown_column(header))?;
        if is_clean {
            column.start_page(&page, header.offset)?;
        }
        for bytes in entries {
            let entry = parse_entry(bytes);
            if column.chunks.get(column.listed) == Some(&entry) {
                column.listed += 1;
            } else if !is_clean
                && let Ok(at) = column.chunks.binary_search_by_key(&entry.offset, |chunk| chunk.offset)
                && column.chunks.get(at) == Some(&entry)
            {
                // an earlier page is damaged, so its entries were not seen
                column.listed = at + 1;
            } else if is_clean {
                let (samples, offset) = (entry.samples(), entry.offset);
                let message = format!(
                    "the index entry for samples {}..{} at offset {offset} does not match the next chunk of the column",
                    samples.start, samples.end
                );
                return Err(Error::corrupt("R-6.2", message).with_offset(header.offset));
            } else {
                column.missing.push(entry);
                self.lost.push(LostRegion::chunk(&entry, Some(column.name.clone())));
            }
        }
        Ok(())
    }

    /// Checks that columns are in ascending order, and that only the last page of a run is
    /// short.
    fn check_page_order(&self, page: &PageHeader) -> Result<()> {
        let Some((column, entry_count)) = self.last_page else { return Ok(()) };
        if page.column < column {
            return Err(Error::corrupt("R-6.2", "the columns of the index are not in ascending order"));
        }
        if page.column == column && u64::from(entry_count) != PAGE_ENTRIES {
            return Err(Error::corrupt(
                "R-6.3",
                "the previous page is not full, although it is not the last of its run",
            ));
        }
        Ok(())
    }

    /// Checks a footer: chapter 7.1, R-9.1, R-9.2.
    fn footer(&mut self, header: &RegionHeader, body: &[u8], findings: &Findings) -> Result<()> {
        let schema = &self.file_header.schema;
        Footer::flags(header).check()?;
        let footer = Footer::parse(header, body, schema, &self.file_header.schema_block)?;
        let content = std::mem::replace(&mut self.content, ContentHasher::after(footer.content_id));
        let result = if findings.all.is_empty() {
            self.compare(&footer).and_then(|()| check_content_id(content, body))
        } else {
            self.find_gaps(Some((footer.sample_count, header.offset)));
            self.find_lost_pages(&footer, findings);
            Ok(())
        };
        self.last_footer = Some((header.offset, header.end()));
        self.sample_count = footer.sample_count;
        self.commits = footer.commit.saturating_add(1);
        self.flags = footer.flags;
        self.last_page = None;
        for column in &mut self.columns {
            column.chunks.clear();
            column.missing.clear();
            column.listed = 0;
        }
        result.map_err(|error| error.with_offset(header.offset))
    }

    fn compare(&mut self, footer: &Footer) -> Result<()> {
        if !footer.flags.contains(self.flags) {
            return Err(Error::corrupt("R-9.2", "the footer lacks flags that were set earlier in the file"));
        }
        if footer.commit != self.commits {
            let message = format!("the footer states commit number {}, expected {}", footer.commit, self.commits);
            return Err(Error::corrupt("R-7.5", message));
        }
        if footer.sample_count < self.sample_count {
            let (found, before) = (footer.sample_count, self.sample_count);
            let message = format!("the footer states {found} samples, fewer than the {before} of the previous commit");
            return Err(Error::corrupt("R-7.5", message));
        }
        self.tables.sort_by_key(|table| (table.column, table.table));
        if footer.tables != self.tables {
            return Err(Error::corrupt("R-7.4", "the footer's tables do not match the file"));
        }
        for (column, found) in self.columns.iter().zip(&footer.columns) {
            column.compare(found, self.decode).map_err(|error| error.with_column(&column.name))?;
        }
        Ok(())
    }

    /// Checks a trailer.
    fn trailer(&mut self, header: &RegionHeader, is_clean: bool) -> Result<()> {
        let trailer = Trailer::parse(header)?;
        let footer = self
            .last_footer
            .filter(|&(offset, end)| offset == trailer.footer_offset && align(end, HEADER_LEN) == header.offset);
        if is_clean && (footer.is_none() || trailer.previous_trailer != self.last_trailer) {
            let (footer_offset, _) = self.last_footer.unwrap_or_default();
            let message = format!(
                "the trailer states footer offset {} and previous trailer offset {}, expected {footer_offset} and {}",
                trailer.footer_offset, trailer.previous_trailer, self.last_trailer
            );
            return Err(Error::corrupt("R-7.7", message).with_offset(header.offset));
        }
        self.last_trailer = header.offset;
        self.is_finished = trailer.finished;
        Ok(())
    }
}

/// Checks. `content` has hashed the commit up to its footer.
fn check_content_id(content: ContentHasher, footer: &[u8]) -> Result<()> {
    let (found, rest) = Footer::split_content_id(footer)?;
    let computed = content.finish(rest);
    if found == computed {
        return Ok(());
    }
    Err(Error::corrupt("R-7.9", format!("the footer states content id {found}, but the content has id {computed}")))
}

fn column_mut(columns: &mut [ColumnCheck], number: u32) -> Option<&mut ColumnCheck> {
    columns.get_mut(usize::try_from(number).ok()?)
}

fn unknown_column(header: &RegionHeader) -> Error {
    Error::corrupt("R-4.1", "the region belongs to a column that does not exist").with_offset(header.offset)
}
