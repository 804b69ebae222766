//! The competitors on one data set of tensors.

use crate::data::Dataset;
use crate::measure::Random;
use crate::opened::{Opened, prepare};
use crate::peers::{self, Data, Store};
use crate::run::{self, Facts, GATHERED, Measured, Request, Settings, Table, request};
use anyhow::{Result, ensure};
use half::bf16;
use std::hint::black_box;
use std::path::Path;

pub fn run(data: &Dataset, settings: Settings, folder: &Path) -> Result<Table> {
    let contenders = prepare(data, peers::all(), folder)?;
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

impl Data for Dataset {
    type Store = dyn Store;

    fn name(&self) -> &str {
        self.name
    }

    fn check(&self, store: &mut Self::Store) -> Result<()> {
        let same = |a: &[bf16], b: &[bf16]| bytemuck::cast_slice::<_, u16>(a) == bytemuck::cast_slice::<_, u16>(b);
        ensure!(same(store.decode_all()?, &self.values), "decoding all gives other values");
        let mut out = vec![bf16::ZERO; self.elements()];
        let mut random = Random::new(u64::MAX);
        for i in (0..self.samples()).map(|_| random.below(self.samples())) {
            out.fill(bf16::NAN);
            store.sample(i, &mut out)?;
            ensure!(same(&out, self.sample(i)), "sample {i} has other values");
            if let Some(view) = store.view(i)? {
                ensure!(same(view, self.sample(i)), "the view of sample {i} has other values");
            }
        }
        let mut out = vec![bf16::NAN; GATHERED * self.elements()];
        for _ in 0..3 {
            let request = request(&mut random, self.samples());
            store.gather(&request, &mut out)?;
            for (&i, sample) in request.iter().zip(out.chunks_exact(self.elements())) {
                ensure!(same(sample, self.sample(i)), "gathered sample {i} has other values");
            }
        }
        Ok(())
    }
}

impl Measured for Opened<'_, Dataset> {
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
