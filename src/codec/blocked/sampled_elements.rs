//! The sample of a part in which mappings are searched first.

use crate::codec::geometry::Geometry;
use crate::limits;

/// Elements of a window of the sample in which mappings are searched first, and the windows: not so
/// many that estimates would look at some of them only.
const SAMPLED_WINDOW: usize = 1024;
const SAMPLED_WINDOWS: usize = 4;

/// Some elements of a part.
#[derive(Default)]
pub(in crate::codec) struct SampledElements {
    pub bytes: Vec<u8>,
    /// The element at which each window ends.
    pub ends: Vec<u32>,
}

impl SampledElements {
    /// Sets the sample to windows of a part that begin with rows, each as if it were a block.
    pub(super) fn set(&mut self, geometry: &Geometry<'_>, raw: &[u8]) {
        let Self { bytes, ends } = self;
        let w = geometry.element_bytes.max(1);
        let count = raw.len() / w;
        let row = geometry.strides.into_iter().find(|&stride| stride > 1).unwrap_or(1) as usize; // exact
        let length = SAMPLED_WINDOW.next_multiple_of(row).max(row.saturating_mul(2));
        let step = (count / SAMPLED_WINDOWS).next_multiple_of(row).max(length);
        bytes.clear();
        ends.clear();
        for start in (0..count).step_by(step) {
            let end = count.min(start + length).min(geometry.block_end(start)).min(start + limits::BLOCK_ELEMENTS);
            bytes.extend_from_slice(raw.get(start * w..end * w).unwrap_or(&[]));
            ends.push((bytes.len() / w) as u32); // a part has fewer than 2^32 elements
        }
    }
}
