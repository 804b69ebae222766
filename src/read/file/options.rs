//! The options for opening a file.

use crate::limits;

/// The times at which a reader checks the checksum of a chunk. Heads, index pages and footers are
/// checked with any of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Verification {
    /// Checks each chunk when this reader first uses it.
    #[default]
    FirstTouch,
    /// Checks each chunk each time it is loaded.
    Always,
    /// Checks no chunk: wrong bytes may give wrong values without an error.
    Never,
}

/// The options for opening a file, and the methods that open it with them.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct OpenOptions {
    pub(in crate::read) verification: Verification,
    max_chunk_bytes: Option<u32>,
    pub(in crate::read) first_bytes: Option<u64>,
}

impl OpenOptions {
    /// Returns the defaults: each chunk is checked when it is first used, and chunks have any size
    /// that the format allows.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets when chunks are checked. The default is [`Verification::FirstTouch`].
    pub fn verification(mut self, verification: Verification) -> Self {
        self.verification = verification;
        self
    }

    /// Sets the bytes to which a chunk may decode. The default is [`limits::CHUNK_BYTES`], which
    /// the format allows.
    ///
    /// A larger chunk is refused before memory is taken for it, with an error of kind
    /// [`OverLimit`](crate::ErrorKind::OverLimit). Set this for files of strangers: a file of a few
    /// bytes can contain a sample of 4 GiB whose elements are all equal. Chunks of several samples
    /// decode to at most 64 MiB. Writers keep to some hundred KiB unless one sample is larger.
    pub fn max_chunk_bytes(mut self, bytes: u32) -> Self {
        self.max_chunk_bytes = Some(bytes);
        self
    }

    /// Opens the file as it was when it had this many bytes: at an earlier commit. The default is
    /// the last commit. A file that is shorter is opened as it is.
    ///
    /// A commit ends with its trailer. A reader of it tells the bytes up to there:
    /// [`file_bytes`](crate::Reader::file_bytes) less
    /// [`tail_bytes`](crate::Reader::tail_bytes).
    pub fn first_bytes(mut self, bytes: u64) -> Self {
        self.first_bytes = Some(bytes);
        self
    }

    /// Returns what [`OpenOptions::first_bytes`] has set, for a function that opens a source.
    pub fn told_first_bytes(&self) -> Option<u64> {
        self.first_bytes
    }

    /// Returns the limit of [`OpenOptions::max_chunk_bytes`].
    pub(in crate::read) fn chunk_bytes_limit(&self) -> u32 {
        self.max_chunk_bytes.unwrap_or(limits::CHUNK_BYTES)
    }
}
