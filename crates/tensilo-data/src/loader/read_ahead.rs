//! Runs of windowed orders, announced before their samples are wanted: the operating system reads
//! them at the speed of sequential reading, and an object store many at the same time. Sequential
//! orders have runs for object stores only, since a system sees by itself how they go on.

use super::helpers::on_threads;
use super::parts::Parts;
use super::policies::ReadAhead;
use super::schedule::{Schedule, StepStart};
use super::setup::Setup;
use crate::error::Result;
use crate::machine;
use crate::order::{Order, Runs};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

/// Ranks that one machine may have.
const RANKS_OF_A_MACHINE: u32 = 8;
/// Runs that are announced for each batch at most, so that no batch waits long.
const RUNS_OF_A_BATCH: u64 = 8;
/// The same for object stores, which take announcements without waiting.
const OBJECT_RUNS_OF_A_BATCH: u64 = 32;

/// The announcements of all threads of an iterator.
pub(super) struct Announced {
    /// Runs since the begin of the iterator's first epoch. The next one is announced next.
    next: AtomicU64,
    /// The epochs in which runs are announced.
    epochs: Range<u64>,
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
        Self { next: AtomicU64::new(begun), epochs: first.epoch..end.min(schedule.end_epoch()) }
    }

    /// Announces some runs, when a thread begins with the batch of a step. Errors are those of
    /// finding files; reading the batch meets them, too.
    pub(super) fn advance(
        &self,
        setup: &Setup,
        schedule: &Schedule,
        place: StepStart,
        parts: &mut Parts,
    ) -> Result<()> {
        if !self.epochs.contains(&place.epoch) {
            return Ok(());
        }
        let order = schedule.order(place.epoch);
        let Some(runs) = runs(setup, &order) else { return Ok(()) };
        let count = runs.count().max(1);
        let epochs_done = place.epoch.saturating_sub(self.epochs.start);
        let due = epochs_done.saturating_mul(count).saturating_add(runs.ahead(place.position));
        let mut claimed_runs = Vec::new();
        for _ in 0..if setup.reads_objects { OBJECT_RUNS_OF_A_BATCH } else { RUNS_OF_A_BATCH } {
            let claimed = self.next.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |next| {
                (next < due).then(|| next.saturating_add(1))
            });
            let Ok(run) = claimed else { break };
            let epoch = self.epochs.start.saturating_add(run / count);
            if self.epochs.contains(&epoch) {
                claimed_runs.push((epoch, run % count));
            }
        }
        let announce = |(epoch, run), parts: &mut Parts| announce(setup, &schedule.order(epoch), epoch, run, parts);
        if setup.reads_objects {
            // files that are not open take round trips
            let helpers = setup.threads.helpers();
            let runs = claimed_runs.into_iter();
            return on_threads(helpers, runs, |run| announce(run, &mut Parts::default())).into_iter().collect();
        }
        claimed_runs.into_iter().try_for_each(|run| announce(run, parts))
    }
}

/// Returns the runs that are announced.
fn runs<'o>(setup: &Setup, order: &'o Order) -> Option<Runs<'o>> {
    match setup.view.datasets().first() {
        Some(dataset) if setup.reads_objects => order.runs_of(dataset.order().run.get().into()),
        _ => order.runs(),
    }
}

/// Announces a run, if its samples are close together in one dataset.
fn announce(setup: &Setup, order: &Order, epoch: u64, run: u64, parts: &mut Parts) -> Result<()> {
    let Some(samples) = runs(setup, order).and_then(|runs| runs.at(run)) else { return Ok(()) };
    let of = |v: u64| setup.view.sample(v, epoch);
    let (first, last) = (of(samples.start), of(samples.end.saturating_sub(1)));
    let Some(((dataset, first), (last_dataset, last))) = first.zip(last) else { return Ok(()) };
    let length = samples.end.saturating_sub(samples.start);
    let is_close = last >= first && last.saturating_sub(first) < length.saturating_mul(4);
    match is_close && dataset == last_dataset {
        true => parts.announce(setup, dataset, first..last.saturating_add(1)),
        false => Ok(()),
    }
}

/// Returns whether the files of all datasets do not stay in the page cache.
fn is_larger_than_memory(setup: &Setup) -> bool {
    let stored = setup.view.datasets().iter().map(|dataset| dataset.stored_bytes());
    machine::is_larger_than_memory(stored.fold(0, u64::saturating_add))
}
