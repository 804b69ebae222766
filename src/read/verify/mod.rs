//! Verification: checks every byte of a file, and reports which samples are lost to damage.
//!
//! A walk goes from header to header through the file. Threads verify the bodies of many regions in
//! parallel, and the findings are combined in file order. So the report does not depend on the
//! number of threads.
//!
//! | file | what it does |
//! |---|---|
//! | `check` | runs the other modules, and combines their findings |
//! | `walk` | goes from header to header, over every byte outside the bodies |
//! | `batch` | verifies many regions at a time, with several threads |
//! | `body` | verifies one body: its checksum and its content |
//! | `commit` | checks that the regions of a commit agree |
//! | `report` | describes the damage found, and the samples that are lost to it |

mod batch;
mod body;
mod check;
mod commit;
mod report;
mod walk;

pub use check::verify;
pub use report::{FileState, Finding, FindingKind, VerifyOptions, VerifyReport};
