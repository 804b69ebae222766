//! The Zstandard encodings in a build without the feature `zstd`: they are recognized, but refused.

use super::check_zstd_dictionary;
use crate::codec::{
    blocked::{Block, BlockCodec, BlockEncoder, VisitPlan, table_number},
    part::{PartSpec, RawPart},
    scratch::{DecodeScratch, EncodeScratch},
};
use crate::{Error, Result};
use std::ops::Range;
use std::sync::Arc;

pub(crate) struct ZstdBlocks;
pub(crate) struct BitshuffleBlocks;
pub(crate) struct PlaneBlocks;

/// A Zstandard dictionary, which this build cannot use.
pub(crate) struct ZstdDictionary;

impl ZstdDictionary {
    pub(crate) fn new(body: Vec<u8>) -> Result<Self> {
        check_zstd_dictionary(&body).map(|()| Self)
    }
}

/// A Zstandard dictionary for encoding, which this build cannot use.
pub(crate) struct ZstdEncoderDictionary {
    pub(crate) decoding: Arc<ZstdDictionary>,
}

impl ZstdEncoderDictionary {
    pub(crate) fn new(_: u32, _: Arc<ZstdDictionary>) -> Result<Self> {
        Err(Error::not_built("zstd", "a Zstandard dictionary"))
    }
}

pub(crate) fn train(_: &[&[u8]], _: usize, _: usize) -> Option<Vec<u8>> {
    None
}

macro_rules! absent_blocks {
    ($codec:ty, $id:literal, $name:literal, $table_bytes:expr $(, { $($more:tt)* })?) => {
        impl BlockCodec for $codec {
            type Tables = ();

            const ID: u16 = $id;
            const NAME: &'static str = $name;
            const TABLE_BYTES: usize = $table_bytes;
            const NEEDS_TABLE: bool = $table_bytes > 0;

            fn check_built(&self) -> Result<()> {
                Err(Error::not_built("zstd", concat!("the encoding ", $name)))
            }

            fn parse_tables(&self, _: PartSpec<'_>, _: &[u8]) -> Result<()> {
                self.check_built()
            }

            fn decode(&self, _: &Block<'_, ()>, _: &mut [u8], _: &mut DecodeScratch) -> Result<()> {
                self.check_built()
            }

            $($($more)*)?
        }

        impl BlockEncoder for $codec {
            fn each_plan(
                &self,
                _: RawPart<'_>,
                _: &mut EncodeScratch,
                _: &mut VisitPlan<'_>,
            ) -> Result<()> {
                Ok(())
            }

            fn encode(
                &self,
                _: RawPart<'_>,
                _: &Range<usize>,
                _: &mut Vec<u8>,
                _: &mut EncodeScratch,
            ) -> Result<()> {
                self.check_built()
            }
        }
    };
}

absent_blocks!(ZstdBlocks, 2, "zstd", size_of::<u32>(), {
    fn table(&self, tables: &[u8]) -> Option<u32> {
        table_number(tables)
    }
});
absent_blocks!(BitshuffleBlocks, 3, "bitshuffle-zstd", 0);
absent_blocks!(PlaneBlocks, 7, "planes-zstd", 0);
