//! A source that lends no memory, so that every read copies.

use std::io;
use tensilo::source::{InMemory, Source};

/// A file that is read by position only.
pub struct Positional<B>(pub B);

impl<B: AsRef<[u8]> + Send + Sync> Source for Positional<B> {
    fn byte_count(&self) -> u64 {
        self.0.as_ref().len() as u64
    }

    fn read_exact_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        InMemory(self.0.as_ref()).read_exact_at(offset, out)
    }
}
