//! One sample, borrowed.

use crate::format::content::{Content, check_unused_bits};
use crate::format::schema::Layout;
use crate::format::{ColumnSchema, DType, Extent};
use crate::pod::{self, Element};
use crate::{Error, Result, limits};

/// One sample of one column, borrowed from the file or from a cursor's memory.
#[derive(Clone, Copy, Debug)]
pub struct Sample<'a> {
    dtype: DType,
    is_null: bool,
    rank: usize,
    extents: [u32; limits::RANK],
    bytes: &'a [u8],
}

impl<'a> Sample<'a> {
    /// Sample `i` of a chunk, with these values. Checks of it.
    #[inline]
    pub(in crate::read) fn new(
        column: &ColumnSchema,
        layout: &Layout,
        content: &Content<'_>,
        i: usize,
        bytes: &'a [u8],
    ) -> Result<Self> {
        let mut extents = [0; limits::RANK];
        let mut varying = 0;
        content.check_extents(layout, i)?;
        check_unused_bits(layout.dtype, bytes)?;
        for (to, extent) in extents.iter_mut().zip(column.shape.extents()) {
            *to = match extent {
                Extent::Fixed(extent) => *extent,
                Extent::Varying => {
                    varying += 1;
                    content.extent(layout, i, varying - 1)?
                }
            };
        }
        Ok(Self { dtype: layout.dtype, is_null: content.is_null(i), rank: column.shape.rank(), extents, bytes })
    }

    /// Returns whether the sample is null. A null of a fixed shape has zeros for elements, one of a
    /// ragged shape has none.
    pub fn is_null(&self) -> bool {
        self.is_null
    }

    /// Returns the extents of this sample, outermost first. For bytes and text: the length.
    pub fn shape(&self) -> &[u32] {
        self.extents.get(..self.rank).unwrap_or(&[])
    }

    /// Returns the elements as bytes, in memory order, row-major.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Returns the elements. Fails if `T` is not the column's type (bools, bytes and text are
    /// `u8`), or if the bytes are not aligned for it, which happens only if the caller gave the
    /// reader misaligned memory.
    pub fn as_slice<T: Element>(&self) -> Result<&'a [T]> {
        check_type::<T>(self.dtype)?;
        pod::as_elements(self.bytes)
            .ok_or_else(|| Error::bad_argument("the file's bytes are not aligned in memory; read the sample instead"))
    }

    /// Returns the text; `None` if the sample is null. Fails if the column is not `utf8`, or if
    /// the bytes are not UTF-8.
    pub fn as_str(&self) -> Result<Option<&'a str>> {
        if self.dtype != DType::Utf8 {
            return Err(Error::wrong_type(format!("the column is of type {}, not utf8", self.dtype)));
        }
        let text = std::str::from_utf8(self.bytes).map_err(|_| Error::corrupt("R-4.9", "a text is not UTF-8"))?;
        Ok((!self.is_null).then_some(text))
    }
}

pub(in crate::read) fn check_type<T: Element>(dtype: DType) -> Result<()> {
    if pod::fits::<T>(dtype) {
        return Ok(());
    }
    Err(Error::wrong_type(format!("the column is of type {dtype}; {} was asked for", T::DTYPE)))
}
