//! Reads tar archives of samples, with or without gzip, in two passes.
//!
//! An archive has neither a schema nor a list of samples. The first pass reads the first bytes of
//! each file. It finds the suffixes, which become columns, checks that their files can be stored,
//! and counts samples. If a file cannot be stored, its suffix is refused, and the other suffixes
//! are read. The second pass reads the files of the selected columns.

use super::column::{SuffixColumn, SuffixKind, array_type, kind_of};
use super::members::Content;
use super::samples::{ArchiveSample, ArchiveSamples, KEY, Keys};
use crate::stream::{BATCH_BYTES, ByteStream, matches_extension, max_rows};
use std::collections::HashMap;
use std::sync::Arc;
use tensilo::import::arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions, StringArray};
use tensilo::import::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use tensilo::import::{FormatFile, InputFormat, RecordSource, TypeOrigin};
use tensilo::{Error, Result, limits};

/// The maximum number of samples in a batch, regardless of their size.
const MAX_BATCH_SAMPLES: usize = 1 << 16;
/// The number of bytes of each file that the first pass reads: more than most array headers need.
const PREFIX_BYTES: usize = 4 << 10;

/// WebDataset archives.
pub(crate) struct WebDataset;

impl InputFormat for WebDataset {
    fn name(&self) -> &str {
        "WebDataset archives (.tar)"
    }

    fn open(&self, file: &FormatFile) -> Result<Option<Box<dyn RecordSource>>> {
        const MAGIC: std::ops::Range<usize> = 257..262;
        let first = ByteStream::first(file, 262)?;
        let has_extension = matches_extension(file.path(), |extension| matches!(extension, "tar" | "tgz"));
        if first.get(MAGIC) != Some(b"ustar") && !has_extension {
            return Ok(None);
        }
        let (columns, sample_count) = scan_archive(file)?;
        let key = Field::new(KEY, DataType::Utf8, false);
        let fields = columns.iter().map(|column| column.field(column.count < sample_count));
        let schema = Arc::new(Schema::new(std::iter::once(key).chain(fields).collect::<Vec<_>>()));
        Ok(Some(Box::new(WebDatasetFile { file: file.clone(), columns, schema, sample_count })))
    }
}

/// Finds the suffixes of an archive, in order of first occurrence, and counts its samples.
fn scan_archive(file: &FormatFile) -> Result<(Vec<SuffixColumn>, u64)> {
    let (mut columns, mut sample_count): (Vec<SuffixColumn>, u64) = (Vec::new(), 0);
    let mut numbers: HashMap<String, usize> = HashMap::new();
    let mut keys = Keys::default();
    let mut samples = ArchiveSamples::open(file, PREFIX_BYTES as u64)?;
    loop {
        let next_samples = samples.next_samples(MAX_BATCH_SAMPLES, BATCH_BYTES)?;
        if next_samples.is_empty() {
            let count = samples.without_suffix;
            return match sample_count == 0 && count > 0 {
                true => Err(Error::bad_input(format!("none of the {count} files has a suffix to name its column"))),
                false => Ok((columns, sample_count)),
            };
        }
        for sample in next_samples {
            if let Some(first) = keys.split_from(&sample.key, sample.files.keys().map(String::as_str)) {
                return Err(split_sample_error(&sample, first, sample_count));
            }
            for (suffix, prefix) in sample.files {
                let number = *numbers.entry(suffix.clone()).or_insert(columns.len());
                if number == columns.len() {
                    check_count(number)?;
                    columns.push(new_column(suffix, &prefix));
                }
                if let Some(column) = columns.get_mut(number) {
                    column.count = column.count.saturating_add(1);
                    if column.refused.is_none() {
                        let reason = prefix.and_then(|prefix| column.check(&prefix, prefix.len() < PREFIX_BYTES)).err();
                        column.refused = reason.map(|reason| file_message(&sample.key, &column.suffix, &reason));
                    }
                }
            }
            sample_count = sample_count.saturating_add(1);
        }
    }
}

/// Returns the error for a sample that has the same key as an earlier sample, but different files.
fn split_sample_error(sample: &ArchiveSample, first: u64, second: u64) -> Error {
    const MAX_SHOWN: usize = 8;
    let suffixes: Vec<&str> = sample.files.keys().map(String::as_str).take(MAX_SHOWN).collect();
    let more = if sample.files.len() > MAX_SHOWN { ", ..." } else { "" };
    Error::bad_input(format!(
        "the files with key {:?} do not follow one another: sample {first} has some, and sample {second} has others \
         ({}{more}); create the archive with tar --sort=name, or give samples different keys",
        sample.key,
        suffixes.join(", ")
    ))
}

/// Fails if there are more columns than a file can have.
fn check_count(columns: usize) -> Result<()> {
    match columns < limits::COLUMNS {
        true => Ok(()),
        false => Err(Error::bad_input(format!("the archive has more than {} suffixes", limits::COLUMNS))),
    }
}

/// Makes the column of a suffix from its first file.
fn new_column(suffix: String, prefix: &Content) -> SuffixColumn {
    let kind = kind_of(&suffix);
    let array = match (kind, prefix) {
        (SuffixKind::Npy, Ok(prefix)) => array_type(prefix).ok(),
        _ => None,
    };
    SuffixColumn { suffix, kind, array, count: 0, refused: None }
}

fn file_message(key: &str, suffix: &str, what: &str) -> String {
    format!("\"{key}.{suffix}\" in the archive: {what}")
}

/// An archive after the first pass.
struct WebDatasetFile {
    file: FormatFile,
    columns: Vec<SuffixColumn>,
    /// The fields: the key, followed by the columns.
    schema: SchemaRef,
    sample_count: u64,
}

impl RecordSource for WebDatasetFile {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn row_count(&self) -> Option<u64> {
        Some(self.sample_count)
    }

    fn type_origin(&self) -> TypeOrigin {
        TypeOrigin::Inferred
    }

    fn record_batches(&self, fields: &[usize]) -> Result<Box<dyn Iterator<Item = Result<RecordBatch>> + '_>> {
        let schema = self.schema.project(fields).map_err(|error| Error::bad_input(error.to_string()))?;
        let columns = fields.iter().map(|field| field.checked_sub(1).and_then(|i| self.columns.get(i)));
        let (columns, schema): (Vec<Option<&SuffixColumn>>, _) = (columns.collect(), Arc::new(schema));
        let suffixes = columns.iter().flatten().map(|column| column.suffix.clone()).collect();
        let mut samples = ArchiveSamples::open(&self.file, u64::MAX)?.with_suffixes(suffixes);
        let max_samples = max_rows(&schema).min(MAX_BATCH_SAMPLES);
        Ok(Box::new(std::iter::from_fn(move || {
            let next_samples = samples.next_samples(max_samples, BATCH_BYTES);
            let batch = next_samples.and_then(|mut next_samples| match next_samples.is_empty() {
                true => Ok(None),
                false => record_batch(&mut next_samples, &columns, &schema).map(Some),
            });
            batch.transpose()
        })))
    }
}

/// Converts samples to arrays, one for each of these columns. `None` stands for the key.
fn record_batch(
    samples: &mut [ArchiveSample],
    columns: &[Option<&SuffixColumn>],
    schema: &SchemaRef,
) -> Result<RecordBatch> {
    let mut array = |column: &Option<&SuffixColumn>| -> Result<ArrayRef> {
        let Some(column) = column else {
            return Ok(Arc::new(samples.iter().map(|sample| Some(sample.key.as_str())).collect::<StringArray>()));
        };
        let file = |sample: &mut ArchiveSample| {
            sample.files.get_mut(&column.suffix).map(|content| std::mem::replace(content, Ok(Vec::new())))
        };
        let files = samples.iter_mut().map(|sample| match file(sample).transpose() {
            Ok(file) => Ok(file),
            Err(reason) => Err(Error::bad_input(file_message(&sample.key, &column.suffix, &reason))),
        });
        let files = files.collect::<Result<Vec<Option<Vec<u8>>>>>()?;
        column.values(&files).map_err(|(i, error)| {
            let key = samples.get(i).map_or("", |sample| sample.key.as_str());
            Error::bad_input(file_message(key, &column.suffix, error.message()))
        })
    };
    let arrays = columns.iter().map(&mut array).collect::<Result<Vec<_>>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(samples.len()));
    let batch = RecordBatch::try_new_with_options(Arc::clone(schema), arrays, &options);
    batch.map_err(|error| Error::bad_input(error.to_string()))
}
