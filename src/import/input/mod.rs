//! The files of a conversion: which they are, and their columns.

mod find;
mod folder;
mod inputs;
mod opened;
mod partition;
mod saved;
mod stored;
mod tables;
mod value_text;

pub(super) use inputs::{adapt, check_output, open_all, origin, with_columns, with_samples};
pub(super) use opened::OpenInput;
