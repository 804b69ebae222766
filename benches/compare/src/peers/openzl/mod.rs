//! OpenZL, with the graph that makes the smallest file. A graph is fixed, but for every chunk it
//! tries several codecs for each stream.
//!
//! Values are numeric input of the width of their type. Checksums are off, as in the container.

mod graph;
mod sys;

use super::chunked::{Codec, Coder};
use super::{WHOLE, size, width};
use anyhow::Result;
use graph::Graph;
use tensilo::DType;

pub struct OpenZl {
    chunk_bytes: usize,
    graph: Graph,
}

const LEVEL: i32 = 9;

/// Returns the settings that are tried for the smallest file.
pub fn candidates(dtype: DType) -> Vec<OpenZl> {
    let of_size = |chunk_bytes| Graph::of_type(dtype).into_iter().map(move |graph| OpenZl { chunk_bytes, graph });
    [256 << 10, WHOLE].into_iter().flat_map(of_size).collect()
}

pub fn about_best() -> String {
    format!(
        "OpenZL {}, level {LEVEL}, the smallest file of several graphs (deconstructed floats, deltas, byte planes, \
         tokens, field LZ, its own selectors of numbers), in chunks of 256 KiB or in one",
        sys::version()
    )
}

impl Codec for OpenZl {
    fn name(&self) -> String {
        "OpenZL".to_owned()
    }

    fn about(&self) -> String {
        let (version, graph, chunks) = (sys::version(), self.graph.name(), size(self.chunk_bytes));
        format!("OpenZL {version}, level {LEVEL}, {graph}, chunks of {chunks}")
    }

    fn chunk_bytes(&self) -> usize {
        self.chunk_bytes
    }

    fn coder(&self, dtype: DType, _tables: &[u8]) -> Result<Box<dyn Coder>> {
        Ok(Box::new(sys::Contexts::new(self.graph, LEVEL, width(dtype)?)?))
    }
}

impl Coder for sys::Contexts {
    fn encode(&mut self, raw: &[u8], stored: &mut Vec<u8>) -> Result<()> {
        self.compress(raw, stored)
    }

    fn decode(&mut self, stored: &[u8], out: &mut [u8]) -> Result<()> {
        self.decompress(stored, out)
    }
}
