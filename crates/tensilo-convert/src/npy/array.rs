//! `.npy`: one array, whose first axis counts samples.

use super::header::{MAGIC, NpyHeader};
use crate::error::unreadable;
use crate::tensor::{ColumnBytes, TensorColumn, TensorTable};
use std::io::Read as _;
use tensilo::import::{FormatFile, InputFormat, RecordSource};
use tensilo::{Error, Result};

/// The name of the only column: several files that follow each other have to have the same.
const COLUMN: &str = "array";

/// Array files of NumPy.
pub(crate) struct Npy;

impl InputFormat for Npy {
    fn name(&self) -> &str {
        "NumPy arrays (.npy)"
    }

    fn open(&self, file: &FormatFile) -> Result<Option<Box<dyn RecordSource>>> {
        let mut first = Vec::new();
        let read = file.reader()?.take(6).read_to_end(&mut first);
        read.map_err(unreadable)?;
        if first != MAGIC {
            return Ok(None);
        }
        let mut reader = file.reader()?;
        let header = NpyHeader::read(&mut reader)?;
        let bytes = ColumnBytes::Plain { file: file.clone(), offset: header.byte_count };
        let column = column(COLUMN, &header, bytes)?;
        let rest = reader.byte_count().saturating_sub(header.byte_count);
        check_length(&column, &header, rest)?;
        Ok(Some(Box::new(TensorTable::new(vec![(COLUMN.to_owned(), Ok(column))], [], "")?)))
    }
}

/// Returns the column of an array.
pub(super) fn column(name: &str, header: &NpyHeader, bytes: ColumnBytes) -> Result<TensorColumn> {
    let column = TensorColumn::new(name, header.dtype, &header.extents, bytes)?;
    Ok(TensorColumn { is_swapped: header.is_swapped, order: header.order, ..column })
}

/// Refuses an array of which there are fewer or more bytes than its shape says.
pub(super) fn check_length(column: &TensorColumn, header: &NpyHeader, found: u64) -> Result<()> {
    if column.byte_count() == Some(found) {
        return Ok(());
    }
    let due = column.byte_count().unwrap_or(u64::MAX); // was checked
    let what = if found < due { "is cut off" } else { "has bytes behind its elements" };
    let NpyHeader { dtype, extents, .. } = header;
    Err(Error::bad_input(format!(
        "the array {what}: {dtype} of shape {extents:?} take {due} bytes, and there are {found}"
    )))
}
