//! Datasets that can be changed: those that have a manifest.

use crate::failure::{Failure, Outcome};
use std::path::Path;
use tensilo::error::display_path;
use tensilo_data::Dataset;

/// Fails if a dataset has no manifest, so that it cannot be changed.
pub(crate) fn need_manifest(dataset: &Dataset, path: &Path) -> Outcome {
    if dataset.version() > 0 {
        return Ok(());
    }
    let shown = display_path(path);
    let message = match path.is_dir() {
        true => format!("{shown}: the folder has no manifest; \"tensilo dataset create {shown}\" makes one"),
        false => format!("{shown}: this is no folder of a dataset, but a file or a pattern"),
    };
    Err(Failure::Usage(message))
}
