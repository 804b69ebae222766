//! Dictionaries that the decoder cannot read are read as their values.
//!
//! An embedded Arrow schema says of any type that it was a dictionary. The decoder believes it if
//! the values have the type of the column, and then gives up on some columns when it reads them.

use super::changed::changed;
use super::errors::malformed;
use super::leaves::with_leaves;
use crate::Result;
use ::parquet::arrow::arrow_reader::ArrowReaderMetadata;
use ::parquet::arrow::{ARROW_SCHEMA_META_KEY, encode_arrow_schema};
use ::parquet::basic::Type as Physical;
use ::parquet::file::metadata::KeyValue;
use arrow_schema::{DataType, Schema};
use std::sync::Arc;

/// Returns the metadata of a file with an embedded Arrow schema of which the decoder can read all
/// dictionaries.
pub(super) fn readable(metadata: ArrowReaderMetadata) -> Result<ArrowReaderMetadata> {
    let columns = metadata.parquet_schema().columns();
    let mut is_changed = false;
    let fields =
        with_leaves(metadata.schema().fields(), |number, field| match (field.data_type(), columns.get(number)) {
            (DataType::Dictionary(_, values), Some(column)) if !is_readable(values, column.physical_type()) => {
                is_changed = true;
                Arc::new(field.as_ref().clone().with_data_type(values.as_ref().clone()))
            }
            _ => Arc::clone(field),
        });
    if !is_changed {
        return Ok(metadata);
    }
    let schema = Schema::new_with_metadata(fields, metadata.schema().metadata().clone());
    let embedded = changed(&metadata, |footer| {
        let entries = footer.entries.get_or_insert_default();
        entries.retain(|entry| entry.key != ARROW_SCHEMA_META_KEY);
        entries.push(KeyValue::new(ARROW_SCHEMA_META_KEY.to_owned(), encode_arrow_schema(&schema)));
    });
    embedded.map_err(malformed)
}

/// Returns whether the decoder can read a dictionary of these values from such a column. INT96 is
/// [read raw](super::raw).
fn is_readable(values: &DataType, column: Physical) -> bool {
    match column {
        Physical::BOOLEAN => false,
        Physical::INT32 | Physical::INT64 | Physical::INT96 | Physical::FLOAT | Physical::DOUBLE => !values.is_null(),
        Physical::BYTE_ARRAY | Physical::FIXED_LEN_BYTE_ARRAY => matches!(
            values,
            DataType::Utf8
                | DataType::LargeUtf8
                | DataType::Utf8View
                | DataType::Binary
                | DataType::LargeBinary
                | DataType::BinaryView
                | DataType::FixedSizeBinary(_)
        ),
    }
}
