//! The limit of the text.

use super::document::{DICTIONARY, fields_mut, name};
use crate::{Metadata, limits};
use serde_json::Value;

/// Lists the keys that were left out because they or their values are over a limit of the format.
pub(crate) const DROPPED: &str = "import.dropped_metadata";
/// The most characters of that list.
const LISTED_CHARS: usize = 4096;

/// Adds keys to the list of those that were left out.
pub(crate) fn add_dropped(metadata: &mut Metadata, keys: &[String]) {
    if keys.is_empty() {
        return;
    }
    let listed = metadata.get(DROPPED).into_iter().chain(keys).map(String::as_str).collect::<Vec<_>>();
    let list = listed.join(", ").chars().take(LISTED_CHARS).collect();
    metadata.insert(DROPPED.to_owned(), list);
}

/// Leaves out what makes the text longer than a value may be: values of dictionaries, and, if that
/// is not enough, fields; the longest first. Returns the names of these fields.
pub(super) fn shorten(document: &mut Value) -> Vec<String> {
    let mut length = document.to_string().len();
    let Some(fields) = fields_mut(document) else { return Vec::new() };
    if length <= limits::METADATA_VALUE_BYTES {
        return Vec::new();
    }
    for (_, number) in longest_first(fields) {
        let Some(field) = fields.get_mut(number).filter(|_| length > limits::METADATA_VALUE_BYTES) else { break };
        let before = field.to_string().len();
        remove_values(field);
        length = length.saturating_sub(before).saturating_add(field.to_string().len());
    }
    let mut left_out: Vec<usize> = Vec::new();
    for (bytes, number) in longest_first(fields) {
        if length <= limits::METADATA_VALUE_BYTES {
            break;
        }
        length = length.saturating_sub(bytes.saturating_add(1)); // and a comma
        left_out.push(number);
    }
    left_out.sort_unstable();
    let names = left_out.iter().filter_map(|number| name(fields.get(*number)?)).map(str::to_owned).collect();
    let mut number = 0;
    fields.retain(|_| {
        let is_kept = left_out.binary_search(&number).is_err();
        number += 1;
        is_kept
    });
    names
}

/// Returns the length of each field, and its number.
fn longest_first(fields: &[Value]) -> Vec<(usize, usize)> {
    let mut lengths: Vec<(usize, usize)> = fields.iter().map(|field| field.to_string().len()).zip(0..).collect();
    lengths.sort_unstable_by(|a, b| b.cmp(a));
    lengths
}

/// Removes the values of all dictionaries of a field. The depth of a field is bounded.
fn remove_values(field: &mut Value) {
    match field {
        Value::Object(members) => {
            if let Some(metadata) = members.get_mut("metadata").and_then(Value::as_object_mut) {
                metadata.shift_remove(DICTIONARY);
            }
            members.get_mut("type").into_iter().for_each(remove_of_type);
        }
        Value::Array(fields) => fields.iter_mut().for_each(remove_values),
        _ => {}
    }
}

fn remove_of_type(data_type: &mut Value) {
    data_type.as_object_mut().and_then(|kind| kind.values_mut().next()).into_iter().for_each(remove_values);
}
