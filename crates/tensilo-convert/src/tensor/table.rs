//! A file of tensors as a source of record batches.
//!
//! One unsuitable tensor must not make the whole file unusable, because the caller can skip it.
//! When the file is opened, it is not known which columns the caller will select. So a tensor that
//! cannot be stored becomes a refused field, and the lengths of the first axes are compared only
//! when a pass over the selected columns starts. A file of named tensors can also be one sample;
//! see [`FormatOptions`].

use super::batches::TensorBatches;
use super::column::TensorColumn;
use std::collections::HashMap;
use std::sync::Arc;
use tensilo::import::arrow::array::RecordBatch;
use tensilo::import::arrow::datatypes::{Schema, SchemaRef};
use tensilo::import::{RecordSource, refused_field};
use tensilo::{Error, ErrorKind, Result};

/// The maximum number of samples of tensors without elements.
const MAX_EMPTY_SAMPLES: u64 = 1 << 24;

/// Advice for tensors whose first axes have different lengths.
const SKIP_ADVICE: &str = "; skip the arrays that differ (`ConvertOptions::skip`, --skip)";

/// Tensors as columns.
#[derive(Debug)]
pub(crate) struct TensorTable {
    /// The column of each field of the schema, or `None` if the field is refused.
    columns: Vec<Option<TensorColumn>>,
    schema: SchemaRef,
    advice: &'static str,
}

impl TensorTable {
    /// Makes a table of named tensors. Refuses a file without tensors.
    ///
    /// `metadata` is the metadata of the file. `advice` suggests another way to read tensors whose
    /// first axes have different lengths.
    pub(crate) fn new(
        tensors: Vec<(String, Result<TensorColumn>)>,
        metadata: impl IntoIterator<Item = (String, String)>,
        advice: &'static str,
    ) -> Result<Self> {
        if tensors.is_empty() {
            return Err(Error::bad_input("the file has no arrays"));
        }
        let (mut columns, mut fields) = (Vec::new(), Vec::new());
        for (name, column) in tensors {
            match column.and_then(|column| Ok((column.field()?, column))) {
                Ok((field, column)) => {
                    fields.push(field);
                    columns.push(Some(column));
                }
                Err(error) if error.kind() == ErrorKind::BadInput => {
                    fields.push(refused_field(&name, error.message()));
                    columns.push(None);
                }
                Err(error) => return Err(error),
            }
        }
        let metadata: HashMap<String, String> = metadata.into_iter().collect();
        let schema = Arc::new(Schema::new_with_metadata(fields, metadata));
        Ok(Self { columns, schema, advice })
    }
}

impl RecordSource for TensorTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn row_count(&self) -> Option<u64> {
        let mut counts = self.columns.iter().flatten().map(|column| column.sample_count);
        let first = counts.next()?;
        counts.all(|count| count == first).then_some(first)
    }

    fn record_batches(&self, fields: &[usize]) -> Result<Box<dyn Iterator<Item = Result<RecordBatch>> + '_>> {
        let columns: Vec<&TensorColumn> = fields.iter().filter_map(|&i| self.columns.get(i)?.as_ref()).collect();
        let sample_count = sample_count(&columns, self.advice)?;
        let schema = self.schema.project(fields).map_err(|error| Error::bad_input(error.to_string()))?;
        Ok(Box::new(TensorBatches::new(columns, Arc::new(schema), sample_count)?))
    }
}

/// Returns the number of samples, which must be the same for all columns.
fn sample_count(columns: &[&TensorColumn], advice: &str) -> Result<u64> {
    let Some(first) = columns.first() else { return Ok(0) };
    let sample_count = first.sample_count;
    if let Some(other) = columns.iter().find(|column| column.sample_count != sample_count) {
        return Err(Error::bad_input(format!(
            "array {:?} has {sample_count} samples, but {:?} has {}: the first axes of all columns must have the \
             same length{advice}{SKIP_ADVICE}",
            first.name, other.name, other.sample_count
        )));
    }
    // the size of the file does not bound the number of samples
    if sample_count > MAX_EMPTY_SAMPLES && columns.iter().all(|column| column.sample_bytes() == Some(0)) {
        return Err(Error::bad_input(format!(
            "the arrays have {sample_count} samples without elements, more than {MAX_EMPTY_SAMPLES}"
        )));
    }
    Ok(sample_count)
}

/// The options of [`input_formats`](crate::input_formats).
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct FormatOptions {
    pub(crate) file_is_sample: bool,
}

impl FormatOptions {
    /// Advice for tensors whose first axes have different lengths.
    pub(crate) const SAMPLE_ADVICE: &'static str =
        "; a file of named tensors can also be read as one sample (`FormatOptions::file_is_sample`, --file-is-sample)";

    /// Returns the defaults: the first axis of each tensor is the sample axis.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets whether a file of named tensors (`.npz`, `.safetensors`) is one sample, with a column
    /// for each tensor. Default: no, the first axis is the sample axis.
    pub fn file_is_sample(mut self, file_is_sample: bool) -> Self {
        self.file_is_sample = file_is_sample;
        self
    }
}
