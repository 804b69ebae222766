//! What is left of a process that is killed, as one program that starts itself as the process to
//! kill.
#![cfg(unix)]

mod atomic;
mod child;
mod killed_append;
