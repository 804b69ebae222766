//! Formats numbers and facts for people.

use chrono::DateTime;
use tensilo::facts::ColumnFacts;

/// Formats bytes in powers of 1000: `512 B`, `41.6 MB`.
pub(crate) fn bytes(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["kB", "MB", "GB", "TB", "PB", "EB"];
    if bytes < 1_000 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64; // an approximation
    let mut unit = "B";
    for next in UNITS {
        // 999.95 would be printed as 1000.0
        if value < 999.95 {
            break;
        }
        value /= 1_000.0;
        unit = next;
    }
    format!("{value:.1} {unit}")
}

/// Formats a number of things: `1 file`, `2 files`.
pub(crate) fn count(number: impl Into<u64>, thing: &str) -> String {
    let number = number.into();
    format!("{number} {thing}{}", if number == 1 { "" } else { "s" })
}

/// Formats a time: `840 ns`, `26.1 us`, `1.20 ms`.
pub(crate) fn nanoseconds(time: f64) -> String {
    match time {
        ..999.5 => format!("{time:.0} ns"),
        ..999_950.0 => format!("{:.1} us", time / 1e3),
        _ => format!("{:.2} ms", time / 1e6),
    }
}

/// Formats raw bytes divided by stored bytes; `-` if either is 0.
pub(crate) fn ratio(raw_bytes: u64, stored_bytes: u64) -> String {
    if raw_bytes == 0 || stored_bytes == 0 {
        return "-".to_owned();
    }
    format!("{:.2}", raw_bytes as f64 / stored_bytes as f64) // an approximation
}

/// Formats the encodings of a column's chunks: `constant:1 exponent-tiers:12`; `-` if the column
/// has no chunks. Leaves out encodings that only nulls and extents use.
pub(crate) fn encodings(facts: &ColumnFacts) -> String {
    let used = facts.encodings.iter().filter(|(_, chunks)| *chunks > 0);
    let used: Vec<String> = used.map(|(name, chunks)| format!("{name}:{chunks}")).collect();
    if used.is_empty() { "-".to_owned() } else { used.join(" ") }
}

/// Returns a time in seconds since 1970 as `2026-11-23 22:19`; a number that is no time as it is.
pub(crate) fn utc(seconds: u64) -> String {
    let time = i64::try_from(seconds).ok().and_then(|seconds| DateTime::from_timestamp(seconds, 0));
    time.map_or_else(|| seconds.to_string(), |time| time.format("%Y-%m-%d %H:%M").to_string())
}

/// Formats any text as at most 120 characters in one line. Control characters are escaped.
pub(crate) fn excerpt(text: &str) -> String {
    const LIMIT: usize = 120;
    let mut excerpt = String::new();
    for (i, character) in text.chars().enumerate() {
        if i == LIMIT {
            // exact: usize has at most 64 bits
            return format!("{excerpt}... ({})", bytes(text.len() as u64));
        }
        if character.is_control() {
            excerpt.extend(character.escape_default());
        } else {
            excerpt.push(character);
        }
    }
    excerpt
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_have_a_unit_and_one_decimal() {
        let cases = [
            (0, "0 B"),
            (999, "999 B"),
            (1_000, "1.0 kB"),
            (41_560_000, "41.6 MB"),
            (999_949, "999.9 kB"),
            (999_950, "1.0 MB"),
            (u64::MAX, "18.4 EB"),
        ];
        for (count, text) in cases {
            assert_eq!(bytes(count), text);
        }
    }

    #[test]
    fn times_have_a_unit() {
        let texts = [0.4, 839.6, 999.6, 26_100.0, 999_960.0, 1.2e9].map(nanoseconds);
        assert_eq!(texts, ["0 ns", "840 ns", "1.0 us", "26.1 us", "1.00 ms", "1200.00 ms"]);
    }

    #[test]
    fn a_ratio_needs_bytes_on_both_sides() {
        assert_eq!(ratio(3, 2), "1.50");
        assert_eq!(ratio(0, 2), "-");
        assert_eq!(ratio(2, 0), "-");
    }

    #[test]
    fn an_excerpt_cannot_steer_the_terminal() {
        assert_eq!(excerpt("a\u{1b}[31m\n"), "a\\u{1b}[31m\\n");
        assert!(excerpt(&"x".repeat(5_000)).ends_with("... (5.0 kB)"));
    }
}
