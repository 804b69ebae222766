//! The index of one column: runs of chunks, and records of what has been checked (chapter 6).

use super::slot_cache::SlotCache;
use crate::format::ColumnSchema;
use crate::format::column_record::ColumnRecord;
use crate::format::index::Run;
use crate::format::schema::Layout;
use crate::open::TableSlot;
use crate::read::chunk::checked_blocks::CheckedBlocks;
use crate::read::chunk::chunk_front::{CACHED_FRONTS, ChunkFront};
use crate::read::locate::bitmap::Bitmap;
use crate::read::locate::listed::Listed;
use crate::{Result, memory};
use std::sync::atomic::AtomicU64;

/// The index of a column: its runs, and which of its pages and chunks have been checked.
pub(in crate::read) struct ColumnIndex {
    pub number: u32,
    pub layout: Layout,
    pub facts: ColumnRecord,
    /// For each run, the pages and chunks of the runs before it.
    pub before: Vec<(u64, u64)>,
    pub checked_pages: Bitmap,
    /// In ascending order of their numbers.
    pub tables: Vec<TableSlot>,
    /// Instead of runs and pages, if the file was salvaged.
    pub listed: Option<Listed>,
    /// Chunks that were checked once as the reader's policy asks: with
    /// [`Verification::Never`](crate::Verification::Never) their heads alone.
    pub checked_chunks: Bitmap,
    pub checked_blocks: CheckedBlocks,
    /// The fronts of chunks, by their numbers.
    pub fronts: SlotCache<ChunkFront>,
    /// The samples in the first block of the chunk whose front was read last; 0 if none was.
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
            listed: None,
            checked_chunks: Bitmap::new(chunks),
            checked_blocks: CheckedBlocks::new(chunks),
            fronts: SlotCache::new(CACHED_FRONTS, chunks),
            block_samples: AtomicU64::new(0),
        })
    }

    /// Of a salvaged file: `facts` has no runs.
    pub(in crate::read) fn salvaged(
        number: u32,
        layout: Layout,
        facts: ColumnRecord,
        tables: Vec<TableSlot>,
        listed: Listed,
    ) -> Self {
        let chunks = facts.chunk_count;
        Self {
            number,
            layout,
            facts,
            before: Vec::new(),
            checked_pages: Bitmap::new(0),
            tables,
            listed: Some(listed),
            checked_chunks: Bitmap::new(chunks),
            checked_blocks: CheckedBlocks::new(chunks),
            fronts: SlotCache::new(CACHED_FRONTS, chunks),
            block_samples: AtomicU64::new(0),
        }
    }

    /// Takes over what was checked through `earlier`, the index of the same column of the same file
    /// at an earlier commit. Chunks have the same numbers in both, as commits only add runs; those
    /// of salvaged files have others.
    pub(in crate::read) fn take_checks_of(&self, earlier: &Self) {
        let is_salvaged = self.listed.is_some() || earlier.listed.is_some();
        if is_salvaged || !self.facts.runs.starts_with(&earlier.facts.runs) {
            return;
        }
        self.checked_pages.set_all_of(&earlier.checked_pages);
        self.checked_chunks.set_all_of(&earlier.checked_chunks);
        self.checked_blocks.set_all_of(&earlier.checked_blocks);
        self.tables.iter().zip(&earlier.tables).for_each(|(slot, earlier)| slot.load_as(earlier));
    }

    /// Returns the run that holds sample `sample`, and its number.
    pub(in crate::read) fn run_of(&self, sample: u64) -> Option<(usize, &Run)> {
        let number = match self.facts.runs.len() {
            1 => 0,
            _ => self.facts.runs.partition_point(|run| run.end_sample() <= sample),
        };
        Some((number, self.facts.runs.get(number)?))
    }
}
