//! The Arrow schema of a source, kept as text in the metadata of a file, so that an export can
//! restore types that the columns do not tell: large strings, dictionaries, kinds of lists, maps,
//! names of items.
//!
//! The text is a JSON document, `{"fields":[...]}`. A field is an object:
//!
//! | member | meaning |
//! |---|---|
//! | `name` | |
//! | `type` | a text such as `timestamp[us, UTC]`, or an object with the children |
//! | `nullable` | `false`; absent if the field is nullable |
//! | `ordered` | `true`: the order of a dictionary's values has a meaning; otherwise absent |
//! | `metadata` | an object of texts; absent if there are none |
//!
//! A type with children is one of these, where `F` is a field and `T` a type:
//! `{"list":F}`, `{"large_list":F}`, `{"list_view":F}`, `{"large_list_view":F}`,
//! `{"fixed_size_list":F,"length":3}`, `{"struct":[F,...]}`, `{"map":F}`, `{"sorted_map":F}`,
//! `{"dictionary":T,"index":"int8"}`, `{"run_end_encoded":F,"ends":"int32"}`.

mod document;
#[cfg(feature = "arrow")]
mod field_json;
#[cfg(feature = "parquet")]
mod logical_type;
mod merge;
mod names;
mod shorten;
#[cfg(feature = "arrow")]
mod simple_types;

use crate::Metadata;
#[cfg(feature = "arrow")]
use arrow_schema::{Field, FieldRef};
use document::{document, fields_mut};
use serde_json::Value;
#[cfg(feature = "arrow")]
use std::collections::HashMap;
use std::collections::HashSet;

/// The metadata key.
pub(crate) const KEY: &str = "arrow.schema";

/// Longer values of a field's metadata are not in the schema. Those of columns have them.
#[cfg(feature = "arrow")]
pub(crate) const METADATA_BYTES: usize = 64 << 10;

#[cfg(feature = "arrow")]
pub(crate) use document::{DICTIONARY, NAME};
#[cfg(feature = "arrow")]
pub(crate) use field_json::text;
#[cfg(feature = "parquet")]
pub(crate) use logical_type::{LOGICAL_TYPE, VARIANT, entry, of_field as logical_type};
pub(crate) use shorten::{DROPPED, add_dropped, fitting};

/// Returns the fields of the source, as far as the metadata of a file have them.
#[cfg(feature = "arrow")]
pub(crate) fn fields(metadata: &Metadata) -> Vec<FieldRef> {
    metadata.get(KEY).map(|text| field_json::parse(text)).unwrap_or_default()
}

/// Joins the schema of another source to that of the first: a field is nullable if it is in either.
pub(crate) fn join(metadata: &mut Metadata, other: &Metadata) {
    let (Some(own), Some(other)) = (metadata.get(KEY), other.get(KEY)) else { return };
    // the values of dictionaries may differ where they are not in the schema
    if own == other && !own.contains("\"dictionary\"") {
        return;
    }
    let (Some(mut own), Some(other)) = (document(own), document(other)) else { return };
    merge::fields(&mut own, &other);
    metadata.insert(KEY.to_owned(), own.to_string());
}

/// Renames fields, each given by the names of the structs around it and its own. Two fields may
/// swap names. No field of the list is inside another one of it.
pub(crate) fn rename(metadata: &mut Metadata, renames: &[(Vec<String>, &str)]) {
    let Some(mut document) = metadata.get(KEY).and_then(|text| document(text)) else { return };
    let Some(fields) = fields_mut(&mut document) else { return };
    names::rename(fields, renames);
    metadata.insert(KEY.to_owned(), document.to_string());
}

/// Makes all dictionaries unordered: appended values stand behind the others, wherever their place
/// in the order would be.
pub(crate) fn forget_order(metadata: &mut Metadata) {
    let Some(mut document) = metadata.get(KEY).and_then(|text| document(text)) else { return };
    merge::forget_order(&mut document);
    metadata.insert(KEY.to_owned(), document.to_string());
}

/// Leaves out the fields that are not made of these columns alone, and those for which `is_needed`
/// is false. What is then too long for the format is left out too, and listed.
pub(crate) fn reduce(metadata: &mut Metadata, columns: &HashSet<&str>, is_needed: impl Fn(&Value) -> bool) {
    let Some(mut document) = metadata.get(KEY).and_then(|text| document(text)) else { return };
    let Some(fields) = fields_mut(&mut document) else { return };
    fields.retain(|field| {
        let names = names::columns(field);
        !names.is_empty() && names.iter().all(|name| columns.contains(name.as_str())) && is_needed(field)
    });
    let left_out = shorten::shorten(&mut document);
    let left_out: Vec<String> = left_out.into_iter().map(|name| format!("{KEY} of {name}")).collect();
    shorten::add_dropped(metadata, &left_out);
    if fields_mut(&mut document).is_none_or(|fields| fields.is_empty()) {
        metadata.remove(KEY);
    } else {
        metadata.insert(KEY.to_owned(), document.to_string());
    }
}

/// Returns whether a field is not one of those that an export gives without the schema.
#[cfg(feature = "arrow")]
pub(crate) fn differs(field: &Value, plain: &HashMap<&str, &FieldRef>) -> bool {
    let Some(field) = field_json::field(field) else { return false };
    let Some(plain) = plain.get(field.name().as_str()) else { return true };
    let mut plain = Field::clone(plain);
    // what the schema does not have either
    plain.metadata_mut().retain(|key, value| key != DROPPED && value.len() <= METADATA_BYTES);
    plain != *field
}
