//! Columns that the decoder of Parquet would change in silence are read as they are stored.
//!
//! The decoder wraps INT96 timestamps beyond 64 bits, and integers that are declared to be narrower
//! than they are. So it is given a schema in which they are bytes and plain 32-bit integers, and
//! [`arrow::elements`](crate::import::arrow) converts them, exactly or not at all. Intervals are
//! read as bytes too, because the decoder drops parts of them. It also believes the embedded Arrow
//! schema where that denies the unit of a nanosecond timestamp, or the digits of a decimal. It does
//! not believe all [zones](super::zones) in that schema.

use super::annotations::{annotate, with_variants};
use super::changed::changed;
use super::leaves::{plain_leaf, with_leaf_types, with_leaves};
use super::zones::Zones;
use crate::import::arrow::elements::PARQUET_BYTES;
use crate::import::arrow::types::{ENCRYPTED, INT96, decoded};
use ::parquet::arrow::ARROW_SCHEMA_META_KEY;
use ::parquet::arrow::arrow_reader::ArrowReaderMetadata;
use ::parquet::basic::{ConvertedType, LogicalType, TimeUnit as ParquetUnit, Type as Physical};
use ::parquet::errors::Result;
use ::parquet::schema::types::{ColumnDescPtr, ColumnDescriptor, Type};
use arrow_schema::{DataType, Field, FieldRef, IntervalUnit, Schema, SchemaRef, TimeUnit};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Returns the schema of the values that a file holds, and how the decoder is to read it.
/// `encrypted` has the numbers of encrypted columns.
pub(super) fn exact(
    metadata: ArrowReaderMetadata,
    encrypted: &BTreeSet<usize>,
) -> Result<(SchemaRef, ArrowReaderMetadata)> {
    let entries = metadata.metadata().file_metadata().key_value_metadata().into_iter().flatten();
    let has_arrow_schema = entries.into_iter().any(|entry| entry.key == ARROW_SCHEMA_META_KEY);
    let columns = metadata.parquet_schema().columns();
    let zones = if has_arrow_schema { Zones::of(&metadata)? } else { Zones::default() };
    let leaves = Leaves { columns, encrypted, has_arrow_schema, zones };
    let fields = with_leaves(metadata.schema().fields(), |number, field| leaves.leaf(number, field));
    let fields = with_variants(&fields, metadata.parquet_schema());
    let schema = Arc::new(Schema::new_with_metadata(fields, metadata.schema().metadata().clone()));
    if !metadata.parquet_schema().columns().iter().any(|column| is_read_raw(column)) {
        return Ok((schema, metadata));
    }
    let raw = with_leaf_types(metadata.parquet_schema(), raw_leaf)?;
    Ok((schema, changed(&metadata, |footer| footer.schema = raw)?))
}

/// The columns of a file, which are the innermost fields of its schema, in order.
struct Leaves<'a> {
    columns: &'a [ColumnDescPtr],
    encrypted: &'a BTreeSet<usize>,
    has_arrow_schema: bool,
    zones: Zones,
}

impl Leaves<'_> {
    fn leaf(&self, number: usize, field: &FieldRef) -> FieldRef {
        let Some(column) = self.columns.get(number) else { return field.clone() };
        let mut field = Field::clone(field);
        if self.encrypted.contains(&number) {
            field.metadata_mut().insert(ENCRYPTED.to_owned(), String::new());
        }
        match decoded(field.data_type()) {
            DataType::Timestamp(..) if is_int96(column) => {
                field.metadata_mut().insert(INT96.to_owned(), String::new());
            }
            DataType::Timestamp(unit, zone) if is_nanoseconds(column) && *unit != TimeUnit::Nanosecond => {
                let data_type = DataType::Timestamp(TimeUnit::Nanosecond, zone.clone());
                field = with_values(field, data_type);
            }
            DataType::Timestamp(unit, zone) => {
                if let Some(data_type) = self.zones.stated(number, *unit, zone.as_deref()) {
                    field = with_values(field, data_type);
                }
            }
            // months, days and milliseconds: only an Arrow schema can tell that some are zero
            DataType::Interval(_) if !self.has_arrow_schema => {
                field = field.with_data_type(DataType::Interval(IntervalUnit::MonthDayNano));
            }
            data_type if data_type.is_decimal() => {
                let data_type = stated_decimal(data_type, column);
                field = with_values(field, data_type);
            }
            _ => {}
        }
        annotate(&mut field, column);
        Arc::new(field)
    }
}

/// Returns a field with values of another type, in a dictionary if the field is one.
fn with_values(field: Field, values: DataType) -> Field {
    let data_type = match field.data_type() {
        DataType::Dictionary(keys, _) => DataType::Dictionary(keys.clone(), Box::new(values)),
        _ => values,
    };
    field.with_data_type(data_type)
}

/// Returns the decimal of this width with the precision and scale of the column, or one of 256 bits
/// if that width has no such precision.
fn stated_decimal(data_type: &DataType, column: &ColumnDescriptor) -> DataType {
    let precision = u8::try_from(column.type_precision()).unwrap_or(u8::MAX);
    let scale = i8::try_from(column.type_scale()).unwrap_or(i8::MAX); // over any precision
    match data_type {
        DataType::Decimal32(..) if precision <= 9 => DataType::Decimal32(precision, scale),
        DataType::Decimal64(..) if precision <= 18 => DataType::Decimal64(precision, scale),
        DataType::Decimal128(..) if precision <= 38 => DataType::Decimal128(precision, scale),
        _ => DataType::Decimal256(precision, scale),
    }
}

fn is_int96(column: &ColumnDescriptor) -> bool {
    column.physical_type() == Physical::INT96
}

fn is_nanoseconds(column: &ColumnDescriptor) -> bool {
    let logical = column.logical_type_ref();
    matches!(logical, Some(LogicalType::Timestamp(timestamp)) if timestamp.unit == ParquetUnit::NANOS)
}

fn is_read_raw(column: &ColumnDescriptor) -> bool {
    column.self_type().is_primitive() && raw_leaf(column.self_type()).is_some()
}

/// Returns the type that a column is read as instead of its own.
fn raw_leaf(leaf: &Type) -> Option<Result<Type>> {
    let info = leaf.get_basic_info();
    let is_null = matches!(info.logical_type_ref(), Some(LogicalType::Unknown));
    let (physical, length) = match leaf.get_physical_type() {
        Physical::INT96 if !is_null => (Physical::FIXED_LEN_BYTE_ARRAY, PARQUET_BYTES),
        Physical::FIXED_LEN_BYTE_ARRAY if info.converted_type() == ConvertedType::INTERVAL => {
            (Physical::FIXED_LEN_BYTE_ARRAY, PARQUET_BYTES)
        }
        Physical::INT32 if is_narrow(leaf) => (Physical::INT32, 0),
        _ => return None,
    };
    Some(plain_leaf(leaf, physical, i32::try_from(length).unwrap_or(0))) // 0 or 12
}

/// Returns whether the values are declared to have fewer than 32 bits.
fn is_narrow(leaf: &Type) -> bool {
    let info = leaf.get_basic_info();
    match info.logical_type_ref() {
        Some(LogicalType::Integer(integer)) => integer.bit_width < 32,
        Some(_) => false,
        None => matches!(
            info.converted_type(),
            ConvertedType::INT_8 | ConvertedType::INT_16 | ConvertedType::UINT_8 | ConvertedType::UINT_16
        ),
    }
}
