//! Chapter 5.1: raw stores the decoded bytes.

use super::encoding::Codec;
use super::part_spec::PartSpec;
use super::scratch::DecodeScratch;
use crate::{Error, Result};

pub(super) struct Raw;

impl Codec for Raw {
    fn id(&self) -> u16 {
        0
    }

    fn name(&self) -> &'static str {
        "raw"
    }

    fn is_identity(&self) -> bool {
        true
    }

    fn check(&self, spec: PartSpec<'_>, stored: &[u8]) -> Result<()> {
        if stored.len() == spec.raw_bytes {
            return Ok(());
        }
        let message = format!("expected {} raw bytes, found {}", spec.raw_bytes, stored.len());
        Err(Error::corrupt("R-5.3", message))
    }

    fn decode(&self, _: PartSpec<'_>, stored: &[u8], out: &mut [u8], _: &mut DecodeScratch) -> Result<()> {
        for (to, from) in out.iter_mut().zip(stored) {
            *to = *from;
        }
        Ok(())
    }
}
