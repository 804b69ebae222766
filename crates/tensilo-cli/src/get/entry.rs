//! One sample of a column, of any kind.

use crate::failure::{Failure, Outcome};
use tensilo::Sample;
use tensilo::nested::List;

/// A sample of a column, or a member of a list.
#[derive(Clone)]
pub(super) enum SampleEntry<'a> {
    /// Null, because the files of a dataset do not have the column.
    Absent,
    Item(Sample<'a>),
    List(List<'a>),
}

impl SampleEntry<'_> {
    pub(super) fn is_null(&self) -> bool {
        match self {
            Self::Absent => true,
            Self::Item(sample) => sample.is_null(),
            Self::List(list) => list.is_null(),
        }
    }

    /// Returns the number of members of a list.
    pub(super) fn list_len(&self) -> usize {
        if let Self::List(list) = self { list.len() } else { 0 }
    }

    /// Returns member `k` of a list.
    pub(super) fn member(&self, k: usize) -> Outcome<Self> {
        match self {
            Self::List(list) if list.has_lists() => Ok(Self::List(list.list(k)?)),
            Self::List(list) => Ok(Self::Item(list.item(k)?)),
            Self::Item(_) | Self::Absent => {
                Err(Failure::Usage("a struct in lists has a field that is in none".to_owned()))
            }
        }
    }
}
