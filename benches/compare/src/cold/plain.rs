//! Plain reads and maps of a raw file, without a store: the bound for random and sequential reads.

use super::files::Files;
use anyhow::Result;
use memmap2::{Advice as MapAdvice, Mmap};
use rustix::fs::{Advice as FileAdvice, fadvise};
use std::fs::File;
use std::hint::black_box;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use tensilo_data::{EpochOrder, Order};

/// The advice to the operating system about a map.
#[derive(Clone, Copy)]
pub enum Advice {
    Normal,
    Random,
}

/// Threads that read all samples once, in a shuffled order.
#[derive(Clone, Copy)]
pub struct Plain<'a> {
    pub files: &'a Files,
    pub threads: usize,
    pub time: Duration,
}

impl Plain<'_> {
    /// Reads each sample with one call, by position.
    pub fn reads(self) -> Result<f64> {
        let file = File::open(&self.files.raw)?;
        fadvise(&file, 0, None, FileAdvice::Random)?;
        self.shuffled(|offset, out| Ok(file.read_exact_at(out, offset)?))
    }

    /// Copies each sample from a map.
    pub fn map(self, advice: Advice) -> Result<f64> {
        // SAFETY: the file is in a temporary folder of this process, which does not change it.
        let map = unsafe { Mmap::map(&File::open(&self.files.raw)?)? };
        if let Advice::Random = advice {
            map.advise(MapAdvice::Random)?;
        }
        self.shuffled(|offset, out| {
            let start = offset as usize;
            out.copy_from_slice(&map[start..start + out.len()]);
            Ok(())
        })
    }

    /// Reads the file from its start, 1 MiB at a time, on one thread.
    pub fn sequential(self) -> Result<f64> {
        let (file, mut out) = (File::open(&self.files.raw)?, vec![0; 1 << 20]);
        let bytes = (self.files.samples * self.files.sample_bytes) as u64;
        let (mut offset, begun) = (0, Instant::now());
        while begun.elapsed() < self.time && offset + (1 << 20) <= bytes {
            file.read_exact_at(black_box(&mut out), offset)?;
            offset += 1 << 20;
        }
        Ok(offset as f64 / self.files.sample_bytes as f64 / begun.elapsed().as_secs_f64())
    }

    /// Calls `read` with offsets in shuffled order, on all threads. Returns samples per second.
    fn shuffled(self, read: impl Fn(u64, &mut [u8]) -> Result<()> + Sync) -> Result<f64> {
        let (next, samples) = (AtomicU64::new(0), self.files.samples as u64);
        let order = EpochOrder::new(Order::Shuffled, samples, 1, 0);
        let begun = Instant::now();
        let work = || -> Result<()> {
            let mut out = vec![0; self.files.sample_bytes];
            while begun.elapsed() < self.time {
                let Some(sample) = order.sample_at(next.fetch_add(1, Ordering::Relaxed)) else { break };
                read(sample * out.len() as u64, black_box(&mut out))?;
            }
            Ok(())
        };
        thread::scope(|scope| {
            let running: Vec<_> = (0..self.threads).map(|_| scope.spawn(work)).collect();
            running.into_iter().try_for_each(|thread| thread.join().expect("no panic"))
        })?;
        Ok(next.load(Ordering::Relaxed).min(samples) as f64 / begun.elapsed().as_secs_f64())
    }
}
