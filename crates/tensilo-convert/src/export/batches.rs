//! Reads the samples of an exported table batch by batch, and defines the options of an export.
//!
//! All export formats read their samples through this module. A pass decodes chunks in order,
//! reports its progress after each batch, and stops if the progress function requests that. Formats
//! that store one column after another make a pass for each column.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use tensilo::export::{Table, TableGroup};
use tensilo::{Column, ColumnBuffer, ColumnSchema, Cursor, DType, Error, Extent, Result};

/// The options of [`export_to`](super::export_to).
#[derive(Default)]
#[non_exhaustive]
pub struct TargetOptions<'a> {
    columns: Option<Vec<String>>,
    progress: Option<&'a mut dyn FnMut(u64) -> ControlFlow<()>>,
}

impl<'a> TargetOptions<'a> {
    /// Returns the defaults: all columns.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the exported columns and their order. Default: all, in the order of the table.
    pub fn columns(mut self, columns: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.columns = Some(columns.into_iter().map(Into::into).collect());
        self
    }

    /// Sets a function that is called after each batch with the number of samples written. If it
    /// returns `Break`, the export ends with an error of kind
    /// [`Cancelled`](tensilo::ErrorKind::Cancelled).
    pub fn progress(mut self, progress: &'a mut dyn FnMut(u64) -> ControlFlow<()>) -> Self {
        self.progress = Some(progress);
        self
    }
}

/// The approximate size of a batch in bytes, unless a chunk is larger.
const BATCH_BYTES: u64 = 2 << 20;
/// The maximum number of samples in a batch, regardless of their size.
const MAX_BATCH_SAMPLES: u64 = 1 << 16;

/// The exported columns of a table.
pub(super) struct TableExport<'a, T> {
    table: &'a T,
    numbers: Vec<usize>,
    progress: Option<&'a mut dyn FnMut(u64) -> ControlFlow<()>>,
}

/// Consecutive samples of the exported columns.
pub(super) struct ExportBatch<'a> {
    /// The number of the first sample.
    pub first: u64,
    pub sample_count: usize,
    /// The samples of each column, or `None` if all samples of the column are null.
    pub columns: &'a [Option<ColumnBuffer>],
}

impl<'a, T: Table> TableExport<'a, T> {
    pub(super) fn new(table: &'a T, options: TargetOptions<'a>) -> Result<Self> {
        let schema = table.schema();
        let number = |name: &String| {
            let found = schema.columns.iter().position(|column| column.name == *name);
            found.ok_or_else(|| Error::bad_input(format!("there is no column {name:?} to export")))
        };
        let numbers: Vec<usize> = match &options.columns {
            Some(names) => names.iter().map(number).collect::<Result<_>>()?,
            None => (0..schema.columns.len()).collect(),
        };
        let mut seen = BTreeSet::new();
        if let Some(column) = numbers.iter().find(|number| !seen.insert(**number)).and_then(|&i| schema.columns.get(i))
        {
            return Err(Error::bad_input(format!("column {:?} is named twice", column.name)));
        }
        Ok(Self { table, numbers, progress: options.progress })
    }

    /// Returns the exported columns.
    pub(super) fn columns(&self) -> impl Iterator<Item = &'a ColumnSchema> {
        self.numbers.iter().filter_map(|&number| self.table.schema().columns.get(number))
    }

    /// Returns the number of samples. Opens all groups of the table.
    pub(super) fn sample_count(&self) -> std::result::Result<u64, T::Error> {
        let mut count = 0_u64;
        for group in self.table.groups(self.numbers.clone()) {
            count = count.saturating_add(group?.sample_count());
        }
        Ok(count)
    }

    /// Calls `each` with all samples of all columns, batch by batch.
    pub(super) fn for_each(
        &mut self,
        each: &mut dyn FnMut(ExportBatch<'_>) -> Result<()>,
    ) -> std::result::Result<(), T::Error> {
        self.pass(self.numbers.clone(), 1, 0, each)
    }

    /// Calls `each` with all samples of one column, batch by batch. This is one of several passes.
    pub(super) fn for_each_in_column(
        &mut self,
        column: usize,
        each: &mut dyn FnMut(ExportBatch<'_>) -> Result<()>,
    ) -> std::result::Result<(), T::Error> {
        let numbers = self.numbers.get(column).copied().into_iter().collect();
        let count = u64::try_from(self.numbers.len().max(1)).unwrap_or(u64::MAX);
        let before = match column {
            0 => 0,
            _ => self.sample_count()? / count * u64::try_from(column).unwrap_or(0),
        };
        self.pass(numbers, count, before, each)
    }

    /// Makes one of `passes` passes. The reported progress starts at `before` samples.
    fn pass(
        &mut self,
        numbers: Vec<usize>,
        passes: u64,
        before: u64,
        each: &mut dyn FnMut(ExportBatch<'_>) -> Result<()>,
    ) -> std::result::Result<(), T::Error> {
        let mut first = 0_u64;
        for group in self.table.groups(numbers) {
            let mut group = GroupPass::new(&group?);
            while group.next < group.end {
                let sample_count = group.advance()?;
                each(ExportBatch { first, sample_count, columns: &group.buffers })?;
                first = first.saturating_add(u64::try_from(sample_count).unwrap_or(u64::MAX));
                let done = before.saturating_add(first / passes.max(1));
                if self.progress.as_mut().is_some_and(|progress| progress(done).is_break()) {
                    return Err(Error::cancelled().into());
                }
            }
        }
        Ok(())
    }
}

/// One pass over the samples of a group.
struct GroupPass {
    columns: Vec<Option<(Column, Cursor)>>,
    buffers: Vec<Option<ColumnBuffer>>,
    next: u64,
    end: u64,
}

impl GroupPass {
    fn new(group: &TableGroup) -> Self {
        let columns =
            group.columns().iter().map(|column| column.as_ref().map(|column| (column.clone(), column.cursor())));
        let buffers = group.columns().iter().map(|column| column.as_ref().map(|_| ColumnBuffer::new()));
        Self { columns: columns.collect(), buffers: buffers.collect(), next: 0, end: group.sample_count() }
    }

    /// Reads the next batch. Returns its number of samples, which is at least one.
    fn advance(&mut self) -> Result<usize> {
        let mut end = self.end.min(self.next.saturating_add(MAX_BATCH_SAMPLES));
        for (column, _) in self.columns.iter().flatten() {
            end = end.min(batch_end(column, self.next)?);
        }
        for (column, buffer) in self.columns.iter_mut().zip(&mut self.buffers) {
            if let (Some((_, cursor)), Some(buffer)) = (column, buffer) {
                cursor.range_into(self.next..end, buffer)?;
            }
        }
        // fits: the samples are in memory
        let count = usize::try_from(end.saturating_sub(self.next)).unwrap_or(usize::MAX);
        self.next = end;
        Ok(count)
    }
}

/// Returns the end of a batch that begins with sample `start`. If all samples have the same size,
/// the batch has as many samples as fit; otherwise, it ends with the chunk that contains `start`.
fn batch_end(column: &Column, start: u64) -> Result<u64> {
    let schema = column.schema();
    if schema.levels.is_empty() && !schema.shape.is_ragged() && !schema.dtype.is_string() {
        let elements = schema.shape.extents().iter().map(|extent| match extent {
            Extent::Fixed(extent) => u64::from(*extent),
            Extent::Varying => 1,
        });
        let width = u64::try_from(schema.dtype.element_bytes()).unwrap_or(8); // at most 8
        let bytes = elements.fold(width, u64::saturating_mul).max(1);
        return Ok(start.saturating_add((BATCH_BYTES / bytes).max(1)));
    }
    Ok(column.chunk_of(start)?.samples.end)
}

/// Returns the bytes of a sample that is not null.
pub(super) fn sample_bytes<'a>(buffer: &'a ColumnBuffer, i: usize, dtype: DType, extents: &[Extent]) -> &'a [u8] {
    if dtype.is_string() || extents.contains(&Extent::Varying) {
        return buffer.ragged_bytes(i).unwrap_or_default();
    }
    let each = buffer.bytes().len() / buffer.item_count().max(1);
    buffer.bytes().get(i * each..(i + 1) * each).unwrap_or_default() // in memory
}
