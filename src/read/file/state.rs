//! The state of an open file, shared by all handles to it.
//!
//! [`ReaderInner`] holds the contents of the header and the footer and, for each column, a
//! [`ColumnIndex`] (chapter 6). All of it is immutable except for caches and records of what was
//! verified, so any thread can use it without a lock.
//!
//! The index of a column lists runs of chunks; pages and entries stay in the file. A salvaged file
//! does not have trustworthy pages. Instead, its chunks are in a list in memory
//! ([`SalvagedChunks`]), with gaps where samples are lost. In both cases, the result of a lookup is
//! a [`ChunkLocation`]. The block index of a chunk is cached for later requests
//! ([`ChunkBlockIndex`]).

use super::records::{Bitmap, CheckedBlocks, SlotCache};
use crate::bytes::le::u64_of;
use crate::bytes::memory;
use crate::format::chunk::{ChunkEntry, ChunkHeader};
use crate::format::column_record::ColumnRecord;
use crate::format::index::ChunkRun;
use crate::format::region::HEADER_LEN;
use crate::format::schema::Layout;
use crate::format::{ColumnSchema, ContentId, FileId, Schema};
use crate::kernel::prefetch_cache_lines;
use crate::open::source::FileBytes;
use crate::open::{FileIdentity, Source, TableSlot, refuse_same};
use crate::read::losses::{LostSamples, lost_error};
use crate::{Error, ErrorKind, Result};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// When a reader verifies the checksum of a chunk. Headers, index pages and footers are always
/// verified.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Verification {
    /// Verifies each chunk when this reader first uses it.
    #[default]
    FirstTouch,
    /// Verifies each chunk every time it is loaded.
    Always,
    /// Never verifies chunks. Damaged bytes can then lead to wrong values without an error.
    Never,
}

/// The maximum number of cached index pages of a file. Together, they take 1 MiB.
pub(in crate::read) const MAX_CACHED_PAGES: usize = 256;

/// An open file. Immutable except for caches and the records of verified chunks and pages, which
/// any thread can update.
pub(in crate::read) struct ReaderInner {
    pub source: Arc<dyn Source>,
    /// A source of the whole file, if `source` ends at the last commit but the file is longer.
    pub full_source: Option<Arc<dyn Source>>,
    pub path: Option<PathBuf>,
    pub schema: Schema,
    pub file_id: FileId,
    pub content_id: ContentId,
    pub alignment: u32,
    /// One for each column of the schema.
    pub columns: Vec<ColumnIndex>,
    /// Verified index pages; the key is the offset divided by the length of a page. Empty if the
    /// file is in memory.
    pub index_pages: SlotCache<IndexPage>,
    pub sample_count: u64,
    pub commit_count: u32,
    pub is_finished: bool,
    pub footer_offset: u64,
    pub tail_bytes: u64,
    pub verification: Verification,
    pub max_chunk_bytes: u32,
}

/// An index page: header and body.
pub(in crate::read) struct IndexPage {
    pub offset: u64,
    pub bytes: Vec<u8>,
}

impl ReaderInner {
    #[inline]
    pub(in crate::read) fn bytes(&self) -> FileBytes<'_> {
        FileBytes::of(&*self.source)
    }

    /// Returns the source of the whole file, with the length it had when it was opened.
    pub(in crate::read) fn whole(&self) -> &Arc<dyn Source> {
        self.full_source.as_ref().unwrap_or(&self.source)
    }

    /// Refuses an output that is this file.
    pub(in crate::read) fn check_output(&self, output: Option<FileIdentity>, path: Option<&Path>) -> Result<()> {
        refuse_same(output, path, [(self.source.identity(), self.path.as_deref())])
    }

    /// Refuses a chunk whose decoded size exceeds the limit in the options.
    pub(in crate::read) fn check_decoded_bytes(&self, bytes: u64) -> Result<()> {
        let limit = self.max_chunk_bytes;
        if bytes <= limit.into() {
            return Ok(());
        }
        let message = format!("the chunk decodes to {bytes} bytes; the file was opened with a limit of {limit}");
        Err(Error::over_limit(message))
    }

    /// Adds the path to an error. If the error reports damage, invalidates the caches of the
    /// source.
    pub(in crate::read) fn in_file(&self, error: Error) -> Error {
        if error.kind() == ErrorKind::Corrupt {
            self.source.invalidate();
        }
        match &self.path {
            Some(path) => error.with_path(path),
            None => error,
        }
    }
}

/// The index of a column: its runs, and which of its pages and chunks were verified.
pub(in crate::read) struct ColumnIndex {
    pub number: u32,
    pub layout: Layout,
    pub facts: ColumnRecord,
    /// For each run, the number of pages and the number of chunks in the runs before it.
    pub before: Vec<(u64, u64)>,
    pub checked_pages: Bitmap,
    /// In ascending order of their numbers.
    pub tables: Vec<TableSlot>,
    /// The chunks of a salvaged file, which replace runs and pages.
    pub salvaged_chunks: Option<SalvagedChunks>,
    /// The chunks that were completely verified; with [`Verification::Never`], the chunks whose
    /// header was verified.
    pub checked_chunks: Bitmap,
    pub checked_blocks: CheckedBlocks,
    /// The block indexes of chunks, by chunk number.
    pub block_indexes: SlotCache<ChunkBlockIndex>,
    /// The number of samples in the first block of the chunk whose block index was read last; 0 if
    /// no block index was read.
    pub block_samples: AtomicU64,
}

impl ColumnIndex {
    pub(in crate::read) fn new(
        number: u32,
        column: &ColumnSchema,
        facts: ColumnRecord,
        tables: Vec<TableSlot>,
    ) -> Result<Self> {
        let (mut pages, mut chunks) = (0_u64, 0_u64);
        let mut before = memory::with_capacity(facts.runs.len())?;
        for run in &facts.runs {
            before.push((pages, chunks));
            pages = pages.saturating_add(run.page_count());
            chunks = chunks.saturating_add(run.chunk_count);
        }
        Ok(Self {
            number,
            layout: column.layout()?,
            facts,
            before,
            checked_pages: Bitmap::new(pages),
            tables,
            salvaged_chunks: None,
            checked_chunks: Bitmap::new(chunks),
            checked_blocks: CheckedBlocks::new(chunks),
            block_indexes: SlotCache::new(MAX_CACHED_BLOCK_INDEXES, chunks),
            block_samples: AtomicU64::new(0),
        })
    }

    /// Creates the index of a column of a salvaged file. `facts` has no runs.
    pub(in crate::read) fn salvaged(
        number: u32,
        layout: Layout,
        facts: ColumnRecord,
        tables: Vec<TableSlot>,
        salvaged_chunks: SalvagedChunks,
    ) -> Self {
        let chunks = facts.chunk_count;
        Self {
            number,
            layout,
            facts,
            before: Vec::new(),
            checked_pages: Bitmap::new(0),
            tables,
            salvaged_chunks: Some(salvaged_chunks),
            checked_chunks: Bitmap::new(chunks),
            checked_blocks: CheckedBlocks::new(chunks),
            block_indexes: SlotCache::new(MAX_CACHED_BLOCK_INDEXES, chunks),
            block_samples: AtomicU64::new(0),
        }
    }

    /// Takes over the verification state of `earlier`, the index of the same column of the same
    /// file at an earlier commit. Chunks have the same numbers in both, because commits only add
    /// runs. Salvaged files number their chunks differently and are skipped.
    pub(in crate::read) fn inherit_checks(&self, earlier: &Self) {
        let is_salvaged = self.salvaged_chunks.is_some() || earlier.salvaged_chunks.is_some();
        if is_salvaged || !self.facts.runs.starts_with(&earlier.facts.runs) {
            return;
        }
        self.checked_pages.set_all_from(&earlier.checked_pages);
        self.checked_chunks.set_all_from(&earlier.checked_chunks);
        self.checked_blocks.set_all_from(&earlier.checked_blocks);
        self.tables.iter().zip(&earlier.tables).for_each(|(slot, earlier)| slot.share_from(earlier));
    }

    /// Returns the run that contains sample `sample`, and its number.
    pub(in crate::read) fn run_of(&self, sample: u64) -> Option<(usize, &ChunkRun)> {
        let number = match self.facts.runs.len() {
            1 => 0,
            _ => self.facts.runs.partition_point(|run| run.end_sample() <= sample),
        };
        Some((number, self.facts.runs.get(number)?))
    }
}

/// A chunk, as found in the index.
#[derive(Clone, Copy, Debug)]
pub(in crate::read) struct ChunkLocation {
    pub entry: ChunkEntry,
    /// The number of the chunk in its column.
    pub chunk: u64,
}

impl ChunkLocation {
    /// Returns the position in the chunk of sample `i`, which it contains.
    #[inline]
    pub(in crate::read) fn position_of(&self, i: u64) -> usize {
        usize::try_from(i.saturating_sub(self.entry.first_sample)).unwrap_or(usize::MAX)
    }

    /// Returns the offset of the chunk's body in a file in memory.
    #[inline]
    pub(in crate::read) fn body_start(&self) -> usize {
        usize::try_from(self.entry.offset.saturating_add(HEADER_LEN)).unwrap_or(usize::MAX)
    }

    /// Returns the offset in the file at which the chunk and its last part, the values, end.
    #[inline]
    pub(in crate::read) fn values_end(&self) -> u64 {
        self.entry.offset.saturating_add(HEADER_LEN).saturating_add(self.entry.stored_bytes.into())
    }

    /// Returns the number of samples of the chunk.
    pub(in crate::read) fn sample_count(&self) -> usize {
        usize::try_from(self.entry.sample_count).unwrap_or(0) // exact: at most 2^24
    }
}

/// The chunks of a salvaged column in ascending order of samples. Samples between the chunks are
/// lost, and some samples in the chunks can also be lost.
pub(in crate::read) struct SalvagedChunks {
    entries: Vec<ChunkEntry>,
    lost: LostSamples,
}

impl SalvagedChunks {
    /// Creates the list of these chunks. `lost` lists the lost samples in the chunks; the samples
    /// between the chunks are added.
    pub(in crate::read) fn new(entries: Vec<ChunkEntry>, mut lost: Vec<Range<u64>>, sample_count: u64) -> Self {
        let starts = std::iter::once(0).chain(entries.iter().map(|entry| entry.samples().end));
        let ends = entries.iter().map(|entry| entry.first_sample).chain(std::iter::once(sample_count));
        lost.extend(starts.zip(ends).map(|(start, end)| start..end).filter(|gap| !gap.is_empty()));
        let lost = LostSamples::of_ranges(sample_count, lost);
        Self { entries, lost }
    }

    /// Returns the lost samples.
    pub(in crate::read) fn lost(&self) -> &LostSamples {
        &self.lost
    }

    /// Returns the chunk that contains a sample. Fails if the sample is lost.
    pub(in crate::read) fn locate(&self, sample: u64) -> Result<ChunkLocation> {
        self.check(&(sample..sample.saturating_add(1)))?;
        let after = self.entries.partition_point(|entry| entry.first_sample <= sample);
        let last = after.checked_sub(1).and_then(|last| self.chunk(u64_of(last)));
        last.ok_or_else(|| Error::internal("a sample is neither in a chunk nor lost"))
    }

    /// Returns chunk number `chunk` of this list.
    pub(in crate::read) fn chunk(&self, chunk: u64) -> Option<ChunkLocation> {
        let entry = *self.entries.get(usize::try_from(chunk).ok()?)?;
        Some(ChunkLocation { entry, chunk })
    }

    /// Fails if one of these samples is lost. The error names the range of lost samples.
    pub(in crate::read) fn check(&self, samples: &Range<u64>) -> Result<()> {
        self.lost.first_in(samples).map_or(Ok(()), |lost| Err(lost_error(lost)))
    }
}

/// The maximum length of a cached block index in bytes.
const MAX_CACHED_BYTES: usize = 4096;
/// The maximum length of a body that is stored inline. The block indexes of chunks with 64 KiB of
/// fixed samples are shorter.
const INLINE_BYTES: usize = 256;
/// The maximum number of block indexes of a column that are cached.
const MAX_CACHED_BLOCK_INDEXES: usize = 1 << 14;

/// The block index of a chunk and everything before it in the chunk, verified according to the
/// reader's policy.
#[derive(Debug)]
pub(in crate::read) struct ChunkBlockIndex {
    pub location: ChunkLocation,
    pub header: ChunkHeader,
    /// The body up to the first block, if it is short. Stored inline, it shares cache lines with
    /// the other fields.
    inline_body: [u8; INLINE_BYTES],
    /// The length of the inline body; 0 if the body is in `heap_body`.
    inline_length: usize,
    heap_body: Vec<u8>,
}

impl ChunkBlockIndex {
    /// Creates the block index from `body`, the body of a chunk up to its first block.
    pub(in crate::read) fn new(location: &ChunkLocation, header: ChunkHeader, body: Vec<u8>) -> Self {
        let mut inline_body = [0; INLINE_BYTES];
        let (inline_length, heap_body) = match inline_body.get_mut(..body.len()) {
            Some(to) => {
                to.copy_from_slice(&body); // equal lengths
                (body.len(), Vec::new())
            }
            None => (0, body.into_boxed_slice().into_vec()),
        };
        Self { location: *location, header, inline_body, inline_length, heap_body }
    }

    /// Returns whether the block index is short enough to be cached.
    pub(in crate::read) fn is_cacheable(&self) -> bool {
        self.heap_body.capacity() <= MAX_CACHED_BYTES
    }

    /// Prefetches the block index into the CPU cache.
    pub(in crate::read) fn prefetch(&self) {
        prefetch_cache_lines(self.body());
    }

    /// Returns the body up to the first block.
    #[inline]
    pub(in crate::read) fn body(&self) -> &[u8] {
        match self.inline_length {
            0 => &self.heap_body,
            length => self.inline_body.get(..length).unwrap_or(&[]), // in bounds: at most the length of the array
        }
    }
}

/// Adds the chunk to an error.
pub(in crate::read) fn in_chunk(error: Error, location: &ChunkLocation) -> Error {
    error.with_offset(location.entry.offset).with_samples(location.entry.samples())
}
