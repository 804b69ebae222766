//! Fetches the bytes of tasks in waves, and decodes each wave before it fetches the next.
//!
//! A gather can need more bytes than should be in memory at once, and bytes are cheapest to decode
//! while they are in the CPU cache. So its coalesced requests are sent in waves: read one wave,
//! decode its tasks, reuse the memory. The maximum size of a wave is the number of bytes that the
//! source can have in flight ([`CoalesceConfig::wave_bytes`]). A caller that fetches and decodes at
//! different times keeps all bytes in [`FetchedBytes`](super::plan::FetchedBytes) instead.
//!
//! Waves follow the order of the file, so a late task can fail before an earlier one is read. The
//! error must not depend on offsets. The loop therefore skips only tasks that come after the
//! earliest failed one in the plan, and continues until all earlier tasks have run.
//!
//! [`CoalesceConfig::wave_bytes`]: crate::open::CoalesceConfig::wave_bytes

use super::tasks::{Fetch, Task, TaskBytes};
use crate::bytes::memory;
use crate::open::coalesce::{bytes_of, range_length};
use crate::open::source::{check_inside, read_error, slice};
use crate::open::{RangeError, Requests, Source};
use crate::{Error, Result};
use std::ops::Range;

/// Memory for requests grows in multiples of this size.
const GROWTH_BYTES: usize = 64 << 10;

/// Reusable memory for fetching.
#[derive(Default)]
pub(in crate::read) struct FetchScratch {
    requests: Requests,
    bytes: Vec<u8>,
}

/// The error with the lowest task number. A single thread would return the same error.
#[derive(Default)]
pub(in crate::read) struct FirstError(Option<(usize, Error)>);

impl FirstError {
    pub(in crate::read) fn add(&mut self, task: usize, error: Error) {
        if self.is_before(task) {
            return;
        }
        self.0 = Some((task, error));
    }

    /// Returns whether this task or an earlier one has failed.
    pub(in crate::read) fn is_before(&self, task: usize) -> bool {
        self.0.as_ref().is_some_and(|(first, _)| *first <= task)
    }

    pub(in crate::read) fn into_inner(self) -> Option<(usize, Error)> {
        self.0
    }
}

/// Fetches the bytes of tasks, and calls `run` with the number and the bytes of each task: first
/// the tasks whose bytes are available, then the other tasks in order of their offsets in the file.
///
/// After a failure, still runs all tasks with lower numbers, so that the error does not depend on
/// the offsets.
pub(in crate::read) fn fetch(
    source: &dyn Source,
    tasks: &[Task],
    scratch: &mut FetchScratch,
    run: &mut dyn FnMut(usize, TaskBytes<'_>) -> Result<()>,
) -> std::result::Result<(), (usize, Error)> {
    let mut first = FirstError::default();
    if let Err((number, error)) = run_available(tasks, &mut *run) {
        first.add(number, error);
    }
    if tasks.iter().all(|task| task.bytes.is_empty()) {
        return first.into_inner().map_or(Ok(()), Err);
    }
    let FetchScratch { requests, bytes } = scratch;
    let config = source.coalesce();
    let task_ranges = tasks.iter().enumerate().map(|(number, task)| (task.bytes.clone(), number));
    requests.fill(task_ranges, &config).map_err(|error| (0, error))?;
    let mut next = 0;
    while let Some(rest) = requests.as_slice().get(next..).filter(|rest| !rest.is_empty()) {
        if requests.ranges_of(next).iter().all(|(_, task)| first.is_before(*task)) {
            next += 1;
            continue;
        }
        let wave = wave(rest, config.wave_bytes());
        let out = room(bytes, wave).map_err(|error| (first_task(requests.ranges_of(next)), error))?;
        let failed = source.read_ranges(wave, out).err();
        let read = failed.as_ref().map_or(wave.len(), |error| error.range);
        let mut out = &*out;
        for (number, range) in (next..).zip(wave.iter().take(read)) {
            // the length of `out` is the total length of the requests in the wave
            let bytes = out.split_off(..range_length(range)).unwrap_or(&[]);
            for (needed, task) in requests.ranges_of(number).iter().filter(|(_, task)| *task < tasks.len()) {
                if !first.is_before(*task) {
                    let bytes = bytes_of(range.start, bytes, needed);
                    run(*task, TaskBytes::Fetched(bytes)).unwrap_or_else(|error| first.add(*task, error));
                }
            }
        }
        next += read;
        if let Some(RangeError { error, .. }) = failed {
            let offset = requests.as_slice().get(next).map_or(0, |range| range.start);
            first.add(first_task(requests.ranges_of(next)), read_error(error, offset));
            next += 1;
        }
    }
    first.into_inner().map_or(Ok(()), Err)
}

/// Returns the leading requests to read together: as many as fit in `max_bytes`, but at least one.
fn wave(requests: &[Range<u64>], max_bytes: u64) -> &[Range<u64>] {
    let mut bytes = 0_u64;
    let fits = |range: &&Range<u64>| {
        bytes = bytes.saturating_add(range.end.saturating_sub(range.start));
        bytes <= max_bytes
    };
    let count = requests.iter().take_while(fits).count().max(1);
    requests.get(..count).unwrap_or(requests)
}

/// Returns memory for the bytes of these requests.
fn room<'b>(bytes: &'b mut Vec<u8>, requests: &[Range<u64>]) -> Result<&'b mut [u8]> {
    let needed = requests.iter().map(range_length).fold(0, usize::saturating_add);
    if bytes.len() < needed {
        // grows in steps, so that a slightly longer request does not reallocate the memory each
        // time
        memory::resize(bytes, needed.checked_next_multiple_of(GROWTH_BYTES).unwrap_or(needed), 0)?;
    }
    bytes.get_mut(..needed).ok_or_else(|| Error::internal("memory for requests is too short"))
}

/// Calls `run` with the number of each task that needs no fetched bytes, up to the first task that
/// fails. Skips the chunks that are read into the cache, because they are read last.
pub(in crate::read) fn run_available(
    tasks: &[Task],
    mut run: impl FnMut(usize, TaskBytes<'_>) -> Result<()>,
) -> std::result::Result<(), (usize, Error)> {
    let is_available = |task: &Task| task.bytes.is_empty() && task.fetch != Fetch::IntoCache;
    let mut available = tasks.iter().enumerate().filter(|(_, task)| is_available(task));
    available.try_for_each(|(number, _)| run(number, TaskBytes::Available).map_err(|error| (number, error)))
}

/// Fetches one range, and calls `then` with its bytes. Bytes outside the file are refused
/// before memory is allocated for them.
pub(in crate::read) fn fetch_one<T>(
    source: &dyn Source,
    range: &Range<u64>,
    scratch: &mut FetchScratch,
    then: impl FnOnce(&[u8]) -> Result<T>,
) -> Result<T> {
    check_inside(source, range.start, range_length(range))?;
    if range.is_empty() {
        return then(&[]);
    }
    if let Some(file) = source.as_bytes() {
        return then(slice(file, range.start, range_length(range))?);
    }
    let request = std::slice::from_ref(range);
    let out = room(&mut scratch.bytes, request)?;
    source.read_ranges(request, out).map_err(|error| read_error(error.error, range.start))?;
    then(out)
}

fn first_task(task_ranges: &[(Range<u64>, usize)]) -> usize {
    task_ranges.iter().map(|(_, task)| *task).min().unwrap_or(0)
}
