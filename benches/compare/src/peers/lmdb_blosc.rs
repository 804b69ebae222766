//! The recipe that tensilo replaces: an LMDB database with one value per sample, compressed by
//! Blosc (bit-shuffle and Zstandard, level 9).
//!
//! Keys are sample indices in big-endian bytes, appended in order, so that pages are full. One read
//! transaction stays open; values are decompressed directly from the map. The compressor is
//! c-blosc2, whose chunks have a header of 32 bytes. A value that is not small takes whole pages of
//! 4 KiB, which lowers the ratio unless samples are large.

use super::{Family, Peer, Store, blosc2, chunked::Codec, chunked::Coder};
use crate::data::{Dataset, Element};
use anyhow::{Context, Result, ensure};
use heed::types::Bytes;
use heed::{Database, Env, EnvFlags, EnvOpenOptions, PutFlags, RoTxn, WithoutTls};
use std::path::Path;

pub struct LmdbBlosc;

const LEVEL: blosc2::Level = blosc2::Level::Nine;

pub type Samples = Database<Bytes, Bytes>;

/// The flags for writing: nothing is synced, because no competitor waits for the disk.
pub const WRITE: EnvFlags = EnvFlags::NO_SYNC.union(EnvFlags::NO_META_SYNC);

pub fn key(i: usize) -> [u8; 4] {
    (i as u32).to_be_bytes() // far fewer than 2^32
}

fn coder<T: Element>() -> Result<Box<dyn Coder>> {
    // the samples are the chunks
    blosc2::Blosc2 { chunk_bytes: 0, level: LEVEL }.coder(T::DTYPE, &[])
}

/// Returns the version of LMDB, such as `0.9.70`.
pub fn version() -> String {
    let lmdb = heed::lmdb_version();
    format!("{}.{}.{}", lmdb.major, lmdb.minor, lmdb.patch)
}

/// Opens a database in one file, without a lock file, with space for `samples` values.
pub fn environment(raw_bytes: usize, samples: usize, file: &Path, flags: EnvFlags) -> Result<Env<WithoutTls>> {
    let mut options = EnvOpenOptions::new().read_txn_without_tls();
    // large values take whole pages; the map is only address space, not allocated memory
    options.map_size((2 * raw_bytes + 8192 * samples).next_multiple_of(1 << 20));
    // SAFETY: no other process or environment has the file open while it is written, so no lock is
    // needed.
    unsafe {
        options.flags(flags | EnvFlags::NO_SUB_DIR | EnvFlags::NO_LOCK);
        Ok(options.open(file)?)
    }
}

impl<T: Element> Peer<Dataset<T>> for LmdbBlosc {
    fn name(&self) -> String {
        "LMDB + Blosc".to_owned()
    }

    fn about(&self) -> String {
        let version = version();
        format!("LMDB {version}; each sample by {}", blosc2::settings(LEVEL))
    }

    fn family(&self) -> Family {
        Family::Recipe
    }

    fn encode(&self, data: &Dataset<T>, file: &Path) -> Result<()> {
        let env = environment(data.raw_bytes(), data.samples(), file, WRITE)?;
        let mut coder = coder::<T>()?;
        let mut transaction = env.write_txn()?;
        let samples: Samples = env.create_database(&mut transaction, None)?;
        let mut stored = Vec::new();
        for (i, sample) in data.values.chunks_exact(data.elements()).enumerate() {
            stored.clear();
            coder.encode(bytemuck::cast_slice(sample), &mut stored)?;
            samples.put_with_flags(&mut transaction, PutFlags::APPEND, &key(i), &stored)?;
        }
        Ok(transaction.commit()?)
    }

    fn open(&self, data: &Dataset<T>, file: &Path) -> Result<Box<dyn Store<T>>> {
        store(&open(data, file)?, data)
    }
}

/// Opens the file for any number of threads.
pub fn open<T: Element>(data: &Dataset<T>, file: &Path) -> Result<Env<WithoutTls>> {
    environment(data.raw_bytes(), data.samples(), file, EnvFlags::READ_ONLY)
}

/// Starts a read transaction for one thread.
pub fn store<T: Element>(env: &Env<WithoutTls>, data: &Dataset<T>) -> Result<Box<dyn Store<T>>> {
    let transaction = env.clone().static_read_txn()?;
    let samples: Samples = env.open_database(&transaction, None)?.context("the database is missing")?;
    let out = vec![T::default(); data.values.len()];
    Ok(Box::new(Open { transaction, samples, coder: coder::<T>()?, elements: data.elements(), out }))
}

struct Open<T> {
    transaction: RoTxn<'static, WithoutTls>,
    samples: Samples,
    coder: Box<dyn Coder>,
    elements: usize,
    out: Vec<T>,
}

impl<T: Element> Store<T> for Open<T> {
    fn decode_all(&mut self) -> Result<&[T]> {
        let mut slots = self.out.chunks_exact_mut(self.elements);
        for entry in self.samples.iter(&self.transaction)? {
            let slot = slots.next().context("too many samples")?;
            self.coder.decode(entry?.1, bytemuck::cast_slice_mut(slot))?;
        }
        ensure!(slots.len() == 0, "too few samples");
        Ok(&self.out)
    }

    fn sample(&mut self, i: usize, out: &mut [T]) -> Result<()> {
        let stored = self.samples.get(&self.transaction, &key(i))?.context("no such sample")?;
        self.coder.decode(stored, bytemuck::cast_slice_mut(out))
    }
}
