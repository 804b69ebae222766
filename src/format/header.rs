//! Chapter 3.1: the header.

use super::flags::Flags;
use super::region::{FileId, RegionHead, RegionKind, region_head};
use crate::le::structure;
use crate::{Error, Result};

structure! {
    /// Chapter 3.1: the fields that only the head of a header has.
    mod header_head: 64 bytes with region_head {
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

/// The facts that the header states beside the schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub file_id: FileId,
    pub flags: Flags,
    pub alignment: u32,
}

impl Header {
    /// Returns the head of a header whose body is `schema_block`.
    pub(crate) fn head(&self, schema_block: &[u8]) -> Result<RegionHead> {
        Ok(RegionHead::new(RegionKind::Header, self.file_id, 0, schema_block)?
            .with(header_head::MAGIC_TAIL, MAGIC_TAIL)
            .with(header_head::INCOMPAT_FLAGS, self.flags.incompat)
            .with(header_head::RO_COMPAT_FLAGS, self.flags.ro_compat)
            .with(header_head::COMPAT_FLAGS, self.flags.compat)
            .with(header_head::ALIGNMENT, self.alignment)
            .with(header_head::EDITION, EDITION))
    }

    /// Parses the head of a header.
    pub(crate) fn parse(head: &RegionHead) -> Result<Self> {
        head.expect(RegionKind::Header, head.file_id)?;
        check_edition(head.get(header_head::EDITION)).map_err(|error| error.with_offset(0))?;
        let flags = Flags {
            incompat: head.get(header_head::INCOMPAT_FLAGS),
            ro_compat: head.get(header_head::RO_COMPAT_FLAGS),
            compat: head.get(header_head::COMPAT_FLAGS),
        };
        flags.check()?;
        if head.get(header_head::MAGIC_TAIL) != MAGIC_TAIL {
            let message = "the header's magic tail is wrong: a transfer as text has changed the file";
            return Err(Error::corrupt("R-3.1", message).with_offset(0));
        }
        head.check_previous(0)?;
        let alignment = head.get(header_head::ALIGNMENT);
        if alignment != 64 && alignment != 4096 {
            let message = format!("alignment {alignment}; it is 64 or 4096");
            return Err(Error::corrupt("R-3.2", message).with_offset(0));
        }
        Ok(Self { file_id: head.file_id, flags, alignment })
    }
}

/// Refuses files of other editions, whose other fields may mean anything.
fn check_edition(edition: u32) -> Result<()> {
    match edition {
        EDITION => Ok(()),
        0 => Err(Error::too_old(
            "R-3.9",
            "the file was written before edition 1 of the format: convert the source again",
        )),
        newer => {
            let message = format!(
                "the file has edition {newer} of the format, and this release reads edition {EDITION}; read it with a newer tensilo"
            );
            Err(Error::too_new("R-3.9", message))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;

    const HEADER: Header = Header {
        file_id: FileId([7; 12]),
        flags: Flags { incompat: 0, ro_compat: 0, compat: 1 << 31 },
        alignment: 4096,
    };

    #[test]
    fn each_field_is_checked() {
        let head = HEADER.head(b"schema").expect("a head");
        assert_eq!(Header::parse(&head).expect("as it was made"), HEADER);
        let at_64 = head.with(header_head::ALIGNMENT, 64);
        assert_eq!(Header::parse(&at_64).expect("the other alignment").alignment, 64);
        let rule = |head: RegionHead| Header::parse(&head).expect_err("a wrong field").rule();
        assert_eq!(rule(head.with(header_head::MAGIC_TAIL, [0x0A; 4])), Some("R-3.1"));
        for (edition, kind) in [(0, ErrorKind::TooOld), (2, ErrorKind::TooNew), (u32::MAX, ErrorKind::TooNew)] {
            // whatever else it has
            let other = head.with(header_head::EDITION, edition).with(header_head::ALIGNMENT, 0).after(1);
            let error = Header::parse(&other).expect_err("another edition");
            assert_eq!((error.kind(), error.rule()), (kind, Some("R-3.9")), "{error}");
        }
        for alignment in [0, 63, 65, 128, 4095, 4097, 8192] {
            assert_eq!(rule(head.with(header_head::ALIGNMENT, alignment)), Some("R-3.2"), "{alignment}");
        }
        assert_eq!(rule(head.after(1)), Some("R-2.10"));
        let unknown = head.with(header_head::INCOMPAT_FLAGS, 1 << 31);
        assert_eq!(Header::parse(&unknown).expect_err("an unknown flag").kind(), ErrorKind::TooNew);
    }
}
