//! Which Arrow types can be stored, and as what.

use super::extension;
use crate::{DType, limits};
use arrow::datatypes::{DataType, Field};
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
}

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
        return Ok(Kind { dtype, levels: Vec::new(), variable_tensor: false });
    }
    let mut levels = Vec::new();
    let dtype = descend(field, &mut levels)?;
    let rank: usize = levels.iter().map(Level::rank).sum();
    if rank > limits::RANK {
        return Err(format!("{rank} dimensions, of which the format allows {}", limits::RANK));
    }
    Ok(Kind { dtype, levels, variable_tensor: false })
}

/// Collects the levels of lists down to the elements.
fn descend(field: &Field, levels: &mut Vec<Level>) -> Result<DType, String> {
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
        _ => element(data_type).ok_or_else(|| unsupported(data_type, levels.is_empty())),
    }
}

fn unsupported(data_type: &DataType, outermost: bool) -> String {
    if outermost { data_type.to_string() } else { format!("lists of {data_type}") }
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
