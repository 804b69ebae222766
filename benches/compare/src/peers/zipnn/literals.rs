//! Zstandard without matches: frames of blocks with only literals, which are Huffman-coded if that
//! is shorter. Has all unsafe code of this competitor.

use anyhow::{Context, Result, ensure};
use std::ffi::CStr;
use std::ptr::NonNull;
use zstd::bulk::Decompressor;
use zstd_sys::{self as ffi, ZSTD_Sequence, ZSTD_cParameter};

/// The number of literals in a block, which is the maximum of the format.
const BLOCK_BYTES: usize = ffi::ZSTD_BLOCKSIZE_MAX as usize;

pub struct Contexts {
    compressor: Compressor,
    decompressor: Decompressor<'static>,
    blocks: Vec<ZSTD_Sequence>,
}

/// A context that is freed when dropped.
struct Compressor(NonNull<ffi::ZSTD_CCtx>);

impl Drop for Compressor {
    fn drop(&mut self) {
        // SAFETY: the context came from ZSTD_createCCtx and is freed nowhere else.
        unsafe { ffi::ZSTD_freeCCtx(self.0.as_ptr()) };
    }
}

/// Returns the result of a call, or its error.
fn done(call: &str, returned: usize) -> Result<usize> {
    // SAFETY: both take any number, and the name is a constant, zero-terminated string.
    let name = unsafe {
        if ffi::ZSTD_isError(returned) == 0 {
            return Ok(returned);
        }
        CStr::from_ptr(ffi::ZSTD_getErrorName(returned))
    };
    anyhow::bail!("{call}: {}", name.to_string_lossy())
}

impl Contexts {
    pub fn new() -> Result<Self> {
        // SAFETY: it has no arguments.
        let context = NonNull::new(unsafe { ffi::ZSTD_createCCtx() }).context("Zstandard cannot create a context")?;
        let compressor = Compressor(context);
        let parameters = [
            // ZSTD_c_literalCompressionMode: always try Huffman codes
            (ZSTD_cParameter::ZSTD_c_experimentalParam5, ffi::ZSTD_ParamSwitch_e::ZSTD_ps_enable as i32),
            // ZSTD_c_blockDelimiters: the sequences determine the ends of blocks
            (
                ZSTD_cParameter::ZSTD_c_experimentalParam11,
                ffi::ZSTD_SequenceFormat_e::ZSTD_sf_explicitBlockDelimiters as i32,
            ),
        ];
        for (parameter, value) in parameters {
            // SAFETY: the context lives, and Zstandard checks parameter and value.
            done("ZSTD_CCtx_setParameter", unsafe {
                ffi::ZSTD_CCtx_setParameter(compressor.0.as_ptr(), parameter, value)
            })?;
        }
        Ok(Self { compressor, decompressor: Decompressor::new()?, blocks: Vec::new() })
    }

    /// Appends `raw` to `stored`, compressed.
    pub fn compress(&mut self, raw: &[u8], stored: &mut Vec<u8>) -> Result<()> {
        self.blocks.clear();
        self.blocks.extend(raw.chunks(BLOCK_BYTES).map(|block| ZSTD_Sequence {
            offset: 0,
            litLength: block.len() as u32, // at most BLOCK_BYTES
            matchLength: 0,
            rep: 0,
        }));
        let start = stored.len();
        stored.resize(start + zstd::zstd_safe::compress_bound(raw.len()), 0);
        let out = &mut stored[start..];
        // SAFETY: pointers and lengths come from slices, and the context lives. Each sequence ends
        // a block, and their lengths add up to `raw.len()`.
        let returned = unsafe {
            ffi::ZSTD_compressSequences(
                self.compressor.0.as_ptr(),
                out.as_mut_ptr().cast(),
                out.len(),
                self.blocks.as_ptr(),
                self.blocks.len(),
                raw.as_ptr().cast(),
                raw.len(),
            )
        };
        stored.truncate(start + done("ZSTD_compressSequences", returned)?);
        Ok(())
    }

    /// Decompresses a frame to `out`, which must have exactly its decompressed length.
    pub fn decompress(&mut self, stored: &[u8], out: &mut [u8]) -> Result<()> {
        let length = self.decompressor.decompress_to_buffer(stored, out)?;
        ensure!(length == out.len(), "{length} bytes instead of {}", out.len());
        Ok(())
    }
}
