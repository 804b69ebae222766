//! The division of rows among files that other processes write.

use super::sample_error::total_rows;
use super::slices::{fixed_row_bytes, row_bytes};
use super::target::FileEnds;
use crate::error::go_on;
use crate::import::input::OpenInput;
use crate::import::options::Progress;
use crate::import::plan::Column;
use crate::import::shard_plan::{PlannedInput, PlannedShard, ShardPlan};
use crate::import::source::{BatchSource, check_unchanged, located};
use crate::import::unfold::unfold;
use crate::le::u64_of;
use crate::{ColumnSchema, Result, Schema, WriterOptions};
use std::iter::repeat_n;
use std::ops::{ControlFlow, Range};

/// The rows of a source whose bytes are looked at together, if all have the same.
const EQUAL_ROWS: u64 = 65_536;

/// A source, and what is made of it.
pub(super) struct DividedSource<'a> {
    pub source: &'a dyn BatchSource,
    pub columns: &'a [Column],
    pub positions: &'a [usize],
}

/// Divides the rows of inputs among files of at most `shard_bytes` raw bytes, or one sample. The
/// options have the origin of all of them.
pub(super) fn divide(
    inputs: &[&OpenInput],
    sources: &[DividedSource<'_>],
    (schema, shard_bytes): (Schema, u64),
    options: &WriterOptions,
    progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<ShardPlan> {
    let opened: Vec<&dyn BatchSource> = sources.iter().map(|divided| divided.source).collect();
    let mut division =
        Division { ends: FileEnds::new(shard_bytes), files: Vec::new(), rows: 0, total: total_rows(&opened), progress };
    let mut planned = Vec::new();
    for (input, divided) in inputs.iter().zip(sources) {
        let before = division.rows;
        division.source(divided, &schema).map_err(|error| located(error, divided.source))?;
        let rows = division.rows.saturating_sub(before);
        planned.push(PlannedInput { path: input.name().to_path_buf(), rows, digest: input.digest() });
    }
    check_unchanged(&opened)?;
    let files = (0..).zip(division.files);
    let shards = files.map(|(number, rows)| {
        let file_id = options.clone().shard(number).file_id_of(&schema)?;
        Ok(PlannedShard { rows, file_id })
    });
    let shards = shards.collect::<Result<_>>()?;
    Ok(ShardPlan { inputs: planned, schema, shards })
}

/// A division at work.
struct Division<'a> {
    ends: FileEnds,
    /// The rows of each file so far.
    files: Vec<Range<u64>>,
    /// The rows so far.
    rows: u64,
    total: Option<u64>,
    progress: &'a mut dyn FnMut(Progress) -> ControlFlow<()>,
}

impl Division<'_> {
    /// Divides the rows of a source. Columns of equal samples are not read, if the source knows how
    /// many it has.
    fn source(&mut self, divided: &DividedSource<'_>, schema: &Schema) -> Result<()> {
        let fixed = schema.columns.iter().map(fixed_row_bytes);
        let equal = fixed.clone().flatten().fold(0, usize::saturating_add);
        let mut read: Vec<usize> =
            fixed.enumerate().filter(|(_, bytes)| bytes.is_none()).map(|(column, _)| column).collect();
        let are_equal = read.is_empty();
        match divided.source.row_count().filter(|_| are_equal) {
            Some(rows) => return self.equal_rows(rows, equal),
            None if are_equal => read.push(0), // to count the rows
            None => {}
        }
        let wanted = || read.iter().filter_map(|&column| Some((divided.columns.get(column)?, column)));
        let positions: Vec<usize> = wanted().filter_map(|(_, column)| divided.positions.get(column).copied()).collect();
        let schemas: Vec<ColumnSchema> =
            wanted().filter_map(|(_, column)| schema.columns.get(column).cloned()).collect();
        for batch in divided.source.batches(&positions)? {
            let batch = unfold(batch?, wanted().map(|(column, _)| column.form()));
            let columns = wanted().map(|(column, _)| column);
            let mut bytes = if are_equal { vec![0; batch.sample_count] } else { row_bytes(&batch, &schemas, columns) };
            bytes.iter_mut().for_each(|bytes| *bytes = bytes.saturating_add(equal));
            self.rows(&bytes)?;
        }
        Ok(())
    }

    fn equal_rows(&mut self, mut rows: u64, bytes: usize) -> Result<()> {
        while rows > 0 {
            let count = rows.min(EQUAL_ROWS);
            let bytes: Vec<usize> = repeat_n(bytes, usize::try_from(count).unwrap_or(0)).collect();
            self.rows(&bytes)?;
            rows = rows.saturating_sub(count);
        }
        Ok(())
    }

    /// Divides rows, of which these are the raw bytes.
    fn rows(&mut self, mut bytes: &[usize]) -> Result<()> {
        while !bytes.is_empty() {
            let (begins, count) = self.ends.take(bytes.len(), bytes);
            if begins {
                self.files.push(self.rows..self.rows);
            }
            self.rows = self.rows.saturating_add(u64_of(count));
            if let Some(file) = self.files.last_mut() {
                file.end = self.rows;
            }
            bytes = bytes.get(count..).unwrap_or(&[]);
        }
        go_on((self.progress)(Progress::Scanning { done: self.rows, total: self.total }))
    }
}
