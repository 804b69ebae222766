//! The blocks of a batch that a GPU decodes, and the GPU.

use super::memory::Pool;
use crate::error::Result;
use std::sync::Arc;
use tensilo_cuda::{BlockList, Gpu};

/// Reads samples of an epoch without a GPU.
pub(in crate::loader) type ReadOnHost = dyn Fn(&[u64], u64) -> Result<()> + Send + Sync;

/// The GPU of a loader, and its lists.
#[derive(Clone)]
pub(in crate::loader) struct Device {
    pub gpu: Gpu,
    pub lists: Arc<Pool<BlockList>>,
    /// Batches of fewer bytes are sent decoded.
    pub min_bytes: usize,
    /// Tells what is wrong with samples that the GPU has refused.
    pub read_on_host: Option<Arc<ReadOnHost>>,
}

/// The blocks of a batch.
pub(in crate::loader) struct BatchBlocks {
    pub list: BlockList,
    /// The memory that the batch needs on the GPU.
    pub bytes: usize,
    pub device: Device,
}

impl Device {
    /// Returns a GPU with memory for the lists of so many batches.
    pub(in crate::loader) fn new(gpu: Gpu, min_bytes: usize, batches: usize) -> Self {
        Self { gpu, lists: Pool::new(batches), min_bytes, read_on_host: None }
    }

    pub(in crate::loader) fn take_list(&self) -> BlockList {
        let mut list = self.lists.take().unwrap_or_else(|| self.gpu.new_list());
        list.clear();
        list
    }
}
