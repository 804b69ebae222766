//! The schema of a Parquet file, with the logical types that its writer leaves out: those that are
//! extension types of Arrow, and those that an import has kept in the metadata of fields.

use crate::arrow_type::{members, with_members};
use crate::saved_schema::{LOGICAL_TYPE, VARIANT, logical_type};
use arrow_schema::{DataType, Field, FieldRef, Fields, Schema};
use parquet::arrow::ArrowSchemaConverter;
use parquet::basic::LogicalType;
use parquet::errors::Result;
use parquet::schema::types::{SchemaDescriptor, Type, TypePtr};
use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

/// The only version of variants.
const VARIANT_VERSION: i8 = 1;

/// Returns the Parquet schema of an Arrow schema.
pub(super) fn of(schema: &Schema) -> Result<SchemaDescriptor> {
    let plain = ArrowSchemaConverter::new().convert(schema)?;
    let mut types = LogicalTypes { leaves: Vec::new(), variants: HashSet::new() };
    schema.fields().iter().for_each(|field| types.collect(field));
    if types.variants.is_empty() && types.leaves.iter().all(Option::is_none) {
        return Ok(plain);
    }
    Ok(SchemaDescriptor::new(types.applied(&plain.root_schema_ptr(), &mut 0)?))
}

/// Returns the Arrow schema that the file keeps: its own schema has the logical types.
pub(super) fn embedded(schema: &Schema) -> Schema {
    let fields: Fields = schema.fields().iter().map(without_text).collect();
    Schema::new_with_metadata(fields, schema.metadata().clone())
}

fn without_text(field: &FieldRef) -> FieldRef {
    let data_type = match field.data_type() {
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(without_text).collect()),
        other => match with_members(other, without_text) {
            Some(lists) => lists,
            None if !field.metadata().contains_key(LOGICAL_TYPE) => return Arc::clone(field),
            None => other.clone(),
        },
    };
    let mut field = Field::clone(field).with_data_type(data_type);
    field.metadata_mut().remove(LOGICAL_TYPE);
    Arc::new(field)
}

/// The logical types of an Arrow schema.
struct LogicalTypes {
    /// For each column.
    leaves: Vec<Option<LogicalType>>,
    /// The columns of each variant.
    variants: HashSet<Range<usize>>,
}

impl LogicalTypes {
    /// Collects the types of a field. Its depth is bounded by that of paths.
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

    /// Returns a type with the logical types. A column whose physical type they do not fit stays.
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
        // a struct around a variant has the same columns
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
