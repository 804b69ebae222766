//! How a file is opened.

use crate::limits;

/// When a reader checks the checksum of a chunk. (Heads, index pages and footers are always
/// checked.)
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Verification {
    /// Each chunk when this reader first touches it.
    #[default]
    FirstTouch,
    /// Each chunk each time it is loaded.
    Always,
    /// Never: wrong bytes may give wrong values without an error.
    Never,
}

/// How a file is opened.
#[derive(Clone, Copy, Debug, Default)]
pub struct OpenOptions {
    pub(super) verification: Verification,
    max_chunk_bytes: Option<u32>,
}

impl OpenOptions {
    /// The default: chunks are checked on first touch.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets when chunks are checked.
    pub fn verification(mut self, verification: Verification) -> Self {
        self.verification = verification;
        self
    }

    /// Refuses chunks that decode to more than `bytes`, before memory is taken for them:
    /// [`ErrorKind::OverLimit`](crate::ErrorKind). Set it if files come from strangers: a file of a
    /// few bytes may hold a sample of 4 GiB whose elements are all equal. Chunks of several samples
    /// decode to at most 64 MiB, and writers keep to some hundred KiB unless one sample is larger.
    /// Default: what the format allows, [`limits::CHUNK_BYTES`].
    pub fn max_chunk_bytes(mut self, bytes: u32) -> Self {
        self.max_chunk_bytes = Some(bytes);
        self
    }

    /// Returns the limit of [`OpenOptions::max_chunk_bytes`].
    pub(super) fn chunk_bytes_limit(&self) -> u32 {
        self.max_chunk_bytes.unwrap_or(limits::CHUNK_BYTES)
    }
}
