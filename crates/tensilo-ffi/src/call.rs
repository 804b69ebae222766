//! The border to C: errors, panics and handles.

use crate::error::{Result, tensilo_error};
use crate::status::{TENSILO_OK, tensilo_status};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

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
pub(crate) struct HandlePlace<T>(*mut *mut T);

impl<T> HandlePlace<T> {
    /// Takes a place, and sets it to NULL.
    ///
    /// # Safety
    ///
    /// The pointer is null, or a place for a pointer that nobody else uses.
    pub unsafe fn new(place: *mut *mut T, name: &str) -> Result<Self> {
        // SAFETY: the caller's promise.
        unsafe { crate::arguments::write(place, ptr::null_mut(), name) }?;
        Ok(Self(place))
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
/// The pointer is null, or a place that has NULL or a handle of [`HandlePlace::fill`], which nobody
/// uses any more.
pub(crate) unsafe fn close<T>(place: *mut *mut T) {
    // SAFETY: the caller's promise.
    let Some(place) = (unsafe { place.as_mut() }) else { return };
    let handle = std::mem::replace(place, ptr::null_mut());
    if !handle.is_null() {
        // a handle that cannot be closed is left as it is
        // SAFETY: made by `fill`, and taken out of its place, so it is closed once.
        let _ = without_panic(|| drop(unsafe { Box::from_raw(handle) }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::{tensilo_error_free, tensilo_error_text};
    use crate::status::{TENSILO_BAD_ARGUMENT, TENSILO_INTERNAL};
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
    fn an_error_without_a_place_is_only_a_status() {
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
            HandlePlace::new(&raw mut handle, "handle").ok().unwrap().fill(PanicsInDrop);
            assert!(!handle.is_null());
            close(&raw mut handle);
            assert!(handle.is_null());
            close(&raw mut handle);
        }
    }
}
