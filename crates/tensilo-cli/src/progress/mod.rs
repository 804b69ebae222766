//! The progress bar.

mod bar;
mod line;

pub(crate) use bar::{Progress, Unit};
