//! The interfaces of encodings, and the adapter from an encoding of blocks to an encoding of parts
//! (chapter 5.12).
//!
//! An encoding implements [`BlockCodec`], which decodes a block, and [`BlockEncoder`], which plans
//! a part and encodes its blocks. From these, [`Blocked`] makes a [`Codec`] and an [`Encoder`] of
//! parts. It implements what all encodings have in common: parts with one or more blocks, the block
//! index, ranges of elements, and prefetching.
//!
//! Two methods exist for speed. [`BlockCodec::decode_two`] decodes two whole blocks at once, which
//! is faster in some encodings. [`BlockCodec::decode_range`] decodes some elements of a block; if
//! an encoding cannot do this, the whole block is decoded to scratch memory, and the elements are
//! copied.
//!
//! Before memory is allocated for a part, `check` bounds its decoded length. If only a range is
//! decoded, only the data for this range is checked, so that one sample does not cost as much as
//! all samples. Encodings keep nothing between parts except memory and choices in a scratch.

use super::part::{Block, BlockEntry, BlockIndexWriter, BlockLimits, Codec, StoredPart, check_count, outside};
use crate::bytes::memory;
use crate::codec::{
    choice::SampledPart,
    part::{Description, Geometry, PartSpec, RawPart},
    scratch::{DecodeScratch, EncodeScratch},
};
use crate::kernel::prefetch_cache_lines;
use crate::{Result, limits};
use std::ops::Range;

/// An encoding that writers use.
pub(crate) trait Encoder: Codec {
    /// Estimates the stored size of a part from a sample, in bytes. Returns `None` if only encoding
    /// can determine it.
    fn estimate(&self, _part: &mut SampledPart<'_>, _scratch: &mut EncodeScratch) -> Option<usize> {
        None
    }

    /// Estimates the stored size of a part more accurately and more slowly, after
    /// [`Self::estimate`], by encoding the blocks of its sample. Returns `None` if that would not
    /// help.
    fn estimate_by_encoding(&self, _part: &mut SampledPart<'_>, _scratch: &mut EncodeScratch) -> Result<Option<usize>> {
        Ok(None)
    }

    /// Clears `stored`, and encodes a part to it. The part must not be empty. Returns
    /// `false` if this encoding cannot express the part.
    fn encode(&self, part: RawPart<'_>, stored: &mut Vec<u8>, scratch: &mut EncodeScratch) -> Result<bool>;
}

/// The value of the field `table` if frames need no Zstandard dictionary.
#[cfg(feature = "zstd")]
pub(crate) const NO_TABLE: u32 = u32::MAX;

/// Returns the number of the column's table to which the tables of a `zstd` part refer, if any.
pub(crate) fn table_number(tables: &[u8]) -> Option<u32> {
    let table = u32::from_le_bytes(*tables.first_chunk()?);
    (table != u32::MAX).then_some(table)
}

/// The decoder of the blocks of an encoding.
pub(crate) trait BlockCodec: Sync {
    /// The tables, parsed.
    type Tables;

    /// The id in the file.
    const ID: u16;
    /// The name in the specification.
    const NAME: &'static str;
    /// The limits of.
    const LIMITS: BlockLimits = BlockLimits { max_elements: usize::MAX, block_index_align: 1, block_align: 1 };
    /// The rule that is broken if the stored bytes end within the tables.
    const TABLES_RULE: &'static str = "R-5.14";
    /// The length of the tables, for encodings that do not implement [`BlockCodec::table_bytes`].
    const TABLE_BYTES: usize = 0;
    /// Whether the stored bytes of a block are its decoded bytes.
    const IS_IDENTITY: bool = false;
    /// Whether the stored bytes are a single element that is repeated. Such a part has one block.
    const IS_CONSTANT: bool = false;
    /// Whether decoding can need a table of the column, which has a Zstandard dictionary.
    const NEEDS_TABLE: bool = false;

    /// Whether decoders outside this crate, such as GPU kernels, decode its blocks.
    const IS_DEVICE_DECODABLE: bool = false;

    /// Fails if this build cannot encode and decode parts with this encoding.
    fn check_built(&self) -> Result<()> {
        Ok(())
    }

    /// Returns the length of the tables at the start of some bytes; `None` if there are too few
    /// bytes.
    fn table_bytes(&self, _bytes: &[u8]) -> Option<usize> {
        Some(Self::TABLE_BYTES)
    }

    /// Returns the table of the column that decoding needs, if it needs one.
    fn table(&self, _tables: &[u8]) -> Option<u32> {
        None
    }

    fn parse_tables(&self, spec: PartSpec<'_>, tables: &[u8]) -> Result<Self::Tables>;

    /// Runs the checks of [`BlockCodec::parse_tables`].
    fn check_tables(&self, spec: PartSpec<'_>, tables: &[u8]) -> Result<()> {
        self.parse_tables(spec, tables).map(drop)
    }

    /// Checks tables and appends them to `out` in the layout for devices; by default, unchanged.
    fn device_tables(&self, spec: PartSpec<'_>, tables: &[u8], out: &mut Vec<u8>) -> Result<()> {
        self.check_tables(spec, tables)?;
        memory::extend(out, tables)
    }

    /// Like [`BlockCodec::parse_tables`], but can use a cache, because a sample that is read
    /// individually usually follows another sample of the same chunk.
    fn cached_tables(&self, spec: PartSpec<'_>, tables: &[u8], _scratch: &mut DecodeScratch) -> Result<Self::Tables> {
        self.parse_tables(spec, tables)
    }

    /// Refuses a block that cannot decode to its length, before memory is allocated for it.
    fn check(&self, _block: &Block<'_, Self::Tables>) -> Result<()> {
        Ok(())
    }

    /// Decodes a block to `out`, which has its decoded length.
    fn decode(&self, block: &Block<'_, Self::Tables>, out: &mut [u8], scratch: &mut DecodeScratch) -> Result<()>;

    /// Decodes two blocks, each to its entry of `outs`, which has the decoded length of the block.
    /// In some encodings, this is faster than decoding one block after another.
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
    /// `false` if this encoding cannot do this, or if decoding all elements would cost little more.
    fn decode_range(
        &self,
        _block: &Block<'_, Self::Tables>,
        _range: &Range<usize>,
        _out: &mut [u8],
        _scratch: &mut DecodeScratch,
    ) -> Result<bool> {
        Ok(false)
    }

    /// Prefetches the bytes of a block that are needed to decode some of its elements, so that
    /// cache misses overlap.
    fn prefetch(&self, block: &Block<'_, Self::Tables>, _range: &Range<usize>) {
        prefetch_cache_lines(block.stored);
    }

    /// Describes the transform in words, if the encoding has transforms.
    fn transform(&self, _tables: &Self::Tables) -> Option<String> {
        None
    }

    fn describe(&self, block: &Block<'_, Self::Tables>, description: &mut Description) -> Result<()> {
        description.add("blocks", "", block.stored);
        Ok(())
    }
}

/// The limits for blocks of tiers and bins. Counts have 16 bits, and words are aligned for vector
/// instructions and GPUs.
pub(crate) const WORD_LIMITS: BlockLimits =
    BlockLimits { max_elements: limits::BLOCK_ELEMENTS, block_index_align: 16, block_align: 16 };

/// A function that is called with the tables of a plan and a function from stored size to cost. It
/// encodes the plan, and returns whether the plan is the cheapest so far.
pub(crate) type VisitPlan<'v> = dyn FnMut(&[u8], &dyn Fn(usize) -> usize, &mut EncodeScratch) -> Result<bool> + 'v;

/// The encoder of the blocks of an encoding.
pub(crate) trait BlockEncoder: BlockCodec {
    /// Like [`Encoder::estimate`].
    fn estimate(&self, _part: &mut SampledPart<'_>, _scratch: &mut EncodeScratch) -> Option<usize> {
        None
    }

    /// Like [`Encoder::estimate_by_encoding`].
    fn estimate_by_encoding(&self, _part: &mut SampledPart<'_>, _scratch: &mut EncodeScratch) -> Result<Option<usize>> {
        Ok(None)
    }

    /// Calls `visit` with the tables of each plan for a part, after storing in `scratch` everything
    /// that encoding the blocks needs. Never calls `visit` if this encoding cannot express the
    /// part.
    fn each_plan(&self, part: RawPart<'_>, scratch: &mut EncodeScratch, visit: &mut VisitPlan<'_>) -> Result<()>;

    /// Appends the block of these elements, as planned.
    fn encode(
        &self,
        part: RawPart<'_>,
        elements: &Range<usize>,
        stored: &mut Vec<u8>,
        scratch: &mut EncodeScratch,
    ) -> Result<()>;

    /// Appends the stored bytes of a part: the planned tables and the only block, or a block index
    /// and blocks. Returns `false` if there are too many bytes; some of them may already have been
    /// appended.
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
        let Some(mut block_index) = BlockIndexWriter::new(stored, tables, geometry.blocks.len(), Self::LIMITS) else {
            return Ok(false);
        };
        for (&end, elements) in geometry.blocks.iter().zip(geometry.block_ranges()) {
            let encode = |stored: &mut Vec<u8>| self.encode(part, &elements, stored, scratch);
            if !block_index.add(end, encode)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

// ---- an encoding of parts

/// An encoding of parts, made from an encoding of blocks.
pub(crate) struct Blocked<B>(pub B);

/// Returns the elements of a range that lie in a block, relative to its start; `None` if none do.
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
            // the tables of a part that is a single block are checked when the block is decoded
            if part.block_index.has_entries() {
                self.0.check_tables(part.spec, part.block_index.tables)?;
            }
            return part.block_index.check();
        }
        // nothing else bounds the decoded length of a block
        let tables = self.0.parse_tables(part.spec, part.block_index.tables)?;
        part.block_index.check()?;
        part.block_index.blocks().try_for_each(|entry| match part.block(&tables, &entry?) {
            Ok(block) => self.0.check(&block),
            Err(_) => Ok(()), // a block that was not read is not decoded
        })
    }

    fn decode(
        &self,
        part: &StoredPart<'_>,
        elements: &Range<usize>,
        out: &mut [u8],
        scratch: &mut DecodeScratch,
    ) -> Result<bool> {
        let tables = self.0.cached_tables(part.spec, part.block_index.tables, scratch)?;
        if part.block_index.has_entries() {
            return self.decode_blocks(part, &tables, elements, out, scratch).map(|()| true);
        }
        let block = part.block(&tables, &part.block_index.block(0)?)?;
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
        let tables = self.0.cached_tables(spec, tables, scratch)?;
        let block = Block { tables: &tables, spec, stored };
        self.0.check(&block)?;
        self.0.decode(&block, out, scratch)
    }

    fn device_tables(&self, spec: PartSpec<'_>, tables: &[u8], out: &mut Vec<u8>) -> Result<()> {
        self.0.device_tables(spec, tables, out)
    }

    fn is_device_decodable(&self) -> bool {
        B::IS_DEVICE_DECODABLE
    }

    fn description(&self, part: &StoredPart<'_>) -> Result<Description> {
        let mut description = Description::default();
        let block_index = &part.block_index;
        let tables = self.0.parse_tables(part.spec, block_index.tables)?;
        if block_index.has_entries() {
            let detail = format!("tables, and entries of {} blocks", block_index.block_count());
            description.add("block index", detail, part.bytes(0..block_index.bytes).unwrap_or(&[]));
        } else {
            description.add("tables", "shared by all blocks", block_index.tables);
            description.add("padding", "zero bytes", block_index.padding);
        }
        for entry in block_index.blocks() {
            let mut block = Description::default();
            let entry = entry?;
            self.0.describe(&part.block(&tables, &entry)?, &mut block)?;
            let padding = entry.stored.end.saturating_sub(entry.padding)..entry.stored.end;
            block.add("padding", "zero bytes", part.bytes(padding).unwrap_or(&[]));
            description.add_block(block);
        }
        description.transform = self.0.transform(&tables);
        Ok(description)
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
        let mut pending: Option<BlockRequest<'_, '_, B::Tables>> = None;
        let mut entries = part.blocks_of(elements).peekable();
        while let Some(entry) = entries.next() {
            let entry = entry?;
            if part.should_prefetch()
                && let Some(Ok(next)) = entries.peek()
            {
                // blocks are too short for the hardware prefetcher to detect sequential access
                part.prefetch(next);
            }
            let range = within(&entry, elements).ok_or_else(outside)?;
            let to = out.split_off_mut(..range.len() * part.spec.element_bytes).ok_or_else(outside)?;
            let request = BlockRequest { block: part.block(tables, &entry)?, range, out: to };
            if part.should_prefetch() && !request.is_whole() {
                self.0.prefetch(&request.block, &request.range);
            }
            match pending.take() {
                Some(first) if first.is_whole() && request.is_whole() => {
                    let (blocks, outs) = ([&first.block, &request.block], [first.out, request.out]);
                    self.0.decode_two(blocks, outs, scratch)?;
                }
                first => {
                    first.map_or(Ok(()), |first| self.decode_request(first, scratch))?;
                    pending = Some(request);
                }
            }
        }
        pending.map_or(Ok(()), |last| self.decode_request(last, scratch))
    }

    fn decode_request(&self, request: BlockRequest<'_, '_, B::Tables>, scratch: &mut DecodeScratch) -> Result<()> {
        let is_whole = request.is_whole();
        let BlockRequest { block, range, out } = request;
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

/// Elements of a block to decode, and their destination.
struct BlockRequest<'p, 'o, T> {
    block: Block<'p, T>,
    /// The elements, relative to the start of the block.
    range: Range<usize>,
    /// The destination, which has the length of the elements.
    out: &'o mut [u8],
}

impl<T> BlockRequest<'_, '_, T> {
    fn is_whole(&self) -> bool {
        self.out.len() == self.block.spec.raw_bytes
    }
}

/// Returns whether a block has more elements than the encoding allows.
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

    /// Encodes a part, except for the checksum of a block index, which [`seal`](super::part::seal)
    /// sets.
    fn encode(&self, part: RawPart<'_>, stored: &mut Vec<u8>, scratch: &mut EncodeScratch) -> Result<bool> {
        stored.clear();
        if has_long_block::<B>(part.geometry) {
            return Ok(false);
        }
        let mut planned = std::mem::take(&mut scratch.planned);
        let mut min_cost = usize::MAX;
        let encoded = self.0.each_plan(part, scratch, &mut |tables, cost, scratch| {
            planned.clear();
            let is_written = self.0.append(part, tables, &mut planned, scratch)?;
            let is_best = is_written && cost(planned.len()) < min_cost;
            if is_best {
                min_cost = cost(planned.len());
                std::mem::swap(stored, &mut planned);
            }
            Ok(is_best)
        });
        scratch.planned = planned;
        encoded.map(|()| !stored.is_empty())
    }
}
