//! Fits the metadata of sources into the file header.
//!
//! The size of the header is limited. The saved Arrow schema is reduced to the fields that are in
//! the file, and gets at most half of the header. If the other metadata entries do not fit either,
//! the longest are dropped first, and their keys are recorded.

#[cfg(feature = "arrow")]
use crate::export::plain_fields;
use crate::format::path;
use crate::import::run::found::{add_dropped, fitting};
use crate::logical::arrow_type;
use crate::logical::saved_schema;
use crate::{Metadata, Schema, limits};
#[cfg(feature = "arrow")]
use arrow_schema::FieldRef;
#[cfg(feature = "arrow")]
use std::collections::HashSet;

/// The maximum size of the Arrow schema in bytes: half of the header, because the header also holds
/// all other metadata.
#[cfg(feature = "arrow")]
const MAX_SCHEMA_BYTES: usize = limits::SCHEMA_BYTES as usize / 2; // exact: 8 MiB

/// Removes the Arrow schema if an export produces the same fields without it. Otherwise, removes
/// the fields whose columns are not in the file. If the schema is still too long, drops values of
/// dictionaries, then whole fields, and records the names of the dropped fields.
#[cfg(feature = "arrow")]
pub(super) fn preserve_fields(schema: &mut Schema) {
    let Some(bytes) = schema.metadata.get(saved_schema::KEY).map(String::len) else { return };
    let mut fields = saved_schema::fields(&schema.metadata);
    let names: HashSet<&str> = schema.columns.iter().map(|column| column.name.as_str()).collect();
    let count = fields.len();
    fields.retain(|field| {
        let columns = saved_schema::columns(field);
        !columns.is_empty() && columns.iter().all(|name| names.contains(name.as_str()))
    });
    // the comparison below is not sufficient for structs and casts: an export of some columns takes
    // the order of struct fields from the schema, and an export adds a summary of the cast to the
    // metadata of a field
    let is_implied = schema.columns.iter().all(|column| column.cast.is_none() && column.path().is_none());
    if is_implied && fields == plain_fields(schema) {
        schema.metadata.remove(saved_schema::KEY);
        return;
    }
    if fields.len() == count && bytes <= MAX_SCHEMA_BYTES {
        return; // keeps the original encoding, which another program may have written differently
    }
    let value = saved_schema::encoded(&fields);
    let fits = value.as_ref().is_none_or(|value| value.len() <= MAX_SCHEMA_BYTES);
    let (value, left_out) = if fits { (value, Vec::new()) } else { shortened(fields) };
    match value {
        Some(value) => drop(schema.metadata.insert(saved_schema::KEY.to_owned(), value)),
        None => drop(schema.metadata.remove(saved_schema::KEY)),
    }
    add_dropped(&mut schema.metadata, &left_out);
}

/// Returns an Arrow schema without the values of some dictionaries and, if that does not suffice,
/// without some fields. The longest values and the longest fields are dropped first. Also returns
/// the names of the dropped fields.
#[cfg(feature = "arrow")]
fn shortened(mut fields: Vec<FieldRef>) -> (Option<String>, Vec<String>) {
    // each encoding includes a header, so the sum is slightly too large
    let bytes = |field: &FieldRef| saved_schema::encoded(std::slice::from_ref(field)).map_or(0, |value| value.len());
    let bare: Vec<FieldRef> = fields.iter().map(saved_schema::without_values).collect();
    let bare_bytes: Vec<usize> = bare.iter().map(bytes).collect();
    let values: Vec<usize> =
        fields.iter().map(bytes).zip(&bare_bytes).map(|(bytes, bare)| bytes.saturating_sub(*bare)).collect();
    let room = MAX_SCHEMA_BYTES.saturating_sub(bare_bytes.iter().fold(0, |sum, bytes| bytes.saturating_add(sum)));
    for ((field, bare), keeps_values) in fields.iter_mut().zip(bare).zip(fitting(room, &values)) {
        if !keeps_values {
            *field = bare;
        }
    }
    let fits = fitting(MAX_SCHEMA_BYTES, &fields.iter().map(bytes).collect::<Vec<_>>());
    let (retained, left_out): (Vec<_>, Vec<_>) = fields.into_iter().zip(fits).partition(|(_, fits)| *fits);
    let retained: Vec<FieldRef> = retained.into_iter().map(|(field, _)| field).collect();
    let left_out = left_out.iter().map(|(field, _)| format!("{} of {}", saved_schema::KEY, field.name()));
    (saved_schema::encoded(&retained), left_out.collect())
}

/// Drops the longest metadata entries of a schema until it fits into the header, and records their
/// keys.
pub(super) fn fit_header(schema: &mut Schema) {
    /// The maximum size in bytes of a column record without its name and metadata.
    const RECORD_BYTES: usize = 256;
    /// The size in bytes that is reserved for the list of dropped keys.
    const LIST_BYTES: usize = 32 << 10;
    let names = schema.columns.iter().map(|column| column.name.len().saturating_add(RECORD_BYTES));
    let columns = schema.columns.iter().map(|column| &column.metadata);
    let entries: Vec<(bool, usize)> =
        columns.chain([&schema.metadata]).flat_map(|metadata| metadata.iter().map(entry_bytes)).collect();
    let needed = entries.iter().filter(|(is_needed, _)| *is_needed).map(|(_, bytes)| *bytes);
    let fixed = names.chain(needed).fold(LIST_BYTES, usize::saturating_add);
    let limit = usize::try_from(limits::SCHEMA_BYTES).unwrap_or(usize::MAX).saturating_sub(fixed);
    let bytes: Vec<usize> = entries.iter().map(|(is_needed, bytes)| if *is_needed { 0 } else { *bytes }).collect();
    let mut fits = fitting(limit, &bytes).into_iter();
    let mut dropped = Vec::new();
    let mut retain = |metadata: &mut Metadata, owner: Option<&str>| {
        metadata.retain(|key, _| {
            let fits = fits.next().unwrap_or(true);
            dropped.extend((!fits).then(|| owner.map_or_else(|| key.clone(), |owner| format!("{key} of {owner}"))));
            fits
        });
    };
    schema.columns.iter_mut().for_each(|column| retain(&mut column.metadata, Some(&column.name)));
    retain(&mut schema.metadata, None);
    add_dropped(&mut schema.metadata, &dropped);
}

/// Returns whether an export needs an entry, and the entry's size in bytes.
fn entry_bytes((key, value): (&String, &String)) -> (bool, usize) {
    const LENGTH_BYTES: usize = 8;
    let is_needed = [path::KEY, arrow_type::KEY, saved_schema::KEY].contains(&key.as_str());
    (is_needed, key.len().saturating_add(value.len()).saturating_add(LENGTH_BYTES))
}
