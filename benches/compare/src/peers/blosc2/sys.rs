//! Calls c-blosc2. Has all unsafe code for it, except for the kernels in `simd.rs`.

use anyhow::{Context, Result, ensure};
use blosc2_src as ffi;
use std::ffi::{CStr, c_int};
use std::ptr::NonNull;

/// Returns the version of the library.
pub fn version() -> String {
    // SAFETY: it returns a constant, zero-terminated string.
    let version = unsafe { CStr::from_ptr(ffi::blosc2_get_version_string()) };
    version.to_string_lossy().into_owned()
}

/// A compression and a decompression context, each with one thread.
pub struct Contexts {
    compressor: Owned,
    decompressor: Owned,
    /// Bytes of an element.
    type_bytes: usize,
}

/// A context that is freed when dropped.
struct Owned(NonNull<ffi::blosc2_context>);

impl Drop for Owned {
    fn drop(&mut self) {
        // SAFETY: the context came from blosc2_create_*ctx and is freed nowhere else.
        unsafe { ffi::blosc2_free_ctx(self.0.as_ptr()) }
    }
}

fn length(bytes: usize) -> Result<i32> {
    i32::try_from(bytes).context("too long for c-blosc2")
}

/// Returns the length that a call has returned; less than 1 is an error.
fn done(call: &str, returned: c_int) -> Result<usize> {
    ensure!(returned > 0, "{call} of c-blosc2: error {returned}");
    Ok(usize::try_from(returned)?)
}

impl Contexts {
    pub fn new(level: u8, type_bytes: usize) -> Result<Self> {
        let mut parameters = ffi::BLOSC2_CPARAMS_DEFAULTS;
        parameters.compcode = ffi::BLOSC_ZSTD as u8;
        parameters.clevel = level;
        parameters.typesize = length(type_bytes)?;
        parameters.nthreads = 1;
        parameters.filters = [0, 0, 0, 0, 0, ffi::BLOSC_BITSHUFFLE as u8];
        // SAFETY: the parameters are the library's defaults with some plain values changed, and
        // blosc2_init may be called repeatedly.
        let (compressor, decompressor) = unsafe {
            ffi::blosc2_init();
            (ffi::blosc2_create_cctx(parameters), ffi::blosc2_create_dctx(ffi::BLOSC2_DPARAMS_DEFAULTS))
        };
        let context = |context| NonNull::new(context).map(Owned).context("c-blosc2 cannot create a context");
        Ok(Self { compressor: context(compressor)?, decompressor: context(decompressor)?, type_bytes })
    }

    /// Appends `raw` to `stored`, compressed.
    pub fn compress(&mut self, raw: &[u8], stored: &mut Vec<u8>) -> Result<()> {
        let start = stored.len();
        stored.resize(start + raw.len() + ffi::BLOSC2_MAX_OVERHEAD as usize, 0);
        let out = &mut stored[start..];
        let (raw_length, room) = (length(raw.len())?, length(out.len())?);
        // SAFETY: pointers and lengths come from slices, and the context lives.
        let returned = unsafe {
            let context = self.compressor.0.as_ptr();
            ffi::blosc2_compress_ctx(context, raw.as_ptr().cast(), raw_length, out.as_mut_ptr().cast(), room)
        };
        stored.truncate(start + done("blosc2_compress_ctx", returned)?);
        Ok(())
    }

    /// Decompresses to `out`. Returns the number of bytes.
    pub fn decompress(&mut self, stored: &[u8], out: &mut [u8]) -> Result<usize> {
        let (stored_length, room) = (length(stored.len())?, length(out.len())?);
        // SAFETY: pointers and lengths come from slices, and the context lives.
        let returned = unsafe {
            let context = self.decompressor.0.as_ptr();
            ffi::blosc2_decompress_ctx(context, stored.as_ptr().cast(), stored_length, out.as_mut_ptr().cast(), room)
        };
        done("blosc2_decompress_ctx", returned)
    }

    /// Decompresses the elements from `start` that fill `out`. Returns the number of bytes.
    pub fn items(&mut self, stored: &[u8], start: usize, out: &mut [u8]) -> Result<usize> {
        let (stored_length, room) = (length(stored.len())?, length(out.len())?);
        let (start, count) = (length(start)?, length(out.len() / self.type_bytes)?);
        // SAFETY: pointers and lengths come from slices, and the context lives.
        let returned = unsafe {
            let (context, from, to) = (self.decompressor.0.as_ptr(), stored.as_ptr().cast(), out.as_mut_ptr().cast());
            ffi::blosc2_getitem_ctx(context, from, stored_length, start, count, to, room)
        };
        done("blosc2_getitem_ctx", returned)
    }

    /// Returns the decompressed bytes of a chunk, and of each of its blocks.
    pub fn sizes(&self, stored: &[u8]) -> Result<(usize, usize)> {
        let (mut raw_bytes, mut stored_bytes, mut block_bytes) = (0, 0, 0);
        ensure!(stored.len() >= ffi::BLOSC2_MAX_OVERHEAD as usize, "the chunk is shorter than its header");
        // SAFETY: the call reads only the header, which the chunk has, and writes to variables.
        let returned = unsafe {
            let chunk = stored.as_ptr().cast();
            ffi::blosc2_cbuffer_sizes(chunk, &raw mut raw_bytes, &raw mut stored_bytes, &raw mut block_bytes)
        };
        ensure!(returned >= 0, "blosc2_cbuffer_sizes of c-blosc2: error {returned}");
        Ok((usize::try_from(raw_bytes)?, usize::try_from(block_bytes)?))
    }
}
