//! Many samples by one call: plan, fetch, decode.

use super::buffer::ColumnBuffer;
use super::decoder::Decoder;
use super::destination::Destination;
use super::fetch::{FetchScratch, TaskBytes, fetch, run_at_hand};
use super::opened_column::OpenedColumn;
use super::tasks::TaskList;
use crate::{Error, Result};

/// A column that is gathered, and its decoder.
pub(super) struct Gatherer {
    pub column: OpenedColumn,
    pub decoder: Decoder,
}

/// Memory that requests reuse.
#[derive(Default)]
pub(super) struct RequestScratch {
    pub tasks: TaskList,
    fetch: FetchScratch,
}

/// The destinations of several columns.
pub(super) trait ColumnDestinations {
    /// Returns the destination of column number `number`.
    fn of(&mut self, number: usize) -> Option<Destination<'_>>;
}

impl ColumnDestinations for &mut [ColumnBuffer] {
    fn of(&mut self, number: usize) -> Option<Destination<'_>> {
        self.get_mut(number).map(Destination::Buffer)
    }
}

impl ColumnDestinations for &mut [u8] {
    fn of(&mut self, _number: usize) -> Option<Destination<'_>> {
        Some(Destination::Bytes(self))
    }
}

impl AsRef<Gatherer> for Gatherer {
    fn as_ref(&self) -> &Self {
        self
    }
}

impl AsMut<Gatherer> for Gatherer {
    fn as_mut(&mut self) -> &mut Self {
        self
    }
}

impl Gatherer {
    pub(super) fn new(column: OpenedColumn) -> Self {
        Self { column, decoder: Decoder::new() }
    }
}

/// Reads the samples that `scratch` selects, of all columns, to their destinations. Returns the
/// number of nulls of the last column.
pub(super) fn gather<C: AsMut<Gatherer> + AsRef<Gatherer>>(
    columns: &mut [C],
    scratch: &mut RequestScratch,
    mut out: impl ColumnDestinations,
) -> Result<usize> {
    let RequestScratch { tasks, fetch: fetch_scratch } = scratch;
    tasks.tasks.clear();
    for (number, gatherer) in columns.iter_mut().map(AsMut::as_mut).enumerate() {
        let Some(output) = out.of(number) else { continue };
        let Gatherer { column, decoder } = gatherer;
        let begun = decoder.begin_output(column, tasks, output);
        let planned = begun.and_then(|()| tasks.add_column(number, column, Some(&decoder.chunk)));
        planned.map_err(|error| column.in_column(error))?;
        tasks.announce(number, &gatherer.column);
    }
    let needs_source = tasks.tasks.iter().any(|task| !task.bytes.is_empty());
    let file = columns.first().filter(|_| needs_source).map(|first| first.as_ref().column.file.clone());
    let mut decode = |number: usize, bytes: TaskBytes<'_>| {
        let Some(task) = tasks.tasks.get(number) else { return Ok(()) };
        match (columns.get_mut(task.column), out.of(task.column)) {
            (Some(gatherer), Some(output)) => {
                let Gatherer { column, decoder } = gatherer.as_mut();
                decoder.decode_task(column, tasks, task, bytes, output)
            }
            _ => Err(Error::internal("a task of a plan is of no column")),
        }
    };
    let result = match &file {
        Some(file) => fetch(&*file.source, &tasks.tasks, fetch_scratch, &mut decode),
        None => run_at_hand(&tasks.tasks, &mut decode),
    };
    if let Err((number, error)) = result {
        let column = tasks.tasks.get(number).and_then(|task| columns.get(task.column));
        return Err(match column {
            Some(gatherer) => gatherer.as_ref().column.in_column(error),
            None => error,
        });
    }
    let mut nulls = 0;
    for (number, gatherer) in columns.iter_mut().map(AsMut::as_mut).enumerate() {
        let Some(output) = out.of(number) else { continue };
        let Gatherer { column, decoder } = gatherer;
        nulls = decoder.finish_output(number, column, tasks, output).map_err(|error| column.in_column(error))?;
    }
    Ok(nulls)
}
