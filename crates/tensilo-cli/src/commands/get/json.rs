//! Writes samples as JSON: values of columns, and structs assembled from the columns of their
//! fields.
//!
//! Values are written one by one instead of through `serde_json::Value`, because a tensor can be
//! large, and because floats must be the shortest decimals of their own type. `{:?}` formats a
//! finite float as valid JSON that reads back as the same float. JSON has no numbers for NaN and
//! infinities, so these become strings.
//!
//! A struct is a tree of fields, with a column for each leaf and, if the struct is nullable, one
//! for its nulls. Lists around the struct are traversed in all columns at once, so all columns must
//! have the same lists. Only a salvaged file can violate this; that is an error.

use super::args::{As, GetArgs, Selection};
use super::samples::{SampleEntry, SampleSource, Samples, element, is_f32, to_f32, unsupported_as};
use crate::failure::{Failure, Outcome};
use crate::output::{Destination, Output};
use std::fmt::Debug;
use std::io::{self, Write};
use tensilo::export::imported_type;
use tensilo::import::arrow::datatypes::{DataType, i256};
use tensilo::nested::{FieldNode, List};
use tensilo::{ColumnSchema, DType, Sample, Schema};

/// Writes samples of a column.
pub(super) fn write(args: &GetArgs, mut samples: Samples, selection: &Selection, destination: Destination) -> Outcome {
    let print = Printer::of(&samples.schema, args.elements)?;
    write_samples(selection, destination, |output, i| write_entry(output, &samples.read(i)?, print))
}

/// Writes the sample itself if a single index was requested, otherwise an array with one sample per
/// line.
fn write_samples(
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
fn write_entry(output: &mut impl Write, entry: &SampleEntry<'_>, print: Printer) -> Outcome {
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

/// Writes a tensor as nested arrays. The depth is at most 16, the maximum number of dimensions.
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

/// How the elements of a column are written.
#[derive(Clone, Copy)]
struct Printer {
    dtype: DType,
    is_bits: bool,
    decimals: Option<Decimals>,
}

impl Printer {
    fn of(column: &ColumnSchema, elements: Option<As>) -> Outcome<Self> {
        let dtype = column.dtype;
        match elements {
            Some(As::Bits) if dtype.is_string() => return Err(unsupported_as(dtype)),
            Some(As::F32) if !is_f32(dtype) => return Err(unsupported_as(dtype)),
            _ => {}
        }
        let decimals = Decimals::of(column).filter(|_| elements.is_none());
        Ok(Self { dtype, is_bits: elements == Some(As::Bits), decimals })
    }

    /// Returns the shape of a sample in elements. The bytes of a decimal count as one element.
    fn shape_of<'a>(&self, sample: &'a Sample<'_>) -> &'a [u32] {
        let shape = sample.extents();
        match self.decimals {
            Some(decimals) if decimals.have_dimension => shape.split_last().map_or(shape, |(_, outer)| outer),
            _ => shape,
        }
    }

    /// Writes one element, given its bytes in the byte order of this machine.
    fn write(&self, output: &mut dyn Write, bytes: &[u8]) -> io::Result<()> {
        if let Some(decimals) = self.decimals {
            return decimals.write(output, bytes);
        }
        match self.dtype {
            _ if self.is_bits => write_bits(output, bytes),
            dtype if is_f32(dtype) => write_float(output, to_f32(dtype, bytes)),
            DType::F64 => write_float(output, f64::from_ne_bytes(element(bytes))),
            DType::I4 => write!(output, "{}", to_f32(DType::I4, bytes)),
            DType::I8 => write!(output, "{}", i8::from_ne_bytes(element(bytes))),
            DType::I16 => write!(output, "{}", i16::from_ne_bytes(element(bytes))),
            DType::I32 => write!(output, "{}", i32::from_ne_bytes(element(bytes))),
            DType::I64 => write!(output, "{}", i64::from_ne_bytes(element(bytes))),
            DType::Bool => write!(output, "{}", element(bytes) != [0]),
            DType::Complex64 => {
                let (real, imaginary) = bytes.split_at_checked(4).unwrap_or((bytes, &[]));
                output.write_all(b"[")?;
                write_float(output, to_f32(DType::F32, real))?;
                output.write_all(b",")?;
                write_float(output, to_f32(DType::F32, imaginary))?;
                output.write_all(b"]")
            }
            _ => write_bits(output, bytes),
        }
    }
}

/// Writes an element as an unsigned integer.
fn write_bits(output: &mut dyn Write, bytes: &[u8]) -> io::Result<()> {
    match bytes.len() {
        1 => write!(output, "{}", u8::from_ne_bytes(element(bytes))),
        2 => write!(output, "{}", u16::from_ne_bytes(element(bytes))),
        4 => write!(output, "{}", u32::from_ne_bytes(element(bytes))),
        _ => write!(output, "{}", u64::from_ne_bytes(element(bytes))),
    }
}

fn write_float<T: Copy + Debug + Into<f64>>(output: &mut dyn Write, value: T) -> io::Result<()> {
    match value.into() {
        f64::INFINITY => output.write_all(b"\"Infinity\""),
        f64::NEG_INFINITY => output.write_all(b"\"-Infinity\""),
        special if special.is_nan() => output.write_all(b"\"NaN\""),
        _ => write!(output, "{value:?}"),
    }
}

/// How the decimals of a column are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Decimals {
    scale: i8,
    /// Whether the innermost dimension holds the bytes of a decimal.
    have_dimension: bool,
}

impl Decimals {
    /// Returns how the decimals of a column are stored. Returns `None` unless the metadata names a
    /// decimal type, and the column has the type and shape that an import gives to such decimals.
    fn of(column: &ColumnSchema) -> Option<Self> {
        match imported_type(column)? {
            DataType::Decimal32(_, scale)
            | DataType::Decimal64(_, scale)
            | DataType::Decimal128(_, scale)
            | DataType::Decimal256(_, scale) => Some(Self { scale, have_dimension: column.dtype == DType::U8 }),
            _ => None,
        }
    }

    /// Writes a decimal, given as the bytes of its unscaled value, as a string.
    fn write(self, output: &mut dyn Write, bytes: &[u8]) -> io::Result<()> {
        match bytes.len() {
            4 => write!(output, "\"{}\"", decimal_text(&i32::from_ne_bytes(element(bytes)).to_le_bytes(), self.scale)),
            8 => write!(output, "\"{}\"", decimal_text(&i64::from_ne_bytes(element(bytes)).to_le_bytes(), self.scale)),
            _ => write!(output, "\"{}\"", decimal_text(bytes, self.scale)),
        }
    }
}

/// Formats the decimal with this unscaled value, a two's complement integer of at most 256 bits.
fn decimal_text(little_endian: &[u8], scale: i8) -> String {
    let is_negative = little_endian.last().is_some_and(|byte| *byte >= 0x80);
    let mut wide = [if is_negative { u8::MAX } else { 0 }; 32];
    wide.iter_mut().zip(little_endian).for_each(|(to, from)| *to = *from);
    let number = i256::from_le_bytes(wide).to_string();
    let (sign, digits) = number.strip_prefix('-').map_or(("", number.as_str()), |digits| ("-", digits));
    let decimal_places = usize::from(scale.unsigned_abs());
    match scale {
        1.. => {
            let padded = format!("{digits:0>width$}", width = decimal_places.saturating_add(1));
            let (whole, fraction) =
                padded.split_at_checked(padded.len().saturating_sub(decimal_places)).unwrap_or((&padded, ""));
            format!("{sign}{whole}.{fraction}")
        }
        _ if digits == "0" => number,
        _ => number + &"0".repeat(decimal_places), // no zeros for scale 0
    }
}

/// A struct, named like a field: `box`, or `box.corner` for a struct inside it.
pub(super) struct NamedStruct {
    node: FieldNode,
    /// The number of levels of lists around the struct.
    lists: usize,
}

impl NamedStruct {
    /// Finds the struct with this name.
    pub(super) fn find(schema: &Schema, name: &str) -> Option<Self> {
        let nodes = FieldNode::of_columns(schema.columns.iter());
        let (node, lists) = FieldNode::named(&nodes, name)?;
        Some(Self { node: node.clone(), lists })
    }
}

/// Writes samples of a struct.
pub(super) fn write_structs(
    found: &NamedStruct,
    args: &GetArgs,
    source: &SampleSource,
    selection: &Selection,
    destination: Destination,
) -> Outcome {
    let columns = &source.schema().columns;
    let names = found.node.columns().into_iter().filter_map(|number| Some(columns.get(number)?.name.as_str()));
    let names: Vec<&str> = names.collect();
    let mut columns = names.iter().map(|name| source.samples(name)).collect::<Outcome<Vec<Samples>>>()?;
    let prints = columns.iter().map(|column| Printer::of(&column.schema, args.elements));
    let prints = prints.collect::<Outcome<Vec<Printer>>>()?;
    write_samples(selection, destination, |output, i| {
        let fields = columns.iter_mut().zip(&names).zip(&prints);
        let fields =
            fields.map(|((column, name), print)| Ok(FieldValue { name, print: *print, entry: column.read(i)? }));
        let written = write_struct(output, &found.node, found.lists, &fields.collect::<Outcome<Vec<FieldValue>>>()?);
        written.map_err(|failure| match failure {
            Failure::Usage(message) => Failure::Usage(format!("sample {i}: {message}")),
            other => other,
        })
    })
}

/// A sample of one column of a struct, or an entry of a list in that sample.
struct FieldValue<'a> {
    name: &'a str,
    print: Printer,
    entry: SampleEntry<'a>,
}

impl FieldValue<'_> {
    fn is_null(&self) -> bool {
        self.entry.is_null()
    }

    fn list_len(&self) -> usize {
        self.entry.list_len()
    }

    fn member(&self, k: usize) -> Outcome<Self> {
        Ok(Self { entry: self.entry.member(k)?, ..*self })
    }
}

/// Checks that all columns of a struct have the same lists. In a salvaged file, they can differ.
fn check_lists(fields: &[FieldValue<'_>]) -> Outcome {
    let Some(first) = fields.first() else { return Ok(()) };
    let is_other = |field: &&FieldValue<'_>| field.is_null() != first.is_null() || field.list_len() != first.list_len();
    let Some(other) = fields.iter().find(is_other) else { return Ok(()) };
    let length = |field: &FieldValue<'_>| match field.is_null() {
        true => "is null".to_owned(),
        false => format!("has length {}", field.list_len()),
    };
    Err(Failure::Usage(format!(
        "the fields of the struct have different lists: {:?} {}, {:?} {}; print each column individually",
        first.name,
        length(first),
        other.name,
        length(other)
    )))
}

/// Writes a struct inside `lists` levels of lists. `fields` are its columns in order.
fn write_struct(output: &mut impl Write, node: &FieldNode, lists: usize, fields: &[FieldValue<'_>]) -> Outcome {
    let Some(first) = fields.first() else { return Ok(output.write_all(b"null")?) };
    if lists > 0 {
        check_lists(fields)?;
    }
    match node {
        _ if lists > 0 && first.is_null() => output.write_all(b"null")?,
        _ if lists > 0 => {
            output.write_all(b"[")?;
            for k in 0..first.list_len() {
                output.write_all(if k > 0 { b"," } else { b"" })?;
                let members = fields.iter().map(|field| field.member(k)).collect::<Outcome<Vec<FieldValue>>>()?;
                write_struct(output, node, lists - 1, &members)?;
            }
            output.write_all(b"]")?;
        }
        FieldNode::Struct { nulls: Some(_), .. } if first.is_null() => output.write_all(b"null")?,
        FieldNode::Struct { nulls, children, .. } => {
            output.write_all(b"{")?;
            let mut left = fields.get(usize::from(nulls.is_some())..).unwrap_or(&[]);
            for (k, child) in children.iter().enumerate() {
                output.write_all(if k > 0 { b"," } else { b"" })?;
                serde_json::to_writer(&mut *output, child.name()).map_err(io::Error::from)?;
                output.write_all(b":")?;
                let own;
                (own, left) = left.split_at_checked(child.columns().len()).unwrap_or((&[], &[]));
                let lists = if let FieldNode::Struct { lists, .. } = child { *lists } else { 0 };
                write_struct(output, child, lists, own)?;
            }
            output.write_all(b"}")?;
        }
        _ => write_entry(output, &first.entry, first.print)?,
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tensilo::Shape;

    #[test]
    fn decimals_are_exact() {
        for (value, scale, expected) in [
            (12_345, 2, "123.45"),
            (-5, 2, "-0.05"),
            (0, 3, "0.000"),
            (0, -3, "0"),
            (-7, -3, "-7000"),
            (7, 0, "7"),
            (i64::MIN, 1, "-922337203685477580.8"),
        ] {
            assert_eq!(decimal_text(&value.to_le_bytes(), scale), expected);
        }
        assert_eq!(decimal_text(&i128::MIN.to_le_bytes(), 0), i128::MIN.to_string());
        assert_eq!(decimal_text(&i128::MAX.to_le_bytes(), 127).len(), "0.".len() + 127);
        let mut min_decimal = [0; 32];
        min_decimal[31] = 0x80;
        assert_eq!(
            decimal_text(&min_decimal, 0),
            "-57896044618658097711785492504343953926634992332820282019728792003956564819968"
        );
    }

    #[test]
    fn only_columns_in_the_form_of_an_import_are_decimals() {
        let column = |dtype, shape: &[u32], text: &str| {
            let mut column = ColumnSchema::tensor("x", dtype, Shape::fixed(shape));
            column.metadata.insert("arrow.type".to_owned(), text.to_owned());
            Decimals::of(&column)
        };
        let wide = Some(Decimals { scale: -2, have_dimension: true });
        assert_eq!(column(DType::U8, &[3, 16], "decimal256[38, -2]"), wide);
        assert_eq!(column(DType::I32, &[3], "decimal128[9, 2]"), Some(Decimals { scale: 2, have_dimension: false }));
        for (dtype, shape, text) in [
            (DType::U8, &[16][..], "decimal256[39, 2]"),
            (DType::I32, &[], "decimal64[9, 200]"),
            (DType::I32, &[], "time32[s, 2]"),
            (DType::I32, &[], "decimal"),
        ] {
            assert_eq!(column(dtype, shape, text), None, "{text}");
        }
    }
}
