//! The losses of the files of a dataset, as a JSON document and as text.

use super::ranges::{pairs, ranges, unconfirmed_remark};
use crate::dataset::{DatasetSize, dataset_id};
use crate::failure::Outcome;
use crate::output::shown;
use crate::terminal::{output_width, write_wrapped};
use crate::text::human;
use serde_json::{Value, json};
use std::io::Write;
use std::ops::Range;
use std::path::{Path, PathBuf};
use tensilo::salvage::Losses;
use tensilo_data::{Dataset, SalvagedFile, SampleGroup};

/// The lost and unconfirmed samples of a column of a file.
pub(crate) struct ColumnLosses {
    /// The name in the dataset.
    name: String,
    /// The number in the dataset.
    pub(crate) number: usize,
    /// Samples of the dataset.
    pub(crate) lost: Vec<Range<u64>>,
    /// Samples of the dataset that nothing confirms.
    unconfirmed: Vec<Range<u64>>,
}

impl ColumnLosses {
    fn is_empty(&self) -> bool {
        self.lost.is_empty() && self.unconfirmed.is_empty()
    }
}

/// The losses of a file.
pub(crate) struct FileLosses {
    path: PathBuf,
    samples: Range<u64>,
    /// The reason why everything is lost.
    message: Option<String>,
    /// The columns that the file has.
    pub(crate) columns: Vec<ColumnLosses>,
}

impl FileLosses {
    /// Returns the losses of a file of a group.
    pub(crate) fn of(dataset: &Dataset, group: &SampleGroup, file: usize, found: &SalvagedFile) -> Self {
        let listed = group.files.get(file);
        let first = group.samples.start;
        let columns = listed.into_iter().flat_map(|listed| &listed.columns).map(|(name, number)| {
            let of_dataset = |losses: &Losses| -> Vec<Range<u64>> {
                let samples = losses.columns.iter().find(|(column, _)| column == name);
                let ranges = samples.into_iter().flat_map(|(_, samples)| samples.ranges());
                ranges.map(|range| range.start.saturating_add(first)..range.end.saturating_add(first)).collect()
            };
            let (lost, unconfirmed) = (of_dataset(&found.salvaged.losses), of_dataset(&found.salvaged.unconfirmed));
            let name = dataset.schema().columns.get(*number).map_or(name, |column| &column.name);
            ColumnLosses { name: name.clone(), number: *number, lost, unconfirmed }
        });
        Self {
            path: listed.map(|listed| listed.path.clone()).unwrap_or_default(),
            samples: group.samples.clone(),
            message: found.lost.as_ref().map(ToString::to_string),
            columns: columns.collect(),
        }
    }

    /// Returns whether anything of the file is lost or unconfirmed, of columns of the dataset.
    pub(super) fn is_damaged(&self) -> bool {
        self.message.is_some() || self.columns.iter().any(|column| !column.is_empty())
    }

    /// Writes what is lost or unconfirmed.
    pub(super) fn write_text(&self, output: &mut impl Write) -> Outcome {
        match &self.message {
            Some(message) => {
                let Range { start, end } = self.samples;
                writeln!(output, "{message}; samples {start}..{end} are lost in its columns")?;
            }
            None => {
                writeln!(output, "{}:", shown(&self.path))?;
                for ColumnLosses { name, lost, unconfirmed, .. } in &self.columns {
                    for (what, samples) in [("lost", lost), ("unconfirmed", unconfirmed)] {
                        if !samples.is_empty() {
                            let line = format!("column {:?}: {what} {}", human::excerpt(name), ranges(samples));
                            write_wrapped(output, &line, output_width())?;
                        }
                    }
                }
            }
        }
        Ok(())
    }

    fn document(&self) -> Value {
        let columns = self.columns.iter().map(|ColumnLosses { name, lost, unconfirmed, .. }| {
            json!({
                "name": name,
                "lost_count": count(lost),
                "lost": pairs(lost),
                "unconfirmed_count": count(unconfirmed),
                "unconfirmed": pairs(unconfirmed),
            })
        });
        json!({
            "path": self.path.to_string_lossy(),
            "ok": !self.is_damaged(),
            "samples": [self.samples.start, self.samples.end],
            "message": self.message,
            "columns": columns.collect::<Vec<Value>>(),
        })
    }
}

/// The losses of a dataset.
pub(crate) struct DatasetLosses<'a> {
    dataset: &'a Dataset,
    files: Vec<FileLosses>,
}

impl<'a> DatasetLosses<'a> {
    pub(crate) fn new(dataset: &'a Dataset) -> Self {
        Self { dataset, files: Vec::new() }
    }

    pub(crate) fn add(&mut self, file: FileLosses) {
        self.files.push(file);
    }

    pub(super) fn is_empty(&self) -> bool {
        !self.files.iter().any(FileLosses::is_damaged)
    }

    /// Returns the JSON document of schema `tensilo.salvage-dataset/1`, with the dataset that was
    /// written.
    pub(crate) fn document(&self, written: Option<(&Dataset, &Path)>) -> Outcome<Value> {
        let output = written.map(|(dataset, folder)| {
            let size = DatasetSize::of(dataset)?;
            Outcome::Ok(json!({
                "path": folder.to_string_lossy(),
                "dataset_id": dataset_id(dataset),
                "sample_count": dataset.sample_count(),
                "files": size.files,
                "file_bytes": size.bytes,
            }))
        });
        Ok(json!({
            "schema": "tensilo.salvage-dataset/1",
            "ok": self.is_empty(),
            "dataset_id": dataset_id(self.dataset),
            "version": self.dataset.version(),
            "sample_count": self.dataset.sample_count(),
            "files": self.files.iter().map(FileLosses::document).collect::<Vec<Value>>(),
            "output": output.transpose()?,
        }))
    }

    /// Writes the sums.
    pub(super) fn write_text(&self, output: &mut impl Write) -> Outcome {
        let (files, samples) = (self.files.len(), self.dataset.sample_count());
        let damaged = self.files.iter().filter(|file| file.is_damaged()).count();
        let line = match damaged {
            0 => format!("All {samples} samples in {files} files are intact."),
            _ => {
                let intact = samples.saturating_sub(count(&self.of_any(|column| &column.lost)));
                format!(
                    "{damaged} of {files} files are damaged. Of {samples} samples, {intact} are intact in all columns."
                )
            }
        };
        write_wrapped(output, &line, output_width())?;
        match count(&self.of_any(|column| &column.unconfirmed)) {
            0 => {}
            unconfirmed => write_wrapped(output, &unconfirmed_remark(unconfirmed), output_width())?,
        }
        Ok(())
    }

    /// Returns the union of the samples of all columns: ranges that do not overlap.
    fn of_any(&self, samples: impl Fn(&ColumnLosses) -> &Vec<Range<u64>>) -> Vec<Range<u64>> {
        let columns = self.files.iter().flat_map(|file| &file.columns);
        let mut all: Vec<Range<u64>> = columns.flat_map(|column| samples(column).iter().cloned()).collect();
        all.sort_unstable_by_key(|lost| lost.start);
        let mut end = 0;
        for lost in &mut all {
            lost.start = lost.start.max(end).min(lost.end.max(end));
            lost.end = lost.end.max(end);
            end = lost.end;
        }
        all
    }
}

/// Returns the number of samples in ranges that do not overlap.
fn count(ranges: &[Range<u64>]) -> u64 {
    ranges.iter().map(|range| range.end.saturating_sub(range.start)).fold(0, u64::saturating_add)
}
