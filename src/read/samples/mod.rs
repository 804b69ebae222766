//! Samples as a program gets them: borrowed, read one at a time, or in buffers.
//!
//! A [`cursor`] reads one sample after the other and holds the chunk of the last one, so that the
//! next sample of the same chunk finds it open. [`rows`] are cursors of several columns. Gathers
//! and ranges go through plans ([`batch`](super::batch)), and end in a [`buffer`].

pub(in crate::read) mod buffer;
pub(in crate::read) mod cursor;
pub(in crate::read) mod explain;
pub(in crate::read) mod join;
pub(in crate::read) mod list;
pub(in crate::read) mod rows;
pub(in crate::read) mod sample;
