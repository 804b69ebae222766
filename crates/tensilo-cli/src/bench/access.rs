//! The read calls that are measured.

use crate::failure::{Failure, Outcome};
use half::{bf16, f16};
use std::hint::black_box;
use tensilo::{Column, ColumnBuffer, Cursor, DType, Element, Result};

/// A way of reading samples of one column.
pub(super) trait Access: Send {
    /// Reads these samples, as many as announced before, and returns the bytes of their elements.
    fn read(&mut self, indices: &[u64]) -> Result<usize>;
}

/// Returns the fastest way to read `batch` samples at a time, with all its memory allocated.
pub(super) fn access(column: &Column, batch: usize) -> Outcome<Box<dyn Access>> {
    let schema = column.schema();
    if !schema.levels.is_empty() {
        return Ok(Box::new(Lists::new(column)));
    }
    if schema.shape.is_ragged() {
        return Ok(Box::new(AnyShape::new(column)));
    }
    match schema.dtype {
        DType::Bf16 => fixed::<bf16>(column, batch),
        DType::F16 => fixed::<f16>(column, batch),
        DType::F32 => fixed::<f32>(column, batch),
        DType::F64 => fixed::<f64>(column, batch),
        DType::I8 => fixed::<i8>(column, batch),
        DType::I16 => fixed::<i16>(column, batch),
        DType::I32 => fixed::<i32>(column, batch),
        DType::I64 => fixed::<i64>(column, batch),
        DType::Complex64 => fixed::<[f32; 2]>(column, batch),
        DType::U8 | DType::Bool => fixed::<u8>(column, batch),
        small if small.is_small() => fixed::<u8>(column, batch),
        DType::U16 => fixed::<u16>(column, batch),
        DType::U32 => fixed::<u32>(column, batch),
        DType::U64 => fixed::<u64>(column, batch),
        _ => Ok(Box::new(AnyShape::new(column))),
    }
}

/// Samples of a fixed shape, read directly into their destination.
struct Fixed<T> {
    cursor: Cursor,
    out: Vec<T>,
}

fn fixed<T: Element>(column: &Column, batch: usize) -> Outcome<Box<dyn Access>> {
    let elements = column.schema().shape.inner_elements().and_then(|elements| usize::try_from(elements).ok());
    let elements = elements.and_then(|elements| elements.checked_mul(batch));
    let mut out = Vec::new();
    let element_count = elements.filter(|&elements| out.try_reserve_exact(elements).is_ok());
    let element_count =
        element_count.ok_or_else(|| Failure::Usage(format!("{batch} samples of this column do not fit in memory")))?;
    out.resize(element_count, T::default());
    Ok(Box::new(Fixed { cursor: column.cursor(), out }))
}

impl<T: Element> Access for Fixed<T> {
    fn read(&mut self, indices: &[u64]) -> Result<usize> {
        match indices {
            [i] => self.cursor.read_slice(*i, &mut self.out).map(|_| ())?,
            _ => self.cursor.gather_slice(indices, &mut self.out).map(|_| ())?,
        }
        Ok(size_of_val(black_box(self.out.as_slice())))
    }
}

/// Samples of any shape: read and copied, or gathered into a growing buffer.
struct AnyShape {
    cursor: Cursor,
    sample: Vec<u8>,
    buffer: ColumnBuffer,
}

impl AnyShape {
    fn new(column: &Column) -> Self {
        Self { cursor: column.cursor(), sample: Vec::new(), buffer: ColumnBuffer::new() }
    }
}

impl Access for AnyShape {
    fn read(&mut self, indices: &[u64]) -> Result<usize> {
        if let [i] = indices {
            self.sample.clear();
            self.sample.extend_from_slice(self.cursor.read(*i)?.bytes());
            return Ok(black_box(self.sample.as_slice()).len());
        }
        self.cursor.gather_into(indices, &mut self.buffer)?;
        Ok(black_box(self.buffer.bytes()).len())
    }
}

/// Lists, gathered into a growing buffer.
struct Lists {
    cursor: Cursor,
    buffer: ColumnBuffer,
}

impl Lists {
    fn new(column: &Column) -> Self {
        Self { cursor: column.cursor(), buffer: ColumnBuffer::new() }
    }
}

impl Access for Lists {
    fn read(&mut self, indices: &[u64]) -> Result<usize> {
        self.cursor.gather_into(indices, &mut self.buffer)?;
        Ok(black_box(self.buffer.bytes()).len())
    }
}
