//! Reading a file: open it, find a sample, check and decode its chunk.
//!
//! | folder | what it does |
//! |---|---|
//! | `file` | an open file and its columns |
//! | `locate` | from a sample's index to its chunk |
//! | `chunk` | one chunk: read, checked, opened |
//! | `samples` | samples as a program gets them: borrowed, one at a time, in buffers |
//! | `batch` | many samples at once: plan, fetch, decode |
//! | `decode` | from the bytes of a chunk to the memory of the caller |
//! | `verify`, `salvage` | every byte checked; what damage has left |

mod batch;
mod chunk;
mod decode;
mod file;
mod locate;
mod salvage;
mod samples;
mod verify;

#[cfg(feature = "arrow")]
pub(crate) use batch::gather::RequestScratch;
#[cfg(feature = "rayon")]
pub use batch::parallel::ParallelCursor;
pub use batch::stages;
pub use chunk::chunk_blocks::{BlockInfo, ChunkBlocks, ColdRead};
pub use chunk::chunk_info::ChunkInfo;
pub(crate) use chunk::copied_chunk::ChunkScratch;
pub use file::column::Column;
pub use file::options::{OpenOptions, Verification};
pub use file::reader::Reader;
pub use locate::losses::{Losses, LostSamples, OnLoss};
pub use salvage::{SalvageOptions, Salvaged, nothing_left, salvage};
pub use samples::buffer::ColumnBuffer;
pub use samples::cursor::Cursor;
pub use samples::explain::Explanation;
pub use samples::list::List;
pub use samples::rows::Rows;
pub use samples::sample::Sample;
pub use verify::{Damage, DamageKind, FileState, VerifyOptions, VerifyReport, verify};
