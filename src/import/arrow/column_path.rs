//! The way from a record batch to the samples of a column.

use super::decode::decode;
use super::nested::{self, Step};
use super::samples::plain_samples;
use super::walk::NoTensors;
use crate::import::batch::Samples;
use crate::import::input_column::ColumnKind;
use crate::import::problem::Problem;
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_buffer::NullBuffer;
use std::result::Result;

/// Returns the samples of a column of this kind, which a path leads to; `fields` are the fields of
/// the schema that the batch has.
pub(super) fn samples(
    batch: &RecordBatch,
    fields: &[usize],
    path: &ColumnPath,
    kind: &ColumnKind,
) -> Result<Samples, Problem> {
    let Located { array, nulls } = locate(batch, fields, &path.fields)?;
    let nulls = nulls.filter(|nulls| nulls.null_count() > 0);
    if path.steps.is_empty() {
        match plain_samples(&array, nulls.as_ref(), kind) {
            Err(NoTensors::Nested { .. }) => {}
            Err(NoTensors::Refused(problem)) => return Err(problem),
            Ok(samples) => return Ok(samples),
        }
    }
    nested::samples(&array, nulls.as_ref(), &path.steps, kind)
}

/// The way from a record batch to the array of a column.
pub(super) struct ColumnPath {
    /// The field of the schema, then fields of structs.
    pub fields: Vec<usize>,
    /// Steps into lists, if the column is inside some.
    pub steps: Vec<Step>,
}

/// A column's array, and which of its rows are null, be it that a struct around it is.
struct Located {
    array: ArrayRef,
    nulls: Option<NullBuffer>,
}

/// Finds a column in a batch; `fields` are the fields of the schema that the batch has.
fn locate(batch: &RecordBatch, fields: &[usize], path: &[usize]) -> Result<Located, Problem> {
    let mismatch = || Problem::from("a batch has other columns than its schema".to_owned());
    let (root, rest) = path.split_first().ok_or_else(mismatch)?;
    let position = fields.binary_search(root).map_err(|_| mismatch())?;
    let mut array = batch.columns().get(position).ok_or_else(mismatch)?.clone();
    let mut nulls: Option<NullBuffer> = None;
    for &child in rest {
        let parent = array.as_struct_opt().ok_or_else(mismatch)?;
        nulls = NullBuffer::union(nulls.as_ref(), parent.nulls());
        let child = parent.columns().get(child).ok_or_else(mismatch)?.clone();
        array = child;
    }
    let array = decode(&array)?;
    let nulls = NullBuffer::union(nulls.as_ref(), array.nulls());
    Ok(Located { array, nulls })
}
