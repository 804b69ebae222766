//! Writes samples as bytes: as NumPy arrays (version 1.0 of the format) or as raw elements.
//!
//! Both are little-endian and in C order. NumPy has no bf16 and no floats of 8 bits or fewer, so
//! these become f32, which is exact. A NumPy array has only one shape, so all samples must have the
//! same shape, even in a ragged column.

use super::args::{As, Format, GetArgs, OnNull, Selection};
use super::samples::{SampleEntry, Samples, is_f32, to_f32, unsupported_as};
use crate::failure::{Failure, Outcome};
use crate::output::Destination;
use std::io::{self, Write};
use tensilo::{DType, Extent, LogicalType};
use tensilo_convert::npy_header;

/// Writes samples with `--format npy` or `--format raw`.
pub(super) fn write(args: &GetArgs, mut samples: Samples, selection: &Selection, destination: Destination) -> Outcome {
    let schema = &samples.schema;
    if !schema.levels.is_empty() {
        let message =
            format!("column {:?}: type {} has no binary form; use --format json", schema.name, schema.type_name());
        return Err(Failure::Usage(message));
    }
    if args.format == Format::Npy && args.elements != Some(As::Bits) {
        LogicalType::check_numbers(schema)?;
    }
    let elements = Elements::new(args, schema.dtype)?;
    let shape = survey(args, &mut samples, selection)?;
    let mut output = destination.create()?;
    if args.format == Format::Npy {
        let count = (!selection.is_single()).then(|| selection.count());
        let shape: Vec<u64> = count.into_iter().chain(shape.iter().copied().map(u64::from)).collect();
        output.write_all(&npy_header(elements.dtype, &shape))?;
    }
    let null_bytes = bytes_of(&shape, elements.bytes);
    for i in selection.iter() {
        match samples.read(i)? {
            SampleEntry::Item(sample) if !sample.is_null() => elements.write(&mut output, sample.bytes())?,
            _ => write_zeros(&mut output, null_bytes)?,
        }
    }
    output.finish()
}

/// Returns the size in bytes of a tensor of this shape.
fn bytes_of(shape: &[u32], element_bytes: usize) -> u64 {
    let element_bytes = u64::try_from(element_bytes).unwrap_or(u64::MAX);
    if shape.contains(&0) {
        return 0;
    }
    shape.iter().fold(element_bytes, |bytes, &extent| bytes.saturating_mul(extent.into()))
}

fn write_zeros(output: &mut impl Write, bytes: u64) -> io::Result<()> {
    io::copy(&mut io::Read::take(io::repeat(0), bytes), output).map(|_| ())
}

/// The conversion of elements to output bytes.
struct Elements {
    /// The type of the output, for NumPy.
    dtype: DType,
    /// The size of one output element in bytes.
    bytes: usize,
    change: Change,
}

#[derive(Clone, Copy)]
enum Change {
    /// Changes the byte order to little-endian, in units of this many bytes.
    Order(usize),
    ToF32(DType),
    /// Sign-extends elements from 4 bits to 8.
    SignI4,
}

impl Elements {
    fn new(args: &GetArgs, dtype: DType) -> Outcome<Self> {
        let bytes = dtype.element_bytes();
        let unit = if dtype == DType::Complex64 { 4 } else { bytes };
        let stored = Self { dtype, bytes, change: Change::Order(unit) };
        let widened = Self { dtype: DType::F32, bytes: 4, change: Change::ToF32(dtype) };
        let is_npy = args.format == Format::Npy;
        Ok(match args.elements {
            Some(As::Bits) if !dtype.is_string() => {
                Self { dtype: bits_of(dtype), change: Change::Order(bytes), ..stored }
            }
            Some(As::F32) if dtype == DType::F32 => stored,
            Some(As::F32) if is_f32(dtype) => widened,
            Some(_) => return Err(unsupported_as(dtype)),
            None if is_npy && dtype.is_string() => {
                return Err(Failure::Usage(format!(
                    "NumPy arrays cannot hold samples of type {dtype}; use --format raw or --format json"
                )));
            }
            // NumPy has no numbers of fewer than 8 bits, no bf16 and no 8-bit floats
            None if is_npy && dtype == DType::I4 => Self { dtype: DType::I8, change: Change::SignI4, ..stored },
            None if is_npy && (dtype == DType::Bf16 || dtype.is_small() && is_f32(dtype)) => widened,
            None => stored,
        })
    }

    /// Writes elements, given in the byte order of this machine.
    fn write(&self, output: &mut impl Write, elements: &[u8]) -> io::Result<()> {
        match self.change {
            Change::Order(unit) if cfg!(target_endian = "little") || unit == 1 => output.write_all(elements),
            Change::Order(unit) => {
                let mut bytes = elements.chunks_exact(unit).flat_map(|element| element.iter().rev());
                bytes.try_for_each(|byte| output.write_all(&[*byte]))
            }
            Change::ToF32(dtype) => {
                let mut values = elements.chunks_exact(dtype.element_bytes()).map(|element| to_f32(dtype, element));
                values.try_for_each(|value| output.write_all(&value.to_le_bytes()))
            }
            Change::SignI4 => {
                let sign = |element: &u8| ((element << 4).cast_signed() >> 4).cast_unsigned();
                elements.iter().try_for_each(|element| output.write_all(&[sign(element)]))
            }
        }
    }
}

/// Returns the unsigned integer type of the same size, which holds the bits of the elements.
fn bits_of(dtype: DType) -> DType {
    match dtype.element_bytes() {
        1 => DType::U8,
        2 => DType::U16,
        4 => DType::U32,
        _ => DType::U64,
    }
}

/// Reads all samples before anything is written, unless the schema makes that unnecessary. Fails if
/// a sample is null and the user did not allow nulls or, for NumPy, if samples have different
/// shapes. Returns the shape of the samples, with 0 for varying extents if no sample was read.
fn survey(args: &GetArgs, samples: &mut Samples, selection: &Selection) -> Outcome<Vec<u32>> {
    let schema = samples.schema.clone();
    let refuse_nulls = args.nulls == OnNull::Refuse && samples.has_nulls;
    let same_shape = args.format == Format::Npy && schema.shape.is_ragged();
    let mut first: Option<(u64, Vec<u32>)> = None;
    let surveyed = if refuse_nulls || same_shape { Some(selection.iter()) } else { None };
    for i in surveyed.into_iter().flatten() {
        match samples.read(i)? {
            entry if entry.is_null() && refuse_nulls => {
                return Err(Failure::Usage(format!(
                    "column {:?}: sample {i} is null, which this format cannot express; --nulls zero writes zeros, \
                     --format json writes null",
                    schema.name
                )));
            }
            SampleEntry::Item(sample) if !sample.is_null() && same_shape => {
                let (first_i, shape) = first.get_or_insert_with(|| (i, sample.extents().to_vec()));
                if shape.as_slice() != sample.extents() {
                    return Err(Failure::Usage(format!(
                        "column {:?}: sample {first_i} has shape {shape:?}, sample {i} has {:?}; a NumPy array has one \
                         shape: request one sample at a time, or use --format json",
                        schema.name,
                        sample.extents()
                    )));
                }
            }
            _ => {}
        }
    }
    let fixed = |extent: &Extent| if let Extent::Fixed(extent) = extent { *extent } else { 0 };
    Ok(first.map_or_else(|| schema.shape.extents().iter().map(fixed).collect(), |(_, shape)| shape))
}
