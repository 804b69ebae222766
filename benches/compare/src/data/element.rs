//! The types of elements that a tensor of the comparison may have.

use arrow_array::ArrowPrimitiveType;
use arrow_array::types::{Float32Type, Float64Type, Int16Type, Int32Type, Int64Type, UInt16Type};
use bytemuck::Pod;
use half::bf16;

/// A type of elements, which tensilo's `DTYPE` identifies.
pub trait Element: tensilo::Element + Pod {
    /// The type of Arrow's that stores it. Arrow has no BF16: its bits are a `u16`.
    type Arrow: ArrowPrimitiveType<Native: Pod>;
}

impl Element for bf16 {
    type Arrow = UInt16Type;
}

impl Element for f32 {
    type Arrow = Float32Type;
}

impl Element for f64 {
    type Arrow = Float64Type;
}

impl Element for i16 {
    type Arrow = Int16Type;
}

impl Element for i32 {
    type Arrow = Int32Type;
}

impl Element for i64 {
    type Arrow = Int64Type;
}
