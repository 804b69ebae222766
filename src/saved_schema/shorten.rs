//! The limit of the text.

use super::document::{DICTIONARY, fields_mut, name};
use crate::{Metadata, limits};
use serde_json::Value;
use std::cmp::Reverse;
use std::collections::HashSet;

/// Lists the keys that were left out because they or their values are over a limit of the format.
pub(crate) const DROPPED: &str = "import.dropped_metadata";
/// The most bytes of the text: a quarter of the header, which has all other metadata, too.
const TEXT_BYTES: usize = limits::SCHEMA_BYTES as usize / 4; // exact: 4 MiB
/// The most bytes of that list.
const LISTED_BYTES: usize = 4096;
/// The last one in a list that lacks some.
const MORE: &str = "...";

/// Adds keys to the list of those that were left out.
pub(crate) fn add_dropped(metadata: &mut Metadata, keys: &[String]) {
    let list = with_dropped(metadata.get(DROPPED), keys);
    metadata.extend(list.map(|list| (DROPPED.to_owned(), list)));
}

/// Returns the list with more keys, each once; `None` if there are no more. Those for which it has
/// no room are left out, and `...` is its end.
fn with_dropped(list: Option<&String>, keys: &[String]) -> Option<String> {
    let all = list.into_iter().flat_map(|list| list.split(", ")).chain(keys.iter().map(String::as_str));
    let mut known = HashSet::new();
    let (mut listed, mut bytes, mut lacks_some) = (Vec::new(), 0_usize, false);
    for key in all.filter(|key| known.insert(*key)) {
        let with_key = bytes.saturating_add(key.len()).saturating_add(2); // and the comma
        if key == MORE || with_key > LISTED_BYTES {
            lacks_some = true;
        } else {
            bytes = with_key;
            listed.push(key);
        }
    }
    listed.extend(lacks_some.then_some(MORE));
    (!keys.is_empty()).then(|| listed.join(", "))
}

/// Returns which of several texts of so many bytes are kept, so that they have at most `limit`
/// bytes together. The longest are left out first.
pub(crate) fn fitting(limit: usize, bytes: &[usize]) -> Vec<bool> {
    let mut sum = bytes.iter().fold(0_usize, |sum, bytes| sum.saturating_add(*bytes));
    let mut kept = vec![true; bytes.len()];
    let mut longest_first: Vec<(usize, &mut bool)> = bytes.iter().copied().zip(&mut kept).collect();
    longest_first.sort_by_key(|(bytes, _)| Reverse(*bytes));
    for (bytes, kept) in longest_first {
        if sum <= limit {
            break;
        }
        (sum, *kept) = (sum.saturating_sub(bytes), false);
    }
    kept
}

/// Leaves out what makes the text longer than a value may be: values of dictionaries, and, if that
/// is not enough, fields; the longest first. Returns the names of these fields.
pub(super) fn shorten(document: &mut Value) -> Vec<String> {
    let mut length = document.to_string().len();
    let Some(fields) = fields_mut(document) else { return Vec::new() };
    if length <= TEXT_BYTES {
        return Vec::new();
    }
    for (_, number) in longest_first(fields) {
        let Some(field) = fields.get_mut(number).filter(|_| length > TEXT_BYTES) else { break };
        let before = field.to_string().len();
        remove_values(field);
        length = length.saturating_sub(before).saturating_add(field.to_string().len());
    }
    let mut left_out: Vec<usize> = Vec::new();
    for (bytes, number) in longest_first(fields) {
        if length <= TEXT_BYTES {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_keys_ends_at_a_key() {
        let mut metadata = Metadata::new();
        let key = |i: usize| format!("key-{i:04}");
        for keys in [0..3, 1..300, 300..600] {
            add_dropped(&mut metadata, &keys.map(key).collect::<Vec<_>>());
        }
        add_dropped(&mut metadata, &["x".repeat(10_000), "short".to_owned()]);
        let (list, more) = metadata[DROPPED].rsplit_once(", ").unwrap();
        assert_eq!(more, MORE);
        let listed: Vec<String> = list.split(", ").map(str::to_owned).collect();
        assert!(list.len() <= LISTED_BYTES && listed.len() > 400, "{list}");
        assert_eq!(listed, (0..listed.len()).map(key).collect::<Vec<_>>());
    }
}
