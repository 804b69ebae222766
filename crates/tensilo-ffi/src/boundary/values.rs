//! Values that C reads and writes: strings, and structs that later releases may extend.
//!
//! A string ends with a NUL. A struct that may grow starts with `struct_size`, the size of the
//! struct when the caller was compiled. A call fills or reads only the bytes that both sides have,
//! so programs and libraries of different releases work together. Options that the library does not
//! know must be zero, because it cannot honor them.

use std::ffi::c_char;
use std::mem::{MaybeUninit, size_of};
use std::path::Path;
use std::ptr;

/// A string that ends with a NUL, which its length does not include. If it contains other NULs, C
/// code that ignores the length sees only the text before the first NUL.
pub(crate) struct Text(Vec<u8>);

impl Text {
    pub fn new(text: impl Into<Vec<u8>>) -> Self {
        let mut bytes = text.into();
        bytes.push(0);
        Self(bytes)
    }

    /// Returns the bytes of a path, as the system expects them.
    pub fn from_path(path: &Path) -> Self {
        Self::new(path.as_os_str().as_encoded_bytes())
    }

    pub fn pointer(&self) -> *const c_char {
        self.0.as_ptr().cast()
    }

    /// Returns the pointer to a string, or NULL.
    pub fn pointer_of(text: Option<&Self>) -> *const c_char {
        text.map_or(ptr::null(), Self::pointer)
    }

    /// Returns the length in bytes, without the final NUL.
    pub fn byte_count(&self) -> usize {
        self.0.len().saturating_sub(1)
    }
}

/// A struct that a call fills.
///
/// # Safety
///
/// It is `repr(C)`, and its first member is `struct_size: usize`.
pub(crate) unsafe trait Output: Copy {
    /// The size of the struct in the first release that has it.
    const MIN_BYTES: usize = size_of::<Self>();
}

/// A struct of options. In each member, zero selects the default.
///
/// # Safety
///
/// The same as for [`Output`]. In addition, any bytes are a valid value.
pub(crate) unsafe trait Options: Output {}

/// A problem with a struct that states its size.
#[derive(Debug)]
pub(super) enum StructError {
    Null,
    Misaligned,
    /// The stated size, and the minimum.
    Size(usize, usize),
    /// Members that this release does not have are set.
    TooNew,
}

const SIZE_BYTES: usize = size_of::<usize>();

/// The maximum size of a struct in any release. A larger stated size must come from uninitialized
/// memory.
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
    // SAFETY: an aligned struct that starts with its size.
    let bytes = unsafe { pointer.cast::<usize>().read() };
    if bytes < T::MIN_BYTES || bytes > MAX_STRUCT_BYTES {
        Err(StructError::Size(bytes, T::MIN_BYTES))
    } else {
        Ok(bytes)
    }
}

/// Fills the members of the caller's struct that its size covers, but not the size itself.
///
/// # Safety
///
/// The pointer is null, or points to a struct whose first member is its size. Nothing else uses the
/// struct at the same time.
pub(super) unsafe fn fill<T: Output>(to: *mut T, value: T) -> Result<(), StructError> {
    // SAFETY: the caller's promise.
    let bytes = unsafe { stated_bytes(to) }?.min(size_of::<T>());
    let from = ptr::from_ref(&value).cast::<MaybeUninit<u8>>();
    // SAFETY: both have at least `bytes` bytes, which includes the size; padding may be
    // uninitialized, hence `MaybeUninit`. The value is local, so they do not overlap.
    unsafe {
        let to = to.cast::<MaybeUninit<u8>>().add(SIZE_BYTES);
        ptr::copy_nonoverlapping(from.add(SIZE_BYTES), to, bytes.saturating_sub(SIZE_BYTES));
    }
    Ok(())
}

/// Reads the caller's options. For a null pointer, returns the defaults. Members that the caller's
/// struct lacks are zero.
///
/// # Safety
///
/// The pointer is null, or points to a struct whose first member is its size. All bytes of the
/// struct are initialized.
pub(super) unsafe fn options<T: Options>(from: *const T) -> Result<T, StructError> {
    let mut value = MaybeUninit::<T>::zeroed();
    if !from.is_null() {
        // SAFETY: the caller's promise.
        let stated = unsafe { stated_bytes(from) }?;
        let known = stated.min(size_of::<T>());
        // SAFETY: both have `known` bytes, and `from` has as many bytes as it states.
        unsafe {
            ptr::copy_nonoverlapping(from.cast::<MaybeUninit<u8>>(), value.as_mut_ptr().cast(), known);
            let unknown = std::slice::from_raw_parts(from.cast::<u8>().add(known), stated.saturating_sub(known));
            if unknown.iter().any(|byte| *byte != 0) {
                return Err(StructError::TooNew);
            }
        }
    }
    // SAFETY: any bytes are a valid value, including zeros.
    Ok(unsafe { value.assume_init() })
}
