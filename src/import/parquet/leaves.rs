//! The leaves of schemas: the fields without fields, each of which is a column of a Parquet file.

use crate::arrow_type::with_members;
use ::parquet::basic::{Repetition, Type as Physical};
use ::parquet::errors::Result;
use ::parquet::schema::types::{SchemaDescriptor, Type, TypePtr};
use arrow_schema::{DataType, FieldRef, Fields};
use std::sync::Arc;

/// Returns the fields with other leaves; `leaf` is given the number of the leaf and its field. The
/// decoder made the fields from a schema whose depth has been [checked](super::check).
pub(super) fn with_leaves(fields: &Fields, mut leaf: impl FnMut(usize, &FieldRef) -> FieldRef) -> Fields {
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

/// Returns the schema of a file with the leaves that `leaf` returns, and the others as they are.
pub(super) fn with_leaf_types(
    schema: &SchemaDescriptor,
    leaf: fn(&Type) -> Option<Result<Type>>,
) -> Result<Arc<SchemaDescriptor>> {
    Ok(Arc::new(SchemaDescriptor::new(Arc::new(with_leaf_types_of(schema.root_schema(), leaf)?))))
}

/// The depth of the type has been [checked](super::check).
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

/// Returns a leaf of this physical type in the place of another, without a logical type.
pub(super) fn plain_leaf(of: &Type, physical: Physical, length: i32) -> Result<Type> {
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
