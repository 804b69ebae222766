//! Batches that a GPU decodes to memory of the caller.

use crate::error::{DataError, Result};
use crate::loader::{Batch, Counters, DeviceBatch};
use std::error::Error;
use std::mem;
use tensilo_cuda::{BatchMemory, DeviceBuffer, Gpu};

/// Memory for the batches of a GPU.
///
/// # Safety
///
/// [`DeviceAllocator::location`] describes memory on the GPU of the loader, at least as long as
/// requested, and a stream that exists. The memory stays allocated until it is
/// dropped, and until it is delivered, nothing uses it on another stream.
pub unsafe trait DeviceAllocator {
    /// Memory of a batch. Dropping it frees the memory or makes it reusable.
    type Memory;

    /// Allocates memory for a batch.
    fn allocate(&mut self, bytes: usize) -> std::result::Result<Self::Memory, Box<dyn Error + Send + Sync>>;

    /// Returns the address, length and stream of the memory.
    fn location(memory: &Self::Memory) -> BatchMemory;
}

// SAFETY: the memory is freed when it is dropped, and nothing else uses it.
unsafe impl DeviceAllocator for Gpu {
    type Memory = DeviceBuffer;

    fn allocate(&mut self, bytes: usize) -> std::result::Result<DeviceBuffer, Box<dyn Error + Send + Sync>> {
        Ok(self.new_buffer(bytes)?)
    }

    fn location(memory: &DeviceBuffer) -> BatchMemory {
        memory.as_batch()
    }
}

/// A launch and the memory that it writes to. Drop order matters: dropping the launch waits for the
/// GPU, and then the memory is freed.
pub(crate) struct LaunchInMemory<M> {
    launched: DeviceBatch,
    memory: M,
}

impl<M> LaunchInMemory<M> {
    /// Launches a batch. The memory is at least as long as the batch.
    pub(crate) fn new<A: DeviceAllocator<Memory = M>>(batch: Batch, memory: M) -> Result<Self> {
        // SAFETY: the promise of the allocator. The memory is dropped after the launch was finished
        // or dropped.
        match unsafe { batch.launch(A::location(&memory)) } {
            Ok(launched) => Ok(Self { launched, memory }),
            Err(error) => Err(leaked(error, memory)),
        }
    }

    /// Waits until the batch is decoded.
    pub(crate) fn finish(self, counters: &Counters) -> Result<(Batch, M)> {
        let Self { launched, memory } = self;
        match launched.finish_counted(counters) {
            Ok(batch) => Ok((batch, memory)),
            Err(error) => Err(leaked(error, memory)),
        }
    }
}

/// Leaks memory if the driver has failed: the GPU may still write to it.
fn leaked<M>(error: DataError, memory: M) -> DataError {
    match error {
        DataError::Gpu(_) => mem::forget(memory),
        _ => drop(memory),
    }
    error
}

impl Batch {
    /// Decodes the batch to memory of the caller, on the GPU of
    /// [`LoaderOptions::decode_on`](crate::LoaderOptions::decode_on). Returns when that is
    /// enqueued: operations that are put on the stream of the memory later see the values.
    /// [`BatchIterator::on_device`](crate::BatchIterator::on_device) does this ahead of time.
    ///
    /// Fails if the batch has no blocks, if the memory is shorter than [`Batch::device_bytes`], or
    /// if the driver fails.
    ///
    /// # Safety
    ///
    /// As [`Gpu::launch`](tensilo_cuda::Gpu::launch): the memory is on this GPU, and stays
    /// allocated until the batch was finished or dropped, or later operations of its stream have
    /// run. Nobody uses it on other streams meanwhile.
    pub unsafe fn launch(self, memory: BatchMemory) -> Result<DeviceBatch> {
        // SAFETY: the caller's promise.
        DeviceBatch::launch_with(self, |gpu, list| unsafe { gpu.launch(list, memory) })
    }
}
