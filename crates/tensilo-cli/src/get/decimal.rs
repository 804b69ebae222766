//! Decimals as text.

use super::element::element;
use std::io::{self, Write};
use tensilo::export::imported_type;
use tensilo::import::arrow::datatypes::DataType;
use tensilo::{ColumnSchema, DType};

/// How the decimals of a column are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Decimals {
    scale: i8,
    /// Whether the innermost dimension is that of the bytes of a decimal.
    pub(super) have_dimension: bool,
}

impl Decimals {
    /// Returns the decimals of a column, if its metadata say that it has some, and it has the form
    /// in which they are imported.
    pub(super) fn of(column: &ColumnSchema) -> Option<Self> {
        match imported_type(column)? {
            DataType::Decimal32(_, scale)
            | DataType::Decimal64(_, scale)
            | DataType::Decimal128(_, scale)
            | DataType::Decimal256(_, scale) => Some(Self { scale, have_dimension: column.dtype == DType::U8 }),
            _ => None,
        }
    }

    /// Writes a decimal, given as the bytes of its unscaled value, as a string.
    pub(super) fn write(self, output: &mut dyn Write, bytes: &[u8]) -> io::Result<()> {
        match bytes.len() {
            4 => write!(output, "\"{}\"", text(&i32::from_ne_bytes(element(bytes)).to_le_bytes(), self.scale)),
            8 => write!(output, "\"{}\"", text(&i64::from_ne_bytes(element(bytes)).to_le_bytes(), self.scale)),
            _ => write!(output, "\"{}\"", text(bytes, self.scale)),
        }
    }
}

/// Returns the decimal with this unscaled value, in two's complement.
fn text(little_endian: &[u8], scale: i8) -> String {
    let is_negative = little_endian.last().is_some_and(|byte| *byte >= 0x80);
    let mut magnitude = little_endian.to_vec();
    if is_negative {
        negate(&mut magnitude);
    }
    let mut digits = Vec::new(); // the last first
    while magnitude.iter().any(|byte| *byte != 0) {
        digits.push(divide_by_ten(&mut magnitude));
    }
    let places = usize::from(scale.unsigned_abs());
    if scale < 0 && !digits.is_empty() {
        digits.splice(0..0, vec![b'0'; places]);
    }
    let places = if scale > 0 { places } else { 0 };
    digits.resize(digits.len().max(places.saturating_add(1)), b'0');
    if places > 0 {
        digits.insert(places, b'.'); // there is a digit before it
    }
    if is_negative {
        digits.push(b'-');
    }
    digits.iter().rev().copied().map(char::from).collect()
}

fn negate(little_endian: &mut [u8]) {
    let mut carry = true;
    for byte in little_endian {
        (*byte, carry) = (!*byte).overflowing_add(u8::from(carry));
    }
}

/// Divides an integer by ten, and returns the remainder as a digit.
fn divide_by_ten(little_endian: &mut [u8]) -> u8 {
    let mut remainder = 0_u8;
    for byte in little_endian.iter_mut().rev() {
        let value = u16::from(remainder) * 256 + u16::from(*byte); // at most 9 * 256 + 255
        *byte = u8::try_from(value / 10).unwrap_or(u8::MAX); // at most 255
        remainder = u8::try_from(value % 10).unwrap_or(0);
    }
    b'0' + remainder // at most 9
}

#[cfg(test)]
mod tests {
    use super::*;
    use tensilo::Shape;

    #[test]
    fn decimals_are_exact() {
        for (value, scale, due) in [
            (12_345, 2, "123.45"),
            (-5, 2, "-0.05"),
            (0, 3, "0.000"),
            (0, -3, "0"),
            (-7, -3, "-7000"),
            (7, 0, "7"),
            (i64::MIN, 1, "-922337203685477580.8"),
        ] {
            assert_eq!(text(&value.to_le_bytes(), scale), due);
        }
        assert_eq!(text(&i128::MIN.to_le_bytes(), 0), i128::MIN.to_string());
        assert_eq!(text(&i128::MAX.to_le_bytes(), 127).len(), "0.".len() + 127);
        let mut least = [0; 32];
        least[31] = 0x80;
        assert_eq!(text(&least, 0), "-57896044618658097711785492504343953926634992332820282019728792003956564819968");
    }

    #[test]
    fn only_columns_in_the_form_of_an_import_are_decimals() {
        let column = |dtype, shape: &[u32], text: &str| {
            let mut column = ColumnSchema::tensor("x", dtype, Shape::fixed(shape));
            column.metadata.insert("arrow.type".to_owned(), text.to_owned());
            Decimals::of(&column)
        };
        let wide = Some(Decimals { scale: -2, have_dimension: true });
        assert_eq!(column(DType::U8, &[3, 16], "decimal256[38, -2]"), wide);
        assert_eq!(column(DType::I32, &[3], "decimal128[9, 2]"), Some(Decimals { scale: 2, have_dimension: false }));
        for (dtype, shape, text) in [
            (DType::U8, &[16][..], "decimal256[39, 2]"),
            (DType::I64, &[], "decimal64[9, 2]"),
            (DType::I32, &[], "decimal64[9, 200]"),
            (DType::I64, &[], "decimal32[18, 2]"),
            (DType::I32, &[], "decimal32[09, 2]"),
            (DType::I32, &[], "time32[s, 2]"),
            (DType::I32, &[], "decimal"),
        ] {
            assert_eq!(column(dtype, shape, text), None, "{text}");
        }
    }
}
