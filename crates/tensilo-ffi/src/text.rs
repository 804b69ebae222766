//! Texts for C.

use std::ffi::c_char;
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
    pub fn of_path(path: &Path) -> Self {
        Self::new(path.as_os_str().as_encoded_bytes())
    }

    pub fn pointer(&self) -> *const c_char {
        self.0.as_ptr().cast()
    }

    /// Returns the length in bytes, without the NUL at the end.
    pub fn byte_count(&self) -> usize {
        self.0.len().saturating_sub(1)
    }
}

/// Returns the pointer of a text, or NULL.
pub(crate) fn pointer(text: Option<&Text>) -> *const c_char {
    text.map_or(ptr::null(), Text::pointer)
}
