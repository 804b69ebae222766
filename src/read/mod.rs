//! Reading a file: open it, find a sample, verify and decode its chunk.
//!
//! A read goes through three objects. A `Reader` holds the contents of the file header and the
//! footer. A `Column` finds the chunk of a sample through the index. A `Cursor`, a batch or a view
//! verifies that chunk and returns samples from it: borrowed if they are stored raw in memory,
//! decoded otherwise. Errors that leave this module name the path, the column, the samples and the
//! offset.
//!
//! | folder or file | what it does |
//! |---|---|
//! | `file` | holds an open file and its columns; finds the chunk of a sample |
//! | `chunk` | reads and verifies one chunk, and opens it as far as needed |
//! | `sample`, `cursor`, `buffer` | return samples: borrowed, one at a time, in a buffer |
//! | `batch` | reads many samples at once: plan, fetch, decode |
//! | `decode` | decodes the bytes of a chunk to the memory of the caller |
//! | `verify` | checks every byte of a file |
//! | `salvage`, `losses` | recovers the intact chunks of a damaged file; lists lost samples |

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
pub use verify::{FileState, Finding, FindingKind, VerifyOptions, VerifyReport, verify};
