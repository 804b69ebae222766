//! Views of datasets: what a loader takes its samples from.

use super::{Mixture, SampleList, Split};
use crate::dataset::Dataset;
use crate::error::{DataError, Result};
use std::sync::Arc;

/// Datasets, and a view of their samples that orders apply to.
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
    /// The number of its first dataset among those of the mixture.
    first_dataset: usize,
}

impl View {
    /// Returns all samples of a dataset.
    pub fn all(dataset: &Dataset) -> Self {
        Self { kind: ViewInner::All, datasets: vec![dataset.clone()] }
    }

    /// Returns the samples of a split. Fails if it was made for another number of samples.
    pub fn split(dataset: &Dataset, split: &Split) -> Result<Self> {
        if split.sample_count() != dataset.sample_count() {
            return Err(DataError::BadArgument(format!(
                "a split of {} samples, and a dataset of {}",
                split.sample_count(),
                dataset.sample_count()
            )));
        }
        Ok(Self { kind: ViewInner::Split(Arc::new(split.clone())), datasets: vec![dataset.clone()] })
    }

    /// Returns listed samples. Fails if the dataset does not have one of them. Cost: looks at each.
    pub fn list(dataset: &Dataset, list: &SampleList) -> Result<Self> {
        let count = dataset.sample_count();
        if let Some(sample) = list.samples().iter().find(|sample| **sample >= count) {
            let message = format!("the list has sample {sample}, and the dataset {count} samples, counted from 0");
            return Err(DataError::BadArgument(message));
        }
        Ok(Self { kind: ViewInner::List(list.clone()), datasets: vec![dataset.clone()] })
    }

    /// Returns a mixture of views, which are its components in order. Fails if a component is of
    /// another dataset, view or number of samples than the mixture was made for.
    pub fn mixture(mixture: &Mixture, components: &[View]) -> Result<Self> {
        if components.iter().any(|view| matches!(view.kind, ViewInner::Mixture { .. })) {
            return Err(DataError::BadArgument("a mixture has a mixture as a component".to_owned()));
        }
        let expected: Vec<_> = components.iter().map(|view| (view.dataset_id(), view.identity(), view.n())).collect();
        if !mixture.components().iter().map(|found| (found.dataset_id, found.view, found.samples)).eq(expected) {
            let message = "the views are not the components that the mixture was made for".to_owned();
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
    pub fn n(&self) -> u64 {
        match &self.kind {
            ViewInner::All => self.datasets.first().map_or(0, Dataset::sample_count),
            ViewInner::Split(split) => split.n(),
            ViewInner::List(list) => list.n(),
            ViewInner::Mixture { mixture, .. } => mixture.n(),
        }
    }

    /// Returns the identity of the view, for a [`State`](crate::State); 0 for all samples.
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

    /// Returns the datasets, to which [`View::sample`] refers by number.
    pub fn datasets(&self) -> &[Dataset] {
        &self.datasets
    }

    /// Returns the dataset of sample `v` of the view in an epoch, by its number, and the sample of
    /// that dataset. `None` from the number of samples on. Cost: that of the view's kind.
    pub fn sample(&self, v: u64, epoch: u64) -> Option<(usize, u64)> {
        match &self.kind {
            ViewInner::All => (v < self.n()).then_some((0, v)),
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

    /// Returns the same view of datasets that share nothing with those of this one but what never
    /// changes: for a process that was forked. There a view from before the fork can be used, too,
    /// but opens files again each time, because it cannot know that no other thread was changing
    /// what it keeps.
    pub fn reopened(&self) -> Self {
        self.of_datasets(Dataset::reopened)
    }

    /// Returns the same view of datasets that are read as suits samples in any order.
    pub(crate) fn for_shuffled(&self) -> Self {
        self.of_datasets(Dataset::for_shuffled)
    }

    /// Returns the same view of other handles to the same datasets.
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
