//! Sources: where the bytes of a file come from.
//!
//! A [`Source`] serves reads at any offset, from many threads at once. Readers depend on nothing
//! else, so they work on memory, maps, files and objects in a store. Two methods are required. The
//! others have defaults, and can make a source faster or safer: coalescing, direct access to
//! memory, hints, and the identity of the file.
//!
//! If the file is in memory, its headers, pages and chunks are borrowed in place; otherwise they
//! are read into a buffer. [`FileBytes`] determines only once which case applies. Its functions
//! refuse bytes outside the file before they allocate memory. [`FirstBytes`] limits another
//! source to the bytes of an earlier commit.

use super::FileIdentity;
use super::coalesce::{CoalesceConfig, RangeError, range_length};
use crate::bytes::le::u64_of;
use crate::bytes::memory;
use crate::{Error, Result};
use std::io;
use std::ops::Range;
use std::sync::Arc;

/// Bytes that can be read at any offset, by many threads at once.
pub trait Source: Send + Sync {
    /// Returns the length of the file. It must not change while a reader uses the source.
    fn byte_count(&self) -> u64;

    /// Fills `out` with the bytes at `offset`.
    fn read_exact_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()>;

    /// Returns the whole file if it is in memory or mapped. Otherwise, samples cannot be borrowed
    /// without a copy (`Column::view`). Default: `None`.
    fn as_bytes(&self) -> Option<&[u8]> {
        None
    }

    /// Returns how to coalesce ranges into requests. Default: [`CoalesceConfig::MEMORY`].
    fn coalesce(&self) -> CoalesceConfig {
        CoalesceConfig::MEMORY
    }

    /// Reads many ranges into `out`, one after another without gaps. The length of `out` is their
    /// total length. No range is empty, and all end inside the file.
    ///
    /// The ranges are already coalesced. An implementation reads up to
    /// [`CoalesceConfig::max_in_flight`] of them at the same time. If one fails, all ranges before
    /// it have been read.
    ///
    /// Default: reads one range after another with [`Source::read_exact_at`].
    fn read_ranges(&self, ranges: &[Range<u64>], out: &mut [u8]) -> std::result::Result<(), RangeError> {
        read_each(self, ranges, out)
    }

    /// Returns the alignment, a power of two, at which [`Source::read_to_memory`] reads without a
    /// copy; `None` if it always copies. Default: `None`.
    fn alignment(&self) -> Option<u64> {
        None
    }

    /// Reads ranges like [`Source::read_ranges`], into `memory`, which must be large enough, and
    /// returns it. Each range starts at a multiple of [`Source::alignment`]. It ends at such a
    /// multiple or at the end of the file.
    ///
    /// Default: calls [`Source::read_ranges`]. If a source can neither cancel its reads nor wait
    /// for them, it leaks the memory and returns `None`.
    fn read_to_memory(
        &self,
        ranges: &[Range<u64>],
        mut memory: Box<dyn ReadMemory>,
    ) -> (Option<Box<dyn ReadMemory>>, std::result::Result<(), RangeError>) {
        let length = ranges.iter().map(range_length).fold(0, usize::saturating_add);
        let read = match memory.bytes_mut().get_mut(..length) {
            Some(out) => self.read_ranges(ranges, out),
            None => Err(RangeError { range: 0, error: io::ErrorKind::InvalidInput.into() }),
        };
        (Some(memory), read)
    }

    /// Hints that these ranges will be read soon, and returns at once. A source starts reading all
    /// of them at the same time. Errors are reported when the ranges are read. Default: does
    /// nothing.
    fn prefetch(&self, _ranges: &[Range<u64>]) {}

    /// Reports that bytes of the file violate the format. A source with a cache drops its copies,
    /// because the original bytes can be intact. Default: does nothing.
    fn invalidate(&self) {}

    /// Returns the identity of the underlying file, so that no output overwrites it; `None` if
    /// there is no such file.
    fn identity(&self) -> Option<FileIdentity> {
        None
    }
}

/// Caller-owned memory to read into, such as pinned memory from which a device copies.
///
/// The memory that [`ReadMemory::bytes_mut`] returns must not move until the next call of a method
/// of this trait, because the system writes to it in the meantime.
pub trait ReadMemory: Send + Sync {
    /// Returns the memory.
    fn bytes(&self) -> &[u8];

    /// Returns the memory.
    fn bytes_mut(&mut self) -> &mut [u8];

    /// Grows the memory to at least `bytes` bytes, and keeps the first `used` bytes.
    fn reserve(&mut self, used: usize, bytes: usize) -> Result<()>;
}

/// Reads one range after another: the default of [`Source::read_ranges`].
pub(super) fn read_each<S: Source + ?Sized>(
    source: &S,
    ranges: &[Range<u64>],
    out: &mut [u8],
) -> std::result::Result<(), RangeError> {
    let mut rest = out;
    for (range, bytes) in ranges.iter().enumerate() {
        let to = rest.split_off_mut(..range_length(bytes)).ok_or(io::ErrorKind::InvalidInput.into());
        let read = to.and_then(|to| source.read_exact_at(bytes.start, to));
        read.map_err(|error| RangeError { range, error })?;
    }
    Ok(())
}

/// A file in memory: a `Vec<u8>`, an `Arc<[u8]>`, a `&[u8]`, or a caller's memory map.
#[derive(Clone, Debug)]
pub struct InMemory<B>(pub B);

impl<B: AsRef<[u8]> + Send + Sync> Source for InMemory<B> {
    fn byte_count(&self) -> u64 {
        u64_of(self.0.as_ref().len())
    }

    fn read_exact_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        let found = self.0.as_ref().get(start..).and_then(|rest| rest.get(..out.len()));
        out.copy_from_slice(found.ok_or(io::ErrorKind::UnexpectedEof)?); // equal lengths
        Ok(())
    }

    fn as_bytes(&self) -> Option<&[u8]> {
        Some(self.0.as_ref())
    }
}

/// A shared source, so that the caller of `open` can keep a handle to it.
impl<S: Source + ?Sized> Source for Arc<S> {
    fn byte_count(&self) -> u64 {
        (**self).byte_count()
    }

    fn read_exact_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        (**self).read_exact_at(offset, out)
    }

    fn as_bytes(&self) -> Option<&[u8]> {
        (**self).as_bytes()
    }

    fn coalesce(&self) -> CoalesceConfig {
        (**self).coalesce()
    }

    fn read_ranges(&self, ranges: &[Range<u64>], out: &mut [u8]) -> std::result::Result<(), RangeError> {
        (**self).read_ranges(ranges, out)
    }

    fn alignment(&self) -> Option<u64> {
        (**self).alignment()
    }

    fn read_to_memory(
        &self,
        ranges: &[Range<u64>],
        memory: Box<dyn ReadMemory>,
    ) -> (Option<Box<dyn ReadMemory>>, std::result::Result<(), RangeError>) {
        (**self).read_to_memory(ranges, memory)
    }

    fn prefetch(&self, ranges: &[Range<u64>]) {
        (**self).prefetch(ranges);
    }

    fn invalidate(&self) {
        (**self).invalidate();
    }

    fn identity(&self) -> Option<FileIdentity> {
        (**self).identity()
    }
}

/// The bytes of a file. Determines only once, with a virtual call, whether they are in memory.
#[derive(Clone, Copy)]
pub(crate) struct FileBytes<'a> {
    source: &'a dyn Source,
    memory: Option<&'a [u8]>,
}

impl<'a> FileBytes<'a> {
    #[inline]
    pub(crate) fn of(source: &'a dyn Source) -> Self {
        Self { source, memory: source.as_bytes() }
    }

    /// Returns the whole file if it is in memory.
    #[inline]
    pub(crate) fn memory(self) -> Option<&'a [u8]> {
        self.memory
    }

    /// Returns the `N` bytes at `offset`.
    #[inline]
    pub(crate) fn array<const N: usize>(self, offset: u64) -> Result<[u8; N]> {
        if let Some(bytes) = self.memory {
            let found = slice(bytes, offset, N)?.first_chunk();
            return found.copied().ok_or_else(|| outside(u64_of(bytes.len()), offset, N));
        }
        check_inside(self.source, offset, N)?;
        let mut out = [0; N];
        read(self.source, offset, &mut out)?;
        Ok(out)
    }

    /// Returns `length` bytes at `offset`: borrowed if the file is in memory, otherwise read into
    /// `buffer`. Bytes outside the file are refused before memory is allocated for them.
    pub(crate) fn get(self, offset: u64, length: usize, buffer: &'a mut Vec<u8>) -> Result<&'a [u8]> {
        if let Some(bytes) = self.memory {
            return slice(bytes, offset, length);
        }
        check_inside(self.source, offset, length)?;
        memory::resize(buffer, length, 0).map_err(|error| error.with_offset(offset))?;
        read(self.source, offset, buffer)?;
        Ok(buffer)
    }
}

/// Returns `length` bytes at `offset`, like [`FileBytes::get`].
pub(crate) fn fetch<'a>(
    source: &'a dyn Source,
    offset: u64,
    length: usize,
    buffer: &'a mut Vec<u8>,
) -> Result<&'a [u8]> {
    FileBytes::of(source).get(offset, length, buffer)
}

/// Returns the `N` bytes at `offset`.
pub(crate) fn fetch_array<const N: usize>(source: &dyn Source, offset: u64) -> Result<[u8; N]> {
    FileBytes::of(source).array(offset)
}

/// Returns `length` bytes at `offset` of a file in memory.
#[inline]
pub(crate) fn slice(bytes: &[u8], offset: u64, length: usize) -> Result<&[u8]> {
    let start = usize::try_from(offset).unwrap_or(usize::MAX);
    let found = bytes.get(start..).and_then(|rest| rest.get(..length));
    found.ok_or_else(|| outside(u64_of(bytes.len()), offset, length))
}

pub(crate) fn read(source: &dyn Source, offset: u64, out: &mut [u8]) -> Result<()> {
    source.read_exact_at(offset, out).map_err(|error| read_error(error, offset))
}

/// Returns the error for a read at `offset`.
pub(crate) fn read_error(error: io::Error, offset: u64) -> Error {
    let operation = match error.kind() {
        io::ErrorKind::UnexpectedEof => "reading: the file is shorter than when it was opened",
        io::ErrorKind::OutOfMemory => {
            return Error::over_limit("the bytes to read do not fit in memory").with_offset(offset);
        }
        _ => "reading",
    };
    Error::io(operation, error).with_offset(offset)
}

pub(crate) fn check_inside(source: &dyn Source, offset: u64, length: usize) -> Result<()> {
    let end = u64::try_from(length).ok().and_then(|length| offset.checked_add(length));
    match end {
        Some(end) if end <= source.byte_count() => Ok(()),
        _ => Err(outside(source.byte_count(), offset, length)),
    }
}

#[cold]
fn outside(file_bytes: u64, offset: u64, length: usize) -> Error {
    let message = format!(
        "expected {length} bytes here, but the file ends at offset {file_bytes}: it is truncated, or not a tensilo file"
    );
    Error::corrupt("R-2.5", message).with_offset(offset)
}

/// The first bytes of a source. Bytes that are appended later are not visible.
pub(crate) struct FirstBytes {
    source: Arc<dyn Source>,
    bytes: u64,
}

impl FirstBytes {
    /// Limits `source` to its first `bytes` bytes.
    pub(crate) fn new(source: Arc<dyn Source>, bytes: u64) -> Self {
        let bytes = bytes.min(source.byte_count());
        Self { source, bytes }
    }

    fn ends_inside(&self, offset: u64, length: usize) -> bool {
        offset.checked_add(u64_of(length)).is_some_and(|end| end <= self.bytes)
    }

    /// Returns the ranges before the first one that ends outside this source, and the error for
    /// that range.
    fn inside<'a>(&self, ranges: &'a [Range<u64>]) -> (&'a [Range<u64>], std::result::Result<(), RangeError>) {
        match ranges.iter().position(|range| range.end > self.bytes) {
            Some(range) => {
                let error = io::ErrorKind::UnexpectedEof.into();
                (ranges.get(..range).unwrap_or(&[]), Err(RangeError { range, error }))
            }
            None => (ranges, Ok(())),
        }
    }
}

impl Source for FirstBytes {
    fn byte_count(&self) -> u64 {
        self.bytes
    }

    fn read_exact_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        if !self.ends_inside(offset, out.len()) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.source.read_exact_at(offset, out)
    }

    fn as_bytes(&self) -> Option<&[u8]> {
        let bytes = self.source.as_bytes()?;
        bytes.get(..usize::try_from(self.bytes).unwrap_or(usize::MAX)) // at most the length of the source
    }

    fn coalesce(&self) -> CoalesceConfig {
        self.source.coalesce()
    }

    fn read_ranges(&self, ranges: &[Range<u64>], out: &mut [u8]) -> std::result::Result<(), RangeError> {
        let (inside, checked) = self.inside(ranges);
        let bytes = inside.iter().map(range_length).fold(0, usize::saturating_add);
        self.source.read_ranges(inside, out.get_mut(..bytes).unwrap_or_default())?;
        checked
    }

    fn alignment(&self) -> Option<u64> {
        self.source.alignment()
    }

    fn read_to_memory(
        &self,
        ranges: &[Range<u64>],
        memory: Box<dyn ReadMemory>,
    ) -> (Option<Box<dyn ReadMemory>>, std::result::Result<(), RangeError>) {
        let (inside, checked) = self.inside(ranges);
        let (memory, read) = self.source.read_to_memory(inside, memory);
        (memory, read.and(checked))
    }

    fn prefetch(&self, ranges: &[Range<u64>]) {
        // callers never request bytes after the end of this source
        self.source.prefetch(ranges);
    }

    fn invalidate(&self) {
        self.source.invalidate();
    }

    fn identity(&self) -> Option<FileIdentity> {
        self.source.identity()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_before_the_one_that_ends_outside_are_read() {
        let first = FirstBytes::new(Arc::new(InMemory(b"abcdef".to_vec())), 4);
        let mut out = [0; 5];
        let error = first.read_ranges(&[0..2, 3..4, 3..5], &mut out).unwrap_err();
        assert_eq!((error.range, error.error.kind(), &out), (2, io::ErrorKind::UnexpectedEof, b"abd\0\0"));
        first.read_ranges(&[0..2, 2..4], &mut out[..4]).unwrap();
        assert_eq!(&out, b"abcd\0");
    }
}
