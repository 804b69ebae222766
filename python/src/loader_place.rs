//! Where a loader is: in which epoch, and after which batch.

use std::sync::{Mutex, MutexGuard, PoisonError};
use tensilo_data::{LoaderMetrics, State};

/// Where a loader is. The lock is held only by a thread that has the GIL, so that no other holds it
/// when a process is forked.
#[derive(Default)]
pub struct Place {
    pub epoch: u64,
    /// A state that was loaded, at which the next iteration begins.
    pub loaded: Option<State>,
    /// The state after the last batch that was taken.
    pub reached: Option<State>,
    /// Whether a batch was taken since the last iteration began.
    pub has_taken: bool,
    /// The number of iterations that were begun: an earlier one no longer moves the place.
    pub iteration: u64,
    pub metrics: Option<LoaderMetrics>,
}

impl Place {
    /// Returns the position in its epoch at which the next iteration begins.
    pub fn next_position(&self) -> u64 {
        match self.reached {
            Some(_) if self.has_taken => 0,
            reached => reached.or(self.loaded).map_or(0, |state| state.position),
        }
    }

    /// Moves to where another iteration begins.
    pub fn begin_again(&mut self) {
        let Some(reached) = self.reached.take() else { return };
        match (self.has_taken, reached.position) {
            // nothing was taken: it begins at the same state
            (false, 1..) => self.loaded = Some(reached),
            // what is left of an epoch that was left early is over, as with other loaders
            (true, 1..) => self.epoch = reached.epoch.saturating_add(1),
            // the epoch after one of which all batches were taken, maybe without asking for more
            (_, 0) => self.epoch = reached.epoch,
        }
    }
}

/// Locks the place of a loader.
pub fn locked(place: &Mutex<Place>) -> MutexGuard<'_, Place> {
    place.lock().unwrap_or_else(PoisonError::into_inner)
}
