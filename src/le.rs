//! All byte order lives here: the file is little-endian, memory is native.

/// The `u16` at byte `AT` of a fixed-size structure; that it lies inside is proved when compiling.
pub(crate) fn u16_at<const AT: usize, const N: usize>(bytes: &[u8; N]) -> u16 {
    u16::from_le_bytes(array_at::<AT, 2, N>(bytes))
}

/// The `u32` at byte `AT`, see [`u16_at`].
pub(crate) fn u32_at<const AT: usize, const N: usize>(bytes: &[u8; N]) -> u32 {
    u32::from_le_bytes(array_at::<AT, 4, N>(bytes))
}

/// The `u64` at byte `AT`, see [`u16_at`].
pub(crate) fn u64_at<const AT: usize, const N: usize>(bytes: &[u8; N]) -> u64 {
    u64::from_le_bytes(array_at::<AT, 8, N>(bytes))
}

/// `M` bytes from byte `AT` of a structure of `N`.
pub(crate) fn array_at<const AT: usize, const M: usize, const N: usize>(bytes: &[u8; N]) -> [u8; M] {
    const { assert!(AT + M <= N) };
    let mut out = [0; M];
    out.copy_from_slice(&bytes[AT..AT + M]); // in bounds: asserted above when compiling
    out
}

/// Writes `field` at byte `AT` of a structure of `N`.
pub(crate) fn put<const AT: usize, const M: usize, const N: usize>(bytes: &mut [u8; N], field: [u8; M]) {
    const { assert!(AT + M <= N) };
    bytes[AT..AT + M].copy_from_slice(&field); // in bounds: asserted above when compiling
}

/// Element `index` of an array of little-endian `u32`.
pub(crate) fn u32_in(bytes: &[u8], index: usize) -> Option<u32> {
    let at = index.checked_mul(4)?;
    let field = bytes.get(at..at.checked_add(4)?)?;
    Some(u32::from_le_bytes(field.try_into().ok()?))
}

/// Reads fields one after the other; `None` where the bytes end too early.
pub(crate) struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(crate) fn remaining(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(head)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*head)
    }

    pub(crate) fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    pub(crate) fn f64(&mut self) -> Option<f64> {
        self.array().map(f64::from_le_bytes)
    }
}

/// Turns elements of `width` bytes from file order to memory order, or back (the same operation).
pub(crate) fn swap_to_native(width: usize, elements: &mut [u8]) {
    if cfg!(target_endian = "big") && width > 1 {
        for element in elements.chunks_exact_mut(width) {
            element.reverse();
        }
    }
}

/// Whether elements in the file can be used in memory as they are.
pub(crate) const FILE_ORDER_IS_NATIVE: bool = cfg!(target_endian = "little");
