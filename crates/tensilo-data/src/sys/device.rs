//! Batches that a GPU decodes into the caller's memory.
//!
//! The call that launches a batch returns before the GPU has written to this memory, so the memory
//! must outlive the launch. [`LaunchInMemory`] holds both. It drops the launch first, which waits
//! for the GPU. If the driver fails, waiting proves nothing, so the memory is leaked.

use crate::error::{DataError, Result};
use crate::loader::{Batch, Counters, DeviceBatch};
use std::error::Error;
use std::mem;
use tensilo_cuda::{BatchMemory, DeviceBuffer, Gpu};

/// Memory for the batches of a GPU.
///
/// # Safety
///
/// [`DeviceAllocator::location`] describes memory on the GPU of the loader that is at least as long
/// as requested, and a valid stream. The memory stays allocated until it is dropped. Until it is
/// delivered with its batch, it is not used on any other stream.
pub unsafe trait DeviceAllocator {
    /// The memory of a batch. Dropping it frees the memory or makes it reusable.
    type Memory;

    /// Allocates memory for a batch.
    fn allocate(&mut self, bytes: usize) -> std::result::Result<Self::Memory, Box<dyn Error + Send + Sync>>;

    /// Returns the address, length and stream of the memory.
    fn location(memory: &Self::Memory) -> BatchMemory;
}

// SAFETY: the memory is freed only when it is dropped, and nothing else uses it.
unsafe impl DeviceAllocator for Gpu {
    type Memory = DeviceBuffer;

    fn allocate(&mut self, bytes: usize) -> std::result::Result<DeviceBuffer, Box<dyn Error + Send + Sync>> {
        Ok(self.new_buffer(bytes)?)
    }

    fn location(memory: &DeviceBuffer) -> BatchMemory {
        memory.as_batch()
    }
}

/// A launch and the memory that it writes to. The order of the fields matters: dropping the launch
/// waits for the GPU, and the memory is freed after that.
pub(crate) struct LaunchInMemory<M> {
    launched: DeviceBatch,
    memory: M,
}

impl<M> LaunchInMemory<M> {
    /// Launches a batch. The memory must be at least as long as the batch.
    pub(crate) fn new<A: DeviceAllocator<Memory = M>>(batch: Batch, memory: M) -> Result<Self> {
        // SAFETY: the allocator promises valid memory and a valid stream. The memory outlives the
        // launch, which is finished or dropped first.
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

/// Leaks the memory if the driver failed, because the GPU may still write to it.
fn leaked<M>(error: DataError, memory: M) -> DataError {
    match error {
        DataError::Gpu(_) => mem::forget(memory),
        _ => drop(memory),
    }
    error
}

impl Batch {
    /// Decodes the batch into the caller's memory, on the GPU that was passed to
    /// [`LoaderOptions::decode_on`](crate::LoaderOptions::decode_on). Returns once the work is
    /// enqueued. Later operations on the stream of the memory see the values.
    /// [`BatchIterator::on_device`](crate::BatchIterator::on_device) does this ahead of time.
    ///
    /// Fails if the batch has no blocks, if the memory is shorter than [`Batch::device_bytes`], or
    /// if the driver fails.
    ///
    /// # Safety
    ///
    /// The same as for [`Gpu::launch`](tensilo_cuda::Gpu::launch). The memory is on this GPU. It
    /// stays allocated until the batch is finished or dropped, or until later operations on its
    /// stream have run. Until then, it is not used on other streams.
    pub unsafe fn launch(self, memory: BatchMemory) -> Result<DeviceBatch> {
        // SAFETY: the caller promises this.
        DeviceBatch::launch_with(self, |gpu, list| unsafe { gpu.launch(list, memory) })
    }
}
