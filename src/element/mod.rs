//! Elements of tensors: their types, the numbers they stand for, and casts between them.

pub(crate) mod cast;
#[cfg(feature = "import")]
pub(crate) mod decimal;
pub(crate) mod dtype;
