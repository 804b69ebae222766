//! Data from files: Parquet columns of 32-bit floats, cast to BF16 (to nearest, ties to even), and
//! the BF16 tensors of a safetensors file.

use super::Dataset;
use anyhow::{Context, Result, bail};
use arrow_array::cast::AsArray;
use arrow_array::types::Float32Type;
use arrow_array::{Array, ArrayRef};
use half::bf16;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::Value;
use std::fs::{self, File};
use std::path::Path;

pub const MEL_SHAPE: [u32; 2] = [101, 128];
pub const POSTERIOR_SHAPE: [u32; 2] = [101, 360];
pub const F0_SHAPE: [u32; 1] = [101];
const EMBEDDINGS: &str = "sentence_embeddings.parquet";
const SPEECH: &str = "speech_features.parquet";
const WEIGHTS: &str = "encoder_layers_bf16.safetensors";
/// The number of elements in a row of weights.
pub const WEIGHTS_ROW: usize = 4096;

pub fn embeddings(folder: &Path) -> Result<Dataset> {
    let values = column(&folder.join(EMBEDDINGS), "embedding")?;
    let origin = format!("column embedding of {EMBEDDINGS}, cast to BF16");
    Dataset::new("embeddings", &[384], to_bf16(&values), origin)
}

pub fn speech(folder: &Path, name: &str, field: &str, shape: &[u32]) -> Result<Dataset> {
    let (values, origin) = speech_values(folder, field)?;
    Dataset::new(name, shape, to_bf16(&values), format!("{origin}, cast to BF16"))
}

/// Returns the values of a column of the speech features, and their origin.
pub fn speech_values(folder: &Path, field: &str) -> Result<(Vec<f32>, String)> {
    Ok((column(&folder.join(SPEECH), field)?, format!("column {field} of {SPEECH}")))
}

/// Returns all BF16 tensors, in file order, as one sequence cut into rows. Drops an incomplete last
/// row.
pub fn weights(folder: &Path) -> Result<Dataset> {
    let path = folder.join(WEIGHTS);
    let file = fs::read(&path).with_context(|| path.display().to_string())?;
    let mut values = bf16_tensors(&file).with_context(|| path.display().to_string())?;
    values.truncate(values.len() / WEIGHTS_ROW * WEIGHTS_ROW);
    let origin = format!("the BF16 tensors of {WEIGHTS}, cut into rows of {WEIGHTS_ROW}");
    Dataset::new("weights", &[WEIGHTS_ROW as u32], values, origin)
}

/// Returns the BF16 tensors of a safetensors file, which is a length of 8 bytes, a JSON header of
/// this length, and the tensors.
fn bf16_tensors(file: &[u8]) -> Result<Vec<bf16>> {
    let (length, rest) = file.split_first_chunk().context("the file is too short")?;
    let length = usize::try_from(u64::from_le_bytes(*length))?;
    let (header, data) = rest.split_at_checked(length).context("the header is truncated")?;
    let header: Value = serde_json::from_slice(header)?;
    let mut ranges = Vec::new();
    for tensor in header.as_object().context("the header is not a JSON object")?.values() {
        if tensor["dtype"] == "BF16" {
            let offset = |i: usize| tensor["data_offsets"][i].as_u64().and_then(|offset| usize::try_from(offset).ok());
            ranges.push(offset(0).zip(offset(1)).context("a tensor without offsets")?);
        }
    }
    ranges.sort_unstable();
    let mut values = Vec::new();
    for (start, end) in ranges {
        let bytes = data.get(start..end).context("a tensor outside the file")?;
        values.extend(bytes.chunks_exact(2).map(|pair| bf16::from_le_bytes([pair[0], pair[1]])));
    }
    Ok(values)
}

pub fn to_bf16(values: &[f32]) -> Vec<bf16> {
    values.iter().map(|&value| bf16::from_f32(value)).collect()
}

/// Returns all 32-bit floats of a column, without the structure of its lists.
pub fn column(path: &Path, name: &str) -> Result<Vec<f32>> {
    let read = || {
        let builder = ParquetRecordBatchReaderBuilder::try_new(File::open(path)?)?;
        let mask = ProjectionMask::columns(builder.parquet_schema(), [name]);
        let mut values = Vec::new();
        for batch in builder.with_projection(mask).build()? {
            let batch = batch?;
            append(batch.column_by_name(name).context("the column is missing")?, &mut values)?;
        }
        Ok(values)
    };
    read().map_err(|error: anyhow::Error| error.context(format!("column {name} of {}", path.display())))
}

fn append(array: &ArrayRef, values: &mut Vec<f32>) -> Result<()> {
    if array.null_count() > 0 {
        bail!("the column has nulls");
    }
    if let Some(floats) = array.as_primitive_opt::<Float32Type>() {
        values.extend_from_slice(floats.values());
        return Ok(());
    }
    if let Some(list) = array.as_fixed_size_list_opt() {
        return append(list.values(), values);
    }
    let list = array.as_list_opt::<i32>().context("the column is not a list of 32-bit floats")?;
    let offsets = list.value_offsets();
    // offsets are not negative
    let (start, end) = (offsets[0] as usize, offsets[list.len()] as usize);
    append(&list.values().slice(start, end - start), values)
}
