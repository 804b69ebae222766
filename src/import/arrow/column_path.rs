//! The way from a record batch to the samples of a column.

use super::decode::{decode, field_of};
use super::nested;
pub(in crate::import) use super::nested::Step;
use super::samples::{plain_samples, struct_samples};
use super::walk::NoTensors;
use crate::import::batch::Samples;
use crate::import::input_column::ColumnKind;
use crate::import::problem::Problem;
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_buffer::NullBuffer;
use std::result::Result;

/// The way from a record batch to the array of a column.
#[derive(Clone)]
pub(in crate::import) struct ColumnPath {
    /// The field of the schema, then fields of structs.
    pub fields: Vec<usize>,
    /// Steps into lists, if the column is inside some.
    pub steps: Vec<Step>,
    /// Whether it ends at a struct, of which only the nulls are samples.
    pub is_struct: bool,
}

impl ColumnPath {
    /// Returns whether the path leads through a struct.
    pub(super) fn is_in(&self, around: &Self) -> bool {
        let is_longer = self.fields.len() > around.fields.len() || self.steps.len() > around.steps.len();
        // steps begin behind the last field
        let is_same = self.fields == around.fields || around.steps.is_empty();
        is_longer && is_same && self.fields.starts_with(&around.fields) && self.steps.starts_with(&around.steps)
    }
}

/// Returns the samples of a column of this kind, which a path leads to; `fields` are the fields of
/// the schema that the batch has.
pub(super) fn samples(
    batch: &RecordBatch,
    fields: &[usize],
    path: &ColumnPath,
    kind: &ColumnKind,
) -> Result<Samples, Problem> {
    let Located { array, around } = locate(batch, fields, &path.fields)?;
    if path.is_struct && path.steps.is_empty() {
        return Ok(struct_samples(array.len(), around.as_ref(), array.nulls()));
    }
    let nulls = NullBuffer::union(around.as_ref(), array.nulls()).filter(|nulls| nulls.null_count() > 0);
    if path.steps.is_empty() {
        match plain_samples(&array, nulls.as_ref(), kind) {
            Err(NoTensors::Nested { .. }) => {}
            Err(NoTensors::Refused(problem)) => return Err(problem),
            Ok(samples) => return Ok(samples),
        }
    }
    nested::samples(&array, nulls.as_ref(), &path.steps, path.is_struct, kind)
}

/// A column's array.
struct Located {
    array: ArrayRef,
    /// The nulls of the structs around it.
    around: Option<NullBuffer>,
}

/// Finds a column in a batch; `fields` are the fields of the schema that the batch has.
fn locate(batch: &RecordBatch, fields: &[usize], path: &[usize]) -> Result<Located, Problem> {
    let mismatch = || Problem::from("a batch has other columns than its schema".to_owned());
    let (root, rest) = path.split_first().ok_or_else(mismatch)?;
    let position = fields.binary_search(root).map_err(|_| mismatch())?;
    let mut array = batch.columns().get(position).ok_or_else(mismatch)?.clone();
    let mut around: Option<NullBuffer> = None;
    for &child in rest {
        around = NullBuffer::union(around.as_ref(), array.logical_nulls().as_ref());
        array = field_of(&array, child).ok_or_else(mismatch)?;
    }
    Ok(Located { array: decode(&array)?, around })
}
