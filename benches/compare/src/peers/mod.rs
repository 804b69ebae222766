//! The competitors, and the interface that each implements.
//!
//! These rules make the rows comparable:
//!
//! * Each competitor stores the same tensors in one file (in the page cache), with everything that
//!   it needs to find a sample. The ratio counts the whole file. No competitor waits for the disk.
//! * Each opens its file once, maps it, and prepares everything that can be prepared. It decodes to
//!   its own memory, which exists before the clock starts; single and gathered samples go to the
//!   caller's memory.
//! * A competitor with settings for kinds of data ("best") tries several of them on all of the data
//!   before the clock starts, and the smallest file counts (`best.rs`).
//! * A competitor without a container gets one that costs 8 bytes per chunk, caches the last
//!   decoded chunk, and decodes a chunk once for all samples of a request (`chunked.rs`). tensilo
//!   does the same, and also verifies checksums.
//! * All use one thread and the same Zstandard.

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

/// The group of a competitor in the reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    Tensilo,
    /// The recipe that tensilo replaces.
    Recipe,
    Other,
    /// Not encoded.
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

/// A kind of data, and the store that returns it.
pub trait Data {
    type Store: ?Sized;

    fn name(&self) -> &str;

    /// Checks that the store returns exactly this data, bit by bit.
    fn check(&self, store: &mut Self::Store) -> Result<()>;
}

/// A competitor for one kind of data.
pub trait Peer<D: Data = Dataset> {
    /// Returns a short, unique name.
    fn name(&self) -> String;

    /// Returns version and settings, in one line.
    fn about(&self) -> String;

    /// Returns the best settings for this data set, if several were tried.
    fn choice(&self) -> Option<String> {
        None
    }

    /// Returns whether the column is one chunk, which stays decoded. Random samples then do not
    /// measure decoding.
    fn stays_decoded(&self) -> bool {
        false
    }

    fn family(&self) -> Family {
        Family::Other
    }

    /// Writes the samples to a new file.
    fn encode(&self, data: &D, file: &Path) -> Result<()>;

    /// Opens the file.
    fn open(&self, data: &D, file: &Path) -> Result<Box<D::Store>>;

    /// Returns the bytes of the file.
    fn stored_bytes(&self, _data: &D, file: &Path) -> Result<u64> {
        Ok(fs::metadata(file)?.len())
    }
}

/// An open file of a competitor.
pub trait Store<T: Element = bf16> {
    /// Decodes everything, in order, to memory.
    fn decode_all(&mut self) -> Result<&[T]>;

    /// Copies sample `i` to `out`, which has its length.
    fn sample(&mut self, i: usize, out: &mut [T]) -> Result<()> {
        out.copy_from_slice(self.view(i)?.context("no such sample")?);
        Ok(())
    }

    /// Reads sample `i` from the file by position, and copies it to `out`. Returns whether this is
    /// possible.
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

    /// Returns sample `i` as a slice of the mapped file, if it is stored raw.
    fn view(&self, _i: usize) -> Result<Option<&[T]>> {
        Ok(None)
    }
}

/// Competitors for tensors of one element type.
type Peers<T> = Vec<Box<dyn Peer<Dataset<T>>>>;

/// Returns all competitors that can store the data set, in the order of the reports. `folder` is
/// for the files of competitors that try several settings.
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

/// Returns the bytes of an element.
pub fn width(dtype: DType) -> Result<usize> {
    match dtype {
        DType::Bf16 => Ok(2),
        DType::F32 | DType::I32 => Ok(4),
        DType::F64 | DType::I64 => Ok(8),
        _ => bail!("the comparison has no data of type {dtype}"),
    }
}

/// Maps a file that this program wrote.
pub fn map(file: &Path) -> Result<Mmap> {
    let opened = File::open(file).with_context(|| file.display().to_string())?;
    // SAFETY: the file is in a temporary folder of this process, which does not change it once it
    // is written.
    Ok(unsafe { Mmap::map(&opened) }?)
}

/// The chunk size of a column that is one chunk.
pub const WHOLE: usize = usize::MAX;

/// Formats a size, such as `64 KiB` or `1 MiB`.
pub fn size(bytes: usize) -> String {
    if bytes == WHOLE {
        return "the whole column".to_owned();
    }
    if bytes >= 1 << 20 { format!("{} MiB", bytes >> 20) } else { format!("{} KiB", bytes >> 10) }
}
