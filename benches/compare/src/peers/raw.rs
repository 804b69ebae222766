//! Nothing encoded: the bounds that no store passes.
//!
//! `memcpy` copies out of an array in memory: the yardstick of every report. `raw mmap` copies out
//! of a mapped file that contains only the values.

use super::{Family, Peer, Store, map};
use crate::data::Dataset;
use anyhow::{Context, Result};
use half::bf16;
use memmap2::Mmap;
use std::cell::RefCell;
use std::fs;
use std::path::Path;

pub struct Memory;

thread_local! {
    /// The destination of "encoding" by `memcpy`. Its pages exist before the clock starts.
    static COPY: RefCell<Vec<bf16>> = const { RefCell::new(Vec::new()) };
}

impl Peer for Memory {
    fn name(&self) -> String {
        "memcpy".to_owned()
    }

    fn about(&self) -> String {
        "an array in memory".to_owned()
    }

    fn family(&self) -> Family {
        Family::Memory
    }

    fn encode(&self, data: &Dataset, _file: &Path) -> Result<()> {
        COPY.with_borrow_mut(|copy| {
            copy.resize(data.values.len(), bf16::ZERO);
            copy.copy_from_slice(&data.values);
        });
        Ok(())
    }

    fn open(&self, data: &Dataset, _file: &Path) -> Result<Box<dyn Store>> {
        Ok(Box::new(Plain::new(data, Array(data.values.clone()))))
    }

    fn stored_bytes(&self, data: &Dataset, _file: &Path) -> Result<u64> {
        Ok(data.raw_bytes() as u64)
    }
}

pub struct Mapped;

impl Peer for Mapped {
    fn name(&self) -> String {
        "raw mmap".to_owned()
    }

    fn about(&self) -> String {
        "a mapped file of the values alone".to_owned()
    }

    fn family(&self) -> Family {
        Family::Memory
    }

    fn encode(&self, data: &Dataset, file: &Path) -> Result<()> {
        Ok(fs::write(file, data.bytes())?)
    }

    fn open(&self, data: &Dataset, file: &Path) -> Result<Box<dyn Store>> {
        Ok(Box::new(Plain::new(data, map(file)?)))
    }
}

/// Values as they are.
trait Values {
    fn values(&self) -> &[bf16];
}

struct Array(Vec<bf16>);

impl Values for Array {
    fn values(&self) -> &[bf16] {
        &self.0
    }
}

impl Values for Mmap {
    fn values(&self) -> &[bf16] {
        bytemuck::cast_slice(self) // aligned: a map begins with a page
    }
}

struct Plain<V> {
    stored: V,
    elements: usize,
    out: Vec<bf16>,
}

impl<V: Values> Plain<V> {
    fn new(data: &Dataset, stored: V) -> Self {
        Self { stored, elements: data.elements(), out: vec![bf16::ZERO; data.values.len()] }
    }

    fn get(&self, i: usize) -> Result<&[bf16]> {
        let start = i * self.elements;
        self.stored.values().get(start..start + self.elements).context("no such sample")
    }
}

impl<V: Values> Store for Plain<V> {
    fn decode_all(&mut self) -> Result<&[bf16]> {
        self.out.copy_from_slice(self.stored.values());
        Ok(&self.out)
    }

    fn view(&self, i: usize) -> Result<Option<&[bf16]>> {
        self.get(i).map(Some)
    }
}
