//! The interface to a GPU: memory, streams, events and kernels.
//!
//! It is a trait, so that launches can be tested without a GPU. [`cuda`](super::cuda) implements it
//! with the driver of a GPU. `emulated.rs` implements it for tests: its operations are delayed
//! until a caller waits for them, which makes a missing wait visible.

use crate::error::Result;
use bytemuck::{Pod, Zeroable};
use std::ptr::NonNull;
use std::time::Duration;

/// An address on the device.
pub(crate) type Address = u64;

/// A stream of a driver: a `CUstream` as a number, so that callers can pass their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StreamId(pub u64);

/// An event of a driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EventId(pub u64);

/// A launch of the kernel that decodes blocks. All addresses are on the device.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Launch {
    pub blocks: Address,
    pub block_count: u32,
    pub copies: Address,
    /// The number of bytes that a warp needs for the longest block.
    pub stage_bytes: u32,
    /// Memory for blocks that do not fit in shared memory, see [`Driver::scratch_bytes`].
    pub scratch: Address,
    /// The address to which the kernel writes its report.
    pub report: Address,
}

/// Samples that stay on the device. Must match `Samples` of `kernels/decode.h`. All addresses are
/// on the device.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Samples {
    pub blocks: Address,
    pub block_count: u64,
    /// Two 4-byte numbers for each sample: its block, and its first element in the block.
    pub places: Address,
    /// The number of elements of each sample, in 4 bytes. The address is 0 if every sample has
    /// `elements` elements.
    pub lengths: Address,
    pub sample_count: u64,
    pub elements: u32,
    pub conversion: u8,
    pub zero_bits: u8,
    pub delivered_bytes: u8,
    pub unused: u8,
}

/// A launch of the kernel that gathers samples. All addresses are on the device.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Gather {
    pub samples: Samples,
    /// The indices of the samples, in 8 bytes each.
    pub indices: Address,
    pub count: u32,
    pub rows: Address,
    pub row_bytes: u64,
    /// See [`Launch`] for this field and the fields below.
    pub stage_bytes: u32,
    pub scratch: Address,
    pub report: Address,
}

/// A GPU. Operations on a stream return at once, and run in the order of the stream.
pub(crate) trait Driver: Send + Sync + std::fmt::Debug {
    /// Returns the name of the GPU.
    fn name(&self) -> &str;

    /// Returns whether the GPU is emulated. If so, device memory is host memory.
    fn is_emulated(&self) -> bool;

    /// Allocates device memory, at a multiple of 16.
    fn allocate(&self, bytes: usize) -> Result<Address>;

    /// Allocates host memory that the device can copy from, at the start of a page.
    fn allocate_pinned(&self, bytes: usize) -> Result<NonNull<u8>>;

    fn new_stream(&self) -> Result<StreamId>;

    fn new_event(&self) -> Result<EventId>;

    /// Returns the number of scratch bytes that a launch needs if its warps need `stage_bytes`
    /// bytes each. Returns 0 if shared memory is enough.
    fn scratch_bytes(&self, stage_bytes: u32) -> usize;

    /// Frees device memory.
    ///
    /// # Safety
    ///
    /// [`Driver::allocate`] returned the address, it is not freed yet, and no operation uses it.
    unsafe fn free(&self, address: Address);

    /// Frees host memory.
    ///
    /// # Safety
    ///
    /// [`Driver::allocate_pinned`] returned the memory, it is not freed yet, and no operation uses
    /// it.
    unsafe fn free_pinned(&self, memory: NonNull<u8>);

    /// Destroys a stream.
    ///
    /// # Safety
    ///
    /// This driver created it, and it is not used afterwards.
    unsafe fn destroy_stream(&self, stream: StreamId);

    /// Destroys an event.
    ///
    /// # Safety
    ///
    /// Same as for [`Driver::destroy_stream`].
    unsafe fn destroy_event(&self, event: EventId);

    /// Copies to the device.
    ///
    /// # Safety
    ///
    /// Until the operation has run, both ranges stay allocated, nothing writes to the host range,
    /// and nothing else uses the device range.
    unsafe fn copy_to_device(&self, to: Address, from: NonNull<u8>, bytes: usize, on: StreamId) -> Result<()>;

    /// Copies to the host.
    ///
    /// # Safety
    ///
    /// Until the operation has run, both ranges stay allocated, nothing else uses the host range,
    /// and nothing writes to the device range.
    unsafe fn copy_to_host(&self, to: NonNull<u8>, from: Address, bytes: usize, on: StreamId) -> Result<()>;

    /// Runs the kernel that decodes blocks.
    ///
    /// # Safety
    ///
    /// Until the operation has run, all memory that the launch and its records refer to stays
    /// allocated, nothing else writes to memory that it reads, and nothing else uses memory that it
    /// writes.
    unsafe fn decode(&self, launch: Launch, on: StreamId) -> Result<()>;

    /// Runs the kernel that gathers samples.
    ///
    /// # Safety
    ///
    /// Same as for [`Driver::decode`].
    unsafe fn gather(&self, gather: Gather, on: StreamId) -> Result<()>;

    /// Records the position of a stream in an event.
    ///
    /// # Safety
    ///
    /// The stream and the event exist.
    unsafe fn record(&self, event: EventId, on: StreamId) -> Result<()>;

    /// Makes a stream wait for an event.
    ///
    /// # Safety
    ///
    /// The stream and the event exist.
    unsafe fn wait(&self, event: EventId, on: StreamId) -> Result<()>;

    /// Waits for an event on the host.
    ///
    /// # Safety
    ///
    /// The event exists.
    unsafe fn synchronize(&self, event: EventId) -> Result<()>;

    /// Returns the time from one event to another.
    ///
    /// # Safety
    ///
    /// Both events exist, and streams have reached both.
    unsafe fn elapsed(&self, from: EventId, to: EventId) -> Result<Duration>;

    /// Waits for all operations that the process has enqueued, on any stream.
    fn synchronize_all(&self) -> Result<()>;
}
