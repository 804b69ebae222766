//! Explains how a chunk came to be as large as it is.

use crate::codec::{Anatomy, Body, Choice, Section, StoredChunk, Trial, Values};
use crate::le::u64_of;
use crate::read::chunk::chunk_blocks::{ChunkBlocks, ColdRead};
use crate::read::chunk::chunk_info::ChunkInfo;
use crate::read::file::opened_column::OpenedColumn;
use crate::read::locate::chunk_location::ChunkLocation;
use crate::{Profile, Result};

/// The composition of a chunk, and its size in other encodings: see
/// [`Column::explain`](crate::Column::explain).
///
/// For a nullable, ragged or nested column, this describes the values alone. Only
/// [`Explanation::chunk_bytes`] and [`ChunkInfo::raw_bytes`] include nulls, extents and lists.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Explanation {
    /// The number of the chunk in its column, counted from 0.
    pub chunk: u64,
    /// The samples of the chunk, its bytes in the file, and its encoding.
    pub info: ChunkInfo,
    /// Elements of all its samples; of text and bytes, bytes, and of complex numbers, their halves.
    pub element_count: u64,
    /// The blocks of the values; `None` if they are not in blocks.
    pub blocks: Option<ChunkBlocks>,
    /// The bytes that a random sample of the chunk costs, if nothing is in a cache.
    pub cold_read: ColdRead,
    /// The length of the decoded values in bytes.
    pub raw_bytes: u64,
    /// The length of the stored values in bytes.
    pub stored_bytes: u64,
    /// The transform of the elements before they are coded, such as `lorenzo of floats, stride 128,
    /// restart 12928` (chapter 5.6 of the specification). `None` in encodings that have no
    /// transforms.
    pub transform: Option<String>,
    /// The sections of the stored values, in the order of the file. Their lengths add up to
    /// [`Explanation::stored_bytes`].
    pub sections: Vec<Section>,
    /// The result of each encoding of this build for the values, the smallest first.
    pub trials: Vec<Trial>,
    /// The choice of each profile of this build for the values. If another release wrote the file,
    /// it may contain none of them.
    pub choices: Vec<Choice>,
}

impl Explanation {
    /// Returns the length of the chunk's body in bytes: values, extents, lists and validity.
    pub fn chunk_bytes(&self) -> u64 {
        self.info.file_range.end.saturating_sub(self.info.file_range.start)
    }

    /// Returns [`Explanation::cold_read`] divided by the bytes that a sample takes in the file, on
    /// average; `None` if samples take no bytes.
    pub fn read_amplification(&self) -> Option<f64> {
        let samples = self.info.samples.end.saturating_sub(self.info.samples.start);
        let sample_bytes = self.chunk_bytes() as f64 / samples as f64; // rounded anyway
        (sample_bytes > 0.0).then(|| self.cold_read.bytes() as f64 / sample_bytes)
    }

    /// Returns the bits for each element of a section or a trial of `stored_bytes`; `None` if the
    /// values have no elements.
    pub fn bits_per_element(&self, stored_bytes: u64) -> Option<f64> {
        // rounded anyway
        (self.element_count > 0).then(|| stored_bytes as f64 * 8.0 / self.element_count as f64)
    }
}

/// Explains a chunk.
pub(in crate::read) fn explain(column: &OpenedColumn, location: &ChunkLocation) -> Result<Explanation> {
    with_values(column, location, |values| {
        let Anatomy { transform, sections } = values.anatomy()?;
        let trials = values.trials()?;
        let blocks = column.chunk_blocks(location)?;
        Ok(Explanation {
            chunk: location.chunk,
            info: column.chunk_info(location)?,
            element_count: u64_of(values.element_count()),
            raw_bytes: u64_of(values.raw.len()),
            stored_bytes: u64_of(values.stored.len()),
            transform,
            sections,
            cold_read: column.cold_read(location, blocks.as_ref())?,
            blocks,
            choices: values.choices(&trials)?,
            trials,
        })
    })
}

/// Returns the regret of a profile for a chunk: see [`Column::regret`](crate::Column::regret).
pub(in crate::read) fn regret(column: &OpenedColumn, location: &ChunkLocation, profile: Profile) -> Result<f64> {
    profile.check_built()?;
    with_values(column, location, |values| values.regret(profile))
}

/// Reads and decodes the values of a chunk.
fn with_values<T>(
    column: &OpenedColumn,
    location: &ChunkLocation,
    then: impl FnOnce(&Values<'_>) -> Result<T>,
) -> Result<T> {
    let entry = &location.entry;
    let mut buffer = Vec::new();
    let (region, head, body) = column.fetch_chunk(entry, &mut buffer)?;
    region.check_body(body)?;
    let values = Values::of_chunk(&StoredChunk {
        layout: column.layout(),
        tables: column,
        head: &head,
        body: Body::whole(body),
    });
    then(&values.map_err(|error| error.with_offset(entry.offset).with_samples(entry.samples()))?)
}
