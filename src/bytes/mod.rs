//! Bytes: memory whose size a file states, elements seen as bytes and back, numbers of either byte
//! order, and checksums.

pub(crate) mod checksum;
pub(crate) mod le;
pub(crate) mod memory;
pub(crate) mod pod;
