//! Calls OpenZL to compress and decompress.

use super::graph::Graph;
use anyhow::{Context, Result, bail, ensure};
use openzl_sys as ffi;
use std::ffi::CStr;
use std::ptr::NonNull;

/// Returns the version of OpenZL, such as `0.3.0`.
pub fn version() -> String {
    let [major, minor, patch] =
        [ffi::ZL_LIBRARY_VERSION_MAJOR, ffi::ZL_LIBRARY_VERSION_MINOR, ffi::ZL_LIBRARY_VERSION_PATCH];
    format!("{major}.{minor}.{patch}")
}

/// Defines a wrapper of an OpenZL object that frees it when dropped.
macro_rules! owned {
    ($Name:ident, $object:ident, $create:ident, $free:ident) => {
        struct $Name(NonNull<ffi::$object>);

        impl $Name {
            fn new() -> Result<Self> {
                // SAFETY: it has no arguments.
                NonNull::new(unsafe { ffi::$create() }).map(Self).context(concat!(stringify!($create), " failed"))
            }
        }

        impl Drop for $Name {
            fn drop(&mut self) {
                // SAFETY: the object came from its create function and is freed nowhere else.
                unsafe { ffi::$free(self.0.as_ptr()) }
            }
        }
    };
}

owned!(CompressionContext, ZL_CCtx, ZL_CCtx_create, ZL_CCtx_free);
owned!(Compressor, ZL_Compressor, ZL_Compressor_create, ZL_Compressor_free);
owned!(DecompressionContext, ZL_DCtx, ZL_DCtx_create, ZL_DCtx_free);

/// A compressor with its contexts, for one thread. Contexts are dropped before the compressor.
pub struct Contexts {
    context: CompressionContext,
    decompressor: DecompressionContext,
    compressor: Compressor,
    /// The bytes of a number.
    width: usize,
}

/// Returns the value of a call, or its error.
fn done(call: &str, report: ffi::ZL_Report) -> Result<usize> {
    // SAFETY: these take any report; the text is a constant, zero-terminated string.
    unsafe {
        if ffi::ZL_isError(report) == 0 {
            return Ok(ffi::ZL_validResult(report));
        }
        let text = CStr::from_ptr(ffi::ZL_ErrorCode_toString(ffi::ZL_errorCode(report)));
        bail!("{call} of OpenZL: {}", text.to_string_lossy())
    }
}

impl Contexts {
    pub fn new(graph: Graph, level: i32, width: usize) -> Result<Self> {
        let (compressor, context) = (Compressor::new()?, CompressionContext::new()?);
        let off = ffi::ZL_TernaryParam_disable as i32;
        let parameters = [
            (ffi::ZL_CParam_formatVersion, ffi::ZL_MAX_FORMAT_VERSION as i32),
            (ffi::ZL_CParam_compressionLevel, level),
            (ffi::ZL_CParam_compressedChecksum, off),
            (ffi::ZL_CParam_contentChecksum, off),
        ];
        for (parameter, value) in parameters {
            // SAFETY: the compressor lives, and OpenZL checks parameter and value.
            let report = unsafe { ffi::ZL_Compressor_setParameter(compressor.0.as_ptr(), parameter, value) };
            done("ZL_Compressor_setParameter", report)?;
        }
        let graph = graph.select(compressor.0)?;
        // SAFETY: both objects live, the graph belongs to the compressor, and the compressor
        // outlives the context.
        unsafe {
            let report = ffi::ZL_Compressor_selectStartingGraphID(compressor.0.as_ptr(), graph);
            done("ZL_Compressor_selectStartingGraphID", report)?;
            let report = ffi::ZL_CCtx_refCompressor(context.0.as_ptr(), compressor.0.as_ptr());
            done("ZL_CCtx_refCompressor", report)?;
        }
        Ok(Self { context, decompressor: DecompressionContext::new()?, compressor, width })
    }

    /// Appends `raw` to `stored`, compressed.
    pub fn compress(&mut self, raw: &[u8], stored: &mut Vec<u8>) -> Result<()> {
        let start = stored.len();
        // SAFETY: pointers and lengths come from slices, and `raw` is aligned for numbers. The
        // reference to it is freed after its last use.
        let report = unsafe {
            stored.resize(start + ffi::ZL_compressBound(raw.len()), 0);
            let out = &mut stored[start..];
            let (context, compressor) = (self.context.0.as_ptr(), self.compressor.0.as_ptr());
            done("ZL_CCtx_refCompressor", ffi::ZL_CCtx_refCompressor(context, compressor))?;
            let input = ffi::ZL_TypedRef_createNumeric(raw.as_ptr().cast(), self.width, raw.len() / self.width);
            ensure!(!input.is_null(), "OpenZL cannot create an input");
            let report = ffi::ZL_CCtx_compressTypedRef(context, out.as_mut_ptr().cast(), out.len(), input);
            ffi::ZL_TypedRef_free(input);
            report
        };
        stored.truncate(start + done("ZL_CCtx_compressTypedRef", report)?);
        Ok(())
    }

    /// Decompresses numbers to `out`, which must have exactly their length.
    pub fn decompress(&mut self, stored: &[u8], out: &mut [u8]) -> Result<()> {
        // SAFETY: all bit patterns are valid for this struct.
        let mut found: ffi::ZL_OutputInfo = unsafe { std::mem::zeroed() };
        // SAFETY: pointers and lengths come from slices, and `out` is aligned for numbers.
        let report = unsafe {
            ffi::ZL_DCtx_decompressTyped(
                self.decompressor.0.as_ptr(),
                &raw mut found,
                out.as_mut_ptr().cast(),
                out.len(),
                stored.as_ptr().cast(),
                stored.len(),
            )
        };
        let length = done("ZL_DCtx_decompressTyped", report)?;
        ensure!(length == out.len(), "{length} bytes instead of {}", out.len());
        Ok(())
    }
}
