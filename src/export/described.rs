//! Metadata of other libraries that describe the fields of a schema.

use serde_json::Value;
use std::collections::HashSet;

/// The fields that are exported as they were in the source.
#[derive(Default)]
pub(super) struct ExportedFields(HashSet<String>);

impl ExportedFields {
    pub(super) fn add(&mut self, name: &str, is_restored: bool) {
        if is_restored {
            self.0.insert(name.to_owned());
        }
    }

    /// Returns whether metadata describe these fields only.
    pub(super) fn describes_all(&self, key: &str, value: &str) -> bool {
        let described = match key {
            "pandas" => pandas(value),
            "huggingface" => huggingface(value),
            _ => return true,
        };
        described.is_none_or(|names| names.iter().all(|name| self.0.contains(name)))
    }
}

/// Returns the names of the fields that pandas describes.
fn pandas(text: &str) -> Option<Vec<String>> {
    let document: Value = serde_json::from_str(text).ok()?;
    let name = |column: &Value| {
        let name = ["field_name", "name"].iter().find_map(|key| column.get(key)?.as_str());
        name.map(str::to_owned)
    };
    Some(document.get("columns")?.as_array()?.iter().filter_map(name).collect())
}

/// Returns the names of the fields that the library `datasets` describes.
fn huggingface(text: &str) -> Option<Vec<String>> {
    let document: Value = serde_json::from_str(text).ok()?;
    Some(document.pointer("/info/features")?.as_object()?.keys().cloned().collect())
}
