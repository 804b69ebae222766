//! Chapter 5.6: what is coded in place of the elements.

use crate::kernel::Width;
use crate::kernel::words::{Prediction, best};
use crate::le::{array_at, put};
use crate::{Error, Result};

pub(super) const TRANSFORM_BYTES: usize = 16;

/// How elements become the integers that are coded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Transform {
    /// As they are.
    None,
    /// Rotated left by one bit: the exponent of a float is on top.
    Rotate,
    /// The residual of a prediction.
    Predict(Prediction),
}

const FLOAT: u8 = 1;

impl Transform {
    pub(super) fn to_bytes(self) -> [u8; TRANSFORM_BYTES] {
        let mut out = [0; TRANSFORM_BYTES];
        match self {
            Self::None => {}
            Self::Rotate => put::<0, 1, 16>(&mut out, [1]),
            Self::Predict(prediction) => {
                put::<0, 1, 16>(&mut out, [if prediction.lorenzo { 3 } else { 2 }]);
                put::<1, 1, 16>(&mut out, [if prediction.float { FLOAT } else { 0 }]);
                put::<4, 4, 16>(&mut out, prediction.restart.to_le_bytes());
                put::<8, 4, 16>(&mut out, prediction.stride.to_le_bytes());
            }
        }
        out
    }

    /// but for the decoded length.
    pub(super) fn parse(bytes: &[u8; TRANSFORM_BYTES]) -> Result<Self> {
        let restart = u32::from_le_bytes(array_at::<4, 4, 16>(bytes));
        let stride = u32::from_le_bytes(array_at::<8, 4, 16>(bytes));
        let [kind, flags] = array_at::<0, 2, 16>(bytes);
        let transform = match kind {
            0 => Self::None,
            1 => Self::Rotate,
            2 | 3 if restart > 0 && stride > 0 => {
                Self::Predict(Prediction { lorenzo: kind == 3, float: flags & FLOAT != 0, restart, stride })
            }
            _ => return Err(malformed(bytes)),
        };
        // what the fields do not say is reserved
        if transform.to_bytes() == *bytes { Ok(transform) } else { Err(malformed(bytes)) }
    }

    /// In words.
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

    /// The elements of the coded integers in `data`, in their place. `data` begins where prediction starts anew.
    pub(super) fn undo(self, width: Width, data: &mut [u8]) {
        match self {
            Self::None => {}
            Self::Rotate => best().rotate_right(width, data),
            Self::Predict(prediction) => best().undo(&prediction, width, data),
        }
    }

    /// The elements that must be decoded to know element `i`: from where prediction last started anew.
    pub(super) fn start_of(self, i: usize) -> usize {
        match self {
            Self::None | Self::Rotate => i,
            Self::Predict(prediction) => i - i % prediction.restart.max(1) as usize, // exact: no target here has a smaller usize
        }
    }
}

#[cold]
fn malformed(bytes: &[u8]) -> Error {
    Error::corrupt("R-5.7", format!("a part of the chunk has the unknown transform {bytes:02x?}"))
}
