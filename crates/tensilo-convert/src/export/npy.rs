//! Writes NumPy files: one column as an array (`.npy`), or several columns in an archive (`.npz`).
//!
//! An array has only one shape and no nulls, so ragged columns and nulls are refused. The header of
//! an array states the number of samples, so samples are counted before the first is written. bf16
//! is widened to f32, which is exact.

use super::batches::TableExport;
use crate::element::swap_width;
use std::io::{self, Write};
use tensilo::export::Table;
use tensilo::{ColumnSchema, DType, Error, Extent, LogicalType, Result};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

/// Writes a `.npy` file.
pub(super) fn write<T: Table>(
    mut export: TableExport<'_, T>,
    out: &mut impl Write,
) -> std::result::Result<(), T::Error> {
    let column = only_column(export.columns())?;
    let header = numpy_form(column)?.header(export.sample_count()?);
    out.write_all(&header).map_err(write_error)?;
    write_samples(&mut export, 0, column, Bf16::AsF32, out)
}

/// Writes a `.npz` archive, uncompressed, with an array for each column.
pub(super) fn write_archive<T: Table>(
    mut export: TableExport<'_, T>,
    out: &mut impl Write,
) -> std::result::Result<(), T::Error> {
    let columns: Vec<&ColumnSchema> = export.columns().collect();
    check_not_empty(&columns)?;
    let forms = columns.iter().map(|column| numpy_form(column)).collect::<Result<Vec<_>>>()?;
    let sample_count = export.sample_count()?;
    let mut archive = ZipWriter::new_stream(out);
    let options = SimpleFileOptions::default().compression_method(CompressionMethod::Stored).large_file(true);
    for (i, (column, form)) in columns.iter().zip(&forms).enumerate() {
        let begun = archive.start_file(format!("{}.npy", column.name), options);
        begun.map_err(|error| write_error(io::Error::other(error)))?;
        archive.write_all(&form.header(sample_count)).map_err(write_error)?;
        write_samples(&mut export, i, column, Bf16::AsF32, &mut archive)?;
    }
    archive.finish().map_err(|error| write_error(io::Error::other(error)))?;
    Ok(())
}

/// Returns the form of a column whose type NumPy supports, directly or after widening.
fn numpy_form(column: &ColumnSchema) -> Result<ArrayForm> {
    check_numpy(column)?;
    ArrayForm::of(column)
}

/// Refuses types whose arrays NumPy would save as opaque bytes (`|V1`), because a reader could not
/// distinguish these types.
pub(super) fn check_numpy(column: &ColumnSchema) -> Result<()> {
    if !column.dtype.is_small() {
        return Ok(());
    }
    let (name, dtype) = (&column.name, column.dtype);
    let message = format!("column {name:?}: NumPy has no type {dtype}; export to .safetensors, .parquet or .arrow");
    Err(Error::bad_input(message))
}

/// How bf16 is written to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bf16 {
    /// Unchanged, as 16 bits.
    Raw,
    /// Widened to f32.
    AsF32,
}

/// Writes the elements of all samples of a column, little-endian. Refuses nulls.
pub(super) fn write_samples<T: Table>(
    export: &mut TableExport<'_, T>,
    number: usize,
    column: &ColumnSchema,
    bf16: Bf16,
    out: &mut impl Write,
) -> std::result::Result<(), T::Error> {
    export.for_each_in_column(number, &mut |batch| {
        let buffer = batch.columns.first().and_then(Option::as_ref);
        let null = match buffer {
            Some(buffer) => (0..batch.sample_count).find(|&i| buffer.is_null(i)),
            None => Some(0),
        };
        if let Some(null) = null {
            let sample = batch.first.saturating_add(u64::try_from(null).unwrap_or(0));
            return Err(null_error(column, sample));
        }
        let bytes = buffer.map_or(&[][..], |buffer| buffer.bytes());
        write_elements(column.dtype, bf16, bytes, out).map_err(write_error)
    })
}

pub(super) fn write_error(error: io::Error) -> Error {
    Error::io("writing the file", error)
}

/// Returns the only column, for formats that hold only one. Fails if there are none or several.
pub(super) fn only_column<'a>(mut columns: impl Iterator<Item = &'a ColumnSchema>) -> Result<&'a ColumnSchema> {
    match (columns.next(), columns.next()) {
        (Some(column), None) => Ok(column),
        (None, _) => Err(no_column()),
        (Some(first), Some(second)) => Err(Error::bad_input(format!(
            "the format holds only one column, but {:?}, {:?} and possibly more are selected; choose one (--columns)",
            first.name, second.name
        ))),
    }
}

/// Refuses an archive without columns, which would have no samples.
pub(super) fn check_not_empty(columns: &[&ColumnSchema]) -> Result<()> {
    if columns.is_empty() { Err(no_column()) } else { Ok(()) }
}

fn no_column() -> Error {
    Error::bad_input("there is no column to export")
}

pub(super) fn null_error(column: &ColumnSchema, sample: u64) -> Error {
    Error::bad_input(format!(
        "column {:?}: sample {sample} is null, which arrays cannot hold; export to .parquet or .arrow",
        column.name
    ))
}

/// The type and shape of a column that is written as an array.
pub(super) struct ArrayForm {
    dtype: DType,
    /// The shape of a sample.
    pub shape: Vec<u32>,
}

impl ArrayForm {
    /// Returns the form of a column. Refuses columns that are not arrays with a single shape.
    pub(super) fn of(column: &ColumnSchema) -> Result<Self> {
        let refused = |what: &str| {
            Err(Error::bad_input(format!("column {:?}: {what}; export to .parquet, .arrow or .tar", column.name)))
        };
        if column.dtype.is_string() {
            return refused("texts and bytes are not array elements");
        }
        if !column.levels.is_empty() || column.is_struct_nulls() {
            return refused("lists and structs are not arrays");
        }
        LogicalType::check_numbers(column)?;
        let extent = |extent: &Extent| if let Extent::Fixed(extent) = extent { Some(*extent) } else { None };
        match column.shape.extents().iter().map(extent).collect() {
            Some(shape) => Ok(Self { dtype: column.dtype, shape }),
            None => refused(&format!("samples have several shapes ({}), but an array has only one", column.shape)),
        }
    }

    /// Returns the header of an array of `sample_count` samples.
    fn header(&self, sample_count: u64) -> Vec<u8> {
        let shape: Vec<u64> =
            std::iter::once(sample_count).chain(self.shape.iter().map(|&extent| extent.into())).collect();
        npy_header(self.dtype, &shape)
    }
}

/// Returns NumPy's name for the type of the written elements.
fn element_descr(dtype: DType) -> &'static str {
    match dtype {
        DType::Bf16 | DType::F32 => "<f4",
        DType::F16 => "<f2",
        DType::F64 => "<f8",
        DType::I8 => "|i1",
        DType::I16 => "<i2",
        DType::I32 => "<i4",
        DType::I64 => "<i8",
        DType::U16 => "<u2",
        DType::U32 => "<u4",
        DType::U64 => "<u8",
        DType::Bool => "|b1",
        DType::Complex64 => "<c8",
        _ => "|u1",
    }
}

/// Returns the header of a `.npy` file for an array with this type and shape, in version 1.0 of the
/// format. It has the same bytes as a header that NumPy writes.
///
/// The elements must follow, little-endian and in C order. NumPy does not support bf16, so bf16
/// elements must be written as f32. Elements of other unsupported types must be written as u8.
pub fn npy_header(dtype: DType, shape: &[u64]) -> Vec<u8> {
    const ALIGNMENT: usize = 64;
    const PREAMBLE_BYTES: usize = 10;
    let descr = element_descr(dtype);
    let extents: Vec<String> = shape.iter().map(u64::to_string).collect();
    let comma = if shape.len() == 1 { "," } else { "" };
    let mut text =
        format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({}{comma}), }}", extents.join(", "));
    // NumPy leaves space for the first extent to grow
    let growth = shape.first().map_or(0, |extent| 21_usize.saturating_sub(extent.to_string().len()));
    text.extend(std::iter::repeat_n(' ', growth));
    let length = PREAMBLE_BYTES + text.len() + 1;
    text.extend(std::iter::repeat_n(' ', ALIGNMENT - length % ALIGNMENT));
    text.push('\n');
    let mut header = b"\x93NUMPY\x01\x00".to_vec();
    // even with 17 dimensions, the header has fewer than 1,024 bytes
    header.extend(u16::try_from(text.len()).unwrap_or(u16::MAX).to_le_bytes());
    header.extend(text.into_bytes());
    header
}

/// Writes elements, given in the byte order of this machine, as little-endian.
pub(super) fn write_elements(dtype: DType, bf16: Bf16, bytes: &[u8], out: &mut impl Write) -> io::Result<()> {
    if dtype == DType::Bf16 && bf16 == Bf16::AsF32 {
        // exact: f32 represents all values of bf16, and a NaN keeps its bits
        let widened = bytes.as_chunks().0.iter().map(|&bits| u32::from(u16::from_ne_bytes(bits)) << 16);
        return widened.map(u32::to_le_bytes).try_for_each(|bytes| out.write_all(&bytes));
    }
    if cfg!(target_endian = "little") || dtype.element_bytes() == 1 {
        return out.write_all(bytes);
    }
    bytes.chunks_exact(swap_width(dtype)).try_for_each(|element| {
        let mut element = element.to_vec();
        element.reverse();
        out.write_all(&element)
    })
}
