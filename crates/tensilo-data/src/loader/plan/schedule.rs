//! The steps of an iterator, and the samples of each step.
//!
//! A step is a number. Its epoch, its position and its samples are computed from this number and
//! the order, so any thread can take any step, and nothing is stored per step. A [`State`] has
//! everything that this computation needs, so a job resumes at any step in constant time.
//!
//! Only the first epoch can start in the middle, at the position of a saved state. It has
//! `first_steps` steps. Each later epoch starts at position 0 and has `epoch_steps` steps.

use crate::error::{DataError, Result};
use crate::loader::setup::{Setup, check_steps};
use crate::order::{Division, EpochOrder, Order, Receipt, State};
use crate::view::View;
use std::fmt;
use std::ops::Range;

/// The steps that an iterator delivers, numbered from 0.
#[derive(Clone, Copy, Debug)]
pub(in crate::loader) struct Schedule {
    n: u64,
    order: Order,
    seed: u64,
    division: Division,
    rank: u32,
    first: StepStart,
    /// The number of steps of the first epoch, and of each later epoch.
    first_steps: u64,
    epoch_steps: u64,
    /// The epoch after the last one.
    end: u64,
    /// The total number of steps.
    pub steps: u64,
    /// The receipt of the state that the iterator resumes.
    pub receipt: Receipt,
}

/// The epoch and the position at which a step starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::loader) struct StepStart {
    pub epoch: u64,
    pub position: u64,
}

impl Schedule {
    /// Returns all steps of these epochs.
    pub(in crate::loader) fn for_epochs(setup: &Setup, epochs: Range<u64>) -> Self {
        let first = StepStart { epoch: epochs.start, position: 0 };
        let sequence = (setup.order, setup.seed, setup.division);
        Self::new(setup, sequence, first, epochs.end, Receipt::default())
    }

    /// Returns the steps that follow a state. Fails if the state belongs to a different dataset,
    /// view or number of samples, or if the caller set a different order, seed or last batch.
    pub(in crate::loader) fn resume(setup: &Setup, state: &State, end: u64) -> Result<Self> {
        let view = &setup.view;
        if (state.dataset_id, state.view_id, state.sample_count)
            != (view.dataset_id(), view.identity(), view.sample_count())
        {
            return Err(DataError::BadState(mismatch(state, view)));
        }
        let (order, seed, last_batch) = setup.explicit;
        let differs = |what: &str, found: &dyn fmt::Display, expected: &dyn fmt::Display| {
            let message = format!("the {what} of the state is {found}, but the loader has {expected}");
            Err(DataError::BadState(message))
        };
        match (order, seed, last_batch) {
            (Some(order), _, _) if order != state.order => return differs("order", &state.order, &order),
            (_, Some(seed), _) if seed != state.seed => return differs("seed", &state.seed, &seed),
            (_, _, Some(last_batch)) if last_batch != state.last_batch => {
                return differs("last_batch", &state.last_batch, &last_batch);
            }
            _ => {}
        }
        let division = Division::new(setup.division.batch_size(), setup.division.world_size(), state.last_batch)?;
        check_steps(division, setup.view.sample_count())?;
        let first = StepStart { epoch: state.epoch, position: state.position };
        Ok(Self::new(setup, (state.order, state.seed, division), first, end, state.receipt))
    }

    fn new(setup: &Setup, sequence: (Order, u64, Division), first: StepStart, end: u64, receipt: Receipt) -> Self {
        let (order, seed, division) = sequence;
        let n = setup.view.sample_count();
        let first_steps = division.steps(n, first.position);
        let epoch_steps = division.steps(n, 0);
        let whole_epochs = end.saturating_sub(first.epoch).checked_sub(1);
        let steps = whole_epochs.map_or(0, |epochs| epoch_steps.saturating_mul(epochs).saturating_add(first_steps));
        Self { n, order, seed, division, rank: setup.rank, first, first_steps, epoch_steps, end, steps, receipt }
    }

    /// Returns where a step starts. The step after the last one starts at position 0 of the epoch
    /// after the last one.
    pub(in crate::loader) fn start(&self, step: u64) -> StepStart {
        if step < self.first_steps {
            // no overflow: less than `n`
            let position = self.first.position.saturating_add(step.saturating_mul(self.division.step_samples()));
            return StepStart { epoch: self.first.epoch, position };
        }
        let after = step.saturating_sub(self.first_steps);
        let (epochs, in_epoch) = match self.epoch_steps {
            0 => (0, 0),
            steps => (after / steps, after % steps),
        };
        StepStart {
            epoch: self.first.epoch.saturating_add(1).saturating_add(epochs),
            position: in_epoch.saturating_mul(self.division.step_samples()),
        }
    }

    /// Returns the order of an epoch.
    pub(in crate::loader) fn order(&self, epoch: u64) -> EpochOrder {
        EpochOrder::new(self.order, self.n, self.seed, epoch)
    }

    /// Returns whether a rank reads runs as a whole, ahead of its batches.
    pub(in crate::loader) fn reads_whole_runs(&self) -> bool {
        self.order.reads_whole_runs(self.division.world_size())
    }

    /// Returns the epoch after the last one.
    pub(in crate::loader) fn end_epoch(&self) -> u64 {
        self.end
    }

    /// Fills `out` with the samples of the view that this rank takes in the step that starts at
    /// `start`.
    pub(in crate::loader) fn samples(&self, start: StepStart, out: &mut Vec<u64>) -> Result<()> {
        let order = self.order(start.epoch);
        self.division.positions(&order, start.position, self.rank, out)?;
        order.replace_with_samples(out)
    }

    /// Returns the state before a step. `receipt` covers all earlier steps of this iterator.
    pub(in crate::loader) fn state(&self, setup: &Setup, step: u64, receipt: Receipt) -> State {
        let StepStart { epoch, position } = self.start(step);
        State {
            dataset_id: setup.view.dataset_id(),
            dataset_version: setup.view.dataset_version(),
            view_id: setup.view.identity(),
            sample_count: self.n,
            order: self.order,
            last_batch: self.division.last_batch(),
            seed: self.seed,
            epoch,
            position,
            receipt: self.receipt.plus(receipt),
        }
    }

    pub(in crate::loader) fn n(&self) -> u64 {
        self.n
    }

    pub(in crate::loader) fn seed(&self) -> u64 {
        self.seed
    }
}

/// Describes how a state differs from the view that is to resume it.
fn mismatch(state: &State, view: &View) -> String {
    let (taken, found) = (state.dataset_version, view.dataset_version());
    if state.dataset_id != view.dataset_id() {
        let id = |id: [u8; 16]| id.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let (taken, found) = (id(state.dataset_id), id(view.dataset_id()));
        return format!(
            "the state belongs to the dataset with id {taken}, but this loader reads the one with id {found}"
        );
    }
    let (n, view_n) = (state.sample_count, view.sample_count());
    if taken != found && n != view_n {
        return format!(
            "the state belongs to version {taken} of the dataset, with a view of {n} samples, but this loader reads \
             version {found}, with {view_n} samples: open version {taken} to resume"
        );
    }
    format!(
        "the state was saved with another view: that view has {n} samples, and this loader's view has {view_n}; use \
         the same view to resume"
    )
}
