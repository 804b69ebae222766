//! Elements of tensors: their types, the numbers that they stand for, and casts between types.

pub(crate) mod cast;
#[cfg(feature = "import")]
pub(crate) mod decimal;
pub(crate) mod dtype;
