//! Places regions one after the other in a sink (rules ).

use super::sink::Sink;
use crate::format::region::{FileId, RegionKind, place};
use crate::{Error, Result};

const ZEROS: [u8; 4096] = [0; 4096];

/// A sink, and how far it has been written.
pub(super) struct Output<K> {
    sink: K,
    pub(super) file_id: FileId,
    alignment: u64,
    /// Bytes of the file that the sink has.
    end: u64,
}

impl<K: Sink> Output<K> {
    /// A sink in which `end` bytes of the file stand already.
    pub(super) fn new(sink: K, file_id: FileId, alignment: u64, end: u64) -> Self {
        Self { sink, file_id, alignment, end }
    }

    pub(super) fn into_sink(self) -> K {
        self.sink
    }

    /// Where the next region of this kind will stand.
    pub(super) fn next(&self, kind: RegionKind) -> u64 {
        match self.end {
            0 => 0,
            end => place(kind, end, self.alignment),
        }
    }

    /// Writes a region at [`Output::next`] of its kind: padding, head and body.
    pub(super) fn region(&mut self, kind: RegionKind, head: &[u8; 64], body: &[u8]) -> Result<()> {
        let padding = usize::try_from(self.next(kind) - self.end).unwrap_or(0); // less than two alignments
        let (first, second) = (padding.min(ZEROS.len()), padding.saturating_sub(ZEROS.len()));
        for zeros in [first, second] {
            self.write(ZEROS.get(..zeros).unwrap_or(&[]))?;
        }
        self.write(head)?;
        self.write(body)
    }

    fn write(&mut self, mut bytes: &[u8]) -> Result<()> {
        while !bytes.is_empty() {
            let accepted = match self.sink.write(bytes) {
                Ok(0) => return Err(self.failed("writing", std::io::ErrorKind::WriteZero.into())),
                Ok(accepted) if accepted > bytes.len() => {
                    return Err(self.failed("writing", std::io::Error::other("more bytes accepted than offered")));
                }
                Ok(accepted) => accepted,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(self.failed("writing", error)),
            };
            bytes = bytes.get(accepted..).unwrap_or(&[]);
            self.end = self.end.saturating_add(accepted as u64); // exact: usize has at most 64 bits
        }
        Ok(())
    }

    pub(super) fn sync(&mut self) -> Result<()> {
        let flushed = self.sink.flush().and_then(|()| self.sink.sync());
        flushed.map_err(|error| self.failed("making the file durable", error))
    }

    pub(super) fn publish(&mut self) -> Result<()> {
        self.sink.publish().map_err(|error| self.failed("putting the file in its place", error))
    }

    fn failed(&self, doing: &str, error: std::io::Error) -> Error {
        let error = Error::io(doing, error).with_offset(self.end);
        match self.sink.path() {
            Some(path) => error.with_path(path),
            None => error,
        }
    }
}
