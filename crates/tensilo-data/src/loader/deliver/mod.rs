//! The last stage: batches in order, for one consumer.
//!
//! Threads put batches into a [`queue`] in the order in which they finish, and the
//! [`batch_iterator`] takes them in the order of their steps. A [`batch`] that is dropped gives its
//! [`memory`] back to the loader. With a GPU, `device::iterator` launches batches before they are
//! requested.

pub(in crate::loader) mod batch;
pub(in crate::loader) mod batch_iterator;
pub(in crate::loader) mod memory;
pub(in crate::loader) mod queue;
