//! Reading a file: open it, find a sample, check and decode its chunk.

mod bitmap;
mod buffer;
mod checked_blocks;
mod chunk_blocks;
mod chunk_bytes;
mod chunk_info;
mod chunk_location;
mod chunk_state;
mod column;
mod column_index;
mod column_tables;

mod copied_chunk;
mod cursor;
mod decoder;
mod destination;
mod explain;
mod fetch;
mod fetched_bytes;
mod front;
mod gather;
mod join;
mod kept_fronts;
mod list;
mod listed;
mod lookup;
mod losses;
mod nested;
mod opened_column;
mod opened_file;
mod options;
mod output;
#[cfg(feature = "rayon")]
mod parallel;
mod parts;
mod plan;
mod reader;
mod rows;
mod salvage;
mod sample;
mod scatter;
mod selection;
mod staged;
pub mod stages;
mod stored_parts;
mod tasks;
mod verify;

pub use buffer::ColumnBuffer;
pub use chunk_blocks::{BlockInfo, ChunkBlocks, ColdRead};
pub use chunk_info::ChunkInfo;
pub use column::Column;
pub(crate) use copied_chunk::ChunkScratch;
pub use cursor::Cursor;
pub use explain::Explanation;
#[cfg(feature = "arrow")]
pub(crate) use gather::RequestScratch;
pub use list::List;
pub use losses::{Losses, LostSamples, OnLoss};
pub use options::{OpenOptions, Verification};
#[cfg(feature = "rayon")]
pub use parallel::ParallelCursor;
pub use reader::Reader;
pub use rows::Rows;
pub use salvage::{SalvageOptions, Salvaged, nothing_left, salvage};
pub use sample::Sample;
pub use verify::{Damage, DamageKind, FileState, VerifyOptions, VerifyReport, verify};
