//! The Zstandard encodings in a build without the feature `zstd`: they are known, and refused.

use super::blocked::{Block, BlockCodec, BlockEncoder, table_number};
use super::dictionary_body;
use super::geometry::Geometry;
use super::part_spec::PartSpec;
use super::scratch::{DecodeScratch, EncodeScratch};
use crate::{Error, Result};
use std::ops::Range;
use std::sync::Arc;

pub(super) struct ZstdBlocks;
pub(super) struct BitshuffleBlocks;
pub(super) struct PlaneBlocks;

/// A dictionary, which this build cannot use.
pub(crate) struct Dictionary;

impl Dictionary {
    pub(crate) fn new(body: Vec<u8>) -> Result<Self> {
        dictionary_body::check(&body).map(|()| Self)
    }
}

/// A dictionary, which this build cannot use.
pub(crate) struct EncodingDictionary {
    pub(super) decoding: Arc<Dictionary>,
}

impl EncodingDictionary {
    pub(crate) fn new(_: u32, _: Arc<Dictionary>) -> Result<Self> {
        Err(Error::not_built("zstd", "dictionaries"))
    }
}

/// Trains no dictionary.
pub(crate) fn train(_: &[&[u8]], _: usize, _: usize) -> Option<Vec<u8>> {
    None
}

macro_rules! absent_blocks {
    ($codec:ty, $id:literal, $name:literal, $table_bytes:expr $(, { $($more:tt)* })?) => {
        impl BlockCodec for $codec {
            type Tables = ();

            fn id(&self) -> u16 {
                $id
            }

            fn name(&self) -> &'static str {
                $name
            }

            fn table_bytes(&self, _: &[u8]) -> Option<usize> {
                Some($table_bytes)
            }

            fn check_built(&self) -> Result<()> {
                Err(Error::not_built("zstd", concat!("the encoding ", $name)))
            }

            fn parse_tables(&self, _: PartSpec<'_>, _: &[u8]) -> Result<()> {
                self.check_built()
            }

            fn decode(&self, (): &(), _: &Block<'_>, _: &mut [u8], _: &mut DecodeScratch) -> Result<()> {
                self.check_built()
            }

            $($($more)*)?
        }

        impl BlockEncoder for $codec {
            fn plan(&self, _: &Geometry<'_>, _: &[u8], _: &mut Vec<u8>, _: &mut EncodeScratch) -> Result<bool> {
                Ok(false)
            }

            fn encode(
                &self,
                _: &Geometry<'_>,
                _: &[u8],
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
    fn needs_table(&self) -> bool {
        true
    }

    fn table(&self, tables: &[u8]) -> Option<u32> {
        table_number(tables)
    }
});
absent_blocks!(BitshuffleBlocks, 3, "bitshuffle-zstd", 0);
absent_blocks!(PlaneBlocks, 7, "planes-zstd", 0);
