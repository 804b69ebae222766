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
        arrays.push(change(child, own)?);
    }
    let nulls = match structs.nulls() {
        Some(nulls) => Some(nulls.clone()),
        None => common_nulls(fields, &arrays)?,
    };
    let retyped = StructArray::try_new_with_length(fields.clone(), arrays, nulls, structs.len())?;
    Ok(Arc::new(retyped))
}

/// Returns the nulls of structs that are null where their fields are that cannot be null
/// themselves.
fn common_nulls(fields: &Fields, arrays: &[ArrayRef]) -> Result<Option<NullBuffer>, ArrowError> {
    let mut common: Option<&NullBuffer> = None;
    let required = fields.iter().zip(arrays).filter(|(field, _)| !field.is_nullable());
    for (number, (field, array)) in required.enumerate() {
        let nulls = array.nulls().filter(|nulls| nulls.null_count() > 0);
        if number > 0 && nulls != common {
            let message = format!("the field {:?} is not null where the other fields are", field.name());
            return Err(ArrowError::InvalidArgumentError(message));
        }
        common = nulls;
    }
    Ok(common.cloned())
}
