//! A column as an input has it, as far as its schema tells.

use crate::format::CastFacts;
use crate::{CastSpec, DType, Metadata, Shape};
use std::fmt;

/// A column of an input.
#[derive(Clone, Debug)]
pub(super) struct InputColumn {
    /// The names of the structs around it and its own, separated by dots.
    pub name: String,
    /// `Err`: why it cannot be stored.
    pub kind: Result<ColumnKind, String>,
    pub nullable: bool,
    pub metadata: Metadata,
    /// Known if the input is a tensilo file.
    pub stored: Option<StoredColumn>,
}

/// A column of a tensilo file.
#[derive(Clone, Debug)]
pub(super) struct StoredColumn {
    pub shape: Shape,
    /// How the values were rounded when they were first stored, and what that did.
    pub cast: Option<(CastSpec, CastFacts)>,
}

/// How the samples of a column are stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ColumnKind {
    /// The type that values are pushed in.
    pub dtype: DType,
    /// Levels of lists around the elements, outermost first.
    pub levels: Vec<Level>,
    /// Whether a sample is a struct of its elements and their shape.
    pub variable_tensor: bool,
    /// Whether the elements are timestamps whose unit is found by looking at all of them.
    pub instants: bool,
}

/// One level of lists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Level {
    /// A dimension whose extent the samples tell.
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

impl ColumnKind {
    /// Samples of one element, or strings.
    pub(super) fn scalar(dtype: DType) -> Self {
        Self { dtype, levels: Vec::new(), variable_tensor: false, instants: false }
    }

    /// The number of dimensions.
    pub(super) fn rank(&self) -> usize {
        self.levels.iter().map(Level::rank).sum()
    }

    /// The number of dimensions that the type leaves open.
    pub(super) fn open_count(&self) -> usize {
        self.levels.iter().filter(|level| matches!(level, Level::Open)).count()
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
