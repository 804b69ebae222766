//! Which Arrow types can be stored, and as what.

use super::extension;
use crate::{DType, limits};
use arrow_schema::{DataType, Field};
use std::fmt;
use std::result::Result;

/// How samples of a column are stored, as far as its type tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Kind {
    /// The type that values are pushed in.
    pub dtype: DType,
    /// Levels of lists around the elements, outermost first.
    pub levels: Vec<Level>,
    /// Whether this is a struct of elements and their shape.
    pub variable_tensor: bool,
    /// Whether the elements are INT96 timestamps of Parquet, as [`parquet_raw`](super::parquet_raw)
    /// hands them over.
    pub int96: bool,
}

/// In the metadata of a field: its elements are INT96 timestamps, read as 12 bytes each.
pub(super) const INT96: &str = "PARQUET:int96";
/// In the metadata of a field: its values are encrypted.
pub(super) const ENCRYPTED: &str = "PARQUET:encrypted";

/// One level of lists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Level {
    /// A dimension whose length the data tells.
    Open,
    /// Dimensions that the type tells: one of a fixed-size list, several of a tensor.
    Fixed(Vec<u32>),
}

impl Level {
    fn rank(&self) -> usize {
        match self {
            Self::Open => 1,
            Self::Fixed(extents) => extents.len(),
        }
    }
}

impl Kind {
    /// Number of dimensions.
    pub(super) fn rank(&self) -> usize {
        self.levels.iter().map(Level::rank).sum()
    }

    /// Number of dimensions that the data tells.
    pub(super) fn open_count(&self) -> usize {
        self.levels.iter().filter(|level| matches!(level, Level::Open)).count()
    }
}

/// What a field that is no plain struct is stored as, or why it cannot be.
pub(super) fn kind_of(field: &Field) -> Result<Kind, String> {
    if extension::is_variable_tensor(field) {
        return extension::variable_tensor(field);
    }
    let data_type = decoded(field.data_type());
    let string = string(data_type);
    if let Some(dtype) = string {
        check_readable(field)?;
        return Ok(Kind { dtype, levels: Vec::new(), variable_tensor: false, int96: false });
    }
    let mut levels = Vec::new();
    let (dtype, int96) = descend(field, &mut levels)?;
    let rank: usize = levels.iter().map(Level::rank).sum();
    if rank > limits::RANK {
        return Err(format!("{rank} dimensions, of which the format allows {}", limits::RANK));
    }
    Ok(Kind { dtype, levels, variable_tensor: false, int96 })
}

fn check_readable(leaf: &Field) -> Result<(), String> {
    if leaf.metadata().contains_key(ENCRYPTED) { Err("encrypted".to_owned()) } else { Ok(()) }
}

/// Collects the levels of lists down to the elements; their type, and whether they are INT96
/// timestamps.
fn descend(field: &Field, levels: &mut Vec<Level>) -> Result<(DType, bool), String> {
    let data_type = decoded(field.data_type());
    match data_type {
        DataType::FixedSizeList(item, length) => {
            levels.push(Level::Fixed(extension::fixed_extents(field, *length)?));
            descend(item, levels)
        }
        DataType::List(item) | DataType::LargeList(item) | DataType::ListView(item) | DataType::LargeListView(item) => {
            levels.push(Level::Open);
            descend(item, levels)
        }
        _ => {
            check_readable(field)?;
            let dtype = element(data_type).ok_or_else(|| unsupported(data_type, levels.is_empty()))?;
            Ok((dtype, field.metadata().contains_key(INT96)))
        }
    }
}

fn unsupported(data_type: &DataType, outermost: bool) -> String {
    let name = name(data_type);
    if outermost { name } else { format!("lists of {name}") }
}

/// The name that Arrow's documentation has for a type that cannot be stored, or not in a list.
fn name(data_type: &DataType) -> String {
    match data_type {
        DataType::Decimal32(precision, scale) => format!("decimal32({precision}, {scale})"),
        DataType::Decimal64(precision, scale) => format!("decimal64({precision}, {scale})"),
        DataType::Decimal128(precision, scale) => format!("decimal128({precision}, {scale})"),
        DataType::Decimal256(precision, scale) => format!("decimal256({precision}, {scale})"),
        DataType::FixedSizeBinary(bytes) => format!("fixed_size_binary[{bytes}]"),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => "utf8".to_owned(),
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => "binary".to_owned(),
        DataType::Struct(fields) if fields.is_empty() => "a struct without fields".to_owned(),
        DataType::Struct(_) => "struct".to_owned(),
        DataType::Map(..) => "map".to_owned(),
        DataType::Union(..) => "union".to_owned(),
        DataType::Interval(_) => "interval".to_owned(),
        DataType::Null => "null".to_owned(),
        other => other.to_string(),
    }
}

/// The type behind encodings of a whole array.
pub(super) fn decoded(data_type: &DataType) -> &DataType {
    match data_type {
        DataType::Dictionary(_, values) => decoded(values),
        DataType::RunEndEncoded(_, values) => decoded(values.data_type()),
        _ => data_type,
    }
}

/// The type whose name goes into the metadata: that of the elements.
pub(super) fn element_type(data_type: &DataType) -> &DataType {
    match decoded(data_type) {
        DataType::FixedSizeList(item, _)
        | DataType::List(item)
        | DataType::LargeList(item)
        | DataType::ListView(item)
        | DataType::LargeListView(item) => element_type(item.data_type()),
        other => other,
    }
}

/// What elements of a tensor are pushed as.
pub(super) fn element(data_type: &DataType) -> Option<DType> {
    Some(match data_type {
        DataType::Boolean => DType::Bool,
        DataType::Int8 => DType::I8,
        DataType::Int16 => DType::I16,
        DataType::Int32 => DType::I32,
        DataType::Int64 => DType::I64,
        DataType::UInt8 => DType::U8,
        DataType::UInt16 => DType::U16,
        DataType::UInt32 => DType::U32,
        DataType::UInt64 => DType::U64,
        DataType::Float16 => DType::F16,
        DataType::Float32 => DType::F32,
        DataType::Float64 => DType::F64,
        DataType::Date32
        | DataType::Date64
        | DataType::Time32(_)
        | DataType::Time64(_)
        | DataType::Timestamp(_, _)
        | DataType::Duration(_) => DType::I64,
        _ => return None,
    })
}

fn string(data_type: &DataType) -> Option<DType> {
    match data_type {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => Some(DType::Utf8),
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => {
            Some(DType::Bytes)
        }
        _ => None,
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Open => f.write_str("[*]"),
            Self::Fixed(extents) => write!(f, "{extents:?}"),
        }
    }
}
