//! Parquet files, compressed with Zstandard.

use super::field::Parts;
use super::format::{BatchWriter, Format, write_error};
use crate::arrow_type::members;
use crate::{Error, Result};
use arrow_array::RecordBatch;
use arrow_schema::{DataType, Schema, SchemaRef};
use parquet::arrow::{ArrowSchemaConverter, ArrowWriter};
use parquet::basic::{Compression, Encoding, LogicalType, Type, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::schema::types::ColumnDescriptor;
use std::collections::BTreeMap;
use std::io::Write;

/// A row group is closed before its batches have more bytes than this in memory.
const ROW_GROUP_BYTES: usize = 64 << 20;

struct ParquetFile<'a> {
    writer: ArrowWriter<&'a mut (dyn Write + Send)>,
    /// Bytes of the batches in the row group that is being written.
    row_group_bytes: usize,
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
    let properties = properties(schema).map_err(write_error)?;
    let writer = ArrowWriter::try_new(file, schema.clone(), Some(properties)).map_err(write_error)?;
    Ok(Box::new(ParquetFile { writer, row_group_bytes: 0 }))
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
fn properties(schema: &SchemaRef) -> std::result::Result<WriterProperties, ParquetError> {
    let mut builder = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_key_value_metadata(Some(entries(schema)));
    for column in ArrowSchemaConverter::new().convert(schema)?.columns().iter().filter(|column| is_float(column)) {
        builder = builder
            .set_column_dictionary_enabled(column.path().clone(), false)
            .set_column_encoding(column.path().clone(), Encoding::BYTE_STREAM_SPLIT);
    }
    Ok(builder.build())
}

/// Returns the metadata of the schema, which not all readers look for in the Arrow schema that is
/// written too.
fn entries(schema: &Schema) -> Vec<KeyValue> {
    let sorted: BTreeMap<&String, &String> = schema.metadata().iter().collect();
    sorted.into_iter().map(|(key, value)| KeyValue::new(key.clone(), value.clone())).collect()
}

fn is_float(column: &ColumnDescriptor) -> bool {
    matches!(column.physical_type(), Type::FLOAT | Type::DOUBLE)
        || matches!(column.logical_type_ref(), Some(LogicalType::Float16))
}

impl BatchWriter for ParquetFile<'_> {
    fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        let bytes = batch.get_array_memory_size();
        let sum = self.row_group_bytes.saturating_add(bytes);
        self.row_group_bytes = if sum > ROW_GROUP_BYTES {
            self.writer.flush().map_err(write_error)?;
            bytes
        } else {
            sum
        };
        self.writer.write(batch).map_err(write_error)
    }

    fn finish(self: Box<Self>) -> Result<()> {
        self.writer.close().map(|_| ()).map_err(write_error)
    }
}
