//! Holds the first chunks of a column of text or bytes back, until they are enough to train a
//! dictionary.

use crate::codec::{self, RawChunk};
use crate::{Profile, WriterOptions};

/// The bytes of a column that are held back to train a dictionary with, and those of all columns.
const TRAINING_BYTES: usize = 2 << 20;
const ALL_TRAINING_BYTES: usize = 64 << 20;
/// With fewer bytes for each column, none has a dictionary.
const LEAST_TRAINING_BYTES: usize = 256 << 10;
/// The bytes that one byte of a dictionary is trained with: the more of them, the smaller the
/// dictionary. See the rationale for what other values would cost.
const TRAINING_RATIO: usize = 8;

/// The chunk size of a column with a dictionary, if chunks are not in blocks: the dictionary makes
/// up for the matches that smaller chunks lose, and one text is decoded in half the time.
const CHUNK_BYTES: usize = 32 << 10;

/// The rule by which the columns of a file get dictionaries.
#[derive(Clone, Copy)]
pub(super) struct DictionaryRule {
    training_bytes: usize,
    /// The chunk size of a column that has one.
    pub chunk_bytes: usize,
}

impl DictionaryRule {
    /// Returns the rule for a file of this many columns of text or bytes; `None` if none of them
    /// gets a dictionary.
    pub(super) fn new(options: &WriterOptions, text_columns: usize) -> Option<Self> {
        let training_bytes = ALL_TRAINING_BYTES.checked_div(text_columns)?.min(TRAINING_BYTES);
        let is_due = options.profile.has_dictionaries() && training_bytes >= LEAST_TRAINING_BYTES;
        let chunk_bytes = match options.profile {
            Profile::Balanced if options.resolved_block_bytes().is_none() => {
                options.given_chunk_bytes().unwrap_or(CHUNK_BYTES)
            }
            _ => options.resolved_text_chunk_bytes(),
        };
        is_due.then_some(Self { training_bytes, chunk_bytes })
    }
}

/// The first chunks of a column.
pub(super) struct TrainingTexts {
    rule: DictionaryRule,
    chunks: Vec<RawChunk>,
    bytes: usize,
}

impl TrainingTexts {
    pub(super) fn new(rule: DictionaryRule) -> Self {
        Self { rule, chunks: Vec::new(), bytes: 0 }
    }

    /// Adds a chunk. Returns whether the chunks have enough bytes: also of nulls and lengths, since
    /// they are in memory.
    pub(super) fn add(&mut self, chunk: RawChunk) -> bool {
        self.bytes = self.bytes.saturating_add(chunk.raw_bytes()).saturating_add(size_of::<RawChunk>());
        self.chunks.push(chunk);
        self.bytes >= self.rule.training_bytes
    }

    /// Returns the chunk size of the column once it has a dictionary.
    pub(super) fn chunk_bytes(&self) -> usize {
        self.rule.chunk_bytes
    }

    /// Returns the chunks, and forgets them.
    pub(super) fn take(&mut self) -> Vec<RawChunk> {
        self.bytes = 0;
        std::mem::take(&mut self.chunks)
    }

    /// Trains a dictionary. Returns `None` if it would not save enough.
    pub(super) fn train(&self) -> Option<Vec<u8>> {
        let values: Vec<&[u8]> = self.chunks.iter().map(|chunk| chunk.values.as_slice()).collect();
        let training_bytes = self.rule.training_bytes;
        codec::train(&values, training_bytes, training_bytes / TRAINING_RATIO)
    }
}
