//! Tests against a host of objects that runs in the test.

#![allow(clippy::single_range_in_vec_init, reason = "lists of ranges")]

mod cache;
mod common;
mod faults;
mod objects;
mod read_ahead;
mod reads;
