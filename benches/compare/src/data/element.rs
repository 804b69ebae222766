//! The element types of the tensors that are compared.

use arrow_array::ArrowPrimitiveType;
use arrow_array::types::{Float32Type, Float64Type, Int16Type, Int32Type, Int64Type, UInt16Type};
use bytemuck::Pod;
use half::bf16;

/// An element type, identified by tensilo's `DTYPE`.
pub trait Element: tensilo::Element + Pod {
    /// The Arrow type that stores it. Arrow has no BF16, so its bits are stored as `u16`.
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
