//! Elements of tensors one by one: their types, the numbers they hold, and casts between them.

pub(crate) mod cast;
#[cfg(feature = "import")]
pub(crate) mod decimal;
pub(crate) mod dtype;
