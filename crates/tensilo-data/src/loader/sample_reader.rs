//! Batches of any samples, read by the calling thread.

use super::batch_reader::BatchReader;
use super::deliver::batch::Batch;
use super::unread::Unread;
use crate::error::{DataError, Result};
#[cfg(feature = "cuda")]
use crate::sys::device::{DeviceAllocator, LaunchInMemory};
use std::fmt;

/// Reads batches of any samples, with the columns, casts and paddings of a
/// [`Loader`](super::Loader). It has no thread; each thread that reads has a reader of its own.
pub struct SampleReader(BatchReader);

impl fmt::Debug for SampleReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SampleReader")
    }
}

impl SampleReader {
    pub(super) fn new(reader: BatchReader) -> Self {
        Self(reader)
    }

    /// Reads samples of the view, in this order and repeated ones each time. Those of a mixture are
    /// of epoch 0.
    ///
    /// Fails if a sample is not in the view, or is damaged: nothing is substituted. Cost: that of a
    /// gather, and memory of the loader that is used again when the batch is dropped.
    pub fn take(&mut self, samples: &[u64]) -> Result<Batch> {
        let n = self.0.schedule.n();
        if let Some(sample) = samples.iter().find(|sample| **sample >= n) {
            let message = format!("sample {sample} of a view with {n} samples, counted from 0");
            return Err(DataError::BadArgument(message));
        }
        self.take_of(samples, 0)
    }

    /// As [`SampleReader::take`], and decodes the samples on the GPU of
    /// [`LoaderOptions::decode_on`](super::LoaderOptions::decode_on), to memory of an allocator.
    /// Returns when they are decoded.
    #[cfg(feature = "cuda")]
    pub fn take_on_device<A: DeviceAllocator>(
        &mut self,
        samples: &[u64],
        allocator: &mut A,
    ) -> Result<(Batch, A::Memory)> {
        let batch = self.take(samples)?;
        let memory = allocator.allocate(batch.device_bytes().unwrap_or(0)).map_err(DataError::Memory)?;
        LaunchInMemory::new::<A>(batch, memory)?.finish(&self.0.counters)
    }

    /// Reads samples of an epoch.
    pub(super) fn take_of(&mut self, samples: &[u64], epoch: u64) -> Result<Batch> {
        let mut columns = self.0.columns();
        self.0.fill(samples, epoch, &mut columns).map_err(Unread::into_error)?;
        let mut batch = self.0.batch(samples.to_vec(), columns, epoch);
        self.0.map(&mut batch)?;
        Ok(batch)
    }
}
