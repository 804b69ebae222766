//! Chapter 9: the flags of a file.

use super::path;
use super::schema::Schema;
use crate::{Error, Result};

/// Bit of `incompat_flags`: a column is nested.
pub(crate) const NESTED: u32 = 1;

/// Bit of `compat_flags`: columns may have paths.
const PATHS: u32 = 1;

/// Bits of `incompat_flags` that this release knows.
const KNOWN_INCOMPAT: u32 = NESTED;

/// Bits of `ro_compat_flags` that this release knows.
const KNOWN_RO_COMPAT: u32 = 0;

/// The three words of flags in a header and in a footer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Flags {
    pub incompat: u32,
    pub ro_compat: u32,
    pub compat: u32,
}

impl Flags {
    /// Returns the flags of a file with these columns.
    pub(crate) fn of(schema: &Schema) -> Self {
        let has_paths = schema.columns.iter().any(|column| column.metadata.contains_key(path::KEY));
        Self {
            incompat: if schema.is_nested() { NESTED } else { 0 },
            compat: if has_paths { PATHS } else { 0 },
            ..Self::default()
        }
    }

    /// Returns whether all bits of `other` are set.
    pub(crate) fn contains(self, other: Self) -> bool {
        let pairs = [(self.incompat, other.incompat), (self.ro_compat, other.ro_compat), (self.compat, other.compat)];
        pairs.iter().all(|(all, some)| all & some == *some)
    }

    /// Refuses flags that this release could misread.
    pub(crate) fn check(self) -> Result<()> {
        let unknown = self.incompat & !KNOWN_INCOMPAT;
        if unknown == 0 {
            return Ok(());
        }
        let message = format!(
            "the file uses features this release does not know (incompat flags {unknown:#x}); read it with a newer tensilo"
        );
        Err(Error::too_new("R-9.1", message))
    }

    /// Refuses flags that forbid this release to append.
    pub(crate) fn check_writable(self) -> Result<()> {
        let unknown = self.ro_compat & !KNOWN_RO_COMPAT;
        if unknown == 0 {
            return Ok(());
        }
        let message = format!(
            "the file can be read, but not appended to by this release (ro_compat flags {unknown:#x}); append with a newer tensilo"
        );
        Err(Error::too_new_to_append(message))
    }

    /// Returns the bits that are set in either.
    pub(crate) fn union(self, other: Self) -> Self {
        Self {
            incompat: self.incompat | other.incompat,
            ro_compat: self.ro_compat | other.ro_compat,
            compat: self.compat | other.compat,
        }
    }
}
