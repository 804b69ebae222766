//! The structures of the file, one module for each chapter of `format-spec/SPEC.md`: bytes to structs and
//! back, without I/O and without codecs.

pub(crate) mod chunk;
pub(crate) mod content;
pub(crate) mod content_id;
pub(crate) mod footer;
pub(crate) mod header;
pub(crate) mod index;
pub(crate) mod region;
pub(crate) mod schema;
pub(crate) mod schema_block;
#[cfg(test)]
mod tests;

pub use content_id::ContentId;
pub use region::{FileId, RegionKind};
pub use schema::{CastSpec, ColumnSchema, Extent, Metadata, Schema, Shape};

pub use crate::cast::CastFacts;
pub use crate::dtype::DType;

/// Writes the bytes of an id as hexadecimal digits.
fn hex(bytes: &[u8], f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
    bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
}

/// Bits of `incompat_flags` that this release knows (chapter 9).
pub(crate) const KNOWN_INCOMPAT: u32 = 0;

/// Bits of `ro_compat_flags` that this release knows (chapter 9).
pub(crate) const KNOWN_RO_COMPAT: u32 = 0;

/// The three flag words of chapter 9.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Flags {
    pub incompat: u32,
    pub ro_compat: u32,
    pub compat: u32,
}

impl Flags {
    /// Whether all bits of `other` are set.
    pub(crate) fn contains(self, other: Self) -> bool {
        let pairs = [(self.incompat, other.incompat), (self.ro_compat, other.ro_compat), (self.compat, other.compat)];
        pairs.iter().all(|(all, some)| all & some == *some)
    }

    /// refuses what this release could misread.
    pub(crate) fn check(self) -> crate::Result<()> {
        let unknown = self.incompat & !KNOWN_INCOMPAT;
        if unknown == 0 {
            return Ok(());
        }
        let message = format!(
            "the file uses features this release does not know (incompat flags {unknown:#x}); read it with a newer tensilo"
        );
        Err(crate::Error::too_new("R-9.1", message))
    }

    /// Chapter 9: refuses to append to what this release could break.
    pub(crate) fn check_writable(self) -> crate::Result<()> {
        let unknown = self.ro_compat & !KNOWN_RO_COMPAT;
        if unknown == 0 {
            return Ok(());
        }
        let message = format!(
            "the file can be read, but not appended to by this release (ro_compat flags {unknown:#x}); append with a newer tensilo"
        );
        Err(crate::Error::too_new_to_append(message))
    }

    /// All bits of both.
    pub(crate) fn union(self, other: Self) -> Self {
        Self {
            incompat: self.incompat | other.incompat,
            ro_compat: self.ro_compat | other.ro_compat,
            compat: self.compat | other.compat,
        }
    }
}
