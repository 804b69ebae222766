//! The definition in code.

use super::{Kernel, PaletteTables};
use crate::kernel::cpu::Scalar;

impl Kernel for Scalar {
    fn look_up(&self, tables: &PaletteTables<'_>, first: usize, numbers: &[u8], out: &mut [u8]) -> bool {
        let w = tables.width.bytes();
        let all: Vec<&[u8]> = tables.tables().collect();
        let each = numbers.chunks_exact(tables.number_bytes()).zip(out.chunks_exact_mut(w));
        let mut each = each.zip(all.iter().cycle().skip(first));
        each.all(|((number, element), table)| {
            let index = number.iter().rev().fold(0, |index, &byte| index << 8 | usize::from(byte));
            let value = table.get(index * w..index * w + w);
            value.is_some_and(|value| {
                element.copy_from_slice(value); // equal lengths
                true
            })
        })
    }
}
