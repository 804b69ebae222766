//! What every instruction set shares: loops over blocks of one length, which the compiler turns into vectors once it knows
//! which it may use. Each function here is part of a function that says so ([`implement`]).

use super::Prediction;
use super::scalar::{Word, for_width};
use super::undo::Isa;
use crate::kernel::Width;

/// Bytes of a block: a vector of AVX-512, two of AVX2, four of NEON.
pub(super) const BLOCK: usize = 64;

/// Implements [`Kernel`](super::Kernel) for an [`Isa`] that has some features: compiles all of it for them.
macro_rules! implement {
    ($isa:ident, $features:tt) => {
        $crate::kernel::words::body::implement! { $isa, $features,
            join(width: Width, rotate: bool, low: &[&[u8]], top: &[u8], out: &mut [u8]) in body;
            split(width: Width, rotate: bool, elements: &[u8], low: &mut [&mut [u8]], top: &mut [u8]) in body;
            rotate_right(width: Width, data: &mut [u8]) in body;
            residuals(prediction: &Prediction, width: Width, elements: &[u8], out: &mut [u8]) in residuals;
            undo(prediction: &Prediction, width: Width, data: &mut [u8]) in undo;
        }
    };
    ($isa:ident, $features:tt, $($name:ident($($arg:ident: $type:ty),*) in $module:ident;)*) => {
        impl $crate::kernel::words::Kernel for $isa {
            $(fn $name(&self, $($arg: $type),*) {
                #[target_feature(enable = $features)]
                fn compiled(isa: $isa, $($arg: $type),*) {
                    $crate::kernel::words::$module::$name(isa, $($arg),*);
                }
                // SAFETY: that there is a value of this type, `self`, proves that the CPU has the features.
                unsafe { compiled(*self, $($arg),*) }
            })*
        }
    };
}
pub(super) use implement;

/// See [`Words::join`](super::Words::join).
#[inline(always)]
pub(super) fn join<I: Isa>(_: I, width: Width, rotate: bool, low: &[&[u8]], top: &[u8], out: &mut [u8]) {
    match (width, low) {
        (Width::W1, []) => join_width::<u8, 1>(rotate, [top], out),
        (Width::W2, &[a]) => join_width::<u16, 2>(rotate, [a, top], out),
        (Width::W4, &[a, b, c]) => join_width::<u32, 4>(rotate, [a, b, c, top], out),
        (Width::W8, &[a, b, c, d, e, f, g]) => join_width::<u64, 8>(rotate, [a, b, c, d, e, f, g, top], out),
        _ => debug_assert!(false, "`Words::join` has counted them"),
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
    for block in &mut blocks {
        let planes = planes.map(|plane| chunk(plane, first));
        for i in 0..BLOCK {
            joined(planes.map(|plane| plane[i])).set(block, i); // i < BLOCK
        }
        first += BLOCK;
    }
    for (i, element) in blocks.into_remainder().chunks_exact_mut(N).enumerate() {
        joined(planes.map(|plane| plane.get(first + i).copied().unwrap_or(0))).set(element, 0);
    }
}

/// See [`Words::split`](super::Words::split).
#[inline(always)]
pub(super) fn split<I: Isa>(_: I, width: Width, rotate: bool, elements: &[u8], low: &mut [&mut [u8]], top: &mut [u8]) {
    match (width, low) {
        (Width::W1, []) => split_width::<u8, 1>(rotate, elements, [top]),
        (Width::W2, [a]) => split_width::<u16, 2>(rotate, elements, [a, top]),
        (Width::W4, [a, b, c]) => split_width::<u32, 4>(rotate, elements, [a, b, c, top]),
        (Width::W8, [a, b, c, d, e, f, g]) => split_width::<u64, 8>(rotate, elements, [a, b, c, d, e, f, g, top]),
        _ => debug_assert!(false, "`Words::split` has counted them"),
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
    for block in blocks {
        let mut parts = [[0; BLOCK]; N]; // apart from `planes`, which the compiler cannot know to be apart from `elements`
        for i in 0..BLOCK {
            let bytes = split(W::get(block, i));
            for (part, byte) in parts.iter_mut().zip(bytes) {
                part[i] = byte; // i < BLOCK
            }
        }
        for (plane, part) in planes.iter_mut().zip(&parts) {
            set_chunk(plane, first, part);
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

/// See [`Words::rotate_right`](super::Words::rotate_right).
#[inline(always)]
pub(super) fn rotate_right<I: Isa>(_: I, width: Width, data: &mut [u8]) {
    for_width!(width, W => {
        let mut blocks = data.chunks_exact_mut(BLOCK);
        for block in &mut blocks {
            (0..BLOCK / W::BYTES).for_each(|i| Word::rotate_right(W::get(block, i)).set(block, i));
        }
        let tail = blocks.into_remainder();
        (0..tail.len() / W::BYTES).for_each(|i| Word::rotate_right(W::get(tail, i)).set(tail, i));
    });
}

/// The bytes of the block of `bytes` that begins at `at`; zeros if there is none.
#[inline(always)]
pub(super) fn chunk(bytes: &[u8], at: usize) -> &[u8; BLOCK] {
    bytes.get(at..).and_then(|rest| rest.first_chunk()).unwrap_or(&[0; BLOCK])
}

/// Sets the block of `bytes` that begins at `at`, if there is one.
#[inline(always)]
pub(super) fn set_chunk(bytes: &mut [u8], at: usize, block: &[u8; BLOCK]) {
    if let Some(to) = bytes.get_mut(at..).and_then(|rest| rest.first_chunk_mut()) {
        *to = *block;
    }
}

/// How many elements a sample and a row have.
#[derive(Clone, Copy)]
pub(super) struct Geometry {
    /// Elements of a sample, 1 to `count`.
    pub restart: usize,
    /// Elements of a row, 1 to `restart`; `restart` if each element of a sample but the first is predicted from the one before.
    pub stride: usize,
}

impl Geometry {
    /// That of `count` elements; `None` if there are none.
    #[inline(always)]
    pub(super) fn new(prediction: &Prediction, count: usize) -> Option<Self> {
        let restart = (prediction.restart.max(1) as usize).min(count); // exact: no target here has a smaller usize
        let stride = match prediction.stride {
            0 | 1 => restart,                         // the element above is the one before
            stride => (stride as usize).min(restart), // exact, as before
        };
        (count > 0).then_some(Self { restart, stride })
    }
}
