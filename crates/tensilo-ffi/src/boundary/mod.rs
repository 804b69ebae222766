//! The boundary to C: how calls, errors and values cross it.
//!
//! Each function of the library takes the same three steps: it checks its arguments, does its work
//! with Rust types, and writes the results to the caller's memory. This folder implements the first
//! and the last step, so the modules for the handles contain only the work itself.

pub(crate) mod call;
pub(crate) mod error;
pub(crate) mod values;
