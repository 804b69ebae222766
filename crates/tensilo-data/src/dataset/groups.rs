//! The groups of a version: finds the group that has a sample, and the files that the group lists.
//!
//! A version lists most of its groups in pages, and states how many samples each page has. So a
//! sample is found by two binary searches: one for its page, and one for its group in the page.
//! Between the two searches, the page is read, unless one of its groups was requested before.
//! Opening a dataset reads no page, even if the dataset has many files.
//!
//! Pages that were read stay cached, which needs about 150 bytes per file. A page that a manifest
//! lists several times is cached once. If a process is forked while a thread is reading a page, the
//! child does not wait for that thread, because it does not exist in the child. Instead, the child
//! reads the page itself.

use super::versions::VersionContext;
use crate::error::{DataError, Result};
use crate::manifest::{Group, Version};
use std::collections::HashMap;
use std::ops::Range;
use std::path::PathBuf;
use std::process;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use tensilo::facts::ContentId;

/// Consecutive samples of a dataset, and the files that contain them.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SampleGroup {
    /// The samples.
    pub samples: Range<u64>,
    /// The files. No column is in more than one of them.
    pub files: Vec<GroupFile>,
    pub(super) group_ref: GroupRef,
}

/// A file of a [`SampleGroup`], as the manifest lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct GroupFile {
    /// The path.
    pub path: PathBuf,
    /// The length of the file at the commit that the dataset reads.
    pub bytes: u64,
    /// The content id of that commit.
    pub content_id: ContentId,
    /// The columns of the file, each with its name in the file and its index in the schema of the
    /// dataset.
    pub columns: Vec<(String, usize)>,
}

/// A group, with its position in a dataset.
#[derive(Clone, Debug)]
pub(super) struct GroupRef {
    pub group: Arc<Group>,
    pub samples: Range<u64>,
    /// The index of the page, and the index of the group in the page.
    pub key: (usize, usize),
}

/// Identifies a file by three indices: its page, its group in the page, and the file in the group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct FileKey {
    pub page: usize,
    pub group: usize,
    pub file: usize,
}

impl GroupRef {
    /// Returns the key of a file of the group.
    pub(super) fn file_key(&self, file: usize) -> FileKey {
        let (page, group) = self.key;
        FileKey { page, group, file }
    }
}

/// The groups of a version. The groups of a page are read when one of them is first requested, and
/// stay cached.
#[derive(Debug)]
pub(super) struct Groups {
    /// The first sample of each page, followed by the total number of samples.
    starts: Vec<u64>,
    /// The slot of each page, followed by the slot of the inline groups. A page that is listed
    /// several times has one slot.
    slot_of: Vec<usize>,
    slots: Vec<PageSlot>,
    /// The process that created this value. In a forked process, no thread waits for another to
    /// read a page.
    process: u32,
}

/// A page, cached after it is first requested.
#[derive(Debug, Default)]
struct PageSlot {
    page: OnceLock<Arc<Page>>,
    /// Held while the page is read, so that only one thread reads it.
    read_lock: Mutex<()>,
}

/// Consecutive groups.
#[derive(Debug)]
struct Page {
    /// The first sample of each group, counted from the first sample of the page, followed by the
    /// end of the last group.
    starts: Vec<u64>,
    groups: Vec<Arc<Group>>,
}

impl PageSlot {
    fn of(page: Arc<Page>) -> Self {
        Self { page: OnceLock::from(page), read_lock: Mutex::new(()) }
    }

    /// Reads the page, unless another thread has read it while this one waited.
    fn read(&self, read: impl FnOnce() -> Result<Vec<Group>>) -> Result<Arc<Page>> {
        let _guard = self.read_lock.lock().unwrap_or_else(PoisonError::into_inner);
        match self.page.get() {
            Some(page) => Ok(page.clone()),
            None => {
                let page = Page::new(read()?);
                Ok(self.page.get_or_init(|| page).clone())
            }
        }
    }
}

impl Page {
    fn new(groups: Vec<Group>) -> Arc<Self> {
        let starts = starts(groups.iter().map(|group| group.samples));
        Arc::new(Self { starts, groups: groups.into_iter().map(Arc::new).collect() })
    }

    /// Returns a group, given the index and the first sample of the page.
    fn group(&self, page: usize, first: u64, index: usize) -> Option<GroupRef> {
        let group = self.groups.get(index)?.clone();
        let at = |index: usize| Some(self.starts.get(index)?.saturating_add(first));
        Some(GroupRef { group, samples: at(index)?..at(index.saturating_add(1))?, key: (page, index) })
    }
}

/// Returns, for each length, the sum of the lengths before it, followed by the sum of all lengths.
fn starts(lengths: impl Iterator<Item = u64>) -> Vec<u64> {
    let mut sum = 0_u64;
    let mut starts = vec![0];
    starts.extend(lengths.map(|length| {
        sum = sum.saturating_add(length); // sums of a valid manifest do not overflow
        sum
    }));
    starts
}

/// Returns the index of the range that contains `at`. `at` is below the last of `starts`.
fn range_index(starts: &[u64], at: u64) -> usize {
    starts.partition_point(|&start| start <= at).saturating_sub(1)
}

impl Groups {
    pub(super) fn new(version: &mut Version) -> Self {
        let inline = std::mem::take(&mut version.groups);
        let mut slot_of_page = HashMap::new();
        let mut slot_of: Vec<usize> = Vec::with_capacity(version.pages.len().saturating_add(1));
        for page in &version.pages {
            let next = slot_of_page.len();
            slot_of.push(*slot_of_page.entry(page).or_insert(next));
        }
        let mut slots: Vec<PageSlot> = slot_of_page.iter().map(|_| PageSlot::default()).collect();
        let lengths = version.pages.iter().map(|page| page.samples);
        let last = inline.iter().map(|group| group.samples).fold(0, u64::saturating_add);
        let starts = starts(lengths.chain([last]));
        slot_of.push(slots.len());
        slots.push(PageSlot::of(Page::new(inline)));
        Self { starts, slot_of, slots, process: process::id() }
    }

    /// Returns the same groups for a forked process. They share no lock that a thread could have
    /// held during the fork.
    pub(super) fn reopened(&self) -> Self {
        let slot = |slot: &PageSlot| slot.page.get().cloned().map_or_else(PageSlot::default, PageSlot::of);
        Self {
            starts: self.starts.clone(),
            slot_of: self.slot_of.clone(),
            slots: self.slots.iter().map(slot).collect(),
            process: process::id(),
        }
    }

    /// Returns the group that contains a sample. Cost: logarithmic in the number of groups, plus
    /// reading a page if none of its groups was requested before.
    pub(super) fn find(&self, context: &VersionContext<'_>, sample: u64) -> Result<GroupRef> {
        let samples = context.version.samples;
        if sample >= samples {
            return Err(DataError::BadArgument(format!(
                "there is no sample {sample}: the dataset has {samples} samples, numbered from 0"
            )));
        }
        let number = range_index(&self.starts, sample);
        let (page, first) = self.page(context, number)?;
        let index = range_index(&page.starts, sample.saturating_sub(first));
        page.group(number, first, index).ok_or_else(|| no_group(sample))
    }

    /// Returns the uncached pages that these samples need, in the order of the samples.
    pub(super) fn unread_pages(&self, samples: impl Iterator<Item = u64>) -> Vec<usize> {
        let mut pages: Vec<usize> = Vec::new();
        for sample in samples {
            let page = range_index(&self.starts, sample);
            let slot = self.slot_of.get(page).and_then(|&slot| self.slots.get(slot));
            if slot.is_some_and(|slot| slot.page.get().is_none()) && pages.last() != Some(&page) {
                pages.push(page);
            }
        }
        pages
    }

    /// Estimates the total size of all files from the files of the first page. Returns 0 if that
    /// page cannot be read.
    pub(super) fn stored_bytes(&self, context: &VersionContext<'_>) -> u64 {
        let (mut samples, mut bytes) = (0_u64, 0_u64);
        for group in self.page_groups(context, 0).into_iter().flatten() {
            bytes = group.group.files.iter().map(|file| file.bytes).fold(bytes, u64::saturating_add);
            samples = samples.saturating_add(group.group.samples);
        }
        // no overflow: below 2^128
        let all = u128::from(bytes) * u128::from(context.version.samples) / u128::from(samples.max(1));
        u64::try_from(all).unwrap_or(u64::MAX)
    }

    /// Returns the number of pages. The inline groups count as one page.
    pub(super) fn page_count(&self) -> usize {
        self.slot_of.len()
    }

    /// Returns the groups of a page, or the error from reading it.
    pub(super) fn page_groups(&self, context: &VersionContext<'_>, number: usize) -> Vec<Result<GroupRef>> {
        match self.page(context, number) {
            Ok((page, first)) => (0..page.groups.len()).filter_map(|i| page.group(number, first, i)).map(Ok).collect(),
            Err(error) => vec![Err(error)],
        }
    }

    /// Returns a page and its first sample.
    fn page(&self, context: &VersionContext<'_>, number: usize) -> Result<(Arc<Page>, u64)> {
        let first = self.starts.get(number).copied().unwrap_or(0);
        let slot = self.slot_of.get(number).and_then(|&slot| self.slots.get(slot)).ok_or_else(|| no_group(first))?;
        // the inline groups have no entry, and are never read
        let entry = || context.version.pages.get(number).ok_or_else(|| no_group(first));
        let page = match slot.page.get() {
            Some(page) => page.clone(),
            // a thread may have been reading it during the fork
            None if self.process != process::id() => Page::new(context.read_page(entry()?)?),
            None => slot.read(|| context.read_page(entry()?))?,
        };
        Ok((page, first))
    }
}

fn no_group(sample: u64) -> DataError {
    DataError::BadArgument(format!("no group has sample {sample}"))
}
