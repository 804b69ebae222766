//! Chapter 7: footer and trailer.

use super::Flags;
use super::content_id::{ContentHasher, ContentId};
use super::index::Run;
use super::region::{FileId, HEAD_BYTES, RegionHead, RegionKind};
use super::schema::Schema;
use crate::cast::CastFacts;
use crate::le::{Fields, put, u32_at, u64_at};
use crate::{Error, Result, limits, memory};

/// What the footer says of one column.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ColumnFacts {
    pub raw_bytes: u64,
    pub stored_bytes: u64,
    pub null_count: u64,
    pub chunk_count: u64,
    /// Encoding id and number of chunks, ascending by id.
    pub encodings: Vec<(u16, u64)>,
    pub runs: Vec<Run>,
    pub cast: Option<CastFacts>,
}

/// Where a table is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TableEntry {
    pub column: u32,
    pub table: u32,
    pub offset: u64,
    pub body_bytes: u32,
    pub body_crc: u32,
}

/// What the footer says.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Footer {
    pub content_id: ContentId,
    pub commit: u32,
    pub flags: Flags,
    pub sample_count: u64,
    pub tables: Vec<TableEntry>,
    pub columns: Vec<ColumnFacts>,
}

impl Footer {
    /// Sets the content id and returns head and body for a footer at `offset`. `content` has hashed
    /// the index pages of the commit.
    pub(crate) fn seal(
        &mut self,
        file_id: FileId,
        offset: u64,
        schema_block: &[u8],
        content: ContentHasher,
    ) -> Result<([u8; HEAD_BYTES], Vec<u8>)> {
        let mut body = vec![0; CONTENT_ID_BYTES];
        put_count(&mut body, schema_block.len());
        body.extend(schema_block);
        put_count(&mut body, self.tables.len());
        for table in &self.tables {
            body.extend(table.column.to_le_bytes());
            body.extend(table.table.to_le_bytes());
            body.extend(table.offset.to_le_bytes());
            body.extend(table.body_bytes.to_le_bytes());
            body.extend(table.body_crc.to_le_bytes());
        }
        for column in &self.columns {
            put_column(&mut body, column);
        }
        if let Some((id, rest)) = body.split_first_chunk_mut::<CONTENT_ID_BYTES>() {
            self.content_id = content.finish(rest);
            *id = self.content_id.0;
        }
        let mut head = RegionHead::new(RegionKind::Footer, file_id, offset, &body)?;
        head.slot4 = self.commit.to_le_bytes();
        head.slot32 = self.flags.to_slot();
        head.slot48 = self.sample_count.to_le_bytes();
        Ok((head.to_bytes(), body))
    }

    /// Parses the footer of a file with this schema: and the ascending orders of. Head and checksum are checked before.
    pub(crate) fn parse(head: &RegionHead, body: &[u8], schema: &Schema, schema_block: &[u8]) -> Result<Self> {
        Self::parse_body(head, body, schema, schema_block).map_err(|error| error.with_offset(head.offset))
    }

    /// The schema block in the body of a footer.
    pub(crate) fn schema_block(body: &[u8]) -> Result<&[u8]> {
        let (_, rest) = Self::split_content_id(body)?;
        let fields = &mut Fields::new(rest);
        let length = fields.u32().and_then(|n| usize::try_from(n).ok()).ok_or_else(short)?;
        fields.bytes(length).ok_or_else(short)
    }

    /// Splits the body of a footer into the content id and the bytes after it. Whether the id is
    /// right only a verifier can tell.
    pub(crate) fn split_content_id(body: &[u8]) -> Result<(ContentId, &[u8])> {
        let (id, rest) = body.split_first_chunk().ok_or_else(short)?;
        Ok((ContentId(*id), rest))
    }

    fn parse_body(head: &RegionHead, body: &[u8], schema: &Schema, schema_block: &[u8]) -> Result<Self> {
        let (content_id, rest) = Self::split_content_id(body)?;
        let fields = &mut Fields::new(rest);
        let schema_bytes = fields.u32().and_then(|n| usize::try_from(n).ok()).ok_or_else(short)?;
        if fields.bytes(schema_bytes).ok_or_else(short)? != schema_block {
            return Err(Error::corrupt("R-7.1", "the schema in the footer is not that of the header"));
        }
        let tables = tables(fields)?;
        let sample_count = u64::from_le_bytes(head.slot48);
        if sample_count > limits::SAMPLES {
            return Err(Error::corrupt("R-7.5", format!("{sample_count} samples")));
        }
        let commit = u32::from_le_bytes(head.slot4);
        if usize::try_from(commit).map_or(true, |commit| commit >= limits::RUNS) {
            return Err(Error::corrupt("R-7.5", format!("commit number {commit}")));
        }
        let mut columns = memory::with_capacity(schema.columns.len())?;
        for column in &schema.columns {
            let facts = column_facts(fields, column.cast.is_some())
                .and_then(|facts| facts.check(sample_count, head.offset).map(|()| facts))
                .map_err(|error| error.with_column(&column.name))?;
            columns.push(facts);
        }
        check_pages(&columns)?;
        if fields.remaining() != 0 {
            let message = format!("{} bytes after the end of the footer", fields.remaining());
            return Err(Error::corrupt("R-7.2", message));
        }
        Ok(Self { content_id, commit, flags: Flags::from_slot(&head.slot32), sample_count, tables, columns })
    }
}

/// Length of the field that a footer's body begins with.
const CONTENT_ID_BYTES: usize = 16;

fn put_count(out: &mut Vec<u8>, count: usize) {
    // counts of valid files are bounded far below 2^32; a body that is too long is refused by its limit
    out.extend(u32::try_from(count).unwrap_or(u32::MAX).to_le_bytes());
}

fn put_column(out: &mut Vec<u8>, facts: &ColumnFacts) {
    for field in [facts.raw_bytes, facts.stored_bytes, facts.null_count, facts.chunk_count] {
        out.extend(field.to_le_bytes());
    }
    put_count(out, facts.runs.len());
    let encoding_count = u16::try_from(facts.encodings.len()).unwrap_or(u16::MAX); // ids are u16, few are assigned
    out.extend(encoding_count.to_le_bytes());
    out.extend([0; 2]);
    for (id, chunks) in &facts.encodings {
        out.extend(id.to_le_bytes());
        out.extend([0; 6]);
        out.extend(chunks.to_le_bytes());
    }
    for run in &facts.runs {
        for field in [run.offset, run.first_sample, run.sample_count, run.chunk_count] {
            out.extend(field.to_le_bytes());
        }
        out.extend(run.samples_per_chunk.to_le_bytes());
        out.extend([0; 4]);
    }
    if let Some(cast) = facts.cast {
        out.extend(cast.max_abs_error.to_le_bytes());
        out.extend(cast.max_rel_error.to_le_bytes());
        out.extend(cast.to_infinite.to_le_bytes());
        out.extend(cast.to_subnormal.to_le_bytes());
    }
}

fn short() -> Error {
    Error::corrupt("R-7.2", "the footer ends within a field")
}

fn malformed(what: &str) -> Error {
    Error::corrupt("R-7.2", format!("the footer is malformed: {what}"))
}

fn tables(fields: &mut Fields) -> Result<Vec<TableEntry>> {
    let count = fields.u32().and_then(|n| usize::try_from(n).ok()).ok_or_else(short)?;
    if count > limits::TABLES {
        return Err(malformed("too many tables"));
    }
    let mut tables = memory::with_capacity(count.min(fields.remaining() / 24))?;
    for _ in 0..count {
        tables.push(table(fields).ok_or_else(short)?);
    }
    if !tables.is_sorted_by(|a, b| (a.column, a.table) < (b.column, b.table)) {
        return Err(Error::corrupt("R-7.4", "the footer's tables do not ascend"));
    }
    Ok(tables)
}

fn table(fields: &mut Fields) -> Option<TableEntry> {
    Some(TableEntry {
        column: fields.u32()?,
        table: fields.u32()?,
        offset: fields.u64()?,
        body_bytes: fields.u32()?,
        body_crc: fields.u32()?,
    })
}

fn column_facts(fields: &mut Fields, has_cast: bool) -> Result<ColumnFacts> {
    let [raw_bytes, stored_bytes, null_count, chunk_count] = four(fields).ok_or_else(short)?;
    let run_count = fields.u32().and_then(|n| usize::try_from(n).ok()).ok_or_else(short)?;
    let encoding_count = fields.u16().map(usize::from).ok_or_else(short)?;
    if fields.u16().ok_or_else(short)? != 0 {
        return Err(malformed("reserved bytes are set"));
    }
    if run_count > limits::RUNS {
        return Err(malformed("too many runs"));
    }
    let mut encodings = memory::with_capacity(encoding_count.min(fields.remaining() / 16))?;
    for _ in 0..encoding_count {
        encodings.push(encoding(fields)?);
    }
    if !encodings.is_sorted_by(|a, b| a.0 < b.0) {
        return Err(Error::corrupt("R-7.4", "the footer's encodings do not ascend"));
    }
    let mut runs = memory::with_capacity(run_count.min(fields.remaining() / 40))?;
    for _ in 0..run_count {
        runs.push(run(fields)?);
    }
    let cast = if has_cast { Some(cast_facts(fields)?) } else { None };
    Ok(ColumnFacts { raw_bytes, stored_bytes, null_count, chunk_count, encodings, runs, cast })
}

fn four(fields: &mut Fields) -> Option<[u64; 4]> {
    Some([fields.u64()?, fields.u64()?, fields.u64()?, fields.u64()?])
}

fn encoding(fields: &mut Fields) -> Result<(u16, u64)> {
    let id = fields.u16().ok_or_else(short)?;
    if fields.array().ok_or_else(short)? != [0; 6] {
        return Err(malformed("reserved bytes are set"));
    }
    Ok((id, fields.u64().ok_or_else(short)?))
}

fn run(fields: &mut Fields) -> Result<Run> {
    let [offset, first_sample, sample_count, chunk_count] = four(fields).ok_or_else(short)?;
    let samples_per_chunk = fields.u32().ok_or_else(short)?;
    if fields.u32().ok_or_else(short)? != 0 {
        return Err(malformed("reserved bytes are set"));
    }
    Ok(Run { offset, first_sample, sample_count, chunk_count, samples_per_chunk })
}

fn cast_facts(fields: &mut Fields) -> Result<CastFacts> {
    let facts = read_cast_facts(fields).ok_or_else(short)?;
    let errors = [facts.max_abs_error, facts.max_rel_error];
    if errors.iter().any(|error| error.is_nan() || error.is_sign_negative()) {
        return Err(Error::corrupt("R-7.4", "an error of a cast is negative or not a number"));
    }
    Ok(facts)
}

fn read_cast_facts(fields: &mut Fields) -> Option<CastFacts> {
    Some(CastFacts {
        max_abs_error: fields.f64()?,
        max_rel_error: fields.f64()?,
        to_infinite: fields.u64()?,
        to_subnormal: fields.u64()?,
    })
}

impl ColumnFacts {
    /// Takes note of an encoding, and of `chunks` more chunks whose values have it.
    pub(crate) fn count_encoding(&mut self, id: u16, chunks: u64) {
        match self.encodings.binary_search_by_key(&id, |&(id, _)| id) {
            Ok(at) => {
                if let Some((_, count)) = self.encodings.get_mut(at) {
                    *count = count.saturating_add(chunks);
                }
            }
            Err(at) => self.encodings.insert(at, (id, chunks)),
        }
    }

    /// The number of chunks noted for an encoding.
    pub(crate) fn encoding(&self, id: u16) -> Option<u64> {
        self.encodings.iter().find(|&&(found, _)| found == id).map(|&(_, chunks)| chunks)
    }

    /// of one column: the runs cover samples and chunks without gap, and lie before the
    /// footer.
    fn check(&self, sample_count: u64, footer_offset: u64) -> Result<()> {
        let (mut samples, mut chunks) = (0_u64, 0_u64);
        for run in &self.runs {
            let per_chunk = u64::from(run.samples_per_chunk);
            let uniform = per_chunk == 0 || run.chunk_count == run.sample_count.div_ceil(per_chunk);
            if run.first_sample != samples
                || run.chunk_count == 0
                || run.sample_count < run.chunk_count
                || run.sample_count.div_ceil(u64::from(limits::CHUNK_SAMPLES)) > run.chunk_count
                || run.samples_per_chunk > limits::CHUNK_SAMPLES
                || run.end() > footer_offset
                || !uniform
            {
                return Err(Error::corrupt("R-7.3", format!("a run of the index cannot be: {run:?}")));
            }
            samples = run.end_sample();
            chunks = chunks.saturating_add(run.chunk_count);
        }
        if samples != sample_count || chunks != self.chunk_count {
            let message = format!(
                "the index covers {samples} samples in {chunks} chunks; the footer says {sample_count} in {}",
                self.chunk_count
            );
            return Err(Error::corrupt("R-7.3", message));
        }
        Ok(())
    }
}

/// of all columns: the pages of any two runs do not overlap. Takes 16 bytes for each run,
/// which has 40 in the footer.
fn check_pages(columns: &[ColumnFacts]) -> Result<()> {
    let runs = || columns.iter().flat_map(|facts| &facts.runs);
    let mut pages = memory::with_capacity(runs().count())?;
    pages.extend(runs().map(|run| (run.offset, run.end())));
    pages.sort_unstable();
    let overlap = pages.iter().zip(pages.iter().skip(1)).find(|((_, end), (next, _))| end > next);
    let Some(((one, _), (other, _))) = overlap else { return Ok(()) };
    Err(Error::corrupt("R-7.3", format!("the index pages of two runs, at {one} and at {other}, overlap")))
}

/// What the trailer says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Trailer {
    pub finished: bool,
    pub footer_offset: u64,
    pub previous_trailer: u64,
}

const FINISHED: u32 = 1;

impl Trailer {
    /// The trailer as it stands at `offset`.
    pub(crate) fn to_bytes(self, file_id: FileId, offset: u64) -> Result<[u8; HEAD_BYTES]> {
        let mut head = RegionHead::new(RegionKind::Trailer, file_id, offset, &[])?;
        head.slot4 = if self.finished { FINISHED } else { 0 }.to_le_bytes();
        put::<0, 8, 12>(&mut head.slot32, self.footer_offset.to_le_bytes());
        head.slot48 = self.previous_trailer.to_le_bytes();
        Ok(head.to_bytes())
    }

    /// but for the places it names, of a region that is known to be a trailer.
    pub(crate) fn parse(head: &RegionHead) -> Result<Self> {
        let flags = u32::from_le_bytes(head.slot4);
        let reserved = u32_at::<8, 12>(&head.slot32);
        if flags & !FINISHED != 0 || reserved != 0 || head.body_crc != 0 {
            return Err(Error::corrupt("R-7.7", "reserved bits of the trailer are set").with_offset(head.offset));
        }
        Ok(Self {
            finished: flags & FINISHED != 0,
            footer_offset: u64_at::<0, 12>(&head.slot32),
            previous_trailer: u64::from_le_bytes(head.slot48),
        })
    }
}
