//! Runs the kernels on the CPU.
//!
//! `kernels/emulate.cpp` compiles the source of the kernels for the CPU: a step of a warp is a loop
//! over 32 lanes. No result may depend on the order of the lanes, so tests vary the order.

use super::driver::{Gather, Samples};
use crate::block_list::{Block, BlockList, Copy, Refusal};
use tensilo::Result;

/// The order in which the lanes of a warp run. No result may depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaneOrder {
    /// Lane `i * factor + offset` modulo 32 runs in turn `i`. An even factor is made odd.
    pub factor: u32,
    /// See `factor`.
    pub offset: u32,
}

impl Default for LaneOrder {
    /// Returns ascending order.
    fn default() -> Self {
        Self { factor: 1, offset: 0 }
    }
}

/// Decodes lists on the CPU, in memory that is reused.
#[derive(Debug, Default)]
pub struct Emulator {
    order: LaneOrder,
    stage: Vec<u128>,
}

// SAFETY: the declarations match `kernels/emulate.cpp`; `Block`, `Copy` and `Samples` have its
// layout.
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

    fn tensilo_emulate_gather(
        samples: *const Samples,
        indices: *const i64,
        count: u32,
        rows: *mut u8,
        row_bytes: u64,
        stage: *mut u8,
        stage_bytes: u32,
        lane_factor: u32,
        lane_offset: u32,
    ) -> u64;
}

/// Gathers samples. Returns the report of the launch.
///
/// # Safety
///
/// All addresses point to live memory with the lengths that [`Gather`] states, and only this call
/// uses the rows. `stage` has `stage_bytes` bytes at a multiple of 16.
pub(crate) unsafe fn gather_at(gather: &Gather, stage: *mut u8, LaneOrder { factor, offset }: LaneOrder) -> u64 {
    let indices = std::ptr::with_exposed_provenance(gather.indices as usize);
    let rows = std::ptr::with_exposed_provenance_mut(gather.rows as usize);
    // SAFETY: upheld by the caller. Even if an index is out of range, a kernel reads only memory of
    // the arrays.
    unsafe {
        tensilo_emulate_gather(
            &raw const gather.samples,
            indices,
            gather.count,
            rows,
            gather.row_bytes,
            stage,
            gather.stage_bytes,
            factor,
            offset,
        )
    }
}

/// Decodes records. Returns the report of the launch.
///
/// # Safety
///
/// The records `blocks` and `copies` were written for a list whose memory is still allocated. The
/// destinations in `copies` are live memory that only this call uses. `stage` has `stage_bytes`
/// bytes at a multiple of 16.
pub(crate) unsafe fn decode_at(
    blocks: *const Block,
    block_count: u32,
    copies: *const Copy,
    stage: *mut u8,
    stage_bytes: u32,
    LaneOrder { factor, offset }: LaneOrder,
) -> u64 {
    // SAFETY: upheld by the caller. Even if a block is damaged, a kernel reads only the stored
    // bytes and the tables of the block.
    unsafe { tensilo_emulate(blocks, block_count, copies, stage, stage_bytes, factor, offset) }
}

impl Emulator {
    /// Returns an emulator whose lanes run in the given order.
    pub fn new(order: LaneOrder) -> Self {
        Self { order, ..Self::default() }
    }

    /// Decodes a list to `batch`. Returns the first block that breaks a rule; the content of
    /// `batch` is then unspecified.
    ///
    /// Fails if `batch` is shorter than [`BlockList::batch_bytes`].
    pub fn decode(&mut self, list: &mut BlockList, batch: &mut [u8]) -> Result<Option<Refusal>> {
        list.check_batch(batch.len())?;
        let stage_bytes = list.stage_bytes();
        self.stage.resize((stage_bytes as usize).div_ceil(size_of::<u128>()), 0);
        let address = list.reserve_records()?.as_mut_ptr().expose_provenance() as u64;
        let segments: Vec<u64> =
            list.segments()?.iter().map(|(_, bytes)| bytes.as_ptr().expose_provenance() as u64).collect();
        let layout = list.write_records(address, &segments, batch.as_mut_ptr().expose_provenance() as u64)?;
        let memory = list.reserve_records()?.as_mut_ptr();
        memory.expose_provenance();
        // SAFETY: the records were written for this memory, which has not moved since, and for this
        // batch, which is long enough. The stage has its length. All of them outlive the call.
        let report = unsafe {
            decode_at(
                memory.wrapping_add(layout.blocks).cast(),
                list.block_count() as u32, // all records lie within 4 GiB
                memory.wrapping_add(layout.copies).cast(),
                self.stage.as_mut_ptr().cast(),
                stage_bytes,
                self.order,
            )
        };
        Ok(Refusal::from_report(report))
    }
}
