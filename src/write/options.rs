//! The options of a writer, and the file id that is derived from them.
//!
//! Files written with the same options and data are identical, byte for byte. So a file's id is not
//! random: it is a hash of the schema, of the options that change bytes, and of a description of
//! the data's origin.
//!
//! A column can have its own profile. Sizes that are not set come from the profile.

use crate::bytes::le::u64_of;
use crate::codec::{Profile, Search};
use crate::format::FileId;
use crate::format::Schema;
#[cfg(feature = "import")]
use crate::format::schema_block;
use crate::{Error, Result, limits};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The options of a [`Writer`](crate::Writer). Files written with the same options and data are
/// identical, byte for byte.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WriterOptions {
    pub(super) profile: Profile,
    column_profiles: BTreeMap<String, Profile>,
    pub(super) search: Search,
    chunk_bytes: Option<usize>,
    block_bytes: BlockSize,
    pub(super) alignment: u32,
    pub(super) threads: usize,
    pub(super) check: bool,
    pub(super) file_id: Option<FileId>,
    pub(super) origin: Vec<u8>,
    pub(super) discard_tail: bool,
}

/// The block size, as the caller set it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BlockSize {
    OfProfile,
    Set(Option<usize>),
}

/// The range of [`WriterOptions::block_bytes`]. A block with the maximum number of elements of the
/// widest type takes 8 bytes less than the upper bound.
const BLOCK_BYTES: std::ops::RangeInclusive<usize> = 1 << 10..=512 << 10;
const _: () = assert!((limits::BLOCK_ELEMENTS + 1) * 8 == *BLOCK_BYTES.end());

/// The range of [`WriterOptions::chunk_bytes`].
const CHUNK_BYTES: std::ops::RangeInclusive<usize> = 1..=32 << 20;

// The limit of includes the validity, which has one bit per entry. Every entry takes at
// least one byte of shape or values, unless it is a sample or an item without elements.
const MAX_VALIDITY_BYTES: usize =
    *CHUNK_BYTES.end() / 8 + (limits::CHUNK_SAMPLES + limits::EMPTY_ITEMS) as usize / 8 + 1 + limits::LEVELS;
const _: () = assert!(*CHUNK_BYTES.end() + MAX_VALIDITY_BYTES <= limits::SHARED_CHUNK_BYTES as usize);

impl Default for WriterOptions {
    fn default() -> Self {
        Self {
            profile: Profile::default(),
            column_profiles: BTreeMap::new(),
            search: Search::new(),
            chunk_bytes: None,
            block_bytes: BlockSize::OfProfile,
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
    /// Returns the defaults: profile [`Profile::Balanced`] with its chunk and block size, alignment
    /// 64, one thread, and a check of every chunk.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the profile: the trade-off between size, reading speed and writing speed.
    pub fn profile(mut self, profile: Profile) -> Self {
        self.profile = profile;
        self
    }

    /// Sets the profile of one column, such as [`Profile::Fast`] for ids and labels next to a large
    /// tensor in [`Profile::Small`]. Creating a writer fails if no column has this name.
    pub fn column_profile(mut self, column: impl Into<String>, profile: Profile) -> Self {
        self.column_profiles.insert(column.into(), profile);
        self
    }

    /// Returns the options of one column: these options, but with the profile of the column if it
    /// has its own.
    pub(super) fn of_column(&self, name: &str) -> Cow<'_, Self> {
        match self.column_profiles.get(name) {
            Some(&profile) => Cow::Owned(Self { profile, column_profiles: BTreeMap::new(), ..self.clone() }),
            None => Cow::Borrowed(self),
        }
    }

    /// Fails if a profile is set for a column that the schema does not have.
    pub(super) fn check_columns(&self, schema: &Schema) -> Result<()> {
        self.column_profiles.keys().try_for_each(|name| schema.find_column(name).map(|_| ()))
    }

    /// Sets the maximum decoded size of a chunk in bytes: 1 to 33,554,432 (32 MiB). The default
    /// depends on the profile: with [`Profile::Small`] it is 512 KiB, or 256 KiB for columns of
    /// text and bytes; with all other profiles it is 64 KiB. There is one exception: with
    /// [`Profile::Balanced`] and [`block_bytes(None)`](Self::block_bytes), the default for a column
    /// of text or bytes becomes 32 KiB once the column has a Zstandard dictionary.
    ///
    /// The size does not include the validity. A sample that is larger than this gets a chunk of
    /// its own. If a chunk is not divided into blocks, the first read of a random sample costs
    /// about as much as reading the whole chunk.
    pub fn chunk_bytes(mut self, bytes: usize) -> Self {
        self.chunk_bytes = Some(bytes);
        self
    }

    /// Sets the maximum decoded size of a block in bytes: 1,024 to 524,288 (512 KiB). With `None`,
    /// chunks are not divided into blocks. The default depends on the profile: 64 KiB with
    /// [`Profile::Small`], `None` with [`Profile::BitshuffleZstd`], which cannot write blocks, and
    /// 8 KiB with all other profiles.
    ///
    /// The first read of a random sample costs about as much as reading one block and the block
    /// index. With smaller blocks, such a read costs less, but the file is larger. A sample of up
    /// to four times the block size is not divided. A block has at most 65,535 elements. Encodings
    /// with tiers or bins always write blocks, so even with `None` they divide a part that has more
    /// elements than that.
    pub fn block_bytes(mut self, bytes: impl Into<Option<usize>>) -> Self {
        self.block_bytes = BlockSize::Set(bytes.into());
        self
    }

    /// Restricts which techniques encoders can use, for measurements; see
    /// [`search`](crate::search).
    pub fn search(mut self, search: Search) -> Self {
        self.search = search;
        self
    }

    /// Returns the block size; `None` for blocks that are as long as possible.
    pub(super) fn resolved_block_bytes(&self) -> Option<usize> {
        match self.block_bytes {
            BlockSize::OfProfile => self.profile.block_bytes(),
            BlockSize::Set(bytes) => bytes,
        }
    }

    /// Sets whether each encoded chunk is decoded and compared with its samples before it is
    /// written (default: yes). The check takes less time than encoding, and keeps errors of a
    /// faulty machine out of the file.
    pub fn check_chunks(mut self, check: bool) -> Self {
        self.check = check;
        self
    }

    /// Returns the chunk size that the caller set, if any.
    pub(super) fn explicit_chunk_bytes(&self) -> Option<usize> {
        self.chunk_bytes
    }

    pub(crate) fn resolved_chunk_bytes(&self) -> usize {
        self.chunk_bytes.unwrap_or(self.profile.chunk_bytes())
    }

    /// Returns the chunk size of a column of text or bytes.
    pub(super) fn resolved_text_chunk_bytes(&self) -> usize {
        self.chunk_bytes.unwrap_or(self.profile.text_chunk_bytes())
    }

    /// Sets the alignment in bytes: 64 (the default) or 4096. The body of every chunk begins at a
    /// multiple of this number. With 4096, chunks can be read with direct I/O (`O_DIRECT`).
    pub fn alignment(mut self, bytes: u32) -> Self {
        self.alignment = bytes;
        self
    }

    /// Sets the number of encoding threads: 1 (the default) to 1,024. The bytes of the file do not
    /// depend on it.
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = threads;
        self
    }

    #[cfg(feature = "import")]
    pub(crate) fn thread_count(&self) -> usize {
        self.threads
    }

    /// Sets the file's id. By default it is derived from the schema, the options and
    /// [`WriterOptions::origin`].
    pub fn file_id(mut self, id: FileId) -> Self {
        self.file_id = Some(id);
        self
    }

    /// Sets a description of the data's origin, such as the metadata of the converted files. Files
    /// with the same schema but different descriptions get different ids. The id does not depend on
    /// a clock or a random source.
    pub fn origin(mut self, description: impl Into<Vec<u8>>) -> Self {
        self.origin = description.into();
        self
    }

    /// Sets whether [`Writer::append`](crate::Writer::append) may discard intact regions after the
    /// last commit (default: no).
    pub fn discard_tail(mut self, discard: bool) -> Self {
        self.discard_tail = discard;
        self
    }

    /// Adds the number of a shard to the origin, so the shards get different ids.
    #[cfg(feature = "import")]
    pub(crate) fn shard(mut self, number: u64) -> Self {
        self.origin.extend(number.to_le_bytes());
        self
    }

    /// Sets the origin if it is empty.
    pub(crate) fn default_origin(mut self, description: Vec<u8>) -> Self {
        if self.origin.is_empty() {
            self.origin = description;
        }
        self
    }

    pub(super) fn check(&self) -> Result<()> {
        let chunk_bytes = self.resolved_chunk_bytes();
        if !CHUNK_BYTES.contains(&chunk_bytes) {
            let message = format!("chunk size {chunk_bytes} is out of range; use 1 to {} bytes", CHUNK_BYTES.end());
            return Err(Error::bad_argument(message));
        }
        self.column_profiles
            .keys()
            .try_for_each(|name| self.of_column(name).check_profile().map_err(|error| error.with_column(name)))?;
        self.check_profile()?;
        if self.alignment != 64 && self.alignment != 4096 {
            return Err(Error::bad_argument(format!("alignment {} is not supported; use 64 or 4096", self.alignment)));
        }
        if !(1..=1024).contains(&self.threads) {
            return Err(Error::bad_argument(format!("thread count {} is out of range; use 1 to 1024", self.threads)));
        }
        Ok(())
    }

    fn check_profile(&self) -> Result<()> {
        self.profile.check_built()?;
        let BlockSize::Set(Some(bytes)) = self.block_bytes else { return Ok(()) };
        if !BLOCK_BYTES.contains(&bytes) {
            let (min, max) = (BLOCK_BYTES.start(), BLOCK_BYTES.end());
            let message =
                format!("block size {bytes} is out of range; use {min} to {max} bytes, or none for the longest blocks");
            return Err(Error::bad_argument(message));
        }
        if self.profile.block_bytes().is_none() {
            let name = self.profile.name();
            let message = format!(
                "block size {bytes} is set, but profile {name} writes no blocks; use small, fast, balanced or raw"
            );
            return Err(Error::bad_argument(message));
        }
        Ok(())
    }

    /// Returns the id of a file with this schema.
    #[cfg(feature = "import")]
    pub(crate) fn file_id_of(&self, schema: &Schema) -> Result<FileId> {
        Ok(self.derive_file_id(&schema_block::to_bytes(schema)?))
    }

    /// Returns the id that the caller set, or derives one.
    pub(super) fn derive_file_id(&self, schema_block: &[u8]) -> FileId {
        self.file_id.unwrap_or_else(|| {
            let mut hash = Fnv1a::new();
            hash.add(schema_block);
            hash.add(self.profile.name().as_bytes());
            hash.add(&u64_of(self.resolved_chunk_bytes()).to_le_bytes());
            hash.add(&self.alignment.to_le_bytes());
            hash.add(&u64_of(self.resolved_block_bytes().unwrap_or(0)).to_le_bytes());
            hash.add(&self.origin);
            for (column, profile) in &self.column_profiles {
                hash.add(column.as_bytes());
                hash.add(profile.name().as_bytes());
            }
            hash.file_id()
        })
    }
}

/// Hashes bytes to an id.
#[cfg(feature = "import")]
pub(crate) fn hash_id(bytes: &[u8]) -> [u8; 16] {
    let mut hash = Fnv1a::new();
    hash.add(bytes);
    hash.0.to_le_bytes()
}

/// 128-bit FNV-1a (Fowler, Noll, Vo). Ids must differ from each other and stay the same in all
/// releases; they need not resist an attacker.
struct Fnv1a(u128);

impl Fnv1a {
    fn new() -> Self {
        Self(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d)
    }

    /// Returns the id: the low 96 bits, with the upper 32 bits folded in.
    fn file_id(self) -> FileId {
        let folded = (self.0 ^ self.0 >> 96).to_le_bytes();
        FileId(*folded.first_chunk().unwrap_or(&[0; 12]))
    }

    /// Adds `bytes` and their length, so the hash also depends on where one input ends and the next
    /// begins.
    fn add(&mut self, bytes: &[u8]) {
        let length = u64_of(bytes.len()).to_le_bytes();
        for byte in length.iter().chain(bytes) {
            self.0 = (self.0 ^ u128::from(*byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013B);
        }
    }
}
