//! Fetching the bytes of tasks, and handing them on as they arrive.

use super::arrived::Arrived;
use super::assembler::Assembler;
use super::range_list::RangeList;
use super::tasks::{Fetch, Task};
use crate::open::Source;
use crate::open::source::{check_inside, read_error};
use crate::{Error, Result};
use std::io;
use std::ops::{ControlFlow, Range};

/// The bytes of a task.
#[derive(Clone, Copy, Debug)]
pub(super) enum TaskBytes<'a> {
    /// In the file, which is in memory, or with the decoder.
    AtHand,
    /// Bytes of the file that the task names.
    Fetched(&'a [u8]),
}

/// Memory that fetching reuses.
#[derive(Default)]
pub(super) struct FetchScratch {
    ranges: RangeList,
    assembler: Assembler,
    /// Numbers of ranges.
    arrived: Arrived,
    scratch: Vec<u8>,
}

/// The error that a single thread would meet first, and the number of its task.
#[derive(Default)]
pub(super) struct FirstError(Option<(usize, Error)>);

impl FirstError {
    pub(super) fn add(&mut self, task: usize, error: Error) {
        if self.is_before(task) {
            return;
        }
        self.0 = Some((task, error));
    }

    /// Returns whether a task before this one has failed, or this one.
    pub(super) fn is_before(&self, task: usize) -> bool {
        self.0.as_ref().is_some_and(|(first, _)| *first <= task)
    }

    pub(super) fn into_inner(self) -> Option<(usize, Error)> {
        self.0
    }
}

/// Fetches the bytes of tasks, and calls `run` with the number of each task and its bytes as soon
/// as they are here: first tasks whose bytes are at hand, then the others in the order of arrival.
///
/// All tasks before one that fails are run, so that the error does not depend on the order of
/// arrival.
pub(super) fn fetch(
    source: &dyn Source,
    tasks: &[Task],
    scratch: &mut FetchScratch,
    run: &mut dyn FnMut(usize, TaskBytes<'_>) -> Result<()>,
) -> std::result::Result<(), (usize, Error)> {
    let mut first = FirstError::default();
    if let Err((number, error)) = run_at_hand(tasks, &mut *run) {
        first.add(number, error);
    }
    if tasks.iter().all(|task| task.bytes.is_empty()) {
        return first.into_inner().map_or(Ok(()), Err);
    }
    let FetchScratch { ranges, assembler, arrived, scratch } = scratch;
    let task_ranges = tasks.iter().enumerate().map(|(number, task)| (task.bytes.clone(), number));
    ranges.fill(task_ranges, source.gap_bytes()).map_err(|error| (0, error))?;
    assembler.clear();
    arrived.clear();
    let read = source.read_ranges(ranges.ranges(), scratch, &mut |fragment| {
        let number = fragment.range;
        let Some(range) = ranges.ranges().get(number) else { return ControlFlow::Continue(()) };
        let length = usize::try_from(range.end - range.start).unwrap_or(usize::MAX); // not empty
        let task_ranges = ranges.task_ranges(number);
        let added = assembler.add(length, fragment).and_then(|bytes| match bytes {
            Some(_) => arrived.add(number..number + 1).map(|()| bytes), // below their count
            None => Ok(bytes),
        });
        match added {
            Ok(None) => {}
            Ok(Some(bytes)) => {
                for (needed, task) in task_ranges.iter().filter(|(_, task)| *task < tasks.len()) {
                    if first.is_before(*task) {
                        continue;
                    }
                    let bytes = RangeList::bytes_of(range.start, bytes, needed);
                    run(*task, TaskBytes::Fetched(bytes)).unwrap_or_else(|error| first.add(*task, error));
                }
            }
            Err(error) => first.add(first_task(task_ranges), error),
        }
        // nothing before the first task can fail
        if first.is_before(0) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    if let Err(error) = read {
        let offset = ranges.ranges().get(error.range).map_or(0, |range| range.start);
        first.add(first_task(ranges.task_ranges(error.range)), read_error(error.error, offset));
    } else if arrived.count() < ranges.ranges().len() && first.0.is_none() {
        first.add(0, incomplete());
    }
    first.into_inner().map_or(Ok(()), Err)
}

/// Calls `run` with the number of each task whose bytes are at hand, up to the first that fails.
/// Chunks that are read after all others are not at hand.
pub(super) fn run_at_hand(
    tasks: &[Task],
    mut run: impl FnMut(usize, TaskBytes<'_>) -> Result<()>,
) -> std::result::Result<(), (usize, Error)> {
    let is_at_hand = |task: &Task| task.bytes.is_empty() && task.fetch != Fetch::Kept;
    let mut at_hand = tasks.iter().enumerate().filter(|(_, task)| is_at_hand(task));
    at_hand.try_for_each(|(number, _)| run(number, TaskBytes::AtHand).map_err(|error| (number, error)))
}

/// Fetches one range, and calls `then` with its bytes. Bytes outside the file are refused
/// before memory is taken for them.
pub(super) fn fetch_one<T>(
    source: &dyn Source,
    range: &Range<u64>,
    scratch: &mut FetchScratch,
    then: impl FnOnce(&[u8]) -> Result<T>,
) -> Result<T> {
    let length = usize::try_from(range.end.saturating_sub(range.start)).unwrap_or(usize::MAX);
    check_inside(source, range.start, length)?;
    if length == 0 {
        return then(&[]);
    }
    let (mut then, mut result) = (Some(then), None);
    let FetchScratch { assembler, scratch, .. } = scratch;
    assembler.clear();
    let read = source.read_ranges(std::slice::from_ref(range), scratch, &mut |fragment| {
        match assembler.add(length, fragment) {
            Ok(None) => return ControlFlow::Continue(()),
            Ok(Some(bytes)) => result = then.take().map(|then| then(bytes)),
            Err(error) => result = Some(Err(error)),
        }
        ControlFlow::Break(())
    });
    read.map_err(|error| read_error(error.error, range.start))?;
    result.unwrap_or_else(|| Err(incomplete()))
}

/// Returns the error of a source that has ended without an error, but not delivered everything.
fn incomplete() -> Error {
    let error = io::Error::new(io::ErrorKind::UnexpectedEof, "the source did not deliver all ranges");
    Error::io("reading", error)
}

fn first_task(task_ranges: &[(Range<u64>, usize)]) -> usize {
    task_ranges.iter().map(|(_, task)| *task).min().unwrap_or(0)
}
