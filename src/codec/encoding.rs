//! Chapter 5: the interfaces of encodings.
//!
//! A part is encoded as one block, or as several behind a front (5.12), each decoded without the
//! others. An encoding implements [`BlockCodec`] and [`BlockEncoder`], which know blocks. From
//! these, `blocked/forms.rs` makes a [`Codec`] and an [`Encoder`] of parts.
//!
//! Before memory is taken for a part, `check` has bounded what its stored bytes can decode to. What
//! is decoded alone is checked as far as it needs, so that one sample does not cost as much as all.
//! Between parts, encodings keep memory and choices in a scratch, and nothing else.

use super::blocked::{Block, BlockLimits, Codec, FrontWriter};
use super::choice::SampledPart;
use super::geometry::RawPart;
use super::part::{Anatomy, PartSpec};
use super::scratch::{DecodeScratch, EncodeScratch};
use crate::kernel::prefetch;
use crate::{Result, limits, memory};
use std::ops::Range;

/// An encoding that writers use.
pub(crate) trait Encoder: Codec {
    /// Estimates the stored bytes of a part from a sample. Returns `None` if only encoding tells.
    fn estimate(&self, _part: &mut SampledPart<'_>, _scratch: &mut EncodeScratch) -> Option<usize> {
        None
    }

    /// Estimates the stored bytes of a part more closely and more slowly, after [`Self::estimate`],
    /// by encoding the blocks of its sample. Returns `None` if that would not help.
    fn estimate_by_encoding(&self, _part: &mut SampledPart<'_>, _scratch: &mut EncodeScratch) -> Result<Option<usize>> {
        Ok(None)
    }

    /// Encodes `raw`, which is not empty, to `stored`, which it clears first. Returns
    /// `false` if this encoding cannot express `raw`.
    fn encode(&self, part: RawPart<'_>, stored: &mut Vec<u8>, scratch: &mut EncodeScratch) -> Result<bool>;
}

/// The value of `table` in the tables of frames that need none.
#[cfg(feature = "zstd")]
pub(super) const NO_TABLE: u32 = u32::MAX;

/// Returns the table of the column that the tables of `zstd` name, if they name one.
pub(super) fn table_number(tables: &[u8]) -> Option<u32> {
    let table = u32::from_le_bytes(*tables.first_chunk()?);
    (table != u32::MAX).then_some(table)
}

/// An encoding in blocks, as a decoder.
pub(crate) trait BlockCodec: Sync {
    /// The tables, parsed.
    type Tables;

    /// The id in the file.
    const ID: u16;
    /// The name in the specification.
    const NAME: &'static str;
    /// The limits of.
    const LIMITS: BlockLimits = BlockLimits { max_elements: usize::MAX, front_align: 1, block_align: 1 };
    /// The rule that tables break if the stored bytes end within them.
    const TABLES_RULE: &'static str = "R-5.14";
    /// The length of the tables, unless [`BlockCodec::table_bytes`] tells it.
    const TABLE_BYTES: usize = 0;
    /// Whether the decoded bytes of blocks are the stored ones.
    const IS_IDENTITY: bool = false;
    /// Whether the stored bytes are the element that all elements equal. Such a part is one block.
    const IS_CONSTANT: bool = false;
    /// Whether decoding needs a table of the column.
    const NEEDS_TABLE: bool = false;

    /// Whether decoders outside of this crate decode its blocks, such as those of a GPU.
    const IS_FOR_DEVICES: bool = false;

    /// Refuses an encoding that this build cannot encode and decode.
    fn check_built(&self) -> Result<()> {
        Ok(())
    }

    /// Returns the length of the tables that bytes begin with; `None` if these are too few to tell.
    fn table_bytes(&self, _bytes: &[u8]) -> Option<usize> {
        Some(Self::TABLE_BYTES)
    }

    /// Returns the table of the column that decoding needs, if it needs one.
    fn table(&self, _tables: &[u8]) -> Option<u32> {
        None
    }

    fn parse_tables(&self, spec: PartSpec<'_>, tables: &[u8]) -> Result<Self::Tables>;

    /// Checks what [`BlockCodec::parse_tables`] checks.
    fn check_tables(&self, spec: PartSpec<'_>, tables: &[u8]) -> Result<()> {
        self.parse_tables(spec, tables).map(drop)
    }

    /// Checks tables, and appends them to `out` in the layout for devices: here as they are stored.
    fn device_tables(&self, spec: PartSpec<'_>, tables: &[u8], out: &mut Vec<u8>) -> Result<()> {
        self.check_tables(spec, tables)?;
        memory::extend(out, tables)
    }

    /// Returns the same as [`BlockCodec::parse_tables`], which may have been kept: a sample that is
    /// decoded alone mostly follows another one of its chunk.
    fn kept_tables(&self, spec: PartSpec<'_>, tables: &[u8], _scratch: &mut DecodeScratch) -> Result<Self::Tables> {
        self.parse_tables(spec, tables)
    }

    /// Refuses a block that cannot have its decoded length, before memory is taken for it.
    fn check(&self, _block: &Block<'_, Self::Tables>) -> Result<()> {
        Ok(())
    }

    /// Decodes a block to `out`, which has its decoded length.
    fn decode(&self, block: &Block<'_, Self::Tables>, out: &mut [u8], scratch: &mut DecodeScratch) -> Result<()>;

    /// Decodes two blocks, each to the one of `outs` that has its decoded length. Some encodings
    /// take less time for it than for one and then the other.
    fn decode_two(
        &self,
        blocks: [&Block<'_, Self::Tables>; 2],
        outs: [&mut [u8]; 2],
        scratch: &mut DecodeScratch,
    ) -> Result<()> {
        let mut both = blocks.into_iter().zip(outs);
        both.try_for_each(|(block, out)| self.decode(block, out, scratch))
    }

    /// Decodes some elements of a block, but not all, to `out`, which has their length. Returns
    /// `false` if this encoding cannot, or not for much less than all elements cost.
    fn decode_range(
        &self,
        _block: &Block<'_, Self::Tables>,
        _range: &Range<usize>,
        _out: &mut [u8],
        _scratch: &mut DecodeScratch,
    ) -> Result<bool> {
        Ok(false)
    }

    /// Announces to the processor the bytes of a block that decoding some of its elements needs:
    /// else one cache miss follows the other.
    fn announce(&self, block: &Block<'_, Self::Tables>, _range: &Range<usize>) {
        prefetch(block.stored);
    }

    /// Describes the transform in words, in an encoding that has them.
    fn transform(&self, _tables: &Self::Tables) -> Option<String> {
        None
    }

    fn describe(&self, block: &Block<'_, Self::Tables>, anatomy: &mut Anatomy) -> Result<()> {
        anatomy.add("blocks", "", block.stored);
        Ok(())
    }
}

/// The limits of blocks of tiers and bins, whose counts are numbers of 16 bits, and whose words
/// vector instructions and GPUs load.
pub(super) const WORDS: BlockLimits =
    BlockLimits { max_elements: limits::BLOCK_ELEMENTS, front_align: 16, block_align: 16 };

/// A visitor of plans: of their tables, and of the cost of stored bytes. Returns whether what it
/// encoded costs the least so far.
pub(super) type VisitPlan<'v> = dyn FnMut(&[u8], &dyn Fn(usize) -> usize, &mut EncodeScratch) -> Result<bool> + 'v;

/// An encoding in blocks that writers use.
pub(super) trait BlockEncoder: BlockCodec {
    /// Estimates the stored bytes of a part, as [`Encoder::estimate`] does.
    fn estimate(&self, _part: &mut SampledPart<'_>, _scratch: &mut EncodeScratch) -> Option<usize> {
        None
    }

    /// Estimates the stored bytes of a part, as [`Encoder::estimate_by_encoding`] does.
    fn estimate_by_encoding(&self, _part: &mut SampledPart<'_>, _scratch: &mut EncodeScratch) -> Result<Option<usize>> {
        Ok(None)
    }

    /// Calls `visit` with the tables of each plan for `raw`, and keeps in `scratch` what its blocks
    /// need. Does not call it if this encoding cannot express `raw`.
    fn each_plan(&self, part: RawPart<'_>, scratch: &mut EncodeScratch, visit: &mut VisitPlan<'_>) -> Result<()>;

    /// Appends the block of some elements of what was planned.
    fn encode(
        &self,
        part: RawPart<'_>,
        elements: &Range<usize>,
        stored: &mut Vec<u8>,
        scratch: &mut EncodeScratch,
    ) -> Result<()>;

    /// Appends the stored bytes of a part: the tables, which were planned, and its only block, or
    /// front and blocks. Returns `false` if they are too many; some of them were appended then.
    fn append(
        &self,
        part: RawPart<'_>,
        tables: &[u8],
        stored: &mut Vec<u8>,
        scratch: &mut EncodeScratch,
    ) -> Result<bool> {
        let geometry = part.geometry;
        if let [end] = *geometry.blocks {
            let start = stored.len();
            stored.extend_from_slice(tables);
            stored.resize(start + tables.len().next_multiple_of(Self::LIMITS.block_align), 0);
            let end = usize::try_from(end).unwrap_or(usize::MAX);
            return self.encode(part, &(0..end), stored, scratch).map(|()| true);
        }
        let Some(mut front) = FrontWriter::new(stored, tables, geometry.blocks.len(), Self::LIMITS) else {
            return Ok(false);
        };
        for (&end, elements) in geometry.blocks.iter().zip(geometry.block_ranges()) {
            let encode = |stored: &mut Vec<u8>| self.encode(part, &elements, stored, scratch);
            if !front.add(end, encode)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
