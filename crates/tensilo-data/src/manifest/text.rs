//! Texts that people can read and compare: a line for each member of a list.

use serde::Serialize;

/// Returns a value as JSON in one line.
pub(super) fn line(value: &impl Serialize) -> String {
    // only maps whose keys are not texts fail
    serde_json::to_string(value).unwrap_or_default()
}

/// Returns a list as JSON with a line for each member.
pub(super) fn lines<T: Serialize>(members: impl IntoIterator<Item = T>) -> String {
    let lines: Vec<String> = members.into_iter().map(|member| line(&member)).collect();
    if lines.is_empty() { "[]".to_owned() } else { format!("[\n{}\n]", lines.join(",\n")) }
}
