//! Publishing a version of a dataset.

use super::summary::write_dataset;
use crate::failure::{Failure, Outcome};
use crate::output::Output;
use std::path::Path;
use tensilo_data::{Changes, Dataset};

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
pub(super) fn publish_at(mut changes: Changes, change: String) -> Outcome<Dataset> {
    if let Some(time) = source_date_epoch()? {
        changes.set_time(Some(time));
    }
    Ok(changes.publish(change)?)
}

/// Returns the time that programs are to record in place of now, so that their output can be
/// reproduced: see reproducible-builds.org. An empty variable counts as unset.
pub(crate) fn source_date_epoch() -> Outcome<Option<u64>> {
    let Some(text) = std::env::var_os("SOURCE_DATE_EPOCH").filter(|text| !text.is_empty()) else { return Ok(None) };
    match text.to_str().and_then(|text| text.parse().ok()) {
        Some(time) => Ok(Some(time)),
        None => Err(Failure::Usage(format!("SOURCE_DATE_EPOCH={text:?}: expected a number of seconds since 1970"))),
    }
}
