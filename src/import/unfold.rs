//! Tensors as lists of smaller tensors: the outer dimensions of a column are *unfolded* if some of
//! its samples are tensors only without them.

use super::batch::{InputBatch, InputLists, Nulls, Samples, SharedBytes, UNKNOWN};
use super::input_column::{Level, open_count};
use super::problem::Problem;
use crate::format::content::validity_bytes;

/// The most items of a batch that have no elements: nothing else bounds their number.
const EMPTY_ITEMS: usize = 1 << 24;

/// The form of a column's samples.
pub(super) struct ListForm<'a> {
    /// Levels of lists that its type has.
    pub list_count: usize,
    /// Dimensions that have become lists.
    pub unfolded: &'a [Level],
    /// Dimensions of an item.
    pub inner: &'a [Level],
    /// Whether an item is one element of the input.
    pub has_elements: bool,
}

/// Returns a batch whose samples have the forms of their columns.
pub(super) fn unfold<'a>(batch: InputBatch, forms: impl Iterator<Item = ListForm<'a>>) -> InputBatch {
    let columns = batch.columns.into_iter().zip(forms);
    let columns = columns.map(|(samples, form)| unfold_column(samples?, &form)).collect();
    InputBatch { columns, ..batch }
}

/// Refuses samples that are no tensors even as lists.
fn unfold_column(mut samples: Samples, form: &ListForm) -> Result<Samples, Problem> {
    let done = samples.lists.len().saturating_sub(form.list_count);
    let Some(levels) = form.unfolded.get(done..) else {
        let unknown = || Problem::from("lists of different lengths are no tensor".to_owned());
        return Err(samples.no_tensor.unwrap_or_else(unknown));
    };
    samples.no_tensor = None;
    for (i, level) in levels.iter().enumerate() {
        let below = levels.iter().skip(i.saturating_add(1)).chain(form.inner);
        let open_below = below.filter(|level| matches!(level, Level::Open)).count();
        samples = unfold_level(samples, level, open_below)?;
    }
    if form.has_elements && !levels.is_empty() {
        samples.nulls = nulls_of_items(&samples);
        samples.element_nulls = None;
    }
    Ok(samples)
}

/// Makes lists of the outermost dimension. `open_below` of the other dimensions are open.
fn unfold_level(samples: Samples, level: &Level, open_below: usize) -> Result<Samples, Problem> {
    let open_here = open_count(std::slice::from_ref(level));
    let open_total = open_here.saturating_add(open_below);
    let mut lengths = Vec::with_capacity(samples.ranges.len());
    let (mut ranges, mut open_extents) = (Vec::new(), Vec::new());
    for (entry, range) in samples.ranges.iter().enumerate() {
        let start = entry.saturating_mul(open_total);
        let open = samples.open_extents.get(start..start.saturating_add(open_total)).unwrap_or(&[]);
        let length = match level {
            _ if samples.is_null(entry) => 0,
            Level::Open => open.first().copied().filter(|&extent| extent != UNKNOWN).unwrap_or(0),
            Level::Fixed(extents) => extents.first().copied().unwrap_or(0),
        };
        lengths.push(length);
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        let step = range.len().checked_div(length).unwrap_or(0);
        if step == 0 && length.saturating_add(ranges.len()) > EMPTY_ITEMS {
            return Err(format!("more than {EMPTY_ITEMS} empty lists in a few samples").into());
        }
        for item in 0..length {
            // inside the range, which has `length` times `step` elements
            let start = range.start + item * step;
            ranges.push(start..start + step);
            open_extents.extend_from_slice(open.get(open_here..).unwrap_or(&[]));
        }
    }
    let mut lists = samples.lists;
    lists.push(InputLists { lengths, nulls: samples.nulls });
    Ok(Samples { lists, ranges, open_extents, nulls: None, ..samples })
}

/// Returns the null items of samples whose items are single elements.
fn nulls_of_items(samples: &Samples) -> Option<Nulls> {
    let nulls = samples.element_nulls.as_ref()?;
    let mut bitmap = vec![0_u8; validity_bytes(samples.ranges.len())];
    for (i, _) in samples.ranges.iter().enumerate().filter(|(_, range)| !nulls.is_null(range.start)) {
        if let Some(byte) = bitmap.get_mut(i / 8) {
            *byte |= 1 << (i % 8);
        }
    }
    Some(Nulls(SharedBytes::new(bitmap)))
}
