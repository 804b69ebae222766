//! Blocks of tensilo files, decoded on GPUs.
//!
//! The link to a GPU carries stored bytes in less time than decoded ones, and decoding them there
//! costs the host no core. The kernels, in `kernels/`, decode the encodings `raw`, `constant`,
//! `exponent-tiers`, `residual-tiers` and `bins`; the processor decodes the others.
//!
//! * A [`BlockList`] collects the blocks of a batch, as [`tensilo::stages::Decoder::visit_blocks`]
//!   hands them out, and where their elements go. One launch decodes a list.
//! * A [`Gpu`] decodes lists beside the work of its caller, in the order of the caller's stream.
//! * A [`Resident`] column stays in the memory of a GPU as it is stored, and is gathered there by
//!   sample.
//! * `Emulator`, with the feature `emulator`, runs the kernels on the CPU: the same source, a loop
//!   over 32 lanes in place of a warp. It is how they are proven.

#![deny(missing_docs, unsafe_code, unsafe_op_in_unsafe_fn)]

mod block_list;
mod error;
#[allow(unsafe_code, reason = "functions of the kernels: each call with its argument")]
mod sys;

pub use block_list::{BlockList, Conversion, Destination, Refusal, SampleRows};
pub use error::{CudaError, Result};
#[cfg(feature = "emulator")]
pub use sys::emulator::{Emulator, LaneOrder};
pub use sys::gpu::{BatchMemory, DeviceBuffer, Gpu, LaunchReport, PendingLaunch};
pub use sys::resident::{PendingGather, Resident, ResidentBuilder};
