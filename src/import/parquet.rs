//! Parquet files.

use super::input::Place;
use super::slices::SLICE_BYTES;
use super::source::{Batches, Guarded, Source, guard};
use crate::{Error, Result};
use ::parquet::arrow::ProjectionMask;
use ::parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder,
};
use ::parquet::basic::Type;
use ::parquet::errors::ParquetError;
use ::parquet::file::metadata::RowGroupMetaData;
use ::parquet::schema::types::ColumnDescriptor;
use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// The files that match a pattern, in the byte order of their names.
pub(super) fn glob(pattern: &Path) -> Result<Vec<PathBuf>> {
    let bad = |message: String| Error::bad_argument(message).with_path(pattern);
    let text = pattern.to_str().ok_or_else(|| bad("a pattern that is not UTF-8".to_owned()))?;
    let matches = ::glob::glob(text).map_err(|error| bad(format!("not a pattern: {error}")))?;
    let mut paths = Vec::new();
    for path in matches {
        let path = path.map_err(|error| {
            let path = error.path().to_path_buf();
            Error::io("looking for files", error.into()).with_path(&path)
        })?;
        if path.is_file() {
            paths.push(path);
        }
    }
    if paths.is_empty() {
        return Err(bad("no file matches this pattern".to_owned()));
    }
    paths.sort_by(|a, b| a.as_os_str().cmp(b.as_os_str()));
    Ok(paths)
}

/// Opens a Parquet file; its footer is what the id of a file made from it depends on.
pub(super) fn open(place: &Place) -> Result<(Box<dyn Source>, Vec<u8>)> {
    let file = place.open()?;
    let metadata = ArrowReaderMetadata::load(&file, ArrowReaderOptions::new()).map_err(|error| malformed(&error))?;
    let footer = footer(&file).map_err(|error| place.io("reading the footer", error))?;
    let row_counts = metadata.metadata().row_groups().iter().map(|group| u64::try_from(group.num_rows()).ok());
    let row_count = row_counts.sum();
    let row_count: Option<u64> = row_count;
    if row_count.is_none() {
        return Err(Error::bad_input("the Parquet file is malformed: a row group has a negative number of rows"));
    }
    Ok((Box::new(ParquetFile { place: place.clone(), metadata, row_count }), footer))
}

/// Length and footer of a file that has been opened, which is to say that the footer's length is right.
fn footer(mut file: &File) -> io::Result<Vec<u8>> {
    let length = file.metadata()?.len();
    let mut tail = [0; 8];
    file.seek(SeekFrom::Start(length.saturating_sub(8)))?;
    file.read_exact(&mut tail)?;
    let [a, b, c, d, ..] = tail;
    let footer_bytes = u64::from(u32::from_le_bytes([a, b, c, d])) + 8;
    file.seek(SeekFrom::Start(length.saturating_sub(footer_bytes)))?;
    let mut out = length.to_le_bytes().to_vec();
    file.take(footer_bytes).read_to_end(&mut out)?;
    Ok(out)
}

fn malformed(error: &ParquetError) -> Error {
    Error::bad_input(format!("the Parquet file is malformed or damaged: {error}"))
}

struct ParquetFile {
    place: Place,
    metadata: ArrowReaderMetadata,
    row_count: Option<u64>,
}

impl Source for ParquetFile {
    fn schema(&self) -> &SchemaRef {
        self.metadata.schema()
    }

    fn path(&self) -> Option<&Path> {
        Some(&self.place.name)
    }

    fn row_count(&self) -> Option<u64> {
        self.row_count
    }

    fn batches(&self, fields: &[usize]) -> Result<Batches<'_>> {
        let mask = ProjectionMask::roots(self.metadata.parquet_schema(), fields.iter().copied());
        Ok(Box::new(RowGroups { file: self, mask, next: 0, current: None, rows_due: 0 }))
    }
}

/// The batches of one row group after the other.
struct RowGroups<'a> {
    file: &'a ParquetFile,
    mask: ProjectionMask,
    next: usize,
    current: Option<Guarded<ParquetRecordBatchReader>>,
    /// Rows of the current group that are still to come.
    rows_due: u64,
}

impl RowGroups<'_> {
    fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if let Some(batch) = self.current.as_mut().and_then(Iterator::next) {
                let batch = batch?;
                let rows = u64::try_from(batch.num_rows()).unwrap_or(u64::MAX);
                self.rows_due = self.rows_due.checked_sub(rows).ok_or_else(wrong_row_count)?;
                return Ok(Some(batch));
            }
            if self.rows_due > 0 {
                return Err(wrong_row_count());
            }
            let groups = self.file.metadata.metadata().row_groups();
            let Some(group) = groups.get(self.next) else { return Ok(None) };
            self.current = Some(Guarded::new(guard(|| self.reader(group))?));
            self.rows_due = u64::try_from(group.num_rows()).map_err(|_| wrong_row_count())?;
            self.next += 1;
        }
    }

    fn reader(&self, group: &RowGroupMetaData) -> Result<ParquetRecordBatchReader> {
        let file = self.file.place.open()?;
        let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(file, self.file.metadata.clone())
            .with_projection(self.mask.clone())
            .with_row_groups(vec![self.next])
            .with_batch_size(batch_rows(group, &self.mask));
        builder.build().map_err(|error| malformed(&error))
    }
}

impl Iterator for RowGroups<'_> {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_batch().transpose()
    }
}

fn wrong_row_count() -> Error {
    Error::bad_input("the Parquet file is malformed: a row group has not the number of rows that its footer says")
}

/// So many rows that the decoded batch has about [`SLICE_BYTES`], judging by the row group's own numbers.
fn batch_rows(group: &RowGroupMetaData, mask: &ProjectionMask) -> usize {
    const MOST: u64 = 16_384;
    let columns = group.columns().iter().enumerate().filter(|(i, _)| mask.leaf_included(*i));
    let bytes = columns.fold(1_u64, |sum, (_, column)| {
        let positive = |number: i64| u64::try_from(number).unwrap_or(0);
        let decoded = positive(column.num_values()).saturating_mul(decoded_bytes(column.column_descr()));
        let text = column.unencoded_byte_array_data_bytes().map_or(0, positive);
        sum.saturating_add(decoded.saturating_add(text).max(positive(column.uncompressed_size())))
    });
    let rows = u64::try_from(group.num_rows()).unwrap_or(1).max(1);
    let target = SLICE_BYTES as u64; // exact: usize has at most 64 bits
    let rows = target / bytes.div_ceil(rows).max(1);
    usize::try_from(rows.clamp(1, MOST)).unwrap_or(1)
}

/// What a value takes when decoded, levels of nesting included; of byte arrays only what is not their bytes.
fn decoded_bytes(column: &ColumnDescriptor) -> u64 {
    const LEVELS: u64 = 4;
    LEVELS
        + match column.physical_type() {
            Type::BOOLEAN => 1,
            Type::INT32 | Type::FLOAT => 4,
            Type::INT64 | Type::DOUBLE => 8,
            Type::INT96 | Type::BYTE_ARRAY => 16,
            Type::FIXED_LEN_BYTE_ARRAY => u64::try_from(column.type_length()).unwrap_or(0),
        }
}
