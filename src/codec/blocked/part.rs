//! The stored bytes of a part: its front, and the blocks that were read.
//!
//! A part is one block behind its tables, or several behind a front with a directory (5.12). Of the
//! latter, a reader of one sample reads the front and the blocks that the sample needs, so the body
//! may have holes. Offsets are those of the whole body; a block that was not read is absent,
//! never zero. Checksums of the front and of each block are checked when the
//! bytes are read; together they give the checksum of the body, which tells whether a front belongs
//! to its chunk.

use super::front::{BlockEntry, BlockLimits, FRONT_HEAD_BYTES, Front, check_front};
use crate::checksum::Crc;
use crate::codec::{
    part::{Anatomy, Body, PartSpec},
    scratch::DecodeScratch,
};
use crate::format::index::BLOCKS;
use crate::kernel::prefetch;
use crate::le::u64_of;
use crate::{Error, Result};
use std::ops::Range;

pub(crate) struct Block<'a, T> {
    /// The tables of its part, parsed.
    pub tables: &'a T,
    /// The facts about the block. Its elements are those of a part.
    pub spec: PartSpec<'a>,
    pub stored: &'a [u8],
}

/// An encoding: what a reader asks of one that it does not know.
pub(crate) trait Codec: Sync {
    // the facts of [`BlockCodec`](crate::codec::encoding::BlockCodec)
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

    /// Decodes a block alone: the tables of its part, and its stored bytes. Checks all of both.
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
    fn is_for_devices(&self) -> bool;

    /// See [`StoredPart::anatomy`].
    fn anatomy(&self, part: &StoredPart<'_>) -> Result<Anatomy>;
}

/// What the field `encoding` of a part states: its encoding, and whether it is in several blocks.
#[derive(Clone, Copy)]
pub(crate) struct Encoding {
    codec: &'static dyn Codec,
    in_blocks: bool,
}

impl Encoding {
    pub(crate) const fn new(codec: &'static dyn Codec, in_blocks: bool) -> Self {
        Self { codec, in_blocks }
    }

    /// Returns the field.
    #[inline]
    pub(crate) fn field(self) -> u16 {
        self.codec.id() | if self.in_blocks { BLOCKS } else { 0 }
    }

    #[inline]
    pub(crate) fn is_in_blocks(self) -> bool {
        self.in_blocks
    }

    /// Returns the table of the column that decoding needs, if it needs one. `stored` begins with
    /// the stored bytes of the part; if they are cut off, [`Encoding::parse`] refuses them.
    pub(crate) fn table(self, stored: &[u8]) -> Option<u32> {
        let stored = if self.in_blocks { stored.get(FRONT_HEAD_BYTES..)? } else { stored };
        self.codec.table(stored.get(..self.codec.table_bytes(stored)?)?)
    }

    /// Parses the front of the part that is stored in `range` of a body.
    pub(crate) fn parse<'a>(self, spec: PartSpec<'a>, body: Body<'a>, range: &Range<usize>) -> Result<StoredPart<'a>> {
        let Self { codec, in_blocks } = self;
        let front = if in_blocks {
            let stored = body.start().get(range.start..).unwrap_or(&[]);
            Front::parse(spec, codec.limits(), |bytes| codec.table_bytes(bytes), stored, range.len())?
        } else {
            let stored = body.get(range.clone()).ok_or_else(outside)?;
            Front::of_one_block(spec, codec.limits(), codec.table_bytes(stored), codec.tables_rule(), stored)?
        };
        Ok(StoredPart { encoding: self, spec, front, body, range: range.clone() })
    }
}

impl std::ops::Deref for Encoding {
    type Target = dyn Codec;

    #[inline]
    fn deref(&self) -> &Self::Target {
        self.codec
    }
}

/// The stored bytes of a part; if it is in blocks, perhaps only the front and some blocks were
/// read.
pub(crate) struct StoredPart<'a> {
    encoding: Encoding,
    pub(super) spec: PartSpec<'a>,
    pub front: Front<'a>,
    body: Body<'a>,
    /// Where it is in the body.
    range: Range<usize>,
}

impl<'a> StoredPart<'a> {
    /// Checks what bounds the decoded length of the part, before memory is taken for it; and the
    /// front, if the part is in blocks.
    pub(crate) fn check(&self) -> Result<()> {
        self.encoding.codec.check(self)
    }

    /// Decodes some elements, at least one, to `out`, which has their length. Returns `false` if
    /// the part is one block and the encoding cannot decode only these, or not much faster than
    /// all.
    ///
    /// [`StoredPart::check`] need not have passed, unless these are all elements. This function
    /// checks as much of it as it needs, so that one sample does not cost as much as all.
    pub(crate) fn decode(&self, elements: &Range<usize>, out: &mut [u8], scratch: &mut DecodeScratch) -> Result<bool> {
        self.encoding.codec.decode(self, elements, out, scratch)
    }

    /// Returns the table of the column that decoding needs, if it needs one.
    pub(crate) fn table(&self) -> Option<u32> {
        self.encoding.codec.table(self.front.tables)
    }

    pub(super) fn codec(&self) -> &'static dyn Codec {
        self.encoding.codec
    }

    /// Describes the sections of a part for which [`StoredPart::check`] has passed.
    pub(crate) fn anatomy(&self) -> Result<Anatomy> {
        self.encoding.codec.anatomy(self)
    }

    /// Returns some stored bytes, if they were read.
    pub(super) fn bytes(&self, range: Range<usize>) -> Option<&'a [u8]> {
        // inside the body
        self.body.get(self.range.start + range.start..self.range.start + range.end)
    }

    /// Returns whether to announce blocks to the processor: the bytes were not just read.
    pub(super) fn is_announced(&self) -> bool {
        self.body.is_mapped()
    }

    pub(super) fn announce(&self, entry: &BlockEntry) {
        prefetch(self.bytes(entry.stored.clone()).unwrap_or(&[]));
    }

    fn range(&self, entry: &BlockEntry) -> Range<usize> {
        // inside the body
        self.range.start + entry.stored.start..self.range.start + entry.stored.end
    }

    pub(super) fn block<'t, T>(&'t self, tables: &'t T, entry: &BlockEntry) -> Result<Block<'t, T>> {
        let stored = self.bytes(entry.stored.clone()).ok_or_else(outside)?;
        let stored = stored.get(..stored.len().saturating_sub(entry.padding)).unwrap_or(stored);
        let raw_bytes = entry.elements.len().checked_mul(self.spec.element_bytes).ok_or_else(outside)?;
        Ok(Block { tables, spec: PartSpec { raw_bytes, ..self.spec }, stored })
    }

    pub(crate) fn check_crcs(&self) -> Result<()> {
        self.check_front()?;
        self.check_crcs_of(&(0..self.front.block_count()))
    }

    pub(crate) fn check_front(&self) -> Result<()> {
        // inside the body
        check_front(self.body.start().get(..self.range.start + self.front.bytes).ok_or_else(outside)?)
    }

    /// Checks that the front belongs to a chunk whose body has the checksum `body_crc`, even if
    /// blocks are damaged: the bytes up to the first block and the checksums that the directory
    /// states give the checksum of the whole body. A front of another chunk gives another one.
    pub(crate) fn check_belongs(&self, body_crc: u32) -> Result<()> {
        let mut crc = Crc::new();
        // exact, as above
        crc.add(self.body.start().get(..self.range.start + self.front.bytes).ok_or_else(outside)?);
        for entry in self.front.blocks() {
            let entry = entry?;
            crc.add_known(entry.crc, u64_of(entry.stored.len()));
        }
        let found = crc.finish();
        if found == body_crc {
            return Ok(());
        }
        let message = format!(
            "the front is that of another chunk: with its blocks it gives the checksum {found:08x}, not {body_crc:08x}"
        );
        Err(Error::corrupt("R-2.6", message))
    }

    /// Returns the range in the body of the blocks that bytes of the elements need, which are at
    /// least one.
    pub(crate) fn stored_range(&self, bytes: &Range<usize>) -> Result<Range<usize>> {
        self.range_of(&self.blocks_at(bytes))
    }

    /// Returns the range in the body of some blocks, by their numbers, which are at least one. The
    /// entries of all of them are checked: only then they ascend from the first to the last.
    pub(crate) fn range_of(&self, blocks: &Range<usize>) -> Result<Range<usize>> {
        let Range { start, mut end } = self.range(&self.front.block(blocks.start)?);
        for block in blocks.clone().skip(1) {
            end = self.range(&self.front.block(block)?).end;
        }
        Ok(start..end)
    }

    /// Returns the numbers of the blocks that bytes of the elements need, which are at least one.
    pub(crate) fn blocks_at(&self, bytes: &Range<usize>) -> Range<usize> {
        let w = self.spec.element_bytes; // at least 1
        self.front.find(bytes.start / w)..self.front.find(bytes.end.saturating_sub(1) / w) + 1
    }

    /// Returns the bytes of a block among the decoded bytes, by its number.
    pub(crate) fn decoded_range(&self, block: usize) -> Result<Range<usize>> {
        let elements = self.front.block(block)?.elements;
        let byte_of = |element: usize| element.saturating_mul(self.spec.element_bytes);
        Ok(byte_of(elements.start)..byte_of(elements.end))
    }

    pub(crate) fn raw_bytes(&self) -> usize {
        self.spec.raw_bytes
    }

    /// Returns whether some blocks were read, by their numbers.
    pub(crate) fn has_blocks(&self, blocks: &Range<usize>) -> Result<bool> {
        Ok(self.body.get(self.range_of(blocks)?).is_some())
    }

    pub(crate) fn check_crcs_of(&self, blocks: &Range<usize>) -> Result<()> {
        blocks.clone().try_for_each(|block| {
            let entry = self.front.block(block)?;
            entry.check(self.body.get(self.range(&entry)).ok_or_else(outside)?)
        })
    }

    pub(super) fn blocks_of(&self, elements: &Range<usize>) -> impl Iterator<Item = Result<BlockEntry>> {
        let last = self.front.find(elements.end.saturating_sub(1));
        (self.front.find(elements.start)..=last).map(|block| self.front.block(block))
    }

    /// Returns the range in the body of the decoded bytes, which are the stored ones.
    pub(crate) fn raw(&self) -> Result<Range<usize>> {
        self.check_raw()?;
        Ok(self.range.start + self.front.bytes..self.range.end) // inside the part
    }

    /// Checks the front of a part whose stored bytes are the decoded ones: of
    /// each block. Else values would not be those of the blocks whose checksums are compared.
    pub(crate) fn check_raw(&self) -> Result<()> {
        self.front.check()?;
        for entry in self.front.blocks() {
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
