//! Checks every byte of a file.

mod batch;
mod body;
mod check;
mod column_check;
mod commit;
mod findings;
mod lost;
mod met_tables;
mod options;
mod report;
mod span;
mod tail;
mod walk;

pub use check::verify;
pub use options::VerifyOptions;
pub use report::{Damage, DamageKind, FileState, VerifyReport};
