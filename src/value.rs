//! A single value for a writer: one sample of one column.
//!
//! A [`Value`] borrows elements, or owns them if they are made on the fly (scalars, strings,
//! lists). It has an element type, but not the shape of its column. If more than one extent varies,
//! the caller states the varying extents; otherwise they follow from the number of elements. A list
//! contains values, which can be lists. A writer turns the values of a sample into batches of one
//! sample (`write/sample.rs`).

use crate::DType;
use crate::bytes::pod::{self, Element};
use std::borrow::Cow;
use std::ops::Deref;

/// One sample of one column, for [`Writer::push`](crate::Writer::push).
///
/// The constructors borrow the elements. `From` accepts a scalar, a string, or an owned tensor or
/// list. It also accepts an `Option` of any of these, where `None` is null:
///
/// ```
/// use tensilo::Value;
///
/// let label: Option<i32> = None;
/// let caption = Some(format!("a {}", "dog"));
/// let sample = [Value::from(label), caption.into(), vec![1.0_f32, 2.0].into()];
/// # drop(sample);
/// ```
#[derive(Clone, Debug)]
pub struct Value<'a>(pub(crate) ValueContent<'a>);

#[derive(Clone, Debug)]
pub(crate) enum ValueContent<'a> {
    Null,
    One(OneSample<'a>),
    List(Entries<'a>),
}

#[derive(Clone, Debug)]
pub(crate) struct OneSample<'a> {
    pub dtype: DType,
    pub bytes: Cow<'a, [u8]>,
    /// The varying extents. If `None`, at most one varies, and it follows from the number of
    /// elements.
    pub extents: Option<&'a [u32]>,
}

/// The members of a list. A `Cow` would make [`Value`] invariant in its lifetime.
#[derive(Clone, Debug)]
pub(crate) enum Entries<'a> {
    Borrowed(&'a [Value<'a>]),
    Owned(Vec<Value<'a>>),
}

impl<'a> Deref for Entries<'a> {
    type Target = [Value<'a>];

    fn deref(&self) -> &Self::Target {
        match self {
            Self::Borrowed(entries) => entries,
            Self::Owned(entries) => entries,
        }
    }
}

impl<'a> Value<'a> {
    /// Null, as a sample or as a list or item of a nested column.
    pub const NULL: Self = Self(ValueContent::Null);

    /// Returns a tensor with at most one varying extent. The elements are in row-major order.
    pub fn tensor<T: Element>(elements: &'a [T]) -> Self {
        Self::one(T::DTYPE, pod::as_bytes(elements), None)
    }

    /// Returns a tensor with these varying extents, outermost first.
    pub fn ragged<T: Element>(elements: &'a [T], extents: &'a [u32]) -> Self {
        Self::one(T::DTYPE, pod::as_bytes(elements), Some(extents))
    }

    /// Returns a text value.
    pub fn text(text: &'a str) -> Self {
        Self::one(DType::Utf8, text.as_bytes(), None)
    }

    /// Returns a byte string.
    pub fn bytes(bytes: &'a [u8]) -> Self {
        Self::one(DType::Bytes, bytes, None)
    }

    /// Returns a list for a nested column. `entries` are its items, or its lists of the next level.
    ///
    /// [`Writer::push`](crate::Writer::push) fails if the column has a different number of levels,
    /// if its items have a different type or shape, or if the list contains a null that the column
    /// does not allow. A list has at most 2^32 - 1 members, and a sample must fit in one chunk: see
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
    /// let reader = Reader::from_bytes(writer.into_bytes()?)?;
    /// let mut cursor = reader.column("captions")?.cursor();
    /// let captions: Vec<_> = cursor.read_list(0)?.items().collect::<tensilo::Result<_>>()?;
    /// assert_eq!(captions[1].as_str()?, Some("a brown dog"));
    /// # Ok(())
    /// # }
    /// ```
    pub fn list(entries: &'a [Self]) -> Self {
        Self(ValueContent::List(Entries::Borrowed(entries)))
    }

    fn one(dtype: DType, bytes: impl Into<Cow<'a, [u8]>>, extents: Option<&'a [u32]>) -> Self {
        Self(ValueContent::One(OneSample { dtype, bytes: bytes.into(), extents }))
    }
}

/// Converts a scalar.
impl<T: Element> From<T> for Value<'_> {
    fn from(element: T) -> Self {
        Self::one(T::DTYPE, pod::as_bytes(&[element]).to_vec(), None)
    }
}

/// Converts a vector of elements to a [tensor](Value::tensor).
impl<T: Element> From<Vec<T>> for Value<'_> {
    fn from(elements: Vec<T>) -> Self {
        Self::one(T::DTYPE, pod::as_bytes(&elements).to_vec(), None)
    }
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(text: &'a str) -> Self {
        Self::text(text)
    }
}

impl From<String> for Value<'_> {
    fn from(text: String) -> Self {
        Self::one(DType::Utf8, text.into_bytes(), None)
    }
}

/// Converts a vector of values to a [list](Value::list).
impl<'a> From<Vec<Self>> for Value<'a> {
    fn from(entries: Vec<Self>) -> Self {
        Self(ValueContent::List(Entries::Owned(entries)))
    }
}

/// Converts `None` to [`Value::NULL`].
impl<'a, V: Into<Self>> From<Option<V>> for Value<'a> {
    fn from(value: Option<V>) -> Self {
        value.map_or(Self::NULL, Into::into)
    }
}
