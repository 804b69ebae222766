//! Batches on a GPU, as their consumers see them.

use super::blocks::{BatchBlocks, Device};
use crate::error::{DataError, Result};
use crate::loader::deliver::batch::Batch;
use crate::loader::metrics::{Count, Counters};
use std::fmt;
use tensilo_cuda::{BlockList, Gpu, LaunchReport, PendingLaunch};

/// A batch that a GPU decodes.
///
/// Operations that are enqueued on the same stream after the launch see the values without further
/// synchronization. Shapes, nulls and text are on the host, in the columns of this batch. All other
/// values are in the batch's GPU memory, in the range that
/// [`BatchColumn::device_range`](crate::BatchColumn::device_range) returns. Dropping a
/// `DeviceBatch` waits for the GPU.
pub struct DeviceBatch {
    batch: Batch,
    launched: PendingLaunch,
    device: Device,
}

impl fmt::Debug for DeviceBatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("DeviceBatch").field(&self.batch).finish()
    }
}

impl DeviceBatch {
    /// Launches the blocks of a batch with `launch`.
    pub(crate) fn launch_with(
        mut batch: Batch,
        launch: impl FnOnce(&Gpu, BlockList) -> tensilo_cuda::Result<PendingLaunch>,
    ) -> Result<Self> {
        let missing = || DataError::BadArgument("the batch has no blocks: set LoaderOptions::decode_on".to_owned());
        let BatchBlocks { list, device, .. } = batch.blocks.take().ok_or_else(missing)?;
        let launched = launch(&device.gpu, list)?;
        Ok(Self { batch, launched, device })
    }

    /// Returns the batch, without the values that are on the GPU.
    pub fn batch(&self) -> &Batch {
        &self.batch
    }

    /// Waits until the GPU has decoded the batch, and returns it.
    ///
    /// Fails if a block breaks a rule of the specification. The error is the same as when reading
    /// the samples without a GPU: it names the file, the column, the chunk and the samples.
    pub fn finish(self) -> Result<Batch> {
        self.finish_counted(&Counters::new())
    }

    /// Like [`DeviceBatch::finish`], but also counts the work of the GPU.
    pub(crate) fn finish_counted(self, counters: &Counters) -> Result<Batch> {
        let Self { batch, launched, device } = self;
        let LaunchReport { list, refusal, copying, decoding, .. } =
            counters.time(Count::DeviceWaited, || launched.finish())?;
        counters.add(Count::CopiedBytes, list.byte_count() as u64); // exact
        counters.add_time(Count::Copying, copying);
        counters.add_time(Count::DeviceDecoding, decoding);
        device.put_list(list);
        let Some(refusal) = refusal else { return Ok(batch) };
        let read = device.read_on_host.map_or(Ok(()), |read| read(batch.indices(), batch.epoch()));
        Err(read.err().unwrap_or_else(|| {
            DataError::Internal(format!(
                "the GPU refused a block because of rule R-5.{}, but the CPU accepts it: verify the files",
                refusal.rule
            ))
        }))
    }
}
