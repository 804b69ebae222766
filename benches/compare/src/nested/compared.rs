//! The competitors on one data set of texts or lists.

use super::columns::Columns;
use super::data::Dataset;
use super::peers::{self, Peer, Store};
use crate::measure::Random;
use crate::run::{self, Contender, Facts, Measured, Request, Settings, Table, Times, request};
use anyhow::{Result, ensure};
use std::hint::black_box;
use std::path::Path;

pub fn run(data: &Dataset, settings: Settings, folder: &Path) -> Result<Table> {
    let mut contenders = Vec::new();
    for (number, peer) in peers::all().into_iter().enumerate() {
        contenders.push(prepare(data, peer, &folder.join(format!("{}-{number}", data.name)))?);
    }
    let layout = data.samples.layout();
    let facts = Facts {
        name: data.name,
        dtype: layout.type_name(),
        shape: None,
        origin: data.origin.clone(),
        samples: data.samples.samples(),
        raw_bytes: data.raw_bytes(),
    };
    run::run(facts, contenders, Columns::new(layout), settings, folder)
}

/// Writes, opens, checks.
fn prepare<'a>(data: &'a Dataset, peer: Box<dyn Peer>, file: &Path) -> Result<Contender<Open<'a>>> {
    let result = (|| {
        peer.encode(data, file)?;
        let mut store = peer.open(data, file)?;
        check(data, store.as_mut())?;
        Ok((peer.stored_bytes(data, file)?, store))
    })();
    let (stored_bytes, store) =
        result.map_err(|error: anyhow::Error| error.context(format!("{} on {}", peer.name(), data.name)))?;
    Ok(Contender {
        name: peer.name(),
        about: peer.about(),
        family: peer.family(),
        stored_bytes,
        measured: Open { data, peer, store },
        times: Times::default(),
    })
}

/// Whether everything comes back as it was, to the bit.
fn check(data: &Dataset, store: &mut dyn Store) -> Result<()> {
    let samples = data.samples.samples();
    let mut found = Columns::new(data.samples.layout());
    store.decode_all()?;
    store.results(&mut found)?;
    ensure!(found == data.samples.columns, "decoding all gives other values");
    let mut due = Columns::new(data.samples.layout());
    let mut random = Random::new(u64::MAX);
    for i in (0..samples.min(10_000)).map(|_| random.below(samples)) {
        found.clear();
        due.clear();
        store.sample(i, &mut found)?;
        data.samples.copy(i..i + 1, &mut due);
        ensure!(found == due, "sample {i} has other values");
    }
    for _ in 0..3 {
        let request = request(&mut random, samples);
        found.clear();
        due.clear();
        store.gather(&request)?;
        store.results(&mut found)?;
        request.iter().for_each(|&i| data.samples.copy(i..i + 1, &mut due));
        ensure!(found == due, "gathered samples have other values");
    }
    Ok(())
}

struct Open<'a> {
    data: &'a Dataset,
    peer: Box<dyn Peer>,
    store: Box<dyn Store>,
}

impl Measured for Open<'_> {
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
            for (number, peer) in peers::all().into_iter().enumerate() {
                prepare(&data, peer, &folder.path().join(format!("{name}-{number}"))).unwrap();
            }
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
            assert!(check(&data, store.as_mut()).is_err(), "{}", peer.name());
            std::fs::remove_file(&file).unwrap();
        }
    }
}
