//! Raw values without a store: the upper bounds of speed.
//!
//! `memcpy` copies from an array in memory, and is the baseline of every report. `raw mmap` copies
//! from a mapped file that contains only the values, and also reads the file by position.

use super::{Family, Peer, Store, map};
use crate::data::{Dataset, Element};
use anyhow::{Context, Result};
use memmap2::Mmap;
use std::cell::RefCell;
use std::fs;
use std::path::Path;
use tensilo::source::{PositionedFile, Source};

pub struct Memory;

thread_local! {
    /// The destination of "encoding" by `memcpy`. Its pages exist before the clock starts.
    static COPY: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

impl<T: Element> Peer<Dataset<T>> for Memory {
    fn name(&self) -> String {
        "memcpy".to_owned()
    }

    fn about(&self) -> String {
        "an array in memory".to_owned()
    }

    fn family(&self) -> Family {
        Family::Memory
    }

    fn encode(&self, data: &Dataset<T>, _file: &Path) -> Result<()> {
        COPY.with_borrow_mut(|copy| {
            copy.resize(data.raw_bytes(), 0);
            copy.copy_from_slice(data.bytes());
        });
        Ok(())
    }

    fn open(&self, data: &Dataset<T>, _file: &Path) -> Result<Box<dyn Store<T>>> {
        Ok(Box::new(Plain::new(data, Array(data.values.clone()), None)))
    }

    fn stored_bytes(&self, data: &Dataset<T>, _file: &Path) -> Result<u64> {
        Ok(data.raw_bytes() as u64)
    }
}

pub struct Mapped;

impl<T: Element> Peer<Dataset<T>> for Mapped {
    fn name(&self) -> String {
        "raw mmap".to_owned()
    }

    fn about(&self) -> String {
        "a mapped file with only the values".to_owned()
    }

    fn family(&self) -> Family {
        Family::Memory
    }

    fn encode(&self, data: &Dataset<T>, file: &Path) -> Result<()> {
        Ok(fs::write(file, data.bytes())?)
    }

    fn open(&self, data: &Dataset<T>, file: &Path) -> Result<Box<dyn Store<T>>> {
        Ok(Box::new(Plain::new(data, map(file)?, Some(PositionedFile::open(file)?))))
    }
}

/// Memory that contains raw values.
trait Values<T> {
    fn values(&self) -> &[T];
}

struct Array<T>(Vec<T>);

impl<T> Values<T> for Array<T> {
    fn values(&self) -> &[T] {
        &self.0
    }
}

impl<T: Element> Values<T> for Mmap {
    fn values(&self) -> &[T] {
        bytemuck::cast_slice(self) // aligned, because a map begins at a page
    }
}

struct Plain<V, T> {
    stored: V,
    /// The file of the values, to read it by position.
    file: Option<PositionedFile>,
    elements: usize,
    out: Vec<T>,
}

impl<T: Element, V: Values<T>> Plain<V, T> {
    fn new(data: &Dataset<T>, stored: V, file: Option<PositionedFile>) -> Self {
        Self { stored, file, elements: data.elements(), out: vec![T::default(); data.values.len()] }
    }

    fn get(&self, i: usize) -> Result<&[T]> {
        let start = i * self.elements;
        self.stored.values().get(start..start + self.elements).context("no such sample")
    }
}

impl<T: Element, V: Values<T>> Store<T> for Plain<V, T> {
    fn decode_all(&mut self) -> Result<&[T]> {
        self.out.copy_from_slice(self.stored.values());
        Ok(&self.out)
    }

    fn position(&mut self, i: usize, out: &mut [T]) -> Result<bool> {
        let Some(file) = &self.file else { return Ok(false) };
        let out: &mut [u8] = bytemuck::cast_slice_mut(out);
        file.read_exact_at((i * out.len()) as u64, out)?;
        Ok(true)
    }

    fn view(&self, i: usize) -> Result<Option<&[T]>> {
        self.get(i).map(Some)
    }
}
