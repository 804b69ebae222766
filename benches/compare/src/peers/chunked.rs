//! A container for codecs that have none: tables of the column, if the codec has any, chunks of
//! whole samples, and the end of each chunk.
//!
//! It favors the codec. It costs as little as possible: 8 bytes per chunk, no checksums. Its
//! reader does what tensilo's does: it caches the last decoded chunk, decodes directly into the
//! destination, and decodes a chunk once for all samples of a request.

use super::{Peer, Store, WHOLE, map};
use crate::data::{Dataset, Element};
use anyhow::{Context, Result, ensure};
use memmap2::Mmap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::ops::Range;
use std::path::Path;
use tensilo::DType;
use tensilo::source::{PositionedFile, Source};

/// A codec for chunks.
pub trait Codec {
    fn name(&self) -> String;

    fn about(&self) -> String;

    /// Returns the raw bytes of a chunk.
    fn chunk_bytes(&self) -> usize;

    /// Makes the tables that all chunks share.
    fn tables(&self, _raw: &[u8]) -> Vec<u8> {
        Vec::new()
    }

    /// Returns the bytes of the tables.
    fn table_bytes(&self) -> usize {
        0
    }

    /// Makes the encoder and decoder, which reuses its memory.
    fn coder(&self, dtype: DType, tables: &[u8]) -> Result<Box<dyn Coder>>;
}

/// Encodes and decodes chunks. Slices of raw bytes are aligned for elements.
pub trait Coder {
    /// Appends `raw` to `stored`, encoded.
    fn encode(&mut self, raw: &[u8], stored: &mut Vec<u8>) -> Result<()>;

    /// Decodes a chunk to `out`, which has exactly its length.
    fn decode(&mut self, stored: &[u8], out: &mut [u8]) -> Result<()>;

    /// Decodes only the elements from index `start` that fill `out`, if this costs less than
    /// decoding the chunk. Otherwise returns `false`.
    fn decode_part(&mut self, _stored: &[u8], _start: usize, _out: &mut [u8]) -> Result<bool> {
        Ok(false)
    }
}

pub struct Chunked<C>(pub C);

impl<T: Element, C: Codec> Peer<Dataset<T>> for Chunked<C> {
    fn name(&self) -> String {
        self.0.name()
    }

    fn about(&self) -> String {
        self.0.about()
    }

    fn stays_decoded(&self) -> bool {
        self.0.chunk_bytes() == WHOLE
    }

    fn encode(&self, data: &Dataset<T>, file: &Path) -> Result<()> {
        let tables = self.0.tables(data.bytes());
        let mut coder = self.0.coder(T::DTYPE, &tables)?;
        let mut file = BufWriter::with_capacity(256 << 10, File::create_new(file)?);
        file.write_all(&tables)?;
        let (mut stored, mut end, mut ends) = (Vec::new(), tables.len() as u64, Vec::new());
        for chunk in data.values.chunks(data.samples_in(self.0.chunk_bytes()) * data.elements()) {
            stored.clear();
            coder.encode(bytemuck::cast_slice(chunk), &mut stored)?;
            file.write_all(&stored)?;
            end += stored.len() as u64;
            ends.extend(end.to_le_bytes());
        }
        file.write_all(&ends)?;
        Ok(file.flush()?)
    }

    fn open(&self, data: &Dataset<T>, file: &Path) -> Result<Box<dyn Store<T>>> {
        let per_chunk = data.samples_in(self.0.chunk_bytes()).min(data.samples());
        let positioned = PositionedFile::open(file)?;
        let map = map(file)?;
        let header_bytes = self.0.table_bytes();
        let table = map.len().checked_sub(8 * data.samples().div_ceil(per_chunk)).context("the file is too short")?;
        let ends = map[table..].as_chunks().0.iter().map(|end| u64::from_le_bytes(*end) as usize);
        let mut chunks = Vec::new();
        for end in ends {
            let start = chunks.last().map_or(header_bytes, |last: &Range<usize>| last.end);
            ensure!(start <= end && end <= table, "a chunk outside the file");
            chunks.push(start..end);
        }
        Ok(Box::new(Open {
            coder: self.0.coder(T::DTYPE, map.get(..header_bytes).context("the file is too short")?)?,
            map,
            file: positioned,
            stored: Vec::new(),
            chunks,
            chunk_elements: data.values.chunks(per_chunk * data.elements()).map(<[T]>::len).collect(),
            elements: data.elements(),
            per_chunk,
            current: None,
            chunk: vec![T::default(); per_chunk * data.elements()],
            out: vec![T::default(); data.values.len()],
            order: Vec::new(),
        }))
    }
}

struct Open<T> {
    coder: Box<dyn Coder>,
    map: Mmap,
    file: PositionedFile,
    /// A chunk that was read from `file`.
    stored: Vec<u8>,
    chunks: Vec<Range<usize>>,
    /// The number of elements in each chunk.
    chunk_elements: Vec<usize>,
    /// The number of elements in a sample.
    elements: usize,
    /// The number of samples in each chunk except the last.
    per_chunk: usize,
    /// The index of the chunk that is decoded in `chunk`.
    current: Option<usize>,
    chunk: Vec<T>,
    out: Vec<T>,
    /// The samples of a request, with their positions in it.
    order: Vec<(usize, usize)>,
}

impl<T: Element> Open<T> {
    /// Decodes a chunk, if it is not the current one.
    fn load(&mut self, chunk: usize) -> Result<()> {
        if self.current != Some(chunk) {
            self.current = None;
            let out = &mut self.chunk[..self.chunk_elements[chunk]];
            self.coder.decode(&self.map[self.chunks[chunk].clone()], bytemuck::cast_slice_mut(out))?;
            self.current = Some(chunk);
        }
        Ok(())
    }

    /// Copies a sample from the current chunk.
    fn copy(&self, i: usize, out: &mut [T]) {
        out.copy_from_slice(&self.chunk[i % self.per_chunk * self.elements..][..self.elements]);
    }

    /// Copies a sample. Reads its chunk from the map, or by position from the file.
    fn read(&mut self, i: usize, is_mapped: bool, out: &mut [T]) -> Result<()> {
        let chunk = i / self.per_chunk;
        if self.current != Some(chunk) {
            let range = self.chunks[chunk].clone();
            let stored = if is_mapped {
                &self.map[range]
            } else {
                self.stored.resize(range.len(), 0);
                self.file.read_exact_at(range.start as u64, &mut self.stored)?;
                &self.stored
            };
            let start = i % self.per_chunk * self.elements;
            if self.coder.decode_part(stored, start, bytemuck::cast_slice_mut(out))? {
                return Ok(());
            }
            self.current = None;
            let whole = &mut self.chunk[..self.chunk_elements[chunk]];
            self.coder.decode(stored, bytemuck::cast_slice_mut(whole))?;
            self.current = Some(chunk);
        }
        self.copy(i, out);
        Ok(())
    }
}

impl<T: Element> Store<T> for Open<T> {
    fn decode_all(&mut self) -> Result<&[T]> {
        for (chunk, out) in self.chunks.iter().zip(self.out.chunks_mut(self.per_chunk * self.elements)) {
            self.coder.decode(&self.map[chunk.clone()], bytemuck::cast_slice_mut(out))?;
        }
        Ok(&self.out)
    }

    fn sample(&mut self, i: usize, out: &mut [T]) -> Result<()> {
        self.read(i, true, out)
    }

    fn position(&mut self, i: usize, out: &mut [T]) -> Result<bool> {
        self.read(i, false, out)?;
        Ok(true)
    }

    fn gather(&mut self, request: &[usize], out: &mut [T]) -> Result<()> {
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
