//! The two forms of a part: one block behind its tables, or several behind a front (5.12).
//!
//! Most parts are short, and the checksum of the chunk covers them: a front would cost more than it
//! is worth, so [`OneBlock`] has none. In [`Blocked`], each block has a checksum and is read and
//! decoded alone. The decoder of a block is the same in both.
//!
//! Whole blocks are decoded two at a time, which some encodings do in less time. A block that an
//! encoding cannot decode in part is decoded whole, to memory of the scratch.

use super::front::{BlockEntry, BlockLimits, FRONT_HEAD_BYTES};
use super::part::{Block, BlockedCodec, BlockedPart, outside};
use crate::codec::{
    choice::SampledPart,
    encoding::{BlockCodec, BlockEncoder, Codec, Encoder, too_many_elements},
    geometry::{Geometry, RawPart},
    part::{Anatomy, Body, PartSpec},
    scratch::{DecodeScratch, EncodeScratch},
};
use crate::format::index::BLOCKS;
use crate::{Error, Result, memory};
use std::ops::Range;

/// An encoding of blocks, as the encoding of a part that is one block.
pub(crate) struct OneBlock<B>(pub B);

impl<B: BlockCodec> OneBlock<B> {
    fn split<'a>(&self, stored: &'a [u8]) -> Result<(&'a [u8], &'a [u8])> {
        let split = || {
            let tables = self.0.table_bytes(stored)?;
            let (tables, rest) = stored.split_at_checked(tables)?;
            let padding = tables.len().checked_next_multiple_of(B::LIMITS.block_align)? - tables.len();
            let (padding, block) = rest.split_at_checked(padding)?;
            Some((tables, padding, block))
        };
        let (tables, padding, stored) = split().ok_or_else(|| {
            Error::corrupt(B::TABLES_RULE, format!("the stored bytes end within the tables of {}", B::NAME))
        })?;
        if padding.iter().any(|&byte| byte != 0) {
            return Err(Error::corrupt(B::TABLES_RULE, "the bytes after the tables are not zero"));
        }
        Ok((tables, stored))
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
        B::ID
    }

    fn name(&self) -> &'static str {
        B::NAME
    }

    fn check_built(&self) -> Result<()> {
        self.0.check_built()
    }

    fn is_identity(&self) -> bool {
        B::IS_IDENTITY
    }

    fn needs_table(&self) -> bool {
        B::NEEDS_TABLE
    }

    fn table(&self, stored: &[u8]) -> Result<Option<u32>> {
        // tables that are cut off are refused where they are parsed
        let tables = self.0.table_bytes(stored).and_then(|tables| stored.get(..tables));
        Ok(tables.and_then(|tables| self.0.table(tables)))
    }

    fn check(&self, spec: PartSpec<'_>, stored: &[u8]) -> Result<()> {
        let (tables, stored) = self.split(stored)?;
        if B::LIMITS.max_elements < usize::MAX {
            return Self::check_count(spec); // which bounds what the block decodes to
        }
        self.0.check(&Block { tables: &self.0.parse_tables(spec, tables)?, spec, stored })
    }

    fn decode(&self, spec: PartSpec<'_>, stored: &[u8], out: &mut [u8], scratch: &mut DecodeScratch) -> Result<()> {
        let (tables, stored) = self.split(stored)?;
        let tables = self.0.kept_tables(spec, tables, scratch)?;
        Self::check_count(spec)?;
        self.0.decode(&Block { tables: &tables, spec, stored }, out, scratch)
    }

    fn decode_range(
        &self,
        spec: PartSpec<'_>,
        stored: &[u8],
        range: &Range<usize>,
        out: &mut [u8],
        scratch: &mut DecodeScratch,
    ) -> Result<bool> {
        let (tables, stored) = self.split(stored)?;
        let tables = self.0.kept_tables(spec, tables, scratch)?;
        Self::check_count(spec)?;
        self.0.decode_range(&Block { tables: &tables, spec, stored }, range, out, scratch)
    }

    fn anatomy(&self, spec: PartSpec<'_>, stored: &[u8]) -> Result<Anatomy> {
        let (tables, block) = self.split(stored)?;
        let mut anatomy = Anatomy::default();
        if !tables.is_empty() {
            anatomy.add("tables", "what all blocks have in common", tables);
        }
        let padding = tables.len()..stored.len().saturating_sub(block.len());
        let tables = self.0.parse_tables(spec, tables)?;
        let mut sections = Anatomy::default();
        sections.add("padding", "zero bytes", stored.get(padding).unwrap_or(&[]));
        self.0.describe(&Block { tables: &tables, spec, stored: block }, &mut sections)?;
        anatomy.add_block(sections);
        anatomy.transform = self.0.transform(&tables);
        Ok(anatomy)
    }
}

/// An encoding of blocks, as the encoding of a part in several. Encodes parts of one block, too.
pub(crate) struct Blocked<B>(pub B);

impl<B: BlockCodec> Codec for Blocked<B> {
    fn id(&self) -> u16 {
        B::ID | BLOCKS
    }

    fn name(&self) -> &'static str {
        B::NAME
    }

    fn check_built(&self) -> Result<()> {
        self.0.check_built()
    }

    fn blocks(&self) -> Option<&dyn BlockedCodec> {
        Some(self)
    }

    fn needs_table(&self) -> bool {
        B::NEEDS_TABLE
    }

    fn table(&self, stored: &[u8]) -> Result<Option<u32>> {
        let tables = || {
            let front = stored.get(FRONT_HEAD_BYTES..)?;
            front.get(..self.0.table_bytes(front)?)
        };
        // `check` refuses a front that is cut off
        Ok(tables().and_then(|tables| self.0.table(tables)))
    }

    /// Checks the front. Blocks are checked where they are decoded.
    fn check(&self, spec: PartSpec<'_>, stored: &[u8]) -> Result<()> {
        BlockedCodec::check(self, &self.part(spec, stored)?)
    }

    fn decode(&self, spec: PartSpec<'_>, stored: &[u8], out: &mut [u8], scratch: &mut DecodeScratch) -> Result<()> {
        let (_, count) = spec.width_and_count()?;
        self.decode_blocks(&self.part(spec, stored)?, &(0..count), out, scratch)
    }

    fn decode_range(
        &self,
        spec: PartSpec<'_>,
        stored: &[u8],
        range: &Range<usize>,
        out: &mut [u8],
        scratch: &mut DecodeScratch,
    ) -> Result<bool> {
        self.decode_blocks(&self.part(spec, stored)?, range, out, scratch).map(|()| true)
    }

    fn anatomy(&self, spec: PartSpec<'_>, stored: &[u8]) -> Result<Anatomy> {
        let part = self.part(spec, stored)?;
        let mut anatomy = Anatomy::default();
        let tables = self.0.parse_tables(spec, part.front.tables)?;
        let front = stored.get(..part.front.bytes).unwrap_or(stored);
        anatomy.add("front", format!("tables, and a directory of {} blocks", part.front.block_count()), front);
        for entry in part.front.blocks() {
            let mut block = Anatomy::default();
            let entry = entry?;
            self.0.describe(&part.block(&tables, &entry)?, &mut block)?;
            let padding = entry.stored.end.saturating_sub(entry.padding)..entry.stored.end;
            block.add("padding", "zero bytes", stored.get(padding).unwrap_or(&[]));
            anatomy.add_block(block);
        }
        anatomy.transform = self.0.transform(&tables);
        Ok(anatomy)
    }
}

/// Returns the elements of a range that a block has, counted from its start; `None` if it has none.
fn within(entry: &BlockEntry, range: &Range<usize>) -> Option<Range<usize>> {
    let Range { start, end } = entry.elements;
    let within = range.start.max(start).checked_sub(start)?..range.end.min(end).checked_sub(start)?;
    (!within.is_empty()).then_some(within)
}

impl<B: BlockCodec> BlockedCodec for Blocked<B> {
    fn is_identity(&self) -> bool {
        B::IS_IDENTITY
    }

    fn table(&self, tables: &[u8]) -> Option<u32> {
        self.0.table(tables)
    }

    fn table_bytes(&self, front: &[u8]) -> Option<usize> {
        self.0.table_bytes(front)
    }

    fn limits(&self) -> BlockLimits {
        B::LIMITS
    }

    fn check(&self, part: &BlockedPart<'_>) -> Result<()> {
        if B::LIMITS.max_elements < usize::MAX {
            self.0.check_tables(part.spec, part.front.tables)?;
            return part.front.check();
        }
        // nothing else bounds what a block decodes to
        let tables = self.0.parse_tables(part.spec, part.front.tables)?;
        part.front.check()?;
        part.front.blocks().try_for_each(|entry| match part.block(&tables, &entry?) {
            Ok(block) => self.0.check(&block),
            Err(_) => Ok(()), // was not read, and is not decoded
        })
    }

    fn decode_blocks(
        &self,
        part: &BlockedPart<'_>,
        elements: &Range<usize>,
        out: &mut [u8],
        scratch: &mut DecodeScratch,
    ) -> Result<()> {
        let tables = self.0.kept_tables(part.spec, part.front.tables, scratch)?;
        let mut out = out;
        let mut waiting: Option<WantedBlock<'_, '_, B::Tables>> = None;
        let mut entries = part.blocks_of(elements).peekable();
        while let Some(entry) = entries.next() {
            let entry = entry?;
            if part.is_announced()
                && let Some(Ok(next)) = entries.peek()
            {
                // a block is too short for the processor to notice that it is read in order
                part.announce(next);
            }
            let range = within(&entry, elements).ok_or_else(outside)?;
            let to = out.split_off_mut(..range.len() * part.spec.element_bytes).ok_or_else(outside)?;
            let wanted = WantedBlock { block: part.block(&tables, &entry)?, range, out: to };
            if part.is_announced() && !wanted.is_whole() {
                self.0.announce(&wanted.block, &wanted.range);
            }
            match waiting.take() {
                Some(first) if first.is_whole() && wanted.is_whole() => {
                    let (blocks, outs) = ([&first.block, &wanted.block], [first.out, wanted.out]);
                    self.0.decode_two(blocks, outs, scratch)?;
                }
                first => {
                    first.map_or(Ok(()), |first| self.decode_some(first, scratch))?;
                    waiting = Some(wanted);
                }
            }
        }
        waiting.map_or(Ok(()), |last| self.decode_some(last, scratch))
    }
}

/// Elements of a block, and where they are decoded to.
struct WantedBlock<'p, 'o, T> {
    block: Block<'p, T>,
    /// The elements, counted from the start of the block.
    range: Range<usize>,
    /// Has their length.
    out: &'o mut [u8],
}

impl<T> WantedBlock<'_, '_, T> {
    fn is_whole(&self) -> bool {
        self.out.len() == self.block.spec.raw_bytes
    }
}

impl<B: BlockCodec> Blocked<B> {
    fn decode_some(&self, wanted: WantedBlock<'_, '_, B::Tables>, scratch: &mut DecodeScratch) -> Result<()> {
        let is_whole = wanted.is_whole();
        let WantedBlock { block, range, out } = wanted;
        if is_whole {
            return self.0.decode(&block, out, scratch);
        }
        if self.0.decode_range(&block, &range, out, scratch)? {
            return Ok(());
        }
        let mut whole = std::mem::take(&mut scratch.block);
        let decoded = memory::resize(&mut whole, block.spec.raw_bytes, 0)
            .and_then(|()| self.0.decode(&block, &mut whole, scratch));
        let bytes = range.start * block.spec.element_bytes..range.end * block.spec.element_bytes;
        let copied = decoded.and_then(|()| match whole.get(bytes).filter(|bytes| bytes.len() == out.len()) {
            Some(bytes) => {
                out.copy_from_slice(bytes); // equal lengths
                Ok(())
            }
            None => Err(outside()),
        });
        scratch.block = whole;
        copied
    }
}

/// Returns whether a block has more elements than it may have.
fn has_long_block<B: BlockCodec>(geometry: &Geometry<'_>) -> bool {
    geometry.block_ranges().any(|block| block.len() > B::LIMITS.max_elements)
}

impl<B: BlockEncoder> Encoder for Blocked<B> {
    fn estimate(&self, part: &mut SampledPart<'_>, scratch: &mut EncodeScratch) -> Option<usize> {
        match has_long_block::<B>(&part.geometry) {
            true => Some(usize::MAX),
            false => self.0.estimate(part, scratch),
        }
    }

    fn estimate_by_encoding(&self, part: &mut SampledPart<'_>, scratch: &mut EncodeScratch) -> Result<Option<usize>> {
        self.0.estimate_by_encoding(part, scratch)
    }

    /// Encodes `raw`, except for the checksum of a front, which [`seal`](super::front::seal)
    /// sets.
    fn encode(&self, part: RawPart<'_>, stored: &mut Vec<u8>, scratch: &mut EncodeScratch) -> Result<bool> {
        stored.clear();
        if has_long_block::<B>(part.geometry) {
            return Ok(false);
        }
        let mut planned = std::mem::take(&mut scratch.planned);
        let mut least = usize::MAX;
        let encoded = self.0.each_plan(part, scratch, &mut |tables, cost, scratch| {
            planned.clear();
            let is_written = self.0.append(part, tables, &mut planned, scratch)?;
            let is_best = is_written && cost(planned.len()) < least;
            if is_best {
                least = cost(planned.len());
                std::mem::swap(stored, &mut planned);
            }
            Ok(is_best)
        });
        scratch.planned = planned;
        encoded.map(|()| !stored.is_empty())
    }
}

impl<B: BlockCodec> Blocked<B> {
    fn part<'a>(&'a self, spec: PartSpec<'a>, stored: &'a [u8]) -> Result<BlockedPart<'a>> {
        BlockedPart::parse(self, spec, Body::whole(stored), &(0..stored.len()))
    }
}
