//! Views of open datasets. A loader uses a view to find the dataset and the index of each sample.
//!
//! Splits, lists and mixtures only compute with sample indices. A [`View`] connects them to open
//! datasets: each sample of the view maps to a dataset and a sample of this dataset.

use super::{Mixture, SampleList, Split};
use crate::dataset::Dataset;
use crate::error::{DataError, Result};
use std::sync::Arc;

/// A view of the samples of one or more datasets. An order applies to the samples of a view.
#[derive(Clone, Debug)]
pub struct View {
    kind: ViewInner,
    datasets: Vec<Dataset>,
}

#[derive(Clone, Debug)]
enum ViewInner {
    All,
    Split(Arc<Split>),
    List(SampleList),
    Mixture { mixture: Mixture, views: Vec<MixtureView> },
}

/// A component of a mixture.
#[derive(Clone, Debug)]
struct MixtureView {
    view: View,
    /// The index of its first dataset in the datasets of the mixture.
    first_dataset: usize,
}

impl View {
    /// Returns the view of all samples of a dataset.
    pub fn all(dataset: &Dataset) -> Self {
        Self { kind: ViewInner::All, datasets: vec![dataset.clone()] }
    }

    /// Returns the view of a split. Fails if the split was made for a different number of samples.
    pub fn split(dataset: &Dataset, split: &Split) -> Result<Self> {
        if split.dataset_sample_count() != dataset.sample_count() {
            return Err(DataError::BadArgument(format!(
                "the split was made for {} samples, but the dataset has {}",
                split.dataset_sample_count(),
                dataset.sample_count()
            )));
        }
        Ok(Self { kind: ViewInner::Split(Arc::new(split.clone())), datasets: vec![dataset.clone()] })
    }

    /// Returns the view of listed samples. Fails if the dataset lacks any of them. Cost: one
    /// comparison for each sample.
    pub fn list(dataset: &Dataset, list: &SampleList) -> Result<Self> {
        let count = dataset.sample_count();
        if let Some(sample) = list.indices().iter().find(|sample| **sample >= count) {
            let message = format!("the list has sample {sample}, but the dataset has {count} samples, counted from 0");
            return Err(DataError::BadArgument(message));
        }
        Ok(Self { kind: ViewInner::List(list.clone()), datasets: vec![dataset.clone()] })
    }

    /// Returns the view of a mixture. `components` are the views of its components, in order. Fails
    /// if one of them has a different dataset, identity or number of samples than the component
    /// that the mixture was made for.
    pub fn mixture(mixture: &Mixture, components: &[View]) -> Result<Self> {
        if components.iter().any(|view| matches!(view.kind, ViewInner::Mixture { .. })) {
            return Err(DataError::BadArgument("a component of a mixture cannot be a mixture itself".to_owned()));
        }
        let expected: Vec<_> =
            components.iter().map(|view| (view.dataset_id(), view.identity(), view.sample_count())).collect();
        if !mixture.components().iter().map(|found| (found.dataset_id, found.view_id, found.sample_count)).eq(expected)
        {
            let message = "the views differ from the components that the mixture was made for".to_owned();
            return Err(DataError::BadArgument(message));
        }
        let (mut datasets, mut views) = (Vec::new(), Vec::new());
        for view in components {
            views.push(MixtureView { view: view.clone(), first_dataset: datasets.len() });
            datasets.extend_from_slice(&view.datasets);
        }
        Ok(Self { kind: ViewInner::Mixture { mixture: mixture.clone(), views }, datasets })
    }

    /// Returns the number of samples.
    pub fn sample_count(&self) -> u64 {
        match &self.kind {
            ViewInner::All => self.datasets.first().map_or(0, Dataset::sample_count),
            ViewInner::Split(split) => split.sample_count(),
            ViewInner::List(list) => list.sample_count(),
            ViewInner::Mixture { mixture, .. } => mixture.sample_count(),
        }
    }

    /// Returns the identity of the view, for a [`State`](crate::State); 0 for a view of all samples
    /// of a dataset.
    pub fn identity(&self) -> u64 {
        match &self.kind {
            ViewInner::All => 0,
            ViewInner::Split(split) => split.identity(),
            ViewInner::List(list) => list.identity(),
            ViewInner::Mixture { mixture, .. } => mixture.identity(),
        }
    }

    /// Returns the id of the dataset, for a [`State`](crate::State); zero for a mixture.
    pub fn dataset_id(&self) -> [u8; 16] {
        self.single().map_or([0; 16], Dataset::id)
    }

    /// Returns the version of the dataset, for a [`State`](crate::State); 0 for a mixture.
    pub fn dataset_version(&self) -> u64 {
        self.single().map_or(0, Dataset::version)
    }

    /// Returns the datasets. [`View::sample`] refers to them by index.
    pub fn datasets(&self) -> &[Dataset] {
        &self.datasets
    }

    /// Returns the index of the dataset that has sample `v` of the view in an epoch, and the index
    /// of the sample in that dataset. Returns `None` if `v` is not below [`View::sample_count`].
    /// Cost: one lookup in the split, list or mixture.
    pub fn sample(&self, v: u64, epoch: u64) -> Option<(usize, u64)> {
        match &self.kind {
            ViewInner::All => (v < self.sample_count()).then_some((0, v)),
            ViewInner::Split(split) => Some((0, split.sample(v)?)),
            ViewInner::List(list) => Some((0, list.sample(v)?)),
            ViewInner::Mixture { mixture, views } => {
                let (component, v) = mixture.sample(v, epoch)?;
                let component = views.get(component)?;
                let (dataset, sample) = component.view.sample(v, epoch)?;
                Some((component.first_dataset.checked_add(dataset)?, sample))
            }
        }
    }

    /// Returns the same view for a forked process. Its datasets share no locks and no open files
    /// with the datasets of this view. A view from before the fork also works in the child, but it
    /// opens files again each time, because another thread may have been changing its caches during
    /// the fork.
    pub fn reopened(&self) -> Self {
        self.of_datasets(Dataset::reopened)
    }

    /// Returns the same view, with datasets that are read in the way that suits shuffled samples.
    pub(crate) fn for_shuffled(&self) -> Self {
        self.of_datasets(Dataset::for_shuffled)
    }

    /// Returns the same view with other handles to the same datasets.
    fn of_datasets(&self, other: fn(&Dataset) -> Dataset) -> Self {
        let kind = match &self.kind {
            ViewInner::Mixture { mixture, views } => {
                let component = |component: &MixtureView| MixtureView {
                    view: component.view.of_datasets(other),
                    first_dataset: component.first_dataset,
                };
                ViewInner::Mixture { mixture: mixture.clone(), views: views.iter().map(component).collect() }
            }
            kind => kind.clone(),
        };
        Self { kind, datasets: self.datasets.iter().map(other).collect() }
    }

    fn single(&self) -> Option<&Dataset> {
        match &self.kind {
            ViewInner::Mixture { .. } => None,
            _ => self.datasets.first(),
        }
    }
}
