//! Texts and lists of any length: chats, captions, texts of the web, jagged numbers.

mod columns;
mod compared;
pub mod data;
mod peers;

pub use columns::{Columns, Indexed};
pub use compared::run;
pub use peers::arrow;
pub use peers::tensilo::write;
