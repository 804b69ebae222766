//! The column of all files with one suffix: its type, and arrays of its values.
//!
//! As in the WebDataset library, the last component of a suffix determines how a file is decoded:
//! as text, an integer, a NumPy array, or bytes. The first array of a column determines the type
//! and the number of dimensions of the column.

use crate::element::{element_array, element_field, swap_bytes};
use crate::npy::NpyHeader;
use crate::tensor::{Order, in_c_order};
use std::sync::Arc;
use tensilo::import::arrow::array::{
    Array, ArrayRef, BinaryBuilder, FixedSizeListArray, Int32Array, Int64Builder, ListArray, StringBuilder,
    StructArray, make_array,
};
use tensilo::import::arrow::buffer::{BooleanBuffer, MutableBuffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use tensilo::import::arrow::datatypes::{DataType, Field, Fields};
use tensilo::import::refused_field;
use tensilo::{DType, Error, Result, limits};

/// The column of all files with one suffix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SuffixColumn {
    pub suffix: String,
    pub kind: SuffixKind,
    /// The type and the number of dimensions of the first array.
    pub array: Option<(DType, usize)>,
    /// The number of samples that have a file with this suffix.
    pub count: u64,
    /// The reason why the files cannot be stored, or `None` if they can.
    pub refused: Option<String>,
}

impl SuffixColumn {
    /// Returns the field of the column.
    pub(super) fn field(&self, nullable: bool) -> Field {
        let name = self.suffix.as_str();
        if let Some(reason) = &self.refused {
            return refused_field(name, reason);
        }
        match (self.kind, self.array) {
            (SuffixKind::Text, _) => Field::new(name, DataType::Utf8, nullable),
            (SuffixKind::Integer, _) => Field::new(name, DataType::Int64, nullable),
            (SuffixKind::Npy, Some((dtype, 0))) => element_field(name, dtype, nullable),
            (SuffixKind::Npy, Some((dtype, ndim))) => {
                let field = Field::new(name, DataType::Struct(tensor_fields(dtype, ndim)), nullable);
                field.with_metadata([("ARROW:extension:name", "arrow.variable_shape_tensor")])
            }
            _ => Field::new(name, DataType::Binary, nullable),
        }
    }

    /// Checks the first bytes of a file. Fails with the reason if they show that the file cannot be
    /// stored. `is_whole` is set if they are the whole file.
    pub(super) fn check(&self, prefix: &[u8], is_whole: bool) -> std::result::Result<(), String> {
        let found = match self.kind {
            SuffixKind::Text => match str::from_utf8(prefix) {
                // a prefix can end within a character
                Err(error) if is_whole || error.error_len().is_some() => text(prefix).map(drop),
                _ => Ok(()),
            },
            SuffixKind::Integer if is_whole => integer(prefix).map(drop),
            SuffixKind::Npy => match (array_type(prefix), self.array) {
                (Ok(found), Some(first)) => check_type(found, first),
                (Ok(_), None) => Ok(()),
                (Err(_), Some(_)) if !is_whole => Ok(()), // the header can be longer than the prefix
                (Err(error), _) => Err(error),
            },
            _ => Ok(()),
        };
        found.map_err(|error| error.message().to_owned())
    }

    /// Returns the values of files as an array. `None` stands for a missing file. An error comes
    /// with the index of the file that caused it.
    pub(super) fn values(&self, files: &[Option<Vec<u8>>]) -> std::result::Result<ArrayRef, (usize, Error)> {
        match (self.kind, self.array) {
            (SuffixKind::Text, _) => {
                let mut texts = StringBuilder::new();
                for (i, file) in files.iter().enumerate() {
                    let text = file.as_deref().map(text).transpose();
                    texts.append_option(text.map_err(|error| (i, error))?);
                }
                Ok(Arc::new(texts.finish()))
            }
            (SuffixKind::Integer, _) => {
                let mut integers = Int64Builder::new();
                for (i, file) in files.iter().enumerate() {
                    let integer = file.as_deref().map(integer).transpose();
                    integers.append_option(integer.map_err(|error| (i, error))?);
                }
                Ok(Arc::new(integers.finish()))
            }
            (SuffixKind::Npy, Some((dtype, ndim))) => tensors(files, dtype, ndim),
            _ => {
                let mut bytes = BinaryBuilder::new();
                files.iter().for_each(|file| bytes.append_option(file.as_deref()));
                Ok(Arc::new(bytes.finish()))
            }
        }
    }
}

fn text(file: &[u8]) -> Result<&str> {
    str::from_utf8(file).map_err(|error| Error::bad_input(format!("the text is not UTF-8: {error}")))
}

fn integer(file: &[u8]) -> Result<i64> {
    let integer = str::from_utf8(file).ok().and_then(|text| text.trim().parse().ok());
    integer.ok_or_else(|| Error::bad_input("the file does not contain a 64-bit integer"))
}

/// Fails if an array differs from the first one in its type or number of dimensions.
fn check_type(found: (DType, usize), first: (DType, usize)) -> Result<()> {
    if found == first {
        return Ok(());
    }
    Err(Error::bad_input(format!(
        "the array has type {} and {} dimensions, but the first array has type {} and {} dimensions",
        found.0, found.1, first.0, first.1
    )))
}

/// Returns the fields of the struct that represents a tensor in Arrow.
fn tensor_fields(dtype: DType, ndim: usize) -> Fields {
    let ndim = i32::try_from(ndim).unwrap_or(i32::MAX); // at most 16
    let shape = DataType::FixedSizeList(Arc::new(Field::new_list_field(DataType::Int32, false)), ndim);
    let data = DataType::List(Arc::new(element_field("item", dtype, false)));
    Fields::from(vec![Field::new("data", data, false), Field::new("shape", shape, false)])
}

/// Returns the NumPy arrays of files as one Arrow array.
fn tensors(files: &[Option<Vec<u8>>], dtype: DType, ndim: usize) -> std::result::Result<ArrayRef, (usize, Error)> {
    let (mut elements, mut ends, mut shapes) = (MutableBuffer::new(0), vec![0_i32], Vec::new());
    let mut end = 0;
    for (i, file) in files.iter().enumerate() {
        let Some(file) = file else {
            shapes.extend(std::iter::repeat_n(0, ndim));
            ends.push(end);
            if ndim == 0 {
                elements.extend_zeros(dtype.element_bytes());
            }
            continue;
        };
        let (header, bytes) = read_array(file, dtype, ndim).map_err(|error| (i, error))?;
        let too_large = || (i, Error::bad_input("the arrays of a batch have more than 2^31 - 1 elements"));
        elements.extend_from_slice(&bytes);
        let count = i32::try_from(bytes.len() / dtype.element_bytes()).ok().and_then(|count| end.checked_add(count));
        end = count.ok_or_else(too_large)?;
        ends.push(end);
        for extent in &header.extents {
            shapes.push(i32::try_from(*extent).map_err(|_| too_large())?);
        }
    }
    let nulls = NullBuffer::from(files.iter().map(Option::is_some).collect::<BooleanBuffer>());
    build(dtype, ndim, elements, (ends, shapes), nulls).map_err(|error| (0, error))
}

/// Returns the header of an array, and its elements in C order and the byte order of this machine.
fn read_array(file: &[u8], dtype: DType, ndim: usize) -> Result<(NpyHeader, Vec<u8>)> {
    let mut rest = file;
    let header = NpyHeader::read(&mut rest)?;
    check_type((header.dtype, header.extents.len()), (dtype, ndim))?;
    let width = u64::try_from(dtype.element_bytes()).unwrap_or(8); // at most 8
    let expected = header.extents.iter().try_fold(width, |bytes, &extent| bytes.checked_mul(extent));
    if expected != u64::try_from(rest.len()).ok() {
        let extents = &header.extents;
        let message = format!("the array has {} bytes, which does not match its shape {extents:?}", rest.len());
        return Err(Error::bad_input(message));
    }
    let mut bytes = match header.order {
        Order::C => rest.to_vec(),
        Order::Fortran => in_c_order(rest, &header.extents, dtype.element_bytes()),
    };
    if header.is_swapped {
        swap_bytes(dtype.element_bytes(), &mut bytes);
    }
    Ok((header, bytes))
}

fn build(
    dtype: DType,
    ndim: usize,
    elements: MutableBuffer,
    (ends, shapes): (Vec<i32>, Vec<i32>),
    nulls: NullBuffer,
) -> Result<ArrayRef> {
    let failed = |error: tensilo::import::arrow::error::ArrowError| Error::bad_input(error.to_string());
    let elements = element_array(dtype, elements)?;
    if ndim == 0 {
        let data = elements.to_data().into_builder().nulls(Some(nulls)).build().map_err(failed)?;
        return Ok(make_array(data));
    }
    let fields = tensor_fields(dtype, ndim);
    let offsets = OffsetBuffer::new(ScalarBuffer::from(ends));
    let item = Arc::new(element_field("item", dtype, false));
    let data = ListArray::try_new(item, offsets, elements, None).map_err(failed)?;
    let item = Arc::new(Field::new_list_field(DataType::Int32, false));
    let size = i32::try_from(ndim).unwrap_or(i32::MAX); // at most 16
    let shape = FixedSizeListArray::try_new(item, size, Arc::new(Int32Array::from(shapes)), None).map_err(failed)?;
    let members: Vec<ArrayRef> = vec![Arc::new(data), Arc::new(shape)];
    Ok(Arc::new(StructArray::try_new(fields, members, Some(nulls)).map_err(failed)?))
}

/// Returns the type and the number of dimensions in the header of an array.
pub(super) fn array_type(mut file: &[u8]) -> Result<(DType, usize)> {
    let header = NpyHeader::read(&mut file)?;
    let ndim = header.extents.len();
    if ndim > limits::DIMENSIONS {
        let message = format!("the array has {ndim} dimensions, more than {}", limits::DIMENSIONS);
        return Err(Error::bad_input(message));
    }
    if header.dtype == DType::Complex64 {
        return Err(Error::bad_input("the array has complex numbers; save it as a view of floats"));
    }
    Ok((header.dtype, ndim))
}

/// What the files with one suffix contain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SuffixKind {
    /// UTF-8.
    Text,
    /// A decimal integer.
    Integer,
    /// A NumPy array.
    Npy,
    /// Anything else.
    Bytes,
}

/// Returns the kind of a suffix, such as `seg.npy`.
pub(crate) fn kind_of(suffix: &str) -> SuffixKind {
    match suffix.rsplit('.').next().unwrap_or(suffix) {
        "txt" | "text" | "transcript" | "json" | "jsonl" => SuffixKind::Text,
        "cls" | "cls2" | "class" | "count" | "index" | "inx" | "id" => SuffixKind::Integer,
        "npy" => SuffixKind::Npy,
        _ => SuffixKind::Bytes,
    }
}
