//! Helpers shared by several test programs.
#![allow(dead_code, reason = "each test program uses a part of it")]

pub mod build;
pub mod faulty_sink;
pub mod intact;
pub mod on_disk;
pub mod positional;
pub mod regions;
pub mod reversed;
pub mod shared;
