//! The definition in code.

use super::Kernel;
use crate::kernel::Width;
use crate::kernel::cpu::Scalar;
use crate::kernel::word::{Word, for_width};

impl Kernel for Scalar {
    fn join(&self, width: Width, rotate: bool, low: &[&[u8]], top: &[u8], out: &mut [u8]) {
        for (i, (element, top)) in out.chunks_exact_mut(width.bytes()).zip(top).enumerate() {
            let bytes = low.iter().filter_map(|low| low.get(i)).chain([top]);
            element.iter_mut().zip(bytes).for_each(|(to, byte)| *to = *byte);
        }
        if rotate {
            self.rotate_right(width, out);
        }
    }

    fn split(&self, width: Width, rotate: bool, elements: &[u8], low: &mut [&mut [u8]], top: &mut [u8]) {
        for_width!(width, W => for (i, top) in top.iter_mut().enumerate() {
            let element = W::get(elements, i);
            let element = if rotate { Word::rotate_left(element) } else { element };
            let planes = low.iter_mut().filter_map(|low| low.get_mut(i)).chain([top]);
            planes.zip(element.to_le_bytes()).for_each(|(to, byte)| *to = byte);
        });
    }

    fn rotate_right(&self, width: Width, data: &mut [u8]) {
        for_width!(width, W => for i in 0..data.len() / W::BYTES {
            Word::rotate_right(W::get(data, i)).set(data, i);
        });
    }
}
