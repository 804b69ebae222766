//! The competitors, and the interface that each implements.
//!
//! The rows are comparable because of these rules:
//!
//! * Each stores the same tensors in one file (in the page cache), with all it needs to find a
//!   sample again. The ratio counts the whole file. Nobody waits for the disk.
//! * Each is opened once, with everything that can be prepared, and the file mapped. Decoding goes
//!   to memory of the competitor that exists before the clock starts; samples and gathered samples
//!   go to the caller's memory.
//! * A competitor without a container gets one that costs 8 bytes for each chunk, keeps the chunk
//!   decoded last, and decodes a chunk once for all samples of a request (`chunked.rs`). tensilo
//!   does the same, and checksums.
//! * One thread, and the same Zstandard for all.

pub mod arrow_ipc;
pub mod blosc2;
pub mod chunked;
pub mod lmdb_blosc;
pub mod parquet;
mod pco;
pub mod raw;
pub mod tensilo;
pub mod zstd;

use crate::data::Dataset;
use ::tensilo::Profile;
use anyhow::{Context, Result};
use blosc2::{Blosc2, Level};
use half::bf16;
use memmap2::Mmap;
use std::fs::{self, File};
use std::path::Path;

/// A description of a competitor, for the reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    Tensilo,
    /// The recipe that tensilo replaces.
    Recipe,
    Other,
    /// Nothing is encoded.
    Memory,
}

impl Family {
    pub fn name(self) -> &'static str {
        match self {
            Self::Tensilo => "tensilo",
            Self::Recipe => "recipe",
            Self::Other => "other",
            Self::Memory => "memory",
        }
    }
}

/// A sort of data, and how competitors give it back.
pub trait Data {
    type Store: ?Sized;

    fn name(&self) -> &str;

    /// Whether everything comes back as it was, to the bit.
    fn check(&self, store: &mut Self::Store) -> Result<()>;
}

/// A competitor for data of one sort.
pub trait Peer<D: Data = Dataset> {
    /// Short, and different from all others.
    fn name(&self) -> String;

    /// Settings, in one line.
    fn about(&self) -> String;

    fn family(&self) -> Family {
        Family::Other
    }

    /// Writes the samples to a file, which is not there yet.
    fn encode(&self, data: &D, file: &Path) -> Result<()>;

    /// Opens it.
    fn open(&self, data: &D, file: &Path) -> Result<Box<D::Store>>;

    /// Bytes that the samples take.
    fn stored_bytes(&self, _data: &D, file: &Path) -> Result<u64> {
        Ok(fs::metadata(file)?.len())
    }
}

/// A file of a competitor, open.
pub trait Store {
    /// Everything, in order, in memory.
    fn decode_all(&mut self) -> Result<&[bf16]>;

    /// Copies sample `i` to `out`, which is as long.
    fn sample(&mut self, i: usize, out: &mut [bf16]) -> Result<()> {
        out.copy_from_slice(self.view(i)?.context("no such sample")?);
        Ok(())
    }

    /// Copies these samples to `out`, in this order.
    fn gather(&mut self, request: &[usize], out: &mut [bf16]) -> Result<()> {
        let elements = out.len() / request.len().max(1);
        for (&i, out) in request.iter().zip(out.chunks_exact_mut(elements)) {
            self.sample(i, out)?;
        }
        Ok(())
    }

    /// Returns sample `i` as a slice of the mapped file, if it can be used there.
    fn view(&self, _i: usize) -> Result<Option<&[bf16]>> {
        Ok(None)
    }
}

/// All competitors, in the order of the reports.
pub fn all() -> Vec<Box<dyn Peer>> {
    let mut peers: Vec<Box<dyn Peer>> = vec![Box::new(raw::Memory), Box::new(raw::Mapped)];
    peers.extend(Profile::ALL.map(|profile| Box::new(tensilo::Tensilo(profile)) as Box<dyn Peer>));
    peers.push(Box::new(lmdb_blosc::LmdbBlosc));
    for (chunk_bytes, level) in [(64 << 10, Level::Five), (64 << 10, Level::Nine), (256 << 10, Level::Nine)] {
        peers.push(Box::new(chunked::Chunked(Blosc2 { chunk_bytes, level })));
    }
    peers.push(Box::new(chunked::Chunked(pco::Pco)));
    peers.push(Box::new(chunked::Chunked(zstd::Zstd { checksum: false })));
    peers.extend([64 << 10, 1 << 20].map(|bytes| Box::new(parquet::Parquet::new(bytes)) as Box<dyn Peer>));
    peers.push(Box::new(arrow_ipc::ArrowIpc));
    peers
}

/// Maps a file of this program's own.
pub fn map(file: &Path) -> Result<Mmap> {
    let opened = File::open(file).with_context(|| file.display().to_string())?;
    // SAFETY: the file is in a temporary folder of this process, which does not change it once it
    // is written.
    Ok(unsafe { Mmap::map(&opened) }?)
}

/// `64 KiB`, `1 MiB`.
pub fn size(bytes: usize) -> String {
    if bytes >= 1 << 20 { format!("{} MiB", bytes >> 20) } else { format!("{} KiB", bytes >> 10) }
}
