//! The metadata of columns and file.

use super::extension;
use super::types::{ENCRYPTED, INT96, element_type};
use crate::arrow_type::{self, ArrowType, CAST_TYPE, DIM_NAMES, DTYPE, FOUND_SHAPE};
use crate::format::path;
use crate::import::found::{DROPPED, add_dropped};
use crate::{Metadata, limits, saved_schema};
use arrow_schema::{Field, Schema};

/// Keys of a field that are about its source, or the importer's own.
pub(super) const IMPORTERS: [&str; 10] = [
    "PARQUET:field_id",
    "PARQUET:logical_type",
    DTYPE,
    INT96,
    ENCRYPTED,
    FOUND_SHAPE,
    CAST_TYPE,
    DROPPED,
    path::KEY,
    saved_schema::NAME,
];
/// Those of them that the schema of the source has.
pub(super) const OF_SCHEMA: [&str; 3] = ["PARQUET:field_id", "PARQUET:logical_type", saved_schema::NAME];

/// Returns the metadata of the column that a field becomes. If it has the members of a list, those
/// of the list come first.
pub(super) fn of_column(field: &Field, list: Option<&Field>) -> Metadata {
    let own = field.metadata().iter().filter(|(key, _)| list.is_none_or(|list| !list.metadata().contains_key(key)));
    let all = list.into_iter().flat_map(|list| list.metadata().iter()).chain(own);
    let kept = all.filter(|(key, _)| !IMPORTERS.contains(&key.as_str()) && !extension::expressed_by_shape(field, key));
    let mut metadata = within_limits(kept, &[]);
    metadata.remove(arrow_type::KEY); // the importer's word, not the input's
    if let Some(data_type) = ArrowType::from_arrow(element_type(field.data_type())) {
        metadata.insert(arrow_type::KEY.to_owned(), data_type.to_string());
    }
    if let Some(names) = extension::dim_names(field) {
        metadata.insert(DIM_NAMES.to_owned(), names);
    }
    metadata
}

/// Returns the metadata of the file. `saved` is its schema; it may be over the limit of the format
/// until fields without columns are left out of it. `dropped` are the keys that the reader of the
/// file has left out.
pub(super) fn of_file(schema: &Schema, saved: Option<String>, dropped: &[String]) -> Metadata {
    let own = schema.metadata().iter();
    let own = own.filter(|(key, _)| ![saved_schema::KEY, DROPPED].contains(&key.as_str()));
    let mut metadata = within_limits(own, dropped);
    metadata.extend(saved.map(|value| (saved_schema::KEY.to_owned(), value)));
    metadata
}

/// Returns the entries that a file can keep. The others are listed, behind those that were
/// `dropped` before.
fn within_limits<'a>(entries: impl Iterator<Item = (&'a String, &'a String)>, dropped: &[String]) -> Metadata {
    let mut metadata = Metadata::new();
    let mut dropped = dropped.to_vec();
    for (key, value) in entries {
        let key_fits = (1..=limits::METADATA_KEY_BYTES).contains(&key.len());
        let room = metadata.len() < limits::METADATA_ENTRIES / 2;
        if key_fits && room && value.len() <= limits::METADATA_VALUE_BYTES {
            metadata.insert(key.clone(), value.clone());
        } else {
            dropped.push(key.clone());
        }
    }
    add_dropped(&mut metadata, &dropped);
    metadata
}
