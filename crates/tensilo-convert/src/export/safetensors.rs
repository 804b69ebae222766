//! Columns as tensors of a safetensors file.

use super::batches::Exported;
use super::npy::{ArrayForm, Bf16, check_any, write_samples, written};
use serde_json::{Map, Value, json};
use std::io::Write;
use tensilo::export::Table;
use tensilo::{ColumnSchema, DType, Error, Result};

/// Writes a `.safetensors` file. The first axis of each tensor counts samples.
pub(super) fn write<T: Table>(
    mut exported: Exported<'_, T>,
    out: &mut impl Write,
) -> std::result::Result<(), T::Error> {
    let columns: Vec<&ColumnSchema> = exported.columns().collect();
    check_any(&columns)?;
    out.write_all(&header(&columns, exported.sample_count()?)?).map_err(written)?;
    for (i, column) in columns.iter().enumerate() {
        write_samples(&mut exported, i, column, Bf16::Kept, out)?;
    }
    Ok(())
}

/// Returns the header: its length, and then JSON, padded so that the tensors are aligned.
fn header(columns: &[&ColumnSchema], sample_count: u64) -> Result<Vec<u8>> {
    let (mut tensors, mut offset) = (Map::new(), 0_u64);
    for column in columns {
        let form = ArrayForm::of(column)?;
        let too_large = || Error::bad_input(format!("column {:?} has more than 2^64 bytes", column.name));
        let width = u64::try_from(column.dtype.element_bytes()).unwrap_or(8); // at most 8
        let sample_bytes = form.shape.iter().try_fold(width, |bytes, &extent| bytes.checked_mul(extent.into()));
        let end = sample_bytes.and_then(|bytes| bytes.checked_mul(sample_count)?.checked_add(offset));
        let end = end.ok_or_else(too_large)?;
        let shape: Vec<u64> =
            std::iter::once(sample_count).chain(form.shape.iter().map(|&extent| extent.into())).collect();
        let tensor = json!({"dtype": type_name(column.dtype), "shape": shape, "data_offsets": [offset, end]});
        if column.name == "__metadata__" {
            return Err(Error::bad_input("a tensor cannot be called \"__metadata__\""));
        }
        tensors.insert(column.name.clone(), tensor);
        offset = end;
    }
    let mut text = Value::Object(tensors).to_string().into_bytes();
    text.resize(text.len().next_multiple_of(8), b' ');
    let length = u64::try_from(text.len()).unwrap_or(u64::MAX); // in memory
    Ok([length.to_le_bytes().as_slice(), &text].concat())
}

fn type_name(dtype: DType) -> &'static str {
    match dtype {
        DType::Bf16 => "BF16",
        DType::F16 => "F16",
        DType::F32 => "F32",
        DType::F64 => "F64",
        DType::I8 => "I8",
        DType::I16 => "I16",
        DType::I32 => "I32",
        DType::I64 => "I64",
        DType::U16 => "U16",
        DType::U32 => "U32",
        DType::U64 => "U64",
        DType::Bool => "BOOL",
        _ => "U8", // strings were refused
    }
}
