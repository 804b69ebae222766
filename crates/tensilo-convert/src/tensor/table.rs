//! A file of tensors as a source of record batches.

use super::batches::TensorBatches;
use super::column::TensorColumn;
use std::collections::HashMap;
use std::sync::Arc;
use tensilo::import::RecordSource;
use tensilo::import::arrow::array::RecordBatch;
use tensilo::import::arrow::datatypes::{Field, Schema, SchemaRef};
use tensilo::{Error, Result};

/// The most samples of tensors without elements.
const EMPTY_SAMPLES: u64 = 1 << 24;

/// Tensors with the same number of samples.
#[derive(Debug)]
pub(crate) struct TensorTable {
    columns: Vec<TensorColumn>,
    schema: SchemaRef,
    sample_count: u64,
}

impl TensorTable {
    /// Makes a table. Refuses tensors whose first axes differ, and none at all.
    ///
    /// `metadata` are those of the file, and `advice` says how such tensors can be read otherwise.
    pub(crate) fn new(
        columns: Vec<TensorColumn>,
        metadata: impl IntoIterator<Item = (String, String)>,
        advice: &str,
    ) -> Result<Self> {
        let Some(first) = columns.first() else { return Err(Error::bad_input("the file has no arrays")) };
        let sample_count = first.sample_count;
        if let Some(other) = columns.iter().find(|column| column.sample_count != sample_count) {
            return Err(Error::bad_input(format!(
                "array {:?} has {sample_count} samples, and {:?} has {}: columns have the same first axis{advice}",
                first.name, other.name, other.sample_count
            )));
        }
        // nothing in the file would bound their number
        if sample_count > EMPTY_SAMPLES && columns.iter().all(|column| column.sample_bytes() == Some(0)) {
            return Err(Error::bad_input(format!(
                "{sample_count} samples without elements, more than {EMPTY_SAMPLES}"
            )));
        }
        let fields = columns.iter().map(TensorColumn::field).collect::<Result<Vec<Field>>>()?;
        let metadata: HashMap<String, String> = metadata.into_iter().collect();
        let schema = Arc::new(Schema::new_with_metadata(fields, metadata));
        Ok(Self { columns, schema, sample_count })
    }
}

impl RecordSource for TensorTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn row_count(&self) -> Option<u64> {
        Some(self.sample_count)
    }

    fn record_batches(&self, fields: &[usize]) -> Result<Box<dyn Iterator<Item = Result<RecordBatch>> + '_>> {
        let columns: Vec<&TensorColumn> = fields.iter().filter_map(|&i| self.columns.get(i)).collect();
        let schema = self.schema.project(fields).map_err(|error| Error::bad_input(error.to_string()))?;
        Ok(Box::new(TensorBatches::new(columns, Arc::new(schema), self.sample_count)?))
    }
}
