//! The fourth stage: from stored values to those that the caller asked for.
//!
//! Elements are cast ([`conversion`]) and ragged samples padded to one tensor ([`padding`]) while
//! they are decoded, column by column. Then the caller's function changes the batch as a whole
//! ([`map`]).

pub(in crate::loader) mod conversion;
pub(in crate::loader) mod map;
pub(in crate::loader) mod padding;
