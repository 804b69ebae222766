//! The width of elements, and slices of whole elements.

/// Width of one element in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    /// 1 byte: 8 bit planes.
    W1 = 1,
    /// 2 bytes: 16 bit planes.
    W2 = 2,
    /// 4 bytes: 32 bit planes.
    W4 = 4,
    /// 8 bytes: 64 bit planes.
    W8 = 8,
}

impl Width {
    /// Returns the width in bytes.
    pub const fn bytes(self) -> usize {
        self as usize // exact: the discriminants are the widths
    }

    /// Returns the width of elements of `bytes` bytes. Returns `None` unless that is 1, 2, 4 or 8.
    pub const fn from_bytes(bytes: usize) -> Option<Self> {
        match bytes {
            1 => Some(Self::W1),
            2 => Some(Self::W2),
            4 => Some(Self::W4),
            8 => Some(Self::W8),
            _ => None,
        }
    }
}

/// Cuts both buffers to the whole elements that fit in either. Debug builds assert that this cuts
/// nothing off.
pub(super) fn whole_elements<'s, 'd>(width: Width, src: &'s [u8], dst: &'d mut [u8]) -> (&'s [u8], &'d mut [u8]) {
    debug_assert_eq!(src.len(), dst.len(), "source and destination differ in length");
    debug_assert_eq!(src.len() % width.bytes(), 0, "not a whole number of elements");
    let len = src.len().min(dst.len());
    let len = len - len % width.bytes();
    (&src[..len], &mut dst[..len]) // in bounds: `len` is at most the length of either
}

/// Returns how many elements both buffers have, of which `elements` has whole ones and `bytes` has
/// one byte for each. Debug builds assert that both have as many.
pub(super) fn common_count(width: Width, elements: &[u8], bytes: &[u8]) -> usize {
    debug_assert_eq!(elements.len(), bytes.len() * width.bytes(), "buffers differ in elements");
    bytes.len().min(elements.len() / width.bytes())
}
