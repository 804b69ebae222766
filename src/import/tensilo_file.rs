//! Tensilo files as inputs: to change the profile, select columns, or concatenate files.
//!
//! A file is opened again for each pass. Its columns are read in batches that fit in the
//! processor's cache. A cursor returns buffers in the layout that a writer accepts, so nothing is
//! copied.
//!
//! A tensilo file has a column for the nulls of a struct only if some struct is null. An input
//! always has this column: if the file lacks it, the input adds one without nulls
//! ([`AbsentStruct`]). Files with and without null structs can therefore be converted together.

use super::input::file::InputFile;
use super::plan::input_column::{ColumnKind, ColumnRequest, InputColumn, Level, StoredColumn, StructNulls, UNKNOWN};
use super::rows::{Batch, Bitmap, ColumnRows, ItemBytes, SharedBytes};
use super::source::{Batches, PassRows, RowSource};
use crate::batch::ListBuffer;
use crate::bytes::le::u64_of;
use crate::format::{field_paths, path};
use crate::logical::saved_schema;
use crate::{Column, ColumnBuffer, ColumnSchema, Cursor, Error, Extent, Metadata, OpenOptions, Result, Schema, limits};
use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

/// The first bytes of a tensilo file.
pub(super) const MAGIC: [u8; 4] = *b"\x89TSL";

/// The approximate size of a batch in bytes, chosen to fit in the processor's cache.
const BATCH_BYTES: u64 = 2 << 20;

/// Opens a tensilo file. Also returns its id and content id, from which the id of an output is
/// derived.
pub(super) fn open(file: &Arc<InputFile>) -> Result<(TensiloFile, Vec<u8>)> {
    let reader = OpenOptions::new().open_source(file.hold()?)?;
    let origin = [&reader.file_id().0[..], &reader.content_id().0].concat();
    let schema = reader.schema();
    let stored = stored_structs(schema);
    let stored = reader.columns().zip(stored).map(|(column, nulls)| input_column(&column, nulls));
    let (added, absent): (Vec<_>, Vec<_>) = absent_structs(schema).into_iter().unzip();
    let mut metadata = schema.metadata.clone();
    if reader.commit_count() > 1 {
        saved_schema::forget_order(&mut metadata);
    }
    let content = TensiloFile {
        file: Arc::clone(file),
        columns: stored.chain(added).collect(),
        absent,
        metadata,
        sample_count: reader.sample_count(),
    };
    Ok((content, origin))
}

/// A tensilo file. It is opened again for each pass.
pub(super) struct TensiloFile {
    file: Arc<InputFile>,
    columns: Vec<InputColumn>,
    /// Structs without a column of nulls in the file. Their columns of nulls are the last columns.
    absent: Vec<AbsentStruct>,
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

impl RowSource for TensiloFile {
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

    fn is_tensilo(&self) -> bool {
        true
    }

    fn batches(&self, columns: &[ColumnRequest], _: PassRows) -> Result<Batches<'_, ColumnRows>> {
        let reader = OpenOptions::new().open_source(self.file.hold()?)?;
        let unknown = || Error::bad_argument("a pass requests a column that the file does not have");
        let stored_count = self.columns.len().saturating_sub(self.absent.len());
        let column = |request: &ColumnRequest| {
            let absent_struct = request.position.checked_sub(stored_count).and_then(|i| self.absent.get(i)).copied();
            let column =
                reader.column_at(absent_struct.map_or(request.position, |AbsentStruct { field, .. }| field))?;
            Some(PassColumn { cursor: column.cursor(), column, absent_struct })
        };
        let columns = columns.iter().map(column).collect::<Option<_>>().ok_or_else(unknown)?;
        Ok(Box::new(TensiloPass { columns, next: 0, end: reader.sample_count() }))
    }
}

/// One pass over some columns.
struct TensiloPass {
    columns: Vec<PassColumn>,
    /// The first sample of the next batch.
    next: u64,
    end: u64,
}

struct PassColumn {
    column: Column,
    cursor: Cursor,
    /// Set if the pass returns the nulls of a struct for which the file has no column, instead of
    /// the values of `column`.
    absent_struct: Option<AbsentStruct>,
}

impl TensiloPass {
    fn batch(&mut self) -> Result<Batch<ColumnRows>> {
        let range = self.next..self.batch_end()?;
        let row_count = usize::try_from(range.end - range.start); // at least one
        let row_count = row_count.map_err(|_| Error::over_limit("a batch has more samples than fit in memory"))?;
        let mut batch = Batch { row_count, columns: Vec::with_capacity(self.columns.len()) };
        for PassColumn { column, cursor, absent_struct } in &mut self.columns {
            let mut buffer = ColumnBuffer::new();
            // the lists around the struct come from its field
            if absent_struct.is_none_or(|absent_struct| absent_struct.levels > 0) {
                cursor.range_into(range.clone(), &mut buffer)?;
            }
            batch.columns.push(Ok(match absent_struct {
                None => rows(column.schema(), buffer),
                Some(absent_struct) => absent_struct.rows(row_count, &buffer),
            }));
        }
        self.next = range.end;
        Ok(batch)
    }

    /// Returns the end of the next batch. The batch has as many samples of the fixed columns and as
    /// many chunks of the ragged columns as fit in [`BATCH_BYTES`], but at least one of each.
    fn batch_end(&self) -> Result<u64> {
        let is_ragged = |column: &&Column| column.schema().shape.is_ragged() || !column.schema().levels.is_empty();
        let (ragged, fixed): (Vec<&Column>, Vec<&Column>) =
            self.columns.iter().map(|column| &column.column).partition(is_ragged);
        let sample_bytes = fixed.iter().map(|column| fixed_bytes(column.schema())).fold(1, u64::saturating_add);
        let mut end = self.end.min(self.next.saturating_add((BATCH_BYTES / sample_bytes).max(1)));
        let ragged_bytes = BATCH_BYTES / u64_of(ragged.len().max(1));
        for column in ragged {
            let (mut next, mut bytes) = (self.next, 0_u64);
            while next < end && bytes < ragged_bytes {
                let chunk = column.chunk_of(next)?;
                next = chunk.samples.end;
                bytes = bytes.saturating_add(chunk.raw_bytes);
            }
            end = end.min(next);
        }
        Ok(end)
    }
}

impl Iterator for TensiloPass {
    type Item = Result<Batch<ColumnRows>>;

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

fn fixed_bytes(schema: &ColumnSchema) -> u64 {
    let elements = schema.shape.inner_elements().unwrap_or(u64::MAX);
    elements.saturating_mul(u64_of(schema.dtype.element_bytes()))
}

/// A buffer whose values can be shared as bytes.
struct BufferBytes(ColumnBuffer);

impl AsRef<[u8]> for BufferBytes {
    fn as_ref(&self) -> &[u8] {
        self.0.bytes()
    }
}

fn rows(schema: &ColumnSchema, buffer: ColumnBuffer) -> ColumnRows {
    // exact: the offsets of values in memory fit in `usize`
    let position = |offset: u64| usize::try_from(offset).unwrap_or(usize::MAX);
    let width = schema.dtype.element_bytes();
    let mut extents = buffer.varying_extents().to_vec();
    let item_bytes = if schema.shape.is_ragged() {
        let varying = schema.shape.varying_count().max(1);
        let unknown = if schema.dtype.is_string() { 0 } else { UNKNOWN };
        let nulls = extents.chunks_mut(varying).enumerate().filter(|(item, _)| buffer.is_null(*item));
        nulls.for_each(|(_, extents)| extents.fill(unknown));
        ItemBytes::Offsets(buffer.offsets().iter().map(|&offset| position(offset).saturating_mul(width)).collect())
    } else {
        ItemBytes::Equal(schema.shape.inner_elements().map_or(0, position).saturating_mul(width))
    };
    ColumnRows {
        dtype: schema.dtype,
        item_count: buffer.item_count(),
        lists: buffer.lists().to_vec(),
        extents,
        item_bytes,
        validity: buffer.validity().map(|bitmap| Bitmap(SharedBytes::new(bitmap.to_vec()))),
        values: SharedBytes::new(BufferBytes(buffer)),
        null_elements: None,
        cast: None,
    }
}

/// The maximum size in bytes of a path whose names fit into a column name. Escaping can double each
/// byte.
const MAX_PATH_BYTES: usize = 2 * (limits::NAME_BYTES + limits::LEVELS);

/// A struct without a column for its nulls. The file has only the fields of the struct, so the
/// struct is never null.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct AbsentStruct {
    /// The position of one of the fields, which is in the same lists as the struct.
    field: usize,
    /// The number of levels of lists around the struct.
    levels: usize,
}

/// Returns, for each column, the struct whose nulls it holds, if any.
fn stored_structs(schema: &Schema) -> Vec<Option<StructNulls>> {
    let paths = field_paths(schema.columns.iter());
    let with_fields: HashSet<&str> = paths.iter().flatten().flat_map(|path| path::enclosing(path.text)).collect();
    let nulls = |text| StructNulls { has_fields: with_fields.contains(text), may_be_null: true, is_written: true };
    let of_structs = paths.iter().map(|path| path.as_ref().filter(|path| path.is_struct));
    of_structs.map(|path| path.map(|path| nulls(path.text))).collect()
}

/// Returns the nulls of the structs for which the file has no column, except structs whose names
/// are too long for a column.
fn absent_structs(schema: &Schema) -> Vec<(InputColumn, AbsentStruct)> {
    let mut known: HashSet<&str> = schema.columns.iter().filter_map(ColumnSchema::path).collect();
    let mut found = Vec::new();
    let paths = field_paths(schema.columns.iter());
    for (field, (column, path)) in schema.columns.iter().zip(&paths).enumerate() {
        for path in path.iter().flat_map(|path| path::enclosing(path.text)) {
            if path.len() > MAX_PATH_BYTES || found.len() > limits::COLUMNS {
                break;
            }
            let Some(names) = path::parse(path) else { continue };
            let levels = names.iter().map(|name| name.lists).sum();
            let Some(lists) = column.levels.get(..levels).filter(|_| known.insert(path)) else { continue };
            let names: Vec<String> = names.into_iter().map(|name| name.name).collect();
            let nulls = StructNulls { has_fields: true, may_be_null: false, is_written: false };
            let input = InputColumn {
                name: names.join("."),
                kind: Ok(ColumnKind::struct_nulls(lists.to_vec())),
                nullable: column.nullable,
                metadata: Metadata::from([(path::KEY.to_owned(), path.to_owned())]),
                stored: None,
                struct_nulls: Some(nulls),
            };
            found.push((input, AbsentStruct { field, levels }));
        }
    }
    found
}

impl AbsentStruct {
    /// Returns the rows of the struct. `buffer` has the samples of the field.
    fn rows(self, row_count: usize, buffer: &ColumnBuffer) -> ColumnRows {
        let lists: Vec<ListBuffer> = buffer.lists().iter().take(self.levels).cloned().collect();
        let end = |lists: &ListBuffer| lists.offsets().last().and_then(|&end| usize::try_from(end).ok());
        let count = lists.last().map_or(Some(row_count), end).unwrap_or(0); // the items are in memory
        ColumnRows::structs(count, lists, None)
    }
}
