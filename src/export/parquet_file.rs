//! Parquet files, compressed with Zstandard.
//!
//! Batches are kept until they fill a row group. Then it is written field by field: the encoders of
//! a column take tens of kilobytes, whatever its length, so a table of many columns must not have
//! the encoders of all of them at once, as the writer of the library does.

use super::field::Parts;
use super::format::{BatchWriter, Format, write_error};
use super::parquet_schema;
use crate::arrow_type::members;
use crate::{Error, Result};
use arrow_array::RecordBatch;
use arrow_schema::{DataType, FieldRef, Schema, SchemaRef};
use parquet::arrow::arrow_writer::{ArrowColumnWriter, ArrowRowGroupWriterFactory, ArrowWriterOptions, compute_leaves};
use parquet::arrow::{ArrowWriter, add_encoded_arrow_schema_to_metadata};
use parquet::basic::{Compression, Encoding, LogicalType, Type as PhysicalType, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{DEFAULT_MAX_ROW_GROUP_ROW_COUNT, WriterProperties, WriterPropertiesPtr};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{ColumnDescriptor, SchemaDescriptor, Type, TypePtr};
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::Arc;

/// A row group is written before its batches have more bytes than this in memory.
const MAX_ROW_GROUP_BYTES: usize = 64 << 20;
/// A row group is written before it has more rows than this, unless one batch has more.
const MAX_ROW_GROUP_ROWS: usize = DEFAULT_MAX_ROW_GROUP_ROW_COUNT;

struct ParquetFile<'a> {
    writer: SerializedFileWriter<&'a mut (dyn Write + Send)>,
    schema: SchemaRef,
    /// The batches of the next row group.
    batches: Vec<RecordBatch>,
    batch_bytes: usize,
    rows: usize,
}

pub(super) fn format() -> Result<Format> {
    Ok(Format { begin, parts: Parts::Optional })
}

fn begin<'a>(file: &'a mut (dyn Write + Send), schema: &SchemaRef) -> Result<Box<dyn BatchWriter + 'a>> {
    if let Some(field) = schema.fields().iter().find(|field| has_empty_struct(field.data_type())) {
        let message = "has a struct without fields, which Parquet cannot hold; export to an Arrow file, or leave the \
                       column out";
        return Err(Error::bad_argument(message).with_column(field.name()));
    }
    let types = parquet_schema::of(schema).map_err(write_error)?;
    let options = ArrowWriterOptions::new()
        .with_properties(properties(schema, &types))
        .with_parquet_schema(types)
        .with_skip_arrow_metadata(true); // the properties have it
    let writer = ArrowWriter::try_new_with_options(file, schema.clone(), options).map_err(write_error)?;
    let (writer, _) = writer.into_serialized_writer().map_err(write_error)?;
    Ok(Box::new(ParquetFile { writer, schema: schema.clone(), batches: Vec::new(), batch_bytes: 0, rows: 0 }))
}

/// Returns whether a type has a struct without fields. Its depth is bounded by that of paths.
fn has_empty_struct(data_type: &DataType) -> bool {
    match data_type {
        DataType::Struct(fields) => fields.is_empty() || fields.iter().any(|field| has_empty_struct(field.data_type())),
        other => members(other).is_some_and(|item| has_empty_struct(item.data_type())),
    }
}

/// Floats in byte streams, which compress better than whole values. They take no dictionary: it
/// pays only where few values repeat, and the sign of zero and the payload of NaN must not depend
/// on how it compares values.
fn properties(schema: &Schema, types: &SchemaDescriptor) -> WriterProperties {
    let mut builder = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_key_value_metadata(Some(entries(schema)));
    for column in types.columns().iter().filter(|column| is_float(column)) {
        builder = builder
            .set_column_dictionary_enabled(column.path().clone(), false)
            .set_column_encoding(column.path().clone(), Encoding::BYTE_STREAM_SPLIT);
    }
    let mut properties = builder.build();
    add_encoded_arrow_schema_to_metadata(&parquet_schema::embedded(schema), &mut properties);
    properties
}

/// Returns the metadata of the schema, which not all readers look for in the Arrow schema that is
/// written too.
fn entries(schema: &Schema) -> Vec<KeyValue> {
    let sorted: BTreeMap<&String, &String> = schema.metadata().iter().collect();
    sorted.into_iter().map(|(key, value)| KeyValue::new(key.clone(), value.clone())).collect()
}

fn is_float(column: &ColumnDescriptor) -> bool {
    matches!(column.physical_type(), PhysicalType::FLOAT | PhysicalType::DOUBLE)
        || matches!(column.logical_type_ref(), Some(LogicalType::Float16))
}

impl ParquetFile<'_> {
    /// Writes a row group of the batches.
    fn write_row_group(&mut self) -> std::result::Result<(), ParquetError> {
        if self.batches.is_empty() {
            return Ok(());
        }
        let properties = self.writer.properties().clone();
        let types = self.writer.schema_descr().root_schema_ptr();
        let mut row_group = self.writer.next_row_group()?;
        for (number, (field, parquet_type)) in self.schema.fields().iter().zip(types.get_fields()).enumerate() {
            let mut columns = column_writers(&types, field, parquet_type, &properties)?;
            for batch in &self.batches {
                let leaves = compute_leaves(field, batch.column(number))?;
                leaves.iter().zip(&mut columns).try_for_each(|(leaf, column)| column.write(leaf))?;
            }
            columns.into_iter().try_for_each(|column| column.close()?.append_to_row_group(&mut row_group))?;
        }
        row_group.close()?;
        self.batches.clear();
        (self.batch_bytes, self.rows) = (0, 0);
        Ok(())
    }
}

/// Returns the writers of the columns of one field. The library makes those of a whole file, so it
/// gets a file that has this field only, and is never written.
fn column_writers(
    types: &TypePtr,
    field: &FieldRef,
    parquet_type: &TypePtr,
    properties: &WriterPropertiesPtr,
) -> std::result::Result<Vec<ArrowColumnWriter>, ParquetError> {
    let root = Type::group_type_builder(types.name()).with_fields(vec![parquet_type.clone()]).build()?;
    let file = SerializedFileWriter::new(io::sink(), Arc::new(root), properties.clone())?;
    let schema = Arc::new(Schema::new([field.clone()]));
    ArrowRowGroupWriterFactory::new(&file, schema).create_column_writers(0)
}

impl BatchWriter for ParquetFile<'_> {
    fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        let (bytes, rows) = (batch.get_array_memory_size(), batch.num_rows());
        let is_full = self.batch_bytes.saturating_add(bytes) > MAX_ROW_GROUP_BYTES
            || self.rows.saturating_add(rows) > MAX_ROW_GROUP_ROWS;
        if is_full {
            self.write_row_group().map_err(write_error)?;
        }
        self.batch_bytes = self.batch_bytes.saturating_add(bytes);
        self.rows = self.rows.saturating_add(rows);
        self.batches.push(batch.clone());
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result<()> {
        self.write_row_group().map_err(write_error)?;
        self.writer.close().map(|_| ()).map_err(write_error)
    }
}
