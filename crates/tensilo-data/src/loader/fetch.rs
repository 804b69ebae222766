//! The second stage: the bytes of a batch, and of samples that follow.
//!
//! A plan names the bytes of a batch. Where each read takes a round trip, the ranges of all files
//! are prefetched before the first is waited for.
//!
//! Samples that will be wanted later are announced ([`Announced`]): they are planned in the same
//! way and prefetched, and nothing waits for them. So the operating system reads the runs of
//! windowed orders at the speed of sequential reading, and an object store many at the same time.
//! Sequential orders have runs for object stores only, since a system sees by itself how they go
//! on.

use super::plan::files::{self, WantedGroup, find_group};
use super::plan::parts::{Part, Parts};
use super::plan::schedule::{Schedule, StepStart};
use super::setup::{ReadAhead, Setup};
use crate::error::Result;
use crate::io;
use crate::order::{Order, Runs};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError, TryLockError};
use tensilo::stages::ReadPlan;

/// Reads the bytes of all parts of a batch, unless their files are in maps: here a batch waits for
/// its values. It has waited for files, indexes and block indexes while it was planned.
pub(super) fn fetch(parts: &mut Parts, setup: &Setup) -> Result<()> {
    let are_new = parts.are_new();
    let parts = parts.all_mut();
    if parts.len() > 1 && (setup.is_remote || are_new) {
        parts.iter().try_for_each(|part| part.plan.prefetch())?;
    }
    let read = |part: &mut Part| Ok(part.plan.fetch(&mut part.bytes)?);
    match are_new && !setup.reads_objects {
        true => setup.io.map(parts.iter_mut(), read).into_iter().collect(),
        false => parts.iter_mut().try_for_each(|part| {
            setup.check_interrupt()?;
            read(part)
        }),
    }
}

/// Ranks that one machine may have.
const RANKS_OF_A_MACHINE: u32 = 8;
/// Runs that are announced for each batch at most, beyond those that it needs, so that no batch
/// waits long.
const RUNS_OF_A_BATCH: u64 = 8;
/// Groups of files that are opened at most to announce a run: opening files takes longer than
/// reading small ones.
const FILES_OF_A_RUN: usize = 4;
/// The same of objects: opening a small one reads all of it.
const OBJECTS_OF_A_RUN: usize = 64;
/// Groups of objects that are opened to announce runs before a batch, at most, unless the batch has
/// samples of more.
const OBJECTS_OF_A_BATCH: usize = 128;

/// The announcements of all threads of an iterator.
pub(super) struct Announced {
    /// Runs since the begin of the iterator's first epoch that are announced.
    count: AtomicU64,
    /// The epochs in which runs are announced.
    epochs: Range<u64>,
    /// The turn to announce, of one thread at a time, and the pieces of runs that were put off.
    turn: Mutex<Vec<Piece>>,
    /// Whether pieces were put off.
    has_more: AtomicBool,
}

impl Announced {
    pub(super) fn new(setup: &Setup, schedule: &Schedule, first_step: u64) -> Self {
        let first = schedule.place(first_step);
        let end = match setup.read_ahead {
            ReadAhead::Never => first.epoch,
            ReadAhead::Always => u64::MAX,
            ReadAhead::Auto if setup.division.world() > RANKS_OF_A_MACHINE => first.epoch,
            ReadAhead::Auto if setup.reads_objects || is_larger_than_memory(setup) => u64::MAX,
            ReadAhead::Auto => first.epoch.saturating_add(1),
        };
        // runs of windows that are done are not wanted
        let begun = runs(setup, &schedule.order(first.epoch)).map_or(0, |runs| {
            let ahead = runs.ahead(first.position);
            ahead.saturating_sub(runs.ahead(0).saturating_mul(2))
        });
        let epochs = first.epoch..end.min(schedule.end_epoch());
        let (count, turn) = (AtomicU64::new(begun), Mutex::default());
        Self { count, epochs, turn, has_more: AtomicBool::new(false) }
    }

    /// Announces some runs, when a thread begins with the batch of a step, which has these samples.
    /// Where reading costs round trips, all runs of the batch are announced when this returns:
    /// small structures of a run that is on its way are not asked for alone. If that takes more
    /// files than are opened at the same time, those without samples of the batch are put off.
    /// Errors are met again when the samples are read.
    pub(super) fn advance(&self, setup: &Setup, schedule: &Schedule, place: StepStart, samples: &[u64]) {
        if !self.epochs.contains(&place.epoch) {
            return;
        }
        let order = schedule.order(place.epoch);
        let Some(runs) = runs(setup, &order) else { return };
        let count = runs.count().max(1);
        let before = place.epoch.saturating_sub(self.epochs.start).saturating_mul(count);
        let due = before.saturating_add(runs.ahead(place.position));
        let needed = if setup.reads_objects { before.saturating_add(runs.begun(place.position)) } else { 0 };
        let done = || self.count.load(Ordering::Acquire);
        let has_more = || self.has_more.load(Ordering::Acquire);
        if done() >= due && !has_more() {
            return;
        }
        let mut put_off = match self.turn.try_lock() {
            Ok(turn) => turn,
            // another thread does it
            Err(TryLockError::WouldBlock) if done() >= needed && !has_more() => return,
            Err(_) => {
                let turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
                if done() >= needed && turn.is_empty() {
                    return; // another thread has done it
                }
                turn
            }
        };
        let begin = done();
        let ahead = if put_off.is_empty() { RUNS_OF_A_BATCH } else { 0 };
        let end = due.min(needed.max(begin.saturating_add(ahead))).max(begin);
        put_off.extend(self.find(setup, schedule, begin..end, count));
        announce_first(setup, &mut put_off, || BatchSamples::new(setup, samples, place.epoch));
        // now that it is done: others wait for it
        self.has_more.store(!put_off.is_empty(), Ordering::Release);
        self.count.store(end, Ordering::Release);
    }

    /// Finds the pieces of runs since the first epoch, of which each has `count`.
    fn find(&self, setup: &Setup, schedule: &Schedule, wanted: Range<u64>, count: u64) -> Vec<Piece> {
        let wanted = wanted.map(|run| (self.epochs.start.saturating_add(run / count), run % count));
        let wanted = wanted.filter(|(epoch, _)| self.epochs.contains(epoch));
        let spans = wanted.filter_map(|(epoch, run)| span_of(setup, &schedule.order(epoch), epoch, run));
        let spans: Vec<Span> = spans.collect();
        if setup.is_remote {
            for (number, dataset) in setup.view.datasets().iter().enumerate() {
                let of_dataset = spans.iter().filter(|span| span.dataset == number);
                let ends = of_dataset.flat_map(|span| [span.samples.start, span.samples.end.saturating_sub(1)]);
                dataset.read_pages(&setup.io, ends);
            }
        }
        spans.iter().flat_map(|span| pieces_of(setup, span)).collect()
    }
}

/// Announces the pieces that come first for a batch. The others stay.
fn announce_first(setup: &Setup, pieces: &mut Vec<Piece>, batch: impl FnOnce() -> BatchSamples) {
    let most = if setup.reads_objects { OBJECTS_OF_A_BATCH } else { usize::MAX };
    let first = take_first(pieces, most, batch);
    let (opened, _) = files::open(setup, first.iter().map(|piece| &piece.group));
    let mut plans = Vec::new();
    for (piece, found) in first.iter().zip(opened) {
        let Ok(found) = found else { continue };
        let of = |sample: u64| sample.saturating_sub(found.samples.start);
        for file in &found.files {
            let mut plan = ReadPlan::new();
            if plan.begin_range(&file.columns, of(piece.samples.start)..of(piece.samples.end)).is_ok() {
                plans.push(plan);
            }
        }
    }
    let mut are_complete = false;
    while !are_complete {
        are_complete = true;
        for plan in &mut plans {
            // one that has failed takes no further step
            are_complete &= plan.advance().unwrap_or(true);
        }
    }
    let _ = ReadPlan::prefetch_all(&plans); // reading the samples meets the same errors
}

/// Takes all pieces, if they are in at most `most` groups of files. Otherwise takes the first ones,
/// as many, or all that have samples of a batch.
fn take_first(pieces: &mut Vec<Piece>, most: usize, batch: impl FnOnce() -> BatchSamples) -> Vec<Piece> {
    let start_of = |piece: &Piece| (piece.group.dataset, piece.group.group.samples().start);
    let mut groups: Vec<_> = pieces.iter().map(start_of).collect();
    groups.sort_unstable();
    groups.dedup();
    if groups.len() <= most {
        return std::mem::take(pieces);
    }
    let batch = batch();
    pieces.sort_by_cached_key(|piece| !batch.is_in(piece)); // stable
    let wanted = pieces.partition_point(|piece| batch.is_in(piece));
    let rest = pieces.split_off(wanted.max(most));
    std::mem::replace(pieces, rest)
}

/// The samples of a batch, by dataset.
struct BatchSamples(Vec<(usize, u64)>);

impl BatchSamples {
    fn new(setup: &Setup, samples: &[u64], epoch: u64) -> Self {
        let mut wanted: Vec<_> = samples.iter().filter_map(|&v| setup.view.sample(v, epoch)).collect();
        wanted.sort_unstable();
        Self(wanted)
    }

    /// Returns whether a piece has any of the samples.
    fn is_in(&self, piece: &Piece) -> bool {
        let dataset = piece.group.dataset;
        let first = self.0.partition_point(|sample| *sample < (dataset, piece.samples.start));
        self.0.get(first).is_some_and(|sample| *sample < (dataset, piece.samples.end))
    }
}

/// Returns the runs that are announced.
fn runs<'o>(setup: &Setup, order: &'o Order) -> Option<Runs<'o>> {
    match setup.view.datasets().first() {
        Some(dataset) if setup.reads_objects => order.runs_of(dataset.order().run.get().into()),
        _ => order.runs(),
    }
}

/// The samples of a run.
struct Span {
    dataset: usize,
    samples: Range<u64>,
}

/// The samples of a run that are in one group of files.
struct Piece {
    group: WantedGroup,
    samples: Range<u64>,
}

/// Returns the samples of a run, if they are close together in one dataset.
fn span_of(setup: &Setup, order: &Order, epoch: u64, run: u64) -> Option<Span> {
    let samples = runs(setup, order)?.at(run)?;
    let of = |v: u64| setup.view.sample(v, epoch);
    let ((dataset, first), (last_dataset, last)) = (of(samples.start)?, of(samples.end.saturating_sub(1))?);
    let length = samples.end.saturating_sub(samples.start);
    let is_close = last >= first && last.saturating_sub(first) < length.saturating_mul(4);
    (is_close && dataset == last_dataset).then(|| Span { dataset, samples: first..last.saturating_add(1) })
}

/// Returns the pieces of a run: the first ones, as many as may be opened.
fn pieces_of(setup: &Setup, span: &Span) -> Vec<Piece> {
    let most = if setup.reads_objects { OBJECTS_OF_A_RUN } else { FILES_OF_A_RUN };
    let (mut start, end) = (span.samples.start, span.samples.end);
    let mut pieces = Vec::new();
    while start < end && pieces.len() < most {
        let Ok(group) = find_group(setup, span.dataset, start) else { break };
        let group_end = group.group.samples().end.clamp(start.saturating_add(1), end);
        pieces.push(Piece { group, samples: start..group_end });
        start = group_end;
    }
    pieces
}

/// Returns whether the files of all datasets do not stay in the page cache.
fn is_larger_than_memory(setup: &Setup) -> bool {
    let stored = setup.view.datasets().iter().map(|dataset| dataset.stored_bytes());
    io::is_larger_than_memory(stored.fold(0, u64::saturating_add))
}
