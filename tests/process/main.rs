//! Tests of what a killed process leaves behind, as one program, which starts itself as the process
//! to kill.
#![cfg(unix)]

#[path = "../support/mod.rs"]
mod support;

mod atomic;
mod child;
mod killed_append;
#[cfg(feature = "mmap")]
mod mapped_append;
