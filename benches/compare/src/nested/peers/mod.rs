//! The competitors for texts and lists, and the interface that each implements.
//!
//! In addition to the rules of `src/peers/mod.rs`:
//!
//! * A single sample is appended to the caller's columns, as lengths and elements.
//! * Decoding everything and gathering fill columns in the competitor's memory: the columns of its
//!   library if it has any, else the same as the caller's. They do not refer to the file. Gathered
//!   samples are in the order of the request.
//! * All texts from a file are checked to be UTF-8: when the file is opened (uncompressed Arrow
//!   IPC), or when they are read (all others).

pub mod arrow;
mod arrow_ipc;
mod lmdb;
mod memory;
mod parquet;
pub mod tensilo;

use super::columns::Columns;
use super::data::Dataset;
use crate::peers::Peer;
use ::tensilo::Profile;
use anyhow::Result;

/// The Zstandard level of all competitors except tensilo, whose profiles have their own levels.
const LEVEL: i32 = 3;

/// An open file of a competitor.
pub trait Store {
    /// Decodes everything, in order, to its own memory.
    fn decode_all(&mut self) -> Result<()>;

    /// Appends sample `i` to `out`.
    fn sample(&mut self, i: usize, out: &mut Columns) -> Result<()>;

    /// Copies these samples, in this order, to its own memory.
    fn gather(&mut self, request: &[usize]) -> Result<()>;

    /// Appends the results of the last `decode_all` or `gather` to `out`.
    fn results(&self, out: &mut Columns) -> Result<()>;
}

/// Returns all competitors, in the order of the reports.
pub fn all() -> Vec<Box<dyn Peer<Dataset>>> {
    let mut peers: Vec<Box<dyn Peer<Dataset>>> = vec![Box::new(memory::Memory)];
    let profiles = [Profile::Raw, Profile::Fast, Profile::Balanced, Profile::Small];
    peers.extend(profiles.map(|profile| Box::new(tensilo::Tensilo(profile)) as Box<dyn Peer<Dataset>>));
    peers.extend([false, true].map(|compressed| Box::new(lmdb::Lmdb { compressed }) as Box<dyn Peer<Dataset>>));
    peers.extend(
        [8 << 10, 64 << 10, 1 << 20]
            .map(|page_bytes| Box::new(parquet::Parquet { page_bytes }) as Box<dyn Peer<Dataset>>),
    );
    for (batch_bytes, compressed) in [(1 << 20, false), (64 << 10, true), (1 << 20, true)] {
        peers.push(Box::new(arrow_ipc::ArrowIpc { batch_bytes, compressed }));
    }
    peers
}
