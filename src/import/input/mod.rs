//! The files of a conversion: which they are, their formats, and their columns.

pub(super) mod file;
mod find;
pub(super) mod formats;
mod open;
mod partition;
mod tables;
mod threads;

pub(super) use open::{OpenInput, adapt, check_output, open_all, origin, with_columns, with_samples};
