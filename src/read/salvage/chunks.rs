//! Collects the readable chunks and the lost samples of each column of a damaged file.
//!
//! This is the last step of a salvage. It visits the regions in file order and decides for each
//! chunk:
//!
//! 1. A chunk counts as lost if the evidence (the index and the footers) or its neighbors
//!    contradict it.
//! 2. A chunk also counts as lost if it starts before the end of the last chunk that was accepted
//!    for its column. So the chunks of a column are always in ascending order, as in an index.
//! 3. An intact chunk is accepted. So is a chunk whose body is damaged, if its values are divided
//!    into blocks. The block index shows which blocks are intact, and only the samples with a byte
//!    in a damaged block are lost.
//! 4. If nothing confirms an accepted chunk, its samples are also listed as unconfirmed.
//!
//! Samples in no chunk are lost, so the sample count must be known. It is the largest count that an
//! index page, a footer or a chunk implies. An implausible region, such as one that states more
//! samples than the file can contain, is ignored.

use super::evidence::{Evidence, Verdict};
use super::links::Foreign;
use super::scan::{Identity, Region, ScanProgress};
use crate::bytes::le::u64_of;
use crate::bytes::memory;
use crate::codec::{self, Body, ChunkDecoder, DamagedChunk, SideFacts, StoredChunk, Tables, ZstdDictionary, parts};
use crate::format::ColumnSchema;
use crate::format::chunk::{ChunkEntry, ChunkHeader};
use crate::format::column_record::ColumnRecord;
use crate::format::footer::{Footer, TableHeader, Trailer};
use crate::format::index::{ENTRY_BYTES, PageHeader, parse_entry};
use crate::format::region::{FileId, HEADER_LEN, RegionHeader, RegionKind};
use crate::format::schema::Layout;
use crate::open::source::{Source, fetch};
use crate::open::{TableSlot, body, missing_table};
use crate::{Error, ErrorKind, Result, limits};
use std::ops::Range;
use std::sync::Arc;

/// The readable chunks of a column.
pub(super) struct SalvagedColumn {
    pub layout: Layout,
    pub facts: ColumnRecord,
    pub entries: Vec<ChunkEntry>,
    /// The lost samples in these chunks.
    pub lost: Vec<Range<u64>>,
    /// The samples in chunks that nothing confirms.
    pub unconfirmed: Vec<Range<u64>>,
    /// The intact tables, in file order.
    pub tables: Vec<TableSlot>,
}

impl SalvagedColumn {
    /// Returns a column without chunks.
    pub(super) fn empty(column: &ColumnSchema) -> Result<Self> {
        let (facts, entries, tables) = (ColumnRecord::default(), Vec::new(), Vec::new());
        let (lost, unconfirmed) = (Vec::new(), Vec::new());
        Ok(Self { layout: column.layout()?, facts, entries, lost, unconfirmed, tables })
    }

    /// Adds a chunk whose header and body are intact. Fails if its parts are invalid. `body` is
    /// empty if none of it is needed.
    fn add(
        &mut self,
        file: SalvagedFile<'_>,
        header: &ChunkHeader,
        body: &[u8],
        decoder: &mut ChunkDecoder,
        decode: bool,
    ) -> Result<()> {
        let parts = parts(&self.layout, header, body)?;
        for part in [parts.validity, parts.shape, parts.values] {
            // an unknown encoding must be an error, because a file of a newer release is not
            // damaged
            codec::known(part.encoding)?;
        }
        let tables = IntactTables { file, tables: &self.tables };
        let chunk = StoredChunk { layout: &self.layout, tables: &tables, header, body: Body::whole(body) };
        let side = if decode { decoder.check(&chunk)? } else { decoder.side_facts(&chunk)? };
        self.count(header, &side);
        Ok(())
    }

    /// Adds a chunk whose header is intact and whose body is damaged. Fails if none of it is
    /// usable.
    fn add_damaged(
        &mut self,
        file: SalvagedFile<'_>,
        header: &ChunkHeader,
        body: &[u8],
        decoder: &mut ChunkDecoder,
        decode: bool,
    ) -> Result<()> {
        let tables = IntactTables { file, tables: &self.tables };
        let chunk = StoredChunk { layout: &self.layout, tables: &tables, header, body: Body::whole(body) };
        let damaged = DamagedChunk::examine(&chunk, decode, decoder)?;
        let mut side = decoder.side_facts(&chunk)?;
        side.null_count = side.null_count.saturating_sub(damaged.lost_nulls);
        memory::reserve(&mut self.lost, damaged.lost.len())?;
        let sample = |at: usize| header.entry.first_sample.saturating_add(u64_of(at));
        self.lost.extend(damaged.lost.iter().map(|lost| sample(lost.start)..sample(lost.end)));
        self.count(header, &side);
        Ok(())
    }

    /// Adds a chunk that is at least partly readable to the entries and the facts.
    fn count(&mut self, header: &ChunkHeader, side: &SideFacts) {
        let (facts, entry) = (&mut self.facts, &header.entry);
        side.encodings.into_iter().flatten().for_each(|id| facts.count_encoding(id, 0));
        facts.count_encoding(entry.encoding, 1);
        facts.raw_bytes = facts.raw_bytes.saturating_add(header.raw_bytes.into());
        facts.stored_bytes = facts.stored_bytes.saturating_add(entry.stored_bytes.into());
        facts.null_count = facts.null_count.saturating_add(side.null_count);
        facts.chunk_count = facts.chunk_count.saturating_add(1);
        self.entries.push(*entry);
    }
}

/// What the regions of a file contain.
pub(super) struct SalvagedContent {
    pub columns: Vec<SalvagedColumn>,
    /// The largest sample count that any intact region implies.
    pub sample_count: u64,
    /// The footer to trust: the last footer of the chain of confirmed commits ([`Evidence`]), or
    /// the last intact footer if there is no chain.
    pub footer: Option<Footer>,
    /// The offset of the last intact footer, and its sample count.
    pub last_footer: Option<(u64, u64)>,
    /// Whether the end of the file is known, so that no samples can be missing there.
    pub end_is_known: bool,
}

impl SalvagedContent {
    /// Sets the sample count, if it is known. Fails if more samples were found.
    pub(super) fn end_at(&mut self, sample_count: u64) -> Result<()> {
        let found = self.sample_count;
        if found > sample_count {
            let message =
                format!("expected at most {sample_count} samples, found {found}: this is not the expected file");
            return Err(Error::corrupt("R-7.3", message));
        }
        self.sample_count = sample_count;
        self.end_is_known = true;
        Ok(())
    }
}

/// Collects the chunks that neither the evidence nor their neighbors contradict, in file order. If
/// `decode` is set, omits chunks that do not decode.
pub(super) fn collect(
    source: &dyn Source,
    identity: &Identity,
    (evidence, foreign): (&Evidence, &Foreign),
    regions: &[&Region],
    decode: bool,
    progress: &mut ScanProgress<'_>,
) -> Result<SalvagedContent> {
    let columns = identity.schema.columns.iter().map(SalvagedColumn::empty).collect::<Result<_>>()?;
    let found = SalvagedContent { columns, sample_count: 0, footer: None, last_footer: None, end_is_known: false };
    let (decoder, buffer) = (ChunkDecoder::new(), Vec::new());
    let mut collector = Collector { source, identity, evidence, foreign, found, decoder, decode, buffer };
    for region in regions {
        match collector.region(region) {
            Err(error) if error.kind() != ErrorKind::Corrupt => return Err(error.with_offset(region.header.offset)),
            _ => {} // damage: the samples are lost
        }
        progress.collected(&region.header)?;
    }
    Ok(collector.found)
}

struct Collector<'a> {
    source: &'a dyn Source,
    identity: &'a Identity,
    evidence: &'a Evidence,
    foreign: &'a Foreign,
    found: SalvagedContent,
    decoder: ChunkDecoder,
    decode: bool,
    buffer: Vec<u8>,
}

impl Collector<'_> {
    fn region(&mut self, region: &Region) -> Result<()> {
        let header = &region.header;
        self.found.end_is_known = false;
        if self.foreign.contains(header.offset) {
            return self.foreign_region(header);
        }
        match header.kind {
            RegionKind::Chunk => self.chunk(header, region.is_intact),
            _ if !region.is_intact => Ok(()),
            RegionKind::IndexPage => self.page(header),
            RegionKind::Footer => self.footer(header),
            RegionKind::Trailer => self.trailer(header),
            RegionKind::Table => self.table(header),
            RegionKind::FileHeader => Ok(()),
        }
    }

    /// Counts the samples of a foreign chunk if it has replaced a chunk of this file, because the
    /// samples of the replaced chunk are lost.
    fn foreign_region(&mut self, header: &RegionHeader) -> Result<()> {
        if header.kind == RegionKind::Chunk && self.foreign.is_loss(header.offset) {
            let chunk = ChunkHeader::parse(header, self.found.columns.len())?;
            self.count_samples(chunk.entry.samples().end, header)?;
        }
        Err(Error::corrupt("R-2.10", "the neighbors of the region contradict it"))
    }

    fn chunk(&mut self, header: &RegionHeader, is_intact: bool) -> Result<()> {
        let chunk = ChunkHeader::parse(header, self.found.columns.len())?;
        let verdict = self.evidence.judge(&chunk);
        if verdict == Verdict::Contradicted {
            return Err(Error::corrupt("R-6.2", "the index does not agree with the chunk"));
        }
        self.count_samples(chunk.entry.samples().end, header)?;
        let column = usize::try_from(chunk.column).ok().and_then(|column| self.found.columns.get_mut(column));
        // if the values of a damaged chunk are divided into blocks, the intact blocks can be read
        let is_in_blocks = || codec::encoding(chunk.entry.encoding).is_ok_and(|encoding| encoding.is_in_blocks());
        let Some(column) = column.filter(|_| is_intact || is_in_blocks()) else { return Ok(()) };
        let next = column.entries.last().map_or(0, |entry| entry.samples().end);
        if chunk.entry.first_sample < next {
            return Err(Error::corrupt("R-4.2", "the chunk contains samples of an earlier chunk"));
        }
        let needs_body = self.decode
            || !is_intact
            || chunk.entry.has_parts()
            || codec::encoding(chunk.entry.encoding).is_ok_and(|encoding| encoding.needs_table());
        let length = if needs_body { chunk.entry.stored_bytes } else { 0 };
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        let body = match fetch(self.source, header.body_offset(), length, &mut self.buffer) {
            // as in the first pass, unreadable bytes count as damage
            Err(error) if !is_intact && error.kind() == ErrorKind::Io => return Ok(()),
            body => body?,
        };
        let file = SalvagedFile { source: self.source, file_id: self.identity.file_id };
        match is_intact {
            true => column.add(file, &chunk, body, &mut self.decoder, self.decode)?,
            false => column.add_damaged(file, &chunk, body, &mut self.decoder, self.decode)?,
        }
        if verdict == Verdict::Unconfirmed {
            memory::reserve(&mut column.unconfirmed, 1)?;
            column.unconfirmed.push(chunk.entry.samples());
        }
        Ok(())
    }

    fn table(&mut self, header: &RegionHeader) -> Result<()> {
        let table = TableHeader::parse(header)?;
        let column = usize::try_from(table.column).ok().and_then(|column| self.found.columns.get_mut(column));
        if let Some(column) = column
            && usize::try_from(table.table).is_ok_and(|number| number < limits::TABLES)
            && column.tables.last().is_none_or(|last| last.entry.table < table.table)
            && self.evidence.allows(&table.entry(header))
        {
            column.tables.push(TableSlot::new(table.entry(header)));
        }
        Ok(())
    }

    /// Counts the samples that a page lists, because the footer and the chunks can be damaged.
    fn page(&mut self, header: &RegionHeader) -> Result<()> {
        if self.evidence.knows_samples_at(header.offset) {
            return Ok(());
        }
        PageHeader::parse(header, self.found.columns.len())?;
        let entries = body(self.source, header)?;
        let last = entries.as_chunks::<ENTRY_BYTES>().0.last().map(parse_entry);
        last.map_or(Ok(()), |last| self.count_samples(last.samples().end, header))
    }

    fn footer(&mut self, header: &RegionHeader) -> Result<()> {
        if self.evidence.knows_samples_at(header.offset) {
            return Ok(());
        }
        let body = body(self.source, header)?;
        let footer = Footer::parse(header, &body, &self.identity.schema, &self.identity.schema_block)?;
        // the index bounds this count
        self.found.sample_count = self.found.sample_count.max(footer.sample_count);
        self.found.last_footer = Some((header.offset, footer.sample_count));
        if self.evidence.may_trust_footer_at(header.offset) {
            self.found.footer = Some(footer);
        }
        Ok(())
    }

    fn trailer(&mut self, header: &RegionHeader) -> Result<()> {
        let trailer = Trailer::parse(header)?;
        self.found.end_is_known =
            trailer.finished && self.found.last_footer == Some((trailer.footer_offset, self.found.sample_count));
        Ok(())
    }

    /// Raises the sample count to `end`. Fails if the chunks before this region cannot contain that
    /// many samples: each chunk takes at least the length of a header.
    fn count_samples(&mut self, end: u64, header: &RegionHeader) -> Result<()> {
        if end > (header.offset / HEADER_LEN).saturating_mul(limits::CHUNK_SAMPLES.into()) {
            return Err(Error::corrupt("R-4.1", "the region implies more samples than the file can contain"));
        }
        self.found.sample_count = self.found.sample_count.max(end);
        Ok(())
    }
}

/// The file from which tables are read.
#[derive(Clone, Copy)]
struct SalvagedFile<'a> {
    source: &'a dyn Source,
    file_id: FileId,
}

/// The intact tables of a column that precede a chunk.
struct IntactTables<'a> {
    file: SalvagedFile<'a>,
    tables: &'a [TableSlot],
}

impl Tables for IntactTables<'_> {
    fn zstd_dictionary(&self, table: u32) -> Result<Arc<ZstdDictionary>> {
        let found = self.tables.binary_search_by_key(&table, |slot| slot.entry.table).ok();
        let slot = found.and_then(|at| self.tables.get(at)).ok_or_else(|| missing_table(table))?;
        slot.zstd_dictionary(self.file.source, self.file.file_id)
    }
}
