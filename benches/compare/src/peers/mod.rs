//! The competitors, and the interface that each implements.
//!
//! The rows are comparable because of these rules:
//!
//! * Each stores the same tensors in one file (in the page cache), with all it needs to find a
//!   sample again. The ratio counts the whole file. Nobody waits for the disk.
//! * Each is opened once, with everything that can be prepared, and the file mapped. Decoding goes
//!   to memory of the competitor that exists before the clock starts; samples and gathered samples
//!   go to the caller's memory.
//! * A competitor that has settings for a kind of data ("best") tries several of them on all of the
//!   data before the clock starts, and the smallest file counts (`best.rs`).
//! * A competitor without a container gets one that costs 8 bytes for each chunk, keeps the chunk
//!   decoded last, and decodes a chunk once for all samples of a request (`chunked.rs`). tensilo
//!   does the same, and checksums.
//! * One thread, and the same Zstandard for all.

pub mod arrow_ipc;
mod best;
pub mod blosc2;
pub mod chunked;
mod dfloat11;
pub mod lmdb_blosc;
mod openzl;
pub mod parquet;
mod pco;
pub mod raw;
pub mod tensilo;
mod zipnn;
pub mod zstd;

use crate::data::{Dataset, Element};
use ::tensilo::{DType, Profile};
use anyhow::{Context, Result, bail};
use best::Best;
use blosc2::{Blosc2, Level};
use chunked::{Chunked, Codec};
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

    /// The settings that suit this data set best, if several were tried.
    fn choice(&self) -> Option<String> {
        None
    }

    /// Whether the column is one chunk, which stays decoded: random samples tell nothing then.
    fn stays_decoded(&self) -> bool {
        false
    }

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
pub trait Store<T: Element = bf16> {
    /// Everything, in order, in memory.
    fn decode_all(&mut self) -> Result<&[T]>;

    /// Copies sample `i` to `out`, which is as long.
    fn sample(&mut self, i: usize, out: &mut [T]) -> Result<()> {
        out.copy_from_slice(self.view(i)?.context("no such sample")?);
        Ok(())
    }

    /// Copies sample `i` to `out`, read from the file by position. Returns whether it can be.
    fn position(&mut self, _i: usize, _out: &mut [T]) -> Result<bool> {
        Ok(false)
    }

    /// Copies these samples to `out`, in this order.
    fn gather(&mut self, request: &[usize], out: &mut [T]) -> Result<()> {
        let elements = out.len() / request.len().max(1);
        for (&i, out) in request.iter().zip(out.chunks_exact_mut(elements)) {
            self.sample(i, out)?;
        }
        Ok(())
    }

    /// Returns sample `i` as a slice of the mapped file, if it can be used there.
    fn view(&self, _i: usize) -> Result<Option<&[T]>> {
        Ok(None)
    }
}

/// Competitors for tensors of one element type.
type Peers<T> = Vec<Box<dyn Peer<Dataset<T>>>>;

/// All competitors that can store the data set, in the order of the reports. The folder is for
/// files of those that try several settings.
pub fn all<T: Element>(data: &Dataset<T>, folder: &Path) -> Result<Peers<T>> {
    let mut peers: Peers<T> = vec![Box::new(raw::Memory), Box::new(raw::Mapped)];
    peers.extend(Profile::ALL.map(|profile| Box::new(tensilo::Tensilo(profile)) as Box<dyn Peer<_>>));
    peers.push(Box::new(lmdb_blosc::LmdbBlosc));
    for (chunk_bytes, level) in [(64 << 10, Level::Five), (64 << 10, Level::Nine), (256 << 10, Level::Nine)] {
        peers.push(Box::new(Chunked(Blosc2 { chunk_bytes, level })));
    }
    peers.push(Box::new(Chunked(pco::Pco::default())));
    peers.push(Box::new(Best::of("pco best", pco::about_best(), boxed(pco::candidates(T::DTYPE)), data, folder)?));
    let graphs = boxed(openzl::candidates(T::DTYPE));
    peers.push(Box::new(Best::of("OpenZL best", openzl::about_best(), graphs, data, folder)?));
    if matches!(T::DTYPE, DType::Bf16 | DType::F32) {
        peers.push(Box::new(Chunked(zipnn::ZipNn)));
    }
    if T::DTYPE == DType::Bf16 {
        peers.push(Box::new(Chunked(dfloat11::DFloat11)));
    }
    peers.push(Box::new(Chunked(zstd::Zstd { checksum: false })));
    peers.extend([64 << 10, 1 << 20].map(|bytes| Box::new(parquet::Parquet::new(bytes)) as Box<dyn Peer<_>>));
    let layouts = parquet::candidates(T::DTYPE).into_iter().map(|parquet| Box::new(parquet) as _).collect();
    peers.push(Box::new(Best::of("Parquet best", parquet::about_best(), layouts, data, folder)?));
    peers.push(Box::new(arrow_ipc::ArrowIpc));
    Ok(peers)
}

/// Puts each codec into the container.
fn boxed<T: Element>(codecs: Vec<impl Codec + 'static>) -> Peers<T> {
    codecs.into_iter().map(|codec| Box::new(Chunked(codec)) as _).collect()
}

/// Bytes of an element.
pub fn width(dtype: DType) -> Result<usize> {
    match dtype {
        DType::Bf16 => Ok(2),
        DType::F32 | DType::I32 => Ok(4),
        DType::F64 | DType::I64 => Ok(8),
        _ => bail!("the comparison has no data of type {dtype}"),
    }
}

/// Maps a file of this program's own.
pub fn map(file: &Path) -> Result<Mmap> {
    let opened = File::open(file).with_context(|| file.display().to_string())?;
    // SAFETY: the file is in a temporary folder of this process, which does not change it once it
    // is written.
    Ok(unsafe { Mmap::map(&opened) }?)
}

/// The chunk size of a column in one chunk.
pub const WHOLE: usize = usize::MAX;

/// `64 KiB`, `1 MiB`.
pub fn size(bytes: usize) -> String {
    if bytes == WHOLE {
        return "the whole column".to_owned();
    }
    if bytes >= 1 << 20 { format!("{} MiB", bytes >> 20) } else { format!("{} KiB", bytes >> 10) }
}
