//! The boundary to C: how calls, errors and values cross it.
//!
//! Each function of the library is the same three steps: it checks its arguments, does its work
//! with types of Rust, and writes the results to places of the caller. This folder has the first
//! and the last, so that the files of handles have only the work.

pub(crate) mod call;
pub(crate) mod error;
pub(crate) mod values;
