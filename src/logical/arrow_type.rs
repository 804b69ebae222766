//! The Arrow type that a column came from, if the stored type does not imply it.
//!
//! tensilo has few types. A date, a decimal or an interval is stored as plain elements, and the
//! metadata `arrow.type` of the column names the Arrow type, so that an export can restore it. The
//! value uses the notation of Arrow's documentation: `date32`, `date64`, `time32[s]`, `time64[us]`,
//! `duration[ms]`, `timestamp[ns]`, `timestamp[us, Europe/Zurich]`, `fixed_size_binary[16]`,
//! `decimal128[10, 2]`, `month_interval`, `null`.
//!
//! The metadata is only a claim. [`ArrowType::fits`] checks whether the elements can have the type.

use crate::{ColumnSchema, DType, Extent, Metadata};
use std::fmt;

/// The metadata key of the type.
pub(crate) const KEY: &str = "arrow.type";

/// The extension type of tensors that all have the same shape.
#[cfg(feature = "arrow")]
pub(crate) const FIXED_SHAPE_TENSOR: &str = "arrow.fixed_shape_tensor";
/// The extension type of tensors that differ in shape.
#[cfg(feature = "arrow")]
pub(crate) const VARIABLE_SHAPE_TENSOR: &str = "arrow.variable_shape_tensor";

/// The metadata key of the names of dimensions. The value is a JSON array of strings.
#[cfg(feature = "arrow")]
pub(crate) const DIM_NAMES: &str = "arrow.dim_names";
/// The metadata key of the type that the values of a cast column had in the source.
#[cfg(feature = "import")]
pub(crate) const CAST_TYPE: &str = "import.cast";
/// The metadata key of the shape that an import inferred.
#[cfg(feature = "import")]
pub(crate) const INFERRED_SHAPE: &str = "import.shape";

/// Returns whether a field has one of the two extension types of tensors.
#[cfg(feature = "arrow")]
pub(crate) fn is_tensor(field: &arrow_schema::Field) -> bool {
    matches!(field.extension_type_name(), Some(FIXED_SHAPE_TENSOR | VARIABLE_SHAPE_TENSOR))
}

/// Returns the approximate size, in bytes, of one null value of a type.
#[cfg(feature = "arrow")]
pub(crate) fn null_bytes(data_type: &arrow_schema::DataType) -> usize {
    use arrow_schema::DataType;
    /// The size of offsets and bitmaps in bytes.
    const OTHER_BYTES: usize = 16;
    match data_type {
        DataType::Struct(fields) => {
            fields.iter().fold(OTHER_BYTES, |bytes, field| bytes.saturating_add(null_bytes(field.data_type())))
        }
        DataType::FixedSizeList(item, length) => {
            usize::try_from(*length).unwrap_or(0).saturating_mul(null_bytes(item.data_type()))
        }
        DataType::FixedSizeBinary(bytes) => usize::try_from(*bytes).unwrap_or(0),
        other => other.primitive_width().unwrap_or(OTHER_BYTES),
    }
}

/// Returns the field of the members of a list or map type; `None` for other types.
#[cfg(feature = "arrow")]
pub(crate) fn members(data_type: &arrow_schema::DataType) -> Option<&arrow_schema::FieldRef> {
    use arrow_schema::DataType;
    match data_type {
        DataType::List(item) | DataType::LargeList(item) => Some(item),
        DataType::ListView(item) | DataType::LargeListView(item) => Some(item),
        DataType::FixedSizeList(item, _) | DataType::Map(item, _) => Some(item),
        _ => None,
    }
}

/// Returns a list or map type after replacing its members; `None` for other types.
#[cfg(feature = "arrow")]
pub(crate) fn with_members(
    data_type: &arrow_schema::DataType,
    mut members: impl FnMut(&arrow_schema::FieldRef) -> arrow_schema::FieldRef,
) -> Option<arrow_schema::DataType> {
    use arrow_schema::DataType;
    Some(match data_type {
        DataType::List(item) => DataType::List(members(item)),
        DataType::LargeList(item) => DataType::LargeList(members(item)),
        DataType::ListView(item) => DataType::ListView(members(item)),
        DataType::LargeListView(item) => DataType::LargeListView(members(item)),
        DataType::FixedSizeList(item, length) => DataType::FixedSizeList(members(item), *length),
        DataType::Map(entries, sorted) => DataType::Map(members(entries), *sorted),
        _ => return None,
    })
}

/// An Arrow type that must be recorded. Its `Display` is the text in the metadata.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ArrowType {
    Date32,
    Date64,
    Time32(TimeUnit),
    Time64(TimeUnit),
    Duration(TimeUnit),
    Timestamp(TimeUnit, Option<String>),
    FixedSizeBinary(i32),
    /// A decimal: its width in bits, its precision and its scale.
    Decimal(u16, u8, i8),
    MonthInterval,
    DayTimeInterval,
    MonthDayNanoInterval,
    Null,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimeUnit {
    Second,
    Millisecond,
    Microsecond,
    Nanosecond,
}

impl ArrowType {
    /// Returns the type that the metadata names, if any.
    pub(crate) fn of(metadata: &Metadata) -> Option<Self> {
        Self::from_text(metadata.get(KEY)?)
    }

    /// Parses the text that `Display` writes.
    pub(crate) fn from_text(text: &str) -> Option<Self> {
        match text {
            "date32" => return Some(Self::Date32),
            "date64" => return Some(Self::Date64),
            "month_interval" => return Some(Self::MonthInterval),
            "day_time_interval" => return Some(Self::DayTimeInterval),
            "month_day_nano_interval" => return Some(Self::MonthDayNanoInterval),
            "null" => return Some(Self::Null),
            _ => {}
        }
        let (name, argument) = text.strip_suffix(']')?.split_once('[')?;
        match name {
            "time32" => Some(Self::Time32(unit(argument)?)),
            "time64" => Some(Self::Time64(unit(argument)?)),
            "duration" => Some(Self::Duration(unit(argument)?)),
            "timestamp" => Some(match argument.split_once(", ") {
                Some((argument, zone)) => Self::Timestamp(unit(argument)?, Some(zone.to_owned())),
                None => Self::Timestamp(unit(argument)?, None),
            }),
            "fixed_size_binary" => argument.parse().ok().map(Self::FixedSizeBinary),
            "decimal32" => decimal(32, argument),
            "decimal64" => decimal(64, argument),
            "decimal128" => decimal(128, argument),
            "decimal256" => decimal(256, argument),
            _ => None,
        }
    }

    /// Returns the stored form of an element of a decimal or interval. Returns `None` for other
    /// types, and for a precision that a decimal of this width cannot have.
    ///
    /// The form of a decimal depends on its precision, not on its width.
    pub(crate) fn stored_element(&self) -> Option<StoredElement> {
        let (precision, max_precision) = match self {
            Self::Decimal(32, precision, _) => (*precision, 9),
            Self::Decimal(64, precision, _) => (*precision, 18),
            Self::Decimal(128, precision, _) => (*precision, 38),
            Self::Decimal(_, precision, _) => (*precision, 76),
            Self::MonthInterval => return Some(StoredElement::one(DType::I32)),
            Self::DayTimeInterval => return Some(StoredElement::several(DType::I32, 2)),
            Self::MonthDayNanoInterval => return Some(StoredElement::several(DType::I64, 3)),
            _ => return None,
        };
        let form = match precision {
            1..=9 => StoredElement::one(DType::I32),
            10..=18 => StoredElement::one(DType::I64),
            19..=38 => StoredElement::several(DType::U8, 16),
            39..=76 => StoredElement::several(DType::U8, 32),
            _ => return None,
        };
        (precision <= max_precision).then_some(form)
    }

    /// Returns whether the elements of the column have the form in which an import stores this
    /// type.
    pub(crate) fn fits(&self, column: &ColumnSchema) -> bool {
        use TimeUnit::{Microsecond, Millisecond, Nanosecond, Second};
        if let Some(stored) = self.stored_element() {
            let innermost = column.shape.extents().last();
            let has_extent = stored.extent.is_none_or(|extent| innermost == Some(&Extent::Fixed(extent)));
            return column.dtype == stored.dtype && has_extent;
        }
        match self {
            Self::Date32 | Self::Time32(Second | Millisecond) => matches!(column.dtype, DType::I32 | DType::I64),
            Self::Date64 | Self::Duration(_) | Self::Timestamp(..) => column.dtype == DType::I64,
            Self::Time64(Microsecond | Nanosecond) => column.dtype == DType::I64,
            Self::FixedSizeBinary(_) => column.dtype == DType::Bytes,
            Self::Null => column.dtype == DType::Bool,
            _ => false, // a unit or a decimal precision that the width does not allow
        }
    }
}

/// The stored form of an element of a decimal or interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StoredElement {
    pub dtype: DType,
    /// The number of stored values per element, which is the extent of an additional innermost
    /// dimension; `None` for a single value, which needs no dimension.
    pub extent: Option<u32>,
}

impl StoredElement {
    pub(crate) fn one(dtype: DType) -> Self {
        Self { dtype, extent: None }
    }

    fn several(dtype: DType, extent: u32) -> Self {
        Self { dtype, extent: Some(extent) }
    }
}

fn decimal(bits: u16, argument: &str) -> Option<ArrowType> {
    let (precision, scale) = argument.split_once(", ")?;
    Some(ArrowType::Decimal(bits, precision.parse().ok()?, scale.parse().ok()?))
}

impl fmt::Display for ArrowType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Date32 => f.write_str("date32"),
            Self::Date64 => f.write_str("date64"),
            Self::Time32(unit) => write!(f, "time32[{unit}]"),
            Self::Time64(unit) => write!(f, "time64[{unit}]"),
            Self::Duration(unit) => write!(f, "duration[{unit}]"),
            Self::Timestamp(unit, None) => write!(f, "timestamp[{unit}]"),
            Self::Timestamp(unit, Some(zone)) => write!(f, "timestamp[{unit}, {zone}]"),
            Self::FixedSizeBinary(bytes) => write!(f, "fixed_size_binary[{bytes}]"),
            Self::Decimal(bits, precision, scale) => write!(f, "decimal{bits}[{precision}, {scale}]"),
            Self::MonthInterval => f.write_str("month_interval"),
            Self::DayTimeInterval => f.write_str("day_time_interval"),
            Self::MonthDayNanoInterval => f.write_str("month_day_nano_interval"),
            Self::Null => f.write_str("null"),
        }
    }
}

#[cfg(feature = "import")]
impl TimeUnit {
    /// Returns the number of nanoseconds in the unit.
    pub(crate) fn nanoseconds(self) -> i128 {
        match self {
            Self::Second => 1_000_000_000,
            Self::Millisecond => 1_000_000,
            Self::Microsecond => 1_000,
            Self::Nanosecond => 1,
        }
    }
}

impl fmt::Display for TimeUnit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Second => "s",
            Self::Millisecond => "ms",
            Self::Microsecond => "us",
            Self::Nanosecond => "ns",
        })
    }
}

fn unit(name: &str) -> Option<TimeUnit> {
    Some(match name {
        "s" => TimeUnit::Second,
        "ms" => TimeUnit::Millisecond,
        "us" => TimeUnit::Microsecond,
        "ns" => TimeUnit::Nanosecond,
        _ => return None,
    })
}

#[cfg(feature = "arrow")]
pub(crate) use arrow::{DTYPE, in_arrow, stored_element};

#[cfg(feature = "arrow")]
mod arrow {
    //! Conversions from and to the types of Arrow's Rust library.

    use super::{ArrowType, StoredElement, TimeUnit};
    use crate::{ColumnSchema, DType, Result};
    use arrow_schema::{DataType, IntervalUnit};
    use std::borrow::Cow;

    /// The metadata key of a field whose elements have the bits of a tensilo type that Arrow lacks.
    /// The value is the name of that type. It marks bf16 in `UInt16`, small numbers in `UInt8`, and
    /// complex numbers in `Float32`. In the last case, the innermost dimension has extent 2 and
    /// holds one complex number.
    pub(crate) const DTYPE: &str = "tensilo.dtype";

    /// Returns the column with a type that Arrow supports and whose elements have the same bytes.
    /// If this changes the type, [`DTYPE`] in the metadata names the original type. Fails for a
    /// type that this release does not know.
    pub(crate) fn in_arrow(column: &ColumnSchema) -> Result<Cow<'_, ColumnSchema>> {
        column.check_known()?;
        let (dtype, shape) = match column.dtype {
            small if small.is_small() => (DType::U8, column.shape.clone()),
            DType::Complex64 => (DType::F32, column.shape.clone().with_inner(2)),
            _ => return Ok(Cow::Borrowed(column)),
        };
        let mut plain = ColumnSchema { dtype, shape, ..column.clone() };
        plain.metadata.insert(DTYPE.to_owned(), column.dtype.name().to_owned());
        Ok(Cow::Owned(plain))
    }

    /// Returns the stored form of an element of a decimal or interval. Returns `None` for other
    /// types, and for a precision that a decimal of this width cannot have.
    pub(crate) fn stored_element(data_type: &DataType) -> Option<StoredElement> {
        ArrowType::from_arrow(data_type)?.stored_element()
    }

    impl ArrowType {
        /// Returns the type to record for an Arrow type; `None` if the stored type implies it.
        pub(crate) fn from_arrow(data_type: &DataType) -> Option<Self> {
            Some(match data_type {
                DataType::Date32 => Self::Date32,
                DataType::Date64 => Self::Date64,
                DataType::Time32(unit) => Self::Time32((*unit).into()),
                DataType::Time64(unit) => Self::Time64((*unit).into()),
                DataType::Duration(unit) => Self::Duration((*unit).into()),
                DataType::Timestamp(unit, zone) => {
                    Self::Timestamp((*unit).into(), zone.as_ref().map(|zone| zone.to_string()))
                }
                DataType::FixedSizeBinary(bytes) => Self::FixedSizeBinary(*bytes),
                DataType::Decimal32(precision, scale) => Self::Decimal(32, *precision, *scale),
                DataType::Decimal64(precision, scale) => Self::Decimal(64, *precision, *scale),
                DataType::Decimal128(precision, scale) => Self::Decimal(128, *precision, *scale),
                DataType::Decimal256(precision, scale) => Self::Decimal(256, *precision, *scale),
                DataType::Interval(IntervalUnit::YearMonth) => Self::MonthInterval,
                DataType::Interval(IntervalUnit::DayTime) => Self::DayTimeInterval,
                DataType::Interval(IntervalUnit::MonthDayNano) => Self::MonthDayNanoInterval,
                DataType::Null => Self::Null,
                _ => return None,
            })
        }

        pub(crate) fn to_arrow(&self) -> DataType {
            match self {
                Self::Date32 => DataType::Date32,
                Self::Date64 => DataType::Date64,
                Self::Time32(unit) => DataType::Time32((*unit).into()),
                Self::Time64(unit) => DataType::Time64((*unit).into()),
                Self::Duration(unit) => DataType::Duration((*unit).into()),
                Self::Timestamp(unit, zone) => {
                    DataType::Timestamp((*unit).into(), zone.as_ref().map(|zone| zone.as_str().into()))
                }
                Self::FixedSizeBinary(bytes) => DataType::FixedSizeBinary(*bytes),
                Self::Decimal(32, precision, scale) => DataType::Decimal32(*precision, *scale),
                Self::Decimal(64, precision, scale) => DataType::Decimal64(*precision, *scale),
                Self::Decimal(128, precision, scale) => DataType::Decimal128(*precision, *scale),
                Self::Decimal(_, precision, scale) => DataType::Decimal256(*precision, *scale),
                Self::MonthInterval => DataType::Interval(IntervalUnit::YearMonth),
                Self::DayTimeInterval => DataType::Interval(IntervalUnit::DayTime),
                Self::MonthDayNanoInterval => DataType::Interval(IntervalUnit::MonthDayNano),
                Self::Null => DataType::Null,
            }
        }
    }

    impl From<arrow_schema::TimeUnit> for TimeUnit {
        fn from(unit: arrow_schema::TimeUnit) -> Self {
            match unit {
                arrow_schema::TimeUnit::Second => Self::Second,
                arrow_schema::TimeUnit::Millisecond => Self::Millisecond,
                arrow_schema::TimeUnit::Microsecond => Self::Microsecond,
                arrow_schema::TimeUnit::Nanosecond => Self::Nanosecond,
            }
        }
    }

    impl From<TimeUnit> for arrow_schema::TimeUnit {
        fn from(unit: TimeUnit) -> Self {
            match unit {
                TimeUnit::Second => Self::Second,
                TimeUnit::Millisecond => Self::Millisecond,
                TimeUnit::Microsecond => Self::Microsecond,
                TimeUnit::Nanosecond => Self::Nanosecond,
            }
        }
    }
}
