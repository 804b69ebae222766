//! Padding: ragged and nested samples as one tensor.
//!
//! The extents of the tensor are computed first: the maximum length in each dimension over the
//! batch, rounded up to a multiple. Then one recursive walk over lists, items and rows copies the
//! elements to their positions and fills the rest of each dimension. So each byte of the tensor is
//! written exactly once. An item with the same inner extents as the tensor needs only one copy.

use crate::error::{DataError, Result};
use crate::loader::deliver::memory::too_large;
use half::{bf16, f16};
use std::ops::Range;
use tensilo::{ColumnBuffer, ColumnSchema, DType, Extent};

/// How the samples of a ragged or nested column become one tensor.
///
/// The first dimension of the tensor counts the samples. Each level of lists and each varying
/// extent becomes a dimension, whose length is the maximum in the batch. The padding value fills
/// the elements that a sample does not have, and all elements of null samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Padding {
    multiple: u32,
    value: f64,
}

impl Default for Padding {
    fn default() -> Self {
        Self { multiple: 1, value: 0.0 }
    }
}

impl Padding {
    /// Returns the defaults: samples are padded with zeros to the longest one in the batch.
    pub fn new() -> Self {
        Self::default()
    }

    /// Rounds lengths up to a multiple, so that fewer different shapes occur. A multiple of 0 is an
    /// error when the padding is used.
    pub fn multiple(mut self, multiple: u32) -> Self {
        self.multiple = multiple;
        self
    }

    /// Sets the value of elements that a sample does not have, such as -100 for labels. For an
    /// integer column, it must be an integer in the range of the type.
    pub fn value(mut self, value: f64) -> Self {
        self.value = value;
        self
    }
}

/// A padding, resolved for a column.
#[derive(Clone, Copy, Debug)]
pub(in crate::loader) struct PadPlan {
    multiple: u64,
    /// The padding element, in the first `element_bytes` bytes.
    value: [u8; 8],
    element_bytes: usize,
}

impl PadPlan {
    /// Returns the padding for a delivered column. Fails if its type cannot represent the value, or
    /// if the multiple is 0.
    pub(in crate::loader) fn new(padding: Padding, column: &ColumnSchema) -> Result<Self> {
        if padding.multiple == 0 {
            let message = format!("column {:?}: lengths cannot be multiples of 0; use 1 for no rounding", column.name);
            return Err(DataError::BadArgument(message));
        }
        let value = value_bytes(padding.value, column.dtype).ok_or_else(|| {
            let (name, dtype) = (&column.name, column.dtype.name());
            DataError::BadArgument(format!(
                "column {name:?} is {dtype}, which cannot represent the padding value {}",
                padding.value
            ))
        })?;
        Ok(Self { multiple: padding.multiple.into(), value, element_bytes: column.dtype.element_bytes() })
    }

    /// Returns the padding element, in the first bytes of the result.
    #[cfg(feature = "cuda")]
    pub(in crate::loader) fn value(&self) -> [u8; 8] {
        self.value
    }

    /// Returns the extents of the padded tensor of a buffer; the first is the number of samples.
    pub(in crate::loader) fn extents(&self, buffer: &ColumnBuffer) -> Vec<u64> {
        let mut extents = vec![buffer.sample_count() as u64]; // exact
        let longest = |lengths: &mut dyn Iterator<Item = u64>| {
            // no overflow: these are lengths of data in memory
            lengths.max().unwrap_or(0).next_multiple_of(self.multiple)
        };
        for lists in buffer.lists() {
            let ends = lists.offsets().iter().skip(1);
            extents.push(longest(&mut lists.offsets().iter().zip(ends).map(|(start, end)| end.saturating_sub(*start))));
        }
        let varying = buffer.shape().varying_count();
        let mut number = 0;
        for extent in buffer.shape().extents() {
            extents.push(match extent {
                Extent::Fixed(extent) => (*extent).into(),
                Extent::Varying => {
                    number += 1;
                    let of_items = buffer.varying_extents().iter().skip(number - 1).step_by(varying.max(1));
                    longest(&mut of_items.map(|&extent| extent.into()))
                }
            });
        }
        extents
    }

    /// Returns the size in bytes of a tensor of these extents.
    pub(in crate::loader) fn byte_count(&self, extents: &[u64]) -> Result<usize> {
        let times = |bytes: usize, extent: &u64| bytes.checked_mul(usize::try_from(*extent).ok()?);
        extents.iter().try_fold(self.element_bytes, times).ok_or_else(|| too_large(usize::MAX))
    }

    /// Copies the samples of a buffer, whose elements are `values`, to a tensor of these extents.
    pub(in crate::loader) fn run(
        &self,
        buffer: &ColumnBuffer,
        values: &[u8],
        extents: &[u64],
        out: &mut [u8],
    ) -> Result<()> {
        let extents: Vec<usize> = extents.iter().map(|&extent| usize::try_from(extent).unwrap_or(usize::MAX)).collect();
        let mut strides = vec![self.element_bytes; extents.len()];
        for at in (1..extents.len()).rev() {
            let (stride, extent) = (strides.get(at).copied().unwrap_or(0), extents.get(at).copied().unwrap_or(0));
            if let Some(before) = strides.get_mut(at - 1) {
                *before = stride.saturating_mul(extent);
            }
        }
        let padding = self.value.get(..self.element_bytes).unwrap_or(&[]);
        let copy = &mut Copy { buffer, values, extents: &extents, strides: &strides, padding, out };
        copy.members(0, 0..buffer.sample_count(), 0)
            .ok_or_else(|| DataError::Internal("the samples of a batch do not fit in its padded tensor".to_owned()))
    }
}

/// Copies the samples of a buffer to a tensor and writes each byte once. Its methods return `None`
/// if a sample is not inside the tensor.
struct Copy<'c> {
    buffer: &'c ColumnBuffer,
    values: &'c [u8],
    extents: &'c [usize],
    /// The stride of each dimension, in bytes.
    strides: &'c [usize],
    /// One padding element.
    padding: &'c [u8],
    out: &'c mut [u8],
}

impl Copy<'_> {
    /// Copies the members of a list at a level, or all samples, to the tensor, starting at byte
    /// `to`.
    fn members(&mut self, level: usize, members: Range<usize>, to: usize) -> Option<()> {
        let stride = *self.strides.get(level)?;
        let count = members.len();
        for (number, member) in members.enumerate() {
            let to = to.checked_add(number.checked_mul(stride)?)?;
            match self.buffer.lists().get(level) {
                Some(lists) => {
                    let at = |list: usize| usize::try_from(*lists.offsets().get(list)?).ok();
                    self.members(level.checked_add(1)?, at(member)?..at(member.checked_add(1)?)?, to)?;
                }
                None => self.item(member, to)?,
            }
        }
        self.pad(level, count, to)
    }

    /// Fills a dimension, which starts at byte `to`, from index `count` on.
    fn pad(&mut self, dimension: usize, count: usize, to: usize) -> Option<()> {
        let (stride, extent) = (*self.strides.get(dimension)?, *self.extents.get(dimension)?);
        let start = to.checked_add(count.checked_mul(stride)?)?;
        let end = to.checked_add(extent.checked_mul(stride)?)?;
        fill(self.out.get_mut(start..end)?, self.padding);
        Some(())
    }

    fn item(&mut self, item: usize, to: usize) -> Option<()> {
        let first = self.buffer.lists().len().checked_add(1)?;
        if self.buffer.is_null(item) {
            let end = to.checked_add(*self.strides.get(first.checked_sub(1)?)?)?;
            fill(self.out.get_mut(to..end)?, self.padding);
            return Some(());
        }
        let varying = self.buffer.shape().varying_count();
        let mut own = self.buffer.varying_extents().iter().skip(item.checked_mul(varying)?);
        let extents = self.buffer.shape().extents().iter().map(|extent| match extent {
            Extent::Fixed(extent) => usize::try_from(*extent).ok(),
            Extent::Varying => usize::try_from(*own.next()?).ok(),
        });
        let extents: Vec<usize> = extents.collect::<Option<_>>()?;
        let element_bytes = *self.strides.last()?;
        let bytes = extents.iter().try_fold(element_bytes, |bytes, extent| bytes.checked_mul(*extent))?;
        let start = match self.buffer.offsets().get(item) {
            Some(&offset) => usize::try_from(offset).ok()?.checked_mul(element_bytes)?,
            None => item.checked_mul(bytes)?,
        };
        self.rows(&extents, first, start..start.checked_add(bytes)?, to)
    }

    /// Copies a tensor of these extents. Its first dimension is dimension `first` of the output.
    fn rows(&mut self, extents: &[usize], first: usize, from: Range<usize>, to: usize) -> Option<()> {
        let is_whole =
            || self.extents.get(first.checked_add(1)?..).map(|expected| expected == extents.get(1..).unwrap_or(&[]));
        if extents.len() <= 1 || is_whole()? {
            let from = self.values.get(from)?;
            let out = self.out.get_mut(to..to.checked_add(from.len())?)?;
            out.copy_from_slice(from); // equal lengths
        } else {
            let (&rows, inner) = extents.split_first()?;
            let bytes = from.len().checked_div(rows).unwrap_or(0);
            let stride = *self.strides.get(first)?;
            for row in 0..rows {
                let start = from.start.checked_add(row.checked_mul(bytes)?)?;
                let to = to.checked_add(row.checked_mul(stride)?)?;
                self.rows(inner, first.checked_add(1)?, start..start.checked_add(bytes)?, to)?;
            }
        }
        match extents.first() {
            Some(&rows) => self.pad(first, rows, to),
            None => Some(()), // a scalar
        }
    }
}

/// Fills memory with copies of an element. The length must be a multiple of the element's length.
fn fill(out: &mut [u8], element: &[u8]) {
    let Some((first, rest)) = element.split_first() else { return };
    if rest.iter().all(|byte| byte == first) {
        return out.fill(*first);
    }
    let Some(begin) = out.get_mut(..element.len()) else { return };
    begin.copy_from_slice(element); // equal lengths
    let mut filled = element.len();
    while filled < out.len() {
        let count = filled.min(out.len() - filled);
        out.copy_within(..count, filled);
        filled += count;
    }
}

/// Returns a value as an element of the type, in the first bytes of the result; `None` if the type
/// cannot represent it.
fn value_bytes(value: f64, dtype: DType) -> Option<[u8; 8]> {
    /// Converts the value to an integer type if the type can represent it.
    macro_rules! whole {
        ($integer:ty) => {{
            let whole = value as i128; // saturates outside the range of every integer type of a column
            // if `whole` is not exact, the comparison fails
            let whole = <$integer>::try_from(whole).ok().filter(|_| whole as f64 == value);
            whole.map(|whole| bytes(whole.to_ne_bytes()))
        }};
    }
    match dtype {
        DType::Bf16 => Some(bytes(bf16::from_f64(value).to_ne_bytes())),
        DType::F16 => Some(bytes(f16::from_f64(value).to_ne_bytes())),
        DType::F32 => Some(bytes((value as f32).to_ne_bytes())),
        DType::F64 => Some(value.to_ne_bytes()),
        DType::I8 => whole!(i8),
        DType::I16 => whole!(i16),
        DType::I32 => whole!(i32),
        DType::I64 => whole!(i64),
        DType::U8 | DType::Bytes | DType::Utf8 => whole!(u8),
        DType::Bool => whole!(u8).filter(|bytes| bytes.first().is_some_and(|value| *value <= 1)),
        DType::U16 => whole!(u16),
        DType::U32 => whole!(u32),
        DType::U64 => whole!(u64),
        DType::Complex64 => Some(bytes((value as f32).to_ne_bytes())), // the imaginary part is 0
        small => {
            let is_value = |element: &u8| small.small_value(*element).is_some_and(|own| f64::from(own) == value);
            let mut elements = 0..=u8::MAX >> (8 - small.value_bits().clamp(1, 8));
            elements.find(is_value).map(|element| bytes([element]))
        }
    }
}

fn bytes<const N: usize>(value: [u8; N]) -> [u8; 8] {
    let mut out = [0; 8];
    out.iter_mut().zip(value).for_each(|(to, from)| *to = from);
    out
}
