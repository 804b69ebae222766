//! Samples of one column of a batch, as they are pushed into the writer.

use super::assemble::{PushableColumn, concatenate, concatenate_fixed};
use crate::error::Advice;
use crate::format::CastFacts;
use crate::format::content::validity_bytes;
use crate::import::batch::{Nulls, SampleValues, Samples, SharedBytes, UNKNOWN, in_lists};
use crate::import::input_column::{ColumnKind, Level};
use crate::import::lists;
use crate::import::options::NullElements;
use crate::import::plan::{self, Column, ValueCast, ValueCaster};
use crate::import::problem::Problem;
use crate::{DType, Extent, Shape, limits};
use half::{bf16, f16};
use std::ops::Range;
use std::result::Result;

/// Converts the samples `rows` of a column, whose shape is known by now.
pub(super) fn fill(
    samples: &Samples,
    rows: Range<usize>,
    column: &Column,
    shape: &Shape,
    null_elements: NullElements,
) -> Result<PushableColumn, Problem> {
    let levels = &column.kind.lists;
    let may_be_null = |level: usize| match level.checked_sub(1).and_then(|below| levels.get(below)) {
        Some(level) => level.nullable,
        None => column.nullable,
    };
    let (lists, rows) =
        lists::select(&samples.lists, rows, may_be_null).map_err(|problem| problem.advising([Advice::SkipColumns]))?;
    let has_nulls = samples.nulls.is_some() && !may_be_null(levels.len());
    if let Some(row) = rows.clone().find(|&row| has_nulls && samples.is_null(row)) {
        let problem = Problem::at(row, "a null in a column that is declared to have none");
        return Err(in_lists(problem.advising([Advice::SkipColumns]), &samples.lists));
    }
    let selected = SelectedSamples { samples, rows: rows.clone() };
    let values = match column.kind.dtype.is_string() {
        true => selected.strings().map(|(lengths, bytes)| (lengths, bytes, None)),
        false => selected.tensors(column, shape, null_elements),
    };
    let (extents, values, cast) = values.map_err(|problem| in_lists(problem, &samples.lists))?;
    let validity = samples.nulls.as_ref().and_then(|nulls| validity(nulls, rows.clone()));
    let dtype = if column.value_cast.is_some() { column.kind.dtype } else { samples.dtype };
    Ok(PushableColumn { dtype, item_count: rows.len(), lists, extents, values, validity, cast })
}

/// Returns the bitmap of some samples, unless all are present.
fn validity(nulls: &Nulls, rows: Range<usize>) -> Option<SharedBytes> {
    if rows.start.is_multiple_of(8) {
        let bytes = rows.start / 8;
        return nulls.0.slice(bytes..bytes.checked_add(validity_bytes(rows.len()))?);
    }
    let mut bitmap = vec![0_u8; validity_bytes(rows.len())];
    for (i, _) in rows.enumerate().filter(|(_, row)| !nulls.is_null(*row)) {
        if let Some(byte) = bitmap.get_mut(i / 8) {
            *byte |= 1 << (i % 8);
        }
    }
    Some(SharedBytes::new(bitmap))
}

/// Appends bit `i` to a bitmap of as many bits.
fn push_bit(bitmap: &mut Vec<u8>, i: usize, bit: bool) {
    if i.is_multiple_of(8) {
        bitmap.push(0);
    }
    if let Some(byte) = bitmap.last_mut() {
        *byte |= u8::from(bit) << (i % 8);
    }
}

/// Some of the samples of a batch.
struct SelectedSamples<'a> {
    samples: &'a Samples,
    rows: Range<usize>,
}

impl SelectedSamples<'_> {
    fn is_null(&self, i: usize) -> bool {
        self.samples.is_null(self.rows.start.saturating_add(i))
    }

    /// Returns the range of each sample.
    fn ranges(&self) -> Result<Vec<Range<usize>>, Problem> {
        Ok(self.samples.ranges.get(self.rows.clone()).ok_or_else(outside)?.to_vec())
    }

    fn empty_nulls(&self, ranges: &mut [Range<usize>]) {
        ranges.iter_mut().enumerate().filter(|(i, _)| self.is_null(*i)).for_each(|(_, range)| *range = 0..0);
    }

    /// Returns the lengths of strings, and their bytes one after the other.
    fn strings(&self) -> Result<(Vec<u32>, SharedBytes), Problem> {
        let mut ranges = self.ranges()?;
        self.empty_nulls(&mut ranges);
        let length = |(row, range): (usize, &Range<usize>)| {
            let length = u32::try_from(range.len()).ok().filter(|&length| length <= limits::EXTENT);
            length.ok_or_else(|| Problem::at(row, format!("a string of {} bytes is too long", range.len())))
        };
        let lengths = self.rows.clone().zip(&ranges).map(length).collect::<Result<_, _>>()?;
        let SampleValues::Plain(bytes) = &self.samples.values else { return Err(outside()) };
        Ok((lengths, concatenate(bytes, &ranges).ok_or_else(outside)?))
    }

    /// Returns the varying extents of tensors, their elements one after the other, and the errors
    /// of a cast.
    fn tensors(
        &self,
        column: &Column,
        shape: &Shape,
        null_elements: NullElements,
    ) -> Result<(Vec<u32>, SharedBytes, Option<CastFacts>), Problem> {
        let extents = self.varying_extents(&column.kind, shape)?;
        let mut ranges = self.ranges()?;
        if shape.is_ragged() {
            self.empty_nulls(&mut ranges);
        }
        let elements = self.elements(ranges, column)?;
        let bytes = elements.without_nulls(self, null_elements)?;
        let ranges = elements.byte_ranges();
        let values = if shape.is_ragged() {
            concatenate(&bytes, &ranges)
        } else {
            let count = shape.inner_elements().and_then(|count| usize::try_from(count).ok());
            let null_bytes = count.and_then(|count| count.checked_mul(elements.width)).ok_or_else(outside)?;
            self.check_nulls(null_bytes)?;
            concatenate_fixed(&bytes, &ranges, |i| self.is_null(i), null_bytes)
        };
        Ok((extents, values.ok_or_else(outside)?, elements.cast))
    }

    /// Refuses nulls of a fixed shape that take more bytes than a chunk has, or than there is
    /// memory for. Only one sample can have so many.
    fn check_nulls(&self, null_bytes: usize) -> Result<(), Problem> {
        let (mut count, mut first) = (0_usize, None);
        for i in (0..self.rows.len()).filter(|&i| self.is_null(i)) {
            count += 1; // of those in memory
            first = first.or(Some(i));
        }
        let bytes = count.saturating_mul(null_bytes);
        let fits = u32::try_from(bytes).is_ok_and(|bytes| bytes <= limits::CHUNK_BYTES);
        match first {
            Some(first) if !fits || Vec::<u8>::new().try_reserve_exact(bytes).is_err() => {
                let message = format!("{count} null items, which take as much as any item: {bytes} bytes together");
                Err(Problem::at(self.rows.start.saturating_add(first), message).advising([Advice::SkipColumns]))
            }
            _ => Ok(()),
        }
    }

    /// Returns the extents that vary. Checks those that the type leaves open and the shape does
    /// not.
    fn varying_extents(&self, kind: &ColumnKind, shape: &Shape) -> Result<Vec<u32>, Problem> {
        let open = open_extents(kind, shape);
        let mut varying = Vec::new();
        let count = open.len();
        if count == 0 {
            return Ok(varying);
        }
        let all = self.samples.open_extents.chunks_exact(count).skip(self.rows.start).take(self.rows.len());
        for (row, extents) in self.rows.clone().zip(all) {
            for (due, &extent) in open.iter().zip(extents) {
                match due {
                    Extent::Varying if self.samples.is_null(row) || extent == UNKNOWN => varying.push(0),
                    Extent::Varying => varying.push(extent),
                    Extent::Fixed(due) if extent == UNKNOWN || extent == *due => {}
                    Extent::Fixed(_) => return Err(another_shape(row, extents, kind, shape)),
                }
            }
        }
        Ok(varying)
    }

    /// Returns the elements that the samples use.
    fn elements(&self, ranges: Vec<Range<usize>>, column: &Column) -> Result<SelectedElements, Problem> {
        let used = || ranges.iter().filter(|range| !range.is_empty());
        let start = used().map(|range| range.start).min().unwrap_or(0);
        let end = used().map(|range| range.end).max().unwrap_or(0);
        let width = self.samples.dtype.element_bytes();
        let bytes = match &self.samples.values {
            SampleValues::Plain(bytes) => {
                let range = start.checked_mul(width).zip(end.checked_mul(width));
                range.and_then(|(start, end)| bytes.slice(start..end)).ok_or_else(outside)?
            }
            SampleValues::Instants(values) => {
                self.instants(values.get(start..end).ok_or_else(outside)?, start, column)?
            }
            SampleValues::Structs { .. } => SharedBytes::new([]),
        };
        let shift = |range: Range<usize>| {
            // `start` is the least
            if range.is_empty() { 0..0 } else { range.start - start..range.end - start }
        };
        let ranges = ranges.into_iter().map(shift).collect();
        let dtype = self.samples.dtype;
        let nulls = self.samples.element_nulls.clone();
        let all = SelectedElements { dtype, width, first: start, nulls, bytes, ranges, cast: None };
        match column.value_cast {
            Some(cast) => self.cast(&all, cast, column.kind.dtype),
            None => Ok(all),
        }
    }

    /// Casts elements to another type. Nulls become zero.
    fn cast(&self, all: &SelectedElements, cast: ValueCast, dtype: DType) -> Result<SelectedElements, Problem> {
        let mut caster = ValueCaster::new(cast);
        let mut ranges = Vec::with_capacity(all.ranges.len());
        let mut bitmap = all.nulls.as_ref().map(|_| Vec::new());
        let mut end = 0_usize;
        for (i, range) in all.ranges.iter().enumerate() {
            let first = end;
            for start in range.clone().step_by(cast.extent.max(1)) {
                let is_null_element = all.is_null(start);
                if let Some(bitmap) = &mut bitmap {
                    push_bit(bitmap, end, !is_null_element);
                }
                end = end.saturating_add(1);
                let is_null = is_null_element || self.is_null(i);
                // no overflow: a part of a range in memory
                let bytes = start * all.width..start.saturating_add(cast.extent) * all.width;
                let value = if is_null { None } else { Some(all.bytes.get(bytes).ok_or_else(outside)?) };
                caster.push(value).map_err(|message| {
                    Problem::at(self.rows.start.saturating_add(i), message).advising([Advice::SkipColumns])
                })?;
            }
            ranges.push(first..end);
        }
        let facts = caster.facts();
        Ok(SelectedElements {
            dtype,
            width: dtype.element_bytes(),
            first: 0,
            nulls: bitmap.map(|bitmap| Nulls(SharedBytes::new(bitmap))),
            bytes: SharedBytes::new(caster.out),
            ranges,
            cast: facts,
        })
    }

    /// Returns timestamps in the unit of their column. The first of them is element `first` of the
    /// batch.
    fn instants(&self, values: &[i128], first: usize, column: &Column) -> Result<SharedBytes, Problem> {
        let unit = plan::unit(column).ok_or_else(|| "INT96 timestamps in a column without a unit".to_owned())?;
        let mut bytes = Vec::with_capacity(values.len().saturating_mul(8));
        for (element, &value) in (first..).zip(values) {
            let exact = plan::exact(value, unit).map_err(|message| {
                let row = self.samples.ranges.iter().position(|range| range.contains(&element));
                Problem { row, ..Problem::from(message) }.advising([Advice::SkipColumns])
            })?;
            bytes.extend_from_slice(&exact.to_ne_bytes());
        }
        Ok(SharedBytes::new(bytes))
    }
}

/// The elements of some samples.
struct SelectedElements {
    dtype: DType,
    width: usize,
    /// The bit of the first element in `nulls`.
    first: usize,
    /// Null elements. Bits are counted as `first` is.
    nulls: Option<Nulls>,
    bytes: SharedBytes,
    /// Of elements, sample by sample.
    ranges: Vec<Range<usize>>,
    /// The errors of a cast.
    cast: Option<CastFacts>,
}

impl SelectedElements {
    fn byte_ranges(&self) -> Vec<Range<usize>> {
        // no overflow: the ranges lie inside as many elements of that width
        self.ranges.iter().map(|range| range.start * self.width..range.end * self.width).collect()
    }

    fn is_null(&self, element: usize) -> bool {
        self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(self.first.saturating_add(element)))
    }

    /// Returns the bytes. Null elements of samples are replaced as the caller asks.
    fn without_nulls(&self, selected: &SelectedSamples, wanted: NullElements) -> Result<SharedBytes, Problem> {
        if self.nulls.is_none() {
            return Ok(self.bytes.clone());
        }
        let present = self.ranges.iter().enumerate().filter(|(i, _)| !selected.is_null(*i));
        let elements = present.flat_map(|(i, range)| range.clone().map(move |element| (i, element)));
        let mut found = elements.filter(|(_, element)| self.is_null(*element));
        let Some((i, first)) = found.next() else { return Ok(self.bytes.clone()) };
        let row = selected.rows.start.saturating_add(i);
        let value = replacement(self.dtype, wanted)
            .map_err(|(message, advice)| Problem::at(row, message).advising([advice, Advice::SkipColumns]))?;
        let mut bytes = self.bytes.to_vec();
        for element in std::iter::once(first).chain(found.map(|(_, element)| element)) {
            // inside
            let destination = bytes.get_mut(element * self.width..(element + 1) * self.width);
            for (to, from) in destination.into_iter().flatten().zip(&value) {
                *to = *from;
            }
        }
        Ok(SharedBytes::new(bytes))
    }
}

fn outside() -> Problem {
    "the elements of a sample lie outside the array".to_owned().into()
}

/// Returns the bytes of one element that replaces a null.
fn replacement(dtype: DType, wanted: NullElements) -> Result<Vec<u8>, (String, Advice)> {
    match (wanted, dtype) {
        (NullElements::Zero, _) => Ok(vec![0; dtype.element_bytes()]),
        (NullElements::Nan, DType::Bf16) => Ok(bf16::NAN.to_ne_bytes().to_vec()),
        (NullElements::Nan, DType::F16) => Ok(f16::NAN.to_ne_bytes().to_vec()),
        (NullElements::Nan, DType::F32) => Ok(f32::NAN.to_ne_bytes().to_vec()),
        (NullElements::Nan, DType::F64) => Ok(f64::NAN.to_ne_bytes().to_vec()),
        (NullElements::Nan, _) => {
            let message = format!("a null element inside a tensor of {dtype}, which has no NaN");
            Err((message, Advice::ReplaceNullsWithZero))
        }
        (NullElements::Keep | NullElements::Refuse, _) => {
            let advice = if dtype.is_float() { Advice::ReplaceNulls } else { Advice::ReplaceNullsWithZero };
            Err(("a null element inside a tensor".to_owned(), advice))
        }
    }
}

/// Returns the error about a sample whose open extents do not fit the shape.
fn another_shape(row: usize, open: &[u32], kind: &ColumnKind, shape: &Shape) -> Problem {
    let own = plan::sample_shape(kind, open);
    let both = own.extents().iter().zip(shape.extents());
    let fitting = both.map(|(own, due)| match due {
        Extent::Fixed(extent) if own == due || *own == Extent::Varying => Some(*extent),
        _ => None,
    });
    let advice = [Advice::DeclareShape(fitting.collect()), Advice::SkipColumns];
    Problem::at(row, format!("the sample has the shape {own}, and the column is to have {shape}")).advising(advice)
}

/// Returns the extents of the shape in the dimensions that the type leaves open.
fn open_extents(kind: &ColumnKind, shape: &Shape) -> Vec<Extent> {
    let mut dimension = 0;
    let mut open = Vec::new();
    for level in &kind.levels {
        match level {
            Level::Open => {
                open.extend(shape.extents().get(dimension));
                dimension += 1;
            }
            Level::Fixed(extents) => dimension += extents.len(),
        }
    }
    open
}
