//! The size of a dataset.

use crate::failure::Outcome;
use crate::output::shown;
use crate::terminal::{output_width, write_wrapped};
use crate::text::human;
use std::io::Write;
use std::path::Path;
use tensilo_data::Dataset;

/// The files of a dataset, and their length together.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct DatasetSize {
    pub(crate) files: u64,
    pub(crate) bytes: u64,
}

impl DatasetSize {
    /// Adds up what the manifest says.
    pub(crate) fn of(dataset: &Dataset) -> Outcome<Self> {
        let mut size = Self::default();
        for group in dataset.groups() {
            for file in group?.files {
                size.files = size.files.saturating_add(1);
                size.bytes = size.bytes.saturating_add(file.bytes);
            }
        }
        Ok(size)
    }
}

/// Returns the id of a dataset in hexadecimal digits.
pub(crate) fn dataset_id(dataset: &Dataset) -> String {
    dataset.id().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Writes a line about a dataset that was changed.
pub(crate) fn write_dataset(dataset: &Dataset, folder: &Path, output: &mut impl Write) -> Outcome {
    let size = DatasetSize::of(dataset)?;
    let (path, samples, version) = (shown(folder), dataset.sample_count(), dataset.version());
    let (files, bytes) = (human::count(size.files, "file"), human::bytes(size.bytes));
    let line = format!("{path}: {samples} samples in {files}, {bytes} together; version {version}");
    Ok(write_wrapped(output, &line, output_width())?)
}
