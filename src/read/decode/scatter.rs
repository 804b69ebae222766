//! Samples of a plan that become some of the samples of a batch, which several plans fill.

use super::decoder::{Decoder, too_many};
use super::destination::{Destination, check_delivered};
use super::output::{FixedOutput, WholeOutput};
use crate::format::content::check_unused_bits;
use crate::read::batch::fetched_bytes::FetchedBytes;
use crate::read::batch::plan::ReadPlan;
use crate::read::batch::tasks::{Task, at_sample};
use crate::read::batch::waves::TaskBytes;
use crate::read::buffer::outside;
use crate::read::file::opened_column::OpenedColumn;
use crate::{Error, Result, memory};

impl Decoder {
    /// Decodes one column of a plan, counted from 0, into a batch that several plans fill: sample
    /// `i` of the plan becomes sample `positions[i]` of `out`, which has the bytes of all samples
    /// of the batch. Adds the positions of null samples to `nulls`; these have zero bytes.
    ///
    /// Fails if the column is ragged or nested, or if a position is outside the batch. Cost: as
    /// [`Decoder::decode`].
    pub fn scatter(
        &mut self,
        plan: &ReadPlan,
        bytes: &FetchedBytes,
        column: usize,
        positions: &[usize],
        out: &mut [u8],
        nulls: &mut Vec<usize>,
    ) -> Result<()> {
        let opened = plan.column(column)?;
        let scattered = self.scatter_column(plan, bytes, column, positions, out);
        scattered.map_err(|error| opened.in_column(error))?;
        memory::reserve(nulls, self.nulls.len())?;
        nulls.extend(self.nulls.iter().filter_map(|&null| positions.get(null)));
        Ok(())
    }

    fn scatter_column(
        &mut self,
        plan: &ReadPlan,
        bytes: &FetchedBytes,
        number: usize,
        positions: &[usize],
        out: &mut [u8],
    ) -> Result<()> {
        let column = plan.column(number)?;
        let (count, layout) = (plan.sample_count(), column.layout());
        if layout.has_shape() {
            return Err(Error::bad_argument("the column is ragged or nested; decode it into a ColumnBuffer"));
        }
        if positions.len() != count {
            let message = format!("{} positions for a plan of {count} samples", positions.len());
            return Err(Error::bad_argument(message));
        }
        let sample_bytes = layout.inner_bytes;
        match first_of_run(positions) {
            Some(first) => {
                let start = first.checked_mul(sample_bytes).ok_or_else(too_many)?;
                let length = count.checked_mul(sample_bytes).ok_or_else(too_many)?;
                let bytes_out = out.get_mut(start..).and_then(|rest| rest.get_mut(..length)).ok_or_else(too_few)?;
                let mut out = WholeOutput { bytes: bytes_out, sample_bytes };
                self.decode_column_to(plan, bytes, number, column, &mut out)?;
                check_delivered(column, &plan.list.selection, &Destination::Bytes(out.bytes))
            }
            None => {
                let highest = positions.iter().copied().max().unwrap_or(0);
                if highest
                    .checked_add(1)
                    .and_then(|end| end.checked_mul(sample_bytes))
                    .is_none_or(|end| end > out.len())
                {
                    return Err(too_few());
                }
                let mut out = ScatteredOutput { bytes: out, sample_bytes, positions };
                self.decode_column_to(plan, bytes, number, column, &mut out)?;
                if layout.dtype.unused_bits() == 0 {
                    return Ok(());
                }
                (0..count).map(|rank| plan.list.selection.get(rank)).enumerate().try_for_each(
                    |(rank, (sample, position))| {
                        let values = out.destination(rank, position, 1)?;
                        check_unused_bits(layout.dtype, values).map_err(|error| at_sample(error, sample))
                    },
                )
            }
        }
    }

    fn decode_column_to(
        &mut self,
        plan: &ReadPlan,
        bytes: &FetchedBytes,
        number: usize,
        column: &OpenedColumn,
        out: &mut impl FixedOutput,
    ) -> Result<()> {
        self.begin(0);
        let selection = &plan.list.selection;
        let mut decode = |decoder: &mut Self, task: &Task, bytes: TaskBytes<'_>| {
            decoder.decode_fixed(column, selection, task, bytes, out)
        };
        self.decode_tasks(plan, bytes, number, &mut decode)?;
        self.copy_from_file(column.file.bytes().memory().unwrap_or(&[]), out)
    }
}

/// Returns the first of positions that follow each other; `None` if they do not.
fn first_of_run(positions: &[usize]) -> Option<usize> {
    let first = positions.first().copied().unwrap_or(0);
    let is_run = positions.iter().zip(first..).all(|(&position, due)| position == due);
    is_run.then_some(first)
}

/// The destinations of samples anywhere in a batch.
struct ScatteredOutput<'o> {
    bytes: &'o mut [u8],
    sample_bytes: usize,
    /// For each position of the plan, that of the batch.
    positions: &'o [usize],
}

impl FixedOutput for ScatteredOutput<'_> {
    const LONGEST_RUN: usize = 1;

    fn destination(&mut self, _rank: usize, position: usize, _samples: usize) -> Result<&mut [u8]> {
        let position = self.positions.get(position).ok_or_else(outside)?;
        let start = position.saturating_mul(self.sample_bytes);
        let to = self.bytes.get_mut(start..).and_then(|rest| rest.get_mut(..self.sample_bytes));
        to.ok_or_else(outside)
    }
}

#[cold]
fn too_few() -> Error {
    Error::bad_argument("a position is outside the batch")
}
