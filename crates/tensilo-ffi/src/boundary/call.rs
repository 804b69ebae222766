//! The frame around every function of the C library: it checks arguments and returns a status.
//!
//! A panic must not unwind into C. [`call`] runs the body of a function, catches panics, and turns
//! errors and panics into a status. [`HandleSlot`] and [`close`] create and free handles. The
//! functions that check arguments refuse everything that is detectably wrong: null and misaligned
//! pointers, impossible lengths, strings that are not UTF-8.
//!
//! Everything else is trusted, because the header makes the caller responsible for it: a pointer
//! that is neither null nor misaligned points to a value of its type. This value lives long enough,
//! and is used concurrently only if the rules of its handle allow it.

use super::error::{Result, TENSILO_OK, tensilo_error, tensilo_status};
use super::values::{self, Options, Output, StructError};
use std::ffi::{CStr, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::ptr;
use std::slice;

fn check<T>(pointer: *const T, name: &str) -> Result<()> {
    if pointer.is_null() {
        return Err(tensilo_error::bad_argument(format!("{name} is NULL")));
    }
    if !pointer.is_aligned() {
        let bytes = align_of::<T>();
        return Err(tensilo_error::bad_argument(format!("{name} is not aligned to {bytes} bytes")));
    }
    Ok(())
}

/// Fails if a pointer cannot receive a result.
pub(crate) fn check_slot<T>(pointer: *mut T, name: &str) -> Result<()> {
    check(pointer, name)
}

/// Returns the value at a pointer.
///
/// # Safety
///
/// See the module documentation.
pub(crate) unsafe fn shared<'a, T>(pointer: *const T, name: &str) -> Result<&'a T> {
    check(pointer, name)?;
    // SAFETY: the pointer is neither null nor misaligned, and the caller promises the rest.
    Ok(unsafe { &*pointer })
}

/// Returns the value at a pointer, mutably.
///
/// # Safety
///
/// See the module documentation. In addition, nothing else uses the value at the same time.
pub(crate) unsafe fn exclusive<'a, T>(pointer: *mut T, name: &str) -> Result<&'a mut T> {
    check(pointer, name)?;
    // SAFETY: the pointer is neither null nor misaligned, and the caller promises the rest.
    Ok(unsafe { &mut *pointer })
}

/// Returns the array of `count` values at a pointer. The pointer may be null if `count` is 0.
///
/// # Safety
///
/// See the module documentation.
pub(crate) unsafe fn array<'a, T>(pointer: *const T, count: usize, name: &str) -> Result<&'a [T]> {
    if count == 0 {
        return Ok(&[]);
    }
    check(pointer, name)?;
    check_bytes::<T>(count, name)?;
    // SAFETY: the pointer is neither null nor misaligned, the length is possible, and the caller
    // promises the rest.
    Ok(unsafe { slice::from_raw_parts(pointer, count) })
}

/// Returns the caller's memory for output.
///
/// # Safety
///
/// See the module documentation. In addition, nothing else uses the memory at the same time. Its
/// content does not matter: memory from C counts as initialized, and is only written to.
pub(crate) unsafe fn memory<'a>(pointer: *mut u8, byte_count: usize, name: &str) -> Result<&'a mut [u8]> {
    if byte_count == 0 {
        return Ok(&mut []);
    }
    check(pointer, name)?;
    check_bytes::<u8>(byte_count, name)?;
    // SAFETY: the pointer is not null, the length is possible, and the caller promises the rest.
    Ok(unsafe { slice::from_raw_parts_mut(pointer, byte_count) })
}

fn check_bytes<T>(count: usize, name: &str) -> Result<()> {
    let bytes = count.checked_mul(size_of::<T>()).and_then(|bytes| isize::try_from(bytes).ok());
    bytes.map(|_| ()).ok_or_else(|| tensilo_error::bad_argument(format!("{name}: length {count} is too large")))
}

/// Returns a string.
///
/// # Safety
///
/// See the module documentation. In addition, the string ends with a NUL.
pub(crate) unsafe fn text<'a>(pointer: *const c_char, name: &str) -> Result<&'a str> {
    check(pointer, name)?;
    // SAFETY: the pointer is not null, and the caller promises that the string ends with a NUL.
    let text = unsafe { CStr::from_ptr(pointer) };
    text.to_str().map_err(|_| tensilo_error::bad_argument(format!("{name} is not UTF-8: {text:?}")))
}

/// Returns a path. It can be any bytes on Unix, and is UTF-8 elsewhere.
///
/// # Safety
///
/// The same as for [`text`].
pub(crate) unsafe fn path(pointer: *const c_char, name: &str) -> Result<PathBuf> {
    #[cfg(unix)]
    {
        use std::os::unix::ffi::OsStrExt;
        check(pointer, name)?;
        // SAFETY: the pointer is not null, and the caller promises that the string ends with a NUL.
        let bytes = unsafe { CStr::from_ptr(pointer) }.to_bytes();
        Ok(std::ffi::OsStr::from_bytes(bytes).into())
    }
    #[cfg(not(unix))]
    {
        // SAFETY: the caller's promise.
        unsafe { text(pointer, name) }.map(PathBuf::from)
    }
}

/// Returns an array of strings.
///
/// # Safety
///
/// The same as for [`array()`] and [`text`].
pub(crate) unsafe fn texts<'a>(pointer: *const *const c_char, count: usize, name: &str) -> Result<Vec<&'a str>> {
    // SAFETY: the caller's promise.
    let all = unsafe { array(pointer, count, name) }?.iter();
    // SAFETY: the caller's promise.
    all.map(|member| unsafe { text(*member, name) }).collect()
}

/// Writes a result to the caller's memory.
///
/// # Safety
///
/// See the module documentation.
pub(crate) unsafe fn write<T>(slot: *mut T, value: T, name: &str) -> Result<()> {
    check(slot, name)?;
    // SAFETY: the pointer is neither null nor misaligned, and the caller promises the rest.
    unsafe { slot.write(value) };
    Ok(())
}

/// Writes a result to the caller's memory, unless the pointer is null.
///
/// # Safety
///
/// See the module documentation.
pub(crate) unsafe fn write_if<T>(slot: *mut T, value: T, name: &str) -> Result<()> {
    // SAFETY: the caller's promise.
    if slot.is_null() { Ok(()) } else { unsafe { write(slot, value, name) } }
}

/// Fills the caller's struct, which states its size.
///
/// # Safety
///
/// See the module documentation.
pub(crate) unsafe fn fill<T: Output>(slot: *mut T, value: T, name: &str) -> Result<()> {
    // SAFETY: the caller's promise.
    unsafe { values::fill(slot, value) }.map_err(|wrong| struct_error(&wrong, name))
}

/// Reads an options struct, which states its size. Returns the defaults for a null pointer.
///
/// # Safety
///
/// See the module documentation.
pub(crate) unsafe fn options<T: Options>(slot: *const T, name: &str) -> Result<T> {
    // SAFETY: the caller's promise.
    unsafe { values::options(slot) }.map_err(|wrong| struct_error(&wrong, name))
}

#[cold]
fn struct_error(wrong: &StructError, name: &str) -> Box<tensilo_error> {
    tensilo_error::bad_argument(match wrong {
        StructError::Null => format!("{name} is NULL"),
        StructError::Misaligned => format!("{name} is not aligned"),
        StructError::Size(found, min_bytes) => {
            format!("{name}: struct_size is {found}, expected the size of the struct, which is at least {min_bytes}")
        }
        StructError::TooNew => {
            format!("{name} sets members that this release does not have: use the library that matches the header")
        }
    })
}

/// Parses a flag of an options struct.
pub(crate) fn flag(value: u32, name: &str) -> Result<bool> {
    match value {
        0 => Ok(false),
        1 => Ok(true),
        other => Err(tensilo_error::bad_argument(format!("{name} is {other}: pass 0 or 1"))),
    }
}

/// Runs the work of a call and returns its status. Panics become `TENSILO_ERROR_INTERNAL`.
///
/// # Safety
///
/// `error` is null, or valid for writing a pointer.
pub(crate) unsafe fn call(error: *mut *mut tensilo_error, work: impl FnOnce() -> Result<()>) -> tensilo_status {
    let result = without_panic(work).unwrap_or_else(|message| Err(tensilo_error::internal(&message)));
    let (status, made) = match result {
        Ok(()) => (TENSILO_OK, ptr::null_mut()),
        Err(error) => (error.status(), Box::into_raw(error)),
    };
    if error.is_null() {
        if !made.is_null() {
            // SAFETY: made above.
            drop(unsafe { Box::from_raw(made) });
        }
    } else {
        // SAFETY: valid for writing a pointer; it need not be aligned.
        unsafe { error.write_unaligned(made) };
    }
    status
}

/// Runs `work`. If it panics, returns the message of the panic.
fn without_panic<R>(work: impl FnOnce() -> R) -> std::result::Result<R, String> {
    // unwind safe: a panic can only leave the caller's handle in an unexpected state, and the
    // methods of a handle work in any state
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| {
        let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        let message = format!("a panic: {}", text.unwrap_or("no message"));
        std::mem::forget(panic); // its destructor could also panic
        message
    })
}

/// The caller's slot for a new handle, which holds NULL until it is filled.
pub(crate) struct HandleSlot<T>(*mut *mut T);

impl<T> HandleSlot<T> {
    /// Takes a slot and sets it to NULL.
    ///
    /// # Safety
    ///
    /// The pointer is null, or valid for writing a pointer, and nothing else uses it.
    pub unsafe fn new(slot: *mut *mut T, name: &str) -> Result<Self> {
        // SAFETY: the caller's promise.
        unsafe { write(slot, ptr::null_mut(), name) }?;
        Ok(Self(slot))
    }

    /// Stores a new handle in the slot.
    pub fn fill(self, value: T) {
        // SAFETY: checked in `new`.
        unsafe { self.0.write(Box::into_raw(Box::new(value))) };
    }
}

/// Closes a handle and sets its slot to NULL.
///
/// # Safety
///
/// The pointer is null, or points to a slot that holds NULL or a handle from [`HandleSlot::fill`].
/// Nothing uses the handle afterwards.
pub(crate) unsafe fn close<T>(slot: *mut *mut T) {
    // SAFETY: the caller's promise.
    let Some(slot) = (unsafe { slot.as_mut() }) else { return };
    let handle = std::mem::replace(slot, ptr::null_mut());
    if !handle.is_null() {
        // a panic in a destructor cannot be reported, so it is ignored
        // SAFETY: created by `fill` and taken out of its slot, so it is freed once.
        let _ = without_panic(|| drop(unsafe { Box::from_raw(handle) }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::boundary::error::{
        TENSILO_ERROR_BAD_ARGUMENT, TENSILO_ERROR_INTERNAL, tensilo_error_free, tensilo_error_text,
    };
    use std::ffi::CStr;

    fn text_of(work: impl FnOnce() -> Result<()>) -> (tensilo_status, String) {
        let mut error = ptr::null_mut();
        // SAFETY: a valid slot for an error, which is freed.
        unsafe {
            let status = call(&raw mut error, work);
            let text = CStr::from_ptr(tensilo_error_text(error)).to_str().unwrap().to_owned();
            tensilo_error_free(&raw mut error);
            (status, text)
        }
    }

    #[test]
    fn a_panic_is_an_internal_error() {
        let (status, text) = text_of(|| panic!("a fault of {}", "a test"));
        assert_eq!(status, TENSILO_ERROR_INTERNAL);
        assert!(text.contains("a panic: a fault of a test") && text.contains("report"), "{text}");
        let (status, text) = text_of(|| std::panic::panic_any(17));
        assert!(status == TENSILO_ERROR_INTERNAL && text.contains("no message"), "{text}");
    }

    #[test]
    fn an_error_without_an_out_pointer_is_only_a_status() {
        let refused = || Err(tensilo_error::bad_argument("no"));
        // SAFETY: NULL, so no error is written.
        assert_eq!(unsafe { call(ptr::null_mut(), refused) }, TENSILO_ERROR_BAD_ARGUMENT);
    }

    struct PanicsInDrop;

    impl Drop for PanicsInDrop {
        fn drop(&mut self) {
            panic!("a fault of a test");
        }
    }

    #[test]
    fn a_panic_of_closing_stays_inside() {
        let mut handle = ptr::null_mut();
        // SAFETY: a valid slot for a handle.
        unsafe {
            HandleSlot::new(&raw mut handle, "handle").ok().unwrap().fill(PanicsInDrop);
            assert!(!handle.is_null());
            close(&raw mut handle);
            assert!(handle.is_null());
            close(&raw mut handle);
        }
    }
}
