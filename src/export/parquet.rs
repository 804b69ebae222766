//! Writes Parquet files, compressed with Zstandard.
//!
//! Batches are collected until they fill a row group, which is then written field by field. The
//! library's own writer has the encoders of all columns open at once. Each encoder takes tens of
//! kilobytes, even for a short column, which is too much memory for a table of many columns.
//!
//! The library also leaves out some logical types: the extension types of Arrow, and the logical
//! types that an import saved in the metadata of fields. Therefore, the schema of the file is built
//! here ([`LogicalTypes`]).

use crate::Error;
use crate::logical::arrow_type::members;
use crate::logical::saved_schema::{LOGICAL_TYPE, VARIANT, inside, logical_type, without_entry};
use arrow_array::RecordBatch;
use arrow_schema::{DataType, Field, FieldRef, Fields, Schema, SchemaRef};
use parquet::arrow::arrow_writer::{ArrowColumnWriter, ArrowRowGroupWriterFactory, ArrowWriterOptions, compute_leaves};
use parquet::arrow::{ArrowSchemaConverter, ArrowWriter, add_encoded_arrow_schema_to_metadata};
use parquet::basic::{Compression, Encoding, LogicalType, Type as PhysicalType, ZstdLevel};
use parquet::errors::Result;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{DEFAULT_MAX_ROW_GROUP_ROW_COUNT, WriterProperties, WriterPropertiesPtr};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{ColumnDescriptor, SchemaDescriptor, Type, TypePtr};
use std::collections::{BTreeMap, HashSet};
use std::io::{self, Write};
use std::ops::Range;
use std::sync::Arc;

/// The maximum total size, in bytes, of the batches of a row group in memory.
const MAX_ROW_GROUP_BYTES: usize = 64 << 20;
/// The maximum number of rows in a row group, unless one batch has more.
const MAX_ROW_GROUP_ROWS: usize = DEFAULT_MAX_ROW_GROUP_ROW_COUNT;

/// A Parquet file that is being written, and the batches of its next row group.
pub(super) struct ParquetFile<'a> {
    writer: SerializedFileWriter<&'a mut (dyn Write + Send)>,
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
    batch_bytes: usize,
    rows: usize,
}

/// Fails if the schema has a struct without fields.
pub(super) fn check_structs(schema: &Schema) -> crate::Result<()> {
    match schema.fields().iter().find(|field| has_empty_struct(field)) {
        None => Ok(()),
        Some(field) => {
            let message = "Parquet cannot store a struct without fields; export to an Arrow file, or skip the column";
            Err(Error::bad_argument(message).with_column(field.name()))
        }
    }
}

/// Returns whether a field contains a struct without fields. The recursion is bounded, because the
/// path of a column has a limited number of names, so structs are nested to a limited depth.
fn has_empty_struct(field: &FieldRef) -> bool {
    let fields = inside(field.data_type());
    (fields.is_empty() && matches!(field.data_type(), DataType::Struct(_))) || fields.iter().any(has_empty_struct)
}

/// Returns the properties of the writer. Floats are stored as byte streams, because these compress
/// better than whole values. Floats have no dictionary for two reasons: a dictionary is worthwhile
/// only if a few values repeat, and it must not decide whether zeros of different sign, or NaNs of
/// different payload, are equal.
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
    add_encoded_arrow_schema_to_metadata(&embedded(schema), &mut properties);
    properties
}

/// Returns the metadata of the schema as metadata entries of the file, because some readers do not
/// look for it in the embedded Arrow schema.
fn entries(schema: &Schema) -> Vec<KeyValue> {
    let sorted: BTreeMap<&String, &String> = schema.metadata().iter().collect();
    sorted.into_iter().map(|(key, value)| KeyValue::new(key.clone(), value.clone())).collect()
}

fn is_float(column: &ColumnDescriptor) -> bool {
    matches!(column.physical_type(), PhysicalType::FLOAT | PhysicalType::DOUBLE)
        || matches!(column.logical_type_ref(), Some(LogicalType::Float16))
}

impl<'a> ParquetFile<'a> {
    pub(super) fn begin(file: &'a mut (dyn Write + Send), schema: &SchemaRef) -> Result<Self> {
        let types = types_of(schema)?;
        let options = ArrowWriterOptions::new()
            .with_properties(properties(schema, &types))
            .with_parquet_schema(types)
            .with_skip_arrow_metadata(true); // the properties contain this metadata
        let (writer, _) = ArrowWriter::try_new_with_options(file, schema.clone(), options)?.into_serialized_writer()?;
        Ok(Self { writer, schema: schema.clone(), batches: Vec::new(), batch_bytes: 0, rows: 0 })
    }

    pub(super) fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        let (bytes, rows) = (batch.get_array_memory_size(), batch.num_rows());
        let is_full = self.batch_bytes.saturating_add(bytes) > MAX_ROW_GROUP_BYTES
            || self.rows.saturating_add(rows) > MAX_ROW_GROUP_ROWS;
        if is_full {
            self.write_row_group()?;
        }
        self.batch_bytes = self.batch_bytes.saturating_add(bytes);
        self.rows = self.rows.saturating_add(rows);
        self.batches.push(batch.clone());
        Ok(())
    }

    pub(super) fn finish(mut self) -> Result<()> {
        self.write_row_group()?;
        self.writer.close().map(|_| ())
    }

    /// Writes the collected batches as a row group.
    fn write_row_group(&mut self) -> Result<()> {
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

/// Returns the column writers of one field. The library creates column writers only for a whole
/// file, so this function passes it a file that has only this field and discards its output.
fn column_writers(
    types: &TypePtr,
    field: &FieldRef,
    parquet_type: &TypePtr,
    properties: &WriterPropertiesPtr,
) -> Result<Vec<ArrowColumnWriter>> {
    let root = Type::group_type_builder(types.name()).with_fields(vec![parquet_type.clone()]).build()?;
    let file = SerializedFileWriter::new(io::sink(), Arc::new(root), properties.clone())?;
    let schema = Arc::new(Schema::new([field.clone()]));
    ArrowRowGroupWriterFactory::new(&file, schema).create_column_writers(0)
}

/// The only version of the variant encoding.
const VARIANT_VERSION: i8 = 1;

/// Returns the Parquet schema of an Arrow schema.
fn types_of(schema: &Schema) -> Result<SchemaDescriptor> {
    let plain = ArrowSchemaConverter::new().convert(schema)?;
    let mut types = LogicalTypes { leaves: Vec::new(), variants: HashSet::new() };
    schema.fields().iter().for_each(|field| types.collect(field));
    if types.variants.is_empty() && types.leaves.iter().all(Option::is_none) {
        return Ok(plain);
    }
    Ok(SchemaDescriptor::new(types.applied(&plain.root_schema_ptr(), &mut 0)?))
}

/// Returns the Arrow schema to embed. It omits the logical types, which are in the Parquet schema.
fn embedded(schema: &Schema) -> Schema {
    let fields: Fields = schema.fields().iter().map(|field| without_entry(field, LOGICAL_TYPE)).collect();
    Schema::new_with_metadata(fields, schema.metadata().clone())
}

/// The logical types of an Arrow schema.
struct LogicalTypes {
    /// The logical type of each column.
    leaves: Vec<Option<LogicalType>>,
    /// The columns of each variant.
    variants: HashSet<Range<usize>>,
}

impl LogicalTypes {
    /// Collects the types of a field. The recursion is bounded, because the path of a column has a
    /// limited number of names, so structs are nested to a limited depth.
    fn collect(&mut self, field: &Field) {
        let start = self.leaves.len();
        match field.data_type() {
            DataType::Struct(fields) => fields.iter().for_each(|field| self.collect(field)),
            other => match members(other) {
                Some(item) => self.collect(item),
                None => self.leaves.push(logical_type(field)),
            },
        }
        if field.extension_type_name() == Some(VARIANT) {
            self.variants.insert(start..self.leaves.len());
        }
    }

    /// Returns a Parquet type with the logical types applied. If a logical type does not fit the
    /// physical type of its column, the column remains unchanged.
    fn applied(&self, of: &TypePtr, next: &mut usize) -> Result<TypePtr> {
        let (start, info) = (*next, of.get_basic_info());
        let repetition = info.has_repetition().then(|| info.repetition());
        let id = info.has_id().then(|| info.id());
        if let Type::PrimitiveType { physical_type, type_length, .. } = of.as_ref() {
            *next += 1;
            let Some(Some(logical)) = self.leaves.get(start) else { return Ok(Arc::clone(of)) };
            let leaf = Type::primitive_type_builder(info.name(), *physical_type)
                .with_length(*type_length)
                .with_id(id)
                .with_logical_type(Some(logical.clone()));
            let leaf = repetition.into_iter().fold(leaf, |leaf, repetition| leaf.with_repetition(repetition));
            return Ok(leaf.build().map_or_else(|_| Arc::clone(of), Arc::new));
        }
        let fields = of.get_fields().iter().map(|field| self.applied(field, next)).collect::<Result<Vec<_>>>()?;
        // a struct that contains only a variant has the same columns, so comparing the range is not
        // enough
        let has_metadata = fields.iter().any(|field| field.name() == "metadata" && field.is_primitive());
        let is_variant = has_metadata && self.variants.contains(&(start..*next));
        let variant = is_variant.then(|| LogicalType::variant(Some(VARIANT_VERSION)));
        let group = Type::group_type_builder(info.name())
            .with_logical_type(variant.or_else(|| info.logical_type_ref().cloned()))
            .with_converted_type(info.converted_type())
            .with_fields(fields)
            .with_id(id);
        let group = repetition.into_iter().fold(group, |group, repetition| group.with_repetition(repetition));
        Ok(Arc::new(group.build()?))
    }
}
