//! Corrects the schema of a Parquet file if the decoder would fail or silently change values.
//!
//! - The decoder wraps INT96 timestamps that exceed 64 bits, and integers that do not fit their
//!   declared width. So it gets a schema in which INT96 timestamps are bytes and narrow integers
//!   are plain 32-bit integers. Then [`elements`](crate::import::arrow::elements) converts them
//!   exactly or refuses them. Intervals are also read as bytes, because the decoder drops some of
//!   their numbers.
//! - The decoder follows the embedded Arrow schema even if it contradicts the unit of a nanosecond
//!   timestamp or the digits of a decimal. It ignores the time zone of a timestamp unless the Arrow
//!   schema has the unit of the column. The units can differ, because Parquet has no seconds, and
//!   its version 2.4 has no nanoseconds.
//! - If the embedded Arrow schema says that a column was a dictionary, the decoder decodes the
//!   column as a dictionary, even if it cannot read dictionaries of that type. Such columns are
//!   read as plain values.
//! - Logical types that the decoder drops are stored in the metadata of fields.
//! - Mistakes of early writers are corrected, with one exception: the footer of
//!   `dict-page-offset-zero.parquet` of Apache's parquet-testing has lists where the format
//!   requires numbers, and the decoder does not skip fields of an unexpected type.

use super::pages;
use crate::Error;
use crate::import::arrow::elements::INT96_BYTES;
use crate::import::arrow::types::{ENCRYPTED, INT96, decoded};
use crate::import::input::file::InputReader;
use crate::logical::arrow_type::with_members;
use crate::logical::saved_schema::{VARIANT, entry};
use ::parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
use ::parquet::arrow::{ARROW_SCHEMA_META_KEY, encode_arrow_schema, parquet_to_arrow_schema};
use ::parquet::basic::{ConvertedType, LogicalType, Repetition, TimeUnit as ParquetUnit, Type as Physical};
use ::parquet::errors::{ParquetError, Result};
use ::parquet::file::metadata::{FileMetaData, KeyValue, ParquetMetaData};
use ::parquet::schema::types::{ColumnDescPtr, ColumnDescriptor, SchemaDescPtr, SchemaDescriptor, Type, TypePtr};
use arrow_schema::extension::EXTENSION_TYPE_NAME_KEY;
use arrow_schema::{DataType, Field, FieldRef, Fields, IntervalUnit, Schema, SchemaRef, TimeUnit};
use std::collections::{BTreeSet, HashSet};
use std::ops::Range;
use std::sync::Arc;

/// Converts an error of the decoder.
pub(super) fn malformed(error: ParquetError) -> Error {
    Error::bad_input(format!("the Parquet file is malformed or damaged: {error}")).with_source(error)
}

/// Returns the error about a file that starts or ends with `PARE`.
pub(in crate::import) fn encrypted_footer() -> Error {
    Error::bad_input("the Parquet file and its footer are encrypted; decrypt them with a program that has the keys")
}

/// The fields of a footer that can be changed.
struct FooterFields {
    row_count: i64,
    entries: Option<Vec<KeyValue>>,
    schema: SchemaDescPtr,
}

/// Returns the metadata of a file with a changed footer.
fn with_changes(metadata: &ArrowReaderMetadata, change: impl FnOnce(&mut FooterFields)) -> Result<ArrowReaderMetadata> {
    let file = metadata.metadata().file_metadata();
    let entries = file.key_value_metadata().cloned();
    let mut parts = FooterFields { row_count: file.num_rows(), entries, schema: file.schema_descr_ptr() };
    change(&mut parts);
    let FooterFields { row_count, entries, schema } = parts;
    let (writer, orders) = (file.created_by().map(str::to_owned), file.column_orders().cloned());
    let file = FileMetaData::new(file.version(), row_count, writer, entries, schema, orders);
    decodable(ParquetMetaData::new(file, metadata.metadata().row_groups().to_vec()))
}

/// Returns the metadata in the form that the decoder accepts.
pub(super) fn decodable(metadata: ParquetMetaData) -> Result<ArrowReaderMetadata> {
    ArrowReaderMetadata::try_new(Arc::new(metadata), ArrowReaderOptions::new())
}

/// Replaces the leaves of fields. `leaf` receives the number of a leaf and its field. The recursion
/// is bounded, because the decoder made the fields from a schema whose depth has been
/// [checked](super::footer::check).
fn with_leaves(fields: &Fields, mut leaf: impl FnMut(usize, &FieldRef) -> FieldRef) -> Fields {
    let mut next = 0;
    let mut numbered = |field: &FieldRef| {
        let number = next;
        next += 1;
        leaf(number, field)
    };
    fields.iter().map(|field| with_leaves_of(field, &mut numbered)).collect()
}

fn with_leaves_of(field: &FieldRef, leaf: &mut dyn FnMut(&FieldRef) -> FieldRef) -> FieldRef {
    let data_type = match field.data_type() {
        DataType::Struct(fields) => {
            DataType::Struct(fields.iter().map(|field| with_leaves_of(field, leaf)).collect::<Fields>())
        }
        other => match with_members(other, |item| with_leaves_of(item, leaf)) {
            Some(lists) => lists,
            None => return leaf(field),
        },
    };
    Arc::new(field.as_ref().clone().with_data_type(data_type))
}

/// Returns the schema of a file in which `leaf` replaces some leaves. A leaf stays unchanged if
/// `leaf` returns `None`.
fn with_leaf_types(
    schema: &SchemaDescriptor,
    leaf: fn(&Type) -> Option<Result<Type>>,
) -> Result<Arc<SchemaDescriptor>> {
    Ok(Arc::new(SchemaDescriptor::new(Arc::new(with_leaf_types_of(schema.root_schema(), leaf)?))))
}

/// The recursion is bounded, because the depth of the type has been
/// [checked](super::footer::check).
fn with_leaf_types_of(of: &Type, leaf: fn(&Type) -> Option<Result<Type>>) -> Result<Type> {
    if of.is_primitive() {
        return leaf(of).unwrap_or_else(|| Ok(of.clone()));
    }
    let fields: Vec<TypePtr> =
        of.get_fields().iter().map(|field| with_leaf_types_of(field, leaf).map(Arc::new)).collect::<Result<_>>()?;
    let info = of.get_basic_info();
    let builder = Type::group_type_builder(info.name())
        .with_logical_type(info.logical_type_ref().cloned())
        .with_converted_type(info.converted_type())
        .with_fields(fields)
        .with_id(info.has_id().then(|| info.id()));
    match repetition(of) {
        Some(repetition) => builder.with_repetition(repetition).build(),
        None => builder.build(),
    }
}

/// Returns a leaf that replaces the leaf `of`. It has this physical type and no logical type.
fn plain_leaf(of: &Type, physical: Physical, length: i32) -> Result<Type> {
    let info = of.get_basic_info();
    Type::primitive_type_builder(info.name(), physical)
        .with_length(length)
        .with_repetition(repetition(of).unwrap_or(Repetition::REQUIRED))
        .with_id(info.has_id().then(|| info.id()))
        .build()
}

fn repetition(of: &Type) -> Option<Repetition> {
    let info = of.get_basic_info();
    info.has_repetition().then(|| info.repetition())
}

/// Returns the schema of the values in a file, and the metadata with which the decoder reads the
/// file. `encrypted` has the numbers of the encrypted columns.
pub(super) fn exact_schema(
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
    Ok((schema, with_changes(&metadata, |footer| footer.schema = raw)?))
}

/// The columns of a file, which are the leaves of its schema, in order.
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
        for mark in [ENCRYPTED, INT96] {
            field.metadata_mut().remove(mark); // the embedded schema can contain the mark
        }
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
            // months, days and milliseconds: only an Arrow schema can say which of them are always
            // zero
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

/// Returns a field with another value type, preserving a dictionary.
fn with_values(field: Field, values: DataType) -> Field {
    let data_type = match field.data_type() {
        DataType::Dictionary(keys, _) => DataType::Dictionary(keys.clone(), Box::new(values)),
        _ => values,
    };
    field.with_data_type(data_type)
}

/// Returns a decimal type of the same width with the precision and scale of the column, or a
/// 256-bit decimal if the precision does not fit.
fn stated_decimal(data_type: &DataType, column: &ColumnDescriptor) -> DataType {
    let precision = u8::try_from(column.type_precision()).unwrap_or(u8::MAX);
    let scale = i8::try_from(column.type_scale()).unwrap_or(i8::MAX); // larger than any precision
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

/// Returns the type that a column is read as, unless it is read as its own type.
fn raw_leaf(leaf: &Type) -> Option<Result<Type>> {
    let info = leaf.get_basic_info();
    let is_null = matches!(info.logical_type_ref(), Some(LogicalType::Unknown));
    let (physical, length) = match leaf.get_physical_type() {
        Physical::INT96 if !is_null => (Physical::FIXED_LEN_BYTE_ARRAY, INT96_BYTES),
        Physical::FIXED_LEN_BYTE_ARRAY if info.converted_type() == ConvertedType::INTERVAL => {
            (Physical::FIXED_LEN_BYTE_ARRAY, INT96_BYTES)
        }
        Physical::INT32 if is_narrow(leaf) => (Physical::INT32, 0),
        _ => return None,
    };
    Some(plain_leaf(leaf, physical, i32::try_from(length).unwrap_or(0))) // 0 or 12
}

/// Returns whether the values are declared narrower than 32 bits.
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

/// The time zones of a file, by leaf number.
#[derive(Default)]
struct Zones(Vec<Option<Arc<str>>>);

impl Zones {
    /// Reads the zones of the embedded Arrow schema. If a column is a plain integer, the decoder
    /// accepts a timestamp of any unit in that schema. So the schema is decoded as if the columns
    /// were plain integers.
    fn of(metadata: &ArrowReaderMetadata) -> Result<Self> {
        if !metadata.parquet_schema().columns().iter().any(|column| is_in_utc(column.self_type())) {
            return Ok(Self::default());
        }
        let plain = |leaf: &Type| is_in_utc(leaf).then(|| plain_leaf(leaf, Physical::INT64, 0));
        let plain = with_leaf_types(metadata.parquet_schema(), plain)?;
        let schema = parquet_to_arrow_schema(&plain, metadata.metadata().file_metadata().key_value_metadata())?;
        let mut zones = Vec::new();
        with_leaves(schema.fields(), |_, field| {
            zones.push(match decoded(field.data_type()) {
                DataType::Timestamp(_, zone) => zone.clone(),
                _ => None,
            });
            Arc::clone(field)
        });
        Ok(Self(zones))
    }

    /// Returns the type of a leaf if the embedded schema states a zone other than the decoder's
    /// `zone`.
    fn stated(&self, leaf: usize, unit: TimeUnit, zone: Option<&str>) -> Option<DataType> {
        let stated = self.0.get(leaf)?.as_ref()?;
        (zone == Some(UTC) && stated.as_ref() != UTC).then(|| DataType::Timestamp(unit, Some(Arc::clone(stated))))
    }
}

/// The zone that the decoder assigns to timestamps of unknown zone.
const UTC: &str = "UTC";

fn is_in_utc(leaf: &Type) -> bool {
    if !leaf.is_primitive() || leaf.get_physical_type() != Physical::INT64 {
        return false;
    }
    let info = leaf.get_basic_info();
    match info.logical_type_ref() {
        Some(LogicalType::Timestamp(timestamp)) => timestamp.is_adjusted_to_u_t_c,
        Some(_) => false,
        None => {
            matches!(info.converted_type(), ConvertedType::TIMESTAMP_MILLIS | ConvertedType::TIMESTAMP_MICROS)
        }
    }
}

/// Returns the metadata of a file. Its embedded Arrow schema retains only dictionaries that the
/// decoder can read.
pub(super) fn with_readable_dictionaries(metadata: ArrowReaderMetadata) -> crate::Result<ArrowReaderMetadata> {
    let columns = metadata.parquet_schema().columns();
    let mut is_changed = false;
    let fields =
        with_leaves(metadata.schema().fields(), |number, field| match (field.data_type(), columns.get(number)) {
            (DataType::Dictionary(_, values), Some(column))
                if !is_readable_dictionary(values, column.physical_type()) =>
            {
                is_changed = true;
                Arc::new(field.as_ref().clone().with_data_type(values.as_ref().clone()))
            }
            _ => Arc::clone(field),
        });
    if !is_changed {
        return Ok(metadata);
    }
    let schema = Schema::new_with_metadata(fields, metadata.schema().metadata().clone());
    let embedded = with_changes(&metadata, |footer| {
        let entries = footer.entries.get_or_insert_default();
        entries.retain(|entry| entry.key != ARROW_SCHEMA_META_KEY);
        entries.push(KeyValue::new(ARROW_SCHEMA_META_KEY.to_owned(), encode_arrow_schema(&schema)));
    });
    embedded.map_err(malformed)
}

/// Returns whether the decoder can read a dictionary of these values from a column of this type.
/// INT96 columns are read raw.
fn is_readable_dictionary(values: &DataType, column: Physical) -> bool {
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

/// Adds the logical type of a column to its field, unless the embedded Arrow schema states it.
fn annotate(field: &mut Field, column: &ColumnDescriptor) {
    let logical = match (column.logical_type_ref(), column.converted_type()) {
        (Some(logical), _) => logical.clone(),
        (None, ConvertedType::JSON) => LogicalType::Json,
        (None, ConvertedType::BSON) => LogicalType::Bson,
        (None, ConvertedType::ENUM) => LogicalType::Enum,
        _ => return,
    };
    if let Some((key, value)) = entry(&logical).filter(|(key, _)| !field.metadata().contains_key(key)) {
        field.metadata_mut().insert(key, value);
    }
}

/// Marks the structs that store variants.
fn with_variants(fields: &Fields, schema: &SchemaDescriptor) -> Fields {
    let (mut variants, mut next) = (HashSet::new(), 0);
    collect_variants(schema.root_schema(), &mut next, &mut variants);
    if variants.is_empty() {
        return fields.clone();
    }
    let mut next = 0;
    fields.iter().map(|field| marked(field, &variants, &mut next)).collect()
}

/// Collects the column ranges of variants. The recursion is bounded, because the depth of the
/// schema has been [checked](super::footer::check).
fn collect_variants(of: &Type, next: &mut usize, found: &mut HashSet<Range<usize>>) {
    if of.is_primitive() {
        *next += 1;
        return;
    }
    let start = *next;
    of.get_fields().iter().for_each(|field| collect_variants(field, next, found));
    if matches!(of.get_basic_info().logical_type_ref(), Some(LogicalType::Variant(_))) {
        found.insert(start..*next);
    }
}

/// Marks structs with exactly the columns of a variant. An enclosing struct can have the same
/// columns, but it does not have the child `metadata`.
fn marked(field: &FieldRef, variants: &HashSet<Range<usize>>, next: &mut usize) -> FieldRef {
    let start = *next;
    let data_type = match field.data_type() {
        DataType::Struct(fields) => {
            DataType::Struct(fields.iter().map(|field| marked(field, variants, next)).collect::<Fields>())
        }
        other => match with_members(other, |item| marked(item, variants, next)) {
            Some(lists) => lists,
            None => {
                *next += 1;
                return Arc::clone(field);
            }
        },
    };
    let mut field = Field::clone(field).with_data_type(data_type);
    let has_metadata =
        |fields: &Fields| fields.find("metadata").is_some_and(|(_, field)| !field.data_type().is_nested());
    let may_be_variant = matches!(field.data_type(), DataType::Struct(fields) if has_metadata(fields));
    if may_be_variant && variants.contains(&(start..*next)) && field.extension_type_name().is_none() {
        field.metadata_mut().insert(EXTENSION_TYPE_NAME_KEY, VARIANT);
    }
    Arc::new(field)
}

/// Corrects mistakes of early writers in the metadata of a file. Its row groups have `row_count`
/// rows in total.
pub(super) fn repaired(
    metadata: ArrowReaderMetadata,
    row_count: u64,
    file: &InputReader,
) -> crate::Result<ArrowReaderMetadata> {
    with_dictionary_headers(with_row_count(metadata, row_count)?, file)
}

/// Corrects a footer with a row count of zero, because the decoder would read no rows. Early
/// writers in Rust never set that number (`repeated_no_annotation.parquet` of Apache's
/// parquet-testing).
fn with_row_count(metadata: ArrowReaderMetadata, row_count: u64) -> crate::Result<ArrowReaderMetadata> {
    let file = metadata.metadata().file_metadata();
    if file.num_rows() != 0 || row_count == 0 {
        return Ok(metadata);
    }
    let row_count = i64::try_from(row_count).unwrap_or(i64::MAX); // larger than any real file
    with_changes(&metadata, |footer| footer.row_count = row_count).map_err(malformed)
}

/// Corrects the lengths of columns. Before 1.2.9, parquet-mr did not count dictionary page headers
/// in these lengths (PARQUET-816; `nation.dict-malformed.parquet` of Apache's parquet-testing).
fn with_dictionary_headers(metadata: ArrowReaderMetadata, file: &InputReader) -> crate::Result<ArrowReaderMetadata> {
    let writer = metadata.metadata().file_metadata().created_by();
    if !writer.is_some_and(omits_dictionary_headers) {
        return Ok(metadata);
    }
    let mut builder = metadata.metadata().as_ref().clone().into_builder();
    for mut group in builder.take_row_groups() {
        let columns = group.columns().iter().map(|column| {
            let length = pages::length(file, column)?;
            let column = column.clone().into_builder();
            // the pages lie in the file, so their length fits
            let column = column.set_total_compressed_size(i64::try_from(length).unwrap_or(i64::MAX));
            column.build().map_err(malformed)
        });
        let columns = columns.collect::<crate::Result<Vec<_>>>()?;
        group = group.into_builder().set_column_metadata(columns).build().map_err(malformed)?;
        builder = builder.add_row_group(group);
    }
    decodable(builder.build()).map_err(malformed)
}

/// Returns whether the writer is parquet-mr before version 1.2.9, or of an unknown version.
fn omits_dictionary_headers(writer: &str) -> bool {
    let Some(rest) = writer.strip_prefix("parquet-mr") else { return false };
    let version = rest.trim_start().strip_prefix("version ").unwrap_or("0");
    let mut parts = version.split(|c: char| !c.is_ascii_digit()).map(|part| part.parse().unwrap_or(0_u32));
    let mut part = || parts.next().unwrap_or(0);
    [part(), part(), part()] < [1, 2, 9]
}
