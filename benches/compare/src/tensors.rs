//! Compares and measures the competitors on one data set of tensors.

use crate::data::more::{DatasetEntry, ElementType};
use crate::data::{Dataset, Element};
use crate::measure::Random;
use crate::open_peer::{OpenPeer, prepare};
use crate::peers::{self, Data, Store};
use crate::run::{self, Facts, GATHER_SAMPLES, Measured, Request, Settings, Table, request};
use anyhow::{Result, ensure};
use half::bf16;
use std::hint::black_box;
use std::path::Path;

/// Measures a data set from the user's list.
pub fn run_entry(set: &DatasetEntry, settings: Settings, folder: &Path) -> Result<Table> {
    match set.dtype {
        ElementType::Bf16 => run(&set.load::<bf16>()?, settings, folder),
        ElementType::F32 => run(&set.load::<f32>()?, settings, folder),
        ElementType::F64 => run(&set.load::<f64>()?, settings, folder),
        ElementType::I16 => run(&set.load::<i16>()?, settings, folder),
        ElementType::I32 => run(&set.load::<i32>()?, settings, folder),
        ElementType::I64 => run(&set.load::<i64>()?, settings, folder),
    }
}

pub fn run<T: Element>(data: &Dataset<T>, settings: Settings, folder: &Path) -> Result<Table> {
    let contenders = prepare(data, peers::all(data, folder)?, folder)?;
    let facts = Facts {
        name: data.name.clone(),
        dtype: T::DTYPE.to_string(),
        shape: Some(data.shape.clone()),
        origin: data.origin.clone(),
        samples: data.samples(),
        raw_bytes: data.raw_bytes(),
    };
    let memory = vec![T::default(); GATHER_SAMPLES * data.elements()];
    run::run(facts, contenders, memory, settings, folder)
}

/// Overwrites memory, so that stale values are not mistaken for results.
fn spoil<T: Element>(out: &mut [T]) {
    bytemuck::cast_slice_mut::<_, u8>(out).fill(0xA5);
}

/// Returns whether all bits are the same: float comparison would ignore the sign of zero, and NaNs
/// would never match.
fn same<T: Element>(a: &[T], b: &[T]) -> bool {
    bytemuck::cast_slice::<_, u8>(a) == bytemuck::cast_slice::<_, u8>(b)
}

impl<T: Element> Dataset<T> {
    /// Checks random single samples, each read in every way.
    fn check_samples(&self, store: &mut dyn Store<T>, random: &mut Random) -> Result<()> {
        let mut out = vec![T::default(); self.elements()];
        for i in (0..self.samples()).map(|_| random.below(self.samples())) {
            spoil(&mut out);
            store.sample(i, &mut out)?;
            ensure!(same(&out, self.sample(i)), "sample {i} has wrong values");
            spoil(&mut out);
            if store.position(i, &mut out)? {
                ensure!(same(&out, self.sample(i)), "sample {i}, read by position, has wrong values");
            }
            if let Some(view) = store.view(i)? {
                ensure!(same(view, self.sample(i)), "the view of sample {i} has wrong values");
            }
        }
        Ok(())
    }
}

impl<T: Element> Data for Dataset<T> {
    type Store = dyn Store<T>;

    fn name(&self) -> &str {
        &self.name
    }

    fn check(&self, store: &mut Self::Store) -> Result<()> {
        ensure!(same(store.decode_all()?, &self.values), "decoding everything returns wrong values");
        let mut random = Random::new(u64::MAX);
        self.check_samples(store, &mut random)?;
        let mut out = vec![T::default(); GATHER_SAMPLES * self.elements()];
        for _ in 0..3 {
            let request = request(&mut random, self.samples());
            spoil(&mut out);
            store.gather(&request, &mut out)?;
            for (&i, sample) in request.iter().zip(out.chunks_exact(self.elements())) {
                ensure!(same(sample, self.sample(i)), "gathered sample {i} has wrong values");
            }
        }
        Ok(())
    }
}

impl<T: Element> Measured for OpenPeer<'_, Dataset<T>> {
    /// Memory for the samples of a request.
    type Memory = Vec<T>;

    fn encode(&self, file: &Path) -> Result<()> {
        self.peer.encode(self.data, file)
    }

    fn decode_all(&mut self) -> Result<()> {
        black_box(self.store.decode_all()?);
        Ok(())
    }

    #[inline]
    fn sample(&mut self, i: usize, memory: &mut Vec<T>) -> Result<()> {
        self.store.sample(i, black_box(&mut memory[..self.data.elements()]))
    }

    fn gather(&mut self, request: &Request, memory: &mut Vec<T>) -> Result<()> {
        self.store.gather(request, black_box(memory))
    }

    #[inline]
    fn position(&mut self, i: usize, memory: &mut Vec<T>) -> Result<bool> {
        self.store.position(i, black_box(&mut memory[..self.data.elements()]))
    }

    #[inline]
    fn view(&mut self, i: usize) -> Result<bool> {
        let view = self.store.view(i)?;
        Ok(view.and_then(<[T]>::first).map(|first| black_box(*first)).is_some())
    }
}
