//! Publishing a version of a dataset.

use super::summary::write_dataset;
use crate::failure::Outcome;
use crate::output::Output;
use std::path::Path;
use tensilo_data::{Changes, DataError, Dataset};

/// Publishes a version, and prints a summary.
pub(super) fn publish(changes: Changes, folder: &Path, change: String, quiet: bool) -> Outcome {
    let dataset = publish_at(changes, change)?;
    if quiet {
        return Ok(());
    }
    let mut output = Output::stdout();
    write_dataset(&dataset, folder, &mut output)?;
    output.finish()
}

/// Publishes a version, with the time that it is to record.
pub(super) fn publish_at(mut changes: Changes, change: String) -> Result<Dataset, DataError> {
    if let Some(time) = source_date_epoch() {
        changes.set_time(Some(time));
    }
    changes.publish(change)
}

/// Returns the time that programs are to record in place of now, so that their output can be
/// reproduced: see reproducible-builds.org.
pub(crate) fn source_date_epoch() -> Option<u64> {
    std::env::var("SOURCE_DATE_EPOCH").ok()?.parse().ok()
}
