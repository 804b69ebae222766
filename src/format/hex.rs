//! Ids as text.

use std::fmt;

/// Writes the bytes of an id as hexadecimal digits.
pub(super) fn hex(bytes: &[u8], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
}
