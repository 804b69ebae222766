//! Conversion of elements to bytes.

use std::io;

/// Returns the bytes of one element as an array. Callers pass exactly `N` bytes; for fewer the
/// result is zero.
pub(super) fn element<const N: usize>(bytes: &[u8]) -> [u8; N] {
    bytes.first_chunk().map_or([0; N], |bytes| *bytes)
}

/// Writes elements, given in memory order, in little-endian order.
pub(super) fn write_little_endian(
    output: &mut impl io::Write,
    element_bytes: usize,
    elements: &[u8],
) -> io::Result<()> {
    if cfg!(target_endian = "little") || element_bytes == 1 {
        return output.write_all(elements);
    }
    for element in elements.chunks_exact(element_bytes) {
        element.iter().rev().try_for_each(|byte| output.write_all(&[*byte]))?;
    }
    Ok(())
}
