//! The competitors on one data set of tensors.

use crate::data::Dataset;
use crate::measure::Random;
use crate::peers::{self, Peer, Store};
use crate::run::{self, Contender, Facts, GATHERED, Measured, Request, Settings, Table, Times, request};
use anyhow::{Result, ensure};
use half::bf16;
use std::hint::black_box;
use std::path::Path;

pub fn run(data: &Dataset, settings: Settings, folder: &Path) -> Result<Table> {
    let mut contenders = Vec::new();
    for (number, peer) in peers::all().into_iter().enumerate() {
        contenders.push(prepare(data, peer, &folder.join(format!("{}-{number}", data.name)))?);
    }
    let facts = Facts {
        name: data.name,
        dtype: "bf16".to_owned(),
        shape: Some(data.shape.clone()),
        origin: data.origin.clone(),
        samples: data.samples(),
        raw_bytes: data.raw_bytes(),
    };
    let memory = vec![bf16::ZERO; GATHERED * data.elements()];
    run::run(facts, contenders, memory, settings, folder)
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
    let same = |a: &[bf16], b: &[bf16]| bytemuck::cast_slice::<_, u16>(a) == bytemuck::cast_slice::<_, u16>(b);
    ensure!(same(store.decode_all()?, &data.values), "decoding all gives other values");
    let mut out = vec![bf16::ZERO; data.elements()];
    let mut random = Random::new(u64::MAX);
    for i in (0..data.samples()).map(|_| random.below(data.samples())) {
        out.fill(bf16::NAN);
        store.sample(i, &mut out)?;
        ensure!(same(&out, data.sample(i)), "sample {i} has other values");
        if let Some(view) = store.view(i)? {
            ensure!(same(view, data.sample(i)), "the view of sample {i} has other values");
        }
    }
    let mut out = vec![bf16::NAN; GATHERED * data.elements()];
    for _ in 0..3 {
        let request = request(&mut random, data.samples());
        store.gather(&request, &mut out)?;
        for (&i, sample) in request.iter().zip(out.chunks_exact(data.elements())) {
            ensure!(same(sample, data.sample(i)), "gathered sample {i} has other values");
        }
    }
    Ok(())
}

struct Open<'a> {
    data: &'a Dataset,
    peer: Box<dyn Peer>,
    store: Box<dyn Store>,
}

impl Measured for Open<'_> {
    /// As long as the samples of a request.
    type Memory = Vec<bf16>;

    fn encode(&self, file: &Path) -> Result<()> {
        self.peer.encode(self.data, file)
    }

    fn decode_all(&mut self) -> Result<()> {
        black_box(self.store.decode_all()?);
        Ok(())
    }

    #[inline]
    fn sample(&mut self, i: usize, memory: &mut Vec<bf16>) -> Result<()> {
        self.store.sample(i, black_box(&mut memory[..self.data.elements()]))
    }

    fn gather(&mut self, request: &Request, memory: &mut Vec<bf16>) -> Result<()> {
        self.store.gather(request, black_box(memory))
    }

    #[inline]
    fn view(&mut self, i: usize) -> Result<bool> {
        let view = self.store.view(i)?;
        Ok(view.and_then(<[bf16]>::first).map(|first| black_box(*first)).is_some())
    }
}
