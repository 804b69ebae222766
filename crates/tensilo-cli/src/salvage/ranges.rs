//! Ranges of lost and unconfirmed samples as text.

use crate::text::human;
use std::ops::Range;

/// The maximum number of lost ranges in a line of text. The JSON document has all.
const RANGES: usize = 8;

/// Returns `[[100, 200], [300, 301]]` for a JSON document.
pub(super) fn pairs(ranges: &[Range<u64>]) -> Vec<[u64; 2]> {
    ranges.iter().map(|range| [range.start, range.end]).collect()
}

/// Returns the remark on samples that nothing confirms.
pub(super) fn unconfirmed_remark(count: u64) -> String {
    format!(
        "Nothing confirms {}, because the index or the footer is damaged too: they may come from an older file.",
        human::count(count, "sample")
    )
}

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
