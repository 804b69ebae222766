//! The memory of this machine, as far as it tells.

use std::fs;

/// Returns the bytes of memory of the machine; `None` if it does not tell.
pub(crate) fn memory_bytes() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let total = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    total.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// Returns whether files of so many bytes do not stay in the page cache while a job reads them:
/// they have more than half of the memory.
pub(crate) fn is_larger_than_memory(file_bytes: u64) -> bool {
    memory_bytes().is_some_and(|memory| file_bytes > memory / 2)
}
