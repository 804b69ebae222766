//! Structs with fields of other types.

use super::mismatch::mismatch;
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, StructArray};
use arrow_buffer::NullBuffer;
use arrow_schema::{ArrowError, DataType, Field, Fields};
use std::sync::Arc;

/// Returns the change of each field, with the number of the present field of its name. `None`:
/// there are others.
pub(super) fn children<R>(
    own: &Fields,
    wanted: &Fields,
    between: impl Fn(&Field, &Field) -> Option<R>,
) -> Option<Vec<(usize, R)>> {
    let child = |wanted: &Arc<Field>| {
        let (number, own) = own.find(wanted.name())?;
        Some((number, between(own, wanted)?))
    };
    let is_same = own.len() == wanted.len();
    let children: Vec<(usize, R)> = if is_same { wanted.iter().map(child).collect() } else { None }?;
    let mut numbers: Vec<usize> = children.iter().map(|(number, _)| *number).collect();
    numbers.sort_unstable();
    numbers.dedup();
    (numbers.len() == children.len()).then_some(children)
}

/// Returns structs with the fields of a type.
pub(super) fn retyped<R>(
    array: &ArrayRef,
    to: &DataType,
    children: &mut [(usize, R)],
    mut change: impl FnMut(&mut R, &ArrayRef) -> Result<ArrayRef, ArrowError>,
) -> Result<ArrayRef, ArrowError> {
    let structs = array.as_struct_opt().ok_or_else(|| mismatch(array, to))?;
    let DataType::Struct(fields) = to else { return Err(mismatch(array, to)) };
    let mut arrays = Vec::with_capacity(children.len());
    for (number, child) in children.iter_mut() {
        let own = structs.columns().get(*number).ok_or_else(|| mismatch(array, to))?;
        arrays.push(change(child, &masked(own, structs.nulls())?)?);
    }
    let nulls = structs.nulls().cloned();
    let retyped = StructArray::try_new_with_length(fields.clone(), arrays, nulls, structs.len())?;
    Ok(Arc::new(retyped))
}

/// Returns a field of a struct. If it is a struct, it is null where that one is: a file does not
/// say so twice.
fn masked(field: &ArrayRef, nulls: Option<&NullBuffer>) -> Result<ArrayRef, ArrowError> {
    let (Some(inner), Some(nulls)) = (field.as_struct_opt(), nulls) else { return Ok(field.clone()) };
    let nulls = NullBuffer::union(inner.nulls(), Some(nulls));
    let inner = StructArray::try_new_with_length(inner.fields().clone(), inner.columns().to_vec(), nulls, inner.len())?;
    Ok(Arc::new(inner))
}
