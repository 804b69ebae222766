//! Files read by position: safe, and right on network file systems.

use crate::read::{OpenOptions, Reader, Source};
use crate::{Error, Result};
use std::fs::File;
use std::io;
use std::path::Path;

/// A file that is read with `pread`: no mapping, no file position, no locks. A file that is truncated by another process
/// while it is open gives an ordinary error.
#[derive(Debug)]
pub struct PositionedFile {
    file: File,
    byte_count: u64,
}

impl PositionedFile {
    /// Opens a file for reading. Its length is what it is now.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let open = || {
            let file = File::open(path)?;
            let metadata = file.metadata()?;
            if metadata.is_dir() {
                return Err(io::ErrorKind::IsADirectory.into());
            }
            Ok(Self { byte_count: metadata.len(), file })
        };
        open().map_err(|error| Error::io("opening the file", error).with_path(path))
    }

    #[cfg(feature = "mmap")]
    pub(crate) fn file(&self) -> &File {
        &self.file
    }
}

impl OpenOptions {
    /// Opens a file that is read by position.
    pub fn open_file(self, path: impl AsRef<Path>) -> Result<Reader<PositionedFile>> {
        let path = path.as_ref();
        let reader = PositionedFile::open(path).and_then(|file| self.open(file));
        Reader::with_path(reader, path)
    }
}

impl Reader<PositionedFile> {
    /// Opens a file that is read by position (`pread`): safe, and right on network file systems. Samples cannot be viewed
    /// without copying.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        OpenOptions::new().open_file(path)
    }
}

impl Source for PositionedFile {
    fn byte_count(&self) -> u64 {
        self.byte_count
    }

    fn read_exact_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        read_exact_at(&self.file, offset, out)
    }
}

#[cfg(unix)]
fn read_exact_at(file: &File, offset: u64, out: &mut [u8]) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, out, offset)
}

#[cfg(windows)]
fn read_exact_at(file: &File, mut offset: u64, mut out: &mut [u8]) -> io::Result<()> {
    use std::os::windows::fs::FileExt;
    while !out.is_empty() {
        match file.seek_read(out, offset) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => {
                out = out.get_mut(count..).unwrap_or(&mut []);
                offset += count as u64; // exact: usize has at most 64 bits
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
