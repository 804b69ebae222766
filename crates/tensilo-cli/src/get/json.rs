//! Samples as JSON.

use super::args::{As, GetArgs};
use super::decimal::Decimals;
use super::element::element;
use super::entry::SampleEntry;
use super::indices::Selection;
use super::sample_source::Samples;
use crate::failure::{Failure, Outcome};
use crate::output::{Destination, Output};
use half::{bf16, f16};
use std::io::{self, Write};
use tensilo::nested::List;
use tensilo::{ColumnSchema, DType, Sample};

/// Writes samples of a column.
pub(super) fn write(args: &GetArgs, mut samples: Samples, selection: &Selection, destination: Destination) -> Outcome {
    let print = Printer::of(samples.schema(), args.elements)?;
    write_samples(selection, destination, |output, i| write_entry(output, &samples.read(i)?, print))
}

/// Writes the sample for one index, otherwise an array with a line for each sample.
pub(super) fn write_samples(
    selection: &Selection,
    destination: Destination,
    mut write_one: impl FnMut(&mut Output, u64) -> Outcome,
) -> Outcome {
    let mut output = destination.create()?;
    if !selection.is_single() {
        write!(output, "[")?;
    }
    let mut separator = if selection.is_single() { "" } else { "\n" };
    for i in selection.iter() {
        write!(output, "{separator}")?;
        separator = ",\n";
        write_one(&mut output, i)?;
    }
    output.write_all(if selection.is_single() { b"\n" } else { b"\n]\n" })?;
    output.finish()
}

/// Writes a sample of any kind.
pub(super) fn write_entry(output: &mut impl Write, entry: &SampleEntry<'_>, print: Printer) -> Outcome {
    match entry {
        SampleEntry::Absent => Ok(output.write_all(b"null")?),
        SampleEntry::Item(sample) => write_sample(output, sample, print),
        SampleEntry::List(list) => write_list(output, list, print),
    }
}

/// Writes a list. The depth is at most 16.
fn write_list(output: &mut impl Write, list: &List<'_>, print: Printer) -> Outcome {
    if list.is_null() {
        return Ok(output.write_all(b"null")?);
    }
    output.write_all(b"[")?;
    for k in 0..list.len() {
        if k > 0 {
            output.write_all(b",")?;
        }
        match list.has_lists() {
            true => write_list(output, &list.list(k)?, print)?,
            false => write_sample(output, &list.item(k)?, print)?,
        }
    }
    Ok(output.write_all(b"]")?)
}

fn write_sample(output: &mut impl Write, sample: &Sample<'_>, print: Printer) -> Outcome {
    if sample.is_null() {
        return Ok(output.write_all(b"null")?);
    }
    match print.dtype {
        DType::Utf8 => {
            let text = sample.as_str()?.unwrap_or("");
            serde_json::to_writer(output, text).map_err(io::Error::from)?;
        }
        DType::Bytes => {
            output.write_all(b"\"")?;
            sample.bytes().iter().try_for_each(|byte| write!(output, "{byte:02x}"))?;
            output.write_all(b"\"")?;
        }
        _ => write_nested(output, print.shape_of(sample), sample.bytes(), print)?,
    }
    Ok(())
}

/// Writes a tensor as nested arrays. The depth is at most 16, the maximum rank of a column.
fn write_nested(output: &mut dyn Write, shape: &[u32], bytes: &[u8], print: Printer) -> io::Result<()> {
    let Some((&extent, inner)) = shape.split_first() else { return print.write(output, bytes) };
    let extent = usize::try_from(extent).unwrap_or(usize::MAX);
    let each = bytes.len().checked_div(extent).unwrap_or(0);
    let mut rest = bytes;
    output.write_all(b"[")?;
    for i in 0..extent {
        let (item, after) = rest.split_at_checked(each).unwrap_or((rest, &[]));
        rest = after;
        if i > 0 {
            output.write_all(b",")?;
        }
        write_nested(output, inner, item, print)?;
    }
    output.write_all(b"]")
}

/// The form in which elements of a column are written.
#[derive(Clone, Copy)]
pub(super) struct Printer {
    dtype: DType,
    print: Print,
    decimals: Option<Decimals>,
}

impl Printer {
    pub(super) fn of(column: &ColumnSchema, elements: Option<As>) -> Outcome<Self> {
        let print = printer(column.dtype, elements)?;
        let decimals = Decimals::of(column).filter(|_| elements.is_none());
        Ok(Self { dtype: column.dtype, print, decimals })
    }

    /// Returns the shape of a sample in elements. The bytes of a decimal are one.
    fn shape_of<'a>(&self, sample: &'a Sample<'_>) -> &'a [u32] {
        let shape = sample.shape();
        match self.decimals {
            Some(decimals) if decimals.have_dimension => shape.split_last().map_or(shape, |(_, outer)| outer),
            _ => shape,
        }
    }

    /// Writes one element, given its bytes in memory order.
    fn write(&self, output: &mut dyn Write, bytes: &[u8]) -> io::Result<()> {
        match self.decimals {
            Some(decimals) => decimals.write(output, bytes),
            None => (self.print)(output, bytes),
        }
    }
}

/// A function that writes one element, given its bytes in memory order.
type Print = fn(&mut dyn Write, &[u8]) -> io::Result<()>;

fn printer(dtype: DType, elements: Option<As>) -> Outcome<Print> {
    match elements {
        None => Ok(value_printer(dtype)),
        Some(As::Bits) if !dtype.is_string() => Ok(bits_printer(dtype)),
        Some(As::F32) if is_f32(dtype) => Ok(value_printer(dtype)),
        Some(_) => Err(cannot(dtype)),
    }
}

/// Returns whether all values of a type are those of f32 and are floats.
fn is_f32(dtype: DType) -> bool {
    let is_small_float = dtype.is_small() && !matches!(dtype, DType::I4 | DType::U4);
    is_small_float || matches!(dtype, DType::Bf16 | DType::F16 | DType::F32)
}

/// Returns the failure if `--as` does not fit the type of the column.
pub(super) fn cannot(dtype: DType) -> Failure {
    Failure::Usage(format!(
        "a column of type {dtype}: --as f32 is for floats of at most 32 bits, --as bits for all but bytes and text"
    ))
}

fn value_printer(dtype: DType) -> Print {
    match dtype {
        DType::Bf16 => |output, bytes| print_f32(output, bf16::from_ne_bytes(element(bytes)).to_f32()),
        DType::F16 => |output, bytes| print_f32(output, f16::from_ne_bytes(element(bytes)).to_f32()),
        DType::F32 => |output, bytes| print_f32(output, f32::from_ne_bytes(element(bytes))),
        DType::F64 => |output, bytes| print_f64(output, f64::from_ne_bytes(element(bytes))),
        DType::I8 => |output, bytes| write!(output, "{}", i8::from_ne_bytes(element(bytes))),
        DType::I16 => |output, bytes| write!(output, "{}", i16::from_ne_bytes(element(bytes))),
        DType::I32 => |output, bytes| write!(output, "{}", i32::from_ne_bytes(element(bytes))),
        DType::I64 => |output, bytes| write!(output, "{}", i64::from_ne_bytes(element(bytes))),
        DType::Bool => |output, bytes| write!(output, "{}", element(bytes) != [0]),
        DType::I4 => |output, bytes| write!(output, "{}", small_value(DType::I4, bytes)),
        DType::F8E4M3Fn => |output, bytes| print_f32(output, small_value(DType::F8E4M3Fn, bytes)),
        DType::F8E4M3Fnuz => |output, bytes| print_f32(output, small_value(DType::F8E4M3Fnuz, bytes)),
        DType::F8E5M2 => |output, bytes| print_f32(output, small_value(DType::F8E5M2, bytes)),
        DType::F8E5M2Fnuz => |output, bytes| print_f32(output, small_value(DType::F8E5M2Fnuz, bytes)),
        DType::F8E8M0Fnu => |output, bytes| print_f32(output, small_value(DType::F8E8M0Fnu, bytes)),
        DType::F6E2M3 => |output, bytes| print_f32(output, small_value(DType::F6E2M3, bytes)),
        DType::F6E3M2 => |output, bytes| print_f32(output, small_value(DType::F6E3M2, bytes)),
        DType::F4E2M1 => |output, bytes| print_f32(output, small_value(DType::F4E2M1, bytes)),
        DType::Complex64 => print_complex,
        _ => bits_printer(dtype),
    }
}

/// Returns the value of an element of 4 to 8 bits.
pub(super) fn small_value(dtype: DType, bytes: &[u8]) -> f32 {
    let [element] = element(bytes);
    dtype.small_value(element).unwrap_or(f32::NAN) // the type is small
}

/// Writes the real and the imaginary part.
fn print_complex(output: &mut dyn Write, bytes: &[u8]) -> io::Result<()> {
    let (real, imaginary) = bytes.split_at_checked(4).unwrap_or((bytes, &[]));
    output.write_all(b"[")?;
    print_f32(output, f32::from_ne_bytes(element(real)))?;
    output.write_all(b",")?;
    print_f32(output, f32::from_ne_bytes(element(imaginary)))?;
    output.write_all(b"]")
}

fn bits_printer(dtype: DType) -> Print {
    match dtype.element_bytes() {
        1 => |output, bytes| write!(output, "{}", u8::from_ne_bytes(element(bytes))),
        2 => |output, bytes| write!(output, "{}", u16::from_ne_bytes(element(bytes))),
        4 => |output, bytes| write!(output, "{}", u32::from_ne_bytes(element(bytes))),
        _ => |output, bytes| write!(output, "{}", u64::from_ne_bytes(element(bytes))),
    }
}

// `{:?}` of a finite float is valid JSON and the shortest decimal that reads back the same
fn print_f32(output: &mut dyn Write, value: f32) -> io::Result<()> {
    if value.is_finite() { write!(output, "{value:?}") } else { print_special(output, value.into()) }
}

fn print_f64(output: &mut dyn Write, value: f64) -> io::Result<()> {
    if value.is_finite() { write!(output, "{value:?}") } else { print_special(output, value) }
}

fn print_special(output: &mut dyn Write, value: f64) -> io::Result<()> {
    output.write_all(match value {
        f64::INFINITY => b"\"Infinity\"",
        f64::NEG_INFINITY => b"\"-Infinity\"",
        _ => b"\"NaN\"",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(dtype: DType, elements: Option<As>, bytes: &[u8]) -> String {
        let mut out = Vec::new();
        printer(dtype, elements).unwrap()(&mut out, bytes).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn floats_are_the_shortest_decimals_that_read_back_the_same() {
        for value in [0.1_f32, -0.0, 1.0, 1e30, f32::MIN_POSITIVE, f32::from_bits(1), f32::MAX] {
            let text = printed(DType::F32, None, &value.to_ne_bytes());
            assert_eq!(text.parse::<f32>().unwrap().to_bits(), value.to_bits(), "{text}");
            assert!(serde_json::from_str::<f64>(&text).is_ok(), "{text}");
        }
        assert_eq!(printed(DType::F32, None, &0.1_f32.to_ne_bytes()), "0.1");
        assert_eq!(printed(DType::Bf16, None, &bf16::from_f32(1.1).to_ne_bytes()), "1.1015625");
        assert_eq!(printed(DType::F64, None, &1e300_f64.to_ne_bytes()), "1e300");
    }

    #[test]
    fn what_json_has_no_number_for_is_a_string() {
        assert_eq!(printed(DType::F16, None, &f16::NAN.to_ne_bytes()), "\"NaN\"");
        assert_eq!(printed(DType::F32, None, &f32::INFINITY.to_ne_bytes()), "\"Infinity\"");
        assert_eq!(printed(DType::F64, None, &f64::NEG_INFINITY.to_ne_bytes()), "\"-Infinity\"");
    }

    #[test]
    fn small_and_complex_numbers_are_printed_as_numbers() {
        assert_eq!(printed(DType::F8E4M3Fn, None, &[0x7E]), "448.0");
        assert_eq!(printed(DType::F8E4M3Fn, None, &[0x7F]), "\"NaN\"");
        assert_eq!(printed(DType::F8E5M2, Some(As::F32), &[0xFC]), "\"-Infinity\"");
        assert_eq!(printed(DType::F4E2M1, None, &[0x0B]), "-1.5");
        assert_eq!(printed(DType::I4, None, &[0x0F]), "-1");
        assert_eq!(printed(DType::U4, None, &[0x0F]), "15");
        assert_eq!(printed(DType::I4, Some(As::Bits), &[0x0F]), "15");
        assert!(printer(DType::I4, Some(As::F32)).is_err());
        let complex = [1.5_f32, -0.0].map(f32::to_ne_bytes).concat();
        assert_eq!(printed(DType::Complex64, None, &complex), "[1.5,-0.0]");
    }

    #[test]
    fn bits_are_unsigned() {
        assert_eq!(printed(DType::F32, Some(As::Bits), &(-0.0_f32).to_ne_bytes()), "2147483648");
        assert_eq!(printed(DType::I8, Some(As::Bits), &(-1_i8).to_ne_bytes()), "255");
        assert_eq!(printed(DType::I8, None, &(-1_i8).to_ne_bytes()), "-1");
        assert!(printer(DType::Utf8, Some(As::Bits)).is_err());
        assert!(printer(DType::F64, Some(As::F32)).is_err());
    }

    #[test]
    fn tensors_nest_and_may_be_empty() {
        let nested = |shape: &[u32], bytes: &[u8]| {
            let mut out = Vec::new();
            let print = Printer { dtype: DType::U8, print: value_printer(DType::U8), decimals: None };
            write_nested(&mut out, shape, bytes, print).unwrap();
            String::from_utf8(out).unwrap()
        };
        assert_eq!(nested(&[], &[7]), "7");
        assert_eq!(nested(&[2, 3], &[1, 2, 3, 4, 5, 6]), "[[1,2,3],[4,5,6]]");
        assert_eq!(nested(&[2, 0], &[]), "[[],[]]");
        assert_eq!(nested(&[0, 2], &[]), "[]");
    }
}
