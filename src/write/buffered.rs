//! A file that is written through a buffer, and cut off at its last commit.

use super::storage::StoredFile;
use crate::le::u64_of;
use std::io::{self, Write};
use std::mem;

/// The size of the buffer. A chunk takes three writes, which should not be three system calls.
const BUFFER_BYTES: usize = 256 << 10;

/// A file that is written through a buffer.
///
/// After an error nothing is tried again: an `fsync` that is repeated may report success for bytes
/// that are lost. When this is dropped, the bytes after the last commit are cut off.
#[derive(Debug)]
pub(super) struct Buffered<F: StoredFile> {
    file: F,
    buffer: Vec<u8>,
    /// The length of the file with the bytes in the buffer.
    end: u64,
    /// The offset at which the last commit ends; 0 before the first.
    committed: u64,
    failed: bool,
}

impl<F: StoredFile> Buffered<F> {
    /// Makes the buffer of a file whose last commit ends at `committed`.
    pub(super) fn new(file: F, committed: u64) -> Self {
        Self { file, buffer: Vec::new(), end: committed, committed, failed: false }
    }

    /// Marks the bytes written so far as committed.
    pub(super) fn committed(&mut self) {
        self.committed = self.end;
    }

    /// Cuts the file off after the last commit.
    pub(super) fn cut(&mut self) -> io::Result<()> {
        let committed = self.committed;
        self.attempt(|file| file.cut(committed))
    }

    /// Calls `call` with the file, unless a call has failed before.
    pub(super) fn attempt<T>(&mut self, call: impl FnOnce(&mut F) -> io::Result<T>) -> io::Result<T> {
        if self.failed {
            return Err(io::Error::other("an operation on the file has failed before, and none is tried again"));
        }
        let result = call(&mut self.file);
        self.failed = result.as_ref().is_err_and(|error| error.kind() != io::ErrorKind::Interrupted);
        result
    }

    /// Makes the bytes durable that were written so far.
    pub(super) fn sync(&mut self) -> io::Result<()> {
        self.flush()?;
        let unsynced = |error: io::Error| {
            let message =
                format!("{error}; what was written since the last commit may be lost, and it is not tried again");
            io::Error::new(error.kind(), message)
        };
        self.attempt(|file| file.sync().map_err(unsynced))
    }
}

impl<F: StoredFile> Write for Buffered<F> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.buffer.len().saturating_add(bytes.len()) > BUFFER_BYTES {
            self.flush()?;
        }
        let accepted = if bytes.len() >= BUFFER_BYTES {
            self.attempt(|file| file.write(bytes))?
        } else {
            self.attempt(|_| Ok(()))?;
            self.buffer.extend_from_slice(bytes);
            bytes.len()
        };
        self.end = self.end.saturating_add(u64_of(accepted));
        Ok(accepted)
    }

    fn flush(&mut self) -> io::Result<()> {
        let mut buffer = mem::take(&mut self.buffer);
        self.attempt(|file| file.write_all(&buffer))?;
        buffer.clear();
        self.buffer = buffer;
        Ok(())
    }
}

impl<F: StoredFile> Drop for Buffered<F> {
    fn drop(&mut self) {
        if self.committed > 0 && self.end > self.committed {
            // after an error too; readers ignore the bytes that stay
            let _ = self.file.cut(self.committed);
        }
    }
}
