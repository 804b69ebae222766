//! The Zstandard encodings in a build without the feature `zstd`: they are known, and refused.

use super::encoding::{Codec, Encoder, PartSpec};
use super::geometry::Geometry;
use super::scratch::{DecodeScratch, EncodeScratch};
use crate::{Error, Result};

pub(super) struct Zstd;
pub(super) struct BitshuffleZstd;
pub(super) struct PlanesZstd;

macro_rules! absent {
    ($codec:ty, $id:literal, $name:literal) => {
        impl Codec for $codec {
            fn id(&self) -> u16 {
                $id
            }

            fn name(&self) -> &'static str {
                $name
            }

            fn check_built(&self) -> Result<()> {
                Err(Error::not_built("zstd", concat!("the encoding ", $name)))
            }

            fn check(&self, _: PartSpec, _: &[u8]) -> Result<()> {
                self.check_built()
            }

            fn decode(&self, _: PartSpec, _: &[u8], _: &mut [u8], _: &mut DecodeScratch) -> Result<()> {
                self.check_built()
            }
        }
    };
}

macro_rules! absent_encoder {
    ($codec:ty) => {
        impl Encoder for $codec {
            fn encode(&self, _: &Geometry, _: &[u8], _: &mut Vec<u8>, _: &mut EncodeScratch) -> Result<bool> {
                Ok(false)
            }
        }
    };
}

absent!(BitshuffleZstd, 2, "bitshuffle-zstd");
absent!(Zstd, 3, "zstd");
absent!(PlanesZstd, 6, "planes-zstd");
absent_encoder!(BitshuffleZstd);
absent_encoder!(Zstd);
absent_encoder!(PlanesZstd);
