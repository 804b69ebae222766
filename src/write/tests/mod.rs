//! The file sinks on a simulated disk that fails and loses power.
//!
//! `simulated.rs` is the disk: it logs every operation, and can fail at any of them. `scenarios.rs`
//! has what writers do, and which states a reader may see afterwards. `crash.rs` replays a log up
//! to every moment, and builds the images that a loss of power could leave there: any subset of the
//! operations since the last sync, in whole or in part. `faults.rs` lets each call fail, and checks
//! that nothing is retried and that the file is intact.

mod crash;
mod faults;
mod scenarios;
mod simulated;
