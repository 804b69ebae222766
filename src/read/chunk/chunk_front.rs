//! The front of a chunk in blocks, as it is cached for the requests that follow.

use crate::format::chunk::ChunkHead;
use crate::kernel::prefetch;
use crate::read::locate::chunk_location::ChunkLocation;

/// A front of more bytes is not cached.
const MAX_CACHED_BYTES: usize = 4096;
/// Fronts of 64 KiB of fixed samples are shorter.
const SHORT: usize = 256;
/// The maximum number of fronts of a column that are cached.
pub(in crate::read) const CACHED_FRONTS: usize = 1 << 14;

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

    /// Returns whether the front is short enough to be cached.
    pub(in crate::read) fn is_cacheable(&self) -> bool {
        self.long.capacity() <= MAX_CACHED_BYTES
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
