//! One sample, borrowed from the file or from a cursor: a tensor, a text, a byte string, or a list
//! of a nested column.
//!
//! A sample is checked when it is created: its extents, its bools, its unused bits and, if it is a
//! list, its members. So every sample that a caller gets obeys the format, whether its bytes were
//! mapped, decoded or copied. A list locates its members lazily, level by level, and allocates
//! nothing.

#[cfg(feature = "arrow")]
use crate::bytes::le::u64_of;
use crate::bytes::pod::{self, Element};
use crate::format::content::{Content, Lists, check_unused_bits};
use crate::format::schema::Layout;
use crate::format::{ColumnSchema, DType, Extent};
use crate::read::file::column_inner::ColumnInner;
use crate::{Error, Result, limits};
use std::fmt;
use std::ops::Range;

/// One sample of one column, borrowed from the file or from a cursor.
#[derive(Clone, Copy, Debug)]
pub struct Sample<'a> {
    dtype: DType,
    is_null: bool,
    ndim: usize,
    extents: [u32; limits::DIMENSIONS],
    bytes: &'a [u8],
}

impl<'a> Sample<'a> {
    /// Creates sample `i` of a chunk; `bytes` are the values of the sample. Checks and
    ///
    #[inline]
    pub(in crate::read) fn new(
        column: &ColumnSchema,
        layout: &Layout,
        content: &Content<'_>,
        i: usize,
        bytes: &'a [u8],
    ) -> Result<Self> {
        let mut extents = [0; limits::DIMENSIONS];
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
        Ok(Self { dtype: layout.dtype, is_null: content.is_null(i), ndim: column.shape.ndim(), extents, bytes })
    }

    /// Returns whether the sample is null. The elements of a null sample are zeros if the shape is
    /// fixed; a ragged null sample has no elements.
    pub fn is_null(&self) -> bool {
        self.is_null
    }

    /// Returns the extents of this sample, outermost first. For bytes and text, the only extent
    /// is the length.
    pub fn extents(&self) -> &[u32] {
        self.extents.get(..self.ndim).unwrap_or(&[])
    }

    /// Returns the elements as bytes, in memory order, row-major.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Returns the elements. Fails if `T` is not the column's type (bools, bytes and text are
    /// `u8`). Also fails if the bytes are not aligned for `T`, which happens only if the caller
    /// passed misaligned memory to the reader.
    pub fn as_slice<T: Element>(&self) -> Result<&'a [T]> {
        check_type::<T>(self.dtype)?;
        pod::as_elements(self.bytes).ok_or_else(|| {
            Error::bad_argument("the file's bytes are not aligned in memory; read the sample instead of viewing it")
        })
    }

    /// Returns the text; `None` if the sample is null. Fails if the column is not `utf8`, or if
    /// the bytes are not UTF-8.
    pub fn as_str(&self) -> Result<Option<&'a str>> {
        if self.dtype != DType::Utf8 {
            return Err(Error::wrong_type(format!("the column has type {}, not utf8", self.dtype)));
        }
        let text = std::str::from_utf8(self.bytes).map_err(|_| Error::corrupt("R-4.9", "the text is not UTF-8"))?;
        Ok((!self.is_null).then_some(text))
    }
}

pub(in crate::read) fn check_type<T: Element>(dtype: DType) -> Result<()> {
    if pod::fits::<T>(dtype) {
        return Ok(());
    }
    Err(Error::wrong_type(format!("the column has type {dtype}, but {} was requested", T::DTYPE)))
}

/// One list of a nested column, borrowed from the file or from a cursor: a sample, or a member of
/// another list.
#[derive(Clone, Copy)]
pub struct List<'a> {
    column: &'a ColumnInner,
    /// The parts of the chunk except the values.
    content: Content<'a>,
    /// The values of the sample, and their offset in the values of the chunk.
    values: &'a [u8],
    values_start: usize,
    /// The level of the list: 0 for a sample. Its members are one level deeper.
    level: usize,
    number: usize,
    is_null: bool,
    /// The members, as a range of the entries of their level.
    first: usize,
    len: usize,
}

impl<'a> List<'a> {
    /// Creates sample `i` of a chunk. `range` is the range of its values in the chunk. `decoded`
    /// has these values if the sample was decoded individually; otherwise `content` has them.
    /// Checks for bools.
    pub(in crate::read) fn of_sample(
        column: &'a ColumnInner,
        content: Content<'a>,
        i: usize,
        range: Range<usize>,
        decoded: Option<&'a [u8]>,
    ) -> Result<Self> {
        let values_start = range.start;
        let values = decoded.or_else(|| content.values.get(range)).ok_or_else(not_a_list)?;
        check_unused_bits(column.layout().dtype, values)?;
        Self { column, content, values, values_start, level: 0, number: i, is_null: false, first: 0, len: 0 }.found()
    }

    /// Determines the members of the list and whether it is null. Refuses a null list with members,
    /// like all other reads.
    fn found(mut self) -> Result<Self> {
        let mut found = None;
        let mut level = 0;
        self.content.items(self.column.layout(), |lists: Lists<'_>| {
            if level == self.level {
                found = Some(lists.entries_of(self.number, self.column.layout().may_be_null(level), level)?);
            }
            level += 1;
            Ok(())
        })?;
        let entries: Option<Range<usize>> = found.ok_or_else(not_a_list)?;
        self.is_null = entries.is_none();
        (self.first, self.len) = entries.map_or((0, 0), |entries| (entries.start, entries.len()));
        Ok(self)
    }

    /// Returns whether the list is null. A null list has no members.
    pub fn is_null(&self) -> bool {
        self.is_null
    }

    /// Returns the number of members.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether there are no members.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the elements of the whole sample that contains this list, as bytes in memory order.
    pub fn sample_bytes(&self) -> &'a [u8] {
        self.values
    }

    /// Returns whether the members are lists rather than items.
    pub fn has_lists(&self) -> bool {
        self.level + 1 < self.column.layout().levels
    }

    /// Returns member `k`, which is a list. Fails if the members are items, or if there is no such
    /// member.
    ///
    /// Cost: a few steps for each level of the column.
    pub fn list(&self, k: usize) -> Result<List<'a>> {
        if !self.has_lists() {
            return Err(Error::bad_argument("the members of the list are items; use `item`"));
        }
        Self { level: self.level + 1, number: self.member(k)?, ..*self }.found()
    }

    /// Returns member `k`, which is an item. Fails if the members are lists, or if there is no such
    /// member.
    ///
    /// Cost: a few steps for each level of the column.
    pub fn item(&self, k: usize) -> Result<Sample<'a>> {
        if self.has_lists() {
            return Err(Error::bad_argument("the members of the list are lists; use `list`"));
        }
        let (column, layout, item) = (self.column, self.column.layout(), self.member(k)?);
        let items = self.content.items(layout, |_| Ok(()))?;
        items.check_presence(layout, &(item..item + 1))?; // `item` is below the number of items
        let end = self.values_start.saturating_add(self.values.len());
        let range = items.range_of_items(layout, &(item..item + 1), end)?;
        let start = range.start.checked_sub(self.values_start).ok_or_else(not_a_list)?;
        let bytes = self.values.get(start..).and_then(|rest| rest.get(..range.len()));
        Sample::new(column.schema(), layout, &items, item, bytes.ok_or_else(not_a_list)?)
    }

    /// Returns the items of a list, in order. If the members are lists, each result is an error;
    /// call [`List::list`] instead.
    ///
    /// Cost: same as [`List::item`] for each item. To read many items, gather them into a
    /// [`ColumnBuffer`](crate::ColumnBuffer).
    pub fn items(&self) -> impl Iterator<Item = Result<Sample<'a>>> + use<'a> {
        let list = *self;
        (0..list.len).map(move |k| list.item(k))
    }

    /// Returns the number of lists in this list, including itself, and the number of items in them.
    ///
    /// Cost: a few steps for each level of the column.
    #[cfg(feature = "arrow")]
    pub(crate) fn entry_counts(&self) -> Result<(u64, u64)> {
        let (mut level, mut list_count) = (0, 0_u64);
        let mut entries = self.number..self.number + 1;
        self.content.items(self.column.layout(), |lists: Lists<'_>| {
            if level >= self.level {
                list_count = list_count.saturating_add(u64_of(entries.len()));
                entries = lists.entries(&entries)?;
            }
            level += 1;
            Ok(())
        })?;
        Ok((list_count, u64_of(entries.len())))
    }

    fn member(&self, k: usize) -> Result<usize> {
        if k < self.len {
            return Ok(self.first + k); // no overflow: both numbers are below 2^32
        }
        Err(Error::bad_argument(format!("there is no member {k}; the list has {} members, numbered from 0", self.len)))
    }
}

impl fmt::Debug for List<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("List").field("is_null", &self.is_null).field("len", &self.len).finish_non_exhaustive()
    }
}

#[cold]
fn not_a_list() -> Error {
    Error::internal("a list of a nested column is outside its sample")
}

/// Returns the error for calling a method for lists on a column that is not nested.
#[cold]
pub(in crate::read) fn not_nested_error() -> Error {
    Error::bad_argument("the samples of the column are not lists: use `read`, `view` or a ColumnBuffer")
}

/// Returns the error for calling a method for samples without lists on a nested column.
#[cold]
pub(in crate::read) fn nested_error() -> Error {
    Error::bad_argument("the samples of the column are lists: use `read_list`, `view_list` or a ColumnBuffer")
}
