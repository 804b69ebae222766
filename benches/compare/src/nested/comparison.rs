//! Compares and measures the competitors on one data set of texts or lists.

use super::columns::Columns;
use super::data::Dataset;
use super::peers::{self, Store};
use crate::measure::Random;
use crate::open_peer::{OpenPeer, prepare};
use crate::peers::Data;
use crate::run::{self, Facts, Measured, Request, Settings, Table, request};
use anyhow::{Result, ensure};
use std::hint::black_box;
use std::path::Path;

pub fn run(data: &Dataset, settings: Settings, folder: &Path) -> Result<Table> {
    let contenders = prepare(data, peers::all(), folder)?;
    let layout = data.samples.layout();
    let facts = Facts {
        name: data.name.to_owned(),
        dtype: layout.type_name(),
        shape: None,
        origin: data.origin.clone(),
        samples: data.samples.samples(),
        raw_bytes: data.raw_bytes(),
    };
    run::run(facts, contenders, Columns::new(layout), settings, folder)
}

impl Data for Dataset {
    type Store = dyn Store;

    fn name(&self) -> &str {
        self.name
    }

    fn check(&self, store: &mut Self::Store) -> Result<()> {
        let samples = self.samples.samples();
        let mut found = Columns::new(self.samples.layout());
        store.decode_all()?;
        store.results(&mut found)?;
        ensure!(found == self.samples.columns, "decoding everything returns wrong values");
        let mut expected = Columns::new(self.samples.layout());
        let mut random = Random::new(u64::MAX);
        for i in (0..samples.min(10_000)).map(|_| random.below(samples)) {
            found.clear();
            expected.clear();
            store.sample(i, &mut found)?;
            self.samples.copy(i..i + 1, &mut expected);
            ensure!(found == expected, "sample {i} has wrong values");
        }
        for _ in 0..3 {
            let request = request(&mut random, samples);
            found.clear();
            expected.clear();
            store.gather(&request)?;
            store.results(&mut found)?;
            request.iter().for_each(|&i| self.samples.copy(i..i + 1, &mut expected));
            ensure!(found == expected, "gathered samples have wrong values");
        }
        Ok(())
    }
}

impl Measured for OpenPeer<'_, Dataset> {
    type Memory = Columns;

    fn encode(&self, file: &Path) -> Result<()> {
        self.peer.encode(self.data, file)
    }

    fn decode_all(&mut self) -> Result<()> {
        self.store.decode_all()
    }

    #[inline]
    fn sample(&mut self, i: usize, memory: &mut Columns) -> Result<()> {
        memory.clear();
        self.store.sample(i, black_box(memory))
    }

    fn gather(&mut self, request: &Request, _memory: &mut Columns) -> Result<()> {
        self.store.gather(request)
    }

    fn view(&mut self, _i: usize) -> Result<bool> {
        Ok(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nested::data::{self, Folders};

    #[test]
    fn every_competitor_returns_every_sample() {
        let folder = tempfile::tempdir().unwrap();
        for name in data::NAMES {
            let data = data::load(name, Folders { tensors: None, texts: None }, 200_000).unwrap();
            prepare(&data, peers::all(), folder.path()).unwrap();
        }
    }

    #[test]
    fn other_values_are_found() {
        let folder = tempfile::tempdir().unwrap();
        let load = |bytes| data::load("captions", Folders { tensors: None, texts: None }, bytes).unwrap();
        let (data, other) = (load(20_000), load(30_000));
        let file = folder.path().join("captions");
        for peer in peers::all().into_iter().skip(1) {
            peer.encode(&other, &file).unwrap();
            let mut store = peer.open(&other, &file).unwrap();
            assert!(data.check(store.as_mut()).is_err(), "{}", peer.name());
            std::fs::remove_file(&file).unwrap();
        }
    }
}
