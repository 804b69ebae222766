//! Reads the samples of tensors in one pass, as record batches.
//!
//! A tensor in C order is read front to back. In Fortran order, the first axis varies fastest, so
//! the file contains the first elements of all samples, then the second elements of all samples,
//! and so on. A batch is then read element by element and transposed. Such batches are larger, to
//! make the reads longer. Memory is allocated only for bytes that the file has.

use super::column::{ColumnReader, Order, TensorColumn};
use crate::element::unpack;
use crate::element::{element_array, swap_bytes, swap_width};
use crate::stream::read_error;
use crate::stream::stream_error;
use std::io::Read;
use std::sync::Arc;
use tensilo::import::arrow::array::{ArrayRef, FixedSizeListArray, RecordBatch, RecordBatchOptions};
use tensilo::import::arrow::buffer::MutableBuffer;
use tensilo::import::arrow::datatypes::{DataType, SchemaRef};
use tensilo::source::Source;
use tensilo::{Error, ErrorKind, Result};

/// The approximate size of a batch in bytes. A batch has at least one sample.
const BATCH_BYTES: u64 = 2 << 20;
/// Like [`BATCH_BYTES`], for batches whose elements are read separately.
const FORTRAN_BATCH_BYTES: u64 = 32 << 20;
/// The maximum number of samples in a batch, regardless of their size.
const MAX_BATCH_SAMPLES: u64 = 1 << 16;

/// Batches of some columns, in the order of their samples.
pub(super) struct TensorBatches<'a> {
    columns: Vec<(&'a TensorColumn, ColumnReader)>,
    schema: SchemaRef,
    next: u64,
    end: u64,
    batch_samples: u64,
}

impl<'a> TensorBatches<'a> {
    pub(super) fn new(columns: Vec<&'a TensorColumn>, schema: SchemaRef, sample_count: u64) -> Result<Self> {
        let bytes = columns.iter().filter_map(|column| column.sample_bytes()).fold(1, u64::saturating_add);
        let is_fortran = columns.iter().any(|column| column.order == Order::Fortran);
        let batch_bytes = if is_fortran { FORTRAN_BATCH_BYTES } else { BATCH_BYTES };
        let columns = columns.into_iter().map(|column| Ok((column, column.open()?))).collect::<Result<_>>()?;
        let batch_samples = (batch_bytes / bytes).clamp(1, MAX_BATCH_SAMPLES);
        Ok(Self { columns, schema, next: 0, end: sample_count, batch_samples })
    }

    fn batch(&mut self) -> Result<RecordBatch> {
        let count = self.batch_samples.min(self.end.saturating_sub(self.next));
        let rows = usize::try_from(count).map_err(|_| too_large())?;
        let is_last = self.next.saturating_add(count) == self.end;
        let mut arrays = Vec::with_capacity(self.columns.len());
        for ((column, reader), field) in self.columns.iter_mut().zip(self.schema.fields()) {
            let array = read(column, reader, self.next, count, is_last).and_then(|bytes| {
                let elements = element_array(column.dtype, bytes)?;
                group_into_samples(elements, field.data_type(), rows)
            });
            arrays.push(array.map_err(|error| with_array_name(&column.name, error))?);
        }
        self.next = self.next.saturating_add(count);
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let batch = RecordBatch::try_new_with_options(Arc::clone(&self.schema), arrays, &options);
        batch.map_err(|error| Error::bad_input(error.to_string()))
    }
}

impl Iterator for TensorBatches<'_> {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.next >= self.end {
            return None;
        }
        let batch = self.batch();
        if batch.is_err() {
            self.next = self.end;
        }
        Some(batch)
    }
}

/// Adds the name of an array to an error about its content.
fn with_array_name(name: &str, error: Error) -> Error {
    match error.kind() {
        ErrorKind::BadInput => Error::bad_input(format!("array {name:?}: {}", error.message())),
        _ => error,
    }
}

fn too_large() -> Error {
    Error::bad_input("a sample exceeds the memory of this machine")
}

/// Groups elements into lists, one per sample, if samples have dimensions.
fn group_into_samples(elements: ArrayRef, data_type: &DataType, rows: usize) -> Result<ArrayRef> {
    let DataType::FixedSizeList(item, size) = data_type else { return Ok(elements) };
    let lists = FixedSizeListArray::try_new_with_length(Arc::clone(item), *size, elements, None, rows);
    lists.map(|lists| Arc::new(lists) as ArrayRef).map_err(|error| Error::bad_input(error.to_string()))
}

/// Reads the elements of consecutive samples, in C order and in the byte order of this machine.
fn read(
    column: &TensorColumn,
    reader: &mut ColumnReader,
    first: u64,
    count: u64,
    is_last: bool,
) -> Result<MutableBuffer> {
    if let (ColumnReader::Plain { reader, offset }, Some(bits)) = (&*reader, column.packed_bits) {
        return packed(column, reader.as_ref(), *offset, bits, first, count);
    }
    let bytes = column.sample_bytes().and_then(|bytes| bytes.checked_mul(count)).ok_or_else(too_large)?;
    let length = usize::try_from(bytes).map_err(|_| too_large())?;
    let mut out = match (reader, column.order) {
        (ColumnReader::Plain { reader, offset }, Order::C) => {
            // allocate only for bytes that the file has
            let at = column.sample_bytes().and_then(|bytes| bytes.checked_mul(first)?.checked_add(*offset));
            let at = at.filter(|at| at.checked_add(bytes).is_some_and(|end| end <= reader.byte_count()));
            let mut out = MutableBuffer::from_len_zeroed(at.map_or(0, |_| length));
            reader.read_exact_at(at.ok_or_else(cut_off)?, &mut out).map_err(read_error)?;
            out
        }
        (ColumnReader::Plain { reader, offset }, Order::Fortran) => {
            fortran(column, reader.as_ref(), *offset, first, count)?
        }
        (ColumnReader::Archived(stream), _) => archived(stream, bytes, is_last)?,
    };
    if column.is_swapped {
        swap_bytes(swap_width(column.dtype), &mut out);
    }
    Ok(out)
}

/// Reads consecutive samples whose elements are packed, with `bits` bits each.
fn packed(
    column: &TensorColumn,
    reader: &dyn Source,
    offset: u64,
    bits: u32,
    first: u64,
    count: u64,
) -> Result<MutableBuffer> {
    let bit_of = |sample: u64| column.sample_elements()?.checked_mul(sample)?.checked_mul(bits.into());
    let start = bit_of(first).ok_or_else(too_large)?;
    let end = first.checked_add(count).and_then(bit_of).ok_or_else(too_large)?;
    let at = offset.checked_add(start / 8).ok_or_else(too_large)?;
    let length = end.div_ceil(8).saturating_sub(start / 8);
    // allocate only for bytes that the file has
    if at.checked_add(length).is_none_or(|end| end > reader.byte_count()) {
        return Err(cut_off());
    }
    let mut bytes = vec![0; usize::try_from(length).map_err(|_| too_large())?];
    reader.read_exact_at(at, &mut bytes).map_err(read_error)?;
    let elements = usize::try_from((end - start) / u64::from(bits)).map_err(|_| too_large())?;
    let mut out = MutableBuffer::new(elements);
    out.extend_from_slice(&unpack(&bytes, bits, start % 8, elements));
    Ok(out)
}

fn cut_off() -> Error {
    Error::bad_input("the file is truncated: the elements extend beyond its end")
}

/// Reads the next bytes of an array in an archive. Allocates only for bytes that are present.
fn archived(stream: &mut impl Read, bytes: u64, is_last: bool) -> Result<MutableBuffer> {
    let failed = |error| stream_error(&error, "the elements of the array");
    let mut out = Vec::new();
    stream.take(bytes).read_to_end(&mut out).map_err(failed)?;
    if u64::try_from(out.len()).ok() != Some(bytes) {
        return Err(cut_off());
    }
    // reading to the end verifies the checksum
    if is_last && stream.read(&mut [0]).map_err(failed)? > 0 {
        return Err(Error::bad_input("bytes follow the elements of the array"));
    }
    let mut buffer = MutableBuffer::new(out.len());
    buffer.extend_from_slice(&out);
    Ok(buffer)
}

/// Reads samples of a tensor whose first axis varies fastest. The values of one element in
/// consecutive samples are contiguous, so each element needs one read.
fn fortran(column: &TensorColumn, reader: &dyn Source, offset: u64, first: u64, count: u64) -> Result<MutableBuffer> {
    let width = column.dtype.element_bytes();
    let total = column.byte_count().and_then(|bytes| bytes.checked_add(offset));
    if total.is_none_or(|end| end > reader.byte_count()) {
        return Err(cut_off());
    }
    let elements = column.sample_elements().and_then(|elements| usize::try_from(elements).ok());
    let rows = usize::try_from(count).ok();
    let (Some(elements), Some(rows)) = (elements, rows) else { return Err(too_large()) };
    let (Some(segment_bytes), Some(sample_bytes)) = (rows.checked_mul(width), elements.checked_mul(width)) else {
        return Err(too_large());
    };
    let mut out = MutableBuffer::from_len_zeroed(segment_bytes.checked_mul(elements).ok_or_else(too_large)?);
    let mut segment = vec![0; segment_bytes];
    let shape: Vec<u64> = column.shape.iter().map(|&extent| extent.into()).collect();
    let mut index = vec![0_u64; shape.len()];
    for element in 0..elements {
        // no overflow: the whole tensor lies in the file
        let segment_index = fortran_index(&index, &shape);
        let at = offset + (segment_index * column.sample_count + first) * column.width();
        reader.read_exact_at(at, &mut segment).map_err(read_error)?;
        for (value, sample) in segment.chunks_exact(width).zip(out.chunks_exact_mut(sample_bytes)) {
            let slot = element * width; // inside the sample
            if let Some(slot) = sample.get_mut(slot..slot + width) {
                slot.copy_from_slice(value);
            }
        }
        advance(&mut index, &shape);
    }
    Ok(out)
}

/// Converts a whole array from Fortran order to C order. The length of `fortran` must match the
/// extents.
pub(crate) fn in_c_order(fortran: &[u8], extents: &[u64], width: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(fortran.len());
    let mut index = vec![0_u64; extents.len()];
    while out.len() < fortran.len() {
        // the array is in memory
        let at = usize::try_from(fortran_index(&index, extents)).unwrap_or(usize::MAX).saturating_mul(width);
        out.extend_from_slice(fortran.get(at..at.saturating_add(width)).unwrap_or_default());
        advance(&mut index, extents);
    }
    out
}

/// Returns the position, in Fortran order, of the element with this index.
fn fortran_index(index: &[u64], shape: &[u64]) -> u64 {
    index.iter().zip(shape).rev().fold(0, |number, (&i, &extent)| number * extent + i)
}

/// Advances to the next element in C order.
fn advance(index: &mut [u64], shape: &[u64]) {
    for (i, &extent) in index.iter_mut().zip(shape).rev() {
        *i += 1;
        if *i < extent {
            return;
        }
        *i = 0;
    }
}
