//! A block in its stored form, for decoders outside this crate.
//!
//! A device such as a GPU can decode blocks in its own memory, close to the computation that uses
//! them. It receives the stored bytes of a block unchanged, and the tables of the part in a layout
//! with fixed offsets. [`StoredBlock::decode`] is the reference decoder on the CPU. It defines what
//! a device must return. If a device refuses a block, the reference decoder names the rule that the
//! block breaks.

use super::encoding::Blocked;
use super::part::{BlockEntry, Codec, StoredPart};
use super::raw::RawBlocks;
use crate::codec::{part::PartSpec, scratch::DecodeScratch};
use crate::{Error, Result};
use std::ops::Range;

/// Consecutive elements of a part, encoded independently, with everything needed to decode them.
#[derive(Clone, Copy)]
pub struct StoredBlock<'a> {
    codec: &'static dyn Codec,
    spec: PartSpec<'a>,
    tables: &'a [u8],
    bytes: &'a [u8],
}

/// Memory that decoding reuses from block to block.
#[derive(Default)]
pub struct BlockScratch(DecodeScratch);

impl std::fmt::Debug for StoredBlock<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut out = f.debug_struct("StoredBlock");
        out.field("encoding", &self.codec.name()).field("element_count", &self.element_count());
        out.field("byte_count", &self.bytes.len()).finish_non_exhaustive()
    }
}

impl<'a> StoredBlock<'a> {
    /// Returns a block of elements that are stored unchanged.
    pub(crate) fn raw(element_bytes: usize, bytes: &'a [u8]) -> Self {
        Self { codec: &Blocked(RawBlocks), spec: PartSpec::new(element_bytes, bytes.len()), tables: &[], bytes }
    }

    /// Returns the id of the encoding (chapter 5 of the specification).
    pub fn encoding(&self) -> u16 {
        self.codec.id()
    }

    /// Returns the size of an element in bytes: 1, 2, 4 or 8.
    pub fn element_bytes(&self) -> usize {
        self.spec.element_bytes
    }

    /// Returns the number of elements.
    pub fn element_count(&self) -> usize {
        self.spec.raw_bytes / self.spec.element_bytes.max(1)
    }

    /// Returns the stored bytes, without padding. In the file, blocks of tiers and bins begin at
    /// multiples of 16 bytes.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Returns the stored bytes of the tables, which all blocks of a part share. For a given
    /// encoding and element width, equal tables have the same meaning.
    pub fn tables(&self) -> &'a [u8] {
        self.tables
    }

    /// Returns the block with other stored bytes, such as a copy.
    pub fn with_bytes<'b>(self, bytes: &'b [u8]) -> StoredBlock<'b>
    where
        'a: 'b,
    {
        StoredBlock { bytes, ..self }
    }

    /// Checks the tables and appends them to `out` in the layout for devices. The tables of tiers
    /// are unchanged. The tables of bins have the layout of `kernels/bin_tables.h` in
    /// `tensilo-cuda`. The other encodings that devices decode have no tables. Fails if the tables
    /// break a rule of the specification.
    pub fn device_tables(&self, out: &mut Vec<u8>) -> Result<()> {
        self.codec.device_tables(self.spec, self.tables, out)
    }

    /// Decodes all elements to `out`, and checks all rules of the block. Fails if the length of
    /// `out` is not the decoded length of the block.
    pub fn decode(&self, out: &mut [u8], scratch: &mut BlockScratch) -> Result<()> {
        if out.len() != self.spec.raw_bytes {
            let message =
                format!("the output has {} bytes, but the block decodes to {}", out.len(), self.spec.raw_bytes);
            return Err(Error::bad_argument(message));
        }
        self.codec.decode_block(self.spec, self.tables, self.bytes, out, &mut scratch.0)
    }
}

impl StoredPart<'_> {
    /// Calls `visit` with each block that contains any of these elements, and with the range of
    /// these elements in the block, counted from its start. `elements` must not be empty.
    pub(crate) fn visit_blocks(
        &self,
        elements: &Range<usize>,
        visit: &mut dyn FnMut(StoredBlock<'_>, Range<usize>) -> Result<()>,
    ) -> Result<()> {
        self.blocks_of(elements).try_for_each(|entry| {
            let entry = entry?;
            let start = elements.start.max(entry.elements.start);
            let within = start..elements.end.min(entry.elements.end).max(start);
            let from = entry.elements.start; // at most the start
            visit(self.stored_block(&entry)?, within.start - from..within.end - from)
        })
    }

    /// Returns the block that an entry of the block index describes.
    fn stored_block(&self, entry: &BlockEntry) -> Result<StoredBlock<'_>> {
        let tables = self.block_index.tables;
        let block = self.block(&(), entry)?;
        Ok(StoredBlock { codec: self.codec(), spec: block.spec, tables, bytes: block.stored })
    }
}
