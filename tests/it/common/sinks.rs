//! Sinks that misbehave as the operating system may.

use std::io::{self, ErrorKind, Write};
use tensilo::sink::Sink;

/// Accepts 1 to 7 bytes at a time, and is interrupted now and then.
#[derive(Default)]
pub struct Stingy {
    pub bytes: Vec<u8>,
    calls: usize,
}

impl Write for Stingy {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.calls += 1;
        if self.calls.is_multiple_of(5) {
            return Err(ErrorKind::Interrupted.into());
        }
        let accepted = bytes.len().min(1 + self.calls % 7);
        self.bytes.extend(&bytes[..accepted]);
        Ok(accepted)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Sink for Stingy {
    fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Fails at one call, and counts those that come after it.
pub struct Failing {
    pub bytes: Vec<u8>,
    /// Calls left until the failure.
    pub calls_left: usize,
    pub error: ErrorKind,
    pub calls_after: usize,
    /// For each commit that was done: the bytes written before.
    pub published: Vec<usize>,
}

impl Failing {
    pub fn at(call: usize, error: ErrorKind) -> Self {
        Self { bytes: Vec::new(), calls_left: call, error, calls_after: 0, published: Vec::new() }
    }

    fn call(&mut self) -> io::Result<()> {
        match self.calls_left.checked_sub(1) {
            Some(left) => {
                self.calls_left = left;
                Ok(())
            }
            None => {
                self.calls_after += 1;
                Err(self.error.into())
            }
        }
    }
}

impl Write for &mut Failing {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.call().inspect_err(|_| {
            // a full disk takes some of the bytes
            let part = if self.calls_after == 1 { bytes.len() / 2 } else { 0 };
            self.bytes.extend(&bytes[..part]);
        })?;
        self.bytes.extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.call()
    }
}

impl Sink for &mut Failing {
    fn sync(&mut self) -> io::Result<()> {
        self.call()
    }

    fn publish(&mut self) -> io::Result<()> {
        self.call()?;
        self.published.push(self.bytes.len());
        Ok(())
    }
}
