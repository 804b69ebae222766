//! The formats whose files are damaged: how each is written, and read with its default checks.
//!
//! After an error, a reader continues wherever its interface allows it: with the next sample,
//! record batch or row group. The program knows what it has written. A wrong name, type, shape or
//! number of samples counts as an error, even if only this program notices it.

mod arrow_ipc;
mod page_checksums;
mod parquet;
mod safetensors;
mod tensilo;

use super::outcome::ReadOutcome;
use crate::data::Dataset;
use crate::peers::blosc2::{Blosc2, Level};
use crate::peers::chunked::Chunked;
use crate::peers::lmdb_blosc::LmdbBlosc;
use crate::peers::zstd::Zstd;
use crate::peers::{self, Peer};
use ::tensilo::Profile;
use anyhow::Result;
use half::bf16;
use std::path::Path;

pub trait Format {
    /// Returns a short, unique name.
    fn name(&self) -> String;

    /// Returns version, settings, and the checks of the reader, in one line.
    fn about(&self) -> String;

    /// Writes the tensors to a new file.
    fn write(&self, data: &Dataset, file: &Path) -> Result<()>;

    /// Reads as much as possible. Reports values and errors to `outcome`; returns an error that
    /// ends the reading.
    fn read(&self, data: &Dataset, file: &Path, outcome: &mut ReadOutcome) -> Result<()>;

    /// Returns whether the format's own verification finds damage; `None` if it has none.
    fn finds_damage(&self, _file: &Path) -> Option<bool> {
        None
    }

    /// Reads as `read` does, but with a reader for damaged files. Only used if `finds_damage`
    /// returns a result.
    fn salvage(&self, data: &Dataset, file: &Path, outcome: &mut ReadOutcome) -> Result<()> {
        self.read(data, file, outcome)
    }
}

/// Returns all formats, in the order of the report.
pub fn all() -> Vec<Box<dyn Format>> {
    let blosc = Blosc2 { chunk_bytes: 64 << 10, level: Level::Five };
    let none = "no checksums";
    vec![
        Box::new(tensilo::Tensilo(peers::tensilo::Tensilo(Profile::Balanced))),
        Box::new(tensilo::Tensilo(peers::tensilo::Tensilo(Profile::Raw))),
        Box::new(safetensors::Safetensors),
        Box::new(arrow_ipc::ArrowIpc),
        Box::new(parquet::Parquet::Default),
        Box::new(parquet::Parquet::Zstd),
        Box::new(parquet::Parquet::Checksums),
        Box::new(Samples { peer: LmdbBlosc, checks: none }),
        Box::new(Samples { peer: Chunked(blosc), checks: none }),
        Box::new(Samples { peer: Chunked(Zstd { checksum: false }), checks: "no checksums, the library's default" }),
        Box::new(Samples { peer: Chunked(Zstd { checksum: true }), checks: "a checksum in each frame" }),
    ]
}

/// A peer of the comparison that is read sample by sample.
struct Samples<P> {
    peer: P,
    checks: &'static str,
}

impl<P: Peer> Format for Samples<P> {
    fn name(&self) -> String {
        self.peer.name()
    }

    fn about(&self) -> String {
        format!("{}; read sample by sample; {}", self.peer.about(), self.checks)
    }

    fn write(&self, data: &Dataset, file: &Path) -> Result<()> {
        self.peer.encode(data, file)
    }

    fn read(&self, data: &Dataset, file: &Path, outcome: &mut ReadOutcome) -> Result<()> {
        let mut store = self.peer.open(data, file)?;
        let mut sample = vec![bf16::ZERO; data.elements()];
        for i in 0..data.samples() {
            match store.sample(i, &mut sample) {
                Ok(()) => outcome.samples(i, &sample),
                Err(_) => outcome.error(),
            }
        }
        Ok(())
    }
}
