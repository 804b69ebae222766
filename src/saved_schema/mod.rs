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
mod merge;
mod names;
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

/// The metadata key of a field in the schema: the name that it had in the source, if another field
/// of the same struct has it, too.
#[cfg(feature = "arrow")]
pub(crate) const NAME: &str = "tensilo.name";

/// The metadata key of a field in the schema: the values of its dictionary, as a JSON array.
#[cfg(feature = "arrow")]
pub(crate) const DICTIONARY: &str = "tensilo.dictionary";

#[cfg(feature = "arrow")]
pub(crate) use field_json::{parse, text};

/// Joins the schema of another source to that of the first: a field is nullable if it is in either.
pub(crate) fn join(metadata: &mut Metadata, other: &Metadata) {
    let (Some(own), Some(other)) = (metadata.get(KEY), other.get(KEY)) else { return };
    if own == other {
        return;
    }
    let (Some(mut own), Some(other)) = (document(own), document(other)) else { return };
    merge::fields(&mut own, &other);
    metadata.insert(KEY.to_owned(), own.to_string());
}

/// Leaves out the fields that are not made of these columns alone, and those for which `is_needed`
/// is false.
pub(crate) fn reduce(metadata: &mut Metadata, columns: &HashSet<&str>, is_needed: impl Fn(&Value) -> bool) {
    let Some(mut document) = metadata.get(KEY).and_then(|text| document(text)) else { return };
    let Some(fields) = fields_mut(&mut document) else { return };
    fields.retain(|field| {
        let names = names::columns(field);
        !names.is_empty() && names.iter().all(|name| columns.contains(name.as_str())) && is_needed(field)
    });
    if fields.is_empty() {
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
    plain.metadata_mut().remove("import.dropped_metadata"); // the importer's word
    plain != *field
}
