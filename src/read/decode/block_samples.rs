//! Blocks that are handed out as they are stored, in place of samples.
//!
//! Blocks of encodings that devices do not decode are decoded here, and handed out as raw elements:
//! who takes blocks needs no other way for them.

use crate::Result;
use crate::codec::{Body, StoredBlock};
use crate::pod::AlignedBytes;
use crate::read::buffer::outside;
use crate::read::chunk::open_chunk::OpenChunk;
use crate::read::file::opened_column::OpenedColumn;
use std::ops::Range;

/// Elements of a stored block that a request wants.
#[derive(Clone, Debug)]
pub struct BlockSamples<'a> {
    /// The block; its bytes were checked as the reader's policy asks.
    pub block: StoredBlock<'a>,
    /// The elements, counted from the start of the block. There is at least one.
    pub elements: Range<usize>,
    /// The position in the request of the sample that the place of the elements is counted from.
    pub position: usize,
    /// The bytes between the start of the values of that sample and the elements. If samples follow
    /// each other in file and request, these can be the elements of several.
    pub offset: usize,
}

/// What takes the blocks of a request.
pub type VisitBlocks<'v> = dyn FnMut(BlockSamples<'_>) -> Result<()> + 'v;

/// Hands out blocks.
pub(in crate::read) struct VisitedBlocks<'o> {
    pub visit: &'o mut VisitBlocks<'o>,
    /// Elements that were decoded here.
    pub decoded: &'o mut AlignedBytes,
}

impl VisitedBlocks<'_> {
    pub(super) fn raw(&mut self, position: usize, element_bytes: usize, elements: &[u8]) -> Result<()> {
        if elements.is_empty() {
            return Ok(());
        }
        let block = StoredBlock::raw(element_bytes, elements);
        (self.visit)(BlockSamples { elements: 0..block.element_count(), block, position, offset: 0 })
    }

    /// Hands out the blocks with bytes of the values of a chunk, which are those of samples from
    /// `position` on.
    pub(super) fn hand_out(
        &mut self,
        position: usize,
        chunk: &mut OpenChunk,
        column: &OpenedColumn,
        body: Body<'_>,
        values: &Range<usize>,
    ) -> Result<()> {
        let element_bytes = column.layout().element_bytes;
        let (visit, mut offset) = (&mut *self.visit, 0_usize);
        let is_handed_out = chunk.visit_blocks(column, body, values, &mut |block, elements| {
            let bytes = elements.len().saturating_mul(element_bytes);
            visit(BlockSamples { block, elements, position, offset })?;
            offset = offset.saturating_add(bytes);
            Ok(())
        })?;
        if is_handed_out {
            return Ok(());
        }
        if chunk.is_mapped() {
            let stored = chunk.content(body).values.get(values.clone());
            return self.raw(position, element_bytes, stored.ok_or_else(outside)?);
        }
        chunk.check_length(body, values)?;
        let mut decoded = std::mem::take(self.decoded);
        let delivered = decoded.resize(values.len()).and_then(|()| {
            chunk.copy(column, body, values, decoded.as_mut_slice())?;
            self.raw(position, element_bytes, decoded.as_slice())
        });
        *self.decoded = decoded;
        delivered
    }
}
