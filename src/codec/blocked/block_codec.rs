//! The interface of an encoding of one block.

use super::front::{BlockLimits, FrontWriter};
use crate::codec::anatomy::Anatomy;
use crate::codec::geometry::Geometry;
use crate::codec::part_spec::PartSpec;
use crate::codec::sample::SampledPart;
use crate::codec::scratch::{DecodeScratch, EncodeScratch};
use crate::kernel::prefetch;
use crate::{Error, Result, limits};
use std::ops::Range;

/// The value of `table` in the tables of frames that need none.
#[cfg(feature = "zstd")]
pub(in crate::codec) const NO_TABLE: u32 = u32::MAX;

/// Returns the table of the column that the tables of `zstd` name, if they name one.
pub(in crate::codec) fn table_number(tables: &[u8]) -> Option<u32> {
    let table = u32::from_le_bytes(*tables.first_chunk()?);
    (table != u32::MAX).then_some(table)
}

/// A block to decode.
#[derive(Clone, Copy)]
pub(crate) struct Block<'a> {
    /// The facts about the block. Its elements are those of a part.
    pub spec: PartSpec<'a>,
    /// The stored bytes of the block.
    pub stored: &'a [u8],
}

/// An encoding in blocks, as a decoder.
pub(crate) trait BlockCodec: Sync {
    /// The tables, parsed.
    type Tables;

    /// The limits of.
    const LIMITS: BlockLimits = BlockLimits { max_elements: usize::MAX, front_align: 1, block_align: 1 };

    /// The rule that tables break if the stored bytes end within them.
    const TABLES_RULE: &'static str = "R-5.14";

    /// Returns the id in the file.
    fn id(&self) -> u16;

    /// Returns the name in the specification.
    fn name(&self) -> &'static str;

    /// Refuses an encoding that this build cannot encode and decode.
    fn check_built(&self) -> Result<()> {
        Ok(())
    }

    /// Returns whether the decoded bytes of blocks are the stored ones.
    fn is_identity(&self) -> bool {
        false
    }

    /// Returns whether decoding needs a table of the column.
    fn needs_table(&self) -> bool {
        false
    }

    /// Returns the length of the tables that bytes begin with; `None` if these are too few to tell.
    fn table_bytes(&self, bytes: &[u8]) -> Option<usize>;

    /// Returns the table of the column that decoding needs, if it needs one.
    fn table(&self, _tables: &[u8]) -> Option<u32> {
        None
    }

    /// Parses and checks the tables.
    fn parse_tables(&self, spec: PartSpec<'_>, tables: &[u8]) -> Result<Self::Tables>;

    /// Checks what [`BlockCodec::parse_tables`] checks.
    fn check_tables(&self, spec: PartSpec<'_>, tables: &[u8]) -> Result<()> {
        self.parse_tables(spec, tables).map(drop)
    }

    /// Returns the same as [`BlockCodec::parse_tables`], which may have been kept: a sample that is
    /// decoded alone mostly follows another one of its chunk.
    fn kept_tables(&self, spec: PartSpec<'_>, tables: &[u8], _scratch: &mut DecodeScratch) -> Result<Self::Tables> {
        self.parse_tables(spec, tables)
    }

    /// Refuses a block that cannot have its decoded length, before memory is taken for it.
    fn check(&self, _tables: &Self::Tables, _block: &Block<'_>) -> Result<()> {
        Ok(())
    }

    /// Decodes a block to `out`, which has its decoded length.
    fn decode(
        &self,
        tables: &Self::Tables,
        block: &Block<'_>,
        out: &mut [u8],
        scratch: &mut DecodeScratch,
    ) -> Result<()>;

    /// Decodes two blocks, each to the one of `outs` that has its decoded length. Some encodings
    /// take less time for it than for one and then the other.
    fn decode_two(
        &self,
        tables: &Self::Tables,
        blocks: [&Block<'_>; 2],
        outs: [&mut [u8]; 2],
        scratch: &mut DecodeScratch,
    ) -> Result<()> {
        let mut both = blocks.into_iter().zip(outs);
        both.try_for_each(|(block, out)| self.decode(tables, block, out, scratch))
    }

    /// Decodes some elements of a block, as
    /// [`Codec::decode_range`](crate::codec::encoding::Codec::decode_range) does.
    fn decode_range(
        &self,
        _tables: &Self::Tables,
        _block: &Block<'_>,
        _range: &Range<usize>,
        _out: &mut [u8],
        _scratch: &mut DecodeScratch,
    ) -> Result<bool> {
        Ok(false)
    }

    /// Announces to the processor the bytes of a block that decoding some of its elements needs:
    /// else one cache miss follows the other.
    fn announce(&self, block: &Block<'_>, _range: &Range<usize>) {
        prefetch(block.stored);
    }

    /// Describes the transform in words, in an encoding that has them.
    fn transform(&self, _tables: &Self::Tables) -> Option<String> {
        None
    }

    /// Describes the sections of a block.
    fn describe(&self, _tables: &Self::Tables, block: &Block<'_>, anatomy: &mut Anatomy) -> Result<()> {
        anatomy.add("blocks", "", block.stored);
        Ok(())
    }
}

/// The limits of blocks of tiers and bins, whose counts are numbers of 16 bits, and whose words
/// vector instructions and GPUs load.
pub(super) const WORDS: BlockLimits =
    BlockLimits { max_elements: limits::BLOCK_ELEMENTS, front_align: 16, block_align: 16 };

#[cold]
pub(super) fn too_many_elements(count: usize, max: usize) -> Error {
    Error::corrupt("R-5.14", format!("a block has {count} elements; at most {max} are allowed"))
}

/// A visitor of plans: of their tables, and of the cost of stored bytes. Returns whether what it
/// encoded costs the least so far.
pub(in crate::codec) type VisitPlan<'v> =
    dyn FnMut(&[u8], &dyn Fn(usize) -> usize, &mut EncodeScratch) -> Result<bool> + 'v;

/// An encoding in blocks that writers use.
pub(in crate::codec) trait BlockEncoder: BlockCodec {
    /// Estimates the stored bytes of a part, as
    /// [`Encoder::estimate`](crate::codec::encoding::Encoder::estimate) does.
    fn estimate(&self, _part: &mut SampledPart<'_>, _scratch: &mut EncodeScratch) -> Option<usize> {
        None
    }

    /// Estimates the stored bytes of a part, as
    /// [`Encoder::estimate_by_encoding`](crate::codec::encoding::Encoder::estimate_by_encoding)
    /// does.
    fn estimate_by_encoding(&self, _part: &mut SampledPart<'_>, _scratch: &mut EncodeScratch) -> Result<Option<usize>> {
        Ok(None)
    }

    /// Calls `visit` with the tables of each plan for `raw`. Does not call it if this encoding
    /// cannot express `raw`.
    fn each_plan(
        &self,
        geometry: &Geometry<'_>,
        raw: &[u8],
        scratch: &mut EncodeScratch,
        visit: &mut VisitPlan<'_>,
    ) -> Result<()> {
        let mut tables = std::mem::take(&mut scratch.tables);
        tables.clear();
        let visited = self.plan(geometry, raw, &mut tables, scratch).and_then(|is_planned| match is_planned {
            true => visit(&tables, &|bytes| bytes, scratch).map(drop),
            false => Ok(()),
        });
        scratch.tables = tables;
        visited
    }

    /// Appends the tables for `raw` to `tables`, and keeps in `scratch` what its blocks need.
    /// Returns `false` if this encoding cannot express `raw`, or has its own [`Self::each_plan`].
    fn plan(
        &self,
        _geometry: &Geometry<'_>,
        _raw: &[u8],
        _tables: &mut Vec<u8>,
        _scratch: &mut EncodeScratch,
    ) -> Result<bool> {
        Ok(false)
    }

    /// Appends the block of some elements of what was planned.
    fn encode(
        &self,
        geometry: &Geometry<'_>,
        raw: &[u8],
        elements: &Range<usize>,
        stored: &mut Vec<u8>,
        scratch: &mut EncodeScratch,
    ) -> Result<()>;

    /// Appends the stored bytes of a part: the tables, which were planned, and its only block, or
    /// front and blocks. Returns `false` if they are too many; some of them were appended then.
    fn append(
        &self,
        geometry: &Geometry<'_>,
        raw: &[u8],
        tables: &[u8],
        stored: &mut Vec<u8>,
        scratch: &mut EncodeScratch,
    ) -> Result<bool> {
        if let [end] = *geometry.blocks {
            let start = stored.len();
            stored.extend_from_slice(tables);
            stored.resize(start + tables.len().next_multiple_of(Self::LIMITS.block_align), 0);
            let end = usize::try_from(end).unwrap_or(usize::MAX);
            return self.encode(geometry, raw, &(0..end), stored, scratch).map(|()| true);
        }
        let Some(mut front) = FrontWriter::new(stored, tables, geometry.blocks.len(), Self::LIMITS) else {
            return Ok(false);
        };
        for (&end, elements) in geometry.blocks.iter().zip(geometry.block_ranges()) {
            let encode = |stored: &mut Vec<u8>| self.encode(geometry, raw, &elements, stored, scratch);
            if !front.add(end, encode)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
