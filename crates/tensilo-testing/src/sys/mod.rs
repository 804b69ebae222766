//! Helpers that need unsafe code.

mod allocator;
#[cfg(unix)]
mod child;

pub use allocator::{Allocations, CountingAllocator, ExclusiveTest, allocations_of, exclusive_test};
#[cfg(unix)]
pub use child::Child;
