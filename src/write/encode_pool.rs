//! Encodes chunks on several threads. The results are in the order of the chunks.

use super::options::WriterOptions;
use crate::codec::{ChunkEncoder, EncodedChunk, EncodingDictionary, RawChunk};
use crate::format::schema::Layout;
use crate::{Error, Result, threads};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The facts about a column that its encoder needs.
pub(super) struct EncodedColumn {
    pub layout: Layout,
    /// The last table of the column.
    pub dictionary: Option<Arc<EncodingDictionary>>,
}

/// An encoder for each thread, with the memory that it reuses.
pub(super) struct EncodePool {
    encoders: Vec<ChunkEncoder>,
}

impl EncodePool {
    pub(super) fn new(options: &WriterOptions) -> Self {
        let encoder = |_| ChunkEncoder::new(options.profile, options.resolved_block_bytes(), options.check);
        Self { encoders: (0..options.threads.max(1)).map(encoder).collect() }
    }

    /// Returns the number of threads: chunks that can be encoded at once.
    pub(super) fn threads(&self) -> usize {
        self.encoders.len()
    }

    /// Encodes `chunks` of these columns.
    pub(super) fn encode(&mut self, columns: &[EncodedColumn], chunks: &[RawChunk]) -> Result<Vec<EncodedChunk>> {
        match self.encoders.as_mut_slice() {
            [encoder] => chunks.iter().map(|chunk| encode_one(encoder, columns, chunk)).collect(),
            encoders => encode_parallel(encoders, columns, chunks),
        }
    }
}

fn encode_one(encoder: &mut ChunkEncoder, columns: &[EncodedColumn], chunk: &RawChunk) -> Result<EncodedChunk> {
    let unknown = || Error::internal("a chunk belongs to an unknown column");
    let column = columns.get(chunk.column).ok_or_else(unknown)?;
    encoder.encode(&column.layout, column.dictionary.as_ref(), chunk)
}

fn encode_parallel(
    encoders: &mut [ChunkEncoder],
    columns: &[EncodedColumn],
    chunks: &[RawChunk],
) -> Result<Vec<EncodedChunk>> {
    let next = AtomicUsize::new(0);
    let slots: Vec<Mutex<Option<Result<EncodedChunk>>>> = chunks.iter().map(|_| Mutex::new(None)).collect();
    threads::run(encoders.iter_mut().take(chunks.len()).map(|encoder| {
        || {
            let encoder = encoder;
            while let Some((chunk, slot)) = {
                let i = next.fetch_add(1, Ordering::Relaxed);
                chunks.get(i).zip(slots.get(i))
            } {
                let result = encode_one(encoder, columns, chunk);
                *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
            }
        }
    }));
    slots
        .into_iter()
        .map(|slot| {
            let result = slot.into_inner().unwrap_or_else(PoisonError::into_inner);
            result.unwrap_or_else(|| Err(Error::internal("a chunk was not encoded")))
        })
        .collect()
}
