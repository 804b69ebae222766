//! The kernels on the CPU.

use crate::block_list::{Block, BlockList, Copy, Refusal};
use tensilo::{Error, Result};

/// The order in which the lanes of a warp run: any, since no result may depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaneOrder {
    /// Turn `i` is that of lane `i * factor + offset` of 32. It is made odd.
    pub factor: u32,
    /// See `factor`.
    pub offset: u32,
}

impl Default for LaneOrder {
    /// Returns the order of the numbers.
    fn default() -> Self {
        Self { factor: 1, offset: 0 }
    }
}

/// Decodes lists on the CPU, in memory that is reused.
#[derive(Debug, Default)]
pub struct Emulator {
    order: LaneOrder,
    stage: Vec<u128>,
    blocks: Vec<Block>,
    copies: Vec<Copy>,
}

// SAFETY: the declaration of `kernels/emulate.cpp`; `Block` and `Copy` have its layout.
unsafe extern "C" {
    fn tensilo_emulate(
        blocks: *const Block,
        block_count: u32,
        copies: *const Copy,
        stage: *mut u8,
        stage_bytes: u32,
        lane_factor: u32,
        lane_offset: u32,
    ) -> u64;
}

impl Emulator {
    /// Returns an emulator whose lanes run in an order.
    pub fn new(order: LaneOrder) -> Self {
        Self { order, ..Self::default() }
    }

    /// Decodes a list to `batch`. Returns the first block that breaks a rule; what `batch` then has
    /// of it and of later blocks is any.
    ///
    /// Fails if `batch` is shorter than [`BlockList::batch_bytes`].
    pub fn decode(&mut self, list: &BlockList, batch: &mut [u8]) -> Result<Option<Refusal>> {
        if batch.len() < list.batch_bytes() {
            let message = format!("{} bytes for a batch of {}", batch.len(), list.batch_bytes());
            return Err(Error::bad_argument(message));
        }
        let bytes = list.bytes().as_ptr();
        self.blocks.clear();
        self.blocks.extend(list.blocks.iter().map(|block| Block {
            stored: bytes.wrapping_add(block.stored as usize).expose_provenance() as u64,
            tables: bytes.wrapping_add(block.tables as usize).expose_provenance() as u64,
            ..*block
        }));
        let to = batch.as_mut_ptr();
        self.copies.clear();
        self.copies.extend(
            list.copies
                .iter()
                .map(|copy| Copy { to: to.wrapping_add(copy.to as usize).expose_provenance() as u64, ..*copy }),
        );
        // exact: a block of tiers or bins has at most 2^16 elements, or kernels refuse it
        let stage_bytes = list.stage_bytes().min(1 << 24);
        self.stage.resize(stage_bytes.div_ceil(size_of::<u128>()), 0);
        let count = u32::try_from(self.blocks.len()).map_err(|_| Error::bad_argument("a list of too many blocks"))?;
        // SAFETY: `stored` and `tables` of each block are ranges of the list, which `push` has
        // appended at multiples of 16. A kernel reads nothing else of a block, whatever it has in
        // it. Each copy ends before `batch_bytes`, and is of as many elements as `push` has counted
        // there. The stage has its length. All four live as long as the call.
        let report = unsafe {
            tensilo_emulate(
                self.blocks.as_ptr(),
                count,
                self.copies.as_ptr(),
                self.stage.as_mut_ptr().cast(),
                stage_bytes as u32,
                self.order.factor,
                self.order.offset,
            )
        };
        Ok(Refusal::from_report(report))
    }
}
