//! Why the samples of a batch were not read: only damage can be substituted.

use crate::error::DataError;
use tensilo::ErrorKind;

/// The reason why samples were not read.
pub(super) enum Unread {
    /// The job cannot go on.
    Fatal(DataError),
    /// Reading a file failed that was found and opened.
    Failed(DataError),
}

impl Unread {
    /// Returns whether the bytes of a sample are damaged.
    pub(super) fn is_damage(&self) -> bool {
        matches!(self, Self::Failed(DataError::File(error)) if error.kind() == ErrorKind::Corrupt)
    }

    pub(super) fn into_error(self) -> DataError {
        match self {
            Self::Fatal(error) | Self::Failed(error) => error,
        }
    }
}
