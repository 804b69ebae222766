//! Bytes as text.

/// Returns the bytes of a text of hexadecimal numbers of one byte each, with comments behind `#`:
/// the form of the vectors of the specification.
pub fn commented_hex(text: &str) -> Vec<u8> {
    let uncommented = text.lines().filter_map(|line| line.split('#').next());
    let digits = uncommented.flat_map(str::split_whitespace);
    digits.map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect()
}
