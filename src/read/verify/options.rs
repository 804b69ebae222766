//! The options of a verification.

use std::ops::ControlFlow;

/// The options of [`verify`](crate::verify::verify).
#[non_exhaustive]
pub struct VerifyOptions<'a> {
    pub(super) decode: bool,
    pub(super) threads: usize,
    pub(super) progress: Option<&'a mut dyn FnMut(u64) -> ControlFlow<()>>,
}

impl Default for VerifyOptions<'_> {
    fn default() -> Self {
        Self { decode: false, threads: 1, progress: None }
    }
}

impl<'a> VerifyOptions<'a> {
    /// Returns the defaults: every byte is checked, no chunk is decoded, by one thread.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets whether chunks are decoded (default: no). Checks every value, too: bools are 0 or 1,
    /// texts are UTF-8, nulls are zero.
    ///
    /// Cost: the decoding of every chunk. A chunk of some hundred bytes can decode to 64 MiB, so a
    /// hostile file of a megabyte can take minutes: [`VerifyOptions::progress`] can end the work.
    pub fn decode(mut self, decode: bool) -> Self {
        self.decode = decode;
        self
    }

    /// Sets the number of threads that check and decode chunks, this one included: 1 (the default)
    /// or more. 0 is taken as 1. The report does not depend on it.
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = threads;
        self
    }

    /// Sets a function that is called from time to time with the number of bytes checked. If it
    /// breaks, the work ends with an error of kind [`Cancelled`](crate::ErrorKind::Cancelled).
    pub fn progress(mut self, progress: &'a mut dyn FnMut(u64) -> ControlFlow<()>) -> Self {
        self.progress = Some(progress);
        self
    }
}
