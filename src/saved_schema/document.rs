//! The text as a JSON document.

use serde_json::Value;

/// The metadata key of a field in the schema: the values of its dictionary, as a JSON array.
pub(crate) const DICTIONARY: &str = "tensilo.dictionary";

/// The metadata key of a field in the schema: the name that it had in the source, if another field
/// has it, too.
pub(crate) const NAME: &str = "tensilo.name";

pub(super) fn document(text: &str) -> Option<Value> {
    serde_json::from_str(text).ok() // refuses what is nested deeper than 128 levels
}

/// Returns the name of a field.
pub(super) fn name(field: &Value) -> Option<&str> {
    field.get("name")?.as_str()
}

pub(super) fn fields_mut(document: &mut Value) -> Option<&mut Vec<Value>> {
    document.get_mut("fields")?.as_array_mut()
}
