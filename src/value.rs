//! One sample as it is pushed into a writer.

use crate::DType;
use crate::pod::{self, Element};

/// One sample of one column, for [`Writer::push`](crate::Writer::push). Borrows everything.
#[derive(Clone, Copy, Debug)]
pub struct Value<'a>(pub(crate) ValueContent<'a>);

#[derive(Clone, Copy, Debug)]
pub(crate) enum ValueContent<'a> {
    Null,
    One(OneSample<'a>),
    List(&'a [Value<'a>]),
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct OneSample<'a> {
    pub dtype: DType,
    pub bytes: &'a [u8],
    /// The varying extents. If `None`, at most one varies, and follows from the number of elements.
    pub extents: Option<&'a [u32]>,
}

impl<'a> Value<'a> {
    /// A null: a sample, or a list or an item of a nested column.
    pub const NULL: Self = Self(ValueContent::Null);

    /// Returns a tensor of which at most one extent varies. Elements are in row-major order.
    pub fn tensor<T: Element>(elements: &'a [T]) -> Self {
        Self::one(T::DTYPE, pod::as_bytes(elements), None)
    }

    /// Returns a tensor with these varying extents, outermost first.
    pub fn ragged<T: Element>(elements: &'a [T], extents: &'a [u32]) -> Self {
        Self::one(T::DTYPE, pod::as_bytes(elements), Some(extents))
    }

    /// Returns a text.
    pub fn text(text: &'a str) -> Self {
        Self::one(DType::Utf8, text.as_bytes(), None)
    }

    /// Returns a string of bytes.
    pub fn bytes(bytes: &'a [u8]) -> Self {
        Self::one(DType::Bytes, bytes, None)
    }

    /// Returns a list of a nested column, with its items or with lists of the next level.
    ///
    /// [`Writer::push`](crate::Writer::push) refuses items in more or fewer lists than the column
    /// has levels, items of another type or shape than the column's, and nulls that the column does
    /// not allow. A list has at most 2^32 - 1 members, and a sample what one chunk can contain: see
    /// [`VALIDITY_AND_SHAPE_BYTES`](crate::limits::VALIDITY_AND_SHAPE_BYTES),
    /// [`EMPTY_ITEMS`](crate::limits::EMPTY_ITEMS) and [`CHUNK_BYTES`](crate::limits::CHUNK_BYTES).
    ///
    /// ```
    /// use tensilo::{ColumnSchema, Reader, Schema, Value, Writer, WriterOptions};
    /// use tensilo::sink::Stream;
    ///
    /// # fn main() -> tensilo::Result<()> {
    /// let schema = Schema::new([ColumnSchema::utf8("captions").list()]);
    /// let mut writer = Writer::new(Stream(Vec::new()), schema, &WriterOptions::new())?;
    /// writer.push(&[Value::list(&[Value::text("a dog"), Value::text("a brown dog")])])?;
    /// writer.push(&[Value::list(&[])])?;
    /// let reader = Reader::from_bytes(writer.finish()?.sink.0)?;
    /// let mut cursor = reader.column("captions")?.cursor();
    /// let captions: Vec<_> = cursor.read_list(0)?.items().collect::<tensilo::Result<_>>()?;
    /// assert_eq!(captions[1].as_str()?, Some("a brown dog"));
    /// # Ok(())
    /// # }
    /// ```
    pub fn list(entries: &'a [Self]) -> Self {
        Self(ValueContent::List(entries))
    }

    fn one(dtype: DType, bytes: &'a [u8], extents: Option<&'a [u32]>) -> Self {
        Self(ValueContent::One(OneSample { dtype, bytes, extents }))
    }
}
