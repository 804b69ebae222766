//! Record batches that a program has already.

use super::records::{ArrowSource, Guarded, RecordBatches, Records, malformed};
use crate::import::options::ConvertOptions;
use crate::import::run;
use crate::write::Sink;
use crate::{Error, Result, Summary};
use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::SchemaRef;
use std::cell::RefCell;
use std::ops::ControlFlow;

/// Writes record batches of one schema to a sink. Shapes of lists are found in a first pass over
/// them.
///
/// ```
/// # fn main() -> tensilo::Result<()> {
/// use std::sync::Arc;
/// use tensilo::import::arrow::array::{ArrayRef, Int32Array, RecordBatch};
/// use tensilo::import::{ConvertOptions, write_batches};
///
/// let numbers: ArrayRef = Arc::new(Int32Array::from(vec![1, 2, 3]));
/// let batch = RecordBatch::try_from_iter([("n", numbers)]).expect("one column");
/// let sink = tensilo::sink::Stream(Vec::new());
/// let file = write_batches(&batch.schema(), &[batch], sink, &ConvertOptions::new())?.sink.0;
/// assert_eq!(tensilo::Reader::from_bytes(file)?.sample_count(), 3);
/// # Ok(())
/// # }
/// ```
pub fn write_batches<K: Sink>(
    schema: &SchemaRef,
    batches: &[RecordBatch],
    sink: K,
    options: &ConvertOptions,
) -> Result<Summary<K>> {
    let source = ArrowSource::new(schema, BatchSlice { batches });
    run::run(&[&source], sink, options, &mut |_| ControlFlow::Continue(()))
}

/// Writes all batches of a reader to a sink, in one pass: a file, a stream, a query's result, or
/// what another language passes through the C data interface
/// (`arrow::ffi_stream::RecordBatchStreamReader`).
///
/// Since nothing can be read twice, dimensions of lists vary, unless their type ([fixed-size list,
/// tensor](super)) or [`ConvertOptions::shapes`] says otherwise.
pub fn write_reader<K: Sink>(reader: impl RecordBatchReader, sink: K, options: &ConvertOptions) -> Result<Summary<K>> {
    let source = ArrowSource::new(&reader.schema(), Once { reader: RefCell::new(Some(reader)) });
    run::run_once(&source, sink, options)
}

struct BatchSlice<'a> {
    batches: &'a [RecordBatch],
}

impl Records for BatchSlice<'_> {
    fn row_count(&self) -> Option<u64> {
        let rows = |batch: &RecordBatch| u64::try_from(batch.num_rows()).ok();
        self.batches.iter().try_fold(0_u64, |total, batch| total.checked_add(rows(batch)?))
    }

    fn record_batches(&self, fields: &[usize]) -> Result<RecordBatches<'_>> {
        let fields = fields.to_vec();
        Ok(Box::new(self.batches.iter().map(move |batch| project(batch, &fields))))
    }
}

fn project(batch: &RecordBatch, fields: &[usize]) -> Result<RecordBatch> {
    batch.project(fields).map_err(|error| malformed(&error))
}

/// A reader that is gone when it has been read.
struct Once<R> {
    reader: RefCell<Option<R>>,
}

impl<R: RecordBatchReader> Records for Once<R> {
    fn row_count(&self) -> Option<u64> {
        None
    }

    fn first_batch(&self, _fields: &[usize]) -> Option<RecordBatch> {
        None
    }

    fn record_batches(&self, fields: &[usize]) -> Result<RecordBatches<'_>> {
        let reader = self.reader.take().ok_or_else(|| Error::bad_input("the batches have been read before"))?;
        let fields = fields.to_vec();
        Ok(Box::new(Guarded::new(reader).map(move |batch| project(&batch?, &fields))))
    }
}
