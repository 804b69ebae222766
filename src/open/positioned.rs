//! Local and network files, read with positional reads (`pread`).
//!
//! Each read is one system call with its own offset, so threads can share a file without a lock. If
//! another process truncates the file, a read returns an ordinary error, whereas access to a memory
//! map would raise a signal. Operating systems differ in how they read at an offset, accept hints
//! and report the type of a file system. The functions that do this therefore have one version for
//! each system. A hint that a system does not support does nothing.
//!
//! Only regular files are accepted. Anything else has no length, and opening a pipe without a
//! writer blocks forever.

use super::FileIdentity;
use super::coalesce::{CoalesceConfig, RangeError};
use super::source::{Source, read_each};
use crate::open::foreign::explain_missing;
use crate::{Error, Result};
use std::fs::{self, File, Metadata};
use std::io;
#[cfg(target_os = "linux")]
use std::num::NonZeroU64;
use std::ops::Range;
use std::path::Path;

/// A file that is read with `pread`, without a mapping, a file position or a lock. If another
/// process truncates the file while it is open, reads return an ordinary error.
///
/// If the file is on a network, all ranges of a read are prefetched before the first one is read,
/// so the system fetches them at the same time.
#[derive(Debug)]
pub struct PositionedFile {
    file: File,
    byte_count: u64,
    is_on_network: bool,
}

impl PositionedFile {
    /// Opens a file for reading. Bytes that are appended later are not visible.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        // checked before opening, because opening a pipe without a writer blocks forever
        let file = fs::metadata(path).and_then(|metadata| check_regular(&metadata)).and_then(|()| File::open(path));
        let file = file.and_then(Self::of).map_err(|error| explain_missing(path, error));
        file.map_err(|error| Error::io("opening the file", error).with_path(path))
    }

    /// Wraps a file that is open for reading. Bytes that are appended later are not visible.
    pub fn from_file(file: File) -> Result<Self> {
        Self::of(file).map_err(|error| Error::io("opening the file", error))
    }

    pub(crate) fn of(file: File) -> io::Result<Self> {
        let metadata = file.metadata()?;
        check_regular(&metadata)?;
        Ok(Self { byte_count: metadata.len(), is_on_network: is_network(&file), file })
    }

    pub(crate) fn file(&self) -> &File {
        &self.file
    }
}

/// Returns the default number of files that a reader of many files keeps open: half of the
/// process's limit, at most 256. The other half remains available to the program.
pub fn default_open_files() -> usize {
    (open_file_limit() / 2).clamp(1, 256)
}

#[cfg(target_os = "linux")]
fn open_file_limit() -> usize {
    use rustix::process::{Resource, getrlimit};
    getrlimit(Resource::Nofile).current.and_then(|limit| limit.try_into().ok()).unwrap_or(usize::MAX)
}

/// Assumes 256 on macOS, where this is the default limit of a process, and 512 elsewhere.
#[cfg(not(target_os = "linux"))]
fn open_file_limit() -> usize {
    if cfg!(target_os = "macos") { 256 } else { 512 }
}

/// Refuses anything but a regular file, because only a regular file has a length and can be read at
/// an offset.
pub(crate) fn check_regular(metadata: &Metadata) -> io::Result<()> {
    if metadata.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    match kind_of(metadata) {
        Some(kind) => Err(io::Error::new(io::ErrorKind::InvalidInput, format!("it is {kind}, not a regular file"))),
        None => Ok(()),
    }
}

#[cfg(unix)]
fn kind_of(metadata: &Metadata) -> Option<&'static str> {
    use std::os::unix::fs::FileTypeExt;
    let file_type = metadata.file_type();
    match () {
        () if file_type.is_fifo() => Some("a named pipe"),
        () if file_type.is_socket() => Some("a socket"),
        () if file_type.is_char_device() || file_type.is_block_device() => Some("a device"),
        () => None,
    }
}

#[cfg(not(unix))]
fn kind_of(_: &Metadata) -> Option<&'static str> {
    None
}

/// Exposes the descriptor, so that programs can read the file by other means.
#[cfg(unix)]
impl std::os::fd::AsFd for PositionedFile {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl Source for PositionedFile {
    fn byte_count(&self) -> u64 {
        self.byte_count
    }

    fn read_exact_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        read_exact_at(&self.file, offset, out)
    }

    fn coalesce(&self) -> CoalesceConfig {
        if self.is_on_network { CoalesceConfig::NETWORK_FILE } else { CoalesceConfig::LOCAL_FILE }
    }

    fn read_ranges(&self, ranges: &[Range<u64>], out: &mut [u8]) -> std::result::Result<(), RangeError> {
        if self.is_on_network && ranges.len() > 1 {
            self.prefetch(ranges);
        }
        read_each(self, ranges, out)
    }

    /// Returns 16, because blocks start at multiples of 16. The operating system itself requires no
    /// alignment.
    fn alignment(&self) -> Option<u64> {
        Some(16)
    }

    fn prefetch(&self, ranges: &[Range<u64>]) {
        ranges.iter().for_each(|range| will_need(&self.file, range));
    }

    fn identity(&self) -> Option<FileIdentity> {
        FileIdentity::of(&self.file).ok().flatten()
    }
}

/// Returns whether a path is on a network file system, where each request takes a round trip.
/// Detected on Linux only; `false` elsewhere.
pub fn is_on_network(path: &Path) -> bool {
    #[cfg(target_os = "linux")]
    return rustix::fs::statfs(path).is_ok_and(|found| network::has(&found));
    #[cfg(not(target_os = "linux"))]
    {
        let _ = path;
        false
    }
}

#[cfg(target_os = "linux")]
fn is_network(file: &File) -> bool {
    rustix::fs::fstatfs(file).is_ok_and(|found| network::has(&found))
}

#[cfg(not(target_os = "linux"))]
fn is_network(_: &File) -> bool {
    false
}

#[cfg(target_os = "linux")]
mod network {
    use rustix::fs::StatFs;

    /// The magic numbers of network file systems: NFS, SMB (three), Ceph, Lustre, GPFS, BeeGFS, 9P,
    /// AFS (two), FUSE.
    const TYPES: [u32; 12] = [
        0x6969,
        0x517B,
        0xFF53_4D42,
        0xFE53_4D42,
        0x00C3_6400,
        0x0BD0_0BD0,
        0x4750_4653,
        0x1983_0326,
        0x0102_1997,
        0x5346_414F,
        0x6B41_4653,
        0x6573_5546,
    ];

    pub(super) fn has(found: &StatFs) -> bool {
        TYPES.contains(&(found.f_type as u32)) // magic numbers have 32 bits on every system
    }
}

#[cfg(target_os = "linux")]
fn will_need(file: &File, range: &Range<u64>) {
    use rustix::fs::{Advice, fadvise};
    if let Some(length) = NonZeroU64::new(range.end.saturating_sub(range.start)) {
        // only a hint: reading works without it
        let _ = fadvise(file, range.start, Some(length), Advice::WillNeed);
    }
}

#[cfg(not(target_os = "linux"))]
fn will_need(_: &File, _: &Range<u64>) {}

#[cfg(unix)]
fn read_exact_at(file: &File, offset: u64, out: &mut [u8]) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, out, offset)
}

#[cfg(windows)]
fn read_exact_at(file: &File, mut offset: u64, mut out: &mut [u8]) -> io::Result<()> {
    use crate::bytes::le::u64_of;
    use std::os::windows::fs::FileExt;
    while !out.is_empty() {
        match file.seek_read(out, offset) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => {
                out = out.get_mut(count..).unwrap_or(&mut []);
                offset += u64_of(count);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// WebAssembly has no stable function that reads at an offset. Files in memory work.
#[cfg(not(any(unix, windows)))]
fn read_exact_at(_: &File, _: u64, _: &mut [u8]) -> io::Result<()> {
    Err(io::Error::new(
        io::ErrorKind::Unsupported,
        "this platform cannot read files by position; use Reader::from_bytes",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn ranges_of_a_file_on_a_network_are_read_right() {
        let bytes: Vec<u8> = (0..100_000_u32).map(|at| (at / 7) as u8).collect();
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&bytes).unwrap();
        let mut file = PositionedFile::from_file(file).unwrap();
        file.is_on_network = true;
        assert_eq!(file.coalesce(), CoalesceConfig::NETWORK_FILE);
        let ranges = [3..5, 70_000..99_999, 99_999..100_000];
        let mut out = vec![0; 2 + 29_999 + 1];
        file.read_ranges(&ranges, &mut out).unwrap();
        assert!(ranges.iter().flat_map(|range| &bytes[range.start as usize..range.end as usize]).eq(&out));
        let error = file.read_ranges(&[0..1, 99_999..100_001], &mut [0; 3]).unwrap_err();
        assert_eq!((error.range, error.error.kind()), (1, io::ErrorKind::UnexpectedEof));
    }

    #[test]
    fn memory_is_not_on_a_network() {
        assert!(!is_on_network(Path::new("/dev/shm")) && !is_on_network(Path::new("/no such file")));
    }
}
