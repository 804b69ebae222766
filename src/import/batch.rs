//! Batches of samples of several columns, as importers hand them over: without a type of any other
//! library.

use super::problem::Problem;
use crate::DType;
use crate::format::content::bit;
use std::fmt;
use std::iter;
use std::ops::{Deref, Range};
use std::sync::Arc;

/// An extent that a sample does not state: the sample is null, or has no rows in that dimension.
pub(super) const UNKNOWN: u32 = u32::MAX;

/// Consecutive samples of the columns that were asked for.
#[derive(Debug)]
pub(super) struct InputBatch {
    pub sample_count: usize,
    /// In the order asked for. `Err`: the column has samples that cannot be stored; other columns
    /// are not affected.
    pub columns: Vec<Result<Samples, Problem>>,
}

impl InputBatch {
    /// Returns about how much memory the batch takes.
    pub(super) fn byte_count(&self) -> usize {
        let samples = self.columns.iter().flatten().map(Samples::byte_count);
        samples.fold(size_of_val(self.columns.as_slice()), usize::saturating_add)
    }
}

/// Consecutive samples of one column.
#[derive(Debug)]
pub(super) struct Samples {
    /// The type of `values`.
    pub dtype: DType,
    pub values: SampleValues,
    /// The elements of each sample among `values`, or the bytes of each string. The range of a null
    /// sample has no meaning. In a nested column these, extents and nulls are those of items.
    pub ranges: Vec<Range<usize>>,
    /// The extents that the type of the column leaves open, or [`UNKNOWN`], sample by sample.
    pub open_extents: Vec<u32>,
    /// The lists of each level of a nested column, outermost first. If there are more than the
    /// column has levels, some samples are no tensors: their outer dimensions are these lists.
    pub lists: Vec<InputLists>,
    /// The reason why some samples are no tensors.
    pub no_tensor: Option<Problem>,
    /// Null samples.
    pub nulls: Option<Nulls>,
    /// Null elements inside tensors.
    pub element_nulls: Option<Nulls>,
}

impl Samples {
    fn byte_count(&self) -> usize {
        let values = match &self.values {
            SampleValues::Plain(bytes) => bytes.len(),
            SampleValues::Instants(values) => size_of_val(values.as_slice()),
            SampleValues::Structs { .. } => 0,
        };
        let lists = self.lists.iter().map(InputLists::byte_count).sum::<usize>();
        let nulls = [&self.nulls, &self.element_nulls].into_iter().flatten().map(|Nulls(bits)| bits.len());
        let samples = size_of_val(self.ranges.as_slice()) + size_of_val(self.open_extents.as_slice());
        // no overflow: they are in memory
        values + samples + lists + nulls.sum::<usize>()
    }

    /// Returns the first row with a null struct that is not inside another null struct, if the
    /// samples are structs; `around` are those around them.
    pub(super) fn first_null_struct(&self, around: &[&Self]) -> Option<usize> {
        match &self.values {
            SampleValues::Structs { first_null } => *first_null,
            // of a tensilo file, which has only the nulls
            _ if self.nulls.is_none() => None,
            _ => row_of(self.first_own_null(around)?, &self.lists),
        }
    }

    fn first_own_null(&self, around: &[&Self]) -> Option<usize> {
        let count = self.ranges.len();
        let mut is_inside = vec![false; count];
        // the entry of each level that an item is in, the innermost level first
        let mut entries: Vec<usize> = (0..count).collect();
        for level in (0..=self.lists.len()).rev() {
            for outer in around.iter().filter(|outer| outer.lists.len() == level) {
                is_inside.iter_mut().zip(&entries).for_each(|(inside, &entry)| *inside |= outer.is_null(entry));
            }
            if let Some(lists) = level.checked_sub(1).and_then(|level| self.lists.get(level)) {
                let members = entries.last().map_or(0, |last| last.saturating_add(1));
                let above = lists_of_members(lists, members);
                entries.iter_mut().for_each(|entry| *entry = above.get(*entry).copied().unwrap_or(0));
            }
        }
        (0..count).zip(is_inside).find(|&(i, is_inside)| self.is_null(i) && !is_inside).map(|(i, _)| i)
    }

    /// Returns whether there are nulls inside samples: null elements, or null members of lists that
    /// are dimensions. The column has `level_count` levels of lists.
    #[cfg(feature = "arrow")]
    pub(super) fn has_nulls_inside(&self, level_count: usize) -> bool {
        let is_some_null = |nulls: &Option<Nulls>, count: usize| {
            nulls.as_ref().is_some_and(|nulls| (0..count).any(|i| nulls.is_null(i)))
        };
        let unfolded = self.lists.get(level_count..).unwrap_or(&[]);
        let inner = unfolded.iter().skip(1).any(|lists| is_some_null(&lists.nulls, lists.lengths.len()));
        let members = !unfolded.is_empty() && is_some_null(&self.nulls, self.ranges.len());
        self.element_nulls.is_some() || inner || members
    }

    pub(super) fn is_null(&self, row: usize) -> bool {
        self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(row))
    }
}

/// The lists of one level in a batch.
#[derive(Debug)]
pub(super) struct InputLists {
    /// Members of each list; 0 of a null one.
    pub lengths: Vec<u32>,
    pub nulls: Option<Nulls>,
}

impl InputLists {
    pub(super) fn is_null(&self, i: usize) -> bool {
        self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(i))
    }

    pub(super) fn byte_count(&self) -> usize {
        size_of_val(self.lengths.as_slice()) + self.nulls.as_ref().map_or(0, |Nulls(bits)| bits.len())
    }

    /// Returns the list that has a member.
    pub(super) fn list_of(&self, member: usize) -> Option<usize> {
        let mut end = 0_usize;
        self.lengths.iter().position(|&length| {
            end = end.saturating_add(usize::try_from(length).unwrap_or(usize::MAX));
            member < end
        })
    }

    /// Returns the members of lists that follow each other.
    pub(super) fn members(&self, lists: &Range<usize>) -> Option<Range<usize>> {
        let sum = |lengths: &[u32]| lengths.iter().map(|&length| usize::try_from(length).unwrap_or(0)).sum::<usize>();
        let start = sum(self.lengths.get(..lists.start)?);
        Some(start..start.checked_add(sum(self.lengths.get(lists.clone())?))?)
    }
}

/// Returns the sample that an entry of the innermost lists is in.
pub(super) fn row_of(entry: usize, lists: &[InputLists]) -> Option<usize> {
    lists.iter().rev().try_fold(entry, |entry, lists| lists.list_of(entry))
}

/// Returns a problem of an entry of the innermost lists as one of the sample that it is in.
pub(super) fn in_lists(problem: Problem, lists: &[InputLists]) -> Problem {
    Problem { row: problem.row.and_then(|entry| row_of(entry, lists)), ..problem }
}

/// Returns the list that each of `count` members is in.
fn lists_of_members(lists: &InputLists, count: usize) -> Vec<usize> {
    let lists = lists.lengths.iter().enumerate();
    let members = lists.flat_map(|(i, &length)| iter::repeat_n(i, usize::try_from(length).unwrap_or(usize::MAX)));
    members.take(count).collect()
}

/// The elements of samples.
#[derive(Debug)]
pub(super) enum SampleValues {
    /// Elements in the byte order of this machine, or bytes of strings.
    Plain(SharedBytes),
    /// Timestamps in nanoseconds since 1970. They are stored as `i64`, in a unit that is found by
    /// looking at all of them.
    #[cfg_attr(not(feature = "arrow"), expect(dead_code, reason = "only Parquet has them"))]
    Instants(Vec<i128>),
    /// None: the samples are structs, of which only the nulls are stored.
    Structs {
        /// The first row with a null struct that is not inside another null struct.
        first_null: Option<usize>,
    },
}

/// Null samples or elements: bit `i % 8` (0 the least significant) of byte `i / 8` is 0 if number
/// `i` is null.
#[derive(Clone, Debug)]
pub(super) struct Nulls(pub SharedBytes);

impl Nulls {
    pub(super) fn is_null(&self, i: usize) -> bool {
        !bit(&self.0, i)
    }
}

/// A part of a buffer that is shared and never changes. Cloning and slicing copy no bytes.
#[derive(Clone)]
pub(super) struct SharedBytes {
    owner: Arc<dyn AsRef<[u8]> + Send + Sync>,
    range: Range<usize>,
}

impl SharedBytes {
    pub(super) fn new(owner: impl AsRef<[u8]> + Send + Sync + 'static) -> Self {
        let range = 0..owner.as_ref().len();
        Self { owner: Arc::new(owner), range }
    }

    /// Returns the bytes of `range`, or `None` if it is not inside.
    pub(super) fn slice(&self, range: Range<usize>) -> Option<Self> {
        self.get(range.clone())?;
        let start = self.range.start;
        // inside
        Some(Self { owner: Arc::clone(&self.owner), range: start + range.start..start + range.end })
    }
}

impl Deref for SharedBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        (*self.owner).as_ref().get(self.range.clone()).unwrap_or(&[]) // inside, as was checked
    }
}

impl fmt::Debug for SharedBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.range.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_of_slices_stay_inside() {
        let all = SharedBytes::new(vec![0_u8, 1, 2, 3, 4]);
        let some = all.slice(1..4).unwrap();
        assert_eq!((&some[..], &some.slice(1..3).unwrap()[..]), (&[1_u8, 2, 3][..], &[2_u8, 3][..]));
        assert!(some.slice(2..4).is_none() && some.slice(3..3).is_some_and(|none| none.is_empty()));
    }
}
