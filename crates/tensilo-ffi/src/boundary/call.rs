//! The work that every function of the C library shares: it checks its arguments, and returns
//! panics and errors as a status.
//!
//! [`call`] runs the body of a function and lets no panic out. [`HandleSlot`] and [`close`] make
//! and free handles. The functions for arguments refuse what can be seen to be wrong: null and
//! misaligned pointers, impossible lengths, texts that are not UTF-8.
//!
//! All else is trusted. A pointer which is neither null nor misaligned points to what its type
//! says, lives long enough, and is used by nobody else at the same time unless the rules of the
//! handle allow it. The header asks callers for that.

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

/// Fails if a pointer cannot be a place for a result.
pub(crate) fn check_slot<T>(pointer: *mut T, name: &str) -> Result<()> {
    check(pointer, name)
}

/// Returns what is at a pointer.
///
/// # Safety
///
/// See the top of this file.
pub(crate) unsafe fn shared<'a, T>(pointer: *const T, name: &str) -> Result<&'a T> {
    check(pointer, name)?;
    // SAFETY: neither null nor misaligned, and what the caller says.
    Ok(unsafe { &*pointer })
}

/// Returns what is at a pointer, for changes.
///
/// # Safety
///
/// See the top of this file; nobody else uses it meanwhile.
pub(crate) unsafe fn exclusive<'a, T>(pointer: *mut T, name: &str) -> Result<&'a mut T> {
    check(pointer, name)?;
    // SAFETY: neither null nor misaligned, and what the caller says.
    Ok(unsafe { &mut *pointer })
}

/// Returns `count` things that begin at a pointer, which may be null if there are none.
///
/// # Safety
///
/// See the top of this file.
pub(crate) unsafe fn array<'a, T>(pointer: *const T, count: usize, name: &str) -> Result<&'a [T]> {
    if count == 0 {
        return Ok(&[]);
    }
    check(pointer, name)?;
    check_bytes::<T>(count, name)?;
    // SAFETY: neither null nor misaligned, of a length that memory can have, and what the caller
    // says.
    Ok(unsafe { slice::from_raw_parts(pointer, count) })
}

/// Returns memory of the caller to be written to.
///
/// # Safety
///
/// See the top of this file; nobody else uses the memory meanwhile. It may have any content: what C
/// lends counts as initialized, and is only written to.
pub(crate) unsafe fn memory<'a>(pointer: *mut u8, byte_count: usize, name: &str) -> Result<&'a mut [u8]> {
    if byte_count == 0 {
        return Ok(&mut []);
    }
    check(pointer, name)?;
    check_bytes::<u8>(byte_count, name)?;
    // SAFETY: not null, of a length that memory can have, and what the caller says.
    Ok(unsafe { slice::from_raw_parts_mut(pointer, byte_count) })
}

fn check_bytes<T>(count: usize, name: &str) -> Result<()> {
    let bytes = count.checked_mul(size_of::<T>()).and_then(|bytes| isize::try_from(bytes).ok());
    bytes.map(|_| ()).ok_or_else(|| tensilo_error::bad_argument(format!("{name} has {count} members: no memory has")))
}

/// Returns a text.
///
/// # Safety
///
/// See the top of this file; the text ends with a NUL.
pub(crate) unsafe fn text<'a>(pointer: *const c_char, name: &str) -> Result<&'a str> {
    check(pointer, name)?;
    // SAFETY: not null, and ends with a NUL.
    let text = unsafe { CStr::from_ptr(pointer) };
    text.to_str().map_err(|_| tensilo_error::bad_argument(format!("{name} is not UTF-8: {text:?}")))
}

/// Returns a path: on Unix any bytes, elsewhere UTF-8.
///
/// # Safety
///
/// As [`text`].
pub(crate) unsafe fn path(pointer: *const c_char, name: &str) -> Result<PathBuf> {
    #[cfg(unix)]
    {
        use std::os::unix::ffi::OsStrExt;
        check(pointer, name)?;
        // SAFETY: not null, and ends with a NUL.
        let bytes = unsafe { CStr::from_ptr(pointer) }.to_bytes();
        Ok(std::ffi::OsStr::from_bytes(bytes).into())
    }
    #[cfg(not(unix))]
    {
        // SAFETY: the caller's promise.
        unsafe { text(pointer, name) }.map(PathBuf::from)
    }
}

/// Returns texts.
///
/// # Safety
///
/// As [`array()`] and [`text`].
pub(crate) unsafe fn texts<'a>(pointer: *const *const c_char, count: usize, name: &str) -> Result<Vec<&'a str>> {
    // SAFETY: the caller's promise.
    let all = unsafe { array(pointer, count, name) }?.iter();
    // SAFETY: the caller's promise.
    all.map(|member| unsafe { text(*member, name) }).collect()
}

/// Writes a result to its place.
///
/// # Safety
///
/// See the top of this file.
pub(crate) unsafe fn write<T>(slot: *mut T, value: T, name: &str) -> Result<()> {
    check(slot, name)?;
    // SAFETY: neither null nor misaligned, and the caller's.
    unsafe { slot.write(value) };
    Ok(())
}

/// Writes a result to its place, unless that is null.
///
/// # Safety
///
/// See the top of this file.
pub(crate) unsafe fn write_if<T>(slot: *mut T, value: T, name: &str) -> Result<()> {
    // SAFETY: the caller's promise.
    if slot.is_null() { Ok(()) } else { unsafe { write(slot, value, name) } }
}

/// Fills a struct that states its size.
///
/// # Safety
///
/// See the top of this file.
pub(crate) unsafe fn fill<T: Output>(slot: *mut T, value: T, name: &str) -> Result<()> {
    // SAFETY: the caller's promise.
    unsafe { values::fill(slot, value) }.map_err(|wrong| struct_error(&wrong, name))
}

/// Reads options that state their size; the defaults of null.
///
/// # Safety
///
/// See the top of this file.
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
            format!("{name}: struct_size is {found}, and at least {min_bytes}: set it to the size of the struct")
        }
        StructError::TooNew => {
            format!("{name} has members that this release does not know: use the library of its header")
        }
    })
}

/// Returns a flag of options.
pub(crate) fn flag(value: u32, name: &str) -> Result<bool> {
    match value {
        0 => Ok(false),
        1 => Ok(true),
        other => Err(tensilo_error::bad_argument(format!("{name} is {other}: pass 0 or 1"))),
    }
}

/// Does the work of a call. No panic leaves it.
///
/// # Safety
///
/// `error` is null, or a place for a pointer.
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
        // SAFETY: a place for a pointer, which need not be aligned.
        unsafe { error.write_unaligned(made) };
    }
    status
}

/// Does work, and returns the message of its panic, if it panics.
fn without_panic<R>(work: impl FnOnce() -> R) -> std::result::Result<R, String> {
    // what a panic leaves behind is the caller's handle, of which each method works in any state
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| {
        let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        let message = format!("a panic: {}", text.unwrap_or("without a message"));
        std::mem::forget(panic); // dropping it may panic, too
        message
    })
}

/// A place of the caller for a handle, which has NULL until it is filled.
pub(crate) struct HandleSlot<T>(*mut *mut T);

impl<T> HandleSlot<T> {
    /// Takes a place, and sets it to NULL.
    ///
    /// # Safety
    ///
    /// The pointer is null, or a place for a pointer that nobody else uses.
    pub unsafe fn new(slot: *mut *mut T, name: &str) -> Result<Self> {
        // SAFETY: the caller's promise.
        unsafe { write(slot, ptr::null_mut(), name) }?;
        Ok(Self(slot))
    }

    /// Makes a handle.
    pub fn fill(self, value: T) {
        // SAFETY: checked when it was taken.
        unsafe { self.0.write(Box::into_raw(Box::new(value))) };
    }
}

/// Closes a handle, and sets its place to NULL.
///
/// # Safety
///
/// The pointer is null, or a place that has NULL or a handle of [`HandleSlot::fill`], which nobody
/// uses any more.
pub(crate) unsafe fn close<T>(slot: *mut *mut T) {
    // SAFETY: the caller's promise.
    let Some(slot) = (unsafe { slot.as_mut() }) else { return };
    let handle = std::mem::replace(slot, ptr::null_mut());
    if !handle.is_null() {
        // a handle that cannot be closed is left as it is
        // SAFETY: made by `fill`, and taken out of its place, so it is closed once.
        let _ = without_panic(|| drop(unsafe { Box::from_raw(handle) }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::boundary::error::{TENSILO_BAD_ARGUMENT, TENSILO_INTERNAL, tensilo_error_free, tensilo_error_text};
    use std::ffi::CStr;

    fn text_of(work: impl FnOnce() -> Result<()>) -> (tensilo_status, String) {
        let mut error = ptr::null_mut();
        // SAFETY: a place for an error, which is freed.
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
        assert_eq!(status, TENSILO_INTERNAL);
        assert!(text.contains("a panic: a fault of a test") && text.contains("report"), "{text}");
        let (status, text) = text_of(|| std::panic::panic_any(17));
        assert!(status == TENSILO_INTERNAL && text.contains("without a message"), "{text}");
    }

    #[test]
    fn an_error_without_an_out_pointer_is_only_a_status() {
        let refused = || Err(tensilo_error::bad_argument("no"));
        // SAFETY: no place for an error.
        assert_eq!(unsafe { call(ptr::null_mut(), refused) }, TENSILO_BAD_ARGUMENT);
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
        // SAFETY: a place for a handle.
        unsafe {
            HandleSlot::new(&raw mut handle, "handle").ok().unwrap().fill(PanicsInDrop);
            assert!(!handle.is_null());
            close(&raw mut handle);
            assert!(handle.is_null());
            close(&raw mut handle);
        }
    }
}
