//! Ranges of lost samples as text.

use std::ops::Range;

/// The maximum number of lost ranges in a line of text. The JSON document has all.
const RANGES: usize = 8;

/// Returns `100..200, 300..301`.
pub(super) fn ranges(ranges: &[Range<u64>]) -> String {
    let mut words: Vec<String> =
        ranges.iter().take(RANGES).map(|range| format!("{}..{}", range.start, range.end)).collect();
    match ranges.len().saturating_sub(RANGES) {
        0 if words.is_empty() => "-".to_owned(),
        0 => words.join(", "),
        more => {
            words.push(format!("and {more} more ranges (--json lists all)"));
            words.join(", ")
        }
    }
}
