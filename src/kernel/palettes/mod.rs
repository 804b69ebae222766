//! Values that numbers name in tables: the last step of the mapping *palette* (chapter 5.14 of the
//! specification).

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod generic;
#[cfg(target_arch = "aarch64")]
mod neon;
mod scalar;

use super::Width;
use super::implementation::{Implementation, implementations};

/// Tables of values. Those of consecutive elements take turns.
#[derive(Clone, Copy, Debug)]
pub struct PaletteTables<'a> {
    /// The width of a value.
    pub width: Width,
    /// Whether a number has two bytes instead of one.
    pub is_wide: bool,
    /// The values of all tables.
    pub values: &'a [u8],
    /// The value at which each table ends.
    pub ends: &'a [usize],
}

impl<'a> PaletteTables<'a> {
    /// Returns the bytes of a number.
    const fn number_bytes(&self) -> usize {
        if self.is_wide { 2 } else { 1 }
    }

    /// Returns the values of each table.
    fn tables(&self) -> impl Iterator<Item = &'a [u8]> {
        let Self { width, values, ends, .. } = *self;
        ends.iter().scan(0, move |start, &end| {
            let range = std::mem::replace(start, end) * width.bytes()..end * width.bytes();
            Some(values.get(range).unwrap_or(&[]))
        })
    }
}

/// The kernels of one instruction set. There are as many elements as numbers, and a table.
pub trait Kernel: Sync {
    /// See [`PaletteValues::look_up`].
    fn look_up(&self, tables: &PaletteTables<'_>, first: usize, numbers: &[u8], out: &mut [u8]) -> bool;
}

/// One implementation of palettes.
pub type PaletteValues = Implementation<dyn Kernel>;

impl PaletteValues {
    /// Sets `out` to the values of numbers. The first is in table `first` modulo their number, and
    /// each other in the table after that of the one before. Returns whether each table has the
    /// values of its numbers. If not, elements are unspecified.
    ///
    /// Each table has at least one value. `out` has an element for each number. If there are more
    /// numbers than elements, only the first are used. If there are fewer, the other elements keep
    /// their value.
    pub fn look_up(&self, tables: &PaletteTables<'_>, first: usize, numbers: &[u8], out: &mut [u8]) -> bool {
        let (v, w) = (tables.number_bytes(), tables.width.bytes());
        let count = (numbers.len() / v).min(out.len() / w);
        let Some(first) = first.checked_rem(tables.ends.len()) else { return count == 0 };
        // in bounds: `count` is the lesser of both
        self.kernel.look_up(tables, first, &numbers[..count * v], &mut out[..count * w])
    }
}

implementations!(Kernel);
