//! Decodes blocks of tensilo files on GPUs.
//!
//! Stored bytes cross the link to a GPU in less time than decoded bytes, and decoding them there
//! does not occupy a core of the host. The kernels, in `kernels/`, decode the encodings `raw`,
//! `constant`, `exponent-tiers`, `residual-tiers` and `bins`; the CPU decodes all other encodings.
//!
//! * A [`BlockList`] collects the blocks of a batch, which
//!   [`tensilo::stages::Decoder::visit_blocks`] passes to a callback, and the destinations of their
//!   elements. One launch decodes a list.
//! * A [`Gpu`] decodes lists concurrently with the work of its caller, in the order of the caller's
//!   stream.
//! * A [`Resident`] column stays in the memory of a GPU, in its stored form. The GPU gathers
//!   samples from it by index.
//! * `Emulator`, with the feature `emulator`, runs the kernels on the CPU: the same source, with a
//!   loop over 32 lanes in place of a warp. The tests compare its results with the results of the
//!   library.

#![deny(missing_docs, unsafe_code, unsafe_op_in_unsafe_fn)]

mod block_list;
mod error;
#[allow(unsafe_code, reason = "calls to the driver and to the kernels; each states why it is sound")]
mod sys;

pub use block_list::{BlockList, Conversion, Destination, Refusal, SampleRows};
pub use error::{CudaError, Result};
#[cfg(feature = "emulator")]
pub use sys::emulator::{Emulator, LaneOrder};
pub use sys::gpu::{BatchMemory, DeviceBuffer, Gpu, LaunchReport, PendingLaunch};
pub use sys::resident::{PendingGather, Resident, ResidentBuilder};
