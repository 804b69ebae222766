//! A single sample as a batch.

use crate::batch::{ColumnBatch, pushed_inner_bytes};
use crate::format::{ColumnSchema, Extent};
use crate::value::{Value, ValueContent};
use crate::{Error, Result, limits};

/// Returns a batch of one sample. Its extents are in `extents`, unless the value has them. `zeros`
/// has the bytes of a null.
pub(super) fn single_sample<'a>(
    column: &ColumnSchema,
    value: &'a Value<'a>,
    extents: &'a mut [u32; limits::RANK],
    zeros: &'a [u8],
) -> Result<ColumnBatch<'a>> {
    const NULL: &[u8] = &[0];
    let sample = match &value.0 {
        ValueContent::One(sample) => sample,
        ValueContent::List(_) => return Err(Error::bad_argument("a list in a column that is not nested")),
        ValueContent::Null => {
            let varying = column.shape.varying_count();
            let extents = extents.get(..varying).unwrap_or(&[]); // all are 0
            let bytes = if varying == 0 { pushed_inner_bytes(column)? } else { 0 };
            let zeros = zeros.get(..bytes).unwrap_or(&[]);
            return Ok(ColumnBatch::from_bytes(column.pushed_dtype(), 1, extents, zeros).with_validity(NULL));
        }
    };
    let extents = match sample.extents {
        Some(extents) => extents,
        None => infer_extents(column, sample.bytes.len(), extents)?,
    };
    Ok(ColumnBatch::from_bytes(sample.dtype, 1, extents, &sample.bytes))
}

/// Returns the varying extents of a sample of this many bytes, if they follow from it. They are in
/// `out`.
pub(super) fn infer_extents<'a>(
    column: &ColumnSchema,
    bytes: usize,
    out: &'a mut [u32; limits::RANK],
) -> Result<&'a [u32]> {
    match column.shape.varying_count() {
        0 => Ok(&[]),
        1 => {
            let inner = pushed_inner_bytes(column)?;
            let extent = bytes.checked_div(inner).unwrap_or(0);
            let [first, ..] = out;
            *first = u32::try_from(extent).map_err(|_| Error::over_limit("a sample is too large"))?;
            Ok(std::slice::from_ref(first))
        }
        varying => {
            let fixed = column.shape.extents().iter().filter(|extent| matches!(extent, Extent::Fixed(_)));
            let message =
                format!("{varying} extents vary ({} are fixed); push the sample with its extents", fixed.count());
            Err(Error::bad_argument(message))
        }
    }
}
