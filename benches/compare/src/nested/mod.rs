//! The comparison for texts and lists of any length: chats, captions, web pages, jagged numbers.

mod columns;
mod comparison;
pub mod data;
mod peers;

pub use columns::{Columns, IndexedColumns};
pub use comparison::run;
pub use peers::arrow;
pub use peers::tensilo::write;
