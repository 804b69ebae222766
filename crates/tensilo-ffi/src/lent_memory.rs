//! The caller's memory for the values of batches, such as pinned memory for a device.
//!
//! Threads of a loader call the two functions of a [`tensilo_allocator`]. Allocated memory is owned
//! by a value that releases it when it is dropped, after the batch and all arrays exported from it
//! are gone. If the allocator returns a null pointer or misaligned memory, the batch fails;
//! misaligned memory is released at once.

use crate::boundary::call::options as read_options;
use crate::boundary::error::{Result, tensilo_error};
use crate::boundary::values::{Options, Output};
use std::ffi::c_void;
use std::ptr::NonNull;
use std::slice;
use tensilo_data::{BatchAllocator, BatchMemory, DataError};

/// Functions that allocate memory for the values of batches, such as pinned memory that a device
/// copies from. Threads of the loader call them for each column of each batch. The functions must
/// not throw exceptions.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tensilo_allocator {
    /// `sizeof(tensilo_allocator)`, set by the caller.
    pub struct_size: usize,
    /// Returns `byte_count` bytes of memory, which may be uninitialized, aligned to at least 8
    /// bytes, or NULL on failure.
    pub allocate: Option<unsafe extern "C" fn(user: *mut c_void, byte_count: usize) -> *mut c_void>,
    /// Releases memory that `allocate` returned, after the batch is closed and all arrays exported
    /// from it are released.
    pub release: Option<unsafe extern "C" fn(user: *mut c_void, memory: *mut c_void, byte_count: usize)>,
    /// The first argument of both functions.
    pub user: *mut c_void,
}

// SAFETY: `repr(C)`, and starts with its size.
unsafe impl Output for tensilo_allocator {}
// SAFETY: integers and pointers only.
unsafe impl Options for tensilo_allocator {}

/// The caller's functions. Both are present.
#[derive(Clone, Copy)]
pub(crate) struct CallerAllocator {
    allocate: unsafe extern "C" fn(*mut c_void, usize) -> *mut c_void,
    release: unsafe extern "C" fn(*mut c_void, *mut c_void, usize),
    user: *mut c_void,
}

// SAFETY: the header states that threads of the loader call the functions with `user`.
unsafe impl Send for CallerAllocator {}
// SAFETY: as above.
unsafe impl Sync for CallerAllocator {}

impl CallerAllocator {
    /// Returns the caller's functions; `None` for null.
    ///
    /// # Safety
    ///
    /// The pointer is null, or points to functions that behave as the header requires.
    pub unsafe fn from_caller(given: *const tensilo_allocator) -> Result<Option<Self>> {
        if given.is_null() {
            return Ok(None);
        }
        // SAFETY: the caller's promise.
        let given = unsafe { read_options(given, "allocator") }?;
        match (given.allocate, given.release) {
            (Some(allocate), Some(release)) => Ok(Some(Self { allocate, release, user: given.user })),
            _ => Err(tensilo_error::bad_argument("allocator: allocate or release is NULL")),
        }
    }
}

impl BatchAllocator for CallerAllocator {
    fn allocate(&self, byte_count: usize) -> std::result::Result<Box<dyn BatchMemory>, DataError> {
        if byte_count == 0 {
            return Ok(Box::new(CallerMemory { from: *self, memory: NonNull::dangling(), byte_count }));
        }
        // SAFETY: the caller's function, with the arguments that the header states.
        let memory = unsafe { (self.allocate)(self.user, byte_count) };
        let refused = |why: &str| DataError::BadArgument(format!("allocator: allocate({byte_count}) returned {why}"));
        let memory: NonNull<u8> = NonNull::new(memory.cast()).ok_or_else(|| refused("NULL"))?;
        let lent = CallerMemory { from: *self, memory, byte_count };
        // dropping `lent` releases misaligned memory
        if memory.cast::<u64>().is_aligned() {
            Ok(Box::new(lent))
        } else {
            Err(refused("memory that is not aligned to 8 bytes"))
        }
    }
}

/// Memory of the caller, which is released when this value is dropped.
struct CallerMemory {
    from: CallerAllocator,
    memory: NonNull<u8>,
    byte_count: usize,
}

// SAFETY: only this value owns the memory, and any thread may release it.
unsafe impl Send for CallerMemory {}
// SAFETY: a shared reference only reads the memory.
unsafe impl Sync for CallerMemory {}

impl BatchMemory for CallerMemory {
    fn bytes(&self) -> &[u8] {
        // SAFETY: the caller allocated this many bytes; for length 0 the pointer is dangling.
        unsafe { slice::from_raw_parts(self.memory.as_ptr(), self.byte_count) }
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `bytes`.
        unsafe { slice::from_raw_parts_mut(self.memory.as_ptr(), self.byte_count) }
    }
}

impl Drop for CallerMemory {
    fn drop(&mut self) {
        if self.byte_count > 0 {
            // SAFETY: `allocate` returned the memory, and it is released once.
            unsafe { (self.from.release)(self.from.user, self.memory.as_ptr().cast(), self.byte_count) }
        }
    }
}
