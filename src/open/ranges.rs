//! Reading of many byte ranges at once.

use std::{fmt, io};

/// Bytes of a requested range that have arrived.
#[derive(Clone, Copy, Debug)]
pub struct Fragment<'a> {
    /// The number of the range in the request, counted from 0.
    pub range: usize,
    /// The offset of the first byte within the range.
    pub offset: usize,
    /// The bytes: the whole range, or some of it.
    pub bytes: &'a [u8],
}

/// A failure to read one of several ranges.
#[derive(Debug)]
pub struct RangeError {
    /// The number of the range that could not be read, counted from 0.
    pub range: usize,
    /// The error of the operating system.
    pub error: io::Error,
}

impl fmt::Display for RangeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "range {}: {}", self.range, self.error)
    }
}

impl std::error::Error for RangeError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.error)
    }
}
