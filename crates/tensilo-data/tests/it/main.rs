//! Tests of the public interface.

mod divisions;
mod orders;
mod quality;
mod states;
mod vectors;
mod views;
