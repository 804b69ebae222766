//! The elements of tensors: their types in Arrow, and arrays of them.

use tensilo::import::arrow::array::{ArrayData, ArrayRef, BooleanArray, make_array};
use tensilo::import::arrow::buffer::{BooleanBuffer, Buffer, MutableBuffer};
use tensilo::import::arrow::datatypes::{DataType, Field};
use tensilo::import::mark_dtype;
use tensilo::{DType, Error, Result};

/// Returns a field of elements of a type, or of the halves of complex numbers. Strings are no
/// elements.
pub(crate) fn element_field(name: &str, dtype: DType, nullable: bool) -> Field {
    let data_type = match dtype {
        DType::Bf16 => return mark_dtype(Field::new(name, DataType::UInt16, nullable), dtype),
        DType::Complex64 => DataType::Float32,
        DType::F16 => DataType::Float16,
        DType::F32 => DataType::Float32,
        DType::F64 => DataType::Float64,
        DType::I8 => DataType::Int8,
        DType::I16 => DataType::Int16,
        DType::I32 => DataType::Int32,
        DType::I64 => DataType::Int64,
        DType::U16 => DataType::UInt16,
        DType::U32 => DataType::UInt32,
        DType::U64 => DataType::UInt64,
        DType::Bool => DataType::Boolean,
        DType::Utf8 => DataType::Utf8,
        DType::Bytes => DataType::Binary,
        small if small.is_small() => return mark_dtype(Field::new(name, DataType::UInt8, nullable), small),
        _ => DataType::UInt8,
    };
    Field::new(name, data_type, nullable)
}

/// Returns the bytes of what is swapped between byte orders: an element, or half of a complex one.
pub(crate) fn swapped_bytes(dtype: DType) -> usize {
    if dtype == DType::Complex64 { 4 } else { dtype.element_bytes() }
}

/// Returns an array of elements, or of the halves of complex numbers, which are in the byte order
/// of this machine.
pub(crate) fn element_array(dtype: DType, bytes: MutableBuffer) -> Result<ArrayRef> {
    if dtype == DType::Bool {
        return bools(&bytes);
    }
    let count = bytes.len() / swapped_bytes(dtype);
    let field = element_field("", dtype, false);
    let data = ArrayData::builder(field.data_type().clone()).len(count).add_buffer(Buffer::from(bytes)).build();
    data.map(make_array).map_err(|error| Error::bad_input(error.to_string()))
}

fn bools(bytes: &[u8]) -> Result<ArrayRef> {
    if let Some((i, value)) = bytes.iter().enumerate().find(|(_, byte)| **byte > 1) {
        return Err(Error::bad_input(format!("element {i} of a batch of bools is the byte {value}, not 0 or 1")));
    }
    let bits = BooleanBuffer::collect_bool(bytes.len(), |i| bytes.get(i) == Some(&1));
    Ok(std::sync::Arc::new(BooleanArray::new(bits, None)))
}

/// Reverses the bytes of each element of `width` bytes.
pub(crate) fn swap_bytes(width: usize, bytes: &mut [u8]) {
    if width > 1 {
        bytes.chunks_exact_mut(width).for_each(<[u8]>::reverse);
    }
}
