//! Byte planes (chapters 5.8 and 5.10 of the specification), and the rotation of elements (chapter
//! 5.6).
//!
//! Byte plane `j` contains byte `j` of each element; byte 0 is the least significant. The plane of
//! the most significant bytes is the *top* plane, and the others are the *low* planes. If a float
//! is rotated left by one bit, its exponent is in the top plane.
//!
//! The vector loops copy blocks of constant length to and from arrays. The compiler then knows that
//! nothing overlaps, and vectorizes the loops for each instruction set.

use super::dispatch::{Implementation, Scalar, implement, implementations};
use super::{BLOCK, Width, Word, block, for_width, set_block};

/// The kernels of one instruction set. All slices have the lengths that [`BytePlanes`] requires.
pub trait Kernel: Sync {
    /// See [`BytePlanes::join`].
    fn join(&self, width: Width, rotate: bool, low: &[&[u8]], top: &[u8], out: &mut [u8]);
    /// See [`BytePlanes::split`].
    fn split(&self, width: Width, rotate: bool, elements: &[u8], low: &mut [&mut [u8]], top: &mut [u8]);
    /// See [`BytePlanes::rotate_right`].
    fn rotate_right(&self, width: Width, data: &mut [u8]);
}

/// One implementation of the kernels for byte planes.
pub type BytePlanes = Implementation<dyn Kernel>;

impl BytePlanes {
    /// Joins elements from their byte planes, then rotates each right by one bit if `rotate` is
    /// set.
    ///
    /// `low` must have `width - 1` planes, each as long as `top`, and `out` must be `width` times
    /// as long as `top`. Debug builds assert this. Release builds write nothing if a length is
    /// wrong.
    pub fn join(&self, width: Width, rotate: bool, low: &[&[u8]], top: &[u8], out: &mut [u8]) {
        let fits = low.len() + 1 == width.bytes()
            && low.iter().all(|low| low.len() == top.len())
            && out.len() == top.len() * width.bytes();
        debug_assert!(fits, "the buffers have different numbers of elements");
        if fits {
            self.kernel.join(width, rotate, low, top, out);
        }
    }

    /// Splits elements into their byte planes: the inverse of [`join`](Self::join), under the same
    /// conditions. If `rotate` is set, first rotates each element left by one bit.
    pub fn split(&self, width: Width, rotate: bool, elements: &[u8], low: &mut [&mut [u8]], top: &mut [u8]) {
        let fits = low.len() + 1 == width.bytes()
            && low.iter().all(|low| low.len() == top.len())
            && elements.len() == top.len() * width.bytes();
        debug_assert!(fits, "the buffers have different numbers of elements");
        if fits {
            self.kernel.split(width, rotate, elements, low, top);
        }
    }

    /// Rotates each whole element of `data` right by one bit.
    pub fn rotate_right(&self, width: Width, data: &mut [u8]) {
        self.kernel.rotate_right(width, data);
    }
}

implementations!(Kernel);

// ---- the definition in code

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

// ---- vectors

implement!([Avx2, Avx512, Neon] Kernel {
    fn join(width: Width, rotate: bool, low: &[&[u8]], top: &[u8], out: &mut [u8]) => { join }
    fn split(width: Width, rotate: bool, elements: &[u8], low: &mut [&mut [u8]], top: &mut [u8]) => { split }
    fn rotate_right(width: Width, data: &mut [u8]) => { rotate_right }
});

/// See [`Kernel::join`].
#[inline(always)]
fn join<T>(_: T, width: Width, rotate: bool, low: &[&[u8]], top: &[u8], out: &mut [u8]) {
    match (width, low) {
        (Width::W1, []) => join_width::<u8, 1>(rotate, [top], out),
        (Width::W2, &[a]) => join_width::<u16, 2>(rotate, [a, top], out),
        (Width::W4, &[a, b, c]) => join_width::<u32, 4>(rotate, [a, b, c, top], out),
        (Width::W8, &[a, b, c, d, e, f, g]) => join_width::<u64, 8>(rotate, [a, b, c, d, e, f, g, top], out),
        _ => debug_assert!(false, "`BytePlanes::join` has counted the planes"),
    }
}

#[inline(always)]
fn join_width<W: Word, const N: usize>(rotate: bool, planes: [&[u8]; N], out: &mut [u8]) {
    if rotate {
        join_blocks::<W, N, true>(planes, out);
    } else {
        join_blocks::<W, N, false>(planes, out);
    }
}

#[inline(always)]
fn join_blocks<W: Word, const N: usize, const ROTATE: bool>(planes: [&[u8]; N], out: &mut [u8]) {
    let joined = |bytes: [u8; N]| {
        let element = W::get(&bytes, 0);
        if ROTATE { element.rotate_right() } else { element }
    };
    let mut blocks = out.chunks_exact_mut(BLOCK * N);
    let mut first = 0;
    for elements in &mut blocks {
        let planes = planes.map(|plane| block(plane, first));
        for i in 0..BLOCK {
            joined(planes.map(|plane| plane[i])).set(elements, i); // in bounds: i < BLOCK
        }
        first += BLOCK;
    }
    for (i, element) in blocks.into_remainder().chunks_exact_mut(N).enumerate() {
        joined(planes.map(|plane| plane.get(first + i).copied().unwrap_or(0))).set(element, 0);
    }
}

/// See [`Kernel::split`].
#[inline(always)]
fn split<T>(_: T, width: Width, rotate: bool, elements: &[u8], low: &mut [&mut [u8]], top: &mut [u8]) {
    match (width, low) {
        (Width::W1, []) => split_width::<u8, 1>(rotate, elements, [top]),
        (Width::W2, [a]) => split_width::<u16, 2>(rotate, elements, [a, top]),
        (Width::W4, [a, b, c]) => split_width::<u32, 4>(rotate, elements, [a, b, c, top]),
        (Width::W8, [a, b, c, d, e, f, g]) => split_width::<u64, 8>(rotate, elements, [a, b, c, d, e, f, g, top]),
        _ => debug_assert!(false, "`BytePlanes::split` has counted the planes"),
    }
}

#[inline(always)]
fn split_width<W: Word, const N: usize>(rotate: bool, elements: &[u8], planes: [&mut [u8]; N]) {
    if rotate {
        split_blocks::<W, N, true>(elements, planes);
    } else {
        split_blocks::<W, N, false>(elements, planes);
    }
}

#[inline(always)]
fn split_blocks<W: Word, const N: usize, const ROTATE: bool>(elements: &[u8], mut planes: [&mut [u8]; N]) {
    let split = |element: W| {
        let mut bytes = [0; N];
        if ROTATE { element.rotate_left() } else { element }.set(&mut bytes, 0);
        bytes
    };
    let blocks = elements.chunks_exact(BLOCK * N);
    let tail = blocks.remainder();
    let mut first = 0;
    for elements in blocks {
        // the compiler cannot prove that `planes` and `elements` do not overlap, but it can for
        // `parts`
        let mut parts = [[0; BLOCK]; N];
        for i in 0..BLOCK {
            let bytes = split(W::get(elements, i));
            for (part, byte) in parts.iter_mut().zip(bytes) {
                part[i] = byte; // in bounds: i < BLOCK
            }
        }
        for (plane, part) in planes.iter_mut().zip(&parts) {
            set_block(plane, first, part);
        }
        first += BLOCK;
    }
    for (i, element) in tail.chunks_exact(N).enumerate() {
        for (plane, byte) in planes.iter_mut().zip(split(W::get(element, 0))) {
            if let Some(to) = plane.get_mut(first + i) {
                *to = byte;
            }
        }
    }
}

/// See [`Kernel::rotate_right`].
#[inline(always)]
fn rotate_right<T>(_: T, width: Width, data: &mut [u8]) {
    for_width!(width, W => {
        let mut blocks = data.chunks_exact_mut(BLOCK);
        for block in &mut blocks {
            rotate_each::<W>(block);
        }
        rotate_each::<W>(blocks.into_remainder());
    });
}

#[inline(always)]
fn rotate_each<W: Word>(data: &mut [u8]) {
    for i in 0..data.len() / W::BYTES {
        W::get(data, i).rotate_right().set(data, i);
    }
}
