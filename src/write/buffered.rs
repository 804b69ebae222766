//! A buffer before a file, and the end of all calls after one that failed.

use super::storage::StoredFile;
use std::io::{self, Write};
use std::mem;

/// A chunk takes three writes, which should not be three system calls.
const BUFFER_BYTES: usize = 256 << 10;

/// A file that is written through a buffer.
///
/// After an error nothing is called again: an `fsync` that is repeated may report success for bytes that are lost. What is in
/// the buffer when this is dropped is not written: nobody has been told that it was.
#[derive(Debug)]
pub(super) struct Buffered<F> {
    file: F,
    buffer: Vec<u8>,
    failed: bool,
}

impl<F: StoredFile> Buffered<F> {
    pub(super) fn new(file: F) -> Self {
        Self { file, buffer: Vec::new(), failed: false }
    }

    /// Does something with the file, unless something has failed before.
    pub(super) fn attempt<T>(&mut self, call: impl FnOnce(&mut F) -> io::Result<T>) -> io::Result<T> {
        if self.failed {
            return Err(io::Error::other("an operation on the file has failed before, and none is tried again"));
        }
        let result = call(&mut self.file);
        self.failed = result.as_ref().is_err_and(|error| error.kind() != io::ErrorKind::Interrupted);
        result
    }

    /// Makes durable what was written so far.
    pub(super) fn sync(&mut self) -> io::Result<()> {
        self.flush()?;
        self.attempt(F::sync)
    }

    /// Cuts the file off for the last time, whatever has failed before.
    pub(super) fn abandon(&mut self, bytes: u64) {
        self.failed = true;
        let _ = self.file.cut(bytes); // what is left stands after the last commit, where nobody reads
    }
}

impl<F: StoredFile> Write for Buffered<F> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.buffer.len().saturating_add(bytes.len()) > BUFFER_BYTES {
            self.flush()?;
        }
        if bytes.len() >= BUFFER_BYTES {
            return self.attempt(|file| file.write(bytes));
        }
        self.attempt(|_| Ok(()))?;
        self.buffer.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let mut buffer = mem::take(&mut self.buffer);
        self.attempt(|file| file.write_all(&buffer))?;
        buffer.clear();
        self.buffer = buffer;
        Ok(())
    }
}
