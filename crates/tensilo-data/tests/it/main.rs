//! Tests of the public interface.

mod changes;
mod common;
mod divisions;
mod loader;
mod manifests;
mod orders;
mod quality;
mod states;
mod vectors;
mod views;
