//! What the regions of a commit say of each other (chapters 4, 6, 7).

use super::Damage;
use crate::codec::{ChunkDecoder, codec, parts};
use crate::format::chunk::{ChunkEntry, ChunkHead};
use crate::format::footer::{ColumnFacts, Footer, TableEntry, Trailer};
use crate::format::index::{ENTRY_BYTES, PAGE_ENTRIES, PageHead, Run, parse_entry, samples_per_chunk};
use crate::format::region::{HEAD, RegionHead, RegionKind, align};
use crate::format::schema::Layout;
use crate::format::{ColumnSchema, Flags};
use crate::le::{u32_at, u64_at};
use crate::open::OpenedHeader;
use crate::{Error, Result, limits};
use std::ops::Range;

/// What has been met of a column.
struct ColumnCheck {
    layout: Layout,
    next_sample: u64,
    facts: ColumnFacts,
    table_count: u32,
    /// Chunks of this commit.
    chunks: Vec<ChunkEntry>,
    /// How many of them the index has listed.
    listed: usize,
}

/// What has been met so far.
pub(super) struct CommitCheck<'a> {
    header: &'a OpenedHeader,
    decoder: Option<ChunkDecoder>,
    columns: Vec<ColumnCheck>,
    tables: Vec<TableEntry>,
    flags: Flags,
    /// The kind of the region before, which says what may follow.
    last_kind: RegionKind,
    last_page: Option<(u32, u32)>,
    last_footer: Option<(u64, u64)>,
    last_trailer: u64,
    commits: u32,
    sample_count: u64,
    lost: Vec<LostChunk>,
    pub(super) intact_chunks: u64,
    pub(super) is_finished: bool,
}

/// A chunk that the index lists and the walk has not met.
pub(super) struct LostChunk {
    entry: ChunkEntry,
    column: String,
}

impl<'a> CommitCheck<'a> {
    pub(super) fn new(header: &'a OpenedHeader, decode: bool) -> Self {
        let columns = header.schema.columns.iter().filter_map(|column| {
            Some(ColumnCheck {
                layout: column.layout().ok()?, // has been checked
                next_sample: 0,
                facts: ColumnFacts::default(),
                table_count: 0,
                chunks: Vec::new(),
                listed: 0,
            })
        });
        Self {
            header,
            decoder: decode.then(ChunkDecoder::new),
            columns: columns.collect(),
            tables: Vec::new(),
            flags: header.header.flags,
            last_kind: RegionKind::Header,
            last_page: None,
            last_footer: None,
            last_trailer: 0,
            commits: 0,
            sample_count: 0,
            lost: Vec::new(),
            intact_chunks: 0,
            is_finished: false,
        }
    }

    /// Whether [`CommitCheck::region`] looks at the body of regions of this kind.
    pub(super) fn needs_body(&self, kind: RegionKind) -> bool {
        match kind {
            RegionKind::Chunk => self.decoder.is_some(),
            RegionKind::IndexPage | RegionKind::Footer => true,
            RegionKind::Header | RegionKind::Table | RegionKind::Trailer => false,
        }
    }

    pub(super) fn ends_with_trailer(&self) -> bool {
        self.last_kind == RegionKind::Trailer
    }

    /// Chunks found to be missing since the last call.
    pub(super) fn take_lost(&mut self) -> Vec<LostChunk> {
        std::mem::take(&mut self.lost)
    }

    /// Checks a region whose head and body are intact. What one region says of others is checked only if the file
    /// `is_clean` so far: after a damage it would only be reported again.
    pub(super) fn region(&mut self, head: &RegionHead, body: &[u8], is_clean: bool) -> Result<()> {
        if is_clean {
            self.check_order(head)?;
        }
        self.last_kind = head.kind;
        match head.kind {
            RegionKind::Header => Ok(()),
            RegionKind::Chunk => self.chunk(head, body, is_clean),
            RegionKind::Table => self.table(head),
            RegionKind::IndexPage => self.page(head, body, is_clean),
            RegionKind::Footer => self.footer(head, body, is_clean),
            RegionKind::Trailer => self.trailer(head, is_clean),
        }
    }

    /// Takes note of a region whose body is damaged.
    pub(super) fn damaged_region(&mut self, head: &RegionHead) {
        self.last_kind = head.kind;
        if head.kind == RegionKind::Chunk
            && let Ok(chunk) = ChunkHead::parse(head, self.columns.len())
            && let Some(column) = column_mut(&mut self.columns, chunk.column)
        {
            column.chunks.push(chunk.entry);
        }
    }

    /// The column and the samples of a region, as its head says.
    pub(super) fn place_of(&self, head: &RegionHead) -> (Option<String>, Option<Range<u64>>) {
        let number = match head.kind {
            RegionKind::Chunk | RegionKind::Table | RegionKind::IndexPage => u32::from_le_bytes(head.slot4),
            _ => return (None, None),
        };
        let first = u64_at::<0, 12>(&head.slot32);
        let samples = first..first.saturating_add(u32_at::<8, 12>(&head.slot32).into());
        let samples = (head.kind == RegionKind::Chunk).then_some(samples);
        (self.name(number).map(str::to_owned), samples)
    }

    fn name(&self, number: u32) -> Option<&'a str> {
        let columns: &'a [ColumnSchema] = &self.header.schema.columns;
        Some(&columns.get(usize::try_from(number).ok()?)?.name)
    }

    ///
    fn check_order(&self, head: &RegionHead) -> Result<()> {
        use RegionKind::{Chunk, Footer, Header, IndexPage, Table, Trailer};
        let allowed = match head.kind {
            Header => false,
            Chunk | Table => matches!(self.last_kind, Header | Trailer | Chunk | Table),
            IndexPage => matches!(self.last_kind, Chunk | Table | IndexPage | Header | Trailer),
            Footer => self.last_kind != Footer,
            Trailer => self.last_kind == Footer,
        };
        if allowed {
            return Ok(());
        }
        let message = format!("a {} cannot follow a {}", head.kind, self.last_kind);
        Err(Error::corrupt("R-2.9", message).with_offset(head.offset))
    }

    fn chunk(&mut self, head: &RegionHead, body: &[u8], is_clean: bool) -> Result<()> {
        let chunk = ChunkHead::parse(head, self.columns.len())?;
        let entry = chunk.entry;
        let column = column_mut(&mut self.columns, chunk.column).ok_or_else(|| unknown_column(head))?;
        let next_sample = std::mem::replace(&mut column.next_sample, entry.samples().end);
        column.chunks.push(entry);
        if is_clean && entry.first_sample != next_sample {
            let message = format!("the chunk begins at sample {}, {next_sample} is next", entry.first_sample);
            return Err(Error::corrupt("R-4.2", message).with_offset(head.offset));
        }
        codec(entry.encoding).map_err(|error| error.with_offset(head.offset))?;
        column.facts.raw_bytes = column.facts.raw_bytes.saturating_add(chunk.raw_bytes.into());
        column.facts.stored_bytes = column.facts.stored_bytes.saturating_add(entry.stored_bytes.into());
        column.facts.chunk_count += 1;
        column.facts.count_encoding(entry.encoding, 1);
        if let Some(decoder) = &mut self.decoder {
            decode(decoder, column, &chunk, body).map_err(|error| error.with_offset(head.offset))?;
        }
        self.intact_chunks += 1;
        Ok(())
    }

    ///
    fn table(&mut self, head: &RegionHead) -> Result<()> {
        let number = u32::from_le_bytes(head.slot4);
        let table = u32_at::<0, 12>(&head.slot32);
        let reserved = u64_at::<4, 12>(&head.slot32) | u64::from_le_bytes(head.slot48);
        let column =
            column_mut(&mut self.columns, number).filter(|column| reserved == 0 && column.table_count == table);
        let column = column.ok_or_else(|| {
            let message = format!("table {table} of column number {number} cannot stand here");
            Error::corrupt("R-4.11", message).with_offset(head.offset)
        })?;
        column.table_count += 1;
        let entry = TableEntry {
            column: number,
            table,
            offset: head.offset,
            body_bytes: head.body_bytes,
            body_crc: head.body_crc,
        };
        self.tables.push(entry);
        Ok(())
    }

    ///
    fn page(&mut self, head: &RegionHead, body: &[u8], is_clean: bool) -> Result<()> {
        let page = PageHead::parse(head, self.columns.len())?;
        let entries = body.as_chunks::<ENTRY_BYTES>().0;
        if entries.first().map(|entry| parse_entry(entry).first_sample) != Some(page.first_sample) {
            let message = "the page's first sample is not that of its first entry";
            return Err(Error::corrupt("R-6.1", message).with_offset(head.offset));
        }
        if is_clean {
            self.check_page_order(&page).map_err(|error| error.with_offset(head.offset))?;
        }
        self.last_page = Some((page.column, page.entry_count));
        let name = self.name(page.column).unwrap_or_default();
        let column = column_mut(&mut self.columns, page.column).ok_or_else(|| unknown_column(head))?;
        if is_clean {
            column.start_page(&page, head.offset)?;
        }
        for bytes in entries {
            let entry = parse_entry(bytes);
            if column.chunks.get(column.listed) == Some(&entry) {
                column.listed += 1;
            } else if !is_clean
                && let Ok(at) = column.chunks.binary_search_by_key(&entry.offset, |chunk| chunk.offset)
                && column.chunks.get(at) == Some(&entry)
            {
                column.listed = at + 1; // a page before this one is damaged: its entries were not met
            } else if is_clean {
                let message = format!("an entry of the index is not the chunk it should be: {entry:?}");
                return Err(Error::corrupt("R-6.2", message).with_offset(head.offset));
            } else {
                self.lost.push(LostChunk { entry, column: name.to_owned() });
            }
        }
        Ok(())
    }

    /// columns ascend.: only the last page of a run is short.
    fn check_page_order(&self, page: &PageHead) -> Result<()> {
        let Some((column, entry_count)) = self.last_page else { return Ok(()) };
        if page.column < column {
            return Err(Error::corrupt("R-6.2", "the columns of the index do not ascend"));
        }
        if page.column == column && u64::from(entry_count) != PAGE_ENTRIES {
            return Err(Error::corrupt("R-6.3", "the page before, which is not its run's last, is not full"));
        }
        Ok(())
    }

    /// Chapter 7.1, R-9.1, R-9.2.
    fn footer(&mut self, head: &RegionHead, body: &[u8], is_clean: bool) -> Result<()> {
        let schema = &self.header.schema;
        Flags::from_slot(&head.slot32).check()?;
        let footer = Footer::parse(head, body, schema, &self.header.schema_block)?;
        let result = if is_clean { self.compare(&footer) } else { Ok(()) };
        self.last_footer = Some((head.offset, head.end()));
        self.sample_count = footer.sample_count;
        self.commits = footer.commit.saturating_add(1);
        self.flags = footer.flags;
        self.last_page = None;
        for column in &mut self.columns {
            column.chunks.clear();
            column.listed = 0;
        }
        result.map_err(|error| error.with_offset(head.offset))
    }

    fn compare(&mut self, footer: &Footer) -> Result<()> {
        if !footer.flags.contains(self.flags) {
            return Err(Error::corrupt("R-9.2", "the footer lacks flags that were set before"));
        }
        if footer.commit != self.commits || footer.sample_count < self.sample_count {
            let message = format!("commit {} follows {} others", footer.commit, self.commits);
            return Err(Error::corrupt("R-7.5", message));
        }
        self.tables.sort_by_key(|table| (table.column, table.table));
        if footer.tables != self.tables {
            return Err(Error::corrupt("R-7.4", "the footer's tables are not those of the file"));
        }
        let decoded = self.decoder.is_some();
        for ((column, found), schema) in self.columns.iter().zip(&footer.columns).zip(&self.header.schema.columns) {
            column.compare(found, decoded).map_err(|error| error.with_column(&schema.name))?;
        }
        Ok(())
    }

    ///
    fn trailer(&mut self, head: &RegionHead, is_clean: bool) -> Result<()> {
        let trailer = Trailer::parse(head)?;
        let footer = self
            .last_footer
            .filter(|&(offset, end)| offset == trailer.footer_offset && align(end, HEAD) == head.offset);
        if is_clean && (footer.is_none() || trailer.previous_trailer != self.last_trailer) {
            let message = format!("the trailer points to the wrong footer or trailer: {trailer:?}");
            return Err(Error::corrupt("R-7.7", message).with_offset(head.offset));
        }
        self.last_trailer = head.offset;
        self.is_finished = trailer.finished;
        Ok(())
    }
}

impl ColumnCheck {
    /// Begins or continues the run of this commit: for `first_chunk`.
    fn start_page(&mut self, page: &PageHead, offset: u64) -> Result<()> {
        let before = self.facts.chunk_count.saturating_sub(self.chunks.len() as u64); // exact: usize has at most 64 bits
        if page.first_chunk != before.saturating_add(self.listed as u64) {
            let message = format!("the page begins at chunk {}, which is not the next", page.first_chunk);
            return Err(Error::corrupt("R-6.2", message).with_offset(offset));
        }
        if self.listed == 0
            && let (Some(first), Some(last)) = (self.chunks.first(), self.chunks.last())
        {
            self.facts.runs.push(Run {
                offset,
                first_sample: first.first_sample,
                sample_count: last.samples().end.saturating_sub(first.first_sample),
                chunk_count: self.chunks.len() as u64, // exact: usize has at most 64 bits
                samples_per_chunk: samples_per_chunk(self.chunks.iter().map(|entry| entry.sample_count)),
            });
        }
        Ok(())
    }

    /// every chunk is listed.: the facts are true.
    fn compare(&self, found: &ColumnFacts, decoded: bool) -> Result<()> {
        if self.listed != self.chunks.len() {
            let message =
                format!("{} of {} chunks are not in the index", self.chunks.len() - self.listed, self.chunks.len());
            return Err(Error::corrupt("R-6.2", message));
        }
        let mut due = self.facts.clone();
        due.cast = found.cast;
        if !decoded {
            due.null_count = found.null_count;
            let found_only = found.encodings.iter().filter(|&&(id, chunks)| chunks == 0 && due.encoding(id).is_none());
            let side: Vec<u16> = found_only.map(|&(id, _)| id).collect(); // seen only in the parts that were not decoded
            side.into_iter().for_each(|id| due.count_encoding(id, 0));
        }
        if *found == due {
            return Ok(());
        }
        let message = format!("the footer's facts are not those of the file: {found:?}, not {due:?}");
        Err(Error::corrupt("R-7.4", message))
    }
}

/// and chapter 5.
fn decode(decoder: &mut ChunkDecoder, column: &mut ColumnCheck, chunk: &ChunkHead, body: &[u8]) -> Result<()> {
    decoder.load(&column.layout, chunk, body)?;
    let table = parts(&column.layout, chunk, body)?;
    if chunk.entry.has_parts() && !table.padding_is_zero(body) {
        return Err(Error::corrupt("R-4.4", "the bytes between the parts of the chunk are not zero"));
    }
    for part in [table.validity, table.shape] {
        if !part.is_absent() {
            column.facts.count_encoding(part.encoding, 0);
        }
    }
    let content = decoder.content(body);
    content.check(&column.layout)?;
    column.facts.null_count += content.null_count() as u64; // exact: usize has at most 64 bits
    Ok(())
}

fn column_mut(columns: &mut [ColumnCheck], number: u32) -> Option<&mut ColumnCheck> {
    columns.get_mut(usize::try_from(number).ok()?)
}

fn unknown_column(head: &RegionHead) -> Error {
    Error::corrupt("R-4.1", "there is no such column").with_offset(head.offset)
}

impl LostChunk {
    /// Names column and samples in the report of the bytes where the chunk stood.
    pub(super) fn report(self, damages: &mut Vec<Damage>, unnamed: &[usize]) {
        let Self { entry, column } = self;
        let place = align(entry.offset, HEAD);
        // `unnamed` ascends: the walk does
        let after =
            unnamed.partition_point(|&at| damages.get(at).is_some_and(|damage| damage.file_range.start <= place));
        let at = after.checked_sub(1).and_then(|last| unnamed.get(last)).copied();
        let damage = at.and_then(|at| damages.get_mut(at));
        if let Some(damage) = damage.filter(|d| d.samples.is_none() && d.file_range.contains(&place)) {
            damage.region = Some(RegionKind::Chunk);
            damage.column = Some(column);
            damage.samples = Some(entry.samples());
            return;
        }
        let stored = u64::from(entry.stored_bytes.min(limits::CHUNK_BYTES));
        let error = Error::corrupt("R-6.2", "a chunk that the index lists is not there").with_offset(entry.offset);
        damages.push(Damage {
            file_range: entry.offset..entry.offset.saturating_add(HEAD).saturating_add(stored),
            region: Some(RegionKind::Chunk),
            column: Some(column),
            samples: Some(entry.samples()),
            error,
        });
    }
}
