//! A view of listed samples.

use super::identity::{ViewKind, identity};
use std::sync::Arc;

/// A view that has listed samples, in their order. A sample may be listed several times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SampleList {
    samples: Arc<[u64]>,
    identity: u64,
}

impl SampleList {
    /// Returns the view of these samples. Cost: 3 ns for each, and 8 bytes.
    pub fn new(samples: impl Into<Arc<[u64]>>) -> Self {
        let samples = samples.into();
        // exact: no length is above 2^64
        let words = std::iter::once(samples.len() as u64).chain(samples.iter().copied());
        let identity = identity(ViewKind::List, words);
        Self { samples, identity }
    }

    /// Returns the number of samples.
    pub fn n(&self) -> u64 {
        self.samples.len() as u64 // exact
    }

    /// Returns the samples, in order.
    pub fn samples(&self) -> &[u64] {
        &self.samples
    }

    /// Returns the identity of the view, for a [`State`](crate::State).
    pub fn identity(&self) -> u64 {
        self.identity
    }

    /// Returns sample `v` of the view; `None` from their number on.
    pub fn sample(&self, v: u64) -> Option<u64> {
        self.samples.get(usize::try_from(v).ok()?).copied()
    }
}
