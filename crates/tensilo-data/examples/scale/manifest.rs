//! The size of a manifest and its memory, as arithmetic.

use tensilo_data::model::ColumnModel;

/// The number of groups of a page, and the maximum number of inline groups.
const PAGE_GROUPS: u64 = 256;
const INLINE_GROUPS: u64 = 512;
/// The memory of a group without its path, and of its entries in lists.
const GROUP_MEMORY: u64 = 104;
const GROUP_ENTRY_MEMORY: u64 = 40;
/// The same for a page that was not read.
const PAGE_MEMORY: u64 = 24;
const PAGE_ENTRY_MEMORY: u64 = 48;
/// The memory of a block index, and of a slot for one; the maximum number of slots of a file.
const BLOCK_INDEX_MEMORY: u64 = 432;
const SLOT_MEMORY: u64 = 16;
const SLOTS: u64 = 1 << 14;

/// The manifest of a dataset.
pub struct ManifestModel {
    pub pages: u64,
    pub page_bytes: u64,
    pub version_bytes: u64,
    /// The memory after opening, and the memory of all pages.
    pub opened_memory: u64,
    pub pages_memory: u64,
}

impl ManifestModel {
    pub fn of(dataset: &ColumnModel) -> Self {
        let hex = "0".repeat(32);
        let ColumnModel { file_count: files, file_samples, .. } = *dataset;
        let (bytes, footer) = (dataset.file_bytes(), dataset.file_bytes() - dataset.end_bytes);
        let path = "data/0000000001/00000.tsl";
        let group = format!(
            "{{\"samples\":{file_samples},\"files\":[{{\"layout\":0,\"path\":\"{path}\",\
             \"bytes\":{bytes},\"footer\":{footer},\"content_id\":\"{hex}\"}}]}},\n"
        );
        let (group, path) = (group.len() as u64, path.len() as u64);
        let pages = files.saturating_sub(INLINE_GROUPS).div_ceil(PAGE_GROUPS);
        let page_bytes = PAGE_GROUPS * group + PAGE_TEXT;
        let entry = format!(
            "{{\"digest\":\"{hex}\",\"bytes\":{page_bytes},\"groups\":{PAGE_GROUPS},\"samples\":{}}},\n",
            PAGE_GROUPS * file_samples
        );
        let inline = files - pages * PAGE_GROUPS;
        Self {
            pages,
            page_bytes,
            version_bytes: VERSION_TEXT + pages * entry.len() as u64 + inline * group,
            opened_memory: listed(pages, PAGE_MEMORY, PAGE_ENTRY_MEMORY)
                + listed(inline, GROUP_MEMORY + path, GROUP_ENTRY_MEMORY),
            pages_memory: pages * listed(PAGE_GROUPS, GROUP_MEMORY + path, GROUP_ENTRY_MEMORY),
        }
    }

    pub fn bytes(&self) -> u64 {
        self.version_bytes + self.pages * self.page_bytes
    }
}

/// The approximate bytes of a page around its groups, and of a version around its lists.
const PAGE_TEXT: u64 = 98;
const VERSION_TEXT: u64 = 640;

/// Returns the memory of values with entries in lists, which have grown by doubling.
fn listed(count: u64, value: u64, entry: u64) -> u64 {
    count * value + count.next_power_of_two() * entry
}

/// Returns the maximum memory of the records of an open file: which pages, chunks and blocks were
/// checked, and, if blocks are read individually, the slots for block indexes.
pub fn file_memory(dataset: &ColumnModel, reads_blocks: bool) -> u64 {
    let (chunks, pages) = (dataset.file_chunks(), dataset.file_index_pages());
    let blocks = if dataset.block_samples < dataset.chunk_samples { chunks * 8 } else { 0 };
    let slots = chunks.min(SLOTS);
    let block_indexes = if reads_blocks { slots * SLOT_MEMORY } else { 0 };
    chunks / 8 + pages / 8 + blocks + block_indexes
}

/// Returns the maximum memory of the cached block indexes of an open file.
pub fn block_index_memory(dataset: &ColumnModel) -> u64 {
    dataset.file_chunks().min(SLOTS) * BLOCK_INDEX_MEMORY
}
