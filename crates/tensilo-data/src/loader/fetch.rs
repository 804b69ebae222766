//! The second stage: fetches the bytes of a batch, and prefetches the runs that follow.
//!
//! [`fetch`] reads the ranges that the plans list. If each read takes a round trip, it prefetches
//! the ranges of all files before it waits for the first file. A batch then waits once, and not
//! once per file.
//!
//! In a windowed order, a batch takes a few samples from each of many runs, in shuffled order.
//! Reading these samples one by one would take many small random reads, although all samples of a
//! run are needed before its window ends. So [`RunPrefetcher`] prefetches whole runs ahead of the
//! batches: all runs in the current windows of the streams that this rank takes samples from, and a
//! share of the next windows. This share is one run larger than the share of the current windows
//! that the batches have read. In a job of many ranks, whose windows last for a few steps only,
//! more windows are prefetched. The operating system then reads local files at sequential speed,
//! and an object store answers many large requests at the same time. Runs are planned like batches,
//! but no thread waits for their bytes. Errors are ignored, because reading the samples will report
//! them.
//!
//! Planning a run of an object whose file is not open takes several round trips. So a thread
//! prefetches after it has delivered its batch, and no batch is held up. Before it reads a batch,
//! it only requests the runs that this batch needs, which usually have been prefetched.
//!
//! At the start, nothing of the current windows has been fetched, and they can hold gigabytes. So
//! that the first batches do not wait for all of it, each batch prefetches the runs of its own
//! samples and a few others, until the windows are complete.
//!
//! In a sequential order, runs are prefetched only from object stores, because an operating system
//! detects sequential reads of local files by itself. Only one thread at a time prefetches, and it
//! prefetches a bounded number of runs before it reads its next batch.

use super::plan::files::{self, ViewGroup, find_group};
use super::plan::schedule::{Schedule, StepStart};
use super::plan::segments::{Segment, Segments};
use super::setup::{ReadAhead, Setup};
use crate::error::Result;
use crate::io;
use crate::order::{EpochOrder, Runs};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError, TryLockError};
use tensilo::stages::ReadPlan;

/// Reads the bytes of all segments of a batch, unless their files are mapped. A batch waits here
/// only for values: its files were opened, and their indexes and block indexes were read, when it
/// was planned.
pub(super) fn fetch(segments: &mut Segments, setup: &Setup) -> Result<()> {
    let opened_many = segments.opened_many();
    let segments = segments.all_mut();
    if segments.len() > 1 && (setup.is_remote || opened_many) {
        segments.iter().try_for_each(|segment| segment.plan.prefetch())?;
    }
    let read = |segment: &mut Segment| Ok(segment.plan.fetch(&mut segment.bytes)?);
    match opened_many && !setup.reads_objects {
        true => setup.io.map(segments.iter_mut(), read).into_iter().collect(),
        false => segments.iter_mut().try_for_each(|segment| {
            setup.check_interrupt()?;
            read(segment)
        }),
    }
}

/// The maximum number of runs that are prefetched before a batch is read, besides the runs of its
/// own samples and twice the number of runs that a batch completes on average.
const MAX_RUNS_PER_BATCH: u64 = 8;
/// The maximum number of file groups that are opened to prefetch a run. If a run is in more groups,
/// its files are small, and opening a small file takes longer than reading it.
const MAX_FILES_PER_RUN: usize = 4;
/// The same limit for objects. It is higher because opening a small object reads all of it.
const MAX_OBJECTS_PER_RUN: usize = 64;
/// The maximum number of groups of objects that are opened to prefetch runs before a batch is read,
/// unless the batch itself needs more groups.
const MAX_OBJECTS_PER_BATCH: usize = 128;

/// Prefetches the runs of an iterator. The threads of the iterator share it.
pub(super) struct RunPrefetcher {
    /// How many runs are prefetched, deferred or no longer needed, counted from the start of the
    /// iterator's first epoch.
    count: AtomicU64,
    /// The epochs in which runs are prefetched.
    epochs: Range<u64>,
    /// What is left to later batches. The lock also ensures that only one thread prefetches at a
    /// time.
    deferred: Mutex<Deferred>,
    /// Whether something is deferred. This can be read without the lock.
    has_deferred: AtomicBool,
}

#[derive(Default)]
struct Deferred {
    /// Runs whose files have not been looked up.
    runs: Vec<Run>,
    ranges: Vec<GroupRange>,
}

/// A run, as samples of the view.
struct Run {
    epoch: u64,
    samples: Range<u64>,
}

impl RunPrefetcher {
    pub(super) fn new(setup: &Setup, schedule: &Schedule, first_step: u64) -> Self {
        let first = schedule.start(first_step);
        let end = match setup.read_ahead {
            ReadAhead::Never => first.epoch,
            ReadAhead::Always => u64::MAX,
            ReadAhead::Auto if !schedule.reads_whole_runs() => first.epoch,
            ReadAhead::Auto if setup.reads_objects || is_larger_than_memory(setup) => u64::MAX,
            ReadAhead::Auto => first.epoch.saturating_add(1),
        };
        let order = schedule.order(first.epoch);
        let runs = runs(setup, &order).filter(|_| end > first.epoch);
        if let Some(runs) = &runs {
            setup.view.datasets().iter().for_each(|dataset| dataset.reserve_memory(runs.prefetched_samples()));
        }
        let begun = runs.map_or(0, |runs| runs.finished_count(first.position));
        let epochs = first.epoch..end.min(schedule.end_epoch());
        let (count, deferred) = (AtomicU64::new(begun), Mutex::default());
        Self { count, epochs, deferred, has_deferred: AtomicBool::new(false) }
    }

    /// Requests the runs that a batch needs, unless they have been prefetched. A thread calls this
    /// before it reads the batch: `samples` are its samples, and `start` is where its step starts.
    ///
    /// For objects, all runs of the batch have been requested when this returns, so planning the
    /// batch sends no separate requests for headers in these runs. If the runs are in more groups
    /// than can be opened at the same time, ranges without samples of the batch are deferred to
    /// later calls.
    pub(super) fn request(&self, setup: &Setup, schedule: &Schedule, start: StepStart, samples: &[u64]) {
        self.advance(setup, schedule, start, Some(samples));
    }

    /// Prefetches some of the runs of later batches. A thread calls this when it has delivered the
    /// batch of a step, so no batch waits until their files are open.
    pub(super) fn prefetch(&self, setup: &Setup, schedule: &Schedule, start: StepStart) {
        self.advance(setup, schedule, start, None);
    }

    /// Requests runs: those that a batch needs, or, without a batch, some that later batches need.
    fn advance(&self, setup: &Setup, schedule: &Schedule, start: StepStart, batch: Option<&[u64]>) {
        if !self.epochs.contains(&start.epoch) {
            return;
        }
        let order = schedule.order(start.epoch);
        let Some(runs) = runs(setup, &order) else { return };
        let count = runs.count().max(1);
        let before = start.epoch.saturating_sub(self.epochs.start).saturating_mul(count);
        let in_epoch = match batch {
            Some(_) => runs.needed_count(start.position),
            None => runs.prefetch_count(start.position),
        };
        let target = before.saturating_add(in_epoch);
        let is_done = || self.count.load(Ordering::Acquire) >= target && !self.has_deferred.load(Ordering::Acquire);
        if is_done() {
            return;
        }
        let mut deferred = match self.deferred.try_lock() {
            Ok(deferred) => deferred,
            // another thread is prefetching; reading a local file does not depend on it
            Err(TryLockError::WouldBlock) if batch.is_none() || !setup.reads_objects => return,
            Err(_) => self.deferred.lock().unwrap_or_else(PoisonError::into_inner),
        };
        if is_done() {
            return; // another thread has requested the runs
        }
        let Deferred { runs: deferred_runs, ranges } = &mut *deferred;
        let begin = self.count.load(Ordering::Acquire);
        let run_samples = runs.at(0).map_or(1, |run| run.end.saturating_sub(run.start).max(1));
        let completed = u64::from(setup.division.batch_size()) / run_samples;
        let others = MAX_RUNS_PER_BATCH.saturating_add(completed.saturating_mul(2));
        let end = match batch {
            Some(_) => target.max(begin),
            None if deferred_runs.is_empty() => target.min(begin.saturating_add(others)).max(begin),
            None => begin,
        };
        self.extend(deferred_runs, setup, schedule, begin..end, count);
        let samples = batch.unwrap_or_default();
        let first = take_runs(deferred_runs, others, start.epoch, samples);
        ranges.extend(find(setup, &first));
        prefetch_first(setup, ranges, || BatchSamples::new(setup, samples, start.epoch));
        // stored last, because threads that see the new count do not wait for this one
        self.has_deferred.store(!deferred_runs.is_empty() || !ranges.is_empty(), Ordering::Release);
        self.count.store(end, Ordering::Release);
    }

    /// Appends runs to a list. They are numbered from the start of the first epoch, and each epoch
    /// has `count` runs.
    fn extend(&self, list: &mut Vec<Run>, setup: &Setup, schedule: &Schedule, mut numbers: Range<u64>, count: u64) {
        while !numbers.is_empty() {
            let before = numbers.start / count;
            let end = before.saturating_add(1).saturating_mul(count).min(numbers.end);
            let epoch = self.epochs.start.saturating_add(before);
            let order = schedule.order(epoch);
            if let Some(runs) = runs(setup, &order).filter(|_| self.epochs.contains(&epoch)) {
                let found = (numbers.start..end).filter_map(|number| runs.at(number % count));
                list.extend(found.map(|samples| Run { epoch, samples }));
            }
            numbers.start = end;
        }
    }
}

/// Takes all runs with samples of a batch, and the first `others` of the other runs.
fn take_runs(runs: &mut Vec<Run>, mut others: u64, epoch: u64, batch: &[u64]) -> Vec<Run> {
    let mut sorted = batch.to_vec();
    sorted.sort_unstable();
    let (first, rest) = std::mem::take(runs).into_iter().partition(|run| {
        let next = sorted.partition_point(|sample| *sample < run.samples.start);
        if run.epoch == epoch && sorted.get(next).is_some_and(|sample| *sample < run.samples.end) {
            return true;
        }
        let is_taken = others > 0;
        others = others.saturating_sub(1);
        is_taken
    });
    *runs = rest;
    first
}

/// Finds the ranges of runs.
fn find(setup: &Setup, runs: &[Run]) -> Vec<GroupRange> {
    let spans: Vec<Span> = runs.iter().filter_map(|run| span_of(setup, run)).collect();
    if setup.is_remote {
        for (number, dataset) in setup.view.datasets().iter().enumerate() {
            let of_dataset = spans.iter().filter(|span| span.dataset == number);
            let ends = of_dataset.flat_map(|span| [span.samples.start, span.samples.end.saturating_sub(1)]);
            dataset.read_pages(&setup.io, ends);
        }
    }
    spans.iter().flat_map(|span| ranges_of(setup, span)).collect()
}

/// Prefetches the ranges that a batch needs first, and leaves the other ranges in `ranges`.
fn prefetch_first(setup: &Setup, ranges: &mut Vec<GroupRange>, batch: impl FnOnce() -> BatchSamples) {
    let max_groups = if setup.reads_objects { MAX_OBJECTS_PER_BATCH } else { usize::MAX };
    let first = take_first(ranges, max_groups, batch);
    let (opened, _) = files::open(setup, first.iter().map(|range| &range.group));
    let mut plans = Vec::new();
    for (range, found) in first.iter().zip(opened) {
        let Ok(found) = found else { continue };
        let of = |sample: u64| sample.saturating_sub(found.samples.start);
        for file in &found.files {
            let mut plan = ReadPlan::new();
            if plan.begin_range(&file.columns, of(range.samples.start)..of(range.samples.end)).is_ok() {
                plans.push(plan);
            }
        }
    }
    let mut are_complete = false;
    while !are_complete {
        are_complete = true;
        for plan in &mut plans {
            // a failed plan takes no further steps
            are_complete &= plan.advance().unwrap_or(true);
        }
    }
    let _ = ReadPlan::prefetch_all(&plans); // reading the samples reports the same errors
}

/// Takes all ranges if they are in at most `max_groups` groups of files. Otherwise, takes
/// `max_groups` ranges, beginning with the ranges that have samples of the batch. If more than
/// `max_groups` ranges have samples of the batch, takes all of these.
fn take_first(
    ranges: &mut Vec<GroupRange>,
    max_groups: usize,
    batch: impl FnOnce() -> BatchSamples,
) -> Vec<GroupRange> {
    let start_of = |range: &GroupRange| (range.group.dataset, range.group.group.samples().start);
    let mut groups: Vec<_> = ranges.iter().map(start_of).collect();
    groups.sort_unstable();
    groups.dedup();
    if groups.len() <= max_groups {
        return std::mem::take(ranges);
    }
    let batch = batch();
    ranges.sort_by_cached_key(|range| !batch.is_in(range)); // stable
    let requested = ranges.partition_point(|range| batch.is_in(range));
    let rest = ranges.split_off(requested.max(max_groups));
    std::mem::replace(ranges, rest)
}

/// The samples of a batch, sorted by dataset and index.
struct BatchSamples(Vec<(usize, u64)>);

impl BatchSamples {
    fn new(setup: &Setup, samples: &[u64], epoch: u64) -> Self {
        let mut requested: Vec<_> = samples.iter().filter_map(|&v| setup.view.sample(v, epoch)).collect();
        requested.sort_unstable();
        Self(requested)
    }

    /// Returns whether a range has any samples of the batch.
    fn is_in(&self, range: &GroupRange) -> bool {
        let dataset = range.group.dataset;
        let first = self.0.partition_point(|sample| *sample < (dataset, range.samples.start));
        self.0.get(first).is_some_and(|sample| *sample < (dataset, range.samples.end))
    }
}

/// Returns the runs of an order, or `None` if the order is not prefetched.
fn runs<'o>(setup: &Setup, order: &'o EpochOrder) -> Option<Runs<'o>> {
    let (rank, division) = (setup.rank, setup.division);
    match setup.view.datasets().first() {
        Some(dataset) if setup.reads_objects => {
            Runs::of_any(order, division, rank, dataset.window_sizes().run.get().into())
        }
        _ => Runs::of(order, division, rank),
    }
}

/// The samples of a run.
struct Span {
    dataset: usize,
    samples: Range<u64>,
}

/// The samples of a run that are in one group of files.
struct GroupRange {
    group: ViewGroup,
    samples: Range<u64>,
}

/// Returns the samples of a run if they are close together in one dataset.
fn span_of(setup: &Setup, run: &Run) -> Option<Span> {
    let samples = &run.samples;
    let of = |v: u64| setup.view.sample(v, run.epoch);
    let ((dataset, first), (last_dataset, last)) = (of(samples.start)?, of(samples.end.saturating_sub(1))?);
    let length = samples.end.saturating_sub(samples.start);
    let is_close = last >= first && last.saturating_sub(first) < length.saturating_mul(4);
    (is_close && dataset == last_dataset).then(|| Span { dataset, samples: first..last.saturating_add(1) })
}

/// Returns the first ranges of a run, one for each group of files, up to the maximum number of
/// groups.
fn ranges_of(setup: &Setup, span: &Span) -> Vec<GroupRange> {
    let max_groups = if setup.reads_objects { MAX_OBJECTS_PER_RUN } else { MAX_FILES_PER_RUN };
    let (mut start, end) = (span.samples.start, span.samples.end);
    let mut ranges = Vec::new();
    while start < end && ranges.len() < max_groups {
        let Ok(group) = find_group(setup, span.dataset, start) else { break };
        let group_end = group.group.samples().end.clamp(start.saturating_add(1), end);
        ranges.push(GroupRange { group, samples: start..group_end });
        start = group_end;
    }
    ranges
}

/// Returns whether the files of all datasets together are too large to stay in the page cache.
fn is_larger_than_memory(setup: &Setup) -> bool {
    let stored = setup.view.datasets().iter().map(|dataset| dataset.stored_bytes());
    io::is_larger_than_memory(stored.fold(0, u64::saturating_add))
}
