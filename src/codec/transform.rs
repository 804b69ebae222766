//! Transforms (chapter 5.6): the step between elements and the integers that are coded.
//!
//! A transform makes elements easier to code. *Rotate* moves the sign of a float to the lowest bit,
//! so the exponent is in the top bits. The predictors (*delta*, *lorenzo*, *separable*) replace
//! each element with its residual in zigzag form. Arithmetic is modulo 2^bits, so each element
//! corresponds to exactly one integer, and nothing is lost.
//!
//! The tables of tiers, planes and bins describe a transform with 16 bytes in the same format,
//! which this file parses. Each encoding has its own rule that refuses the transforms it does not
//! allow. Fields that a transform does not use must be zero, so each transform has only one stored
//! form.

use crate::bytes::le::structure;
use crate::kernel::predict::{self, Prediction, Predictor, Weights};
use crate::kernel::{Width, byte_planes};
use crate::{Error, Result};

structure! {
    /// Chapter 5.6: the transform in the tables of tiers, planes and bins.
    mod transform_header: 16 bytes {
        0 => TRANSFORM: u8,
        1 => RESERVED_1: u8,
        2 => WEIGHT_LEFT: u8,
        3 => WEIGHT_ABOVE: u8,
        4 => RESTART: u32,
        8 => STRIDE: u32,
        12 => RESERVED_2: u32,
    }
}

pub(super) const TRANSFORM_BYTES: usize = transform_header::SIZE;

/// How elements become the integers that are coded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Transform {
    /// Unchanged.
    None,
    /// Rotated left by one bit, which puts the exponent of a float into the top bits.
    Rotate,
    /// The residual of a prediction.
    Predict(Prediction),
}

// The values of `transform`.
const NONE: u8 = 0;
const ROTATE: u8 = 1;
const DELTA: u8 = 2;
const LORENZO: u8 = 3;
const SEPARABLE: u8 = 4;

const MAX_WEIGHT: u8 = 8;

/// The weight fields of predictors without weights.
const NO_WEIGHTS: Weights = Weights { left: 0, above: 0 };

impl Transform {
    pub(super) fn to_bytes(self) -> [u8; TRANSFORM_BYTES] {
        let mut bytes = [0; TRANSFORM_BYTES];
        match self {
            Self::None => transform_header::TRANSFORM.put(&mut bytes, NONE),
            Self::Rotate => transform_header::TRANSFORM.put(&mut bytes, ROTATE),
            Self::Predict(prediction) => {
                let (kind, weights) = match prediction.predictor {
                    Predictor::Delta => (DELTA, NO_WEIGHTS),
                    Predictor::Lorenzo => (LORENZO, NO_WEIGHTS),
                    Predictor::Separable(weights) => (SEPARABLE, weights),
                };
                transform_header::TRANSFORM.put(&mut bytes, kind);
                transform_header::WEIGHT_LEFT.put(&mut bytes, weights.left);
                transform_header::WEIGHT_ABOVE.put(&mut bytes, weights.above);
                transform_header::RESTART.put(&mut bytes, prediction.restart);
                transform_header::STRIDE.put(&mut bytes, prediction.stride);
            }
        }
        bytes
    }

    /// Parses the transform of tiers or planes.
    pub(super) fn parse(bytes: &[u8; TRANSFORM_BYTES]) -> Result<Self> {
        if transform_header::TRANSFORM.get(bytes) == SEPARABLE { Err(malformed(bytes)) } else { Self::parse_any(bytes) }
    }

    /// Parses the transform of bins.
    pub(super) fn parse_for_bins(bytes: &[u8; TRANSFORM_BYTES]) -> Result<Self> {
        if transform_header::TRANSFORM.get(bytes) == ROTATE { Err(malformed(bytes)) } else { Self::parse_any(bytes) }
    }

    fn parse_any(bytes: &[u8; TRANSFORM_BYTES]) -> Result<Self> {
        let kind = transform_header::TRANSFORM.get(bytes);
        let restart = transform_header::RESTART.get(bytes);
        let stride = transform_header::STRIDE.get(bytes);
        let (left, above) = (transform_header::WEIGHT_LEFT.get(bytes), transform_header::WEIGHT_ABOVE.get(bytes));
        let predict = |predictor| Self::Predict(Prediction { predictor, restart, stride });
        let can_predict = restart > 0 && stride > 0;
        let transform = match kind {
            NONE => Self::None,
            ROTATE => Self::Rotate,
            DELTA if can_predict => predict(Predictor::Delta),
            LORENZO if can_predict => predict(Predictor::Lorenzo),
            SEPARABLE if can_predict && left.max(above) <= MAX_WEIGHT => {
                predict(Predictor::Separable(Weights { left, above }))
            }
            _ => return Err(malformed(bytes)),
        };
        // fields that this transform does not use must be zero
        let is_zero = transform_header::RESERVED_1.get(bytes) == 0 && transform_header::RESERVED_2.get(bytes) == 0;
        if is_zero && transform.to_bytes() == *bytes { Ok(transform) } else { Err(malformed(bytes)) }
    }

    pub(super) fn describe(self) -> String {
        match self {
            Self::None => "none".to_owned(),
            Self::Rotate => "rotate".to_owned(),
            Self::Predict(Prediction { predictor, restart, stride }) => {
                let kind = match predictor {
                    Predictor::Delta => "delta".to_owned(),
                    Predictor::Lorenzo => "lorenzo".to_owned(),
                    Predictor::Separable(Weights { left, above }) => format!("separable {left}/8, {above}/8"),
                };
                format!("{kind}, stride {stride}, restart {restart}")
            }
        }
    }

    /// Replaces the coded integers in `data` with their elements. Prediction also restarts at the
    /// first element of `data`.
    pub(super) fn undo(self, width: Width, data: &mut [u8]) {
        match self {
            Self::None => {}
            Self::Rotate => byte_planes::best().rotate_right(width, data),
            Self::Predict(prediction) => predict::best().undo(&prediction, width, data),
        }
    }

    /// Returns the index of the last restart of prediction at or before element `i`. Decoding
    /// element `i` requires all elements from this index on.
    pub(super) fn start_of(self, i: usize) -> usize {
        match self {
            Self::None | Self::Rotate => i,
            // exact: no supported target has a smaller usize
            Self::Predict(prediction) => i - i % prediction.restart.max(1) as usize,
        }
    }
}

#[cold]
fn malformed(bytes: &[u8]) -> Error {
    Error::corrupt("R-5.7", format!("a part of the chunk has an unknown or malformed transform: {bytes:02x?}"))
}
