//! Reading a file: open it, find a sample, check and decode its chunk.
//!
//! | folder or file | what it does |
//! |---|---|
//! | `file` | an open file and its columns; from a sample's index to its chunk |
//! | `chunk` | one chunk: read, checked, opened |
//! | `sample`, `cursor`, `buffer` | samples: borrowed, read one at a time, side by side |
//! | `batch` | many samples at once: plan, fetch, decode |
//! | `decode` | from the bytes of a chunk to the memory of the caller |
//! | `verify`, `salvage`, `losses` | every byte checked; what damage has left, and has not |

mod batch;
mod buffer;
mod chunk;
mod cursor;
mod decode;
mod file;
mod losses;
mod salvage;
mod sample;
mod verify;

#[cfg(feature = "arrow")]
pub(crate) use batch::gather::RequestScratch;
#[cfg(feature = "rayon")]
pub use batch::parallel::ParallelCursor;
pub use batch::stages;
pub use buffer::ColumnBuffer;
pub(crate) use chunk::copied_chunk::ChunkScratch;
pub use chunk::facts::{BlockInfo, ChunkBlocks, ChunkInfo, ColdRead, Explanation};
pub use cursor::{Cursor, Rows};
pub use file::column::Column;
pub use file::reader::{OpenOptions, Reader};
pub use file::state::Verification;
pub use losses::{Losses, LostSamples, OnLoss};
pub use salvage::{SalvageOptions, Salvaged, all_lost, salvage};
pub use sample::{List, Sample};
pub use verify::{Damage, DamageKind, FileState, VerifyOptions, VerifyReport, verify};
