//! The choice between io_uring and reading by position.

use super::access::{Access, FileAccess, Opener};
use crate::machine;
use crate::uring_file::{PageCache, UringFile};
use rustix::fs::FsWord;
use std::path::Path;

/// The types of file systems in memory, as `statfs` tells them: tmpfs and ramfs.
const IN_MEMORY: [FsWord; 2] = [0x0102_1994, 0x8584_58F6];
/// Those of a network, whose servers answer late, and may not keep what O_DIRECT promises: NFS, SMB
/// (three), Ceph, Lustre, GPFS, BeeGFS, 9P, AFS (two), FUSE.
const OF_A_NETWORK: [FsWord; 12] = [
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

impl Access {
    pub(crate) fn io_uring(page_cache: PageCache, why: &'static str) -> Self {
        let how = match page_cache {
            PageCache::Used => FileAccess::IoUring,
            PageCache::Passed => FileAccess::Direct,
        };
        let open = move |path: &Path, options: tensilo::OpenOptions| options.open(UringFile::open(path, page_cache)?);
        Self { how, why, opener: Opener::new(open) }
    }

    /// Chooses how to read files at a path, which have so many bytes in all.
    pub(super) fn choose(path: &Path, file_bytes: impl FnOnce() -> u64) -> Self {
        let file_system = rustix::fs::statfs(path).map_or(0, |found| found.f_type);
        if IN_MEMORY.contains(&file_system) {
            return Self::by_position("the file system is in memory");
        }
        if UringFile::unavailable().is_some() {
            return Self::by_position("this system has no io_uring, or forbids it");
        }
        if OF_A_NETWORK.contains(&file_system) {
            let why = "the file system is that of a network: all ranges of a batch are asked for at the same time";
            return Self::io_uring(PageCache::Used, why);
        }
        if machine::is_larger_than_memory(file_bytes()) {
            return Self::past_the_page_cache();
        }
        let why = "the files fit in memory; what is not there is read at the same time for all ranges of a batch";
        Self::io_uring(PageCache::Used, why)
    }

    /// Reads past the page cache what the file system allows, and the rest through it.
    fn past_the_page_cache() -> Self {
        let open = |path: &Path, options: tensilo::OpenOptions| {
            let file = UringFile::open(path, PageCache::Passed).or_else(|_| UringFile::open(path, PageCache::Used));
            options.open(file?)
        };
        let why = "the files are larger than half of the memory, so that the page cache would keep little of them";
        Self { how: FileAccess::Direct, why, opener: Opener::new(open) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(path: &str, file_bytes: u64) -> FileAccess {
        Access::choose(Path::new(path), || file_bytes).how
    }

    #[test]
    fn large_datasets_are_read_past_the_page_cache_and_those_in_memory_by_position() {
        if UringFile::unavailable().is_some() {
            assert_eq!(chosen("/", u64::MAX), FileAccess::ByPosition);
            return;
        }
        let here = env!("CARGO_MANIFEST_DIR");
        let is_plain = rustix::fs::statfs(here)
            .is_ok_and(|found| !IN_MEMORY.contains(&found.f_type) && !OF_A_NETWORK.contains(&found.f_type));
        if is_plain {
            assert_eq!((chosen(here, 1), chosen(here, u64::MAX)), (FileAccess::IoUring, FileAccess::Direct));
        }
        let memory = "/dev/shm";
        if rustix::fs::statfs(memory).is_ok_and(|found| IN_MEMORY.contains(&found.f_type)) {
            assert_eq!(chosen(memory, u64::MAX), FileAccess::ByPosition);
        }
    }
}
