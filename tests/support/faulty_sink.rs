//! A sink that misbehaves as the operating system may. The fuzz target `writer_faults` uses this
//! file, too.

use std::io::{self, ErrorKind, Write};
use tensilo::sink::Sink;

/// A sink that accepts part of what it is given, is interrupted, and fails at one call.
pub struct FaultySink {
    pub bytes: Vec<u8>,
    /// The maximum number of bytes that a write accepts. Writes cycle through these numbers.
    pub accepted: Vec<usize>,
    /// One of this many writes is interrupted.
    pub interrupted_each: usize,
    /// The number of calls before the one that fails.
    pub calls_left: usize,
    pub error: ErrorKind,
    pub has_failed: bool,
    /// The number of bytes written before each commit.
    pub published: Vec<usize>,
    writes: usize,
}

impl FaultySink {
    /// A sink without a fault.
    pub fn new() -> Self {
        Self {
            bytes: Vec::new(),
            accepted: vec![usize::MAX],
            interrupted_each: usize::MAX,
            calls_left: usize::MAX,
            error: ErrorKind::Other,
            has_failed: false,
            published: Vec::new(),
            writes: 0,
        }
    }

    /// A sink that fails at call `call`, counted from 0.
    pub fn failing_at(call: usize, error: ErrorKind) -> Self {
        Self { calls_left: call, error, ..Self::new() }
    }

    /// A sink that accepts 1 to 7 bytes at a time, and is interrupted now and then.
    pub fn stingy() -> Self {
        Self { accepted: (1..=7).collect(), interrupted_each: 5, ..Self::new() }
    }

    /// Counts a call. A writer never calls a sink that has failed.
    fn call(&mut self) -> io::Result<()> {
        assert!(!self.has_failed, "a sink that has failed was called again");
        match self.calls_left.checked_sub(1) {
            Some(left) => {
                self.calls_left = left;
                Ok(())
            }
            None => {
                self.has_failed = true;
                Err(self.error.into())
            }
        }
    }
}

impl Write for &mut FaultySink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let accepted = bytes.len().min(self.accepted[self.writes % self.accepted.len()]);
        self.writes += 1;
        if self.writes.is_multiple_of(self.interrupted_each) {
            return Err(ErrorKind::Interrupted.into());
        }
        // a full disk takes some of the bytes
        self.call().inspect_err(|_| self.bytes.extend(&bytes[..accepted / 2]))?;
        self.bytes.extend(&bytes[..accepted]);
        Ok(accepted)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.call()
    }
}

impl Sink for &mut FaultySink {
    fn sync(&mut self) -> io::Result<()> {
        self.call()
    }

    fn publish(&mut self) -> io::Result<()> {
        self.call()?;
        self.published.push(self.bytes.len());
        Ok(())
    }
}
