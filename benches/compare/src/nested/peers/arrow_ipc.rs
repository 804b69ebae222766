//! Mapped Arrow IPC files: uncompressed, read directly from the map, or with buffers compressed
//! with Zstandard 3, in record batches of two sizes.
//!
//! Uncompressed batches are opened once, which checks that all texts are UTF-8. A compressed batch
//! is decoded whole. The last decoded batch is cached, and a request decodes each batch once.

use super::arrow::{self, Arrays};
use super::{LEVEL, Peer, Store};
use crate::nested::columns::{Columns, Layout};
use crate::nested::data::Dataset;
use crate::peers::arrow_ipc::Blocks;
use crate::peers::{Family, map, size};
use anyhow::{Context, Result, ensure};
use arrow_buffer::Buffer;
use arrow_ipc::CompressionType;
use arrow_ipc::writer::{FileWriter, IpcWriteOptions};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs::File;
use std::io::BufWriter;
use std::path::Path;
use std::sync::Arc;

pub struct ArrowIpc {
    pub batch_bytes: usize,
    pub compressed: bool,
}

impl ArrowIpc {
    fn batch_samples(&self, data: &Dataset) -> usize {
        (self.batch_bytes * data.samples.samples() / data.raw_bytes()).max(1)
    }
}

impl Peer<Dataset> for ArrowIpc {
    fn name(&self) -> String {
        if self.compressed {
            format!("Arrow IPC zstd {LEVEL} {}", size(self.batch_bytes))
        } else {
            "Arrow IPC mmap".to_owned()
        }
    }

    fn about(&self) -> String {
        let (version, batch) = (env!("ARROW_IPC_VERSION"), size(self.batch_bytes));
        let stored = if self.compressed { format!("Zstandard level {LEVEL}") } else { "uncompressed".to_owned() };
        format!("arrow-rs {version}, {stored}, batches of about {batch}, mapped")
    }

    fn family(&self) -> Family {
        if self.compressed { Family::Other } else { Family::Memory }
    }

    fn encode(&self, data: &Dataset, file: &Path) -> Result<()> {
        let schema = Arc::new(arrow::schema(data.samples.layout()));
        let compression = self.compressed.then_some(CompressionType::ZSTD);
        let options = IpcWriteOptions::default()
            .try_with_compression(compression)?
            .try_with_compression_level(self.compressed.then_some(LEVEL))?;
        let file = BufWriter::new(File::create_new(file)?);
        let mut writer = FileWriter::try_new_with_options(file, &schema, options)?;
        let (samples, per_batch) = (data.samples.samples(), self.batch_samples(data));
        for start in (0..samples).step_by(per_batch) {
            let range = start..samples.min(start + per_batch);
            writer.write(&arrow::batch(&data.samples, range, schema.clone())?)?;
        }
        writer.finish()?;
        Ok(())
    }

    fn open(&self, data: &Dataset, file: &Path) -> Result<Box<dyn Store>> {
        let file = Buffer::from(bytes::Bytes::from_owner(map(file)?));
        let blocks = Blocks::new(&file, !self.compressed)?;
        let layout = *data.samples.layout();
        let per_batch = self.batch_samples(data);
        let out = Columns::new(&layout);
        if self.compressed {
            return Ok(Box::new(Compressed { blocks, layout, per_batch, cached: None, all: Vec::new(), out }));
        }
        let read = |number| Arrays::new(&layout, &blocks.read(number)?);
        let batches = (0..blocks.len()).map(read).collect::<Result<Vec<_>>>()?;
        ensure!(batches.iter().all(|batch| batch.is_in(&file)), "the values were copied");
        Ok(Box::new(Mapped { batches, per_batch, out }))
    }
}

struct Mapped {
    batches: Vec<Arrays>,
    per_batch: usize,
    out: Columns,
}

impl Mapped {
    fn copy(batches: &[Arrays], per_batch: usize, i: usize, out: &mut Columns) -> Result<()> {
        let (number, row) = (i / per_batch, i % per_batch);
        batches.get(number).context("no such batch")?.copy(row..row + 1, out);
        Ok(())
    }
}

impl Store for Mapped {
    fn decode_all(&mut self) -> Result<()> {
        self.out.clear();
        self.batches.iter().for_each(|batch| batch.copy(0..batch.rows(), &mut self.out));
        Ok(())
    }

    fn sample(&mut self, i: usize, out: &mut Columns) -> Result<()> {
        Self::copy(&self.batches, self.per_batch, i, out)
    }

    fn gather(&mut self, request: &[usize]) -> Result<()> {
        self.out.clear();
        request.iter().try_for_each(|&i| Self::copy(&self.batches, self.per_batch, i, &mut self.out))
    }

    fn results(&self, out: &mut Columns) -> Result<()> {
        out.clone_from(&self.out);
        Ok(())
    }
}

struct Compressed {
    blocks: Blocks,
    layout: Layout,
    per_batch: usize,
    /// The last batch that was decoded for a sample, and its index.
    cached: Option<(usize, Arrays)>,
    /// All batches, decoded.
    all: Vec<Arrays>,
    /// Gathered samples.
    out: Columns,
}

impl Compressed {
    fn decode(&self, number: usize) -> Result<Arrays> {
        Arrays::new(&self.layout, &self.blocks.read(number)?)
    }
}

impl Store for Compressed {
    fn decode_all(&mut self) -> Result<()> {
        self.out.clear();
        self.all.clear();
        self.all = (0..self.blocks.len()).map(|number| self.decode(number)).collect::<Result<_>>()?;
        Ok(())
    }

    fn sample(&mut self, i: usize, out: &mut Columns) -> Result<()> {
        let (number, row) = (i / self.per_batch, i % self.per_batch);
        let batch = match self.cached.take() {
            Some((cached, batch)) if cached == number => batch,
            _ => self.decode(number)?,
        };
        batch.copy(row..row + 1, out);
        self.cached = Some((number, batch));
        Ok(())
    }

    fn gather(&mut self, request: &[usize]) -> Result<()> {
        self.all.clear();
        self.out.clear();
        let mut batches = BTreeMap::from_iter(self.cached.take());
        for &i in request {
            let (number, row) = (i / self.per_batch, i % self.per_batch);
            if let Entry::Vacant(vacant) = batches.entry(number) {
                vacant.insert(self.decode(number)?);
            }
            batches[&number].copy(row..row + 1, &mut self.out);
        }
        self.cached = request.last().and_then(|last| batches.remove_entry(&(last / self.per_batch)));
        Ok(())
    }

    fn results(&self, out: &mut Columns) -> Result<()> {
        out.clone_from(&self.out);
        self.all.iter().for_each(|batch| batch.copy(0..batch.rows(), out));
        Ok(())
    }
}
