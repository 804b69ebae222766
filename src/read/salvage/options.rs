//! The options for opening a damaged file.

use crate::format::ContentId;
use crate::read::file::options::Verification;
use std::ops::ControlFlow;

/// The facts of a commit that something else than the file tells.
#[derive(Clone, Copy)]
pub(super) struct KnownCommit {
    pub bytes: u64,
    pub sample_count: u64,
}

/// The options of [`salvage`](crate::salvage::salvage).
#[derive(Default)]
#[non_exhaustive]
pub struct SalvageOptions<'a> {
    pub(super) decode: bool,
    pub(super) verification: Verification,
    pub(super) commit: Option<KnownCommit>,
    pub(super) content_id: Option<ContentId>,
    pub(super) progress: Option<&'a mut dyn FnMut(u64, u64) -> ControlFlow<()>>,
}

impl<'a> SalvageOptions<'a> {
    /// Returns the defaults: the checksum of each chunk is checked, no chunk is decoded.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets whether chunks are decoded (default: no). If a chunk does not decode, its samples are
    /// lost, even if its checksum is right. Only a faulty writer causes that, no damage.
    pub fn decode(mut self, decode: bool) -> Self {
        self.decode = decode;
        self
    }

    /// Sets when the reader checks chunks again. The default is [`Verification::FirstTouch`].
    pub fn verification(mut self, verification: Verification) -> Self {
        self.verification = verification;
        self
    }

    /// Says which commit is salvaged, as a manifest knows it: the length of the file up to it, and
    /// its number of samples. Bytes after it are not read, and samples that are missing at the end
    /// are lost. By default all samples count that the file has.
    pub fn commit(mut self, bytes: u64, sample_count: u64) -> Self {
        self.commit = Some(KnownCommit { bytes, sample_count });
        self
    }

    /// Says which content id the last commit has, as a manifest knows it. Chunks are then confirmed
    /// only by an index that belongs to it. By default, the index that confirms the most chunks
    /// counts.
    pub fn content_id(mut self, content_id: ContentId) -> Self {
        self.content_id = Some(content_id);
        self
    }

    /// Sets a function that is called from time to time with two numbers: the bytes examined, and
    /// all bytes to examine. If it breaks, the work ends with an error of kind
    /// [`Cancelled`](crate::ErrorKind::Cancelled).
    pub fn progress(mut self, progress: &'a mut dyn FnMut(u64, u64) -> ControlFlow<()>) -> Self {
        self.progress = Some(progress);
        self
    }
}
