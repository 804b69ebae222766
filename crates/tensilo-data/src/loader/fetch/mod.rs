//! The second stage: the bytes of a batch, which its plan names.
//!
//! Where each read takes a round trip, the ranges of all files are prefetched before the first is
//! waited for. Samples that will be wanted later are announced ([`read_ahead`]): they are planned
//! in the same way and prefetched, and nothing waits for them.

pub(in crate::loader) mod read_ahead;

use super::plan::parts::{Part, Parts};
use super::setup::Setup;
use crate::error::Result;

/// Reads the bytes of all parts of a batch, unless their files are in maps: here a batch waits for
/// its values. It has waited for files, indexes and block indexes while it was planned.
pub(in crate::loader) fn fetch(parts: &mut Parts, setup: &Setup) -> Result<()> {
    let are_new = parts.are_new();
    let parts = parts.all_mut();
    if parts.len() > 1 && (setup.is_remote || are_new) {
        parts.iter().try_for_each(|part| part.plan.prefetch())?;
    }
    let read = |part: &mut Part| Ok(part.plan.fetch(&mut part.bytes)?);
    match are_new && !setup.reads_objects {
        true => setup.io.map(parts.iter_mut(), read).into_iter().collect(),
        false => parts.iter_mut().try_for_each(|part| {
            setup.check_interrupt()?;
            read(part)
        }),
    }
}
