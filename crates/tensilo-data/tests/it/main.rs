//! Tests of the public interface.

mod changes;
mod common;
mod divisions;
mod garbage;
mod jobs;
mod loader;
mod manifests;
#[cfg(feature = "object")]
mod objects;
mod orders;
mod quality;
mod repack;
mod states;
#[cfg(all(target_os = "linux", feature = "io-uring"))]
mod uring;
mod vectors;
mod views;
