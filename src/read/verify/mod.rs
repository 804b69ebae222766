//! Checks every byte of a file.
//!
//! | file | what it does |
//! |---|---|
//! | `check` | runs the others, and combines what they find |
//! | `walk` | from head to head, over every byte that is in no body |
//! | `batch` | some regions at a time, by several threads |
//! | `body` | one body: its checksum and its content |
//! | `commit` | whether the regions of a commit agree |
//! | `report` | damages, and what they cost |

mod batch;
mod body;
mod check;
mod commit;
mod report;
mod walk;

pub use check::verify;
pub use report::{Damage, DamageKind, FileState, VerifyOptions, VerifyReport};
