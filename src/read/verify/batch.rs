//! Verifies regions in batches, with several threads.
//!
//! Headers must be read in file order, because each region determines where the next one starts.
//! Bodies are independent. So the file is divided into spans. Each thread takes the next span and
//! fetches it with one request, in parallel with the other threads. Then the threads take turns to
//! walk over the headers of their spans, and afterwards verify the bodies in parallel. A batch has
//! a maximum number of bytes and of regions, which bounds the memory.

use super::body::{BodyCheck, BodyFinding, SeenTables};
use super::walk::{SpanBytes, Walk, WalkItem};
use crate::bytes::le::u64_of;
use crate::format::region::{RegionHeader, RegionKind};
use crate::limits::INDEX_PAGE_BYTES;
use crate::{Error, threads};
use std::mem;
use std::ops::Range;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// The limits of a batch per thread: the number of bytes of the file, of regions, and of bytes in
/// the bodies of index pages. They are large enough to make starting a thread worthwhile, and small
/// enough to bound memory use.
const BYTES: u64 = 32 << 20;
const REGIONS: usize = 4096;
const PAGE_BYTES: u64 = 1 << 20;

/// A range of the file that one thread fetches.
struct Span {
    /// The turn in which its thread walks over it.
    number: u64,
    range: Range<u64>,
}

/// The regions and the damage that the walk has found, in file order.
pub(super) struct Batch<'w, 'a> {
    state: Mutex<BatchState<'w, 'a>>,
    next_turn: Condvar,
}

struct BatchState<'w, 'a> {
    walk: &'w mut Walk<'a>,
    tables: &'w SeenTables<'a>,
    visited: Vec<(WalkItem, BodyFinding)>,
    /// The error that ended the walk.
    error: Option<Error>,
    max_regions: usize,
    page_bytes_left: u64,
    is_closed: bool,
    span_bytes: u64,
    /// The range of the file that is not yet in a span.
    left: Range<u64>,
    /// The number of spans that threads have taken.
    taken: u64,
    /// The number of spans that the walk has covered.
    walked: u64,
}

impl<'w, 'a> Batch<'w, 'a> {
    /// Continues the walk and verifies bodies, with all `workers`. The result does not depend on
    /// their number.
    pub(super) fn check(
        walk: &'w mut Walk<'a>,
        tables: &'w SeenTables<'a>,
        workers: &mut [BodyCheck<'a>],
        span_bytes: u64,
    ) -> (Vec<(WalkItem, BodyFinding)>, Option<Error>) {
        let count = u64_of(workers.len());
        let end = walk.end().min(walk.at().saturating_add(BYTES.saturating_mul(count)));
        let state = BatchState {
            left: walk.at()..end,
            walk,
            tables,
            visited: Vec::new(),
            error: None,
            max_regions: REGIONS.saturating_mul(workers.len()),
            page_bytes_left: PAGE_BYTES.saturating_mul(count),
            is_closed: false,
            span_bytes,
            taken: 0,
            walked: 0,
        };
        let batch = Batch { state: Mutex::new(state), next_turn: Condvar::new() };
        threads::run(workers.iter_mut().map(|worker| {
            || {
                let (worker, guard) = (worker, CloseOnPanic(&batch));
                while let Some(span) = batch.take() {
                    worker.with_bytes(&span.range, |worker, bytes| batch.check_span(&span, bytes, worker));
                }
                mem::forget(guard); // disarms the guard: no panic occurred
            }
        }));
        let state = batch.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        (state.visited, state.error)
    }

    fn lock(&self) -> MutexGuard<'_, BatchState<'w, 'a>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the next span; `None` at the end of the batch.
    fn take(&self) -> Option<Span> {
        let mut state = self.lock();
        let start = state.left.start.max(state.walk.at());
        if state.is_closed || start >= state.left.end {
            return None;
        }
        let end = state.left.end.min(start.saturating_add(state.span_bytes));
        state.left.start = end;
        state.taken += 1;
        Some(Span { number: state.taken - 1, range: start..end })
    }

    /// Verifies the bodies of the regions that start in a span.
    fn check_span(&self, span: &Span, bytes: SpanBytes<'_>, worker: &mut BodyCheck<'a>) {
        let regions = self.walk(span, bytes);
        let checked: Vec<_> = regions.iter().map(|(number, header)| (*number, worker.check(header, bytes))).collect();
        let mut state = self.lock();
        for (number, found) in checked {
            if let Some((_, body)) = state.visited.get_mut(number) {
                *body = found;
            }
        }
    }

    /// Waits until the walk has covered all earlier spans or the batch is closed, and walks over
    /// the span. Returns the regions whose bodies a worker can verify, and their numbers in the
    /// batch.
    fn walk(&self, span: &Span, bytes: SpanBytes<'_>) -> Vec<(usize, RegionHeader)> {
        let mut state = self.lock();
        while state.walked < span.number && !state.is_closed {
            state = self.next_turn.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        // `walked` is past the span if the source failed after it had delivered the span, because
        // the span is then visited twice
        if state.is_closed || state.walked > span.number {
            return Vec::new();
        }
        let regions = state.walk(span.range.end, bytes);
        state.walked += 1;
        self.next_turn.notify_all();
        regions
    }
}

/// Closes a batch when a worker panics, for example in the source. Otherwise the other workers
/// would wait for its span forever.
struct CloseOnPanic<'b, 'w, 'a>(&'b Batch<'w, 'a>);

impl Drop for CloseOnPanic<'_, '_, '_> {
    fn drop(&mut self) {
        self.0.lock().is_closed = true;
        self.0.next_turn.notify_all();
    }
}

impl BatchState<'_, '_> {
    fn walk(&mut self, end: u64, bytes: SpanBytes<'_>) -> Vec<(usize, RegionHeader)> {
        let mut regions = Vec::new();
        while !self.is_closed && self.walk.at() < end {
            let visited = match self.walk.next(bytes) {
                Ok(Some(visited)) => visited,
                Ok(None) => break,
                Err(error) => {
                    self.error = Some(error);
                    self.is_closed = true;
                    break;
                }
            };
            if let WalkItem::Region(header) = &visited {
                self.tables.add_if_table(header);
                if self.is_checked_by_worker(header) {
                    regions.push((self.visited.len(), *header));
                }
            }
            self.visited.push((visited, BodyFinding::Unread));
            let has_pages_left = self.page_bytes_left >= u64::from(INDEX_PAGE_BYTES);
            self.is_closed = self.visited.len() >= self.max_regions || !has_pages_left;
        }
        regions
    }

    /// Returns whether a worker verifies the body of a region.
    fn is_checked_by_worker(&mut self, header: &RegionHeader) -> bool {
        match header.kind {
            RegionKind::Chunk | RegionKind::Table => true,
            RegionKind::IndexPage => {
                let left = self.page_bytes_left.checked_sub(header.body_bytes.into());
                self.page_bytes_left = left.unwrap_or(self.page_bytes_left); // a longer body cannot be a page
                left.is_some()
            }
            RegionKind::FileHeader | RegionKind::Footer | RegionKind::Trailer => false,
        }
    }
}
