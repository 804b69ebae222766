//! Parses text that people type: names of types and columns, and byte counts.
//!
//! An error about an unknown column lists the first few names. It also suggests the most similar
//! name, by edit distance without regard to case. The names come from a file, which can be hostile
//! and have many long names. The search for a similar name therefore considers only the first names
//! and skips long ones, and all names in a message are escaped.

use crate::Error;
use crate::element::dtype::DType;
use std::str::FromStr;

/// The maximum number of names in a message.
const MAX_LISTED: usize = 20;
/// The maximum number of names that are compared.
const MAX_COMPARED: usize = 10_000;
/// The maximum number of characters in a name that is compared.
const MAX_CHARS: usize = 64;

/// Parses a [name](DType::name), such as `"bf16"`. For any other text, fails and lists the valid
/// names.
impl FromStr for DType {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        let found = Self::ALL.into_iter().find(|dtype| dtype.name() == name);
        found.ok_or_else(|| {
            Error::bad_argument(format!("unknown type {name:?}; valid types: {}", Self::ALL.map(Self::name).join(", ")))
        })
    }
}

impl Error {
    /// Returns the error for a column name that is not one of `available`. It suggests the most
    /// similar name and lists the first names. This function is for crates that build on this
    /// crate.
    pub fn unknown_column<'a>(name: &str, available: impl Iterator<Item = &'a str> + Clone) -> Self {
        let similar = nearest(name, available.clone());
        let similar = similar.map_or(String::new(), |similar| format!("; the most similar is {similar:?}"));
        let listed = available.clone().take(MAX_LISTED).map(|name| name.escape_debug().to_string());
        let mut listed: Vec<String> = listed.collect();
        if available.count() > MAX_LISTED {
            listed.push("...".to_owned());
        }
        Self::no_column(format!("there is no column {name:?}{similar}; columns: {}", listed.join(", ")))
    }
}

/// Returns the first of the most similar names, or `None` if no name is similar.
fn nearest<'a>(name: &str, available: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let name: Vec<char> = name.to_lowercase().chars().take(MAX_CHARS + 1).collect();
    let max_distance = name.len() / 3 + 1;
    let short = available.take(MAX_COMPARED).filter(|other| other.len() <= 4 * MAX_CHARS && name.len() <= MAX_CHARS);
    let distances = short.map(|other| (distance(&name, other), other));
    distances
        .filter(|(distance, _)| *distance <= max_distance)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, other)| other)
}

/// Returns the Levenshtein distance, ignoring case: the number of characters to insert, delete or
/// replace. Returns 1 if `other` is a field with this name in a struct.
fn distance(name: &[char], other: &str) -> usize {
    let other: Vec<char> = other.to_lowercase().chars().collect();
    if other.strip_suffix(name).is_some_and(|before| before.last() == Some(&'.')) {
        return 1;
    }
    // distances from the current prefix of `name` to each prefix of `other`
    let mut distances: Vec<usize> = (0..=other.len()).collect();
    for (above, &character) in (1..).zip(name) {
        let mut diagonal = above - 1;
        let mut left = above;
        for (at, &theirs) in distances.iter_mut().zip(std::iter::once(&'\0').chain(&other)).skip(1) {
            let replaced = diagonal + usize::from(theirs != character);
            diagonal = *at;
            left = replaced.min(*at + 1).min(left + 1);
            *at = left;
        }
        if let Some(first) = distances.first_mut() {
            *first = above;
        }
    }
    distances.last().copied().unwrap_or(0)
}

/// Parses a byte count: `65536`, `64KiB`, `1 MiB`, `200GiB`, `2TiB`. Units are powers of 1,024, and
/// can be in upper or lower case. Returns `None` for any other text, and for more than `u64::MAX`
/// bytes.
///
/// ```
/// assert_eq!(tensilo::parse_byte_count("64KiB"), Some(65_536));
/// assert_eq!(tensilo::parse_byte_count("64KB"), None);
/// ```
pub fn parse_byte_count(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let unit: u64 = match text.get(digits.len()..)?.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "kib" => 1 << 10,
        "mib" => 1 << 20,
        "gib" => 1 << 30,
        "tib" => 1 << 40,
        _ => return None,
    };
    // `parse` would accept a sign
    let digits = digits.bytes().all(|byte| byte.is_ascii_digit()).then_some(digits)?;
    digits.parse::<u64>().ok()?.checked_mul(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_are_those_of_levenshtein() {
        for (a, b, expected) in [
            ("", "", 0),
            ("", "abc", 3),
            ("abc", "", 3),
            ("kitten", "sitting", 3),
            ("flaw", "lawn", 2),
            ("saturday", "sunday", 3),
            ("same", "SAME", 0),
            ("mel", "features.mel", 1),
        ] {
            let name: Vec<char> = a.chars().collect();
            assert_eq!(distance(&name, b), expected, "{a} {b}");
        }
    }

    #[test]
    fn only_a_similar_name_is_suggested() {
        let names = ["utt_id", "embedding", "embeddings", "features.mel"];
        let nearest = |name| nearest(name, names.into_iter());
        assert_eq!(nearest("embeding"), Some("embedding"));
        assert_eq!(nearest("Embeddings"), Some("embeddings"));
        assert_eq!(nearest("mel"), Some("features.mel"));
        assert_eq!(nearest("id_utt"), None);
        assert_eq!(nearest(""), None);
        assert_eq!(nearest(&"embedding".repeat(100)), None);
    }

    #[test]
    fn a_message_lists_some_names_and_cannot_steer_the_terminal() {
        let names: Vec<String> = (0..30).map(|i| format!("c{i}\u{1b}")).collect();
        let error = Error::unknown_column("d3\u{1b}", names.iter().map(String::as_str)).to_string();
        assert!(error.contains("the most similar is \"c3\\u{1b}\"; columns: c0\\u{1b}, "), "{error}");
        assert!(error.ends_with("c19\\u{1b}, ...") && !error.contains('\u{1b}'), "{error}");
    }

    #[test]
    fn numbers_of_bytes_have_binary_units() {
        for (text, bytes) in [("0", 0), ("17", 17), ("5 B", 5), ("3KiB", 3072), ("1 mib", 1 << 20), ("2TiB", 2 << 40)] {
            assert_eq!(parse_byte_count(text), Some(bytes), "{text:?}");
        }
        for text in ["", "GiB", "-1", "+1", "1.5GiB", "64KB", "64K", "1e9", "1MiB1", "99999999999TiB", "5\u{b2}"] {
            assert_eq!(parse_byte_count(text), None, "{text:?}");
        }
    }
}
