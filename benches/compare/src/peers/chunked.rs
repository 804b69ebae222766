//! A container for codecs without one: chunks of whole samples in sequence, then the offset of each
//! chunk's end.
//!
//! It costs as little as possible: 8 bytes for each chunk, no checksums. Its reader does as much as
//! tensilo's: it keeps the chunk decoded last, decodes directly into the destination, and decodes a
//! chunk once for all samples of a request.

use super::{Peer, Store, map};
use crate::data::Dataset;
use anyhow::{Context, Result, ensure};
use half::bf16;
use memmap2::Mmap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::ops::Range;
use std::path::Path;

/// Something that encodes a chunk.
pub trait Codec {
    fn name(&self) -> String;

    fn about(&self) -> String;

    /// Raw bytes of a chunk.
    fn chunk_bytes(&self) -> usize;

    /// Makes the encoder and decoder, with the memory that it reuses.
    fn coder(&self) -> Result<Box<dyn Coder>>;
}

pub trait Coder {
    /// Appends `raw` to `stored`, encoded.
    fn encode(&mut self, raw: &[bf16], stored: &mut Vec<u8>) -> Result<()>;

    /// Decodes a chunk that has as many elements as `out`.
    fn decode(&mut self, stored: &[u8], out: &mut [bf16]) -> Result<()>;

    /// Decodes only the elements from `start`, if that costs less than the whole chunk. Otherwise
    /// returns `false`.
    fn decode_part(&mut self, _stored: &[u8], _start: usize, _out: &mut [bf16]) -> Result<bool> {
        Ok(false)
    }
}

pub struct Chunked<C>(pub C);

impl<C: Codec> Peer for Chunked<C> {
    fn name(&self) -> String {
        self.0.name()
    }

    fn about(&self) -> String {
        self.0.about()
    }

    fn encode(&self, data: &Dataset, file: &Path) -> Result<()> {
        let mut coder = self.0.coder()?;
        let mut file = BufWriter::with_capacity(256 << 10, File::create_new(file)?);
        let (mut stored, mut end, mut ends) = (Vec::new(), 0_u64, Vec::new());
        for chunk in data.values.chunks(data.samples_in(self.0.chunk_bytes()) * data.elements()) {
            stored.clear();
            coder.encode(chunk, &mut stored)?;
            file.write_all(&stored)?;
            end += stored.len() as u64;
            ends.extend(end.to_le_bytes());
        }
        file.write_all(&ends)?;
        Ok(file.flush()?)
    }

    fn open(&self, data: &Dataset, file: &Path) -> Result<Box<dyn Store>> {
        let per_chunk = data.samples_in(self.0.chunk_bytes());
        let map = map(file)?;
        let table = map.len().checked_sub(8 * data.samples().div_ceil(per_chunk)).context("the file is too short")?;
        let ends = map[table..].as_chunks().0.iter().map(|end| u64::from_le_bytes(*end) as usize);
        let mut chunks = Vec::new();
        for end in ends {
            let start = chunks.last().map_or(0, |last: &Range<usize>| last.end);
            ensure!(start <= end && end <= table, "a chunk outside the file");
            chunks.push(start..end);
        }
        Ok(Box::new(Open {
            coder: self.0.coder()?,
            map,
            chunks,
            elements: data.elements(),
            per_chunk,
            samples: data.samples(),
            current: None,
            chunk: vec![bf16::ZERO; per_chunk * data.elements()],
            out: vec![bf16::ZERO; data.values.len()],
            order: Vec::new(),
        }))
    }
}

struct Open {
    coder: Box<dyn Coder>,
    map: Mmap,
    chunks: Vec<Range<usize>>,
    /// Of one sample.
    elements: usize,
    /// Samples in each chunk but the last.
    per_chunk: usize,
    samples: usize,
    /// The chunk that is in `chunk`.
    current: Option<usize>,
    chunk: Vec<bf16>,
    out: Vec<bf16>,
    /// Samples of a request with their positions in it.
    order: Vec<(usize, usize)>,
}

impl Open {
    /// Makes `chunk` the current one.
    fn load(&mut self, chunk: usize) -> Result<()> {
        if self.current != Some(chunk) {
            self.current = None;
            let samples = self.per_chunk.min(self.samples - chunk * self.per_chunk);
            self.coder.decode(&self.map[self.chunks[chunk].clone()], &mut self.chunk[..samples * self.elements])?;
            self.current = Some(chunk);
        }
        Ok(())
    }

    /// Copies a sample out of the current chunk.
    fn copy(&self, i: usize, out: &mut [bf16]) {
        out.copy_from_slice(&self.chunk[i % self.per_chunk * self.elements..][..self.elements]);
    }
}

impl Store for Open {
    fn decode_all(&mut self) -> Result<&[bf16]> {
        for (chunk, out) in self.chunks.iter().zip(self.out.chunks_mut(self.per_chunk * self.elements)) {
            self.coder.decode(&self.map[chunk.clone()], out)?;
        }
        Ok(&self.out)
    }

    fn sample(&mut self, i: usize, out: &mut [bf16]) -> Result<()> {
        let chunk = i / self.per_chunk;
        if self.current != Some(chunk) {
            let stored = &self.map[self.chunks[chunk].clone()];
            if self.coder.decode_part(stored, i % self.per_chunk * self.elements, out)? {
                return Ok(());
            }
        }
        self.load(chunk)?;
        self.copy(i, out);
        Ok(())
    }

    fn gather(&mut self, request: &[usize], out: &mut [bf16]) -> Result<()> {
        let mut order = std::mem::take(&mut self.order);
        order.clear();
        order.extend(request.iter().copied().zip(0..));
        order.sort_unstable();
        let (per_chunk, elements) = (self.per_chunk, self.elements);
        for group in order.chunk_by(|a, b| a.0 / per_chunk == b.0 / per_chunk) {
            if let &[(i, at)] = group {
                self.sample(i, &mut out[at * elements..][..elements])?;
                continue;
            }
            self.load(group[0].0 / per_chunk)?;
            for &(i, at) in group {
                self.copy(i, &mut out[at * elements..][..elements]);
            }
        }
        self.order = order;
        Ok(())
    }
}
