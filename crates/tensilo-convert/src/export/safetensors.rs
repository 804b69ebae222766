//! Writes columns as the tensors of a safetensors file.
//!
//! The header contains the offsets of all tensors. They follow from the number of samples and the
//! shapes, so the header can be written before any sample is read. Elements of 4 or 6 bits are
//! packed, as the format requires.

use super::batches::TableExport;
use super::npy::{ArrayForm, Bf16, check_not_empty, write_error, write_samples};
use crate::element::{Packer, packed_bits};
use serde_json::{Map, Value, json};
use std::io::Write;
use tensilo::export::Table;
use tensilo::{ColumnSchema, DType, Error, Result};

/// Writes a `.safetensors` file. The first axis of each tensor is the sample axis.
pub(super) fn write<T: Table>(
    mut export: TableExport<'_, T>,
    out: &mut impl Write,
) -> std::result::Result<(), T::Error> {
    let columns: Vec<&ColumnSchema> = export.columns().collect();
    check_not_empty(&columns)?;
    out.write_all(&header(&columns, export.sample_count()?)?).map_err(write_error)?;
    for (i, column) in columns.iter().enumerate() {
        match packed_bits(column.dtype) {
            Some(bits) => write_samples(&mut export, i, column, Bf16::Raw, &mut Packer::new(&mut *out, bits))?,
            None => write_samples(&mut export, i, column, Bf16::Raw, out)?,
        }
    }
    Ok(())
}

/// Returns the header: its length, followed by JSON, which is padded to align the tensors.
fn header(columns: &[&ColumnSchema], sample_count: u64) -> Result<Vec<u8>> {
    let (mut tensors, mut offset) = (Map::new(), 0_u64);
    for column in columns {
        let form = ArrayForm::of(column)?;
        let too_large = || Error::bad_input(format!("column {:?} has more than 2^64 bits", column.name));
        let elements = form.shape.iter().try_fold(sample_count, |count, &extent| count.checked_mul(extent.into()));
        let width = packed_bits(column.dtype).map_or_else(|| column.dtype.element_bytes() * 8, |bits| bits as usize);
        let bits = elements.and_then(|count| count.checked_mul(u64::try_from(width).ok()?)).ok_or_else(too_large)?;
        if !bits.is_multiple_of(8) {
            let (name, dtype, count) = (&column.name, column.dtype, elements.unwrap_or(0));
            let message = format!(
                "column {name:?}: safetensors needs whole bytes, which {count} packed elements of type {dtype} do not \
                 fill; export a different number of samples, or export to .parquet or .arrow"
            );
            return Err(Error::bad_input(message));
        }
        let end = offset.checked_add(bits / 8).ok_or_else(too_large)?;
        let shape: Vec<u64> =
            std::iter::once(sample_count).chain(form.shape.iter().map(|&extent| extent.into())).collect();
        let tensor = json!({"dtype": type_name(column)?, "shape": shape, "data_offsets": [offset, end]});
        if column.name == "__metadata__" {
            return Err(Error::bad_input("safetensors reserves the name \"__metadata__\"; rename the column"));
        }
        tensors.insert(column.name.clone(), tensor);
        offset = end;
    }
    let mut text = Value::Object(tensors).to_string().into_bytes();
    text.resize(text.len().next_multiple_of(8), b' ');
    let length = u64::try_from(text.len()).unwrap_or(u64::MAX); // fits: it is in memory
    Ok([length.to_le_bytes().as_slice(), &text].concat())
}

fn type_name(column: &ColumnSchema) -> Result<&'static str> {
    Ok(match column.dtype {
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
        DType::U8 => "U8",
        DType::F8E4M3Fn => "F8_E4M3",
        DType::F8E4M3Fnuz => "F8_E4M3FNUZ",
        DType::F8E5M2 => "F8_E5M2",
        DType::F8E5M2Fnuz => "F8_E5M2FNUZ",
        DType::F8E8M0Fnu => "F8_E8M0",
        DType::F6E2M3 => "F6_E2M3",
        DType::F6E3M2 => "F6_E3M2",
        DType::F4E2M1 => "F4",
        DType::Complex64 => "C64",
        // strings have already been refused
        other => {
            let message =
                format!("column {:?}: safetensors has no type {other}; export to .parquet or .arrow", column.name);
            return Err(Error::bad_input(message));
        }
    })
}
