//! Chapter 5: a part without *blocks*, which is one block: the tables, followed by the block.
//!
//! Most parts are short, and the checksum of the chunk covers them: a front would cost more than it
//! is worth. The decoder of the block is the same as in a part of several.

use super::block_codec::{Block, BlockCodec, too_many_elements};
use crate::codec::anatomy::Anatomy;
use crate::codec::encoding::Codec;
use crate::codec::part_spec::PartSpec;
use crate::codec::scratch::DecodeScratch;
use crate::{Error, Result};
use std::ops::Range;

/// An encoding of blocks, as the encoding of a part that is one block.
pub(in crate::codec) struct OneBlock<B>(pub B);

impl<B: BlockCodec> OneBlock<B> {
    /// Splits the stored bytes into the tables and the block.
    fn split<'a>(&self, spec: PartSpec<'a>, stored: &'a [u8]) -> Result<(&'a [u8], Block<'a>)> {
        let split = || {
            let tables = self.0.table_bytes(stored)?;
            let (tables, rest) = stored.split_at_checked(tables)?;
            let padding = tables.len().checked_next_multiple_of(B::LIMITS.block_align)? - tables.len();
            let (padding, block) = rest.split_at_checked(padding)?;
            Some((tables, padding, block))
        };
        let (tables, padding, stored) = split().ok_or_else(|| {
            Error::corrupt(B::TABLES_RULE, format!("the stored bytes end within the tables of {}", self.0.name()))
        })?;
        if padding.iter().any(|&byte| byte != 0) {
            return Err(Error::corrupt(B::TABLES_RULE, "the bytes after the tables are not zero"));
        }
        Ok((tables, Block { spec, stored }))
    }

    /// Refuses a part that is too long for one block.
    fn check_count(spec: PartSpec<'_>) -> Result<()> {
        let (_, count) = spec.width_and_count()?;
        let max = B::LIMITS.max_elements;
        if count <= max { Ok(()) } else { Err(too_many_elements(count, max)) }
    }
}

impl<B: BlockCodec> Codec for OneBlock<B> {
    fn id(&self) -> u16 {
        self.0.id()
    }

    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn check_built(&self) -> Result<()> {
        self.0.check_built()
    }

    fn is_identity(&self) -> bool {
        self.0.is_identity()
    }

    fn needs_table(&self) -> bool {
        self.0.needs_table()
    }

    fn table(&self, stored: &[u8]) -> Result<Option<u32>> {
        // tables that are cut off are refused where they are parsed
        let tables = self.0.table_bytes(stored).and_then(|tables| stored.get(..tables));
        Ok(tables.and_then(|tables| self.0.table(tables)))
    }

    fn check(&self, spec: PartSpec<'_>, stored: &[u8]) -> Result<()> {
        let (tables, block) = self.split(spec, stored)?;
        if B::LIMITS.max_elements < usize::MAX {
            return Self::check_count(spec); // which bounds what the block decodes to
        }
        self.0.check(&self.0.parse_tables(spec, tables)?, &block)
    }

    fn decode(&self, spec: PartSpec<'_>, stored: &[u8], out: &mut [u8], scratch: &mut DecodeScratch) -> Result<()> {
        let (tables, block) = self.split(spec, stored)?;
        let tables = self.0.kept_tables(spec, tables, scratch)?;
        Self::check_count(spec)?;
        self.0.decode(&tables, &block, out, scratch)
    }

    fn decode_range(
        &self,
        spec: PartSpec<'_>,
        stored: &[u8],
        range: &Range<usize>,
        out: &mut [u8],
        scratch: &mut DecodeScratch,
    ) -> Result<bool> {
        let (tables, block) = self.split(spec, stored)?;
        let tables = self.0.kept_tables(spec, tables, scratch)?;
        Self::check_count(spec)?;
        self.0.decode_range(&tables, &block, range, out, scratch)
    }

    fn anatomy(&self, spec: PartSpec<'_>, stored: &[u8]) -> Result<Anatomy> {
        let (tables, block) = self.split(spec, stored)?;
        let mut anatomy = Anatomy::default();
        if !tables.is_empty() {
            anatomy.add("tables", "what all blocks have in common", tables);
        }
        let padding = tables.len()..stored.len().saturating_sub(block.stored.len());
        let tables = self.0.parse_tables(spec, tables)?;
        let mut sections = Anatomy::default();
        sections.add("padding", "zero bytes", stored.get(padding).unwrap_or(&[]));
        self.0.describe(&tables, &block, &mut sections)?;
        anatomy.add_block(sections);
        anatomy.transform = self.0.transform(&tables);
        Ok(anatomy)
    }
}
