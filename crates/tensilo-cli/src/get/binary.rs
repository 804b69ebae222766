//! Samples as bytes: NumPy arrays and raw elements.

use super::args::{As, Format, GetArgs, OnNull};
use super::element::{element, write_little_endian};
use super::entry::SampleEntry;
use super::indices::Selection;
use super::json::{cannot, small_value};
use super::npy_header;
use super::sample_source::Samples;
use crate::failure::{Failure, Outcome};
use crate::output::Destination;
use half::f16;
use std::io::{self, Write};
use tensilo::{ColumnSchema, DType, Extent, LogicalType, Sample};

/// Writes samples with `--format npy` or `--format raw`.
pub(super) fn write(args: &GetArgs, mut samples: Samples, selection: &Selection, destination: Destination) -> Outcome {
    let schema = samples.schema();
    if !schema.levels.is_empty() {
        let message = format!("column {:?}: {} has no binary form; use --format json", schema.name, schema.type_name());
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
        output.write_all(&npy_header::npy_header(elements.descr, &shape))?;
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

/// Returns the bytes of a tensor of this shape.
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
    /// NumPy's name of the output type.
    descr: &'static str,
    /// The bytes of one output element.
    bytes: usize,
    change: Change,
}

#[derive(Clone, Copy)]
enum Change {
    Nothing,
    WidenBf16,
    WidenF16,
    WidenSmall(DType),
    SignI4,
    /// Of halves of 4 bytes.
    Complex,
}

impl Elements {
    fn new(args: &GetArgs, dtype: DType) -> Outcome<Self> {
        let stored = |descr| Self { descr, bytes: dtype.element_bytes(), change: Change::Nothing };
        let widened = |change| Self { descr: "<f4", bytes: 4, change };
        match (args.elements, dtype) {
            (None, DType::Bytes | DType::Utf8) if args.format == Format::Npy => Err(Failure::Usage(format!(
                "NumPy arrays cannot hold samples of type {dtype}; use --format raw or --format json"
            ))),
            (None, DType::Bf16) if args.format == Format::Npy => Ok(widened(Change::WidenBf16)),
            (None, DType::Complex64) => Ok(Self { change: Change::Complex, ..stored("<c8") }),
            // NumPy has no numbers of fewer than 8 bits, and no floats of 8
            (None, DType::I4) if args.format == Format::Npy => Ok(Self { change: Change::SignI4, ..stored("|i1") }),
            (None, DType::U4) => Ok(stored("|u1")),
            (None, small) if small.is_small() && args.format == Format::Npy => Ok(widened(Change::WidenSmall(small))),
            (None, _) => Ok(stored(value_descr(dtype))),
            (Some(As::Bits), dtype) if !dtype.is_string() => Ok(stored(bits_descr(dtype))),
            (Some(As::F32), DType::Bf16) => Ok(widened(Change::WidenBf16)),
            (Some(As::F32), DType::F16) => Ok(widened(Change::WidenF16)),
            (Some(As::F32), DType::F32) => Ok(stored("<f4")),
            (Some(As::F32), small) if small.is_small() && !matches!(small, DType::I4 | DType::U4) => {
                Ok(widened(Change::WidenSmall(small)))
            }
            (Some(_), _) => Err(cannot(dtype)),
        }
    }

    /// Writes elements, given in memory order.
    fn write(&self, output: &mut impl Write, elements: &[u8]) -> io::Result<()> {
        match self.change {
            Change::Nothing => write_little_endian(output, self.bytes, elements),
            Change::WidenBf16 => write_widened(output, elements, bf16_to_f32),
            Change::WidenF16 => write_widened(output, elements, |bits| f16::from_bits(bits).to_f32()),
            Change::WidenSmall(dtype) => {
                let values = elements.chunks_exact(1).map(|element| small_value(dtype, element).to_le_bytes());
                values.into_iter().try_for_each(|bytes| output.write_all(&bytes))
            }
            Change::SignI4 => elements.iter().try_for_each(|element| output.write_all(&[sign_of_i4(*element)])),
            Change::Complex => write_little_endian(output, 4, elements),
        }
    }
}

fn write_widened(output: &mut impl Write, elements: &[u8], widen: impl Fn(u16) -> f32) -> io::Result<()> {
    let values = elements.chunks_exact(2).map(|bytes| widen(u16::from_ne_bytes(element(bytes))));
    values.map(f32::to_le_bytes).try_for_each(|bytes| output.write_all(&bytes))
}

/// Returns an integer of 4 bits as one of 8 bits.
fn sign_of_i4(element: u8) -> u8 {
    ((element << 4).cast_signed() >> 4).cast_unsigned()
}

/// Widens a bf16 exactly. NaN keeps all its bits.
fn bf16_to_f32(bits: u16) -> f32 {
    f32::from_bits(u32::from(bits) << 16)
}

fn value_descr(dtype: DType) -> &'static str {
    match dtype {
        DType::F16 => "<f2",
        DType::F32 => "<f4",
        DType::F64 => "<f8",
        DType::I8 => "|i1",
        DType::I16 => "<i2",
        DType::I32 => "<i4",
        DType::I64 => "<i8",
        DType::Bool => "|b1",
        _ => bits_descr(dtype),
    }
}

fn bits_descr(dtype: DType) -> &'static str {
    match dtype.element_bytes() {
        1 => "|u1",
        2 => "<u2",
        4 => "<u4",
        _ => "<u8",
    }
}

/// Reads all samples before anything is written, unless the schema makes that needless. Fails on
/// nulls that the user has not allowed, and for NumPy on samples of different shapes. Returns the
/// shape of the samples.
fn survey(args: &GetArgs, samples: &mut Samples, selection: &Selection) -> Outcome<Vec<u32>> {
    let schema = samples.schema().clone();
    let refuse_nulls = args.nulls == OnNull::Refuse && samples.has_nulls();
    let same_shape = args.format == Format::Npy && schema.shape.is_ragged();
    let mut first: Option<(u64, Vec<u32>)> = None;
    let surveyed = if refuse_nulls || same_shape { Some(selection.iter()) } else { None };
    for i in surveyed.into_iter().flatten() {
        match samples.read(i)? {
            entry if entry.is_null() && refuse_nulls => return Err(null_refused(&schema, i)),
            SampleEntry::Item(sample) if !sample.is_null() && same_shape => {
                check_shape(&schema, &mut first, i, &sample)?
            }
            _ => {}
        }
    }
    Ok(first.map_or_else(|| smallest_shape(&schema), |(_, shape)| shape))
}

/// Returns the shape of the schema, with 0 for each varying extent.
fn smallest_shape(schema: &ColumnSchema) -> Vec<u32> {
    let extent = |extent: &Extent| match extent {
        Extent::Fixed(extent) => *extent,
        Extent::Varying => 0,
    };
    schema.shape.extents().iter().map(extent).collect()
}

fn check_shape(schema: &ColumnSchema, first: &mut Option<(u64, Vec<u32>)>, i: u64, sample: &Sample<'_>) -> Outcome {
    let (first_i, shape) = first.get_or_insert_with(|| (i, sample.shape().to_vec()));
    if shape.as_slice() == sample.shape() {
        return Ok(());
    }
    Err(Failure::Usage(format!(
        "column {:?}: sample {first_i} has shape {shape:?}, sample {i} has {:?}; a NumPy array has one shape: \
         ask for one sample at a time, or use --format json",
        schema.name,
        sample.shape()
    )))
}

fn null_refused(schema: &ColumnSchema, i: u64) -> Failure {
    Failure::Usage(format!(
        "column {:?}: sample {i} is null, which this format cannot express; --nulls zero writes zeros for it, \
         --format json writes null",
        schema.name
    ))
}
