//! Chapter 5.6: the transforms between elements and coded integers.

use crate::kernel::predict::Prediction;
use crate::kernel::{Width, byte_planes, predict};
use crate::le::structure;
use crate::{Error, Result};

structure! {
    /// Chapter 5.6: the 16 bytes that stored bytes of the encodings 4, 5 and 6 begin with.
    mod transform_head: 16 bytes {
        0 => TRANSFORM: u8,
        1 => TRANSFORM_FLAGS: u8,
        2 => RESERVED: u16,
        4 => RESTART: u32,
        8 => STRIDE: u32,
        12 => ALSO_RESERVED: u32,
    }
}

/// The length of the transform.
pub(super) const TRANSFORM_BYTES: usize = transform_head::SIZE;

/// How elements become the integers that are coded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Transform {
    /// As they are.
    None,
    /// Rotated left by one bit, so that the exponent of a float is on top.
    Rotate,
    /// The residual of a prediction.
    Predict(Prediction),
}

// The values of `transform`.
const NONE: u8 = 0;
const ROTATE: u8 = 1;
const DELTA: u8 = 2;
const LORENZO: u8 = 3;

/// The bit of `transform_flags` that is set for floats.
const FLOAT: u8 = 1;

impl Transform {
    pub(super) fn to_bytes(self) -> [u8; TRANSFORM_BYTES] {
        let mut bytes = [0; TRANSFORM_BYTES];
        match self {
            Self::None => transform_head::TRANSFORM.put(&mut bytes, NONE),
            Self::Rotate => transform_head::TRANSFORM.put(&mut bytes, ROTATE),
            Self::Predict(prediction) => {
                transform_head::TRANSFORM.put(&mut bytes, if prediction.lorenzo { LORENZO } else { DELTA });
                transform_head::TRANSFORM_FLAGS.put(&mut bytes, if prediction.float { FLOAT } else { 0 });
                transform_head::RESTART.put(&mut bytes, prediction.restart);
                transform_head::STRIDE.put(&mut bytes, prediction.stride);
            }
        }
        bytes
    }

    /// Parses the transform at the start of stored bytes.
    pub(super) fn parse(bytes: &[u8; TRANSFORM_BYTES]) -> Result<Self> {
        let kind = transform_head::TRANSFORM.get(bytes);
        let restart = transform_head::RESTART.get(bytes);
        let stride = transform_head::STRIDE.get(bytes);
        let float = transform_head::TRANSFORM_FLAGS.get(bytes) & FLOAT != 0;
        let transform = match kind {
            NONE => Self::None,
            ROTATE => Self::Rotate,
            DELTA | LORENZO if restart > 0 && stride > 0 => {
                Self::Predict(Prediction { lorenzo: kind == LORENZO, float, restart, stride })
            }
            _ => return Err(malformed(bytes)),
        };
        let reserved = [transform_head::RESERVED.get(bytes).into(), transform_head::ALSO_RESERVED.get(bytes)];
        // the bits and fields that the kind does not use are zero as well
        if reserved == [0, 0] && transform.to_bytes() == *bytes { Ok(transform) } else { Err(malformed(bytes)) }
    }

    /// Describes the transform in words.
    pub(super) fn describe(self) -> String {
        match self {
            Self::None => "none".to_owned(),
            Self::Rotate => "rotate".to_owned(),
            Self::Predict(Prediction { lorenzo, float, restart, stride }) => {
                let kind = if lorenzo { "lorenzo" } else { "delta" };
                let elements = if float { "floats" } else { "integers" };
                format!("{kind} of {elements}, stride {stride}, restart {restart}")
            }
        }
    }

    /// Replaces the coded integers in `data` by their elements. Prediction begins anew with the
    /// first.
    pub(super) fn undo(self, width: Width, data: &mut [u8]) {
        match self {
            Self::None => {}
            Self::Rotate => byte_planes::best().rotate_right(width, data),
            Self::Predict(prediction) => predict::best().undo(&prediction, width, data),
        }
    }

    /// Returns the index of the element where prediction last began anew: to know element `i`, all
    /// from there on must be decoded.
    pub(super) fn start_of(self, i: usize) -> usize {
        match self {
            Self::None | Self::Rotate => i,
            // exact: no target here has a smaller usize
            Self::Predict(prediction) => i - i % prediction.restart.max(1) as usize,
        }
    }
}

#[cold]
fn malformed(bytes: &[u8]) -> Error {
    Error::corrupt("R-5.7", format!("a part of the chunk has the unknown transform {bytes:02x?}"))
}
