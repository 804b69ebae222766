//! The only unsafe code of the crate: memory maps, io_uring, and batches in GPU memory.

#[cfg(feature = "cuda")]
pub(crate) mod device;
#[cfg(feature = "mmap")]
mod mmap;
#[cfg(all(target_os = "linux", feature = "io-uring"))]
mod ring;

#[cfg(all(target_os = "linux", feature = "io-uring"))]
pub(crate) use ring::{AlignedMemory, ReadAt, Ring};
