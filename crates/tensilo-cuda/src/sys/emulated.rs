//! A driver without a GPU, for tests: device memory is host memory, and the kernels are emulated.
//!
//! Operations stay in the queue of their stream until a caller waits for an event. Then the stream
//! that records this event runs up to it, and so do the streams whose events it waits for, but no
//! other stream runs. So if a launch does not wait for the copy of its block list, it decodes old
//! bytes, and a test notices.

use super::driver::{Address, Driver, EventId, Gather, Launch, StreamId};
use super::emulator::{LaneOrder, decode_at, gather_at};
use crate::error::Result;
use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::collections::{HashMap, VecDeque};
use std::ptr::NonNull;
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// A driver whose operations run when a caller waits for them.
#[derive(Debug, Default)]
pub(crate) struct EmulatedDriver(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    next: u64,
    allocated: HashMap<u64, Layout>,
    streams: HashMap<u64, VecDeque<Operation>>,
    events: HashMap<u64, Event>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Event {
    /// How many times the event was recorded.
    recorded: u64,
    /// How many times a stream has reached it.
    reached: u64,
    /// The stream on which it was last recorded.
    on: u64,
    /// When a stream last reached it.
    at: Option<Instant>,
}

#[derive(Clone, Copy, Debug)]
enum Operation {
    Copy {
        to: u64,
        from: u64,
        bytes: usize,
    },
    Decode(Launch),
    Gather(Gather),
    Record(u64),
    /// Waits until the event (the first number) has been reached this many times (the second
    /// number).
    Wait(u64, u64),
}

/// The alignment of all memory: a page.
const ALIGNMENT: usize = 4096;

impl EmulatedDriver {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn allocate_any(&self, bytes: usize) -> NonNull<u8> {
        let layout = Layout::from_size_align(bytes.max(1), ALIGNMENT);
        let layout = layout.unwrap_or_else(|_| handle_alloc_error(Layout::new::<u128>()));
        // SAFETY: the layout has at least one byte.
        let memory = unsafe { alloc_zeroed(layout) };
        let memory = NonNull::new(memory).unwrap_or_else(|| handle_alloc_error(layout));
        self.state().allocated.insert(memory.as_ptr().expose_provenance() as u64, layout);
        memory
    }

    fn free_any(&self, address: u64) {
        if let Some(layout) = self.state().allocated.remove(&address) {
            // SAFETY: it was allocated with this layout, and is freed once.
            unsafe { dealloc(pointer(address), layout) };
        }
    }

    fn push(&self, on: StreamId, operation: Operation) {
        self.state().streams.entry(on.0).or_default().push_back(operation);
    }
}

fn pointer(address: u64) -> *mut u8 {
    std::ptr::with_exposed_provenance_mut(address as usize)
}

impl State {
    /// Runs operations until an event has been reached `count` times.
    fn reach(&mut self, event: u64, count: u64) {
        while let Some(Event { on, .. }) = self.events.get(&event).filter(|event| event.reached < count) {
            let Some(operation) = self.streams.get_mut(on).and_then(VecDeque::pop_front) else { return };
            match operation {
                // SAFETY: guaranteed by the caller of `copy_to_device` or `copy_to_host`.
                Operation::Copy { to, from, bytes } => unsafe {
                    std::ptr::copy_nonoverlapping(pointer(from), pointer(to), bytes);
                },
                Operation::Decode(launch) => {
                    let mut stage = vec![0_u128; (launch.stage_bytes as usize).div_ceil(size_of::<u128>())];
                    // SAFETY: guaranteed by the caller of `decode`.
                    let report = unsafe {
                        decode_at(
                            pointer(launch.blocks).cast(),
                            launch.block_count,
                            pointer(launch.copies).cast(),
                            stage.as_mut_ptr().cast(),
                            launch.stage_bytes,
                            LaneOrder::default(),
                        )
                    };
                    // SAFETY: as above; a report has 8 bytes at a multiple of 16.
                    unsafe { pointer(launch.report).cast::<u64>().write(report) };
                }
                Operation::Gather(gather) => {
                    let mut stage = vec![0_u128; (gather.stage_bytes as usize).div_ceil(size_of::<u128>())];
                    // SAFETY: guaranteed by the caller of `gather`.
                    let report = unsafe { gather_at(&gather, stage.as_mut_ptr().cast(), LaneOrder::default()) };
                    // SAFETY: as above.
                    unsafe { pointer(gather.report).cast::<u64>().write(report) };
                }
                Operation::Record(event) => {
                    if let Some(event) = self.events.get_mut(&event) {
                        event.reached += 1;
                        event.at = Some(Instant::now());
                    }
                }
                Operation::Wait(event, count) => self.reach(event, count),
            }
        }
    }
}

impl Driver for EmulatedDriver {
    fn name(&self) -> &str {
        "emulated warp"
    }

    fn is_emulated(&self) -> bool {
        true
    }

    fn allocate(&self, bytes: usize) -> Result<Address> {
        Ok(self.allocate_any(bytes).as_ptr().expose_provenance() as u64)
    }

    fn allocate_pinned(&self, bytes: usize) -> Result<NonNull<u8>> {
        Ok(self.allocate_any(bytes))
    }

    fn new_stream(&self) -> Result<StreamId> {
        let mut state = self.state();
        state.next += 1;
        Ok(StreamId(state.next))
    }

    fn new_event(&self) -> Result<EventId> {
        let mut state = self.state();
        state.next += 1;
        let event = state.next;
        state.events.insert(event, Event::default());
        Ok(EventId(event))
    }

    fn scratch_bytes(&self, stage_bytes: u32) -> usize {
        stage_bytes as usize
    }

    unsafe fn free(&self, address: Address) {
        self.free_any(address);
    }

    unsafe fn free_pinned(&self, memory: NonNull<u8>) {
        self.free_any(memory.as_ptr().expose_provenance() as u64);
    }

    unsafe fn destroy_stream(&self, stream: StreamId) {
        self.state().streams.remove(&stream.0);
    }

    unsafe fn destroy_event(&self, event: EventId) {
        self.state().events.remove(&event.0);
    }

    unsafe fn copy_to_device(&self, to: Address, from: NonNull<u8>, bytes: usize, on: StreamId) -> Result<()> {
        self.push(on, Operation::Copy { to, from: from.as_ptr().expose_provenance() as u64, bytes });
        Ok(())
    }

    unsafe fn copy_to_host(&self, to: NonNull<u8>, from: Address, bytes: usize, on: StreamId) -> Result<()> {
        self.push(on, Operation::Copy { to: to.as_ptr().expose_provenance() as u64, from, bytes });
        Ok(())
    }

    unsafe fn decode(&self, launch: Launch, on: StreamId) -> Result<()> {
        self.push(on, Operation::Decode(launch));
        Ok(())
    }

    unsafe fn gather(&self, gather: Gather, on: StreamId) -> Result<()> {
        self.push(on, Operation::Gather(gather));
        Ok(())
    }

    unsafe fn record(&self, event: EventId, on: StreamId) -> Result<()> {
        let mut state = self.state();
        let recorded = state.events.entry(event.0).or_default();
        (recorded.recorded, recorded.on) = (recorded.recorded + 1, on.0);
        drop(state);
        self.push(on, Operation::Record(event.0));
        Ok(())
    }

    unsafe fn wait(&self, event: EventId, on: StreamId) -> Result<()> {
        let count = self.state().events.get(&event.0).map_or(0, |event| event.recorded);
        self.push(on, Operation::Wait(event.0, count));
        Ok(())
    }

    unsafe fn synchronize(&self, event: EventId) -> Result<()> {
        let mut state = self.state();
        let count = state.events.get(&event.0).map_or(0, |event| event.recorded);
        state.reach(event.0, count);
        Ok(())
    }

    unsafe fn elapsed(&self, from: EventId, to: EventId) -> Result<Duration> {
        let state = self.state();
        let at = |event: EventId| state.events.get(&event.0).and_then(|event| event.at);
        Ok(at(from).zip(at(to)).map_or(Duration::ZERO, |(from, to)| to.saturating_duration_since(from)))
    }

    fn synchronize_all(&self) -> Result<()> {
        let mut state = self.state();
        let all: Vec<(u64, u64)> = state.events.iter().map(|(id, event)| (*id, event.recorded)).collect();
        all.into_iter().for_each(|(event, count)| state.reach(event, count));
        Ok(())
    }
}
