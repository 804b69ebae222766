//! The division of a batch among the files that its samples are in.

use super::memory::too_large;
use super::setup::Setup;
use crate::dataset::FoundFile;
use crate::error::{DataError, Result};
use std::ops::Range;
use tensilo::stages::{FetchedBytes, ReadPlan};
use tensilo::{Column, ColumnBuffer};

/// The samples of a batch that are in one file, with some of the columns.
#[derive(Default)]
pub(super) struct Part {
    pub columns: Vec<Column>,
    /// The place of each column among those of the loader.
    pub places: Vec<usize>,
    /// The samples of the file, ascending, and the position of each in the batch.
    pub samples: Vec<u64>,
    pub positions: Vec<usize>,
    pub plan: ReadPlan,
    pub bytes: FetchedBytes,
    /// For each column that is ragged or nested, its samples.
    pub buffers: Vec<ColumnBuffer>,
}

/// Groups of files that are opened at most to announce a run.
const FILES_OF_A_RUN: usize = 4;

/// The parts of a batch, in memory that is reused.
#[derive(Default)]
pub(super) struct Parts {
    parts: Vec<Part>,
    count: usize,
    /// Columns that no file has, by their places, and the positions that they are null at.
    pub absent: Vec<(usize, Vec<usize>)>,
    /// Dataset, sample of it, and position in the batch.
    wanted: Vec<(usize, u64, usize)>,
    /// A plan of samples that are only announced.
    ahead: ReadPlan,
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
        let bytes = samples.len().saturating_mul(size_of::<(usize, u64, usize)>());
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
        result
    }

    fn divide(&mut self, setup: &Setup, mut wanted: &[(usize, u64, usize)]) -> Result<()> {
        self.count = 0;
        self.absent.clear();
        while let Some(&(number, sample, _)) = wanted.first() {
            let (Some(dataset), Some(columns)) =
                (setup.view.datasets().get(number), setup.columns.in_datasets.get(number))
            else {
                return Ok(()); // not so: the view names its own datasets
            };
            let found = dataset.find_columns(columns, sample)?;
            let is_in_group =
                |(dataset, sample, _): &&(usize, u64, usize)| *dataset == number && found.samples.contains(sample);
            let count = wanted.iter().take_while(is_in_group).count().max(1);
            let (in_group, rest) = wanted.split_at(count.min(wanted.len()));
            for file in found.files {
                self.add(file, found.samples.start, in_group);
            }
            for place in found.absent {
                self.absent.push((place, in_group.iter().map(|(_, _, position)| *position).collect()));
            }
            wanted = rest;
        }
        Ok(())
    }

    /// Lets go of the files of a batch that was read, so that they can be closed.
    pub(super) fn release(&mut self) {
        self.iter_mut().for_each(Part::release);
        self.count = 0;
    }

    /// Announces samples of a dataset to the operating system. Of samples in many files only those
    /// in the first ones: opening files takes longer than reading small ones.
    pub(super) fn announce(&mut self, setup: &Setup, number: usize, samples: Range<u64>) -> Result<()> {
        let (Some(dataset), Some(columns)) = (setup.view.datasets().get(number), setup.columns.in_datasets.get(number))
        else {
            return Ok(()); // not so: the view names its own datasets
        };
        let mut start = samples.start;
        for _ in 0..FILES_OF_A_RUN {
            if start >= samples.end {
                break;
            }
            let found = dataset.find_columns(columns, start)?;
            let end = samples.end.min(found.samples.end);
            let in_file = start.saturating_sub(found.samples.start)..end.saturating_sub(found.samples.start);
            for file in found.files {
                self.ahead.select_range(&file.columns, in_file.clone())?;
                self.ahead.announce();
            }
            start = end.max(start.saturating_add(1));
        }
        Ok(())
    }

    fn add(&mut self, file: FoundFile, first: u64, wanted: &[(usize, u64, usize)]) {
        if self.count == self.parts.len() {
            self.parts.push(Part::default());
        }
        let Some(part) = self.parts.get_mut(self.count) else { return };
        (part.columns, part.places) = (file.columns, file.places);
        part.samples.clear();
        part.samples.extend(wanted.iter().map(|(_, sample, _)| sample.saturating_sub(first)));
        part.positions.clear();
        part.positions.extend(wanted.iter().map(|(_, _, position)| *position));
        part.buffers.resize_with(part.columns.len().max(part.buffers.len()), ColumnBuffer::new);
        self.count += 1;
    }
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

    /// Reads the bytes of the chunks, unless the file is in a map.
    pub(super) fn fetch(&mut self) -> Result<()> {
        Ok(self.plan.fetch(&mut self.bytes)?)
    }
}
