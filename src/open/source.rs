//! Sources of a file's bytes.

use super::FileIdentity;
use super::ranges::{Fragment, RangeError};
use crate::le::u64_of;
use crate::{Error, Result, memory};
use std::io;
use std::ops::{ControlFlow, Range};
use std::sync::Arc;

/// Bytes that can be read at any offset, by many threads at once.
pub trait Source: Send + Sync {
    /// Returns the length of the file. It does not change while a reader uses the source.
    fn byte_count(&self) -> u64;

    /// Fills `out` with the bytes at `offset`.
    fn read_exact_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()>;

    /// Returns the whole file, if it is in memory or mapped. Views need it.
    fn as_bytes(&self) -> Option<&[u8]> {
        None
    }

    /// Takes a hint that these bytes will be read soon.
    fn will_need(&self, _range: Range<u64>) {}

    /// Returns the number of bytes that are cheaper to read than to skip: two ranges with at most
    /// this gap are read as one. The latency of a request times the throughput of the source is a
    /// good value. Default: 0, which suits memory.
    fn gap_bytes(&self) -> u64 {
        0
    }

    /// Returns whether a long run of values is best read by [`Source::read_exact_at`] straight to
    /// its destination, one run after the other: that saves a copy of each, but no other range is
    /// read at the same time. Default: no. Files that the operating system reads say yes.
    fn reads_in_place(&self) -> bool {
        false
    }

    /// Reads many ranges of bytes, none of which is empty or ends after the file. Calls `arrived`
    /// with fragments until it has got every byte of every range, each once: in any order of
    /// ranges, and of fragments within a range. Stops if `arrived` breaks; that is no error.
    ///
    /// The caller decodes in `arrived`. An implementation should hand over the bytes that have
    /// arrived before it waits for the rest, and the whole of a short range at once: the caller
    /// copies only ranges that arrive in fragments.
    /// `scratch` is memory of the caller, of any length and content, that is reused from call to
    /// call.
    ///
    /// Default: lends the bytes of a source that is in memory. Else reads one range after the other
    /// into `scratch` with [`Source::read_exact_at`].
    fn read_ranges(
        &self,
        ranges: &[Range<u64>],
        scratch: &mut Vec<u8>,
        arrived: &mut dyn FnMut(Fragment<'_>) -> ControlFlow<()>,
    ) -> std::result::Result<(), RangeError> {
        let memory = self.as_bytes();
        for (range, bytes) in ranges.iter().enumerate() {
            let found = read_range(self, memory, bytes, scratch).map_err(|error| RangeError { range, error })?;
            if arrived(Fragment { range, offset: 0, bytes: found }).is_break() {
                break;
            }
        }
        Ok(())
    }

    /// Takes the news that bytes of the file broke a rule of the format. A source that keeps copies
    /// of bytes forgets them: the original may be right. Default: does nothing.
    fn distrust(&self) {}

    /// Returns the identity of the file that contains the bytes, which no output may replace;
    /// `None` if there is no such file.
    fn identity(&self) -> Option<FileIdentity> {
        None
    }
}

/// The memory for ranges grows by multiples of this.
const SCRATCH_BYTES: usize = 64 << 10;

/// Reads one range: lends it if the source is in `memory`, else reads it into `scratch`.
fn read_range<'a>(
    source: &(impl Source + ?Sized),
    memory: Option<&'a [u8]>,
    range: &Range<u64>,
    scratch: &'a mut Vec<u8>,
) -> io::Result<&'a [u8]> {
    let length = usize::try_from(range.end.saturating_sub(range.start)).unwrap_or(usize::MAX);
    if let Some(bytes) = memory {
        return slice(bytes, range.start, length).map_err(|_| io::ErrorKind::UnexpectedEof.into());
    }
    if scratch.len() < length {
        // in steps, so that ranges which differ a little do not each grow it
        let rounded = length.checked_next_multiple_of(SCRATCH_BYTES).unwrap_or(length);
        memory::resize(scratch, rounded, 0).map_err(|_| io::ErrorKind::OutOfMemory)?;
    }
    let out = scratch.get_mut(..length).unwrap_or(&mut []); // it is as long
    source.read_exact_at(range.start, out)?;
    Ok(out)
}

/// A file that is in memory: a `Vec<u8>`, an `Arc<[u8]>`, a `&[u8]`, a memory map of the caller's.
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

/// A shared source: the caller of `open` can keep a handle to the source of the reader.
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

    fn will_need(&self, range: Range<u64>) {
        (**self).will_need(range);
    }

    fn gap_bytes(&self) -> u64 {
        (**self).gap_bytes()
    }

    fn reads_in_place(&self) -> bool {
        (**self).reads_in_place()
    }

    fn read_ranges(
        &self,
        ranges: &[Range<u64>],
        scratch: &mut Vec<u8>,
        arrived: &mut dyn FnMut(Fragment<'_>) -> ControlFlow<()>,
    ) -> std::result::Result<(), RangeError> {
        (**self).read_ranges(ranges, scratch, arrived)
    }

    fn distrust(&self) {
        (**self).distrust();
    }

    fn identity(&self) -> Option<FileIdentity> {
        (**self).identity()
    }
}

/// The bytes of a file. It asks the source once, by a virtual call, whether they are in memory.
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

    /// Returns the whole file, if it is in memory.
    #[inline]
    pub(crate) fn memory(self) -> Option<&'a [u8]> {
        self.memory
    }

    /// Returns a structure of `N` bytes at `offset`.
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

    /// `length` bytes at `offset`: borrowed if the file is in memory, else read into `buffer`.
    /// Bytes outside the file are refused before memory is taken for them.
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

/// As [`FileBytes::get`].
pub(crate) fn fetch<'a>(
    source: &'a dyn Source,
    offset: u64,
    length: usize,
    buffer: &'a mut Vec<u8>,
) -> Result<&'a [u8]> {
    FileBytes::of(source).get(offset, length, buffer)
}

/// Returns a structure of `N` bytes at `offset`.
pub(crate) fn fetch_array<const N: usize>(source: &dyn Source, offset: u64) -> Result<[u8; N]> {
    FileBytes::of(source).array(offset)
}

/// `length` bytes at `offset` of a file in memory.
#[inline]
pub(crate) fn slice(bytes: &[u8], offset: u64, length: usize) -> Result<&[u8]> {
    let start = usize::try_from(offset).unwrap_or(usize::MAX);
    let found = bytes.get(start..).and_then(|rest| rest.get(..length));
    found.ok_or_else(|| outside(u64_of(bytes.len()), offset, length))
}

pub(crate) fn read(source: &dyn Source, offset: u64, out: &mut [u8]) -> Result<()> {
    source.read_exact_at(offset, out).map_err(|error| read_error(error, offset))
}

/// Returns the error of a read at `offset`.
pub(crate) fn read_error(error: io::Error, offset: u64) -> Error {
    let doing = match error.kind() {
        io::ErrorKind::UnexpectedEof => "reading: the file is shorter than it was when it was opened",
        io::ErrorKind::OutOfMemory => {
            return Error::over_limit("the bytes to read do not fit in memory").with_offset(offset);
        }
        _ => "reading",
    };
    Error::io(doing, error).with_offset(offset)
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
        "expected {length} bytes here, but the file ends at {file_bytes}: it is truncated, or not a tensilo file"
    );
    Error::corrupt("R-2.5", message).with_offset(offset)
}
