//! tensilo, one row per profile: a mapped file, default options, chunks verified on first touch.
//!
//! `range_into` decodes everything, `read_slice` and `gather_slice` read samples, `view` borrows
//! them. A second reader reads the file by position, also with default options. Decoding everything
//! uses a new cursor each time: an old one has the last chunk decoded, which may be the whole file
//! if it is small.

use super::{Family, Peer, Store, size};
use crate::data::{Dataset, Element};
use anyhow::{Context, Result};
use std::fs::File;
use std::io::BufWriter;
use std::path::Path;
use tensilo::sink::Stream;
use tensilo::{
    Column, ColumnBatch, ColumnBuffer, ColumnSchema, Cursor, Profile, Reader, Schema, Shape, Writer, WriterOptions,
};

pub struct Tensilo(pub Profile);

pub const COLUMN: &str = "x";
/// The buffer size of tensilo's own file sink.
const BUFFER_BYTES: usize = 256 << 10;

pub fn name(profile: Profile) -> String {
    format!("tensilo {}", profile.name())
}

pub fn about(profile: Profile) -> String {
    let (version, chunks) = (env!("TENSILO_VERSION"), size(profile.chunk_bytes()));
    format!("{version}, profile {}, chunks of {chunks}, mapped", profile.name())
}

/// Creates the file with a write buffer.
pub fn sink(file: &Path) -> Result<Stream<BufWriter<File>>> {
    Ok(Stream(BufWriter::with_capacity(BUFFER_BYTES, File::create_new(file)?)))
}

impl<T: Element> Peer<Dataset<T>> for Tensilo {
    fn name(&self) -> String {
        name(self.0)
    }

    fn about(&self) -> String {
        about(self.0)
    }

    fn family(&self) -> Family {
        Family::Tensilo
    }

    fn encode(&self, data: &Dataset<T>, file: &Path) -> Result<()> {
        let schema = Schema::new([ColumnSchema::tensor(COLUMN, T::DTYPE, Shape::fixed(&data.shape))]);
        let mut writer = Writer::new(sink(file)?, schema, &WriterOptions::new().profile(self.0))?;
        writer.push_batch(&[ColumnBatch::fixed(data.samples(), &data.values)])?;
        writer.finish()?;
        Ok(())
    }

    fn open(&self, _data: &Dataset<T>, file: &Path) -> Result<Box<dyn Store<T>>> {
        // SAFETY: the file is in a temporary folder of this process, which does not change it once
        // it is written.
        let reader = unsafe { Reader::map(file) }?;
        let column = reader.column(COLUMN)?;
        Ok(Box::new(Open {
            cursor: column.cursor(),
            column,
            positioned: Reader::open(file)?.column(COLUMN)?.cursor(),
            out: ColumnBuffer::new(),
            samples: reader.sample_count(),
            request: Vec::new(),
        }))
    }
}

struct Open {
    column: Column,
    cursor: Cursor,
    /// Reads the file by position.
    positioned: Cursor,
    out: ColumnBuffer,
    samples: u64,
    request: Vec<u64>,
}

impl<T: Element> Store<T> for Open {
    fn decode_all(&mut self) -> Result<&[T]> {
        self.column.cursor().range_into(0..self.samples, &mut self.out)?;
        Ok(self.out.values()?)
    }

    fn sample(&mut self, i: usize, out: &mut [T]) -> Result<()> {
        self.cursor.read_slice(i as u64, out)?.context("a null")?;
        Ok(())
    }

    fn position(&mut self, i: usize, out: &mut [T]) -> Result<bool> {
        self.positioned.read_slice(i as u64, out)?.context("a null")?;
        Ok(true)
    }

    fn gather(&mut self, request: &[usize], out: &mut [T]) -> Result<()> {
        self.request.clear();
        self.request.extend(request.iter().map(|&i| i as u64));
        self.cursor.gather_slice(&self.request, out)?;
        Ok(())
    }

    fn view(&self, i: usize) -> Result<Option<&[T]>> {
        let sample = self.column.view(i as u64)?;
        Ok(sample.map(|sample| sample.as_slice()).transpose()?)
    }
}
