//! Parts of a dataset, such as those for training and for validation.

use crate::error::Result;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::sync::Arc;
use tensilo_data::{Dataset, SampleList, Split, View};

/// Seed, first hash, and the hash after the last one.
type SplitNumbers = (u64, u64, u64);

/// The samples of a dataset that are read.
#[derive(Clone, Debug, Default)]
pub enum Part {
    #[default]
    All,
    /// Those whose hash is in a range.
    Split { seed: u64, start: u64, end: u64 },
    /// Those that are listed, in this order.
    List(Arc<[u64]>),
}

impl Part {
    pub fn is_all(&self) -> bool {
        matches!(self, Self::All)
    }

    /// Returns the view of the part.
    pub fn view(&self, dataset: &Dataset) -> Result<View> {
        match self {
            Self::All => Ok(View::all(dataset)),
            Self::Split { seed, start, end } => {
                View::split(dataset, &Split::new(dataset.sample_count(), *seed, *start..*end)?)
            }
            Self::List(samples) => View::list(dataset, &SampleList::new(samples.clone())),
        }
    }

    /// Returns parts that have these fractions of the samples, and none in common.
    pub fn of_fractions(fractions: &[f64], seed: u64) -> PyResult<Vec<Self>> {
        let sum: f64 = fractions.iter().sum();
        if fractions.is_empty()
            || fractions.iter().any(|fraction| fraction.is_nan() || *fraction <= 0.0)
            || sum > 1.0 + 1e-9
        {
            return Err(PyValueError::new_err("fractions are above 0, and 1 at most together, such as [0.9, 0.1]"));
        }
        let (mut parts, mut before, mut start) = (Vec::new(), 0.0, 0);
        for fraction in fractions {
            before += fraction;
            // below 2^33
            let end = ((before.min(1.0) * Split::END as f64).round() as u64).min(Split::END);
            if end <= start {
                return Err(PyValueError::new_err(format!("a fraction of {fraction} has no samples")));
            }
            parts.push(Self::Split { seed, start, end });
            start = end;
        }
        Ok(parts)
    }

    /// Returns the part as numbers, for a pickle: none, the split, or the list.
    pub fn to_pickle(&self) -> (Option<SplitNumbers>, Option<Vec<u8>>) {
        match self {
            Self::All => (None, None),
            Self::Split { seed, start, end } => (Some((*seed, *start, *end)), None),
            Self::List(samples) => (None, Some(samples.iter().flat_map(|sample| sample.to_le_bytes()).collect())),
        }
    }

    /// Returns the part of a pickle.
    pub fn from_pickle(split: Option<SplitNumbers>, list: Option<&[u8]>) -> Self {
        match (split, list) {
            (Some((seed, start, end)), _) => Self::Split { seed, start, end },
            (None, Some(samples)) => {
                Self::List(samples.as_chunks().0.iter().map(|sample| u64::from_le_bytes(*sample)).collect())
            }
            (None, None) => Self::All,
        }
    }
}
