//! Tests the file sinks on a simulated disk that fails and loses power.
//!
//! `simulated.rs` is the disk: it logs every operation, and can fail at any of them. `scenarios.rs`
//! defines what writers do, and which states a reader can see afterwards. `crash.rs` replays a log
//! up to every moment, and builds the images that a loss of power could leave at that moment. They
//! contain any subset of the operations since the last sync, whole or torn. `faults.rs` makes each
//! call fail, and checks that nothing is retried and that the file is intact.

mod crash;
mod faults;
mod scenarios;
mod simulated;
