//! Arguments of C, checked as far as they can be.

use crate::error::{Result, tensilo_error};
use crate::versioned::{self, Options, Output, WrongStruct};
use std::ffi::{CStr, c_char};
use std::path::PathBuf;
use std::slice;

// Each of these functions trusts that a pointer which is neither null nor misaligned points to what
// its type says, lives long enough, and is used by nobody else at the same time unless the rules of
// the handle allow it. The header asks callers for that.

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
pub(crate) fn check_place<T>(pointer: *mut T, name: &str) -> Result<()> {
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
pub(crate) unsafe fn write<T>(place: *mut T, value: T, name: &str) -> Result<()> {
    check(place, name)?;
    // SAFETY: neither null nor misaligned, and the caller's.
    unsafe { place.write(value) };
    Ok(())
}

/// Writes a result to its place, unless that is null.
///
/// # Safety
///
/// See the top of this file.
pub(crate) unsafe fn write_if<T>(place: *mut T, value: T, name: &str) -> Result<()> {
    // SAFETY: the caller's promise.
    if place.is_null() { Ok(()) } else { unsafe { write(place, value, name) } }
}

/// Fills a struct that states its size.
///
/// # Safety
///
/// See the top of this file.
pub(crate) unsafe fn fill<T: Output>(place: *mut T, value: T, name: &str) -> Result<()> {
    // SAFETY: the caller's promise.
    unsafe { versioned::fill(place, value) }.map_err(|wrong| wrong_struct(&wrong, name))
}

/// Reads options that state their size; the defaults of null.
///
/// # Safety
///
/// See the top of this file.
pub(crate) unsafe fn options<T: Options>(place: *const T, name: &str) -> Result<T> {
    // SAFETY: the caller's promise.
    unsafe { versioned::options(place) }.map_err(|wrong| wrong_struct(&wrong, name))
}

#[cold]
fn wrong_struct(wrong: &WrongStruct, name: &str) -> Box<tensilo_error> {
    tensilo_error::bad_argument(match wrong {
        WrongStruct::Null => format!("{name} is NULL"),
        WrongStruct::Misaligned => format!("{name} is not aligned"),
        WrongStruct::Size(found, least) => {
            format!("{name}: struct_size is {found}, and at least {least}: set it to the size of the struct")
        }
        WrongStruct::TooNew => {
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
