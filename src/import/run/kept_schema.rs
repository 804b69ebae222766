//! The fields of the source's Arrow schema that a file keeps.

use crate::{Schema, saved_schema};
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
