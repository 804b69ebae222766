//! Chapter 7.1: the facts that a footer records about each column.
//!
//! They describe a column to a reader that has not read the index: its size, the number of its
//! nulls and chunks, the encodings of the chunks, the errors of its cast, and its runs. Each footer
//! covers its own commit and all earlier ones, so opening a file requires only the last footer, not
//! a chain of footers.
//!
//! Counts in a file are not trusted. The memory for parsing is bounded by the number of bytes that
//! remain to be parsed. The runs must cover all samples and chunks without gaps, because
//! lookups rely on this.

use super::index::ChunkRun;
use crate::bytes::le::{Fields, structure};
use crate::bytes::memory;
use crate::element::cast::CastFacts;
use crate::{Error, Result, limits};

structure! {
    /// Chapter 7.1: the fixed fields of the column facts.
    mod facts: 40 bytes {
        0 => RAW_BYTES: u64,
        8 => STORED_BYTES: u64,
        16 => NULL_COUNT: u64,
        24 => CHUNK_COUNT: u64,
        32 => RUN_COUNT: u32,
        36 => ENCODING_COUNT: u16,
        38 => RESERVED: u16,
    }
}

structure! {
    /// Chapter 7.1: an encoding.
    mod encoding_entry: 16 bytes {
        0 => ID: u16,
        2 => RESERVED: [u8; 6],
        8 => CHUNK_COUNT: u64,
    }
}

structure! {
    /// Chapter 7.1: a run.
    mod run_entry: 40 bytes {
        0 => OFFSET: u64,
        8 => FIRST_SAMPLE: u64,
        16 => SAMPLE_COUNT: u64,
        24 => CHUNK_COUNT: u64,
        32 => SAMPLES_PER_CHUNK: u32,
        36 => RESERVED: u32,
    }
}

structure! {
    /// Chapter 7.6: the facts of a cast.
    mod cast_entry: 32 bytes {
        0 => MAX_ABS_ERROR: f64,
        8 => MAX_REL_ERROR: f64,
        16 => TO_INFINITE: u64,
        24 => TO_SUBNORMAL: u64,
    }
}

/// The facts that a footer states about one column.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ColumnRecord {
    pub raw_bytes: u64,
    pub stored_bytes: u64,
    pub null_count: u64,
    pub chunk_count: u64,
    /// Pairs of an encoding id and a number of chunks, in ascending order of the ids.
    pub encodings: Vec<(u16, u64)>,
    pub runs: Vec<ChunkRun>,
    pub cast: Option<CastFacts>,
}

impl ColumnRecord {
    /// Appends the facts to the body of a footer.
    pub(super) fn write(&self, body: &mut Vec<u8>) {
        // both counts are below 2^16 in a valid file, because the number of commits is limited and
        // only a few ids are assigned
        let run_count = u32::try_from(self.runs.len()).unwrap_or(u32::MAX);
        let encoding_count = u16::try_from(self.encodings.len()).unwrap_or(u16::MAX);
        let mut bytes = [0; facts::SIZE];
        facts::RAW_BYTES.put(&mut bytes, self.raw_bytes);
        facts::STORED_BYTES.put(&mut bytes, self.stored_bytes);
        facts::NULL_COUNT.put(&mut bytes, self.null_count);
        facts::CHUNK_COUNT.put(&mut bytes, self.chunk_count);
        facts::RUN_COUNT.put(&mut bytes, run_count);
        facts::ENCODING_COUNT.put(&mut bytes, encoding_count);
        body.extend(bytes);
        body.extend(self.encodings.iter().flat_map(|&(id, chunk_count)| encoding_to_bytes(id, chunk_count)));
        body.extend(self.runs.iter().flat_map(run_to_bytes));
        body.extend(self.cast.iter().flat_map(cast_to_bytes));
    }

    /// Parses the facts about a column. Checks. Also checks for the order of encodings
    /// and for the errors of a cast.
    pub(super) fn parse(fields: &mut Fields, has_cast: bool) -> Result<Self> {
        let bytes = fields.array().ok_or_else(short)?;
        let run_count = usize::try_from(facts::RUN_COUNT.get(&bytes)).map_err(|_| short())?;
        let encoding_count = usize::from(facts::ENCODING_COUNT.get(&bytes));
        if facts::RESERVED.get(&bytes) != 0 {
            return Err(malformed("reserved bytes are not zero"));
        }
        if run_count > limits::CHUNK_RUNS {
            return Err(malformed("too many runs"));
        }
        // bounded by the number of encodings that the remaining bytes can describe
        let mut encodings = memory::with_capacity(encoding_count.min(fields.remaining() / encoding_entry::SIZE))?;
        for _ in 0..encoding_count {
            encodings.push(parse_encoding(&fields.array().ok_or_else(short)?)?);
        }
        if !encodings.is_sorted_by(|a, b| a.0 < b.0) {
            return Err(Error::corrupt("R-7.4", "the encodings in the footer are not in ascending order"));
        }
        let mut runs = memory::with_capacity(run_count.min(fields.remaining() / run_entry::SIZE))?;
        for _ in 0..run_count {
            runs.push(parse_run(&fields.array().ok_or_else(short)?)?);
        }
        let cast = if has_cast { Some(parse_cast(&fields.array().ok_or_else(short)?)?) } else { None };
        Ok(Self {
            raw_bytes: facts::RAW_BYTES.get(&bytes),
            stored_bytes: facts::STORED_BYTES.get(&bytes),
            null_count: facts::NULL_COUNT.get(&bytes),
            chunk_count: facts::CHUNK_COUNT.get(&bytes),
            encodings,
            runs,
            cast,
        })
    }

    /// Adds `chunks` to the number of chunks whose values use an encoding. Adds the encoding to the
    /// list if it is not there yet.
    pub(crate) fn count_encoding(&mut self, id: u16, chunks: u64) {
        match self.encodings.binary_search_by_key(&id, |&(id, _)| id) {
            Ok(at) => {
                if let Some((_, count)) = self.encodings.get_mut(at) {
                    *count = count.saturating_add(chunks);
                }
            }
            Err(at) => self.encodings.insert(at, (id, chunks)),
        }
    }

    /// Returns the number of chunks recorded for an encoding; `None` if the encoding is not in the
    /// list.
    pub(crate) fn encoding(&self, id: u16) -> Option<u64> {
        self.encodings.iter().find(|&&(found, _)| found == id).map(|&(_, chunks)| chunks)
    }

    /// Checks for this column: the runs cover all samples and chunks without gaps, and end
    /// before the footer.
    pub(super) fn check(&self, sample_count: u64, footer_offset: u64) -> Result<()> {
        let (mut samples, mut chunks) = (0_u64, 0_u64);
        for run in &self.runs {
            let per_chunk = u64::from(run.samples_per_chunk);
            let uniform = per_chunk == 0 || run.chunk_count == run.sample_count.div_ceil(per_chunk);
            if run.first_sample != samples
                || run.chunk_count == 0
                || run.sample_count < run.chunk_count
                || run.sample_count.div_ceil(u64::from(limits::CHUNK_SAMPLES)) > run.chunk_count
                || run.samples_per_chunk > limits::CHUNK_SAMPLES
                || run.end() > footer_offset
                || !uniform
            {
                let (count, chunks) = (run.sample_count, run.chunk_count);
                let message = format!(
                    "a run of the index is invalid: it starts with sample {}, expected {samples}; it has {count} samples \
                     in {chunks} chunks, {} in each (0 if they differ), and ends at offset {}; the footer starts at \
                     {footer_offset}",
                    run.first_sample,
                    run.samples_per_chunk,
                    run.end(),
                );
                return Err(Error::corrupt("R-7.3", message));
            }
            samples = run.end_sample();
            chunks = chunks.saturating_add(run.chunk_count);
        }
        if samples != sample_count || chunks != self.chunk_count {
            let message = format!(
                "the index covers {samples} samples in {chunks} chunks, but the footer states {sample_count} in {}",
                self.chunk_count
            );
            return Err(Error::corrupt("R-7.3", message));
        }
        Ok(())
    }
}

/// Returns the error for a footer that ends too early.
pub(super) fn short() -> Error {
    Error::corrupt("R-7.2", "the footer ends within a field")
}

/// Returns the error for a footer that breaks.
pub(super) fn malformed(what: &str) -> Error {
    Error::corrupt("R-7.2", format!("the footer is malformed: {what}"))
}

fn encoding_to_bytes(id: u16, chunk_count: u64) -> [u8; encoding_entry::SIZE] {
    let mut bytes = [0; encoding_entry::SIZE];
    encoding_entry::ID.put(&mut bytes, id);
    encoding_entry::CHUNK_COUNT.put(&mut bytes, chunk_count);
    bytes
}

fn parse_encoding(bytes: &[u8; encoding_entry::SIZE]) -> Result<(u16, u64)> {
    if encoding_entry::RESERVED.get(bytes) != [0; 6] {
        return Err(malformed("reserved bytes are not zero"));
    }
    Ok((encoding_entry::ID.get(bytes), encoding_entry::CHUNK_COUNT.get(bytes)))
}

fn run_to_bytes(run: &ChunkRun) -> [u8; run_entry::SIZE] {
    let mut bytes = [0; run_entry::SIZE];
    run_entry::OFFSET.put(&mut bytes, run.offset);
    run_entry::FIRST_SAMPLE.put(&mut bytes, run.first_sample);
    run_entry::SAMPLE_COUNT.put(&mut bytes, run.sample_count);
    run_entry::CHUNK_COUNT.put(&mut bytes, run.chunk_count);
    run_entry::SAMPLES_PER_CHUNK.put(&mut bytes, run.samples_per_chunk);
    bytes
}

fn parse_run(bytes: &[u8; run_entry::SIZE]) -> Result<ChunkRun> {
    if run_entry::RESERVED.get(bytes) != 0 {
        return Err(malformed("reserved bytes are not zero"));
    }
    Ok(ChunkRun {
        offset: run_entry::OFFSET.get(bytes),
        first_sample: run_entry::FIRST_SAMPLE.get(bytes),
        sample_count: run_entry::SAMPLE_COUNT.get(bytes),
        chunk_count: run_entry::CHUNK_COUNT.get(bytes),
        samples_per_chunk: run_entry::SAMPLES_PER_CHUNK.get(bytes),
    })
}

fn cast_to_bytes(cast: &CastFacts) -> [u8; cast_entry::SIZE] {
    let mut bytes = [0; cast_entry::SIZE];
    cast_entry::MAX_ABS_ERROR.put(&mut bytes, cast.max_abs_error);
    cast_entry::MAX_REL_ERROR.put(&mut bytes, cast.max_rel_error);
    cast_entry::TO_INFINITE.put(&mut bytes, cast.to_infinite);
    cast_entry::TO_SUBNORMAL.put(&mut bytes, cast.to_subnormal);
    bytes
}

fn parse_cast(bytes: &[u8; cast_entry::SIZE]) -> Result<CastFacts> {
    let cast = CastFacts {
        max_abs_error: cast_entry::MAX_ABS_ERROR.get(bytes),
        max_rel_error: cast_entry::MAX_REL_ERROR.get(bytes),
        to_infinite: cast_entry::TO_INFINITE.get(bytes),
        to_subnormal: cast_entry::TO_SUBNORMAL.get(bytes),
    };
    let errors = [cast.max_abs_error, cast.max_rel_error];
    if errors.iter().any(|error| error.is_nan() || error.is_sign_negative()) {
        return Err(Error::corrupt("R-7.4", "an error of a cast is negative or NaN"));
    }
    Ok(cast)
}
