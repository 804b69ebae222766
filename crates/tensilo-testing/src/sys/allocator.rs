//! A global allocator that counts the allocations of Rust code.
//!
//! [`allocations_of`] counts the allocations of the current thread, so tests can run in parallel.
//! Live and peak bytes are counted for the whole process, so tests that measure them hold an
//! [`ExclusiveTest`]. The contexts of Zstandard are allocated by C code and are not counted.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The system allocator with counters. A test program that measures memory installs it:
/// `#[global_allocator] static ALLOCATOR: CountingAllocator = CountingAllocator;`.
#[derive(Debug)]
pub struct CountingAllocator;

/// The number of bytes that are currently allocated in the process, and the peak of this number.
static LIVE_BYTES: AtomicUsize = AtomicUsize::new(0);
static PEAK_BYTES: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// The number of allocations of this thread so far, and their total size. An allocator may use
    /// this variable, because it needs neither initialization nor a destructor.
    static THREAD_ALLOCATIONS: Cell<Allocations> = const { Cell::new(Allocations { count: 0, bytes: 0 }) };
}

/// A number of allocations, and their total size in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allocations {
    pub count: u64,
    pub bytes: u64,
}

fn add(bytes: usize) {
    let now = LIVE_BYTES.fetch_add(bytes, Ordering::Relaxed) + bytes;
    PEAK_BYTES.fetch_max(now, Ordering::Relaxed);
    THREAD_ALLOCATIONS.with(|allocations| {
        let Allocations { count, bytes: before } = allocations.get();
        allocations.set(Allocations { count: count + 1, bytes: before + bytes as u64 });
    });
}

// SAFETY: every call is forwarded to the system allocator with unchanged arguments; counting
// allocates nothing.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        add(layout.size());
        // SAFETY: the caller upholds the contract of `alloc`, which is the same here.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        add(layout.size());
        // SAFETY: as above, for `alloc_zeroed`.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        LIVE_BYTES.fetch_sub(layout.size(), Ordering::Relaxed);
        add(bytes);
        // SAFETY: as above, for `realloc`; the block is from `System`, like all blocks.
        unsafe { System.realloc(block, layout, bytes) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        LIVE_BYTES.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as above, for `dealloc`.
        unsafe { System.dealloc(block, layout) }
    }
}

/// Runs `work`, and returns its allocations on this thread.
pub fn allocations_of<T>(work: impl FnOnce() -> T) -> (Allocations, T) {
    let before = THREAD_ALLOCATIONS.with(Cell::get);
    let result = work();
    let after = THREAD_ALLOCATIONS.with(Cell::get);
    (Allocations { count: after.count - before.count, bytes: after.bytes - before.bytes }, result)
}

/// The right to run exclusively. Only one test of a process has it at a time.
#[derive(Debug)]
pub struct ExclusiveTest(#[expect(dead_code, reason = "held until it is dropped")] MutexGuard<'static, ()>);

/// Waits until no other test of this process runs exclusively. Peaks are measured for the whole
/// process. So if a test program measures them, each of its tests starts with this call.
pub fn exclusive_test() -> ExclusiveTest {
    static LOCK: Mutex<()> = Mutex::new(());
    ExclusiveTest(LOCK.lock().unwrap_or_else(PoisonError::into_inner))
}

impl ExclusiveTest {
    /// Runs `work`, and returns the number of bytes that it allocated and did not free.
    pub fn retained_bytes<T>(&self, work: impl FnOnce() -> T) -> (T, usize) {
        let before = LIVE_BYTES.load(Ordering::Relaxed);
        let result = work();
        (result, LIVE_BYTES.load(Ordering::Relaxed).saturating_sub(before))
    }

    /// Runs `work`, and returns how many more bytes the process had allocated at the peak than
    /// before.
    pub fn peak_bytes<T>(&self, work: impl FnOnce() -> T) -> (T, usize) {
        let before = LIVE_BYTES.load(Ordering::Relaxed);
        PEAK_BYTES.store(before, Ordering::Relaxed);
        let result = work();
        (result, PEAK_BYTES.load(Ordering::Relaxed).saturating_sub(before))
    }
}
