//! Numbers converted to wider types.

use crate::elements::Elements;
use half::{bf16, f16};
use tensilo::DType;

/// Returns integers as those of a wider type, which has all of their values; `None` if it has not.
pub fn widened(elements: &Elements, to: DType) -> Option<Vec<u8>> {
    let (from_signed, to_signed) = (is_signed(elements.dtype)?, is_signed(to)?);
    let width = elements.dtype.element_bytes();
    if to.element_bytes() <= width || (from_signed && !to_signed) {
        return None;
    }
    let numbers = elements.bytes.chunks_exact(width).map(|bytes| number(bytes, from_signed));
    Some(match to.element_bytes() {
        // the low bytes of a number that the type has
        2 => numbers.flat_map(|number| (number as i16).to_ne_bytes()).collect(),
        4 => numbers.flat_map(|number| (number as i32).to_ne_bytes()).collect(),
        _ => numbers.flat_map(i64::to_ne_bytes).collect(),
    })
}

/// Returns floats as those of a wider type, which has all of their values; `None` if it does not.
pub fn widened_floats(elements: &Elements, to: DType) -> Option<Vec<u8>> {
    let bytes = &elements.bytes;
    let wide: Box<dyn Iterator<Item = f32>> = match elements.dtype {
        DType::Bf16 => Box::new(bytes.as_chunks().0.iter().map(|bytes| bf16::from_ne_bytes(*bytes).to_f32())),
        DType::F16 => Box::new(bytes.as_chunks().0.iter().map(|bytes| f16::from_ne_bytes(*bytes).to_f32())),
        DType::F32 => Box::new(bytes.as_chunks().0.iter().map(|bytes| f32::from_ne_bytes(*bytes))),
        _ => return None,
    };
    match to {
        DType::F32 => Some(wide.flat_map(f32::to_ne_bytes).collect()),
        DType::F64 => Some(wide.flat_map(|number| f64::from(number).to_ne_bytes()).collect()),
        _ => None,
    }
}

/// Returns whether integers of a type have a sign; `None` if it is not one of integers.
fn is_signed(dtype: DType) -> Option<bool> {
    match dtype {
        DType::I8 | DType::I16 | DType::I32 | DType::I64 => Some(true),
        DType::U8 | DType::U16 | DType::U32 | DType::U64 => Some(false),
        _ => None,
    }
}

/// Returns an integer of at most 4 bytes.
fn number(bytes: &[u8], is_signed: bool) -> i64 {
    match (bytes, is_signed) {
        (&[a], false) => a.into(),
        (&[a], true) => a.cast_signed().into(),
        (&[a, b], false) => u16::from_ne_bytes([a, b]).into(),
        (&[a, b], true) => i16::from_ne_bytes([a, b]).into(),
        (&[a, b, c, d], false) => u32::from_ne_bytes([a, b, c, d]).into(),
        (&[a, b, c, d], true) => i32::from_ne_bytes([a, b, c, d]).into(),
        _ => 0, // not narrower than any
    }
}
