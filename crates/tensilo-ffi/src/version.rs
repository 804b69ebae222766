//! The version of the library.

use std::ffi::c_char;

/// Returns the version of the library, such as `0.1.0`. It lives forever.
#[unsafe(no_mangle)]
pub extern "C" fn tensilo_version() -> *const c_char {
    const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");
    VERSION.as_ptr().cast()
}
