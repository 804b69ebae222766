//! The division of a batch among the files that its samples are in.

use super::memory::too_large;
use super::setup::Setup;
use crate::dataset::{FoundColumns, FoundFile, FoundGroup};
use crate::error::{DataError, Result};
use crate::io_pool::IoPool;
use tensilo::stages::{FetchedBytes, ReadPlan};
use tensilo::{Column, ColumnBuffer};

/// The samples of a batch that are in one file, with some of the columns.
#[derive(Default)]
pub(super) struct Part {
    pub columns: Vec<Column>,
    /// The place of each column among those of the loader.
    pub places: Vec<usize>,
    /// The samples of the file, and the position of each in the batch: one of both ascends.
    pub samples: Vec<u64>,
    pub positions: Vec<usize>,
    pub plan: ReadPlan,
    pub bytes: FetchedBytes,
    /// For each column that is ragged or nested, its samples.
    pub buffers: Vec<ColumnBuffer>,
}

/// The files that a thread opens for a batch before it opens several at the same time.
const FILES_ALONE: usize = 4;
/// The same of objects, each of which takes a round trip.
const OBJECTS_ALONE: usize = 1;

/// The samples of a part at most, so that a long read can be interrupted.
const PIECE: usize = 1 << 14;

/// Dataset, sample of it, and position in the batch.
type Wanted = (usize, u64, usize);

/// A group of files, and how many of the next samples of a batch are in it.
struct NextGroup {
    dataset: usize,
    group: FoundGroup,
    count: usize,
}

/// The parts of a batch, in memory that is reused.
#[derive(Default)]
pub(super) struct Parts {
    parts: Vec<Part>,
    count: usize,
    /// Columns that no file has, by their places, and the positions that they are null at.
    pub absent: Vec<(usize, Vec<usize>)>,
    wanted: Vec<Wanted>,
    /// Whether many files were opened for the batch: their first bytes are not in memory, maybe.
    are_new: bool,
    /// Whether all files of the batch before were open.
    were_open: bool,
}

impl Parts {
    pub(super) fn iter(&self) -> impl Iterator<Item = &Part> {
        self.parts.iter().take(self.count)
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Part> {
        self.parts.iter_mut().take(self.count)
    }

    /// Finds the files of samples of the view, and opens those that are not open.
    pub(super) fn find(&mut self, setup: &Setup, samples: &[u64], epoch: u64) -> Result<()> {
        let mut wanted = std::mem::take(&mut self.wanted);
        wanted.clear();
        let bytes = samples.len().saturating_mul(size_of::<Wanted>());
        wanted.try_reserve(samples.len()).map_err(|_| too_large(bytes))?;
        let found = samples.iter().zip(0..).filter_map(|(&v, position)| {
            let (dataset, sample) = setup.view.sample(v, epoch)?;
            Some((dataset, sample, position))
        });
        wanted.extend(found);
        if wanted.len() != samples.len() {
            return Err(DataError::Internal(format!("a sample of {samples:?} is not in the view")));
        }
        wanted.sort_unstable();
        let result = self.divide(setup, &wanted);
        self.wanted = wanted;
        if setup.columns.has_ragged() {
            self.restore_order(samples.len());
        }
        result
    }

    /// Puts the samples of parts that have the whole batch into its order, so that ragged ones are
    /// decoded to their places. Those of several parts are joined.
    fn restore_order(&mut self, count: usize) {
        for part in self.iter_mut().filter(|part| part.positions.len() == count) {
            let mut samples = vec![0; count];
            for (sample, &position) in part.samples.iter().zip(&part.positions) {
                if let Some(to) = samples.get_mut(position) {
                    *to = *sample;
                }
            }
            part.samples = samples;
            part.positions.clear();
            part.positions.extend(0..count);
        }
    }

    fn divide(&mut self, setup: &Setup, mut wanted: &[Wanted]) -> Result<()> {
        self.count = 0;
        self.absent.clear();
        self.are_new = false;
        if setup.reads_objects && !self.were_open && setup.io.depth() > 1 {
            return self.divide_together(setup, wanted);
        }
        let mut opened = 0_usize;
        let alone = if setup.reads_objects { OBJECTS_ALONE } else { FILES_ALONE };
        while let Some(next) = next_group(setup, wanted)? {
            let columns = open_group(setup, &next)?;
            opened = opened.saturating_add(columns.opened);
            wanted = self.add_group(columns, next.count, wanted);
            if opened >= alone && wanted.len() >= alone && setup.io.depth() > 1 {
                self.divide_together(setup, wanted)?;
                self.are_new = true;
                break;
            }
        }
        self.were_open = opened == 0;
        Ok(())
    }

    /// Finds the groups of samples, and opens their files, several at the same time.
    fn divide_together(&mut self, setup: &Setup, mut wanted: &[Wanted]) -> Result<()> {
        let found = setup.io.map(wanted.chunks(FILES_ALONE), |wanted| groups_of(setup, wanted));
        let mut groups: Vec<NextGroup> = Vec::new();
        for found in found {
            for next in found? {
                match groups.last_mut() {
                    // two threads have found samples of one group
                    Some(last) if last.is_same(&next) => last.count = last.count.saturating_add(next.count),
                    _ => groups.push(next),
                }
            }
        }
        let opened = setup.io.map(groups.iter(), |next| open_group(setup, next));
        for (next, columns) in groups.iter().zip(opened) {
            let columns = columns?;
            self.are_new |= columns.opened > 0;
            wanted = self.add_group(columns, next.count, wanted);
        }
        self.were_open = !self.are_new;
        Ok(())
    }

    /// Adds the parts of a group, which has the first `count` samples. Returns the others.
    fn add_group<'w>(&mut self, columns: FoundColumns, count: usize, wanted: &'w [Wanted]) -> &'w [Wanted] {
        let (in_group, rest) = wanted.split_at(count.min(wanted.len()));
        for piece in in_group.chunks(PIECE) {
            columns.files.iter().for_each(|file| self.add(file, columns.samples.start, piece));
        }
        for place in columns.absent {
            self.absent.push((place, in_group.iter().map(|(_, _, position)| *position).collect()));
        }
        rest
    }

    /// Returns whether many files were opened for the batch.
    pub(super) fn are_new(&self) -> bool {
        self.are_new
    }

    /// Finds the chunks of all samples, and reads their bytes: of one file after the other while
    /// `is_at_hand` says that none of them waits, and then of many at the same time.
    pub(super) fn read_together(&mut self, io: &IoPool, is_at_hand: impl Fn() -> bool) -> Result<()> {
        let mut parts = self.parts.get_mut(..self.count).unwrap_or(&mut []).iter_mut();
        while is_at_hand() {
            let Some(part) = parts.next() else { return Ok(()) };
            part.read()?;
        }
        io.map(parts, Part::read).into_iter().collect()
    }

    /// Lets go of the files of a batch that was read, so that they can be closed.
    pub(super) fn release(&mut self) {
        self.iter_mut().for_each(Part::release);
        self.count = 0;
    }

    fn add(&mut self, file: &FoundFile, first: u64, wanted: &[Wanted]) {
        if self.count == self.parts.len() {
            self.parts.push(Part::default());
        }
        let Some(part) = self.parts.get_mut(self.count) else { return };
        part.columns.clone_from(&file.columns);
        part.places.clone_from(&file.places);
        part.samples.clear();
        part.samples.extend(wanted.iter().map(|(_, sample, _)| sample.saturating_sub(first)));
        part.positions.clear();
        part.positions.extend(wanted.iter().map(|(_, _, position)| *position));
        part.buffers.resize_with(part.columns.len().max(part.buffers.len()), ColumnBuffer::new);
        self.count += 1;
    }
}

impl NextGroup {
    fn is_same(&self, other: &Self) -> bool {
        self.dataset == other.dataset && self.group.samples() == other.group.samples()
    }
}

/// Finds the group of the first sample.
fn next_group(setup: &Setup, wanted: &[Wanted]) -> Result<Option<NextGroup>> {
    let Some(&(dataset, sample, _)) = wanted.first() else { return Ok(None) };
    let Some(found) = setup.view.datasets().get(dataset) else {
        return Ok(None); // not so: the view names its own datasets
    };
    let group = found.find_group(sample)?;
    let is_in_group = |(number, sample, _): &&Wanted| *number == dataset && group.samples().contains(sample);
    let count = wanted.iter().take_while(is_in_group).count().max(1);
    Ok(Some(NextGroup { dataset, group, count }))
}

/// Finds the groups of samples.
fn groups_of(setup: &Setup, mut wanted: &[Wanted]) -> Result<Vec<NextGroup>> {
    let mut groups = Vec::new();
    while let Some(next) = next_group(setup, wanted)? {
        wanted = wanted.get(next.count..).unwrap_or(&[]);
        groups.push(next);
    }
    Ok(groups)
}

/// Opens the files of a group that have columns of the loader.
fn open_group(setup: &Setup, next: &NextGroup) -> Result<FoundColumns> {
    let dataset = setup.view.datasets().get(next.dataset);
    let found = dataset.zip(setup.columns.in_datasets.get(next.dataset));
    let (dataset, columns) = found.ok_or_else(|| DataError::Internal("a group of no dataset".to_owned()))?;
    dataset.open_group(columns, &next.group)
}

impl Part {
    /// Finds the chunks of the samples.
    pub(super) fn plan(&mut self) -> Result<()> {
        let first = self.samples.first().copied().unwrap_or(0);
        let is_range = self.samples.iter().zip(first..).all(|(&sample, due)| sample == due);
        match is_range {
            true => {
                let end = self.samples.last().map_or(first, |last| last.saturating_add(1));
                Ok(self.plan.select_range(&self.columns, first..end)?)
            }
            false => Ok(self.plan.select(&self.columns, &self.samples)?),
        }
    }

    fn release(&mut self) {
        self.columns.clear();
        // without columns, neither can fail
        let _ = self.plan.select(&[], &[]).and_then(|()| self.bytes.begin(&self.plan));
    }

    fn read(&mut self) -> Result<()> {
        self.plan()?;
        self.fetch()
    }

    /// Reads the bytes of the chunks, unless the file is in a map.
    pub(super) fn fetch(&mut self) -> Result<()> {
        Ok(self.plan.fetch(&mut self.bytes)?)
    }
}
