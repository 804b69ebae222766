//! Columns of a group, found in its files: what a batch is read from.

use super::groups::PlacedGroup;
use std::ops::Range;
use tensilo::Column;

/// A group of samples, whose files may not be open.
pub(crate) struct FoundGroup(pub(super) PlacedGroup);

impl FoundGroup {
    pub(crate) fn samples(&self) -> &Range<u64> {
        &self.0.samples
    }
}

/// Some columns of a group of samples.
pub(crate) struct FoundColumns {
    /// The samples of the group.
    pub samples: Range<u64>,
    /// The files that have any of the columns.
    pub files: Vec<FoundFile>,
    /// The columns that no file has, so that all samples are null: places in the request.
    pub absent: Vec<usize>,
}

/// Columns of one file.
pub(crate) struct FoundFile {
    pub columns: Vec<Column>,
    /// The place of each in the request.
    pub places: Vec<usize>,
}
