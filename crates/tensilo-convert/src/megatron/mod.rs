//! Megatron's indexed datasets: `x.idx` has the lengths of sequences, and `x.bin` their tokens.

mod documents;
mod index;
mod tokens;

pub(crate) use index::{MAGIC, VERSION, type_code};
pub(crate) use tokens::Megatron;
