//! Tests of how much memory the library takes, as one program with an allocator that counts. It
//! counts the whole process, so each test waits until it runs alone.
#![cfg(not(miri))]

#[path = "../support/mod.rs"]
mod support;

#[cfg(all(unix, feature = "zstd", target_pointer_width = "64"))]
mod exhausted;
#[cfg(feature = "zstd")]
mod hostile;
#[cfg(feature = "arrow")]
mod import;
mod limits;
#[cfg(feature = "zstd")]
mod no_allocation;

use tensilo_testing::CountingAllocator;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;
