//! Chapters 3.1 and 9: the file header, and the flags of a file.
//!
//! The file header is the first region, and its body is the schema block. It states the edition and
//! the flags, which a reader must check before it interprets anything else. The edition is checked
//! first, because every other field can have a different meaning in another edition. A file of a
//! newer edition is therefore refused as too new, even if other fields look wrong.
//!
//! Each flag is in one of three words. The word determines how an old reader handles a flag that it
//! does not support: it refuses to read (`incompat`), refuses to append (`ro_compat`), or ignores
//! the flag (`compat`).

use super::path;
use super::region::{FileId, RegionHeader, RegionKind, region_header};
use super::schema_block::Schema;
use crate::bytes::le::structure;
use crate::{Error, Result};

structure! {
    /// Chapter 3.1: the fields that only the file header has.
    mod file_header_fields: 64 bytes with region_header {
        4 => MAGIC_TAIL: [u8; 4],
        32 => INCOMPAT_FLAGS: u32,
        36 => RO_COMPAT_FLAGS: u32,
        40 => COMPAT_FLAGS: u32,
        48 => ALIGNMENT: u32,
        52 => EDITION: u32,
    }
}

const MAGIC_TAIL: [u8; 4] = [0x0D, 0x0A, 0x1A, 0x0A];

/// The edition of the format that this release reads and writes.
const EDITION: u32 = 1;

/// The facts in the file header, except for the schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub file_id: FileId,
    pub flags: Flags,
    pub alignment: u32,
}

impl Header {
    /// Returns the region header of the file header whose body is `schema_block`.
    pub(crate) fn header(&self, schema_block: &[u8]) -> Result<RegionHeader> {
        Ok(RegionHeader::new(RegionKind::FileHeader, self.file_id, 0, schema_block)?
            .with(file_header_fields::MAGIC_TAIL, MAGIC_TAIL)
            .with(file_header_fields::INCOMPAT_FLAGS, self.flags.incompat)
            .with(file_header_fields::RO_COMPAT_FLAGS, self.flags.ro_compat)
            .with(file_header_fields::COMPAT_FLAGS, self.flags.compat)
            .with(file_header_fields::ALIGNMENT, self.alignment)
            .with(file_header_fields::EDITION, EDITION))
    }

    /// Parses the region header of a file header. Checks and
    /// in this order.
    pub(crate) fn parse(header: &RegionHeader) -> Result<Self> {
        header.expect(RegionKind::FileHeader, header.file_id)?;
        check_edition(header.get(file_header_fields::EDITION)).map_err(|error| error.with_offset(0))?;
        let flags = Flags {
            incompat: header.get(file_header_fields::INCOMPAT_FLAGS),
            ro_compat: header.get(file_header_fields::RO_COMPAT_FLAGS),
            compat: header.get(file_header_fields::COMPAT_FLAGS),
        };
        flags.check()?;
        if header.get(file_header_fields::MAGIC_TAIL) != MAGIC_TAIL {
            let message = "the magic tail of the file header is wrong: a transfer in text mode has changed the file; \
                           copy it again in binary mode";
            return Err(Error::corrupt("R-3.1", message).with_offset(0));
        }
        header.check_previous(0)?;
        let alignment = header.get(file_header_fields::ALIGNMENT);
        if alignment != 64 && alignment != 4096 {
            let message = format!("the alignment is {alignment}; expected 64 or 4096");
            return Err(Error::corrupt("R-3.2", message).with_offset(0));
        }
        Ok(Self { file_id: header.file_id, flags, alignment })
    }
}

/// Fails for a file of another edition, because its other fields can have other meanings.
fn check_edition(edition: u32) -> Result<()> {
    match edition {
        EDITION => Ok(()),
        0 => Err(Error::too_old(
            "R-3.9",
            "the file was written before edition 1 of the format; convert its source again",
        )),
        newer => {
            let message = format!(
                "the file has edition {newer} of the format, but this release reads edition {EDITION}; use a newer \
                 tensilo"
            );
            Err(Error::too_new("R-3.9", message))
        }
    }
}

/// The bit of `incompat_flags` that is set if a column is nested.
const NESTED: u32 = 1;

/// The bit of `compat_flags` that is set if a column has a path.
const PATHS: u32 = 1;

/// The bits of `incompat_flags` that this release supports.
const KNOWN_INCOMPAT: u32 = NESTED;

/// The bits of `ro_compat_flags` that this release supports.
const KNOWN_RO_COMPAT: u32 = 0;

/// The three words of flags in a file header and in a footer.
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

    /// Fails if a flag is set that this release does not support, because it could misread the file
    ///
    pub(crate) fn check(self) -> Result<()> {
        let unknown = self.incompat & !KNOWN_INCOMPAT;
        if unknown == 0 {
            return Ok(());
        }
        let message = format!(
            "the file uses features that this release does not support (incompat flags {unknown:#x}); use a newer \
             tensilo"
        );
        Err(Error::too_new("R-9.1", message))
    }

    /// Fails if a flag that this release does not support forbids appending.
    pub(crate) fn check_writable(self) -> Result<()> {
        let unknown = self.ro_compat & !KNOWN_RO_COMPAT;
        if unknown == 0 {
            return Ok(());
        }
        let message = format!(
            "this release can read the file, but not append to it (ro_compat flags {unknown:#x}); use a newer \
             tensilo to append"
        );
        Err(Error::too_new_to_append(message))
    }

    /// Returns the bits that are set in `self` or in `other`.
    pub(crate) fn union(self, other: Self) -> Self {
        Self {
            incompat: self.incompat | other.incompat,
            ro_compat: self.ro_compat | other.ro_compat,
            compat: self.compat | other.compat,
        }
    }

    /// Checks that the flags of a file header agree with the schema.
    pub(crate) fn check_schema(self, schema: &Schema) -> Result<()> {
        if schema.is_nested() == (self.incompat & NESTED != 0) {
            return Ok(());
        }
        let message = "the incompat flag for nested columns in the file header contradicts the schema";
        Err(Error::corrupt("R-3.8", message).with_offset(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ColumnSchema, DType, ErrorKind, Shape};

    const HEADER: Header = Header {
        file_id: FileId([7; 12]),
        flags: Flags { incompat: 0, ro_compat: 0, compat: 1 << 31 },
        alignment: 4096,
    };

    #[test]
    fn each_field_is_checked() {
        let header = HEADER.header(b"schema").expect("a header");
        assert_eq!(Header::parse(&header).expect("unchanged"), HEADER);
        let at_64 = header.with(file_header_fields::ALIGNMENT, 64);
        assert_eq!(Header::parse(&at_64).expect("the other alignment").alignment, 64);
        let rule = |header: RegionHeader| Header::parse(&header).expect_err("a wrong field").rule();
        assert_eq!(rule(header.with(file_header_fields::MAGIC_TAIL, [0x0A; 4])), Some("R-3.1"));
        for (edition, kind) in [(0, ErrorKind::TooOld), (2, ErrorKind::TooNew), (u32::MAX, ErrorKind::TooNew)] {
            // the edition is reported even if other fields are wrong
            let other =
                header.with(file_header_fields::EDITION, edition).with(file_header_fields::ALIGNMENT, 0).after(1);
            let error = Header::parse(&other).expect_err("another edition");
            assert_eq!((error.kind(), error.rule()), (kind, Some("R-3.9")), "{error}");
        }
        for alignment in [0, 63, 65, 128, 4095, 4097, 8192] {
            assert_eq!(rule(header.with(file_header_fields::ALIGNMENT, alignment)), Some("R-3.2"), "{alignment}");
        }
        assert_eq!(rule(header.after(1)), Some("R-2.10"));
        let unknown = header.with(file_header_fields::INCOMPAT_FLAGS, 1 << 31);
        assert_eq!(Header::parse(&unknown).expect_err("an unknown flag").kind(), ErrorKind::TooNew);
    }

    #[test]
    fn the_flags_are_those_of_the_schema() {
        let (nested, paths) = (Flags { incompat: 1, ..Flags::default() }, Flags { compat: 1, ..Flags::default() });
        let plain = ColumnSchema::tensor("x", DType::U8, Shape::scalar());
        let mut with_path = plain.clone();
        with_path.metadata.insert(path::KEY.to_owned(), "x".to_owned());
        for (column, flags) in [(plain.clone(), Flags::default()), (plain.list(), nested), (with_path, paths)] {
            let schema = Schema::new([column]);
            assert_eq!(Flags::of(&schema), flags);
            // an unknown flag is ignored
            let unknown = Flags { incompat: 1 << 31, ..Flags::default() };
            assert!(flags.union(unknown).check_schema(&schema).is_ok());
            let other = Flags { incompat: flags.incompat ^ 1, ..flags }.union(unknown);
            assert_eq!(other.check_schema(&schema).expect_err("the other flag").rule(), Some("R-3.8"));
        }
    }
}
