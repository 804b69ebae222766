//! The fronts of chunks in blocks that were read, kept for the requests that follow.

use crate::format::chunk::ChunkHead;
use crate::kernel::prefetch;
use crate::read::locate::chunk_location::ChunkLocation;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, OnceLock};

/// A front of more bytes is not kept.
const KEPT_BYTES: usize = 4096;
/// Fronts of 64 KiB of fixed samples are shorter.
const SHORT: usize = 256;
/// The fronts of a column that are kept.
const SLOTS: usize = 1 << 14;

/// The front of a chunk, checked as the reader's policy asks.
#[derive(Debug)]
pub(in crate::read) struct ChunkFront {
    pub location: ChunkLocation,
    pub head: ChunkHead,
    /// The body up to the first block, if it is short, so that it is in the same lines of the
    /// cache.
    short: [u8; SHORT],
    /// The length of that; 0 if it is in `long`.
    short_bytes: usize,
    long: Vec<u8>,
}

impl ChunkFront {
    /// Keeps `body`, the body of a chunk up to its first block.
    pub(in crate::read) fn new(location: &ChunkLocation, head: ChunkHead, body: Vec<u8>) -> Self {
        let mut short = [0; SHORT];
        let (short_bytes, long) = match short.get_mut(..body.len()) {
            Some(to) => {
                to.copy_from_slice(&body); // equal lengths
                (body.len(), Vec::new())
            }
            None => (0, body.into_boxed_slice().into_vec()),
        };
        Self { location: *location, head, short, short_bytes, long }
    }

    /// Announces the front to the processor.
    pub(in crate::read) fn announce(&self) {
        prefetch(self.body());
    }

    /// Returns the body up to the first block.
    #[inline]
    pub(in crate::read) fn body(&self) -> &[u8] {
        match self.short_bytes {
            0 => &self.long,
            length => self.short.get(..length).unwrap_or(&[]), // at most all
        }
    }
}

/// Fronts that were read, by the number of their chunk. A front replaces any other in its slot.
///
/// Slots are never waited for: if another thread has one at the same time, the front is read again.
/// After a fork no slot is locked for ever.
#[derive(Default)]
pub(in crate::read) struct Fronts {
    slots: OnceLock<Box<[Slot]>>,
    /// The samples in the first block of the chunk whose front was read last; 0 if none was.
    pub block_samples: AtomicU64,
}

type Slot = Mutex<Option<Arc<ChunkFront>>>;

impl Fronts {
    fn slot(slots: &[Slot], chunk: u64) -> Option<&Slot> {
        slots.get(usize::try_from(chunk).ok()?.checked_rem(slots.len())?)
    }

    pub(in crate::read) fn get(&self, chunk: u64) -> Option<Arc<ChunkFront>> {
        let slot = Self::slot(self.slots.get()?, chunk)?.try_lock().ok()?;
        slot.as_ref().filter(|front| front.location.chunk == chunk).cloned()
    }

    pub(in crate::read) fn keep(&self, chunk_count: u64, front: &Arc<ChunkFront>) {
        if front.long.capacity() > KEPT_BYTES {
            return;
        }
        let slots = self.slots.get_or_init(|| {
            let count = usize::try_from(chunk_count).map_or(SLOTS, |count| count.min(SLOTS));
            (0..count).map(|_| Mutex::new(None)).collect()
        });
        if let Some(mut slot) = Self::slot(slots, front.location.chunk).and_then(|slot| slot.try_lock().ok()) {
            *slot = Some(front.clone());
        }
    }
}
