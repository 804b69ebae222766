//! The GPU of a loader, with the block lists and the pinned memory of its batches.

use crate::error::Result;
use crate::loader::deliver::memory::Pool;
use std::sync::Arc;
use tensilo::source::ReadMemory;
use tensilo::stages::{FetchedBytes, ReadPlan};
use tensilo_cuda::{BlockList, Gpu};

/// Reads samples of an epoch without a GPU.
pub(in crate::loader) type ReadOnHost = dyn Fn(&[u64], u64) -> Result<()> + Send + Sync;

/// The GPU of a loader, with lists and memory for reuse.
#[derive(Clone)]
pub(in crate::loader) struct Device {
    pub gpu: Gpu,
    pub lists: Arc<Pool<BlockList>>,
    /// Pinned memory for fetched bytes.
    pub memory: Arc<Pool<Box<dyn ReadMemory>>>,
    /// Batches smaller than this are decoded on the host and then sent.
    pub min_bytes: usize,
    /// Reads samples that the GPU refused, to find out what is wrong with them.
    pub read_on_host: Option<Arc<ReadOnHost>>,
}

/// The blocks of a batch.
pub(in crate::loader) struct BatchBlocks {
    pub list: BlockList,
    /// The size of the GPU memory that the batch needs, in bytes.
    pub bytes: usize,
    pub device: Device,
}

impl Device {
    /// Returns a GPU with pools for the lists of `batches` batches.
    pub(in crate::loader) fn new(gpu: Gpu, min_bytes: usize, batches: usize) -> Self {
        Self {
            gpu,
            lists: Pool::new(batches),
            memory: Pool::new(batches.saturating_mul(16)),
            min_bytes,
            read_on_host: None,
        }
    }

    /// Puts a list and its memory back for reuse.
    pub(in crate::loader) fn put_list(&self, mut list: BlockList) {
        list.clear();
        while let Some(memory) = list.take_unused() {
            self.memory.put(memory);
        }
        self.lists.put(list);
    }

    /// Provides pinned memory for the bytes of a plan, from which the GPU copies them. Small
    /// amounts are copied to the list instead, because a separate transfer costs more.
    pub(in crate::loader) fn give_memory(&self, plan: &ReadPlan, bytes: &mut FetchedBytes) {
        let returned = match plan.fetched_bytes() >= self.min_bytes as u64 / 4 {
            true => bytes.set_memory(Some(self.memory.take().unwrap_or_else(|| self.gpu.new_memory()))),
            false => bytes.set_memory(None),
        };
        returned.into_iter().for_each(|memory| self.memory.put(memory));
    }

    pub(in crate::loader) fn take_list(&self) -> BlockList {
        let mut list = self.lists.take().unwrap_or_else(|| self.gpu.new_list());
        list.clear();
        list
    }
}
