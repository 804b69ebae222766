//! Values that C reads and writes: texts, and structs that later releases may extend.
//!
//! A text ends with a NUL. A struct that may grow begins with `struct_size`, the size that the
//! caller was compiled with. A call fills or reads as many bytes of it as both sides know, so
//! programs and libraries of different releases work together. Members that only the caller knows
//! must be zero.

use std::ffi::c_char;
use std::mem::{MaybeUninit, size_of};
use std::path::Path;
use std::ptr;

/// A text that ends with a NUL, which its length does not count. If it has other NULs, C sees only
/// its beginning unless it looks at the length.
pub(crate) struct Text(Vec<u8>);

impl Text {
    pub fn new(text: impl Into<Vec<u8>>) -> Self {
        let mut bytes = text.into();
        bytes.push(0);
        Self(bytes)
    }

    /// Returns the bytes of a path, as the system takes them.
    pub fn from_path(path: &Path) -> Self {
        Self::new(path.as_os_str().as_encoded_bytes())
    }

    pub fn pointer(&self) -> *const c_char {
        self.0.as_ptr().cast()
    }

    /// Returns the pointer of a text, or NULL.
    pub fn pointer_of(text: Option<&Self>) -> *const c_char {
        text.map_or(ptr::null(), Self::pointer)
    }

    /// Returns the length in bytes, without the NUL at the end.
    pub fn byte_count(&self) -> usize {
        self.0.len().saturating_sub(1)
    }
}

/// A struct that calls fill.
///
/// # Safety
///
/// It is `repr(C)`, and its first member is `struct_size: usize`.
pub(crate) unsafe trait Output: Copy {
    /// The size in the first release that has it.
    const MIN_BYTES: usize = size_of::<Self>();
}

/// A struct with which the caller says what to do. Zero in each member is the default.
///
/// # Safety
///
/// As [`Output`]; and any bytes are a value of it.
pub(crate) unsafe trait Options: Output {}

/// A problem with the size that a struct states.
#[derive(Debug)]
pub(super) enum StructError {
    Null,
    Misaligned,
    /// The size that was found, and the least.
    Size(usize, usize),
    /// Members that this release does not know are set.
    TooNew,
}

const SIZE_BYTES: usize = size_of::<usize>();

/// No struct of any release has more bytes: a larger size was never set.
const MAX_STRUCT_BYTES: usize = 4096;

/// Returns the size that a struct states.
///
/// # Safety
///
/// The pointer is null, or points to a struct whose first member is its size.
unsafe fn stated_bytes<T: Output>(pointer: *const T) -> Result<usize, StructError> {
    if pointer.is_null() {
        return Err(StructError::Null);
    }
    if !pointer.is_aligned() {
        return Err(StructError::Misaligned);
    }
    // SAFETY: an aligned struct that begins with its size.
    let bytes = unsafe { pointer.cast::<usize>().read() };
    if bytes < T::MIN_BYTES || bytes > MAX_STRUCT_BYTES {
        Err(StructError::Size(bytes, T::MIN_BYTES))
    } else {
        Ok(bytes)
    }
}

/// Fills a struct of the caller, as far as it goes, and leaves its size as it is.
///
/// # Safety
///
/// The pointer is null, or points to a struct whose first member is its size, and which nobody else
/// uses meanwhile.
pub(super) unsafe fn fill<T: Output>(to: *mut T, value: T) -> Result<(), StructError> {
    // SAFETY: the caller's promise.
    let bytes = unsafe { stated_bytes(to) }?.min(size_of::<T>());
    let from = ptr::from_ref(&value).cast::<MaybeUninit<u8>>();
    // SAFETY: both have at least `bytes` bytes, which is more than the size takes; padding is
    // copied as it is. The value is ours, so they do not overlap.
    unsafe {
        let to = to.cast::<MaybeUninit<u8>>().add(SIZE_BYTES);
        ptr::copy_nonoverlapping(from.add(SIZE_BYTES), to, bytes.saturating_sub(SIZE_BYTES));
    }
    Ok(())
}

/// Reads options of the caller; the defaults, if the pointer is null. Members that the caller does
/// not know are zero.
///
/// # Safety
///
/// The pointer is null, or points to a struct whose first member is its size, and whose bytes are
/// initialized.
pub(super) unsafe fn options<T: Options>(from: *const T) -> Result<T, StructError> {
    let mut value = MaybeUninit::<T>::zeroed();
    if !from.is_null() {
        // SAFETY: the caller's promise.
        let stated = unsafe { stated_bytes(from) }?;
        let known = stated.min(size_of::<T>());
        // SAFETY: both have `known` bytes, and `from` has all that it states.
        unsafe {
            ptr::copy_nonoverlapping(from.cast::<MaybeUninit<u8>>(), value.as_mut_ptr().cast(), known);
            let unknown = std::slice::from_raw_parts(from.cast::<u8>().add(known), stated.saturating_sub(known));
            if unknown.iter().any(|byte| *byte != 0) {
                return Err(StructError::TooNew);
            }
        }
    }
    // SAFETY: any bytes are a value, zeros too.
    Ok(unsafe { value.assume_init() })
}
