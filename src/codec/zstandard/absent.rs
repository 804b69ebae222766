//! The Zstandard encodings in a build without the feature `zstd`: they are known, and refused.

use super::blocked::{Block, BlockCodec, BlockEncoder, table_number};
use super::dictionary_body;
use super::encoding::{Codec, Encoder};
use super::geometry::Geometry;
use super::part_spec::PartSpec;
use super::scratch::{DecodeScratch, EncodeScratch};
use crate::{Error, Result};
use std::ops::Range;
use std::sync::Arc;

pub(super) struct Zstd;
pub(super) struct BitshuffleZstd;
pub(super) struct PlanesZstd;
pub(super) struct ZstdDictionary;
pub(super) struct BitshuffleBlocks;
pub(super) struct ZstdBlocks;

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

macro_rules! absent {
    ($codec:ty, $id:literal, $name:literal $(, { $($more:tt)* })?) => {
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

            fn check(&self, _: PartSpec<'_>, _: &[u8]) -> Result<()> {
                self.check_built()
            }

            fn decode(&self, _: PartSpec<'_>, _: &[u8], _: &mut [u8], _: &mut DecodeScratch) -> Result<()> {
                self.check_built()
            }

            $($($more)*)?
        }
    };
}

macro_rules! absent_encoder {
    ($codec:ty) => {
        impl Encoder for $codec {
            fn encode(&self, _: &Geometry<'_>, _: &[u8], _: &mut Vec<u8>, _: &mut EncodeScratch) -> Result<bool> {
                Ok(false)
            }
        }
    };
}

absent!(BitshuffleZstd, 2, "bitshuffle-zstd");
absent!(Zstd, 3, "zstd");
absent!(PlanesZstd, 6, "planes-zstd");
absent!(ZstdDictionary, 7, "zstd-dictionary", {
    fn needs_table(&self) -> bool {
        true
    }

    fn table(&self, stored: &[u8]) -> Result<Option<u32>> {
        dictionary_body::table(stored).map(|(table, _)| Some(table))
    }
});
absent_encoder!(BitshuffleZstd);
absent_encoder!(Zstd);
absent_encoder!(PlanesZstd);
absent_encoder!(ZstdDictionary);

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

absent_blocks!(BitshuffleBlocks, 9, "blocked-bitshuffle-zstd", 0);
absent_blocks!(ZstdBlocks, 10, "blocked-zstd", size_of::<u32>(), {
    fn needs_table(&self) -> bool {
        true
    }

    fn table(&self, tables: &[u8]) -> Option<u32> {
        table_number(tables)
    }
});
