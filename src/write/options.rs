//! How a file is written.

use crate::codec::Profile;
use crate::format::FileId;
use crate::{Error, Result, limits};

/// Options of a [`Writer`](crate::Writer). The same options and data give the same bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriterOptions {
    pub(super) profile: Profile,
    chunk_bytes: Option<usize>,
    pub(super) alignment: u32,
    pub(super) threads: usize,
    pub(super) check: bool,
    pub(super) file_id: Option<FileId>,
    pub(super) origin: Vec<u8>,
    pub(super) discard_tail: bool,
}

/// The least and the most that [`WriterOptions::chunk_bytes`] takes.
const CHUNK_BYTES: std::ops::RangeInclusive<usize> = 1..=32 << 20;

// also counts the bits that tell nulls
const _: () = assert!(*CHUNK_BYTES.end() + limits::CHUNK_SAMPLES as usize / 8 <= limits::SHARED_CHUNK_BYTES as usize);

impl Default for WriterOptions {
    fn default() -> Self {
        Self {
            profile: Profile::default(),
            chunk_bytes: None,
            alignment: 64,
            threads: 1,
            check: true,
            file_id: None,
            origin: Vec::new(),
            discard_tail: false,
        }
    }
}

impl WriterOptions {
    /// The default: profile [`Profile::Balanced`], its chunk size, alignment 64, one thread, and every chunk checked.
    pub fn new() -> Self {
        Self::default()
    }

    /// What to trade for what.
    pub fn profile(mut self, profile: Profile) -> Self {
        self.profile = profile;
        self
    }

    /// Decoded bytes that a chunk should have at most, 1 to 33,554,432 (32 MiB). The bits that tell
    /// nulls are not counted. A larger sample stands alone in its chunk. It is what one cold random sample costs to read. Without it,
    /// the profile decides: 64 KiB, with [`Profile::Small`] 256 KiB.
    pub fn chunk_bytes(mut self, bytes: usize) -> Self {
        self.chunk_bytes = Some(bytes);
        self
    }

    /// Whether each chunk is decoded again before it is written, and compared with what was encoded (the default). It takes less time than
    /// the encoding, and keeps what a faulty machine has made of the data out of the file.
    pub fn check_chunks(mut self, check: bool) -> Self {
        self.check = check;
        self
    }

    pub(crate) fn resolved_chunk_bytes(&self) -> usize {
        self.chunk_bytes.unwrap_or(self.profile.chunk_bytes())
    }

    /// 64 (the default), or 4096 so that chunks can be read with `O_DIRECT`: every chunk's body starts at a multiple
    /// of it.
    pub fn alignment(mut self, bytes: u32) -> Self {
        self.alignment = bytes;
        self
    }

    /// Threads that encode, 1 to 1,024. The bytes written do not depend on it.
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = threads;
        self
    }

    /// The file's id. Without it, one is derived from schema, options and [`WriterOptions::origin`].
    pub fn file_id(mut self, id: FileId) -> Self {
        self.file_id = Some(id);
        self
    }

    /// Where the data comes from (such as the metadata of the files that are converted), so that two files of the same
    /// schema have different ids. No clock and no random source takes part.
    pub fn origin(mut self, description: impl Into<Vec<u8>>) -> Self {
        self.origin = description.into();
        self
    }

    /// Only for [`Writer::append`](crate::Writer::append): whether it may cut off what stands after the last commit, even if that is intact.
    pub fn discard_tail(mut self, discard: bool) -> Self {
        self.discard_tail = discard;
        self
    }

    /// The same options, with an origin if they have none.
    pub(crate) fn origin_or(mut self, description: Vec<u8>) -> Self {
        if self.origin.is_empty() {
            self.origin = description;
        }
        self
    }

    pub(super) fn check(&self) -> Result<()> {
        let chunk_bytes = self.resolved_chunk_bytes();
        if !CHUNK_BYTES.contains(&chunk_bytes) {
            let message = format!("chunk size {chunk_bytes}: it is 1 to {} bytes", CHUNK_BYTES.end());
            return Err(Error::bad_argument(message));
        }
        if self.alignment != 64 && self.alignment != 4096 {
            return Err(Error::bad_argument(format!("alignment {}: it is 64 or 4096", self.alignment)));
        }
        if !(1..=1024).contains(&self.threads) {
            return Err(Error::bad_argument(format!("{} threads: it is 1 to 1024", self.threads)));
        }
        self.profile.check_built()
    }

    /// The id given, or one derived from what is known now.
    pub(super) fn derive_file_id(&self, schema_block: &[u8]) -> FileId {
        self.file_id.unwrap_or_else(|| {
            let mut hash = Fnv1a::new();
            hash.add(schema_block);
            hash.add(self.profile.name().as_bytes());
            hash.add(&(self.resolved_chunk_bytes() as u64).to_le_bytes()); // exact: usize has at most 64 bits
            hash.add(&self.alignment.to_le_bytes());
            hash.add(&self.origin);
            FileId(hash.0.to_le_bytes())
        })
    }
}

/// 128-bit FNV-1a (Fowler, Noll, Vo): an id needs no more than to be different, and stable for ever.
struct Fnv1a(u128);

impl Fnv1a {
    fn new() -> Self {
        Self(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d)
    }

    /// Adds `bytes` and their length, so that pieces cannot run into each other.
    fn add(&mut self, bytes: &[u8]) {
        let length = (bytes.len() as u64).to_le_bytes(); // exact: usize has at most 64 bits
        for byte in length.iter().chain(bytes) {
            self.0 = (self.0 ^ u128::from(*byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013B);
        }
    }
}
