//! The segments of a batch: which of its samples are in which file.
//!
//! The samples of a shuffled batch can be in any file of any dataset of the view. They are sorted
//! by dataset and sample, so that each file is found and opened once per batch. A segment lists the
//! samples of one file and, for each, the position in the batch at which the decoder puts it. Its
//! number of samples is bounded, so that a long read can be interrupted between two segments.
//!
//! The files of a group have the same samples and different columns, so each file of a group is a
//! separate segment. Columns that no file of a group has are noted as absent: their samples are
//! null.

use super::files::{self, find_group};
use crate::dataset::{FileColumns, GroupColumns};
use crate::error::{DataError, Result};
use crate::loader::deliver::memory::too_large;
use crate::loader::setup::Setup;
use tensilo::stages::{FetchedBytes, ReadPlan};
use tensilo::{Column, ColumnBuffer};

/// The samples of a batch that are in one file, with the columns of that file.
#[derive(Default)]
pub(in crate::loader) struct Segment {
    pub columns: Vec<Column>,
    /// The slot of each column: its position among the columns of the loader.
    pub slots: Vec<usize>,
    /// The samples of the file, and the position of each in the batch. One of the two lists is in
    /// ascending order.
    pub samples: Vec<u64>,
    pub positions: Vec<usize>,
    pub plan: ReadPlan,
    pub bytes: FetchedBytes,
    /// The samples of each ragged or nested column.
    pub buffers: Vec<ColumnBuffer>,
}

#[cfg(feature = "cuda")]
impl Segment {
    /// Takes the buffer of the column with this number in the segment. [`Segment::put_buffer`] puts
    /// it back.
    pub(in crate::loader) fn take_buffer(&mut self, number: usize) -> ColumnBuffer {
        if self.buffers.len() <= number {
            self.buffers.resize_with(number.saturating_add(1), ColumnBuffer::new);
        }
        self.buffers.get_mut(number).map(std::mem::take).unwrap_or_default()
    }

    pub(in crate::loader) fn put_buffer(&mut self, number: usize, buffer: ColumnBuffer) {
        if let Some(slot) = self.buffers.get_mut(number) {
            *slot = buffer;
        }
    }
}

/// The maximum number of samples of a segment, so that a long read can be interrupted.
const MAX_SEGMENT_SAMPLES: usize = 1 << 14;

/// A dataset, one of its samples, and the sample's position in the batch.
type SampleRequest = (usize, u64, usize);

/// The segments of a batch, in reused memory.
#[derive(Default)]
pub(in crate::loader) struct Segments {
    segments: Vec<Segment>,
    count: usize,
    /// The slots of columns that no file of a group has, and the positions at which they are null.
    pub absent: Vec<(usize, Vec<usize>)>,
    requested: Vec<SampleRequest>,
    /// Whether many files were opened for the batch. The bytes that plans read first, which were
    /// only just prefetched, may then not be in memory yet.
    opened_many: bool,
}

impl Segments {
    pub(in crate::loader) fn iter(&self) -> impl Iterator<Item = &Segment> {
        self.segments.iter().take(self.count)
    }

    pub(in crate::loader) fn all_mut(&mut self) -> &mut [Segment] {
        self.segments.get_mut(..self.count).unwrap_or(&mut []) // always in bounds
    }

    /// Finds the files of these samples of the view, and opens them if needed.
    pub(in crate::loader) fn find(&mut self, setup: &Setup, samples: &[u64], epoch: u64) -> Result<()> {
        let mut requested = std::mem::take(&mut self.requested);
        requested.clear();
        let bytes = samples.len().saturating_mul(size_of::<SampleRequest>());
        requested.try_reserve(samples.len()).map_err(|_| too_large(bytes))?;
        let found = samples.iter().zip(0..).filter_map(|(&v, position)| {
            let (dataset, sample) = setup.view.sample(v, epoch)?;
            Some((dataset, sample, position))
        });
        requested.extend(found);
        if requested.len() != samples.len() {
            return Err(DataError::Internal(format!("one of the samples {samples:?} is not in the view")));
        }
        requested.sort_unstable();
        let result = self.divide(setup, &requested);
        self.requested = requested;
        if setup.columns.has_ragged() {
            self.restore_order(samples.len());
        }
        result
    }

    /// If a segment has the whole batch, puts its samples into batch order, so that ragged samples
    /// are decoded to their positions. Other segments are concatenated after decoding.
    fn restore_order(&mut self, count: usize) {
        for segment in self.all_mut().iter_mut().filter(|segment| segment.positions.len() == count) {
            let mut samples = vec![0; count];
            for (sample, &position) in segment.samples.iter().zip(&segment.positions) {
                if let Some(to) = samples.get_mut(position) {
                    *to = *sample;
                }
            }
            segment.samples = samples;
            segment.positions.clear();
            segment.positions.extend(0..count);
        }
    }

    /// Divides sorted samples among the groups of files that have them, and opens the files.
    fn divide(&mut self, setup: &Setup, mut requested: &[SampleRequest]) -> Result<()> {
        self.count = 0;
        self.absent.clear();
        if setup.is_remote {
            read_pages(setup, requested);
        }
        let (mut groups, mut counts) = (Vec::new(), Vec::new());
        let mut rest = requested;
        while let Some(&(dataset, sample, _)) = rest.first() {
            let group = find_group(setup, dataset, sample)?;
            let is_in_group =
                |(number, sample, _): &&SampleRequest| *number == dataset && group.group.samples().contains(sample);
            let count = rest.iter().take_while(is_in_group).count().max(1);
            rest = rest.get(count..).unwrap_or(&[]);
            groups.push(group);
            counts.push(count);
        }
        let (opened, opened_many) = files::open(setup, groups.iter());
        self.opened_many = opened_many;
        for (columns, count) in opened.into_iter().zip(counts) {
            requested = self.add_group(columns?, count, requested);
        }
        Ok(())
    }

    /// Adds the segments for the first `count` of the requested samples, which are all in one
    /// group. Returns the remaining samples.
    fn add_group<'w>(
        &mut self,
        columns: GroupColumns,
        count: usize,
        requested: &'w [SampleRequest],
    ) -> &'w [SampleRequest] {
        let (in_group, rest) = requested.split_at(count.min(requested.len()));
        for requests in in_group.chunks(MAX_SEGMENT_SAMPLES) {
            columns.files.iter().for_each(|file| self.add(file, columns.samples.start, requests));
        }
        for slot in columns.absent {
            self.absent.push((slot, in_group.iter().map(|(_, _, position)| *position).collect()));
        }
        rest
    }

    /// Plans the reads of all segments: finds the chunks of the samples.
    pub(in crate::loader) fn plan(&mut self, setup: &Setup) -> Result<()> {
        // prefetched bytes of an object are in memory when a step needs them; bytes of a file that
        // was just opened may not be
        let io = Some(&*setup.io).filter(|_| self.opened_many && !setup.reads_objects);
        let segments = self.all_mut();
        segments.iter_mut().try_for_each(Segment::begin)?;
        files::complete(segments, |segment| &mut segment.plan, io)
    }

    /// Returns whether many files were opened for the batch.
    pub(in crate::loader) fn opened_many(&self) -> bool {
        self.opened_many
    }

    /// Releases the files of a batch that was read, so that they can be closed.
    pub(in crate::loader) fn release(&mut self) {
        self.all_mut().iter_mut().for_each(Segment::release);
        self.count = 0;
    }

    fn add(&mut self, file: &FileColumns, first: u64, requested: &[SampleRequest]) {
        if self.count == self.segments.len() {
            self.segments.push(Segment::default());
        }
        let Some(segment) = self.segments.get_mut(self.count) else { return };
        segment.columns.clone_from(&file.columns);
        segment.slots.clone_from(&file.slots);
        segment.samples.clear();
        segment.samples.extend(requested.iter().map(|(_, sample, _)| sample.saturating_sub(first)));
        segment.positions.clear();
        segment.positions.extend(requested.iter().map(|(_, _, position)| *position));
        segment.buffers.resize_with(segment.columns.len().max(segment.buffers.len()), ColumnBuffer::new);
        self.count += 1;
    }
}

/// Reads the manifest pages that are needed to find the samples.
fn read_pages(setup: &Setup, requested: &[SampleRequest]) {
    for of_dataset in requested.chunk_by(|one, other| one.0 == other.0) {
        let dataset = of_dataset.first().and_then(|(dataset, ..)| setup.view.datasets().get(*dataset));
        if let Some(dataset) = dataset {
            dataset.read_pages(&setup.io, of_dataset.iter().map(|(_, sample, _)| *sample));
        }
    }
}

impl Segment {
    /// Begins the plan for the samples.
    fn begin(&mut self) -> Result<()> {
        let first = self.samples.first().copied().unwrap_or(0);
        let is_range = self.samples.iter().zip(first..).all(|(&sample, expected)| sample == expected);
        match is_range {
            true => {
                let end = self.samples.last().map_or(first, |last| last.saturating_add(1));
                Ok(self.plan.begin_range(&self.columns, first..end)?)
            }
            false => Ok(self.plan.begin(&self.columns, &self.samples)?),
        }
    }

    fn release(&mut self) {
        self.columns.clear();
        // without columns, neither call can fail
        let _ = self.plan.select(&[], &[]).and_then(|()| self.bytes.begin(&self.plan));
    }
}
