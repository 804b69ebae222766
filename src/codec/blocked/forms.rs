//! An encoding of parts out of an encoding of blocks (5.12).
//!
//! A short part is one block: a front with a directory would cost more than it is worth, and the
//! checksum of the chunk covers it. The blocks of others have checksums, and are read and decoded
//! alone. The decoder of a block does not know the difference.
//!
//! Whole blocks are decoded two at a time, which some encodings do in less time. A block that an
//! encoding cannot decode in part is decoded whole, to memory of the scratch.

use super::front::{BlockEntry, BlockLimits, check_count};
use super::part::{Block, Codec, StoredPart, outside};
use crate::codec::{
    choice::SampledPart,
    encoding::{BlockCodec, BlockEncoder, Encoder},
    geometry::{Geometry, RawPart},
    part::{Anatomy, PartSpec},
    scratch::{DecodeScratch, EncodeScratch},
};
use crate::{Result, memory};
use std::ops::Range;

/// An encoding of blocks, as the encoding of a part.
pub(crate) struct Blocked<B>(pub B);

/// Returns the elements of a range that a block has, counted from its start; `None` if it has none.
fn within(entry: &BlockEntry, range: &Range<usize>) -> Option<Range<usize>> {
    let Range { start, end } = entry.elements;
    let within = range.start.max(start).checked_sub(start)?..range.end.min(end).checked_sub(start)?;
    (!within.is_empty()).then_some(within)
}

impl<B: BlockCodec> Codec for Blocked<B> {
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

    fn is_constant(&self) -> bool {
        B::IS_CONSTANT
    }

    fn needs_table(&self) -> bool {
        B::NEEDS_TABLE
    }

    fn table(&self, tables: &[u8]) -> Option<u32> {
        self.0.table(tables)
    }

    fn table_bytes(&self, bytes: &[u8]) -> Option<usize> {
        self.0.table_bytes(bytes)
    }

    fn tables_rule(&self) -> &'static str {
        B::TABLES_RULE
    }

    fn limits(&self) -> BlockLimits {
        B::LIMITS
    }

    fn check(&self, part: &StoredPart<'_>) -> Result<()> {
        if B::LIMITS.max_elements < usize::MAX {
            // decoding checks the tables of one block
            if part.front.has_directory() {
                self.0.check_tables(part.spec, part.front.tables)?;
            }
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

    fn decode(
        &self,
        part: &StoredPart<'_>,
        elements: &Range<usize>,
        out: &mut [u8],
        scratch: &mut DecodeScratch,
    ) -> Result<bool> {
        let tables = self.0.kept_tables(part.spec, part.front.tables, scratch)?;
        if part.front.has_directory() {
            return self.decode_blocks(part, &tables, elements, out, scratch).map(|()| true);
        }
        let block = part.block(&tables, &part.front.block(0)?)?;
        match out.len() == block.spec.raw_bytes {
            true => self.0.decode(&block, out, scratch).map(|()| true),
            false => self.0.decode_range(&block, elements, out, scratch),
        }
    }

    fn decode_block(
        &self,
        spec: PartSpec<'_>,
        tables: &[u8],
        stored: &[u8],
        out: &mut [u8],
        scratch: &mut DecodeScratch,
    ) -> Result<()> {
        let (_, count) = spec.width_and_count()?;
        check_count(count, B::LIMITS.max_elements)?;
        let tables = self.0.kept_tables(spec, tables, scratch)?;
        let block = Block { tables: &tables, spec, stored };
        self.0.check(&block)?;
        self.0.decode(&block, out, scratch)
    }

    fn device_tables(&self, spec: PartSpec<'_>, tables: &[u8], out: &mut Vec<u8>) -> Result<()> {
        self.0.device_tables(spec, tables, out)
    }

    fn is_for_devices(&self) -> bool {
        B::IS_FOR_DEVICES
    }

    fn anatomy(&self, part: &StoredPart<'_>) -> Result<Anatomy> {
        let mut anatomy = Anatomy::default();
        let front = &part.front;
        let tables = self.0.parse_tables(part.spec, front.tables)?;
        if front.has_directory() {
            let detail = format!("tables, and a directory of {} blocks", front.block_count());
            anatomy.add("front", detail, part.bytes(0..front.bytes).unwrap_or(&[]));
        } else {
            anatomy.add("tables", "what all blocks have in common", front.tables);
            anatomy.add("padding", "zero bytes", front.filling);
        }
        for entry in front.blocks() {
            let mut block = Anatomy::default();
            let entry = entry?;
            self.0.describe(&part.block(&tables, &entry)?, &mut block)?;
            let padding = entry.stored.end.saturating_sub(entry.padding)..entry.stored.end;
            block.add("padding", "zero bytes", part.bytes(padding).unwrap_or(&[]));
            anatomy.add_block(block);
        }
        anatomy.transform = self.0.transform(&tables);
        Ok(anatomy)
    }
}

impl<B: BlockCodec> Blocked<B> {
    fn decode_blocks(
        &self,
        part: &StoredPart<'_>,
        tables: &B::Tables,
        elements: &Range<usize>,
        mut out: &mut [u8],
        scratch: &mut DecodeScratch,
    ) -> Result<()> {
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
            let wanted = WantedBlock { block: part.block(tables, &entry)?, range, out: to };
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

    fn decode_some(&self, wanted: WantedBlock<'_, '_, B::Tables>, scratch: &mut DecodeScratch) -> Result<()> {
        let is_whole = wanted.is_whole();
        let WantedBlock { block, range, out } = wanted;
        if is_whole {
            return self.0.decode(&block, out, scratch);
        }
        if self.0.decode_range(&block, &range, out, scratch)? {
            return Ok(());
        }
        self.0.check(&block)?;
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
