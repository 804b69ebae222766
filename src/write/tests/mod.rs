//! The sinks for files on a disk that loses power and fails.

mod crash;
mod faults;
mod scenarios;
mod simulated;
