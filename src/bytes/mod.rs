//! Bytes: fallible allocation, typed views of memory, little-endian fields, and checksums.

pub(crate) mod checksum;
pub(crate) mod le;
pub(crate) mod memory;
pub(crate) mod pod;
