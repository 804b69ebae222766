//! Batches that a GPU decodes to memory of the caller.

use crate::error::Result;
use crate::loader::{Batch, DeviceBatch};

impl Batch {
    /// Decodes the batch to memory of the caller, on the GPU of
    /// [`LoaderOptions::decode_on`](crate::LoaderOptions::decode_on). Returns when that is
    /// enqueued: operations that are put on the stream of the memory later see the values.
    ///
    /// Fails if the batch has no blocks, if the memory is shorter than [`Batch::device_bytes`], or
    /// if the driver fails.
    ///
    /// # Safety
    ///
    /// As [`Gpu::launch`](tensilo_cuda::Gpu::launch): the memory is on this GPU, and stays
    /// allocated until the batch was finished or dropped, or later operations of its stream have
    /// run. Nobody uses it on other streams meanwhile.
    pub unsafe fn launch(self, memory: tensilo_cuda::BatchMemory) -> Result<DeviceBatch> {
        // SAFETY: the caller's promise.
        self.launch_by(|gpu, list| unsafe { gpu.launch(list, memory) })
    }
}
