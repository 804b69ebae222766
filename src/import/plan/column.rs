//! A column of the output file: type, shape and metadata, and how casts change them.
//!
//! A column starts as the column of the first input. The same column of other inputs is combined
//! with it, and the caller's options cast it or declare its shape. The first pass then finds facts
//! that only the data shows: extents, dimensions that must become lists, units. After that, the
//! column has a final [schema](Column::schema).

use super::value_cast::ValueCast;
use crate::format::{CastFacts, path};
use crate::import::plan::input_column::{ColumnKind, ColumnRequest, InputColumn, Level, StoredColumn, StructNulls};
use crate::logical::arrow_type::{self, ArrowType, CAST_TYPE, INFERRED_SHAPE, TimeUnit};
use crate::rewrite::UNCONFIRMED;
use crate::{CastSpec, ColumnSchema, DType, Error, Extent, Metadata, Result, Shape};

/// The value of [`UNCONFIRMED`] if it is unknown which samples are unconfirmed.
const ANY_SAMPLES: &str = "0..18446744073709551615";

/// A column of the output file.
#[derive(Clone, Debug)]
pub(in crate::import) struct Column {
    pub name: String,
    pub kind: ColumnKind,
    pub nullable: bool,
    pub metadata: Metadata,
    /// The type to which the writer rounds the values, if it differs from the type of the values.
    pub cast: Option<DType>,
    /// The cast that is applied before the values are pushed. `kind` has the type after this cast.
    pub value_cast: Option<ValueCast>,
    /// The type of the values in the source, if a cast makes the metadata obsolete.
    pub source_type: Option<String>,
    /// If the values of the source were rounded before, the cast that rounded them, and its facts.
    pub rounded: Option<(CastSpec, CastFacts)>,
    /// The shape, if the caller declared it, a tensilo file states it, or the first pass found it.
    pub shape: Option<Shape>,
    /// The outer dimensions that have become the innermost lists of `kind`.
    pub unfolded: Vec<Level>,
    /// Whether any source has the column in the unit that its metadata states. Otherwise the unit
    /// is determined from the data.
    pub has_explicit_unit: bool,
    /// Set if the column has no values, only the nulls of a struct.
    pub struct_nulls: Option<StructNulls>,
}

impl Column {
    /// Creates a column from a column of an input. Returns `None` if it cannot be stored.
    pub(in crate::import) fn of(column: &InputColumn) -> Option<Self> {
        let kind = column.kind.as_ref().ok()?.clone();
        let (shape, rounded) = match &column.stored {
            Some(StoredColumn { shape, cast }) => (Some(shape.clone()), *cast),
            None => (None, None),
        };
        Some(Self {
            name: column.name.clone(),
            has_explicit_unit: !kind.instants,
            kind,
            nullable: column.nullable,
            metadata: column.metadata.clone(),
            cast: None,
            value_cast: None,
            source_type: None,
            rounded,
            shape,
            unfolded: Vec::new(),
            struct_nulls: column.struct_nulls,
        })
    }

    /// Turns the outermost dimensions into lists.
    pub(in crate::import) fn unfold(&mut self, dimensions: usize) {
        self.unfolded.extend(self.kind.unfold(dimensions));
        if let Some(path) = self.metadata.get_mut(path::KEY) {
            path.push_str(&"[]".repeat(dimensions)); // `dimensions` is at most 16
        }
        if self.struct_nulls.is_none() && self.kind.is_like_struct_nulls() {
            self.metadata.remove(path::KEY); // with a path, it would be mistaken for struct nulls
        }
    }

    /// Returns the request for the column in a pass. `position` is its position in the source.
    pub(in crate::import) fn request(&self, position: usize) -> ColumnRequest {
        ColumnRequest { position, unfolded: self.unfolded.len(), unit: self.unit() }
    }

    /// Returns the unit and the time zone that the metadata states for timestamps.
    pub(in crate::import) fn timestamp(&self) -> Option<(TimeUnit, Option<String>)> {
        match ArrowType::of(&self.metadata)? {
            ArrowType::Timestamp(unit, zone) => Some((unit, zone)),
            _ => None,
        }
    }

    /// Returns the unit in which timestamps are stored, or `None` if their type states the unit.
    pub(in crate::import) fn unit(&self) -> Option<TimeUnit> {
        self.timestamp().map(|(unit, _)| unit).filter(|_| self.kind.instants)
    }

    /// Combines the column with the same column of another source, for which [`describe`] returns
    /// the same string.
    pub(super) fn join(&mut self, other: &Self) {
        self.nullable |= other.nullable;
        self.has_explicit_unit |= other.has_explicit_unit;
        self.kind.instants |= other.kind.instants;
        for (nullable, other) in self.kind.nullable_members.iter_mut().zip(&other.kind.nullable_members) {
            *nullable |= other;
        }
        for (level, other) in self.kind.lists.iter_mut().zip(&other.kind.lists) {
            level.nullable |= other.nullable;
        }
        self.metadata.remove(INFERRED_SHAPE); // it describes the samples of one source
        if self.path() != other.path() {
            self.metadata.remove(path::KEY); // it is a field of a struct in only one source
        }
        if let (Some(nulls), Some(other)) = (&mut self.struct_nulls, other.struct_nulls) {
            nulls.may_be_null |= other.may_be_null;
            nulls.is_written |= other.is_written;
        }
        if let (Some((_, facts)), Some((_, more))) = (&mut self.rounded, &other.rounded) {
            *facts = facts.merged(more);
        }
        if other.metadata.contains_key(UNCONFIRMED) {
            // the samples of the other source are renumbered
            self.metadata.insert(UNCONFIRMED.to_owned(), ANY_SAMPLES.to_owned());
        }
    }

    /// Marks all samples as unconfirmed if any are, because the conversion renumbers samples.
    pub(in crate::import) fn renumber(&mut self) {
        self.metadata.get_mut(UNCONFIRMED).into_iter().for_each(|ranges| ANY_SAMPLES.clone_into(ranges));
    }

    /// Returns the path, if the column is a field of a struct or holds the nulls of a struct.
    pub(in crate::import) fn path(&self) -> Option<&str> {
        self.metadata.get(path::KEY).map(String::as_str)
    }

    /// Returns whether the column holds the nulls of a struct with fields. Such a column is written
    /// only together with these fields.
    pub(super) fn follows_fields(&self) -> bool {
        self.struct_nulls.is_some_and(|nulls| nulls.has_fields)
    }

    /// Returns whether samples must be examined to decide whether the column is written.
    pub(in crate::import) fn may_be_written(&self) -> bool {
        self.struct_nulls.is_some_and(|nulls| nulls.may_be_null && !nulls.is_written)
    }

    /// Sets the shape. Empty lists of bools in a struct get a varying shape: with extent 0, the
    /// column would be mistaken for the nulls of a struct.
    pub(in crate::import) fn set_shape(&mut self, shape: Shape) {
        let is_like_struct = self.kind.dtype == DType::Bool && shape.extents() == [Extent::Fixed(0)];
        let is_field = self.struct_nulls.is_none() && self.path().is_some();
        self.shape = Some(if is_like_struct && is_field { Shape::ragged() } else { shape });
    }

    /// Returns the shape. Unknown extents vary.
    pub(in crate::import) fn shape(&self) -> Shape {
        match &self.shape {
            Some(shape) => shape.clone(),
            None if self.kind.dtype.is_string() => Shape::ragged(),
            None => self.kind.shape_with(std::iter::empty()),
        }
    }

    /// Returns the schema of the column.
    pub(in crate::import) fn schema(&self) -> ColumnSchema {
        let tensor = |dtype| ColumnSchema::tensor(&self.name, dtype, self.shape());
        let schema = match (self.cast, self.rounded) {
            (Some(target), _) => tensor(target).cast_from(self.kind.dtype),
            (None, Some((spec, _))) => ColumnSchema { cast: Some(spec), ..tensor(self.kind.dtype) },
            (None, None) => {
                let cast = self.value_cast.as_ref().and_then(ValueCast::spec);
                ColumnSchema { cast, ..tensor(self.kind.dtype) }
            }
        };
        let levels = self.kind.lists.clone();
        ColumnSchema { nullable: self.nullable, levels, metadata: self.stored_metadata(), ..schema }
    }

    /// Returns the metadata for the file. If the values are cast, their original type moves to
    /// [`CAST_TYPE`].
    pub(in crate::import) fn stored_metadata(&self) -> Metadata {
        let mut metadata = self.metadata.clone();
        if let Some(source) = &self.source_type {
            // the unit of instants may have been found after the cast was planned
            let found = metadata.remove(arrow_type::KEY).filter(|_| self.kind.instants);
            metadata.insert(CAST_TYPE.to_owned(), found.unwrap_or_else(|| source.clone()));
        }
        metadata
    }

    /// Casts the values to another numeric type. Dates, times, timestamps, durations and intervals
    /// are cast from the numbers that are stored for them.
    pub(in crate::import) fn cast_to(&mut self, target: DType) -> Result<()> {
        let source = self.kind.dtype;
        if !target.is_number() {
            return Err(Error::bad_argument(format!(
                "cannot cast to {target}: the target must be a numeric type such as f32"
            )));
        }
        if !source.is_number() {
            return Err(Error::bad_argument(format!("cannot cast {source} values: only numbers can be cast")));
        }
        (self.cast, self.value_cast) = (None, None);
        let source_type = self.metadata.get(arrow_type::KEY).cloned();
        if let Some((scale, extent)) = self.decimals() {
            self.value_cast = Some(ValueCast { source, scale: Some(scale), extent, target });
            if extent > 1 {
                self.drop_innermost();
            }
            self.kind.dtype = target;
        } else if source != target && target.is_float() {
            self.cast = Some(target);
        } else if source != target {
            self.value_cast = Some(ValueCast { source, scale: None, extent: 1, target });
            self.kind.dtype = target;
        }
        let changed = self.value_cast.map(|_| source.name().to_owned());
        self.source_type = source_type.or(changed);
        Ok(())
    }

    /// Returns the scale of decimals and the number of stored elements per decimal, or `None` if
    /// the values are not decimals.
    fn decimals(&self) -> Option<(i8, usize)> {
        let source_type = ArrowType::of(&self.metadata)?;
        let ArrowType::Decimal(_, _, scale) = source_type else { return None };
        let stored = source_type.stored_element().filter(|stored| stored.dtype == self.kind.dtype)?;
        match stored.extent {
            None => Some((scale, 1)),
            Some(extent) if self.kind.levels.last() == Some(&Level::Fixed(vec![extent])) => {
                Some((scale, usize::try_from(extent).ok()?))
            }
            Some(_) => None,
        }
    }

    /// Drops the dimension that holds the bytes of a decimal.
    fn drop_innermost(&mut self) {
        self.kind.levels.pop();
        self.kind.element_extent = None;
        if let Some(shape) = &mut self.shape {
            let outer = shape.extents().split_last().map_or(&[][..], |(_, outer)| outer);
            *shape = Shape::new(outer.iter().copied());
        }
    }

    /// Applies the cast of a file's column that has this metadata. Does nothing unless that column
    /// had the same type before its cast, or both types are decimals.
    pub(in crate::import) fn cast_like(&mut self, metadata: &Metadata, target: DType) {
        let Some(text) = metadata.get(CAST_TYPE) else { return };
        if self.kind.instants && is_same_zone(ArrowType::of(&self.metadata), ArrowType::from_text(text)) {
            self.metadata.insert(arrow_type::KEY.to_owned(), text.clone());
        }
        let own = self.metadata.get(arrow_type::KEY).map_or(self.kind.dtype.name(), String::as_str);
        let is_decimal = |text: &str| matches!(ArrowType::from_text(text), Some(ArrowType::Decimal(..)));
        if own == text || (is_decimal(own) && is_decimal(text)) {
            // an impossible cast is reported later, as a difference of types
            let _ = self.cast_to(target);
        }
    }
}

/// Describes the properties of a column's type that must be equal in all sources.
pub(in crate::import) fn describe(column: &Column) -> String {
    let kind = &column.kind;
    let levels: Vec<String> = kind.levels.iter().map(ToString::to_string).collect();
    let arrow = column.metadata.get(arrow_type::KEY).map(|text| format!(" ({text})"));
    let variable = if kind.variable_tensor { " variable-shape tensor" } else { "" };
    let rounded = column.rounded.map(|(spec, _)| format!(" (rounded from {})", spec.source));
    let (arrow, rounded) = (arrow.unwrap_or_default(), rounded.unwrap_or_default());
    let item = format!("{}{}{variable}{arrow}{rounded}", kind.dtype, levels.concat());
    kind.lists.iter().fold(item, |members, _| format!("list<{members}>"))
}

/// Converts nanoseconds to a unit. Returns `None` if that is not exact.
pub(in crate::import) fn in_unit(nanoseconds: i128, unit: TimeUnit) -> Option<i64> {
    let each = unit.nanoseconds();
    let is_whole = nanoseconds % each == 0;
    i64::try_from(nanoseconds / each).ok().filter(|_| is_whole)
}

/// Returns whether both are timestamps with the same time zone, regardless of their units.
fn is_same_zone(a: Option<ArrowType>, b: Option<ArrowType>) -> bool {
    match (a, b) {
        (Some(ArrowType::Timestamp(_, a)), Some(ArrowType::Timestamp(_, b))) => a == b,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_exact_or_none() {
        assert_eq!(in_unit(1, TimeUnit::Nanosecond), Some(1));
        assert_eq!(in_unit(-86_400_000_000_000, TimeUnit::Second), Some(-86_400));
        assert_eq!(in_unit(1, TimeUnit::Microsecond), None);
        assert_eq!(in_unit(-1_000, TimeUnit::Microsecond), Some(-1));
        assert_eq!(in_unit(i64::MAX.into(), TimeUnit::Nanosecond), Some(i64::MAX));
        assert_eq!(in_unit(i128::from(i64::MAX) + 1, TimeUnit::Nanosecond), None);
        assert_eq!(in_unit(i128::MIN / 2, TimeUnit::Nanosecond), None);
    }
}
