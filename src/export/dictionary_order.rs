//! The columns that were ordered dictionaries.

use super::member_paths::with_paths;
use crate::arrow_type::members;
use crate::format::FieldNode;
use crate::{Schema, saved_schema};
use arrow_schema::{DataType, Field};
use std::collections::HashSet;

/// Returns the numbers of those of the columns whose fields had an ordered dictionary in the
/// source.
pub(super) fn ordered(schema: &Schema, columns: &[usize]) -> Vec<usize> {
    let saved = saved_schema::fields(&schema.metadata);
    let fields = saved.iter().filter(|field| has_ordered_dictionary(field));
    let names: HashSet<&str> = fields.map(|field| field.name().as_str()).collect();
    let schemas = with_paths(columns.iter().filter_map(|&number| schema.columns.get(number)), &saved);
    let nodes = FieldNode::of_columns(schemas.iter().map(|column| &**column));
    let numbers = nodes.iter().filter(|node| names.contains(node.name())).flat_map(FieldNode::columns);
    numbers.filter_map(|number| columns.get(number).copied()).collect()
}

fn has_ordered_dictionary(field: &Field) -> bool {
    match field.data_type() {
        DataType::Dictionary(..) => field.dict_is_ordered() == Some(true),
        DataType::Struct(fields) => fields.iter().any(|field| has_ordered_dictionary(field)),
        other => members(other).is_some_and(|item| has_ordered_dictionary(item)),
    }
}
