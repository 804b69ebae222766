//! Texts and binaries in another layout.

use super::mismatch::mismatch;
use arrow_array::cast::AsArray;
use arrow_array::types::ByteArrayType;
use arrow_array::{
    Array, ArrayRef, BinaryViewArray, GenericByteArray, LargeBinaryArray, LargeStringArray, StringViewArray,
};
use arrow_buffer::OffsetBuffer;
use arrow_schema::{ArrowError, DataType};
use std::sync::Arc;

pub(super) fn can_relay(from: &DataType, to: &DataType) -> bool {
    matches!(
        (from, to),
        (DataType::Utf8, DataType::LargeUtf8 | DataType::Utf8View)
            | (DataType::Binary, DataType::LargeBinary | DataType::BinaryView)
    )
}

/// Returns texts or binaries in the layout of a type. Their bytes are not copied.
pub(super) fn relaid(array: &ArrayRef, to: &DataType) -> Result<ArrayRef, ArrowError> {
    let mismatch = || mismatch(array, to);
    Ok(match to {
        DataType::LargeUtf8 => {
            let texts = array.as_string_opt::<i32>().ok_or_else(mismatch)?;
            Arc::new(LargeStringArray::try_new(wide(texts), texts.values().clone(), texts.nulls().cloned())?)
        }
        DataType::LargeBinary => {
            let bytes = array.as_binary_opt::<i32>().ok_or_else(mismatch)?;
            Arc::new(LargeBinaryArray::try_new(wide(bytes), bytes.values().clone(), bytes.nulls().cloned())?)
        }
        DataType::Utf8View => Arc::new(StringViewArray::from(array.as_string_opt::<i32>().ok_or_else(mismatch)?)),
        DataType::BinaryView => Arc::new(BinaryViewArray::from(array.as_binary_opt::<i32>().ok_or_else(mismatch)?)),
        _ => return Err(mismatch()),
    })
}

fn wide<T: ByteArrayType<Offset = i32>>(array: &GenericByteArray<T>) -> OffsetBuffer<i64> {
    // they ascend as before
    OffsetBuffer::new(array.value_offsets().iter().map(|&offset| i64::from(offset)).collect())
}
