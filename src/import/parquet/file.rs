//! A Parquet file as a source of record batches.
//!
//! When a file is opened, its metadata ([`footer`], [`schema`]) and row counts are checked and
//! corrected. A pass reads one row group after another. It checks the page headers of a row group
//! ([`pages`]) before the decoder reads them, and restarts the decoder if batches should get a
//! different number of rows ([`BatchRows`]).

use super::batch_rows::BatchRows;
use super::footer::{ReadableFooter, readable};
use super::leaf_nulls::LeafNulls;
use super::schema::{decodable, encrypted_footer, malformed};
use super::{footer, pages, schema};
use crate::bytes::le::u64_of;
use crate::error::Advice;
use crate::import::arrow::paths::ColumnPath;
use crate::import::arrow::records::{ArrowSource, CatchPanic, RecordBatches, Records};
use crate::import::arrow::schema_bytes::without_filler;
use crate::import::arrow::types::{ENCRYPTED, INT96};
use crate::import::input::file::{InputFile, InputReader};
use crate::import::source::{PassRows, catch_panic};
use crate::logical::arrow_type::null_bytes;
use crate::{Error, Result, limits};
use ::parquet::arrow::ProjectionMask;
use ::parquet::arrow::arrow_reader::{ArrowReaderMetadata, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder};
use ::parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData, ParquetMetaDataReader, RowGroupMetaData};
use arrow_array::RecordBatch;
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// The maximum total size, in bytes, of the pages of a row group that are prefetched from a store.
/// The pages stay in memory until they are decoded.
const MAX_PREFETCH_BYTES: u64 = 128 << 20;

/// Opens a Parquet file. Also returns the footer, from which the id of the output file is derived.
pub(in crate::import) fn open(file: &Arc<InputFile>) -> Result<(ArrowSource<ParquetFile>, Vec<u8>)> {
    let mut reader = file.reader()?;
    let footer = read_footer(&mut reader).map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => Error::bad_input("the Parquet file is truncated: it ends before its footer"),
        _ => file.io("reading the footer", error),
    })?;
    let thrift = check_end(&footer)?;
    footer::check(thrift)?;
    let ReadableFooter { bytes, dropped: of_footer } = readable(thrift);
    let metadata = ParquetMetaDataReader::decode_metadata(&bytes).and_then(decodable);
    let metadata = metadata.map_err(malformed)?;
    drop(bytes);
    let row_count = check_rows(metadata.metadata(), reader.byte_count())?;
    let metadata = schema::repaired(metadata, row_count, &reader)?;
    let metadata = schema::with_readable_dictionaries(metadata)?;
    let encrypted = footer::encrypted(thrift);
    let (schema, metadata) = schema::exact_schema(metadata, &encrypted).map_err(malformed)?;
    let (schema, mut dropped) = without_filler(Arc::unwrap_or_clone(schema));
    dropped.extend(of_footer);
    let nulls = LeafNulls::of(metadata.metadata(), metadata.schema());
    let records = ParquetFile { input: Arc::clone(file), metadata, nulls, row_count };
    Ok((ArrowSource::new(&schema, records)?.with_dropped(dropped), footer))
}

/// Returns the metadata in a footer, without its length and the magic bytes.
fn check_end(footer: &[u8]) -> Result<&[u8]> {
    match footer.split_last_chunk::<4>() {
        Some((rest, b"PAR1")) => Ok(rest.get(8..rest.len().saturating_sub(4)).unwrap_or(&[])),
        Some((_, b"PARE")) => Err(encrypted_footer()),
        _ => Err(Error::bad_input(
            "the Parquet file is truncated: it starts with PAR1 but does not end with it; copy it again",
        )),
    }
}

/// Returns the number of rows. Checks offsets, lengths and row counts, on which the decoder relies.
fn check_rows(metadata: &ParquetMetaData, file_bytes: u64) -> Result<u64> {
    let malformed_file = |what: &str| Error::bad_input(format!("the Parquet file is malformed: {what}"));
    let mut row_count = 0_u64;
    for group in metadata.row_groups() {
        let rows =
            u64::try_from(group.num_rows()).map_err(|_| malformed_file("a row group has a negative number of rows"))?;
        row_count = row_count.saturating_add(rows);
        for column in group.columns() {
            let name = column.column_path();
            let [start, bytes] = [first_page_offset(column), column.compressed_size()].map(u64::try_from);
            let end = start.ok().zip(bytes.ok()).and_then(|(start, bytes)| start.checked_add(bytes));
            if end.is_none_or(|end| end > file_bytes) {
                return Err(malformed_file(&format!("the pages of column {name} lie outside the file")));
            }
            let max_rows = bytes.map_or(0, max_values);
            if rows > max_rows {
                let message =
                    format!("a row group has {rows} rows, but the pages of column {name} can hold at most {max_rows}");
                return Err(malformed_file(&message));
            }
            if column.column_descr().max_rep_level() == 0 && column.num_values() != group.num_rows() {
                let message = format!("column {name} has {} values in a row group of {rows} rows", column.num_values());
                return Err(malformed_file(&message));
            }
        }
    }
    // 0 is a mistake of an early writer, which is corrected later
    let stated_rows = metadata.file_metadata().num_rows();
    if stated_rows != 0 && Ok(row_count) != u64::try_from(stated_rows) {
        return Err(malformed_file("the number of rows in its row groups differs from the number in its footer"));
    }
    Ok(row_count)
}

/// Returns the maximum number of values in pages with this total size. A page header states the
/// number of values as an i32. It also has the lengths and encodings of the page, so it is never
/// shorter than 16 bytes.
fn max_values(bytes: u64) -> u64 {
    const MIN_HEADER_BYTES: u64 = 16;
    (bytes / MIN_HEADER_BYTES).saturating_add(1).saturating_mul(i32::MAX.unsigned_abs().into())
}

/// Returns the offset of the first page of a column.
fn first_page_offset(column: &ColumnChunkMetaData) -> i64 {
    column.dictionary_page_offset().unwrap_or(column.data_page_offset()).min(column.data_page_offset())
}

/// Returns the byte range of a column's pages in the file.
fn pages_of(column: &ColumnChunkMetaData) -> Range<u64> {
    let [start, bytes] =
        [first_page_offset(column), column.compressed_size()].map(|number| u64::try_from(number).unwrap_or(0));
    start..start.saturating_add(bytes) // both numbers have been checked
}

/// Returns the length of the file, followed by its footer: the metadata, its length, and the magic
/// bytes.
fn read_footer(file: &mut InputReader) -> io::Result<Vec<u8>> {
    let length = file.byte_count();
    let mut trailer = [0; 8];
    file.seek(SeekFrom::Start(length.saturating_sub(8)))?;
    file.read_exact(&mut trailer)?;
    let [a, b, c, d, ..] = trailer;
    let footer_bytes = u64::from(u32::from_le_bytes([a, b, c, d])) + 8;
    file.seek(SeekFrom::Start(length.saturating_sub(footer_bytes)))?;
    let mut out = length.to_le_bytes().to_vec();
    // at most the length of the file; a growing vector would take twice as much
    let _ = out.try_reserve_exact(usize::try_from(footer_bytes.min(length)).unwrap_or(0));
    file.take(footer_bytes).read_to_end(&mut out)?;
    Ok(out)
}

/// A Parquet file. A column that is read raw, such as INT96, has one type in batches and another in
/// the schema.
pub(in crate::import) struct ParquetFile {
    input: Arc<InputFile>,
    metadata: ArrowReaderMetadata,
    nulls: LeafNulls,
    row_count: u64,
}

impl Records for ParquetFile {
    fn path(&self) -> Option<&Path> {
        Some(self.input.name())
    }

    fn row_count(&self) -> Option<u64> {
        Some(self.row_count)
    }

    fn record_batches(&self, fields: &[usize], rows: PassRows) -> Result<RecordBatches<'_>> {
        let (groups, skip) = match rows {
            PassRows::All => (0..self.row_group_count(), 0),
            PassRows::RowGroup(row_group) => (row_group..row_group.saturating_add(1), 0),
            PassRows::From(first) => self.groups_from(first)?,
        };
        let mask = ProjectionMask::roots(self.metadata.parquet_schema(), fields.iter().copied());
        let null_bytes = self.null_bytes(fields)?;
        Ok(Box::new(RowGroups { file: self, mask, null_bytes, groups, skip, current: None }))
    }

    fn can_skip_rows(&self) -> bool {
        true
    }

    fn may_have_nulls(&self, path: &ColumnPath) -> bool {
        self.nulls.may_occur(path)
    }

    fn own_marks(&self) -> &[&str] {
        &[INT96, ENCRYPTED]
    }

    fn row_group_count(&self) -> usize {
        self.metadata.metadata().num_row_groups()
    }
}

impl ParquetFile {
    /// Returns the size in bytes of a row in which these fields are null. Refuses a field whose
    /// null exceeds the maximum size of a sample.
    fn null_bytes(&self, fields: &[usize]) -> Result<usize> {
        let fields = fields.iter().filter_map(|&field| self.metadata.schema().fields().get(field));
        fields.map(|field| (field, null_bytes(field.data_type()))).try_fold(0, |sum: usize, (field, bytes)| {
            if u32::try_from(bytes).is_ok_and(|bytes| bytes <= limits::CHUNK_BYTES) {
                return Ok(sum.saturating_add(bytes));
            }
            let message =
                format!("a null of this type takes {bytes} bytes, but the maximum is {}", limits::CHUNK_BYTES);
            let error = Error::bad_input(message).with_column(field.name());
            Err(error.with_advice([Advice::SkipColumns]))
        })
    }

    /// Returns the row groups with row `first` and all later rows, and the number of rows to skip
    /// in the first row group.
    fn groups_from(&self, first: u64) -> Result<(Range<usize>, usize)> {
        let mut before = 0_u64;
        for (number, group) in self.metadata.metadata().row_groups().iter().enumerate() {
            let rows = u64::try_from(group.num_rows()).map_err(|_| wrong_row_count())?;
            if first < before.saturating_add(rows) {
                let skip = usize::try_from(first.saturating_sub(before)).map_err(|_| wrong_row_count())?;
                return Ok((number..self.row_group_count(), skip));
            }
            before = before.saturating_add(rows);
        }
        Ok((0..0, 0))
    }
}

/// The batches of consecutive row groups.
struct RowGroups<'a> {
    file: &'a ParquetFile,
    mask: ProjectionMask,
    /// The size in bytes of a row in which all fields are null.
    null_bytes: usize,
    /// The row groups that have not been started.
    groups: Range<usize>,
    /// The number of rows to skip in the first row group.
    skip: usize,
    current: Option<OpenRowGroup>,
}

/// A row group that is being read.
struct OpenRowGroup {
    reader: CatchPanic<ParquetRecordBatchReader>,
    number: usize,
    batch_rows: BatchRows,
    rows_read: usize,
    rows: usize,
}

impl RowGroups<'_> {
    fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            let Some(mut group) = self.current.take() else {
                let groups = self.file.metadata.metadata().row_groups();
                let next = self.groups.next().and_then(|number| Some((number, groups.get(number)?)));
                let Some((number, metadata)) = next else { return Ok(None) };
                self.current = Some(self.begin(number, metadata)?);
                continue;
            };
            if let Some(batch) = group.reader.next() {
                let batch = batch?;
                group.rows_read = group.rows_read.saturating_add(batch.num_rows());
                self.current = Some(self.adapt(group, &batch)?);
                return Ok(Some(batch));
            }
            if group.rows_read != group.rows {
                return Err(wrong_row_count());
            }
        }
    }

    fn begin(&mut self, number: usize, metadata: &RowGroupMetaData) -> Result<OpenRowGroup> {
        let rows = usize::try_from(metadata.num_rows()).map_err(|_| wrong_row_count())?;
        let file = self.file.input.reader()?;
        let columns = metadata.columns().iter().enumerate().filter(|(i, _)| self.mask.leaf_included(*i));
        let columns: Vec<&ColumnChunkMetaData> = columns.map(|(_, column)| column).collect();
        let ranges = columns.iter().map(|column| pages_of(column));
        if ranges.clone().map(|range| range.end - range.start).fold(0, u64::saturating_add) <= MAX_PREFETCH_BYTES {
            file.prefetch(ranges);
        }
        let of_column = |column: &ColumnChunkMetaData| {
            let texts = catch_panic(|| pages::check(&file, column, rows, self.file.metadata.metadata()))?;
            let values = u64::try_from(column.num_values()).unwrap_or(0);
            Ok((texts, values.div_ceil(u64_of(rows.max(1)))))
        };
        let texts = columns.into_iter().map(of_column).collect::<Result<Vec<_>>>()?;
        let batch_rows = BatchRows::of(metadata, &self.mask, &texts, self.null_bytes);
        let skip = std::mem::take(&mut self.skip).min(rows);
        let reader = self.reader(number, batch_rows.get(), skip)?;
        Ok(OpenRowGroup { reader, number, batch_rows, rows_read: skip, rows })
    }

    /// Restarts the decoder if the next batches should have a different number of rows.
    fn adapt(&self, mut group: OpenRowGroup, batch: &RecordBatch) -> Result<OpenRowGroup> {
        let is_other = group.batch_rows.adapt(batch.num_rows(), batch.get_array_memory_size());
        if is_other && group.rows_read < group.rows {
            group.reader = self.reader(group.number, group.batch_rows.get(), group.rows_read)?;
        }
        Ok(group)
    }

    fn reader(&self, number: usize, batch_rows: usize, skip: usize) -> Result<CatchPanic<ParquetRecordBatchReader>> {
        let file = self.file.input.reader()?;
        let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(file, self.file.metadata.clone())
            .with_projection(self.mask.clone())
            .with_row_groups(vec![number])
            .with_batch_size(batch_rows)
            .with_offset(skip);
        Ok(CatchPanic::new(catch_panic(|| builder.build().map_err(malformed))?))
    }
}

impl Iterator for RowGroups<'_> {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_batch().transpose()
    }
}

fn wrong_row_count() -> Error {
    Error::bad_input("the Parquet file is malformed: a row group does not have as many rows as the footer states")
}
