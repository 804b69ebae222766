//! Little-endian fields of the file.
//!
//! [`structure!`] declares the layout of a fixed structure as a table of offsets and types, like
//! the tables in the specification. The compiler proves that the fields cover every byte exactly
//! once, so no access is out of bounds and no reserved byte is forgotten. [`Fields`] reads fields
//! that have no fixed offset.

use std::marker::PhantomData;

/// The type of a field: an integer, a float or bytes.
pub(crate) trait FieldValue: Copy {
    /// Reads the value from its bytes in the file. `bytes` has the length of the value.
    fn load(bytes: &[u8]) -> Self;

    /// Writes the value to its bytes in the file. `bytes` has the length of the value.
    fn store(self, bytes: &mut [u8]);
}

macro_rules! field_values {
    ($($number:ty),*) => {$(
        impl FieldValue for $number {
            #[inline]
            fn load(bytes: &[u8]) -> Self {
                Self::from_le_bytes(FieldValue::load(bytes))
            }

            #[inline]
            fn store(self, bytes: &mut [u8]) {
                self.to_le_bytes().store(bytes);
            }
        }
    )*};
}

field_values!(u8, u16, u32, u64, f64);

impl<const M: usize> FieldValue for [u8; M] {
    #[inline]
    fn load(bytes: &[u8]) -> Self {
        let mut value = [0; M];
        value.copy_from_slice(bytes); // equal lengths, as the trait requires
        value
    }

    #[inline]
    fn store(self, bytes: &mut [u8]) {
        bytes.copy_from_slice(&self); // equal lengths, as the trait requires
    }
}

/// A field of type `T` at byte `AT` of a structure of `N` bytes; see [`structure!`].
pub(crate) struct Field<T, const AT: usize, const N: usize>(PhantomData<T>);

impl<T: FieldValue, const AT: usize, const N: usize> Field<T, AT, N> {
    /// Declares a field. Fails to compile if the field reaches beyond the structure.
    pub(crate) const fn new() -> Self {
        const { assert!(AT + size_of::<T>() <= N, "the field reaches beyond its structure") };
        Self(PhantomData)
    }

    /// Returns the offset of the field in its structure.
    pub(crate) const fn offset(self) -> usize {
        AT
    }

    /// Reads the field.
    #[inline]
    pub(crate) fn get(self, structure: &[u8; N]) -> T {
        T::load(&structure[AT..AT + size_of::<T>()]) // in bounds: `new` has asserted it
    }

    /// Writes the field.
    #[inline]
    pub(crate) fn put(self, structure: &mut [u8; N], value: T) {
        value.store(&mut structure[AT..AT + size_of::<T>()]); // in bounds: `new` has asserted it
    }
}

/// Declares the fields of a structure of the file, at the offsets that the specification lists.
///
/// ```text
/// structure! {
///     /// The fields of an entry.
///     mod entry: 16 bytes {
///         0 => STORED_BYTES: u32,
///         4 => RAW_BYTES: u32,
///         8 => RESERVED: u64,
///     }
/// }
/// ```
///
/// declares `entry::SIZE` and a [`Field`] for each line, such as `entry::STORED_BYTES`. It compiles
/// only if every byte of the structure is in exactly one field. `mod b: 64 bytes with a` declares
/// the fields of `b` that are not in the structure `a`.
macro_rules! structure {
    (
        $(#[$meta:meta])*
        $visibility:vis mod $name:ident: $size:literal bytes $(with $common:ident)? {
            $($at:literal => $field:ident: $type:ty),* $(,)?
        }
    ) => {
        $(#[$meta])*
        $visibility mod $name {
            use $crate::bytes::le::{Field, field_mask};

            /// The length of the structure in bytes.
            #[allow(dead_code, reason = "region headers share one constant")]
            pub(crate) const SIZE: usize = $size;
            $(pub(crate) const $field: Field<$type, $at, $size> = Field::new();)*

            /// A mask of the bytes that these fields cover, with one bit per byte.
            pub(crate) const FIELD_MASK: u64 = field_mask(&[$(($at, size_of::<$type>())),*]);
        }

        const _: () = {
            let common = 0 $(| $common::FIELD_MASK)?;
            assert!($name::FIELD_MASK & common == 0, "a field overlaps a common field");
            assert!($name::FIELD_MASK | common == u64::MAX >> (64 - $size), "a byte is not in any field");
        };
    };
}

pub(crate) use structure;

/// Returns a mask of the bytes that fields with these offsets and lengths cover, with one bit per
/// byte. Fails to compile if two fields overlap. A structure has at most 64 bytes.
pub(crate) const fn field_mask(fields: &[(usize, usize)]) -> u64 {
    let mut mask = 0;
    let mut i = 0;
    while i < fields.len() {
        let (offset, length) = fields[i]; // in bounds: checked by the loop condition
        let bytes = u64::MAX >> (64 - length) << offset;
        assert!(mask & bytes == 0, "two fields overlap");
        mask |= bytes;
        i += 1;
    }
    mask
}

/// Converts a length or index. This is exact, because a `usize` has at most 64 bits.
pub(crate) const fn u64_of(length: usize) -> u64 {
    const { assert!(usize::BITS <= u64::BITS) };
    length as u64
}

/// Returns element `index` of an array of `u32`; `None` if the index is beyond its end.
pub(crate) fn u32_in(bytes: &[u8], index: usize) -> Option<u32> {
    let at = index.checked_mul(4)?;
    let field = bytes.get(at..at.checked_add(4)?)?;
    Some(u32::from_le_bytes(field.try_into().ok()?))
}

/// Reads fields one after another. Each call returns `None` if fewer bytes are left than it needs.
pub(crate) struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// Returns the number of bytes left.
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

    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }
}

/// Converts elements of `width` bytes in place between the byte order of the file and the byte
/// order of this machine. Both directions are the same operation.
pub(crate) fn swap_to_native(width: usize, elements: &mut [u8]) {
    if cfg!(target_endian = "big") && width > 1 {
        for element in elements.chunks_exact_mut(width) {
            element.reverse();
        }
    }
}

/// Whether the elements of a file can be used in memory without swapping their bytes.
pub(crate) const FILE_ORDER_IS_NATIVE: bool = cfg!(target_endian = "little");
