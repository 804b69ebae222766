//! Logical types that the decoder drops, kept in the metadata of fields.

use crate::arrow_type::with_members;
use crate::saved_schema::{VARIANT, entry};
use ::parquet::basic::{ConvertedType, LogicalType};
use ::parquet::schema::types::{ColumnDescriptor, SchemaDescriptor, Type};
use arrow_schema::extension::EXTENSION_TYPE_NAME_KEY;
use arrow_schema::{DataType, Field, FieldRef, Fields};
use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

/// Adds the logical type of a column to its field, unless an embedded Arrow schema states it.
pub(super) fn annotate(field: &mut Field, column: &ColumnDescriptor) {
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

/// Returns fields in which the groups of variants are marked.
pub(super) fn with_variants(fields: &Fields, schema: &SchemaDescriptor) -> Fields {
    let (mut variants, mut next) = (HashSet::new(), 0);
    collect_variants(schema.root_schema(), &mut next, &mut variants);
    if variants.is_empty() {
        return fields.clone();
    }
    let mut next = 0;
    fields.iter().map(|field| marked(field, &variants, &mut next)).collect()
}

/// Collects the numbers of the columns in each variant. The depth of a schema has been
/// [checked](super::check).
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

/// Marks the structs that have the columns of a variant, and its column `metadata`, which a struct
/// around it does not have.
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
    let may_be_one = matches!(field.data_type(), DataType::Struct(fields) if has_metadata(fields));
    if may_be_one && variants.contains(&(start..*next)) && field.extension_type_name().is_none() {
        field.metadata_mut().insert(EXTENSION_TYPE_NAME_KEY, VARIANT);
    }
    Arc::new(field)
}
