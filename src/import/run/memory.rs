//! The public functions that convert Arrow record batches of the calling program.
//!
//! Batches in a slice can be read twice, so a first pass finds the shapes of their lists. A reader
//! can be read only once, so no shapes are inferred from its samples.

use crate::import::arrow::records::{ArrowSource, CatchPanic, RecordBatches, Records, malformed};
use crate::import::options::ConvertOptions;
use crate::import::source::PassRows;
use crate::write::Sink;
use crate::{Error, Result, Summary};
use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{DataType, Field, FieldRef, SchemaRef};
use std::cell::RefCell;
use std::ops::ControlFlow;
use std::sync::Arc;

/// Writes record batches that share one schema to a sink. A first pass over the batches finds the
/// shapes of lists.
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
    let source = ArrowSource::new(schema, BatchSlice { schema: Arc::clone(schema), batches })?;
    super::run(&[&source], sink, options, &mut |_| ControlFlow::Continue(()))
}

/// Writes all batches of a reader to a sink, in one pass. The reader can return the batches of a
/// file, of a stream, or of the result of a query. A reader from another language can be passed
/// through Arrow's C stream interface (`arrow::ffi_stream::RecordBatchStreamReader`).
///
/// Each batch is read only once, so the dimensions of lists vary unless their type ([fixed-size
/// list or tensor](crate::import)) or [`ConvertOptions::shapes`] fixes them. Lists do not form a
/// tensor if sibling lists differ in length, or if a list contains nulls. Such lists are refused
/// unless a shape with fewer dimensions is declared for them.
pub fn write_reader<K: Sink>(reader: impl RecordBatchReader, sink: K, options: &ConvertOptions) -> Result<Summary<K>> {
    let schema = reader.schema();
    let source =
        ArrowSource::new(&schema, SinglePass { schema: Arc::clone(&schema), reader: RefCell::new(Some(reader)) })?;
    super::run_once(&source, sink, options)
}

struct BatchSlice<'a> {
    schema: SchemaRef,
    batches: &'a [RecordBatch],
}

impl Records for BatchSlice<'_> {
    fn row_count(&self) -> Option<u64> {
        let rows = |batch: &RecordBatch| u64::try_from(batch.num_rows()).ok();
        self.batches.iter().try_fold(0_u64, |total, batch| total.checked_add(rows(batch)?))
    }

    fn record_batches(&self, fields: &[usize], _: PassRows) -> Result<RecordBatches<'_>> {
        let fields = fields.to_vec();
        Ok(Box::new(self.batches.iter().map(move |batch| project(batch, &self.schema, &fields))))
    }
}

/// Returns the given columns of a batch. Refuses a batch whose fields differ from the schema.
fn project(batch: &RecordBatch, schema: &SchemaRef, fields: &[usize]) -> Result<RecordBatch> {
    let own = batch.schema();
    if !Arc::ptr_eq(&own, schema) {
        for &i in fields {
            let (found, expected) = (own.fields().get(i), schema.fields().get(i));
            if !found.zip(expected).is_some_and(|(found, expected)| is_same(found, expected)) {
                return Err(field_mismatch(i, found, expected));
            }
        }
    }
    batch.project(fields).map_err(malformed)
}

/// Returns whether two fields have the same name and type. Ignores nullability, metadata and the
/// names of list members.
fn is_same(a: &Field, b: &Field) -> bool {
    a.name() == b.name() && is_same_type(a.data_type(), b.data_type())
}

fn is_same_type(a: &DataType, b: &DataType) -> bool {
    match (a, b) {
        (DataType::List(a), DataType::List(b))
        | (DataType::LargeList(a), DataType::LargeList(b))
        | (DataType::ListView(a), DataType::ListView(b))
        | (DataType::LargeListView(a), DataType::LargeListView(b))
        | (DataType::Map(a, _), DataType::Map(b, _)) => is_same_type(a.data_type(), b.data_type()),
        (DataType::FixedSizeList(a, length), DataType::FixedSizeList(b, other)) => {
            length == other && is_same_type(a.data_type(), b.data_type())
        }
        (DataType::Struct(a), DataType::Struct(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_same(a, b)),
        (DataType::Dictionary(keys, a), DataType::Dictionary(other, b)) => keys == other && is_same_type(a, b),
        (DataType::RunEndEncoded(ends, a), DataType::RunEndEncoded(other, b)) => {
            ends.data_type() == other.data_type() && is_same_type(a.data_type(), b.data_type())
        }
        (a, b) => a == b,
    }
}

fn field_mismatch(i: usize, found: Option<&FieldRef>, expected: Option<&FieldRef>) -> Error {
    let text = |field: Option<&FieldRef>| match field {
        Some(field) => format!("{:?} of type {}", field.name(), field.data_type()),
        None => "missing".to_owned(),
    };
    let message = format!("column {i} of a batch is {}, but in the schema it is {}", text(found), text(expected));
    Error::bad_input(message)
}

/// A reader, which can be read only once.
struct SinglePass<R> {
    schema: SchemaRef,
    reader: RefCell<Option<R>>,
}

impl<R: RecordBatchReader> Records for SinglePass<R> {
    fn row_count(&self) -> Option<u64> {
        None
    }

    fn first_batch(&self, _fields: &[usize]) -> Option<RecordBatch> {
        None
    }

    fn record_batches(&self, fields: &[usize], _: PassRows) -> Result<RecordBatches<'_>> {
        let reader = self.reader.take().ok_or_else(|| Error::bad_input("the batches have already been read"))?;
        let fields = fields.to_vec();
        Ok(Box::new(CatchPanic::new(reader).map(move |batch| project(&batch?, &self.schema, &fields))))
    }
}
