//! The memory of batches: the caller's, or the loader's own, which is reused.
//!
//! When a batch is dropped, its memory goes into a [`Pool`], and the next batch to be read takes it
//! from there. Memory of the caller goes back to the caller instead.

use crate::error::{DataError, Result};
use std::process;
use std::sync::{Arc, Mutex};

/// Memory for the values of a column of a batch.
pub trait BatchMemory: Send + Sync {
    /// Returns the bytes for reading.
    fn bytes(&self) -> &[u8];
    /// Returns the bytes for writing.
    fn bytes_mut(&mut self) -> &mut [u8];
}

/// A caller's source of memory for batches, such as pinned memory that a device copies from.
pub trait BatchAllocator: Send + Sync {
    /// Returns exactly `byte_count` bytes of memory, with any contents. The memory must be aligned
    /// for the elements of columns, that is, to at least 8 bytes. Threads of the loader call this
    /// for each column of each batch.
    fn allocate(&self, byte_count: usize) -> Result<Box<dyn BatchMemory>>;
}

/// The alignment of the loader's own memory: the size of a page.
const ALIGNMENT: usize = 4096;

/// The loader's own memory.
#[derive(Debug, Default)]
pub(in crate::loader) struct AlignedBuffer {
    /// Contains the aligned memory, which starts at the first address that is a multiple of
    /// [`ALIGNMENT`].
    storage: Vec<u8>,
    start: usize,
    byte_count: usize,
}

impl AlignedBuffer {
    /// Changes the length. The contents are then unspecified.
    pub(in crate::loader) fn resize(&mut self, byte_count: usize) -> Result<()> {
        let needed = byte_count.saturating_add(ALIGNMENT);
        if self.storage.len() < needed {
            self.storage = Vec::new();
            self.storage.try_reserve_exact(needed).map_err(|_| too_large(byte_count))?;
            self.storage.resize(needed, 0);
            // if `align_offset` fails, it returns `usize::MAX`, and the memory stays unaligned
            self.start = self.storage.as_ptr().align_offset(ALIGNMENT).min(ALIGNMENT);
        }
        self.byte_count = byte_count;
        Ok(())
    }
}

impl BatchMemory for AlignedBuffer {
    fn bytes(&self) -> &[u8] {
        self.storage.get(self.start..).and_then(|rest| rest.get(..self.byte_count)).unwrap_or(&[])
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        let from_start = self.storage.get_mut(self.start..);
        from_start.and_then(|rest| rest.get_mut(..self.byte_count)).unwrap_or(&mut [])
    }
}

#[cold]
pub(in crate::loader) fn too_large(byte_count: usize) -> DataError {
    DataError::BadArgument(format!("a batch needs {byte_count} bytes, which do not fit in memory: use smaller batches"))
}

/// A pool of items for reuse. In a forked process, the pool does nothing, because its lock may be
/// held by a thread that exists only in the parent.
#[derive(Debug)]
pub(in crate::loader) struct Pool<T> {
    process: u32,
    max_items: usize,
    free: Mutex<Vec<T>>,
}

impl<T> Pool<T> {
    /// Returns a pool of at most `max_items` free items.
    pub(in crate::loader) fn new(max_items: usize) -> Arc<Self> {
        Arc::new(Self { process: process::id(), max_items, free: Mutex::default() })
    }

    /// Takes a free item, if there is one.
    pub(in crate::loader) fn take(&self) -> Option<T> {
        let is_mine = self.process == process::id();
        if is_mine { self.free.lock().ok()?.pop() } else { None }
    }

    /// Puts an item back, or drops it if the pool is full.
    pub(in crate::loader) fn put(&self, item: T) {
        if self.process == process::id()
            && let Ok(mut free) = self.free.lock()
            && free.len() < self.max_items
        {
            free.push(item);
        }
    }
}
