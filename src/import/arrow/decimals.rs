//! Decimals, from arrays to the values that are stored: unscaled integers, of a width that depends
//! on the precision alone.

use super::fixed_width::Refused;
use crate::DType;
use crate::arrow_type::StoredElement;
use arrow_array::cast::AsArray;
use arrow_array::types::{Decimal32Type, Decimal64Type, Decimal128Type, Decimal256Type, DecimalType};
use arrow_array::{Array, ArrayRef};
use arrow_buffer::i256;
use arrow_schema::DataType;
use std::result::Result;

/// Returns the bytes of all values. Nulls become zero.
pub(super) fn values(array: &ArrayRef, stored: StoredElement) -> Result<Vec<u8>, Refused> {
    match array.data_type() {
        DataType::Decimal32(..) => of::<Decimal32Type>(array, stored),
        DataType::Decimal64(..) => of::<Decimal64Type>(array, stored),
        DataType::Decimal128(..) => of::<Decimal128Type>(array, stored),
        _ => of::<Decimal256Type>(array, stored),
    }
}

fn of<T: DecimalType>(array: &ArrayRef, stored: StoredElement) -> Result<Vec<u8>, Refused>
where
    i256: From<T::Native>,
{
    let decimals = array.as_primitive_opt::<T>().ok_or_else(|| Refused::denied(array))?;
    let push = match (stored.dtype, stored.extent) {
        (DType::I32, None) => push_i32,
        (DType::I64, None) => push_i64,
        (DType::U8, Some(16)) => push_16_bytes,
        (DType::U8, Some(32)) => push_32_bytes,
        _ => return Err(Refused::denied(array)),
    };
    let mut bytes = Vec::new();
    for (i, value) in decimals.iter().enumerate() {
        let value = value.map_or(i256::ZERO, i256::from);
        push(value, &mut bytes).ok_or_else(|| Refused { element: Some(i), message: too_large(array, value) })?;
    }
    Ok(bytes)
}

fn push_i32(value: i256, bytes: &mut Vec<u8>) -> Option<()> {
    bytes.extend_from_slice(&i32::try_from(value.to_i128()?).ok()?.to_ne_bytes());
    Some(())
}

fn push_i64(value: i256, bytes: &mut Vec<u8>) -> Option<()> {
    bytes.extend_from_slice(&i64::try_from(value.to_i128()?).ok()?.to_ne_bytes());
    Some(())
}

fn push_16_bytes(value: i256, bytes: &mut Vec<u8>) -> Option<()> {
    bytes.extend_from_slice(&value.to_i128()?.to_le_bytes());
    Some(())
}

fn push_32_bytes(value: i256, bytes: &mut Vec<u8>) -> Option<()> {
    bytes.extend_from_slice(&value.to_le_bytes());
    Some(())
}

#[cold]
fn too_large(array: &ArrayRef, value: i256) -> String {
    format!("the unscaled value {value} in a column that is declared to be {}", array.data_type())
}
