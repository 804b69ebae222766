//! Publishing a version of a dataset.

use super::summary::write_dataset;
use crate::failure::{Failure, Outcome};
use crate::output::Output;
use std::path::Path;
use tensilo_data::Changes;

/// Publishes a version, and prints a summary.
pub(super) fn publish(changes: Changes, folder: &Path, change: String, quiet: bool) -> Outcome {
    let dataset = changes.publish(change)?;
    if quiet {
        return Ok(());
    }
    let mut output = Output::stdout();
    write_dataset(&dataset, folder, &mut output)?;
    output.finish()
}

/// Sets the time that the version records in place of now, if `SOURCE_DATE_EPOCH` has one, so that
/// it can be reproduced: see reproducible-builds.org. An empty variable counts as unset.
///
/// Call it before other work, which a malformed variable would make vain.
pub(crate) fn set_time(changes: &mut Changes) -> Outcome {
    let Some(text) = std::env::var_os("SOURCE_DATE_EPOCH").filter(|text| !text.is_empty()) else { return Ok(()) };
    match text.to_str().and_then(|text| text.parse().ok()) {
        Some(time) => {
            changes.set_time(Some(time));
            Ok(())
        }
        None => Err(Failure::Usage(format!("SOURCE_DATE_EPOCH={text:?}: expected a number of seconds since 1970"))),
    }
}
