//! The metadata of sources that a file keeps: fields of their Arrow schema, and what the header has
//! room for.

use crate::format::path;
use crate::saved_schema::{add_dropped, fitting};
use crate::{Metadata, Schema, arrow_type, limits, saved_schema};
use std::collections::HashSet;

/// Leaves out fields that have other columns than those of the file, and fields that an export
/// gives anyway. The fields in a tensilo file that is converted were needed when it was made.
pub(super) fn keep_needed(schema: &mut Schema, is_native: bool) {
    if !schema.metadata.contains_key(saved_schema::KEY) {
        return;
    }
    let mut metadata = std::mem::take(&mut schema.metadata);
    let columns: HashSet<&str> = schema.columns.iter().map(|column| column.name.as_str()).collect();
    if is_native {
        saved_schema::reduce(&mut metadata, &columns, |_| true);
    } else {
        reduce_to_needed(schema, &columns, &mut metadata);
    }
    schema.metadata = metadata;
}

#[cfg(feature = "arrow")]
fn reduce_to_needed(schema: &Schema, columns: &HashSet<&str>, metadata: &mut crate::Metadata) {
    let plain = crate::export::plain_fields(schema);
    let plain = plain.iter().map(|field| (field.name().as_str(), field)).collect();
    saved_schema::reduce(metadata, columns, |field| saved_schema::differs(field, &plain));
}

/// Only Arrow and Parquet files state a schema.
#[cfg(not(feature = "arrow"))]
fn reduce_to_needed(_: &Schema, columns: &HashSet<&str>, metadata: &mut crate::Metadata) {
    saved_schema::reduce(metadata, columns, |_| true);
}

/// Leaves out the longest metadata of a schema that would not fit into the header. Those of the
/// file list them.
pub(super) fn fit_header(schema: &mut Schema) {
    /// The rest of a column record, and the list of what was left out.
    const RECORD_BYTES: usize = 256;
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

/// Returns whether an export needs an entry, and its bytes.
fn entry_bytes((key, value): (&String, &String)) -> (bool, usize) {
    const LENGTH_BYTES: usize = 8;
    let is_needed = [path::KEY, arrow_type::KEY, saved_schema::KEY].contains(&key.as_str());
    (is_needed, key.len().saturating_add(value.len()).saturating_add(LENGTH_BYTES))
}
