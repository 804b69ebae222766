//! Tensilo files as inputs: written with another profile, with some of their columns, or one after
//! the other.

use super::batch::{InputBatch, InputLists, Nulls, SampleValues, Samples, SharedBytes, UNKNOWN};
use super::input_column::{ColumnKind, InputColumn, Level, StoredColumn, StructNulls};
use super::input_file::InputFile;
use super::native_structs::{self, NoNulls};
use super::source::{BatchIter, BatchSource};
use crate::le::u64_of;
use crate::list_buffer::ListBuffer;
use crate::{Column, ColumnBuffer, ColumnSchema, Cursor, Error, Extent, Metadata, OpenOptions, Result, saved_schema};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// The first bytes of a tensilo file.
pub(super) const MAGIC: [u8; 4] = *b"\x89TSL";

/// The bytes of a batch, about: so few that it stays in the processor's cache.
const BATCH_BYTES: u64 = 2 << 20;

/// Opens a tensilo file. The id of a file made from it depends on its id and its content.
pub(super) fn open(file: &Arc<InputFile>) -> Result<(NativeFile, Vec<u8>)> {
    let reader = OpenOptions::new().open(file.hold()?)?;
    let origin = [&reader.file_id().0[..], &reader.content_id().0].concat();
    let schema = reader.schema();
    let stored = native_structs::stored(schema);
    let stored = reader.columns().zip(stored).map(|(column, nulls)| input_column(&column, nulls));
    let (added, absent): (Vec<_>, Vec<_>) = native_structs::absent(schema).into_iter().unzip();
    let mut metadata = schema.metadata.clone();
    if reader.commit_count() > 1 {
        saved_schema::forget_order(&mut metadata);
    }
    let content = NativeFile {
        file: Arc::clone(file),
        columns: stored.chain(added).collect(),
        absent,
        metadata,
        sample_count: reader.sample_count(),
    };
    Ok((content, origin))
}

/// A tensilo file. It is opened again for each pass.
pub(super) struct NativeFile {
    file: Arc<InputFile>,
    columns: Vec<InputColumn>,
    /// The columns behind those of the file.
    absent: Vec<NoNulls>,
    metadata: Metadata,
    sample_count: u64,
}

fn input_column(column: &Column, struct_nulls: Option<StructNulls>) -> InputColumn {
    let schema = column.schema();
    let level = |extent: &Extent| match extent {
        Extent::Fixed(extent) => Level::Fixed(vec![*extent]),
        Extent::Varying => Level::Open,
    };
    let levels = if schema.dtype.is_string() { Vec::new() } else { schema.shape.extents().iter().map(level).collect() };
    InputColumn {
        name: schema.name.clone(),
        kind: Ok(ColumnKind { lists: schema.levels.clone(), levels, ..ColumnKind::scalar(schema.dtype) }),
        nullable: schema.nullable,
        metadata: schema.metadata.clone(),
        stored: Some(StoredColumn { shape: schema.shape.clone(), cast: schema.cast.zip(column.facts().cast) }),
        struct_nulls,
    }
}

impl BatchSource for NativeFile {
    fn columns(&self) -> &[InputColumn] {
        &self.columns
    }

    fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    fn path(&self) -> Option<&Path> {
        Some(self.file.name())
    }

    fn row_count(&self) -> Option<u64> {
        Some(self.sample_count)
    }

    fn is_native(&self) -> bool {
        true
    }

    fn batches(&self, columns: &[usize]) -> Result<BatchIter<'_>> {
        let reader = OpenOptions::new().open(self.file.hold()?)?;
        let unknown = || Error::bad_argument("a pass over a column that the file does not have");
        let stored_count = self.columns.len().saturating_sub(self.absent.len());
        let no_nulls = |&i: &usize| i.checked_sub(stored_count).and_then(|i| self.absent.get(i)).copied();
        let no_nulls: Vec<Option<NoNulls>> = columns.iter().map(no_nulls).collect();
        let read =
            columns.iter().zip(&no_nulls).map(|(&i, no_nulls)| no_nulls.map_or(i, |NoNulls { field, .. }| field));
        let columns: Vec<Column> = read.map(|i| reader.column_at(i)).collect::<Option<_>>().ok_or_else(unknown)?;
        let cursors = columns.iter().map(Column::cursor).collect();
        Ok(Box::new(NativePass { columns, cursors, no_nulls, next: 0, end: reader.sample_count() }))
    }
}

/// One pass over some columns.
struct NativePass {
    columns: Vec<Column>,
    cursors: Vec<Cursor>,
    /// Set if the samples are those of a struct without nulls, instead of the column's own.
    no_nulls: Vec<Option<NoNulls>>,
    /// The first sample of the next batch.
    next: u64,
    end: u64,
}

impl NativePass {
    fn batch(&mut self) -> Result<InputBatch> {
        let range = self.next..batch_end(&self.columns, self.next, self.end)?;
        let sample_count = usize::try_from(range.end - range.start); // at least one
        let sample_count = sample_count.map_err(|_| Error::over_limit("a batch of more samples than memory has"))?;
        let mut batch = InputBatch { sample_count, columns: Vec::with_capacity(self.columns.len()) };
        for ((column, cursor), no_nulls) in self.columns.iter().zip(&mut self.cursors).zip(&self.no_nulls) {
            let mut buffer = ColumnBuffer::new();
            // the lists of a field are those of its struct
            if no_nulls.is_none_or(|no_nulls| no_nulls.levels > 0) {
                cursor.range_into(range.clone(), &mut buffer)?;
            }
            batch.columns.push(Ok(match no_nulls {
                None => samples(column.schema(), buffer),
                Some(no_nulls) => {
                    let lists = buffer.lists().iter().take(no_nulls.levels).map(input_lists).collect();
                    no_nulls.samples(sample_count, lists)
                }
            }));
        }
        self.next = range.end;
        Ok(batch)
    }
}

impl Iterator for NativePass {
    type Item = Result<InputBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.next >= self.end {
            return None;
        }
        let batch = self.batch();
        if batch.is_err() {
            self.next = self.end;
        }
        Some(batch)
    }
}

/// Returns the end of a batch that begins with sample `start`. It has as many samples of fixed
/// shapes and as many chunks of ragged columns as fit, at least one.
fn batch_end(columns: &[Column], start: u64, sample_count: u64) -> Result<u64> {
    let (ragged, fixed): (Vec<&Column>, Vec<&Column>) =
        columns.iter().partition(|column| column.schema().shape.is_ragged() || !column.schema().levels.is_empty());
    let sample_bytes = fixed.iter().map(|column| fixed_bytes(column.schema())).fold(1, u64::saturating_add);
    let mut end = sample_count.min(start.saturating_add((BATCH_BYTES / sample_bytes).max(1)));
    let ragged_bytes = BATCH_BYTES / u64_of(ragged.len().max(1));
    for column in ragged {
        let (mut next, mut bytes) = (start, 0_u64);
        while next < end && bytes < ragged_bytes {
            let chunk = column.chunk_of(next)?;
            next = chunk.samples.end;
            bytes = bytes.saturating_add(chunk.raw_bytes);
        }
        end = end.min(next);
    }
    Ok(end)
}

fn fixed_bytes(schema: &ColumnSchema) -> u64 {
    let elements = schema.shape.inner_elements().unwrap_or(u64::MAX);
    elements.saturating_mul(u64_of(schema.dtype.element_bytes()))
}

/// The values of a buffer.
struct BufferBytes(ColumnBuffer);

impl AsRef<[u8]> for BufferBytes {
    fn as_ref(&self) -> &[u8] {
        self.0.bytes()
    }
}

fn samples(schema: &ColumnSchema, buffer: ColumnBuffer) -> Samples {
    let nulls = buffer.validity().map(|bitmap| Nulls(SharedBytes::new(bitmap.to_vec())));
    Samples {
        dtype: schema.dtype,
        ranges: ranges(schema, &buffer),
        lists: buffer.lists().iter().map(input_lists).collect(),
        open_extents: if schema.dtype.is_string() { Vec::new() } else { open_extents(schema, &buffer) },
        values: SampleValues::Plain(SharedBytes::new(BufferBytes(buffer))),
        nulls,
        element_nulls: None,
        no_tensor: None,
    }
}

fn input_lists(lists: &ListBuffer) -> InputLists {
    let ends = lists.offsets().iter();
    // of a chunk or several of a batch: below 2^32
    let lengths = ends.clone().zip(ends.skip(1)).map(|(start, end)| u32::try_from(end - start).unwrap_or(u32::MAX));
    let nulls = lists.validity().map(|bitmap| Nulls(SharedBytes::new(bitmap.to_vec())));
    InputLists { lengths: lengths.collect(), nulls }
}

fn ranges(schema: &ColumnSchema, buffer: &ColumnBuffer) -> Vec<Range<usize>> {
    // they are in memory
    let position = |offset: u64| usize::try_from(offset).unwrap_or(usize::MAX);
    if schema.shape.is_ragged() {
        let starts = buffer.offsets().iter().copied().map(position);
        return starts.clone().zip(starts.skip(1)).map(|(start, end)| start..end).collect();
    }
    let each = schema.shape.inner_elements().map_or(0, position);
    let start = |sample: usize| sample.saturating_mul(each); // inside the buffer
    (0..buffer.item_count()).map(|sample| start(sample)..start(sample + 1)).collect()
}

fn open_extents(schema: &ColumnSchema, buffer: &ColumnBuffer) -> Vec<u32> {
    let mut extents = buffer.extents().to_vec();
    let varying = schema.shape.varying_count().max(1);
    for (sample, extents) in extents.chunks_mut(varying).enumerate() {
        if buffer.is_null(sample) {
            extents.fill(UNKNOWN);
        }
    }
    extents
}
