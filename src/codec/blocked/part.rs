//! The stored bytes of a part, and the block index (chapter 5.12).
//!
//! A [`BlockIndex`] has the tables that all blocks share, and an entry for each block: where it
//! ends, and the checksum that [`BlockEntry::check`] compares with its bytes. The last
//! four bytes of the block index are a checksum of the body up to that point. A part that
//! is a single block has a [`BlockIndex`] without entries. [`BlockIndexWriter`] appends blocks and
//! fills in their entries.
//!
//! A reader of one sample needs only the entries of its blocks, so each entry is checked when it is
//! used; checking all of them would cost as much as reading a sample. Parsing checks that the last
//! entry ends where the part ends, and [`BlockIndex::check`] checks everything.
//!
//! A [`StoredPart`] may hold only the block index and some of the blocks, so its body may have
//! holes. Offsets count from the start of the whole body, and a block that was not read is absent,
//! not zero-filled. The checksums of the block index and of each block are verified when the bytes
//! are read. Combined, they determine the checksum of the body, which shows whether a block index
//! belongs to the chunk.

use crate::bytes::checksum::{Crc, crc};
use crate::bytes::le::{structure, u64_of};
use crate::codec::{
    part::{Body, Description, PartSpec},
    scratch::DecodeScratch,
};
use crate::format::{index::BLOCKS, region::HEADER_BYTES};
use crate::kernel::prefetch_cache_lines;
use crate::{Error, Result};
use std::ops::Range;

structure! {
    /// Chapter 5.12: the header of a block index.
    mod block_index_header: 8 bytes {
        0 => INDEX_BYTES: u32,
        4 => BLOCK_COUNT: u32,
    }
}

structure! {
    /// Chapter 5.12: an entry of a block index.
    mod block_entry: 12 bytes {
        0 => END: u32,
        4 => STORED_END: u32,
        8 => BLOCK_CRC: u32,
    }
}

/// Chunks of at least this many stored bytes are read block by block, and shorter chunks in one
/// request.
pub(crate) const MIN_BLOCKED_BYTES: usize = 8 << 10;
pub(crate) const BLOCK_INDEX_HEADER_BYTES: usize = block_index_header::SIZE;
/// The length of the checksum at the end of a block index.
const CRC_BYTES: usize = size_of::<u32>();

/// A block index. Each entry is checked when it is used.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BlockIndex<'a> {
    /// The tables, which are required to decode any block.
    pub tables: &'a [u8],
    entries: &'a [[u8; block_entry::SIZE]],
    /// The zero bytes before the first block.
    pub(super) padding: &'a [u8],
    /// The length of the block index or, if the part is a single block, the length of tables and
    /// padding.
    pub bytes: usize,
    count: usize,
    limits: BlockLimits,
    /// The stored bytes of all blocks.
    block_bytes: usize,
}

/// The limits of for the blocks of an encoding.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BlockLimits {
    /// The maximum number of elements in a block.
    pub max_elements: usize,
    /// The length of a block index is a multiple of this.
    pub block_index_align: usize,
    /// Each block begins at a multiple of this.
    pub block_align: usize,
}

/// A block, as described by its entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BlockEntry {
    pub elements: Range<usize>,
    /// The range of the stored bytes, including padding.
    pub stored: Range<usize>,
    /// The number of zero bytes after the block.
    pub padding: usize,
    /// The checksum of the stored bytes.
    pub crc: u32,
}

impl BlockEntry {
    /// Verifies the checksum and the padding of a block.
    pub(crate) fn check(&self, stored: &[u8]) -> Result<()> {
        let found = crc(stored);
        let message = if found != self.crc {
            format!("checksum {found:08x}, expected {:08x}", self.crc)
        } else if stored.iter().rev().take(self.padding).any(|&byte| byte != 0) {
            "padding that is not zero".to_owned()
        } else {
            return Ok(());
        };
        let Range { start, end } = self.elements;
        Err(Error::corrupt("R-5.16", format!("the block of elements {start} to {end} has {message}")))
    }
}

#[cold]
fn too_many_elements(count: usize, max: usize) -> Error {
    Error::corrupt("R-5.14", format!("a block has {count} elements; at most {max} are allowed"))
}

/// Checks the number of elements of a block.
pub(super) fn check_count(count: usize, max: usize) -> Result<()> {
    if count > max { Err(too_many_elements(count, max)) } else { Ok(()) }
}

#[cold]
fn malformed(what: &str) -> Error {
    Error::corrupt("R-5.14", format!("malformed block index: {what}"))
}

/// Returns the length of the block index at the start of `stored`; `None` if there are too few
/// bytes.
pub(crate) fn block_index_bytes(stored: &[u8]) -> Option<usize> {
    usize::try_from(block_index_header::INDEX_BYTES.get(stored.first_chunk()?)).ok()
}

/// Returns an upper bound on the length of a block index of raw blocks.
pub(crate) fn max_block_index_bytes(block_count: usize) -> usize {
    block_count.saturating_mul(block_entry::SIZE).saturating_add(2 * HEADER_BYTES)
}

/// Returns the number of elements of the first block, given the start of a block index; `None` if
/// there are too few bytes. `table_bytes` returns the length of the tables at the start of its
/// argument.
pub(crate) fn first_block_elements(stored: &[u8], table_bytes: impl Fn(&[u8]) -> Option<usize>) -> Option<u32> {
    let rest = stored.get(BLOCK_INDEX_HEADER_BYTES..)?;
    let entries = rest.get(table_bytes(rest)?..)?;
    entries.first_chunk().map(|entry| block_entry::END.get(entry))
}

impl<'a> BlockIndex<'a> {
    /// Parses the tables of a part that is a single block, and the zero bytes between the tables
    /// and the block. `tables` is the length of the tables, and `rule` is the rule that is broken
    /// if the tables are cut off.
    pub(super) fn of_one_block(
        spec: PartSpec<'_>,
        limits: BlockLimits,
        tables: Option<usize>,
        rule: &'static str,
        stored: &'a [u8],
    ) -> Result<Self> {
        let (_, count) = spec.width_and_count()?;
        let split = || {
            let tables = tables?;
            let (block_index, block) = stored.split_at_checked(tables.checked_next_multiple_of(limits.block_align)?)?;
            Some((block_index.split_at_checked(tables)?, block))
        };
        let Some(((tables, padding), block)) = split() else {
            return Err(Error::corrupt(rule, "the stored bytes end within the tables"));
        };
        if padding.iter().any(|&byte| byte != 0) {
            return Err(Error::corrupt(rule, "the bytes after the tables are not zero"));
        }
        // no overflow: both are inside the stored bytes
        let bytes = tables.len() + padding.len();
        Ok(Self { tables, entries: &[], padding, bytes, count, limits, block_bytes: block.len() })
    }

    /// Returns whether the part has several blocks, each with an entry.
    pub(crate) fn has_entries(&self) -> bool {
        !self.entries.is_empty()
    }

    /// Parses the block index at the start of `stored`, for a part of `stored_bytes` bytes. Checks
    /// except for the entries. `table_bytes` returns the length of the tables at the start
    /// of its argument.
    pub(crate) fn parse(
        spec: PartSpec<'_>,
        limits: BlockLimits,
        table_bytes: impl Fn(&[u8]) -> Option<usize>,
        stored: &'a [u8],
        stored_bytes: usize,
    ) -> Result<Self> {
        let (_, count) = spec.width_and_count()?;
        let bytes = block_index_bytes(stored).ok_or_else(|| malformed("it is truncated"))?;
        let block_bytes = stored_bytes.checked_sub(bytes);
        let (Some(block_index), Some(block_bytes)) = (stored.get(..bytes), block_bytes) else {
            return Err(malformed("it reaches beyond the stored bytes"));
        };
        let Some((header, rest)) = block_index.split_first_chunk::<{ block_index_header::SIZE }>() else {
            return Err(malformed("it is truncated"));
        };
        let block_count = usize::try_from(block_index_header::BLOCK_COUNT.get(header)).unwrap_or(usize::MAX);
        let split = || {
            let (rest, _) = rest.split_last_chunk::<CRC_BYTES>()?;
            let (tables, rest) = rest.split_at_checked(table_bytes(rest)?)?;
            let (entries, padding) = rest.split_at_checked(block_count.checked_mul(block_entry::SIZE)?)?;
            Some((tables, entries.as_chunks().0, padding))
        };
        let (tables, entries, padding) =
            split().ok_or_else(|| malformed("its tables and entries exceed its length"))?;
        let block_index = Self { tables, entries, padding, bytes, count, limits, block_bytes };
        if block_count < 2 {
            return Err(malformed("it has fewer than two blocks"));
        }
        if !bytes.is_multiple_of(limits.block_index_align) || padding.len() >= limits.block_index_align {
            return Err(malformed(&format!(
                "its padding does not end at the next multiple of {}",
                limits.block_index_align
            )));
        }
        if block_index.ends() != Some((count, block_bytes)) {
            return Err(malformed("its last entry does not end where the elements and the stored bytes end"));
        }
        Ok(block_index)
    }

    /// Returns where the last block ends, in elements and in stored bytes.
    fn ends(&self) -> Option<(usize, usize)> {
        self.end(self.entries.len().checked_sub(1)?)
    }

    fn end(&self, block: usize) -> Option<(usize, usize)> {
        if !self.has_entries() {
            return (block == 0).then_some((self.count, self.block_bytes));
        }
        let entry = self.entries.get(block)?;
        let ends = (block_entry::END.get(entry), block_entry::STORED_END.get(entry));
        Some((usize::try_from(ends.0).ok()?, usize::try_from(ends.1).ok()?))
    }

    pub(crate) fn block_count(&self) -> usize {
        self.entries.len().max(1)
    }

    /// Returns a block, after checking its entry.
    pub(crate) fn block(&self, block: usize) -> Result<BlockEntry> {
        let (start, stored_start) = match block.checked_sub(1) {
            Some(before) => self.end(before).ok_or_else(|| malformed("a block is missing"))?,
            None => (0, 0),
        };
        let (end, stored_end) = self.end(block).ok_or_else(|| malformed("a block is missing"))?;
        if !self.has_entries() {
            check_count(end, self.limits.max_elements)?;
            let stored = self.bytes..self.bytes + stored_end; // the end of the part
            return Ok(BlockEntry { elements: 0..end, stored, padding: 0, crc: 0 });
        }
        let align = |at: usize| at.checked_next_multiple_of(self.limits.block_align).unwrap_or(usize::MAX);
        let stored_start = align(stored_start);
        // no padding follows the last block
        let next = if block + 1 == self.block_count() { stored_end } else { align(stored_end) };
        let is_valid = start < end
            && end <= self.count
            && end - start <= self.limits.max_elements
            && stored_start < stored_end
            && next <= self.block_bytes;
        if !is_valid {
            return Err(malformed(&format!(
                "entry {block} is out of order or out of bounds, or its block is too long"
            )));
        }
        let crc = self.entries.get(block).map_or(0, |entry| block_entry::BLOCK_CRC.get(entry));
        // no overflow: the block is inside the stored bytes
        let stored = self.bytes + stored_start..self.bytes + next;
        Ok(BlockEntry { elements: start..end, stored, padding: next - stored_end, crc })
    }

    pub(crate) fn blocks(&self) -> impl Iterator<Item = Result<BlockEntry>> {
        (0..self.block_count()).map(|block| self.block(block))
    }

    /// Returns the index of the block that contains an element, or an arbitrary index if the
    /// entries are not in ascending order.
    pub(crate) fn find(&self, element: usize) -> usize {
        let is_before = |entry: &[u8; block_entry::SIZE]| {
            usize::try_from(block_entry::END.get(entry)).is_ok_and(|end| end <= element)
        };
        self.entries.partition_point(is_before)
    }

    /// Checks all of.
    pub(crate) fn check(&self) -> Result<()> {
        if self.padding.iter().any(|&byte| byte != 0) {
            return Err(malformed("the bytes after its entries are not zero"));
        }
        self.blocks().try_for_each(|block| block.map(|_| ()))
    }
}

/// Verifies the checksum of a block index. `body` is the body of the chunk up to its first
/// block.
pub(crate) fn check_block_index(body: &[u8]) -> Result<()> {
    let (covered, stated) = body.split_last_chunk::<CRC_BYTES>().ok_or_else(|| malformed("it is truncated"))?;
    let (stated, found) = (u32::from_le_bytes(*stated), crc(covered));
    if found == stated {
        return Ok(());
    }
    let message = format!("the block index has checksum {found:08x}, expected {stated:08x}");
    Err(Error::corrupt("R-5.15", message))
}

/// Sets the checksum of the block index of a part. `before` is the body before the part.
pub(crate) fn seal(before: &[u8], stored: &mut [u8]) {
    let block_index = block_index_bytes(stored).and_then(|bytes| stored.get_mut(..bytes));
    if let Some((covered, last)) = block_index.and_then(|block_index| block_index.split_last_chunk_mut::<CRC_BYTES>()) {
        let mut crc = Crc::new();
        crc.add(before);
        crc.add(covered);
        *last = crc.finish().to_le_bytes();
    }
}

/// Writes a block index, and the blocks that it lists.
pub(crate) struct BlockIndexWriter<'a> {
    /// Ends with the block index and the blocks written so far.
    stored: &'a mut Vec<u8>,
    /// The offset of the next entry.
    entry: usize,
    /// The offset of the first block.
    blocks: usize,
    remaining: usize,
    block_align: usize,
}

impl<'a> BlockIndexWriter<'a> {
    /// Appends a block index with these tables to `stored`, for `block_count` blocks. Returns
    /// `None` if there are too many blocks.
    pub(crate) fn new(
        stored: &'a mut Vec<u8>,
        tables: &[u8],
        block_count: usize,
        BlockLimits { block_index_align, block_align, .. }: BlockLimits,
    ) -> Option<Self> {
        let start = stored.len();
        let entry = block_index_header::SIZE + tables.len();
        let entries = block_count.checked_mul(block_entry::SIZE)?;
        let block_index_bytes =
            entry.checked_add(entries)?.checked_add(CRC_BYTES)?.checked_next_multiple_of(block_index_align)?;
        let mut header = [0; block_index_header::SIZE];
        block_index_header::INDEX_BYTES.put(&mut header, u32::try_from(block_index_bytes).ok()?);
        block_index_header::BLOCK_COUNT.put(&mut header, u32::try_from(block_count).ok()?);
        stored.extend_from_slice(&header);
        stored.extend_from_slice(tables);
        let blocks = start.checked_add(block_index_bytes)?;
        stored.resize(blocks, 0);
        Some(Self { stored, entry: start + entry, blocks, remaining: block_count, block_align })
    }

    /// Appends a block that ends at element `end`; `write` appends its stored bytes. Returns
    /// `false` if there are too many bytes.
    pub(crate) fn add(&mut self, end: u32, write: impl FnOnce(&mut Vec<u8>) -> Result<()>) -> Result<bool> {
        let start = self.stored.len();
        write(self.stored)?;
        let Ok(stored_end) = u32::try_from(self.stored.len() - self.blocks) else { return Ok(false) };
        self.remaining = self.remaining.saturating_sub(1);
        if self.remaining > 0 {
            // less than 2^32 plus a few bytes
            let padded = self.blocks + (self.stored.len() - self.blocks).next_multiple_of(self.block_align);
            self.stored.resize(padded, 0);
        }
        let mut entry = [0; block_entry::SIZE];
        block_entry::END.put(&mut entry, end);
        block_entry::STORED_END.put(&mut entry, stored_end);
        block_entry::BLOCK_CRC.put(&mut entry, crc(self.stored.get(start..).unwrap_or(&[])));
        let to = self.stored.get_mut(self.entry..).and_then(<[u8]>::first_chunk_mut);
        let to = to.ok_or_else(|| Error::internal("a chunk has more blocks than were planned"))?;
        *to = entry;
        self.entry += block_entry::SIZE;
        Ok(true)
    }
}

pub(crate) struct Block<'a, T> {
    /// The tables of its part, parsed.
    pub tables: &'a T,
    /// The facts about the block, as if it were a part.
    pub spec: PartSpec<'a>,
    pub stored: &'a [u8],
}

/// The interface through which readers use any encoding.
pub(crate) trait Codec: Sync {
    // as in [`BlockCodec`](super::encoding::BlockCodec)
    fn id(&self) -> u16;
    fn name(&self) -> &'static str;
    fn check_built(&self) -> Result<()>;
    fn is_identity(&self) -> bool;
    fn is_constant(&self) -> bool;
    fn needs_table(&self) -> bool;
    fn table(&self, tables: &[u8]) -> Option<u32>;
    fn table_bytes(&self, bytes: &[u8]) -> Option<usize>;
    fn tables_rule(&self) -> &'static str;
    fn limits(&self) -> BlockLimits;

    /// See [`StoredPart::check`].
    fn check(&self, part: &StoredPart<'_>) -> Result<()>;

    /// See [`StoredPart::decode`].
    fn decode(
        &self,
        part: &StoredPart<'_>,
        elements: &Range<usize>,
        out: &mut [u8],
        scratch: &mut DecodeScratch,
    ) -> Result<bool>;

    /// Decodes a block from its stored bytes and the tables of its part, and checks both
    /// completely.
    fn decode_block(
        &self,
        spec: PartSpec<'_>,
        tables: &[u8],
        stored: &[u8],
        out: &mut [u8],
        scratch: &mut DecodeScratch,
    ) -> Result<()>;

    /// See [`StoredBlock::device_tables`](super::StoredBlock::device_tables).
    fn device_tables(&self, spec: PartSpec<'_>, tables: &[u8], out: &mut Vec<u8>) -> Result<()>;

    /// Returns whether devices decode blocks of this encoding.
    fn is_device_decodable(&self) -> bool;

    /// See [`StoredPart::description`].
    fn description(&self, part: &StoredPart<'_>) -> Result<Description>;
}

/// The parsed field `encoding` of a part: the encoding, and whether the part has several blocks.
#[derive(Clone, Copy)]
pub(crate) struct Encoding {
    codec: &'static dyn Codec,
    in_blocks: bool,
}

impl Encoding {
    pub(crate) const fn new(codec: &'static dyn Codec, in_blocks: bool) -> Self {
        Self { codec, in_blocks }
    }

    /// Returns the value of the field.
    #[inline]
    pub(crate) fn field(self) -> u16 {
        self.codec.id() | if self.in_blocks { BLOCKS } else { 0 }
    }

    #[inline]
    pub(crate) fn is_in_blocks(self) -> bool {
        self.in_blocks
    }

    /// Returns the number of the column's table that decoding needs, if it needs one. `stored`
    /// begins with the stored bytes of the part. If these bytes are cut off, [`Encoding::parse`]
    /// refuses them.
    pub(crate) fn table(self, stored: &[u8]) -> Option<u32> {
        let stored = if self.in_blocks { stored.get(BLOCK_INDEX_HEADER_BYTES..)? } else { stored };
        self.codec.table(stored.get(..self.codec.table_bytes(stored)?)?)
    }

    /// Parses the block index, or the tables, of the part that is stored in `range` of a body.
    pub(crate) fn parse<'a>(self, spec: PartSpec<'a>, body: Body<'a>, range: &Range<usize>) -> Result<StoredPart<'a>> {
        let Self { codec, in_blocks } = self;
        let block_index = if in_blocks {
            let stored = body.start().get(range.start..).unwrap_or(&[]);
            BlockIndex::parse(spec, codec.limits(), |bytes| codec.table_bytes(bytes), stored, range.len())?
        } else {
            let stored = body.get(range.clone()).ok_or_else(outside)?;
            BlockIndex::of_one_block(spec, codec.limits(), codec.table_bytes(stored), codec.tables_rule(), stored)?
        };
        Ok(StoredPart { encoding: self, spec, block_index, body, range: range.clone() })
    }
}

impl std::ops::Deref for Encoding {
    type Target = dyn Codec;

    #[inline]
    fn deref(&self) -> &Self::Target {
        self.codec
    }
}

/// The stored bytes of a part. If the part has several blocks, possibly only the block index and
/// some blocks were read.
pub(crate) struct StoredPart<'a> {
    encoding: Encoding,
    pub(super) spec: PartSpec<'a>,
    pub block_index: BlockIndex<'a>,
    body: Body<'a>,
    /// The range of the part in the body.
    range: Range<usize>,
}

impl<'a> StoredPart<'a> {
    /// Runs the checks that bound the decoded length of the part, before memory is allocated for
    /// it. If the part has several blocks, also checks the block index.
    pub(crate) fn check(&self) -> Result<()> {
        self.encoding.codec.check(self)
    }

    /// Decodes `elements`, a range that is not empty, into `out`, which has its decoded length.
    /// Returns `false` if the part is a single block, and the encoding either cannot decode only
    /// these elements or would save little by doing so.
    ///
    /// Before a call that decodes all elements, [`StoredPart::check`] must pass. Decoding only some
    /// elements does not require that: this function then checks the data that it needs, so that
    /// one sample does not cost as much as all samples.
    pub(crate) fn decode(&self, elements: &Range<usize>, out: &mut [u8], scratch: &mut DecodeScratch) -> Result<bool> {
        self.encoding.codec.decode(self, elements, out, scratch)
    }

    /// Returns the number of the column's table that decoding needs, if it needs one.
    pub(crate) fn table(&self) -> Option<u32> {
        self.encoding.codec.table(self.block_index.tables)
    }

    pub(super) fn codec(&self) -> &'static dyn Codec {
        self.encoding.codec
    }

    /// Describes the sections of a part for which [`StoredPart::check`] has passed.
    pub(crate) fn description(&self) -> Result<Description> {
        self.encoding.codec.description(self)
    }

    /// Returns a range of the stored bytes, if it was read.
    pub(super) fn bytes(&self, range: Range<usize>) -> Option<&'a [u8]> {
        // no overflow: inside the body
        self.body.get(self.range.start + range.start..self.range.start + range.end)
    }

    /// Returns whether to prefetch blocks into the CPU cache. This helps only if the file is
    /// mapped, because otherwise their bytes have just been read.
    pub(super) fn should_prefetch(&self) -> bool {
        self.body.is_mapped()
    }

    pub(super) fn prefetch(&self, entry: &BlockEntry) {
        prefetch_cache_lines(self.bytes(entry.stored.clone()).unwrap_or(&[]));
    }

    fn range(&self, entry: &BlockEntry) -> Range<usize> {
        // no overflow: inside the body
        self.range.start + entry.stored.start..self.range.start + entry.stored.end
    }

    pub(super) fn block<'t, T>(&'t self, tables: &'t T, entry: &BlockEntry) -> Result<Block<'t, T>> {
        let stored = self.bytes(entry.stored.clone()).ok_or_else(outside)?;
        let stored = stored.get(..stored.len().saturating_sub(entry.padding)).unwrap_or(stored);
        let raw_bytes = entry.elements.len().checked_mul(self.spec.element_bytes).ok_or_else(outside)?;
        Ok(Block { tables, spec: PartSpec { raw_bytes, ..self.spec }, stored })
    }

    pub(crate) fn check_crcs(&self) -> Result<()> {
        self.check_block_index()?;
        self.check_crcs_of(&(0..self.block_index.block_count()))
    }

    pub(crate) fn check_block_index(&self) -> Result<()> {
        // no overflow: inside the body
        check_block_index(self.body.start().get(..self.range.start + self.block_index.bytes).ok_or_else(outside)?)
    }

    /// Checks that the block index belongs to a chunk whose body has the checksum `body_crc`. This
    /// works even if blocks are damaged. The bytes up to the first block and the checksums in the
    /// entries determine the checksum of the whole body; the block index of a different chunk would
    /// lead to a different checksum.
    pub(crate) fn check_belongs(&self, body_crc: u32) -> Result<()> {
        let mut crc = Crc::new();
        // no overflow, as above
        crc.add(self.body.start().get(..self.range.start + self.block_index.bytes).ok_or_else(outside)?);
        for entry in self.block_index.blocks() {
            let entry = entry?;
            crc.add_known(entry.crc, u64_of(entry.stored.len()));
        }
        let found = crc.finish();
        if found == body_crc {
            return Ok(());
        }
        let message = format!(
            "the block index belongs to another chunk: it implies the body checksum {found:08x}, not {body_crc:08x}"
        );
        Err(Error::corrupt("R-2.6", message))
    }

    /// Returns the byte range, in the body, of the blocks that contain a non-empty range of decoded
    /// bytes.
    pub(crate) fn stored_range(&self, bytes: &Range<usize>) -> Result<Range<usize>> {
        self.range_of(&self.blocks_at(bytes))
    }

    /// Returns the byte range, in the body, of a non-empty range of blocks. Checks the entry of
    /// every block, to ensure that the entries are in ascending order.
    pub(crate) fn range_of(&self, blocks: &Range<usize>) -> Result<Range<usize>> {
        let Range { start, mut end } = self.range(&self.block_index.block(blocks.start)?);
        for block in blocks.clone().skip(1) {
            end = self.range(&self.block_index.block(block)?).end;
        }
        Ok(start..end)
    }

    /// Returns the blocks that contain a non-empty range of decoded bytes.
    pub(crate) fn blocks_at(&self, bytes: &Range<usize>) -> Range<usize> {
        let w = self.spec.element_bytes; // at least 1
        self.block_index.find(bytes.start / w)..self.block_index.find(bytes.end.saturating_sub(1) / w) + 1
    }

    /// Returns the range of a block in the decoded bytes.
    pub(crate) fn decoded_range(&self, block: usize) -> Result<Range<usize>> {
        let elements = self.block_index.block(block)?.elements;
        let byte_of = |element: usize| element.saturating_mul(self.spec.element_bytes);
        Ok(byte_of(elements.start)..byte_of(elements.end))
    }

    pub(crate) fn raw_bytes(&self) -> usize {
        self.spec.raw_bytes
    }

    /// Returns whether all of these blocks were read.
    pub(crate) fn has_blocks(&self, blocks: &Range<usize>) -> Result<bool> {
        Ok(self.body.get(self.range_of(blocks)?).is_some())
    }

    pub(crate) fn check_crcs_of(&self, blocks: &Range<usize>) -> Result<()> {
        blocks.clone().try_for_each(|block| {
            let entry = self.block_index.block(block)?;
            entry.check(self.body.get(self.range(&entry)).ok_or_else(outside)?)
        })
    }

    pub(super) fn blocks_of(&self, elements: &Range<usize>) -> impl Iterator<Item = Result<BlockEntry>> {
        let last = self.block_index.find(elements.end.saturating_sub(1));
        (self.block_index.find(elements.start)..=last).map(|block| self.block_index.block(block))
    }

    /// Returns the byte range, in the body, of the decoded bytes of a raw part.
    pub(crate) fn raw(&self) -> Result<Range<usize>> {
        self.check_raw()?;
        Ok(self.range.start + self.block_index.bytes..self.range.end) // inside the part
    }

    /// Checks the block index of a raw part: for each block. Without this check,
    /// values could lie outside the blocks whose checksums are verified.
    pub(crate) fn check_raw(&self) -> Result<()> {
        self.block_index.check()?;
        for entry in self.block_index.blocks() {
            let entry = entry?;
            if Some(entry.stored.len()) != entry.elements.len().checked_mul(self.spec.element_bytes) {
                return Err(Error::corrupt("R-5.3", "a raw block is not as long as its decoded bytes"));
            }
        }
        Ok(())
    }
}

#[cold]
pub(super) fn outside() -> Error {
    Error::internal("a block lies outside its chunk")
}
