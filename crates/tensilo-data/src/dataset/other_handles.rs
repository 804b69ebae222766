//! Other handles to an open dataset, which share no open file and no lock with it.

use super::handle::{Dataset, OpenedDataset};
use super::open_files::OpenFiles;
use std::sync::Arc;

impl Dataset {
    /// Returns the same dataset, read as suits samples in any order.
    pub(crate) fn for_shuffled(&self) -> Self {
        let OpenedDataset { location, groups, files, .. } = &*self.0;
        let path = location.any_path(groups, &self.0.place());
        match files.io().for_shuffled(&path, || self.stored_bytes()) {
            Some(io) => self.with_files(files.with_io(io)),
            None => self.clone(),
        }
    }

    /// Returns the same dataset, which shares no lock with this one: for a process that was forked,
    /// in which a lock may be held by a thread that this process does not have.
    pub(crate) fn reopened(&self) -> Self {
        self.with_files(self.0.files.reopened())
    }

    /// Returns the same dataset, which opens files in another way and shares no lock with this one.
    fn with_files(&self, files: OpenFiles) -> Self {
        let OpenedDataset { store, location, version, digest, schema, groups, .. } = &*self.0;
        Self(Arc::new(OpenedDataset {
            options: self.0.options.clone(),
            store: store.clone(),
            location: location.clone(),
            version: version.clone(),
            digest: *digest,
            schema: schema.clone(),
            groups: groups.reopened(),
            files,
        }))
    }
}
