//! Palettes: tables of the values that occur.

use super::faults::{cut, malformed, malformed_block, number_width};
use crate::kernel::palettes::PaletteTables;
use crate::kernel::{Width, palettes};
use crate::le::Fields;
use crate::{Result, memory};

/// The bit of `palette_flags` that is set for floats.
const FLOAT: u8 = 1;
/// The most bytes of a number.
const MOST_NUMBER_BYTES: usize = 2;

/// Tables of values. Element `i` of a block is in table `i` modulo their number.
#[derive(Clone, Default)]
pub(in crate::codec) struct Palettes {
    is_wide: bool,
    pub(super) float: bool,
    pub(super) element_bytes: usize,
    /// The values of all palettes, in the byte order of the file.
    pub(super) values: Vec<u8>,
    /// The value at which each palette ends.
    pub(super) ends: Vec<usize>,
}

impl Palettes {
    pub(super) fn new(width: Width, float: bool, is_wide: bool) -> Self {
        Self { is_wide, float, element_bytes: width.bytes(), values: Vec::new(), ends: Vec::new() }
    }

    pub(super) fn number_width(&self) -> Width {
        if self.is_wide { Width::W2 } else { Width::W1 }
    }

    /// Becomes what `fields` state.
    pub(super) fn set(&mut self, width: Width, fields: &mut Fields<'_>) -> Result<()> {
        let [number_bytes, flags, count, reserved] = fields.array().ok_or_else(cut)?;
        self.is_wide = number_width(number_bytes, width.bytes().min(MOST_NUMBER_BYTES))? == Width::W2;
        if flags > FLOAT || count == 0 || reserved != 0 {
            return Err(malformed("palette_flags, palette_count or the reserved byte"));
        }
        self.float = flags == FLOAT;
        self.element_bytes = width.bytes();
        self.values.clear();
        self.ends.clear();
        for _ in 0..count {
            let greatest = u16::from_le_bytes(fields.array().ok_or_else(cut)?);
            self.set_palette(width, usize::from(greatest) + 1, fields)?;
        }
        Ok(())
    }

    fn set_palette(&mut self, width: Width, count: usize, fields: &mut Fields<'_>) -> Result<()> {
        if count > fields.remaining() {
            return Err(cut()); // a step has at least one byte
        }
        memory::reserve(&mut self.values, count * width.bytes())?;
        let mut line = Line::new(width, self.float);
        for _ in 0..count {
            let value = line.value(step(width, fields)?);
            self.values.extend(value.to_le_bytes().iter().take(width.bytes()));
        }
        self.ends.push(self.values.len() / width.bytes());
        Ok(())
    }

    pub(super) fn write(&self, tables: &mut Vec<u8>) {
        let Some(width) = Width::from_bytes(self.element_bytes) else { return };
        let count = self.ends.len() as u8; // exact: writers make at most 255
        let flags = if self.float { FLOAT } else { 0 };
        tables.extend([self.number_width() as u8, flags, count, 0]); // exact: a width
        for palette in self.palettes() {
            // exact: at most 2^16 values
            let greatest = (palette.len() / width.bytes()).saturating_sub(1) as u16;
            tables.extend(greatest.to_le_bytes());
            let mut line = Line::new(width, self.float);
            for value in palette.chunks_exact(width.bytes()) {
                let mut wide = [0; 8];
                wide.iter_mut().zip(value).for_each(|(to, from)| *to = *from);
                write_step(line.step(u64::from_le_bytes(wide)), tables);
            }
        }
    }

    /// Returns the values of each palette.
    pub(super) fn palettes(&self) -> impl Iterator<Item = &[u8]> {
        self.ends.iter().scan(0, |start, &end| {
            let range = std::mem::replace(start, end) * self.element_bytes..end * self.element_bytes;
            Some(self.values.get(range).unwrap_or(&[]))
        })
    }

    pub(super) fn describe(&self) -> String {
        match &self.ends[..] {
            [count] => format!("a palette of {count} values"),
            ends => format!("{} palettes, {} values in all", ends.len(), self.values.len() / self.element_bytes.max(1)),
        }
    }

    /// Sets `out` to the values of numbers, of which the first is that of element `first` of its
    /// block. Checks of them.
    pub(super) fn elements(&self, numbers: &[u8], first: usize, out: &mut [u8]) -> Result<()> {
        // always: widths are those of elements
        let Some(width) = Width::from_bytes(self.element_bytes) else { return Ok(()) };
        let tables = PaletteTables { width, is_wide: self.is_wide, values: &self.values, ends: &self.ends };
        match palettes::best().look_up(&tables, first, numbers, out) {
            true => Ok(()),
            false => Err(malformed_block("a number is greater than those of its palette")),
        }
    }
}

/// Values that are predicted to lie on a line.
struct Line {
    top: u64,
    float: bool,
    last: u64,
    before: u64,
}

impl Line {
    fn new(width: Width, float: bool) -> Self {
        Self { top: 1 << (8 * width.bytes() - 1), float, last: 0, before: 0 }
    }

    /// Returns the integers modulo this, less one.
    fn mask(&self) -> u64 {
        self.top | (self.top - 1)
    }

    /// Maps a value to an integer that ascends as floats do, or back.
    fn mapped(&self, value: u64) -> u64 {
        if self.float && value & self.top != 0 { value ^ (self.top - 1) } else { value }
    }

    fn predicted(&self) -> u64 {
        self.last.wrapping_mul(2).wrapping_sub(self.before)
    }

    fn go_on(&mut self, m: u64) {
        (self.before, self.last) = (self.last, m);
    }

    /// Returns the next value.
    fn value(&mut self, step: u64) -> u64 {
        let residual = (step >> 1) ^ (step & 1).wrapping_neg();
        let m = self.predicted().wrapping_add(residual) & self.mask();
        self.go_on(m);
        self.mapped(m)
    }

    /// Returns the step to the next value.
    fn step(&mut self, value: u64) -> u64 {
        let m = self.mapped(value);
        let residual = m.wrapping_sub(self.predicted()) & self.mask();
        self.go_on(m);
        let doubled = residual << 1;
        (if residual & self.top != 0 { !doubled } else { doubled }) & self.mask()
    }
}

/// Reads a step.
fn step(width: Width, fields: &mut Fields<'_>) -> Result<u64> {
    let bits = 8 * width.bytes();
    let mut step = 0;
    let mut at = 0;
    loop {
        let [byte] = fields.array().ok_or_else(cut)?;
        let value = u64::from(byte & 0x7F);
        // no bit beyond the width, and no last byte of zeros but the first
        if at >= bits || bits - at < 7 && value >> (bits - at) != 0 || byte == 0 && at > 0 {
            return Err(malformed("a step is too great or too long"));
        }
        step |= value << at;
        at += 7;
        if byte & 0x80 == 0 {
            return Ok(step);
        }
    }
}

fn write_step(mut step: u64, tables: &mut Vec<u8>) {
    while step >= 0x80 {
        tables.push(step as u8 | 0x80); // the lowest bits
        step >>= 7;
    }
    tables.push(step as u8); // exact: below 2^7
}
