//! Numbers of bytes that people write.

/// Returns the number of bytes that a text names: `65536`, `64KiB`, `1 MiB`, `200GiB`, `2TiB`.
/// Units are powers of 1,024, in upper or lower case. Returns `None` for any other text, and for
/// more than a `u64` has.
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
    // a sign is not for numbers of bytes
    let digits = digits.bytes().all(|byte| byte.is_ascii_digit()).then_some(digits)?;
    digits.parse::<u64>().ok()?.checked_mul(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

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
