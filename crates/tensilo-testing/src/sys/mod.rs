//! All that needs unsafe code.

mod allocator;
#[cfg(unix)]
mod child;

pub use allocator::{Allocations, Alone, CountingAllocator, allocations_of, alone};
#[cfg(unix)]
pub use child::Child;
