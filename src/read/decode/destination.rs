//! The destination of the samples of one column, filled task by task.

use super::decoder::{Decoder, too_many};
use super::output::WholeOutput;
use crate::format::content::check_unused_bits;
use crate::le::u64_of;
use crate::read::batch::selection::Selection;
use crate::read::batch::tasks::{Fetch, Task, TaskList, at_sample};
use crate::read::batch::waves::TaskBytes;
use crate::read::buffer::ColumnBuffer;
use crate::read::file::opened_column::OpenedColumn;
use crate::{Error, Result};

/// The destination of the samples of one column.
pub(in crate::read) enum Destination<'o> {
    Buffer(&'o mut ColumnBuffer),
    /// Exactly the bytes of all samples, which have a fixed shape.
    Bytes(&'o mut [u8]),
}

impl<'o> Destination<'o> {
    /// Returns the destinations of all samples, which have a fixed shape and this many bytes.
    pub(in crate::read) fn whole(self, sample_bytes: usize) -> WholeOutput<'o> {
        let bytes = match self {
            Destination::Buffer(buffer) => buffer.values.as_mut_slice(),
            Destination::Bytes(bytes) => bytes,
        };
        WholeOutput { bytes, sample_bytes }
    }
}

impl Decoder {
    /// Makes the destination of a column ready for the samples that `tasks` selects.
    pub(in crate::read) fn begin_output(
        &mut self,
        column: &OpenedColumn,
        tasks: &TaskList,
        output: Destination<'_>,
    ) -> Result<()> {
        let (count, layout) = (tasks.selection.sample_count(), column.layout());
        self.begin(0);
        match output {
            Destination::Bytes(bytes) => check_length(column, count, bytes.len()),
            Destination::Buffer(buffer) => {
                begin_buffer(column, tasks, buffer)?;
                if !layout.has_shape() {
                    return Ok(());
                }
                if tasks.selection.is_range() && !layout.is_nested() {
                    // values that arrive in order are staged at their final position
                    std::mem::swap(&mut self.staging.values, &mut buffer.values);
                    self.staging.clear();
                }
                self.ragged.begin(count, layout)
            }
        }
    }

    /// Decodes a task to the destination of its column.
    pub(in crate::read) fn decode_task(
        &mut self,
        column: &OpenedColumn,
        tasks: &TaskList,
        task: &Task,
        bytes: TaskBytes<'_>,
        output: Destination<'_>,
    ) -> Result<()> {
        let selection = &tasks.selection;
        let mut out = match output {
            Destination::Buffer(_) if column.layout().has_shape() => {
                let mut ragged = std::mem::take(&mut self.ragged);
                let result = self.decode_ragged(column, selection, task, bytes, &mut ragged.output());
                self.ragged = ragged;
                return result;
            }
            fixed => fixed.whole(column.layout().inner_bytes),
        };
        self.decode_fixed(column, selection, task, bytes, &mut out)
    }

    /// Completes the destination of column number `number`, and returns the number of nulls.
    pub(in crate::read) fn finish_output(
        &mut self,
        number: usize,
        column: &OpenedColumn,
        tasks: &TaskList,
        output: Destination<'_>,
    ) -> Result<usize> {
        let file = column.file.bytes().memory().unwrap_or(&[]);
        let sample_bytes = column.layout().inner_bytes;
        match output {
            Destination::Buffer(buffer) => {
                if !column.layout().is_nested() {
                    self.nulls.iter().for_each(|&null| buffer.set_null(null));
                }
                if column.layout().has_shape() {
                    self.ragged.finish(column.layout(), &tasks.selection, file, &mut self.staging, true, buffer)?;
                } else {
                    self.copy_stored(tasks, file, &mut Destination::Buffer(buffer).whole(sample_bytes))?;
                }
                check_delivered(column, &tasks.selection, &Destination::Buffer(buffer))?;
            }
            Destination::Bytes(bytes) => {
                self.copy_stored(tasks, file, &mut WholeOutput { bytes, sample_bytes })?;
                check_delivered(column, &tasks.selection, &Destination::Bytes(bytes))?;
            }
        }
        let last = tasks.tasks.get(tasks.of_column(number)).and_then(<[Task]>::last);
        if let Some(task) = last.filter(|task| task.fetch == Fetch::Values) {
            let (value_bytes, taken) = tasks.left_in_file;
            self.enter_column(column);
            self.chunk.hold_unread(&task.location, value_bytes, taken);
        }
        Ok(self.nulls.len())
    }

    fn copy_stored(&mut self, tasks: &TaskList, file: &[u8], out: &mut WholeOutput<'_>) -> Result<()> {
        if tasks.selection.is_range() {
            return self.copy_from_file(file, out);
        }
        self.copy_in_order(file, out)
    }
}

/// Checks of the samples that were delivered, if they are bools, and if they have 4 or
/// 6 bits: in languages that have such types, other bytes are values that these do not have.
///
/// One pass at the end finds them on every way that values take: out of a decoder, out of a map, or
/// read straight to their destination.
pub(in crate::read) fn check_delivered(
    column: &OpenedColumn,
    selection: &Selection,
    output: &Destination<'_>,
) -> Result<()> {
    let values = match output {
        Destination::Buffer(buffer) => buffer.bytes(),
        Destination::Bytes(bytes) => bytes,
    };
    let Err(error) = check_unused_bits(column.layout().dtype, values) else { return Ok(()) };
    let unused = column.layout().dtype.unused_bits();
    let at = values.iter().position(|&byte| byte & unused != 0).unwrap_or(0);
    let position = match output {
        Destination::Buffer(buffer) => buffer.position_of_byte(at),
        Destination::Bytes(_) => at / column.layout().inner_bytes.max(1),
    };
    Err(match selection.at_position(position) {
        Some(sample) => at_sample(error, sample),
        None => error,
    })
}

/// Begins a buffer for the selected samples of a column, without memory for their values.
pub(in crate::read) fn begin_without_values(
    column: &OpenedColumn,
    tasks: &TaskList,
    buffer: &mut ColumnBuffer,
) -> Result<()> {
    let (selection, layout) = (&tasks.selection, column.layout());
    selection.last().map_or(Ok(()), |last| column.check_sample(last))?; // before memory is taken
    buffer.begin(column.schema(), selection.sample_count())?;
    match layout.has_shape() {
        true => Ok(()),
        false => column.file.check_decoded_bytes(u64_of(layout.inner_bytes)),
    }
}

/// Begins a buffer for the selected samples of a column; of a fixed shape with memory for them.
pub(in crate::read) fn begin_buffer(column: &OpenedColumn, tasks: &TaskList, buffer: &mut ColumnBuffer) -> Result<()> {
    let (count, layout) = (tasks.selection.sample_count(), column.layout());
    begin_without_values(column, tasks, buffer)?;
    if layout.has_shape() {
        return Ok(());
    }
    let bytes = count.checked_mul(layout.inner_bytes).ok_or_else(too_many)?;
    buffer.values.resize(bytes)
}

/// Refuses a destination that has not exactly the bytes of `count` samples of a fixed shape.
pub(in crate::read) fn check_length(column: &OpenedColumn, count: usize, length: usize) -> Result<()> {
    let layout = column.layout();
    if layout.has_shape() {
        return Err(Error::bad_argument("the column is ragged or nested; gather it into a ColumnBuffer"));
    }
    if count.checked_mul(layout.inner_bytes) == Some(length) {
        return Ok(());
    }
    let message = format!("{count} samples take {} bytes each; there is room for {length} bytes", layout.inner_bytes);
    Err(Error::bad_argument(message))
}
