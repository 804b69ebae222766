//! The groups of a version: finding the one that has a sample, and what it lists.
//!
//! A version has most groups in pages, and knows the samples of each page. So a sample is found by
//! two binary searches, and only the page between them is read: when one of its groups is first
//! requested. Pages stay in memory, about 150 bytes for each file; one that a manifest lists
//! several times is kept once. A process that was forked while a thread read a page does not wait
//! for that thread: it reads the page itself.

use super::versions::VersionContext;
use crate::error::{DataError, Result};
use crate::manifest::{Group, Version};
use std::collections::HashMap;
use std::ops::Range;
use std::path::PathBuf;
use std::process;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use tensilo::facts::ContentId;

/// A run of consecutive samples of a dataset, and the files that contain them.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SampleGroup {
    /// The samples.
    pub samples: Range<u64>,
    /// The files. No two have the same column.
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
    /// The columns that it has: the name in the file, and the number in the schema of the dataset.
    pub columns: Vec<(String, usize)>,
}

/// A group, and its place in a dataset.
#[derive(Clone, Debug)]
pub(super) struct GroupRef {
    pub group: Arc<Group>,
    pub samples: Range<u64>,
    /// The numbers of the page and of the group in it.
    pub key: (usize, usize),
}

/// A file of a group: the numbers of the page, of the group in it, and of the file in that.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct FileKey {
    pub page: usize,
    pub group: usize,
    pub file: usize,
}

impl GroupRef {
    /// Returns the place of a file of the group.
    pub(super) fn file_key(&self, file: usize) -> FileKey {
        let (page, group) = self.key;
        FileKey { page, group, file }
    }
}

/// The groups of a version. Those of a page are read when one of them is first asked for, and kept:
/// about 150 bytes for each file.
#[derive(Debug)]
pub(super) struct Groups {
    /// The first sample of each page, and after the last one the number of all samples.
    starts: Vec<u64>,
    /// The slot of each page, and after the last one that of the inline groups. A page that is
    /// listed several times has one.
    slot_of: Vec<usize>,
    slots: Vec<PageSlot>,
    /// The process that may wait for a page that another thread reads.
    process: u32,
}

/// A page, once it was asked for.
#[derive(Debug, Default)]
struct PageSlot {
    page: OnceLock<Arc<Page>>,
    /// The turn to read it, of one thread at a time.
    read_lock: Mutex<()>,
}

/// Consecutive groups.
#[derive(Debug)]
struct Page {
    /// The first sample of each group, counted from that of the page, and the end of the last one.
    starts: Vec<u64>,
    groups: Vec<Arc<Group>>,
}

impl PageSlot {
    fn of(page: Arc<Page>) -> Self {
        Self { page: OnceLock::from(page), read_lock: Mutex::new(()) }
    }

    /// Reads the page, unless another thread does so meanwhile.
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

    /// Returns a group, given the number and the first sample of the page.
    fn group(&self, page: usize, first: u64, index: usize) -> Option<GroupRef> {
        let group = self.groups.get(index)?.clone();
        let at = |index: usize| Some(self.starts.get(index)?.saturating_add(first));
        Some(GroupRef { group, samples: at(index)?..at(index.saturating_add(1))?, key: (page, index) })
    }
}

/// Returns the sums of the lengths before each, and that of all.
fn starts(lengths: impl Iterator<Item = u64>) -> Vec<u64> {
    let mut sum = 0_u64;
    let mut starts = vec![0];
    starts.extend(lengths.map(|length| {
        sum = sum.saturating_add(length); // numbers of a manifest do not overflow
        sum
    }));
    starts
}

/// Returns the part that contains `at`, which is below the last of `starts`.
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

    /// Returns the same groups, for a process that was forked: they share nothing that a thread
    /// could have been changing at that moment.
    pub(super) fn reopened(&self) -> Self {
        let slot = |slot: &PageSlot| slot.page.get().cloned().map_or_else(PageSlot::default, PageSlot::of);
        Self {
            starts: self.starts.clone(),
            slot_of: self.slot_of.clone(),
            slots: self.slots.iter().map(slot).collect(),
            process: process::id(),
        }
    }

    /// Returns the group that contains a sample. Cost: logarithmic in the number of groups, and the
    /// reading of a page if none of its groups was asked for before.
    pub(super) fn find(&self, context: &VersionContext<'_>, sample: u64) -> Result<GroupRef> {
        let samples = context.version.samples;
        if sample >= samples {
            return Err(DataError::BadArgument(format!(
                "sample {sample} of a dataset with {samples} samples, counted from 0"
            )));
        }
        let number = range_index(&self.starts, sample);
        let (page, first) = self.page(context, number)?;
        let index = range_index(&page.starts, sample.saturating_sub(first));
        page.group(number, first, index).ok_or_else(|| no_group(sample))
    }

    /// Returns the pages of some samples that were not read, in the order of the samples.
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

    /// Returns about how many bytes all files have, from those of the first page; 0 if that cannot
    /// be read.
    pub(super) fn stored_bytes(&self, context: &VersionContext<'_>) -> u64 {
        let (mut samples, mut bytes) = (0_u64, 0_u64);
        for group in self.page_groups(context, 0).into_iter().flatten() {
            bytes = group.group.files.iter().map(|file| file.bytes).fold(bytes, u64::saturating_add);
            samples = samples.saturating_add(group.group.samples);
        }
        // below 2^128
        let all = u128::from(bytes) * u128::from(context.version.samples) / u128::from(samples.max(1));
        u64::try_from(all).unwrap_or(u64::MAX)
    }

    /// Returns the number of pages, with that of the inline groups.
    pub(super) fn page_count(&self) -> usize {
        self.slot_of.len()
    }

    /// Returns the groups of a page, or the error of reading it.
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
        // only the last page has none, and is never read
        let entry = || context.version.pages.get(number).ok_or_else(|| no_group(first));
        let page = match slot.page.get() {
            Some(page) => page.clone(),
            // forked while a thread was reading it, maybe
            None if self.process != process::id() => Page::new(context.read_page(entry()?)?),
            None => slot.read(|| context.read_page(entry()?))?,
        };
        Ok((page, first))
    }
}

fn no_group(sample: u64) -> DataError {
    DataError::BadArgument(format!("no group has sample {sample}"))
}
