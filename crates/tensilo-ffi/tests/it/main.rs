//! The C library as C and C++ programs use it, and its header.

#[cfg(feature = "arrow")]
mod arrow;
mod boundary;
mod errors;
mod header;
mod loading;
#[cfg(target_os = "linux")]
mod programs;
mod reading;
mod support;
mod verifying;

use tensilo_testing::CountingAllocator;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;
