//! A column of the file that a conversion makes.

use super::shape::ShapeFinder;
use super::value_cast::ValueCast;
use crate::arrow_type::{CAST_TYPE, FOUND_SHAPE};
use crate::format::{CastFacts, path};
use crate::import::input_column::{ColumnKind, InputColumn, Level, StoredColumn, StructNulls};
use crate::import::unfold::ListForm;
use crate::rewrite::UNCONFIRMED;
use crate::{CastSpec, ColumnSchema, DType, Extent, Metadata, Shape, arrow_type};

/// The text of [`UNCONFIRMED`] if it is not known which samples are.
const ANY_SAMPLES: &str = "0..18446744073709551615";

/// A column of the file that a conversion makes.
#[derive(Clone, Debug)]
pub(in crate::import) struct Column {
    pub name: String,
    pub kind: ColumnKind,
    pub nullable: bool,
    pub metadata: Metadata,
    /// The type that the writer rounds its values to, unless it is their own.
    pub cast: Option<DType>,
    /// The cast of its values before they are pushed as those of `kind`.
    pub value_cast: Option<ValueCast>,
    /// The type of its values in the source, if a cast changes what their metadata state.
    pub source_type: Option<String>,
    /// The cast that rounded its values before, and the facts of it.
    pub rounded: Option<(CastSpec, CastFacts)>,
    /// Its shape, if the caller declares it, a tensilo file states it, or the first pass has found
    /// it.
    pub shape: Option<Shape>,
    /// Outer dimensions that have become lists, the innermost of `kind`.
    pub unfolded: Vec<Level>,
    /// Whether a source has the column in the unit that its metadata say. Otherwise a unit is
    /// found.
    pub unit_is_given: bool,
    /// Set if the column has no values, only the nulls of a struct.
    pub struct_nulls: Option<StructNulls>,
}

impl Column {
    /// Makes a column from that of an input. Returns `None` if it cannot be stored.
    pub(in crate::import) fn of(column: &InputColumn) -> Option<Self> {
        let kind = column.kind.as_ref().ok()?.clone();
        let (shape, rounded) = match &column.stored {
            Some(StoredColumn { shape, cast }) => (Some(shape.clone()), *cast),
            None => (None, None),
        };
        Some(Self {
            name: column.name.clone(),
            unit_is_given: !kind.instants,
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

    /// Makes lists of outer dimensions.
    pub(in crate::import) fn unfold(&mut self, dimensions: usize) {
        self.unfolded.extend(self.kind.unfold(dimensions));
        if let Some(path) = self.metadata.get_mut(path::KEY) {
            path.push_str(&"[]".repeat(dimensions)); // at most 16
        }
        if self.struct_nulls.is_none() && self.kind.is_like_struct_nulls() {
            self.metadata.remove(path::KEY); // or it would be taken for a struct
        }
    }

    /// Returns the form of its samples.
    pub(in crate::import) fn form(&self) -> ListForm<'_> {
        let list_count = self.kind.lists.len().saturating_sub(self.unfolded.len());
        let has_elements = self.kind.list_levels().is_empty();
        ListForm { list_count, unfolded: &self.unfolded, inner: &self.kind.levels, has_elements }
    }

    /// Adds the same column of another source. [`describe`] gives the same text for both.
    pub(super) fn join(&mut self, other: &Self) {
        self.nullable |= other.nullable;
        self.unit_is_given |= other.unit_is_given;
        self.kind.instants |= other.kind.instants;
        for (nullable, other) in self.kind.nullable_members.iter_mut().zip(&other.kind.nullable_members) {
            *nullable |= other;
        }
        for (level, other) in self.kind.lists.iter_mut().zip(&other.kind.lists) {
            level.nullable |= other.nullable;
        }
        self.metadata.remove(FOUND_SHAPE); // it is about the samples of one source
        if self.path() != other.path() {
            self.metadata.remove(path::KEY); // a field of a struct in one source only
        }
        if let (Some(nulls), Some(other)) = (&mut self.struct_nulls, other.struct_nulls) {
            nulls.may_be_null |= other.may_be_null;
            nulls.is_written |= other.is_written;
        }
        if let (Some((_, facts)), Some((_, more))) = (&mut self.rounded, &other.rounded) {
            *facts = facts.joined(more);
        }
        if other.metadata.contains_key(UNCONFIRMED) {
            // its samples get other numbers
            self.metadata.insert(UNCONFIRMED.to_owned(), ANY_SAMPLES.to_owned());
        }
    }

    /// Notes that any sample may be unconfirmed, if some are: they get other numbers.
    pub(in crate::import) fn renumber(&mut self) {
        self.metadata.get_mut(UNCONFIRMED).into_iter().for_each(|ranges| ANY_SAMPLES.clone_into(ranges));
    }

    /// Returns the path, if the column is in a struct or is one.
    pub(in crate::import) fn path(&self) -> Option<&str> {
        self.metadata.get(path::KEY).map(String::as_str)
    }

    /// Returns whether the column is that of a struct with fields, so that it is written only with
    /// them.
    pub(super) fn follows_fields(&self) -> bool {
        self.struct_nulls.is_some_and(|nulls| nulls.has_fields)
    }

    /// Returns whether samples must tell if the column is written.
    pub(in crate::import) fn may_be_written(&self) -> bool {
        self.struct_nulls.is_some_and(|nulls| nulls.may_be_null && !nulls.is_written)
    }

    /// Sets the shape. Empty lists of bools in a struct vary: with an extent of 0 the column would
    /// be taken for the nulls of a struct.
    pub(in crate::import) fn set_shape(&mut self, shape: Shape) {
        let is_like_struct = self.kind.dtype == DType::Bool && shape.extents() == [Extent::Fixed(0)];
        let is_field = self.struct_nulls.is_none() && self.path().is_some();
        self.shape = Some(if is_like_struct && is_field { Shape::ragged() } else { shape });
    }

    /// Returns its shape, in which unknown extents vary.
    pub(in crate::import) fn shape(&self) -> Shape {
        match &self.shape {
            Some(shape) => shape.clone(),
            None if self.kind.dtype.is_string() => Shape::ragged(),
            None => ShapeFinder::new(&self.kind).shape(&self.kind),
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

    /// Returns the metadata with the type of the values before a cast, which they do not have any
    /// more.
    pub(in crate::import) fn stored_metadata(&self) -> Metadata {
        let mut metadata = self.metadata.clone();
        if let Some(source) = &self.source_type {
            // the unit of instants may have been found after the cast was planned
            let found = metadata.remove(arrow_type::KEY).filter(|_| self.kind.instants);
            metadata.insert(CAST_TYPE.to_owned(), found.unwrap_or_else(|| source.clone()));
        }
        metadata
    }
}

/// Describes the type of a column, as far as it must be the same in all sources.
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
