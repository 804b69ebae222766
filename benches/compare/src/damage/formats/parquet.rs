//! Parquet with parquet-rs, in the layout of the comparison: a row is one value. Reads row groups
//! individually, and in each of them sample by sample.

use super::super::outcome::ReadOutcome;
use super::{Format, page_checksums};
use crate::data::Dataset;
use crate::peers::parquet as peer;
use anyhow::{Context, Result, ensure};
use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_schema::ArrowError;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder};
use parquet::file::properties::WriterProperties;
use std::fs::File;
use std::path::Path;

pub enum Parquet {
    /// The writer's default options.
    Default,
    /// The options of the comparison.
    Zstd,
    /// The same, with a checksum in each page.
    Checksums,
}

const ZSTD: &str = "BYTE_STREAM_SPLIT and Zstandard level 9, pages of 64 KiB, row groups of 1 MiB";

/// Returns the rows of a row group: the writer's default, rounded down to whole samples.
fn default_rows(data: &Dataset) -> usize {
    parquet::file::properties::DEFAULT_MAX_ROW_GROUP_ROW_COUNT / data.elements() * data.elements()
}

impl Parquet {
    fn properties(&self, data: &Dataset) -> Result<WriterProperties> {
        match self {
            Self::Default => {
                Ok(WriterProperties::builder().set_max_row_group_row_count(Some(default_rows(data))).build())
            }
            Self::Zstd | Self::Checksums => peer::Parquet::new(64 << 10).properties(data),
        }
    }
}

impl Format for Parquet {
    fn name(&self) -> String {
        match self {
            Self::Default => "Parquet".to_owned(),
            Self::Zstd => "Parquet, Zstandard".to_owned(),
            Self::Checksums => "Parquet, Zstandard, page checksums".to_owned(),
        }
    }

    fn about(&self) -> String {
        let version = env!("PARQUET_VERSION");
        let (options, checks) = match self {
            Self::Default => ("the writer's default options (dictionary, no compression)", "no checksums"),
            Self::Zstd => (ZSTD, "no checksums"),
            Self::Checksums => (ZSTD, "a checksum in each page, added afterwards because parquet-rs cannot write them"),
        };
        format!("parquet-rs {version}, {options}, `ParquetRecordBatchReader`; {checks}")
    }

    fn write(&self, data: &Dataset, file: &Path) -> Result<()> {
        let (properties, file) = (self.properties(data)?, File::create_new(file)?);
        if let Self::Checksums = self {
            let mut plain = Vec::new();
            peer::write(data, properties, &mut plain)?;
            return page_checksums::write(plain, file);
        }
        peer::write(data, properties, file)
    }

    fn read(&self, data: &Dataset, file: &Path, outcome: &mut ReadOutcome) -> Result<()> {
        let file = File::open(file)?;
        let metadata = ArrowReaderMetadata::load(&file, ArrowReaderOptions::new())?;
        let group_rows =
            self.properties(data)?.max_row_group_row_count().context("the row groups have no limit of rows")?;
        let groups = data.values.len().div_ceil(group_rows);
        ensure!(metadata.metadata().num_row_groups() == groups, "wrong number of row groups");
        for group in 0..groups {
            let reader = ParquetRecordBatchReaderBuilder::new_with_metadata(file.try_clone()?, metadata.clone())
                .with_row_groups(vec![group])
                .with_batch_size(data.elements())
                .build();
            let first = group * (group_rows / data.elements());
            let result = reader.map_err(Into::into).and_then(|mut reader| read_group(&mut reader, first, outcome));
            if result.is_err() {
                outcome.error();
            }
        }
        Ok(())
    }
}

/// Reads a row group in batches of one sample.
fn read_group(
    batches: impl Iterator<Item = std::result::Result<RecordBatch, ArrowError>>,
    first: usize,
    outcome: &mut ReadOutcome,
) -> Result<()> {
    for (i, batch) in (first..).zip(batches) {
        let batch = batch?;
        let values = batch.column_by_name(peer::COLUMN).and_then(|column| column.as_fixed_size_binary_opt());
        let values =
            values.filter(|values| values.value_length() == 2).context("the column has another name or type")?;
        outcome.samples(i, &bytemuck::pod_collect_to_vec(values.value_data()));
    }
    Ok(())
}
