//! The choice between io_uring and `pread`.

use super::io::{Io, IoChoice, Opener};
use crate::machine;
use crate::uring_file::UringFile;
use rustix::fs::FsWord;
use std::path::Path;
use tensilo::OpenOptions;
use tensilo::source::is_on_network;

/// The types of file systems in memory, as `statfs` tells them: tmpfs and ramfs.
const IN_MEMORY: [FsWord; 2] = [0x0102_1994, 0x8584_58F6];
impl IoChoice {
    pub(super) fn io_uring() -> Self {
        let open = |path: &Path, options: OpenOptions| options.open(UringFile::open(path)?);
        Self::explicit(Io::IoUring, Opener::new(open))
    }

    pub(super) fn direct() -> Self {
        let open = |path: &Path, options: OpenOptions| options.open(UringFile::open_direct(path)?);
        Self::explicit(Io::Direct, Opener::new(open))
    }

    /// Chooses how to read files at a path.
    pub(super) fn choose(path: &Path) -> Self {
        if is_of(&IN_MEMORY, path) {
            return Self::pread().chosen_as("the file system is in memory");
        }
        if UringFile::unavailable().is_some() {
            return Self::pread().chosen_as("this system has no io_uring, or forbids it");
        }
        Self::io_uring().chosen_as("it reads all ranges of a batch at the same time")
    }

    /// Returns whether files at a path that have so many bytes in all stay in the page cache.
    pub(super) fn stays_cached(path: &Path, file_bytes: impl FnOnce() -> u64) -> bool {
        !is_on_network(path) && !machine::is_larger_than_memory(file_bytes())
    }

    /// Returns another way that suits samples in any order better, of files at a path that have so
    /// many bytes in all: direct I/O, if the page cache would keep little of them. Windows of runs
    /// stay in it, and so need it.
    pub(super) fn for_shuffled(&self, path: &Path, file_bytes: impl FnOnce() -> u64) -> Option<Self> {
        let is_suitable = self.chosen.is_some() && self.kind == Io::IoUring && !is_on_network(path);
        if !is_suitable || !machine::is_larger_than_memory(file_bytes()) {
            return None;
        }
        let open = |path: &Path, options: OpenOptions| {
            // some file systems refuse direct I/O
            let file = UringFile::open_direct(path).or_else(|_| UringFile::open(path));
            options.open(file?)
        };
        let why = "samples are shuffled, and the page cache would keep little of files larger than half of the memory";
        Some(Self::explicit(Io::Direct, Opener::new(open)).chosen_as(why))
    }
}

/// Returns whether a file system is one of these.
fn is_of(file_systems: &[FsWord], path: &Path) -> bool {
    rustix::fs::statfs(path).is_ok_and(|found| file_systems.contains(&found.f_type))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shuffled_files_are_read_with_direct_io_if_they_do_not_stay_cached() {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let chosen = IoChoice::choose(here);
        assert!(chosen.chosen.is_some());
        if UringFile::unavailable().is_some() || is_of(&IN_MEMORY, here) {
            assert_eq!(chosen.kind, Io::Pread);
            assert!(chosen.for_shuffled(here, || u64::MAX).is_none());
            return;
        }
        assert_eq!(chosen.kind, Io::IoUring);
        let shuffled = |choice: &IoChoice, bytes| choice.for_shuffled(here, || bytes).map(|choice| choice.kind);
        assert_eq!(shuffled(&chosen, 1), None);
        let due = if is_on_network(here) { None } else { Some(Io::Direct) };
        assert_eq!(shuffled(&chosen, u64::MAX), due);
        assert_eq!(shuffled(&IoChoice::io_uring(), u64::MAX), None, "asked for");
    }

    #[test]
    fn files_stay_cached_if_they_are_local_and_fit() {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        assert_eq!(IoChoice::stays_cached(here, || 1), !is_on_network(here));
        assert!(!IoChoice::stays_cached(here, || u64::MAX));
    }

    #[test]
    fn files_in_memory_are_read_with_pread() {
        let memory = Path::new("/dev/shm");
        if is_of(&IN_MEMORY, memory) {
            assert_eq!(IoChoice::choose(memory).kind, Io::Pread);
        }
    }
}
