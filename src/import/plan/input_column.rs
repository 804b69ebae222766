//! A column of an input, as the schema of the input describes it.
//!
//! A schema does not always state everything: the extent of a [`Level::Open`] is known only from
//! the samples, and `instants` are timestamps without a unit. The plan decides how such columns are
//! stored, and passes its decisions to the source in a [`ColumnRequest`].

use crate::format::{CastFacts, ListLevel, path};
#[cfg(feature = "arrow")]
use crate::limits;
#[cfg(feature = "arrow")]
use crate::logical::arrow_type::StoredElement;
use crate::logical::arrow_type::TimeUnit;
use crate::{CastSpec, DType, Extent, Metadata, Shape};
use std::fmt;
use std::iter;

/// An extent that an item does not determine, because the item is null or one of its outer
/// dimensions is empty.
pub(in crate::import) const UNKNOWN: u32 = u32::MAX;

/// A column of an input.
#[derive(Clone, Debug)]
pub(in crate::import) struct InputColumn {
    /// The names of the enclosing structs and of the column itself, separated by dots.
    pub name: String,
    /// The kind, or the reason why the column cannot be stored.
    pub kind: Result<ColumnKind, String>,
    pub nullable: bool,
    pub metadata: Metadata,
    /// The shape and the cast in the file, if the input is a tensilo file.
    pub stored: Option<StoredColumn>,
    /// Set if the column has no values, only the nulls of a struct.
    pub struct_nulls: Option<StructNulls>,
}

impl InputColumn {
    /// Returns the path, if the column is a field of a struct or holds the nulls of a struct.
    pub(in crate::import) fn path(&self) -> Option<&str> {
        self.metadata.get(path::KEY).map(String::as_str)
    }

    /// Returns whether the column holds the nulls of a struct with fields. Such a column is written
    /// only together with these fields.
    pub(in crate::import) fn follows_fields(&self) -> bool {
        self.struct_nulls.is_some_and(|nulls| nulls.has_fields)
    }
}

/// A column that a pass reads, with the decisions of the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::import) struct ColumnRequest {
    /// The position in the source.
    pub position: usize,
    /// The number of outer dimensions that become lists.
    pub unfolded: usize,
    /// The unit to which timestamps are converted, if the source does not state their unit.
    pub unit: Option<TimeUnit>,
}

/// The struct whose nulls a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::import) struct StructNulls {
    /// Whether the struct has fields. If not, this column is the only trace of the struct.
    pub has_fields: bool,
    /// Whether the struct itself may be null, rather than only an enclosing struct.
    pub may_be_null: bool,
    /// Whether the column is written: a null struct was found, or a tensilo file has the column.
    pub is_written: bool,
}

impl StructNulls {
    /// Describes a struct of an input that does not store its nulls as a column.
    #[cfg(feature = "arrow")]
    pub(in crate::import) fn new(has_fields: bool, may_be_null: bool) -> Self {
        Self { has_fields, may_be_null, is_written: !has_fields }
    }
}

/// A column of a tensilo file.
#[derive(Clone, Debug)]
pub(in crate::import) struct StoredColumn {
    pub shape: Shape,
    /// The cast that rounded the values when they were first stored, and its facts.
    pub cast: Option<(CastSpec, CastFacts)>,
}

/// The form in which the samples of a column are stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::import) struct ColumnKind {
    /// The type of the values that are pushed.
    pub dtype: DType,
    /// Levels of lists that are not dimensions of a tensor, outermost first. If there are any, the
    /// column is nested.
    pub lists: Vec<ListLevel>,
    /// Levels of lists around the elements, outermost first. If an element is stored as several
    /// values, their dimension comes last.
    pub levels: Vec<Level>,
    /// For each level of lists, outermost first, whether the type allows null members. The members
    /// of the innermost level are elements; the members of any other level are lists. Levels beyond
    /// the end are unknown.
    pub nullable_members: Vec<bool>,
    /// The number of stored values per element of the input, such as 16 bytes for a decimal, if
    /// they form an additional, innermost dimension.
    pub element_extent: Option<u32>,
    /// Whether a sample is a struct of elements and a shape.
    pub variable_tensor: bool,
    /// Whether the elements are timestamps whose unit depends on all values of the column.
    pub instants: bool,
}

/// One level of lists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::import) enum Level {
    /// A dimension whose extent is known only from the samples.
    Open,
    /// Dimensions that the type states: one for a fixed-size list, several for a tensor, none for
    /// the two parts of a complex number.
    Fixed(Vec<u32>),
}

impl Level {
    fn ndim(&self) -> usize {
        match self {
            Self::Open => 1,
            Self::Fixed(extents) => extents.len(),
        }
    }
}

impl ColumnKind {
    /// Returns the kind of scalars or strings.
    pub(in crate::import) fn scalar(dtype: DType) -> Self {
        Self {
            dtype,
            lists: Vec::new(),
            levels: Vec::new(),
            nullable_members: Vec::new(),
            element_extent: None,
            variable_tensor: false,
            instants: false,
        }
    }

    /// Returns the kind of tensors with these elements and levels of lists.
    #[cfg(feature = "arrow")]
    pub(in crate::import) fn tensors(element: StoredElement, mut levels: Vec<Level>) -> Result<Self, String> {
        levels.extend(element.extent.map(|extent| Level::Fixed(vec![extent])));
        let kind = Self { levels, element_extent: element.extent, ..Self::scalar(element.dtype) };
        if kind.ndim() > limits::DIMENSIONS {
            return Err(format!("{} dimensions, but the format allows {}", kind.ndim(), limits::DIMENSIONS));
        }
        Ok(kind)
    }

    /// Turns pairs of f32 in an innermost dimension of two into complex numbers. Other kinds stay
    /// unchanged.
    #[cfg(feature = "arrow")]
    pub(in crate::import) fn into_complex(mut self) -> Self {
        if let (DType::F32, Some(Level::Fixed(extents))) = (self.dtype, self.levels.last_mut())
            && extents.pop_if(|extent| *extent == 2).is_some()
        {
            self.dtype = DType::Complex64;
        }
        self
    }

    /// Returns the kind with pairs of f32 instead of complex numbers: the inverse of
    /// [`ColumnKind::into_complex`].
    #[cfg(feature = "arrow")]
    pub(in crate::import) fn as_pairs(&self) -> Self {
        let mut kind = Self { dtype: DType::F32, ..self.clone() };
        if let Some(Level::Fixed(extents)) = kind.levels.last_mut() {
            extents.push(2);
        }
        kind
    }

    /// Returns the levels that are lists in the input.
    pub(in crate::import) fn list_levels(&self) -> &[Level] {
        let own = usize::from(self.element_extent.is_some());
        self.levels.get(..self.levels.len().saturating_sub(own)).unwrap_or(&[])
    }

    /// Returns the kind of a column that holds the nulls of a struct. Such a column has no
    /// elements.
    pub(in crate::import) fn struct_nulls(lists: Vec<ListLevel>) -> Self {
        Self { lists, levels: vec![Level::Fixed(vec![0])], ..Self::scalar(DType::Bool) }
    }

    /// Returns whether a column of this kind looks like the nulls of a struct.
    pub(in crate::import) fn is_like_struct_nulls(&self) -> bool {
        self.dtype == DType::Bool && self.levels == [Level::Fixed(vec![0])]
    }

    /// Returns the number of dimensions.
    pub(in crate::import) fn ndim(&self) -> usize {
        self.levels.iter().map(Level::ndim).sum()
    }

    /// Returns the number of dimensions that the type leaves open.
    pub(in crate::import) fn open_count(&self) -> usize {
        open_count(&self.levels)
    }

    /// Returns whether this number of outer dimensions can become lists. Each of these dimensions
    /// must be a separate level.
    pub(in crate::import) fn can_unfold(&self, dimensions: usize) -> bool {
        let outer = self.list_levels().get(..dimensions);
        !self.variable_tensor && outer.is_some_and(|levels| levels.iter().all(|level| level.ndim() == 1))
    }

    /// Turns the outermost dimensions into lists. Returns the levels of these dimensions.
    pub(in crate::import) fn unfold(&mut self, dimensions: usize) -> Vec<Level> {
        let unfolded: Vec<Level> = self.levels.drain(..dimensions.min(self.levels.len())).collect();
        let known = self.nullable_members.drain(..dimensions.min(self.nullable_members.len()));
        let nullable = known.chain(iter::repeat(true)).take(unfolded.len());
        self.lists.extend(nullable.map(|nullable| ListLevel { nullable }));
        unfolded
    }

    /// Returns the shape with these extents for the dimensions that the type leaves open. Missing
    /// extents vary.
    pub(in crate::import) fn shape_with(&self, mut open: impl Iterator<Item = Extent>) -> Shape {
        let mut extents = Vec::new();
        for level in &self.levels {
            match level {
                Level::Fixed(fixed) => extents.extend(fixed.iter().map(|&extent| Extent::Fixed(extent))),
                Level::Open => extents.push(open.next().unwrap_or(Extent::Varying)),
            }
        }
        Shape::new(extents)
    }

    /// Returns the shape of one item. [`UNKNOWN`] extents vary.
    pub(in crate::import) fn item_shape(&self, open: &[u32]) -> Shape {
        let extent = |&extent: &u32| if extent == UNKNOWN { Extent::Varying } else { Extent::Fixed(extent) };
        self.shape_with(open.iter().map(extent))
    }

    /// Returns whether the type allows nulls inside a sample.
    pub(in crate::import) fn may_have_nulls_inside(&self) -> bool {
        self.nullable_members.contains(&true)
    }
}

/// Returns the number of levels whose extents are known only from the samples.
pub(in crate::import) fn open_count(levels: &[Level]) -> usize {
    levels.iter().filter(|level| matches!(level, Level::Open)).count()
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Open => f.write_str("[*]"),
            Self::Fixed(extents) if extents.is_empty() => Ok(()),
            Self::Fixed(extents) => write!(f, "{extents:?}"),
        }
    }
}
