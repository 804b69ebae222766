//! Writes tokens as a Megatron indexed dataset: a file of tokens and an index.
//!
//! The index lists the lengths of all sequences before the first offset, but the lengths are known
//! only once the tokens are written. So the lengths are collected in a temporary file. The index is
//! published after the tokens, because a reader finds the dataset by its index.

use super::batches::{TableExport, TargetOptions, sample_bytes};
use super::npy::{Bf16, null_error, only_column, write_elements, write_error};
use crate::megatron::{MAGIC, VERSION, type_code};
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::Path;
use tensilo::export::Table;
use tensilo::sink::Sink;
use tensilo::{ColumnSchema, Error, LogicalType, Result};

/// Writes a column of tokens as a Megatron indexed dataset: an index (`.idx`) and a file of tokens
/// (`.bin`), whose names differ only in the extension. Returns both sinks.
///
/// Each sample becomes a document with one sequence. The index is published last, because the
/// tokens are not a dataset without it.
///
/// Refuses columns that do not have one dimension, types that Megatron does not support, and nulls.
///
/// Cost: the column is decoded once. Memory: one chunk. A temporary file has 4 bytes for each
/// sample.
pub fn export_megatron<'a, T: Table, K: Sink>(
    table: &'a T,
    (mut index, mut tokens): (K, K),
    options: TargetOptions<'a>,
) -> std::result::Result<(K, K), T::Error> {
    for sink in [&index, &tokens] {
        let path = sink.path().map(Path::to_path_buf);
        table.check_output(sink.identity(), path.as_deref())?;
    }
    let mut export = TableExport::new(table, options)?;
    let column = only_column(export.columns())?;
    let code = column_type_code(column)?;
    let lengths = write_tokens(&mut export, column, &mut tokens)?;
    let width = column.dtype.element_bytes();
    write_index((code, width), export.sample_count()?, lengths, &mut index)?;
    for sink in [&mut tokens, &mut index] {
        let path = sink.path().map(Path::to_path_buf);
        let finished = sink.sync().and_then(|()| sink.publish());
        let finished = finished.map_err(|error| Error::io("finishing the file", error));
        finished.map_err(|error| if let Some(path) = &path { error.with_path(path) } else { error })?;
    }
    Ok((index, tokens))
}

/// Returns Megatron's type code for a column.
fn column_type_code(column: &ColumnSchema) -> Result<u8> {
    let refused = |what: String| Error::bad_input(format!("column {:?}: {what}", column.name));
    if !column.levels.is_empty() || column.is_struct_nulls() || column.shape.ndim() != 1 || column.dtype.is_string() {
        return Err(refused(format!(
            "{} is not a list of tokens; Megatron needs such a list for each sample",
            column.type_name()
        )));
    }
    LogicalType::check_numbers(column)?;
    let advice = "; its types are u8, u16, i8, i16, i32, i64, f32 and f64";
    type_code(column.dtype).ok_or_else(|| refused(format!("Megatron has no token type {}{advice}", column.dtype)))
}

/// Writes the tokens of all samples. Returns a temporary file with the number of tokens of each
/// sample.
fn write_tokens<T: Table>(
    export: &mut TableExport<'_, T>,
    column: &ColumnSchema,
    tokens: &mut impl Write,
) -> std::result::Result<File, T::Error> {
    let temporary = |error| Error::io("writing a temporary file of lengths", error);
    let mut tokens = BufWriter::with_capacity(1 << 16, tokens);
    let mut lengths = BufWriter::new(tempfile::tempfile().map_err(temporary)?);
    export.for_each(&mut |batch| {
        let buffer = batch.columns.first().and_then(Option::as_ref);
        for i in 0..batch.sample_count {
            let sample = batch.first.saturating_add(u64::try_from(i).unwrap_or(u64::MAX));
            let Some(buffer) = buffer.filter(|buffer| !buffer.is_null(i)) else {
                return Err(null_error(column, sample));
            };
            let bytes = sample_bytes(buffer, i, column.dtype, column.shape.extents());
            let count = i32::try_from(bytes.len() / column.dtype.element_bytes()).map_err(|_| {
                let message = format!("column {:?}: sample {sample} has more than 2^31 - 1 tokens", column.name);
                Error::bad_input(message)
            })?;
            lengths.write_all(&count.to_le_bytes()).map_err(temporary)?;
            write_elements(column.dtype, Bf16::Raw, bytes, &mut tokens).map_err(write_error)?;
        }
        Ok(())
    })?;
    tokens.flush().map_err(write_error)?;
    Ok(lengths.into_inner().map_err(|error| temporary(error.into_error()))?)
}

/// Writes the index of `count` sequences. `lengths` contains their lengths; `code` and `width` are
/// the type code of a token and its size in bytes.
fn write_index((code, width): (u8, usize), count: u64, lengths: File, index: &mut impl Write) -> Result<()> {
    let width = u64::try_from(width).unwrap_or(8); // at most 8
    let mut index = BufWriter::with_capacity(1 << 16, index);
    let write = || -> io::Result<()> {
        index.write_all(MAGIC)?;
        index.write_all(&VERSION.to_le_bytes())?;
        index.write_all(&[code])?;
        index.write_all(&count.to_le_bytes())?;
        index.write_all(&count.saturating_add(1).to_le_bytes())?;
        let mut lengths = BufReader::new(lengths);
        lengths.seek(SeekFrom::Start(0))?;
        io::copy(&mut lengths, &mut index)?;
        lengths.seek(SeekFrom::Start(0))?;
        let mut offset = 0_u64;
        for _ in 0..count {
            let mut length = [0; 4];
            lengths.read_exact(&mut length)?;
            index.write_all(&offset.to_le_bytes())?;
            offset = offset.saturating_add(u64::from(u32::from_le_bytes(length)).saturating_mul(width));
        }
        (0..=count).try_for_each(|document| index.write_all(&document.to_le_bytes()))?;
        index.flush()
    };
    write().map_err(write_error)
}
