//! Batches of samples, as writers accept them, and the lists of nested columns.
//!
//! A [`ColumnBatch`] borrows everything from its caller: values, extents, nulls, and the lists of
//! each level if the column is nested. [`ColumnBatch::check`] checks all of it before a writer
//! stores the first byte, so a refused batch changes nothing and later code can rely on the
//! lengths.
//!
//! Lists have two forms. Callers push lengths or offsets ([`ListBatch`]). Readers, and the writer
//! itself for single samples, collect lists in a [`ListBuffer`], with Arrow's offsets and validity
//! bitmap. A batch accepts either form.

use crate::bytes::memory;
use crate::bytes::pod::{self, Element};
use crate::format::content::{bit, product_of_extents, validity_bytes};
use crate::format::{ColumnSchema, DType};
use crate::{Error, Result, limits};

/// Consecutive samples of one column, for [`Writer::push_batch`](crate::Writer::push_batch).
/// Borrows everything.
///
/// Elements are in the byte order of this machine, row-major, one sample after another.
#[derive(Clone, Copy, Debug)]
pub struct ColumnBatch<'a> {
    pub(crate) dtype: DType,
    /// The number of items: samples, or members of the innermost lists.
    pub(crate) item_count: usize,
    pub(crate) extents: &'a [u32],
    pub(crate) values: &'a [u8],
    pub(crate) validity: Option<&'a [u8]>,
    /// The lists of each level, outermost first.
    lists: Levels<'a>,
}

/// The lists of all levels, as the caller or a buffer provides them.
#[derive(Clone, Copy, Debug)]
enum Levels<'a> {
    Batches(&'a [ListBatch<'a>]),
    Buffers(&'a [ListBuffer]),
}

/// Consecutive lists of one level of a nested column, for [`ColumnBatch::in_lists`].
#[derive(Clone, Copy, Debug)]
pub struct ListBatch<'a> {
    lengths: Lengths<'a>,
    validity: Option<&'a [u8]>,
}

#[derive(Clone, Copy, Debug)]
enum Lengths<'a> {
    Lengths(&'a [u32]),
    /// Offsets in ascending order, one more than there are lists.
    Offsets(&'a [u64]),
}

impl<'a> ListBatch<'a> {
    /// Creates lists with these numbers of members. Members are lists of the next level, or items.
    /// A null list has 0 members. Together, the lists of a level have as many members as the next
    /// level has entries.
    pub fn new(lengths: &'a [u32]) -> Self {
        Self { lengths: Lengths::Lengths(lengths), validity: None }
    }

    /// Creates lists from the offsets at which their members start and end. There is one more
    /// offset than there are lists, and the first offset is 0, as in Arrow. Pushing the batch fails
    /// if the offsets descend or do not start at 0, or if a list has more than 2^32 - 1 members.
    pub fn from_offsets(offsets: &'a [u64]) -> Self {
        Self { lengths: Lengths::Offsets(offsets), validity: None }
    }

    /// Returns the number of lists.
    pub(crate) fn count(&self) -> usize {
        match self.lengths {
            Lengths::Lengths(lengths) => lengths.len(),
            Lengths::Offsets(offsets) => offsets.len().saturating_sub(1),
        }
    }

    /// Returns the number of members of list `i`; `None` if there is no such list, or if it has
    /// more than `u32::MAX` members.
    pub(crate) fn length(&self, i: usize) -> Option<u32> {
        match self.lengths {
            Lengths::Lengths(lengths) => lengths.get(i).copied(),
            Lengths::Offsets(offsets) => {
                let end = offsets.get(i.checked_add(1)?)?;
                u32::try_from(end.checked_sub(*offsets.get(i)?)?).ok()
            }
        }
    }

    /// Sets which lists are null: bit `i % 8` of byte `i / 8` is 0 if list `i` is null. A null list
    /// has no members. Bit 0 is the least significant, as in [`ColumnBatch::with_validity`].
    pub fn with_validity(mut self, bitmap: &'a [u8]) -> Self {
        self.validity = Some(bitmap);
        self
    }

    pub(crate) fn is_null(&self, i: usize) -> bool {
        self.validity.is_some_and(|bitmap| !bit(bitmap, i))
    }

    /// Fails if the lists do not have `member_count` members in total, if a null list has members,
    /// or if a list is null although `may_be_null` is false.
    fn check(&self, may_be_null: bool, member_count: usize) -> Result<()> {
        check_bitmap(self.validity, self.count(), may_be_null, "list")?;
        if let Lengths::Offsets(&[first, ..]) = self.lengths
            && first != 0
        {
            let message = format!("the offsets of lists start at {first}, not at 0; subtract {first} from each offset");
            return Err(Error::bad_argument(message));
        }
        let mut sum = 0_usize;
        for i in 0..self.count() {
            let length = self.length(i).ok_or_else(|| self.no_length(i))?;
            if length > 0 && self.is_null(i) {
                let message = format!("list {i} of a level of the batch is null, but has {length} members");
                return Err(Error::bad_argument(message));
            }
            sum = sum.saturating_add(usize::try_from(length).unwrap_or(usize::MAX));
        }
        if sum == member_count {
            return Ok(());
        }
        let message = format!("the lists of a level have {sum} members in total, but {member_count} were pushed");
        Err(Error::bad_argument(message))
    }

    /// Returns the error for a list that starts after its end, or has too many members.
    #[cold]
    fn no_length(&self, i: usize) -> Error {
        let ends = match self.lengths {
            Lengths::Offsets(offsets) => offsets.get(i..).and_then(|rest| rest.first_chunk()),
            Lengths::Lengths(_) => None,
        };
        let Some(&[start, end]) = ends else { return Error::internal("a list of a batch is beyond its offsets") };
        match end.checked_sub(start) {
            Some(length) => {
                let max = u32::MAX;
                Error::over_limit(format!(
                    "list {i} of a level of the batch has {length} members; the format allows {max}"
                ))
            }
            None => Error::bad_argument(format!("the offsets of lists descend from {start} to {end} at list {i}")),
        }
    }
}

/// Fails if a bitmap is too short for `count` entries, or has a null that the column does not
/// allow.
fn check_bitmap(validity: Option<&[u8]>, count: usize, may_be_null: bool, entry: &str) -> Result<()> {
    let Some(bitmap) = validity else { return Ok(()) };
    if bitmap.len() < validity_bytes(count) {
        let message = format!("the validity bitmap has {} bytes, too few for {count} {entry}s", bitmap.len());
        return Err(Error::bad_argument(message));
    }
    match (0..count).find(|&i| !bit(bitmap, i)) {
        Some(i) if !may_be_null => {
            let message = format!("{entry} {i} of the batch is null, which the column does not allow");
            Err(Error::bad_argument(message))
        }
        _ => Ok(()),
    }
}

impl<'a> ColumnBatch<'a> {
    /// Creates a batch of samples with a fixed shape. `values` has the elements of all samples, one
    /// sample after another. A null sample also has elements, which are ignored.
    pub fn fixed<T: Element>(sample_count: usize, values: &'a [T]) -> Self {
        Self::from_bytes(T::DTYPE, sample_count, &[], pod::as_bytes(values))
    }

    /// Creates a batch of samples with a ragged shape. `extents` has the varying extents of each
    /// sample, outermost first, one sample after another. For text and bytes, which are pushed as
    /// `u8`, the extents are the lengths. A null sample has extents of 0.
    pub fn ragged<T: Element>(sample_count: usize, extents: &'a [u32], values: &'a [T]) -> Self {
        Self::from_bytes(T::DTYPE, sample_count, extents, pod::as_bytes(values))
    }

    /// Creates a batch of samples whose elements are passed as bytes, in the byte order of this
    /// machine. `extents` is empty for a fixed shape.
    pub fn from_bytes(dtype: DType, sample_count: usize, extents: &'a [u32], values: &'a [u8]) -> Self {
        Self { dtype, item_count: sample_count, extents, values, validity: None, lists: Levels::Batches(&[]) }
    }

    /// Sets which samples are null: bit `i % 8` of byte `i / 8` is 0 if sample `i` is null. Bit 0
    /// is the least significant. Arrow's validity bitmaps have the same layout.
    pub fn with_validity(mut self, bitmap: &'a [u8]) -> Self {
        self.validity = Some(bitmap);
        self
    }

    /// Returns a batch of a nested column, with the samples of this batch as items. `levels` has
    /// the lists of each level, outermost first; the lists of the first level are the samples. The
    /// members of the lists of a level are the entries of the level below, in order.
    ///
    /// Pushing the batch fails if
    ///
    /// * it does not have as many levels as the column,
    /// * the lists of a level have more or fewer members than there are entries in the level below,
    ///   or
    /// * a list or an item is null, but the column does not allow it.
    ///
    /// ```
    /// use tensilo::ColumnBatch;
    /// use tensilo::nested::ListBatch;
    ///
    /// // [["a", "bc"], []]
    /// let words = ColumnBatch::ragged(2, &[1, 2], b"abc");
    /// let levels = [ListBatch::new(&[2, 0])];
    /// assert_eq!(words.in_lists(&levels).sample_count(), 2);
    /// ```
    pub fn in_lists(mut self, levels: &'a [ListBatch<'a>]) -> Self {
        self.lists = Levels::Batches(levels);
        self
    }

    /// Returns a batch of a nested column, with lists from buffers.
    pub(crate) fn in_buffers(mut self, levels: &'a [ListBuffer]) -> Self {
        self.lists = Levels::Buffers(levels);
        self
    }

    /// Returns the number of levels of lists.
    pub(crate) fn level_count(&self) -> usize {
        match self.lists {
            Levels::Batches(levels) => levels.len(),
            Levels::Buffers(levels) => levels.len(),
        }
    }

    /// Returns the lists of a level; `None` after the last level.
    pub(crate) fn lists(&self, level: usize) -> Option<ListBatch<'a>> {
        match self.lists {
            Levels::Batches(levels) => levels.get(level).copied(),
            Levels::Buffers(levels) => {
                let lists = levels.get(level)?;
                Some(ListBatch { validity: lists.validity(), ..ListBatch::from_offsets(lists.offsets()) })
            }
        }
    }

    /// Returns the number of samples.
    pub fn sample_count(&self) -> usize {
        self.lists(0).map_or(self.item_count, |lists| lists.count())
    }

    pub(crate) fn is_null(&self, i: usize) -> bool {
        self.validity.is_some_and(|bitmap| !bit(bitmap, i))
    }

    /// Fails if the batch cannot be pushed into `column`.
    pub(crate) fn check(&self, column: &ColumnSchema) -> Result<()> {
        check_type(column, self.dtype)
            .and_then(|()| self.check_nulls(column))
            .and_then(|()| self.check_values(column))
            .map_err(|error| error.with_column(&column.name))
    }

    fn check_nulls(&self, column: &ColumnSchema) -> Result<()> {
        if self.level_count() != column.levels.len() {
            let message =
                format!("the batch has {} levels of lists; the column has {}", self.level_count(), column.levels.len());
            return Err(Error::bad_argument(message));
        }
        let mut may_be_null = column.nullable;
        for (i, level) in column.levels.iter().enumerate() {
            let Some(lists) = self.lists(i) else { continue }; // unreachable: the counts of levels are equal
            let members = self.lists(i + 1).map_or(self.item_count, |below| below.count());
            lists.check(may_be_null, members)?;
            may_be_null = level.nullable;
        }
        check_bitmap(self.validity, self.item_count, may_be_null, column.item_name())
    }

    fn check_values(&self, column: &ColumnSchema) -> Result<()> {
        let varying = column.shape.varying_count();
        if Some(self.extents.len()) != self.item_count.checked_mul(varying) {
            let (item, found) = (column.item_name(), self.extents.len());
            let message = format!("{found} extents do not fit {} {item}s of shape {}", self.item_count, column.shape);
            return Err(Error::bad_argument(message));
        }
        let expected = self.expected_bytes(column)?;
        if expected != self.values.len() {
            let message = format!(
                "the batch has {} bytes of values; {} {}s of shape {} need {expected}",
                self.values.len(),
                self.item_count,
                column.item_name(),
                column.shape
            );
            return Err(Error::bad_argument(message));
        }
        match column.dtype {
            DType::Utf8 => self.check_text(column),
            dtype => self.check_unused_bits(column, dtype.unused_bits()),
        }
    }

    /// Returns the size of all samples in bytes, including null samples.
    fn expected_bytes(&self, column: &ColumnSchema) -> Result<usize> {
        let inner_bytes = pushed_inner_bytes(column)?;
        let varying = column.shape.varying_count();
        let mut count = Some(0_usize);
        if varying == 0 {
            count = Some(self.item_count);
        } else {
            for (i, extents) in self.extents.chunks_exact(varying).enumerate() {
                self.check_extents(column, i, extents)?;
                count = count.and_then(|count| count.checked_add(product_of_extents(extents)?));
            }
        }
        let bytes = count.and_then(|count| count.checked_mul(inner_bytes));
        bytes.ok_or_else(|| {
            let (item, max) = (column.item_name(), usize::MAX);
            let message = format!("the {} {item}s of the batch take more than {max} bytes", self.item_count);
            Error::over_limit(message)
        })
    }

    fn check_extents(&self, column: &ColumnSchema, i: usize, extents: &[u32]) -> Result<()> {
        if extents.iter().any(|&extent| extent > limits::EXTENT) {
            return Err(Error::over_limit("an extent is 2^32 - 1, which exceeds the limit"));
        }
        if self.is_null(i) && extents.iter().any(|&extent| extent != 0) {
            let item = column.item_name();
            let message = format!("{item} {i} of the batch is null, but its extents are {extents:?} instead of 0");
            return Err(Error::bad_argument(message));
        }
        Ok(())
    }

    /// Checks that the unused bits of elements are zero in all samples that are not null.
    fn check_unused_bits(&self, column: &ColumnSchema, unused: u8) -> Result<()> {
        if unused == 0 || self.values.iter().all(|&byte| byte & unused == 0) {
            return Ok(());
        }
        // 0 if the shape is ragged: a null then has no values
        let sample_bytes = if column.shape.is_ragged() { 0 } else { pushed_inner_bytes(column)? };
        let is_null = |element: usize| element.checked_div(sample_bytes).is_some_and(|sample| self.is_null(sample));
        let mut elements = self.values.iter().copied().enumerate();
        let Some((i, byte)) = elements.find(|&(i, byte)| byte & unused != 0 && !is_null(i)) else { return Ok(()) };
        let message = match column.dtype {
            DType::Bool => format!("element {i} of the batch is {byte}, expected 0 or 1"),
            dtype => {
                let bits = dtype.value_bits();
                format!("an element of type {dtype} has bits above the lowest {bits}; push one byte for each element")
            }
        };
        Err(Error::bad_argument(message))
    }

    fn check_text(&self, column: &ColumnSchema) -> Result<()> {
        let mut rest = self.values;
        for (i, &length) in self.extents.iter().enumerate() {
            let length = usize::try_from(length).unwrap_or(usize::MAX);
            let (text, after) = rest.split_at_checked(length).unwrap_or((rest, &[]));
            if std::str::from_utf8(text).is_err() {
                let message = format!("{} {i} of the batch is not UTF-8; store it as bytes", column.item_name());
                return Err(Error::bad_argument(message));
            }
            rest = after;
        }
        Ok(())
    }
}

/// Fails if values of type `found` cannot be pushed into `column`.
pub(crate) fn check_type(column: &ColumnSchema, found: DType) -> Result<()> {
    let expected = column.pushed_dtype();
    let as_u8 = found == DType::U8 && expected.is_byte();
    if found == expected || as_u8 {
        return Ok(());
    }
    Err(Error::wrong_type(format!("expected values of type {expected}, found {found}")))
}

/// Returns the size of the inner elements in bytes, before a cast. The inner elements are all
/// elements of a sample if the shape is fixed, and otherwise the elements for each combination of
/// indices in the varying dimensions.
pub(crate) fn pushed_inner_bytes(column: &ColumnSchema) -> Result<usize> {
    let elements = column.layout()?.inner_bytes / column.dtype.element_bytes(); // the divisor is 1, 2, 4 or 8
    let bytes = elements.checked_mul(column.pushed_dtype().element_bytes());
    bytes.ok_or_else(|| {
        let (item, shape, max) = (column.item_name(), &column.shape, usize::MAX);
        Error::over_limit(format!("the elements of one {item} of shape {shape} take more than {max} bytes"))
    })
}

/// The lists of one level, in the order in which they were requested.
///
/// Their members are the lists of the next level, or the items.
#[derive(Clone, Debug, Default)]
pub struct ListBuffer {
    offsets: Vec<u64>,
    validity: Vec<u8>,
    null_count: usize,
}

impl ListBuffer {
    /// Returns the number of lists.
    pub fn list_count(&self) -> usize {
        self.offsets.len().saturating_sub(1)
    }

    /// Returns the offset at which the members of each list start, followed by the end of the last
    /// list. There is one more offset than there are lists, and the first offset is 0. A null list
    /// is empty. Offsets are indices of lists of the next level, or of items.
    pub fn offsets(&self) -> &[u64] {
        &self.offsets
    }

    /// Returns the validity bitmap of the lists, in Arrow's layout; `None` if no list is null.
    pub fn validity(&self) -> Option<&[u8]> {
        (self.null_count > 0).then_some(self.validity.as_slice())
    }

    /// Returns the number of null lists.
    pub fn null_count(&self) -> usize {
        self.null_count
    }

    /// Returns whether list `i` is null.
    pub fn is_null(&self, i: usize) -> bool {
        i < self.list_count() && self.null_count > 0 && !bit(&self.validity, i)
    }

    /// Removes all lists, but keeps the allocated memory.
    pub(crate) fn remove_all(&mut self) {
        self.offsets.truncate(1); // keeps the 0
        self.validity.clear();
        self.null_count = 0;
    }

    /// Removes all lists, so that new lists can be pushed.
    pub(crate) fn clear(&mut self) -> Result<()> {
        self.remove_all();
        memory::resize(&mut self.offsets, 1, 0)
    }

    /// Returns the bitmap even if no list is null.
    pub(crate) fn bits(&self) -> &[u8] {
        &self.validity
    }

    /// Appends a list of `length` members, or a null list.
    pub(crate) fn push(&mut self, length: Option<u32>) -> Result<()> {
        let count = self.list_count();
        push_bit(&mut self.validity, count, length.is_some())?;
        self.null_count += usize::from(length.is_none());
        let end = self.offsets.last().copied().unwrap_or(0).saturating_add(u64::from(length.unwrap_or(0)));
        memory::reserve(&mut self.offsets, 1)?;
        self.offsets.push(end);
        Ok(())
    }
}

/// Appends a bit to a bitmap of `count` bits.
pub(crate) fn push_bit(bitmap: &mut Vec<u8>, count: usize, is_present: bool) -> Result<()> {
    if bitmap.len() < validity_bytes(count + 1) {
        memory::reserve(bitmap, 1)?;
        bitmap.push(0);
    }
    if let Some(byte) = bitmap.get_mut(count / 8) {
        *byte |= u8::from(is_present) << (count % 8);
    }
    Ok(())
}
