//! A global allocator that counts the allocations of Rust code. Zstandard's contexts are memory of
//! C and are not counted.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The system's allocator, counting. A test program that measures memory makes it its own:
/// `#[global_allocator] static ALLOCATOR: CountingAllocator = CountingAllocator;`.
#[derive(Debug)]
pub struct CountingAllocator;

/// Bytes that the process has allocated, now and at most.
static LIVE_BYTES: AtomicUsize = AtomicUsize::new(0);
static PEAK_BYTES: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// Allocations of this thread so far, and their bytes. An allocator may use it: it needs
    /// neither initialization nor a destructor.
    static THREAD_ALLOCATIONS: Cell<Allocations> = const { Cell::new(Allocations { count: 0, bytes: 0 }) };
}

/// Allocations, and their bytes.
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

// SAFETY: every call is passed on to the system's allocator with its arguments as they are;
// counting allocates nothing.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        add(layout.size());
        // SAFETY: the caller keeps the contract of `alloc`, which is the same here.
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
        // SAFETY: as above, for `realloc`; the block is from `System`, as all are.
        unsafe { System.realloc(block, layout, bytes) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        LIVE_BYTES.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as above, for `dealloc`.
        unsafe { System.dealloc(block, layout) }
    }
}

/// Runs `work`; returns what it allocated on this thread.
pub fn allocations_of<T>(work: impl FnOnce() -> T) -> (Allocations, T) {
    let before = THREAD_ALLOCATIONS.with(Cell::get);
    let result = work();
    let after = THREAD_ALLOCATIONS.with(Cell::get);
    (Allocations { count: after.count - before.count, bytes: after.bytes - before.bytes }, result)
}

/// The right to run: of all tests of a process that ask for it, one has it at a time.
#[derive(Debug)]
pub struct ExclusiveTest(#[expect(dead_code, reason = "held")] MutexGuard<'static, ()>);

/// Waits until no other test of this process is alone. Peaks are those of the whole process, so
/// each test of a program that measures them begins with this call.
pub fn exclusive_test() -> ExclusiveTest {
    static LOCK: Mutex<()> = Mutex::new(());
    ExclusiveTest(LOCK.lock().unwrap_or_else(PoisonError::into_inner))
}

impl ExclusiveTest {
    /// Runs `work`; returns the bytes that it has allocated and not freed.
    pub fn retained_bytes<T>(&self, work: impl FnOnce() -> T) -> (T, usize) {
        let before = LIVE_BYTES.load(Ordering::Relaxed);
        let result = work();
        (result, LIVE_BYTES.load(Ordering::Relaxed).saturating_sub(before))
    }

    /// Runs `work`; returns the most bytes that the process had allocated meanwhile, beyond those
    /// it had before.
    pub fn peak_bytes<T>(&self, work: impl FnOnce() -> T) -> (T, usize) {
        let before = LIVE_BYTES.load(Ordering::Relaxed);
        PEAK_BYTES.store(before, Ordering::Relaxed);
        let result = work();
        (result, PEAK_BYTES.load(Ordering::Relaxed).saturating_sub(before))
    }
}
