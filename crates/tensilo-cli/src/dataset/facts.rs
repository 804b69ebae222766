//! The facts of all files of a dataset.

use super::summary::DatasetSize;
use crate::failure::{Failure, Outcome};
use crate::progress::{Progress, Unit};
use tensilo::facts::CastFacts;
use tensilo_data::Dataset;

/// The facts of a column in all files.
#[derive(Clone, Copy, Default)]
pub(crate) struct ColumnSums {
    pub(crate) files: u64,
    pub(crate) raw_bytes: u64,
    pub(crate) stored_bytes: u64,
    pub(crate) nulls: u64,
    pub(crate) chunks: u64,
    /// The largest errors of the casts, and the sums of their counts.
    pub(crate) cast: Option<CastFacts>,
}

/// The facts of all files.
pub(crate) struct DatasetFacts {
    pub(crate) size: DatasetSize,
    /// By column of the schema.
    pub(crate) columns: Vec<ColumnSums>,
}

impl DatasetFacts {
    /// Opens all files. Samples of a column that a group of files does not have are null.
    pub(crate) fn of(dataset: &Dataset, quiet: bool) -> Outcome<Self> {
        let mut facts = Self {
            size: DatasetSize::of(dataset)?,
            columns: vec![ColumnSums::default(); dataset.schema().columns.len()],
        };
        let progress = Progress::new(Unit::Samples, quiet);
        for group in dataset.groups() {
            let group = group?;
            let samples = group.samples.end.saturating_sub(group.samples.start);
            let mut is_there = vec![false; facts.columns.len()];
            for (number, file) in group.files.iter().enumerate() {
                let reader = dataset.open_file(&group, number)?;
                for (name, column) in &file.columns {
                    let found = reader.column(name)?.facts();
                    let (Some(sums), Some(is_there)) = (facts.columns.get_mut(*column), is_there.get_mut(*column))
                    else {
                        continue;
                    };
                    *is_there = true;
                    sums.files = sums.files.saturating_add(1);
                    sums.raw_bytes = sums.raw_bytes.saturating_add(found.raw_bytes);
                    sums.stored_bytes = sums.stored_bytes.saturating_add(found.stored_bytes);
                    sums.nulls = sums.nulls.saturating_add(found.null_count);
                    sums.chunks = sums.chunks.saturating_add(found.chunk_count);
                    sums.cast = match (sums.cast, found.cast) {
                        (Some(sum), Some(cast)) => Some(sum.joined(&cast)),
                        (sum, cast) => sum.or(cast),
                    };
                }
            }
            for (sums, _) in facts.columns.iter_mut().zip(is_there).filter(|(_, is_there)| !is_there) {
                sums.nulls = sums.nulls.saturating_add(samples);
            }
            if progress.set("inspecting", group.samples.end, Some(dataset.sample_count())).is_break() {
                return Err(Failure::Cancelled);
            }
        }
        Ok(facts)
    }
}
