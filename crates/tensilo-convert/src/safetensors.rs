//! Safetensors files: a JSON header followed by named tensors.
//!
//! The first axis of a tensor is the sample axis. The header is compared with the size of the file
//! before any tensor is read. A tensor that cannot be stored becomes a refused column, and the
//! other tensors are read.

use crate::element::packed_bits;
use crate::stream::read_error;
use crate::tensor::{ColumnBytes, FormatOptions, TensorColumn, TensorTable};
use safetensors::Dtype;
use safetensors::tensor::Metadata;
use std::io::Read;
use tensilo::import::{FormatFile, InputFormat, RecordSource};
use tensilo::{DType, Error, Result};

/// The maximum size of the header in bytes, the same as in the reference implementation.
const MAX_HEADER_BYTES: u64 = 100_000_000;
/// The size in bytes of the field that holds the length of the header.
const LENGTH_BYTES: u64 = 8;

/// Safetensors files.
pub(crate) struct SafetensorsFormat(pub FormatOptions);

impl InputFormat for SafetensorsFormat {
    fn name(&self) -> &str {
        "safetensors"
    }

    fn open(&self, file: &FormatFile) -> Result<Option<Box<dyn RecordSource>>> {
        let mut reader = file.reader()?;
        let Some(header_bytes) = header_bytes(file, &mut reader)? else { return Ok(None) };
        let rest = reader.byte_count().saturating_sub(LENGTH_BYTES);
        let refused =
            |what: &str| Err(Error::bad_input(format!("the header of the tensors has {header_bytes} bytes, {what}")));
        if header_bytes > MAX_HEADER_BYTES {
            return refused(&format!("more than {MAX_HEADER_BYTES}"));
        }
        if header_bytes > rest {
            return refused(&format!("but only {rest} bytes follow in the file"));
        }
        let mut header = Vec::new();
        reader.take(header_bytes).read_to_end(&mut header).map_err(read_error)?;
        let metadata: Metadata = serde_json::from_slice(&header)
            .map_err(|error| Error::bad_input(format!("the header of the tensors is malformed: {error}")))?;
        let data_bytes = rest.saturating_sub(header_bytes);
        if u64::try_from(metadata.data_len()).ok() != Some(data_bytes) {
            let expected = metadata.data_len();
            return Err(Error::bad_input(format!(
                "the tensors take {expected} bytes, but {data_bytes} follow the header"
            )));
        }
        let columns = columns(file, &metadata, LENGTH_BYTES.saturating_add(header_bytes), self.0);
        let own = metadata.metadata().clone().unwrap_or_default();
        Ok(Some(Box::new(TensorTable::new(columns, own, FormatOptions::SAMPLE_ADVICE)?)))
    }
}

/// Reads the length of the header. Returns `None` if the file has another format.
fn header_bytes(file: &FormatFile, reader: &mut impl Read) -> Result<Option<u64>> {
    let mut first = Vec::new();
    reader.take(LENGTH_BYTES).read_to_end(&mut first).map_err(read_error)?;
    let has_extension = file.path().extension().is_some_and(|extension| extension == "safetensors");
    let Ok(length) = <[u8; 8]>::try_from(first.as_slice()) else {
        let cut_off = || Error::bad_input("the file is truncated inside its header");
        return if has_extension { Err(cut_off()) } else { Ok(None) };
    };
    let mut brace = Vec::new();
    file.reader()?.take(LENGTH_BYTES + 1).read_to_end(&mut brace).map_err(read_error)?;
    let length = u64::from_le_bytes(length);
    let is_safetensors = brace.last() == Some(&b'{') && length <= MAX_HEADER_BYTES;
    Ok((has_extension || is_safetensors).then_some(length))
}

/// Returns the columns in the order of their bytes in the file.
fn columns(
    file: &FormatFile,
    metadata: &Metadata,
    data: u64,
    options: FormatOptions,
) -> Vec<(String, Result<TensorColumn>)> {
    let column = |name: &str| {
        let info = metadata.info(name).ok_or_else(|| Error::bad_input("the header does not describe the tensor"))?;
        let offset = |offset: usize| u64::try_from(offset).ok().and_then(|offset| offset.checked_add(data));
        let offset =
            offset(info.data_offsets.0).ok_or_else(|| Error::bad_input("the offset of the tensor exceeds 2^64"))?;
        let extents: Vec<u64> = info.shape.iter().map(|&extent| u64::try_from(extent).unwrap_or(u64::MAX)).collect();
        let bytes = ColumnBytes::Plain { file: file.clone(), offset };
        let dtype = element_type(info.dtype)?;
        let column = TensorColumn::new(name, dtype, &extents, bytes)?;
        let column = TensorColumn { packed_bits: packed_bits(dtype), ..column };
        if options.file_is_sample { column.into_sample(&extents) } else { Ok(column) }
    };
    // tensors without elements share offsets, so names break ties
    let mut names = metadata.offset_keys();
    names.sort_by_key(|name| (metadata.info(name).map(|info| info.data_offsets), name.clone()));
    let named = |name: String| {
        let column = column(&name);
        (name, column)
    };
    names.into_iter().map(named).collect()
}

fn element_type(dtype: Dtype) -> Result<DType> {
    Ok(match dtype {
        Dtype::BOOL => DType::Bool,
        Dtype::U8 => DType::U8,
        Dtype::I8 => DType::I8,
        Dtype::U16 => DType::U16,
        Dtype::I16 => DType::I16,
        Dtype::F16 => DType::F16,
        Dtype::BF16 => DType::Bf16,
        Dtype::U32 => DType::U32,
        Dtype::I32 => DType::I32,
        Dtype::F32 => DType::F32,
        Dtype::U64 => DType::U64,
        Dtype::I64 => DType::I64,
        Dtype::F64 => DType::F64,
        Dtype::F8_E4M3 => DType::F8E4M3Fn,
        Dtype::F8_E4M3FNUZ => DType::F8E4M3Fnuz,
        Dtype::F8_E5M2 => DType::F8E5M2,
        Dtype::F8_E5M2FNUZ => DType::F8E5M2Fnuz,
        Dtype::F8_E8M0 => DType::F8E8M0Fnu,
        Dtype::F6_E2M3 => DType::F6E2M3,
        Dtype::F6_E3M2 => DType::F6E3M2,
        Dtype::F4 => DType::F4E2M1,
        Dtype::C64 => DType::Complex64,
        other => {
            let message = format!("type {other:?} is not supported; save a view of the tensor as bytes (U8)");
            return Err(Error::bad_input(message));
        }
    })
}
