//! Facts about one chunk, for callers: its position and encoding, its blocks, the cost of reading a
//! sample, and the reasons for its size.
//!
//! These facts differ in cost. The position requires only an entry of the index; the blocks also
//! require the block index. An explanation reads and decodes the values, and encodes them again
//! with every encoding of this build.

use super::chunk_bytes::{
    chunk_bytes, chunk_header, fetch_chunk, first_read_bytes, is_in_blocks, read_block_index, reads_blocks,
};
use crate::bytes::le::u64_of;
use crate::bytes::memory;
use crate::codec::{
    Body, Choice, ChunkDecoder, Description, Section, StoredChunk, Trial, Values, encoding_name, values_in_blocks,
};
use crate::format::region::{HEADER_BYTES, HEADER_LEN};
use crate::read::file::column_inner::ColumnInner;
use crate::read::file::state::{ChunkBlockIndex, ChunkLocation, in_chunk};
use crate::{Profile, Result};
use std::ops::Range;

/// The samples of a chunk, its range in the file and its encoding.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChunkInfo {
    /// The samples of the chunk.
    pub samples: Range<u64>,
    /// The range of its body in the file. It starts at a multiple of the file's alignment.
    pub file_range: Range<u64>,
    /// The encoding of its values.
    pub encoding: String,
    /// The decoded size of the chunk in bytes: values, extents and validity.
    pub raw_bytes: u64,
}

pub(in crate::read) fn chunk_info(column: &ColumnInner, location: &ChunkLocation) -> Result<ChunkInfo> {
    let entry = &location.entry;
    let layout = column.layout();
    let raw_bytes = if entry.has_parts() || layout.has_shape() {
        chunk_header(column, entry)?.raw_bytes.into()
    } else {
        // the body contains nothing but samples
        u64::from(entry.sample_count).saturating_mul(u64_of(layout.inner_bytes))
    };
    let start = entry.offset.saturating_add(HEADER_LEN);
    Ok(ChunkInfo {
        samples: entry.samples(),
        file_range: start..start.saturating_add(entry.stored_bytes.into()),
        encoding: encoding_name(entry.encoding),
        raw_bytes,
    })
}

/// The blocks of a chunk whose values are decoded and verified block by block.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChunkBlocks {
    /// The range of the file before the first block: nulls, extents, lists, and the block index
    /// itself. If the file is read with positional reads (`pread`), this range is read only once.
    pub block_index: Range<u64>,
    /// At least one block, in file order, without gaps.
    pub blocks: Vec<BlockInfo>,
}

/// The samples of a block, its range in the file and its decoded size.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BlockInfo {
    /// The samples with elements in the block. A long sample spans several blocks.
    pub samples: Range<u64>,
    /// Its range in the file.
    pub file_range: Range<u64>,
    /// The decoded size of the block in bytes.
    pub raw_bytes: u64,
}

/// How many bytes of a chunk are fetched for one of its samples if the file is read with positional
/// reads and nothing is cached. Index pages are not counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ColdRead {
    /// The number of bytes that are read once for many samples: header, nulls, extents and block
    /// index. 0 if the chunk is read whole.
    pub prefix_bytes: u64,
    /// The average number of bytes that are read for each sample: its blocks, or the whole chunk.
    pub sample_bytes: u64,
}

impl ColdRead {
    /// Returns the average number of bytes that are read for the first sample.
    pub fn bytes(&self) -> u64 {
        self.prefix_bytes.saturating_add(self.sample_bytes)
    }
}

impl ChunkBlocks {
    /// Returns the stored size in bytes of the blocks that a sample needs, summed over all samples.
    fn bytes_of_samples(&self) -> u128 {
        let of_block = |block: &BlockInfo| u128::from(length(&block.file_range)) * u128::from(length(&block.samples));
        self.blocks.iter().map(of_block).sum() // no overflow: below 2^96
    }
}

fn length(range: &Range<u64>) -> u64 {
    range.end.saturating_sub(range.start)
}

/// Returns the blocks of a chunk; `None` if its values are not divided into blocks.
pub(in crate::read) fn chunk_blocks(column: &ColumnInner, location: &ChunkLocation) -> Result<Option<ChunkBlocks>> {
    if !is_in_blocks(&location.entry)? {
        return Ok(None);
    }
    let block_index = read_block_index(column, location);
    block_index
        .and_then(|block_index| blocks_in(column, &block_index))
        .map(Some)
        .map_err(|error| in_chunk(error, location))
}

fn blocks_in(column: &ColumnInner, block_index: &ChunkBlockIndex) -> Result<ChunkBlocks> {
    let body = Body::whole(block_index.body());
    let mut decoder = ChunkDecoder::new();
    decoder.open(&StoredChunk { layout: column.layout(), tables: column, header: &block_index.header, body })?;
    let start = block_index.location.entry.offset.saturating_add(HEADER_LEN);
    let first_block = start.saturating_add(u64_of(block_index.body().len()));
    let part = values_in_blocks(column.layout(), &block_index.header, body)?;
    let mut blocks = memory::with_capacity(part.block_index.block_count())?;
    for entry in part.block_index.blocks() {
        let entry = entry?;
        // `stored` is relative to the start of the block index
        let offset = |stored: usize| first_block.saturating_add(u64_of(stored.saturating_sub(part.block_index.bytes)));
        blocks.push(BlockInfo {
            samples: 0..0,
            file_range: offset(entry.stored.start)..offset(entry.stored.end),
            raw_bytes: u64_of(entry.elements.len()).saturating_mul(u64_of(column.layout().element_bytes)),
        });
    }
    let (content, bytes) = (decoder.content(body), decoder.encoded_bytes().unwrap_or(0));
    for (i, sample) in (0..content.sample_count).zip(block_index.location.entry.samples()) {
        // `i` is below the chunk's sample count
        let values = content.range_within(column.layout(), &(i..i + 1), bytes)?;
        if values.is_empty() {
            continue;
        }
        for block in blocks.get_mut(part.blocks_at(&values)).unwrap_or(&mut []) {
            let first = if block.samples.is_empty() { sample } else { block.samples.start };
            block.samples = first..sample.saturating_add(1);
        }
    }
    Ok(ChunkBlocks { block_index: start..first_block, blocks })
}

/// Returns the cost of reading a sample from a chunk with these blocks.
pub(in crate::read) fn cold_read(
    column: &ColumnInner,
    location: &ChunkLocation,
    blocks: Option<&ChunkBlocks>,
) -> Result<ColdRead> {
    let whole = u64_of(chunk_bytes(&location.entry)?);
    let samples = u64::from(location.entry.sample_count);
    // a chunk of one sample is read whole
    let blocks = blocks.filter(|_| samples > 1 && reads_blocks(column, &location.entry));
    let Some(blocks) = blocks else { return Ok(ColdRead { prefix_bytes: 0, sample_bytes: whole }) };
    let block_index = usize::try_from(length(&blocks.block_index)).unwrap_or(usize::MAX).saturating_add(HEADER_BYTES);
    let sample_bytes = blocks.bytes_of_samples().div_ceil(samples.into()); // no division by zero: at least 2 samples
    Ok(ColdRead {
        prefix_bytes: u64_of(block_index.max(first_read_bytes(&location.entry))),
        sample_bytes: u64::try_from(sample_bytes).unwrap_or(u64::MAX),
    })
}

/// The composition of a chunk, and its size in other encodings; see
/// [`Column::explain`](crate::Column::explain).
///
/// For a nullable, ragged or nested column, this describes only the values.
/// [`Explanation::chunk_bytes`] and [`ChunkInfo::raw_bytes`] also include nulls, extents and lists.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Explanation {
    /// The number of the chunk in its column, counted from 0.
    pub chunk: u64,
    /// The samples of the chunk, its range in the file, and its encoding.
    pub info: ChunkInfo,
    /// The number of elements in all samples of the chunk. For text and bytes, an element is a
    /// byte; for complex numbers, it is the real or the imaginary half.
    pub element_count: u64,
    /// The blocks of the values; `None` if the values are not divided into blocks.
    pub blocks: Option<ChunkBlocks>,
    /// The cost of reading a random sample of the chunk if nothing is cached.
    pub cold_read: ColdRead,
    /// The length of the decoded values in bytes.
    pub raw_bytes: u64,
    /// The length of the stored values in bytes.
    pub stored_bytes: u64,
    /// The transform applied to the elements before they are coded, such as
    /// `lorenzo of floats, stride 128, restart 12928` (chapter 5.6 of the specification). `None`
    /// for encodings without transforms.
    pub transform: Option<String>,
    /// The sections of the stored values, in file order. Their lengths add up to
    /// [`Explanation::stored_bytes`].
    pub sections: Vec<Section>,
    /// The result of each encoding of this build for the values, smallest first.
    pub trials: Vec<Trial>,
    /// The choice of each profile of this build for the values. If a different release wrote the
    /// file, the chunk can differ from all of them.
    pub choices: Vec<Choice>,
}

impl Explanation {
    /// Returns the length of the chunk's body in bytes: values, extents, lists and validity.
    pub fn chunk_bytes(&self) -> u64 {
        self.info.file_range.end.saturating_sub(self.info.file_range.start)
    }

    /// Returns [`Explanation::cold_read`] divided by the average stored size of a sample; `None` if
    /// samples take no bytes.
    pub fn read_amplification(&self) -> Option<f64> {
        let samples = self.info.samples.end.saturating_sub(self.info.samples.start);
        let sample_bytes = self.chunk_bytes() as f64 / samples as f64; // rounding is acceptable
        (sample_bytes > 0.0).then(|| self.cold_read.bytes() as f64 / sample_bytes)
    }

    /// Converts `stored_bytes`, the size of a section or of a trial, to bits per element. Returns
    /// `None` if the values have no elements.
    pub fn bits_per_element(&self, stored_bytes: u64) -> Option<f64> {
        // rounding is acceptable
        (self.element_count > 0).then(|| stored_bytes as f64 * 8.0 / self.element_count as f64)
    }
}

/// Explains a chunk.
pub(in crate::read) fn explain(column: &ColumnInner, location: &ChunkLocation) -> Result<Explanation> {
    with_values(column, location, |values| {
        let Description { transform, sections } = values.description()?;
        let trials = values.trials()?;
        let blocks = chunk_blocks(column, location)?;
        Ok(Explanation {
            chunk: location.chunk,
            info: chunk_info(column, location)?,
            element_count: u64_of(values.element_count()),
            raw_bytes: u64_of(values.raw.len()),
            stored_bytes: u64_of(values.stored.len()),
            transform,
            sections,
            cold_read: cold_read(column, location, blocks.as_ref())?,
            blocks,
            choices: values.choices(&trials)?,
            trials,
        })
    })
}

/// Returns how much more the encoding that a profile chooses for a chunk costs than the cheapest
/// one that the profile allows, as a fraction; see [`Column::regret`](crate::Column::regret).
pub(in crate::read) fn regret(column: &ColumnInner, location: &ChunkLocation, profile: Profile) -> Result<f64> {
    profile.check_built()?;
    with_values(column, location, |values| values.regret(profile))
}

/// Reads and decodes the values of a chunk.
fn with_values<T>(
    column: &ColumnInner,
    location: &ChunkLocation,
    then: impl FnOnce(&Values<'_>) -> Result<T>,
) -> Result<T> {
    let entry = &location.entry;
    let mut buffer = Vec::new();
    let (region, header, body) = fetch_chunk(column, entry, &mut buffer)?;
    region.check_body(body)?;
    let values = Values::of_chunk(&StoredChunk {
        layout: column.layout(),
        tables: column,
        header: &header,
        body: Body::whole(body),
    });
    then(&values.map_err(|error| error.with_offset(entry.offset).with_samples(entry.samples()))?)
}
