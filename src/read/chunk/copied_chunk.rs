//! Copies chunks, or some of their samples, to another file.
//!
//! A chunk is copied in its stored form if all of its samples are needed, and decoded otherwise. In
//! both cases, its checksum is verified each time, whatever the reader's policy. The copy gets a
//! new checksum, which would otherwise vouch for bytes that have changed since they were last
//! verified. If a chunk of a salvaged file is damaged, only its intact blocks are decoded. Samples
//! are passed to the encoder in the byte order of the file, and nulls can be inserted between them.

use crate::batch::ListBuffer;
use crate::bytes::le::{self, u64_of};
use crate::bytes::memory;
use crate::codec::{Body, ChunkDecoder, EncodedChunk, RawChunk, StoredChunk, decode_intact};
use crate::format::content::{Content, validity_bytes};
use crate::format::region::RegionHeader;
use crate::format::schema::Layout;
use crate::read::buffer::ColumnBuffer;
use crate::read::chunk::chunk_bytes::fetch_chunk;
use crate::read::decode::staging::{chunk_parts, push_sample, stage_null, stage_sample};
use crate::read::file::column_inner::ColumnInner;
use crate::{Error, Result};

/// Reusable memory for chunks.
pub(crate) struct ChunkScratch {
    decoder: ChunkDecoder,
    buffer: Vec<u8>,
}

impl ChunkScratch {
    pub(crate) fn new() -> Self {
        Self { decoder: ChunkDecoder::new(), buffer: Vec::new() }
    }
}

/// Reads and verifies chunk number `chunk` in its stored form, and counts its null samples.
pub(in crate::read) fn stored_chunk(
    column: &ColumnInner,
    chunk: u64,
    scratch: &mut ChunkScratch,
) -> Result<(EncodedChunk, u64)> {
    with_chunk(column, chunk, scratch, |region, stored, decoder| {
        let body = stored.body.start();
        // verified each time, because the new checksum of the copy would otherwise vouch for
        // changed bytes
        region.check_body(body)?;
        let side = decoder.side_facts(stored)?;
        let chunk =
            EncodedChunk { header: *stored.header, body: memory::copied(body)?, side_encodings: side.encodings };
        Ok((chunk, side.null_count))
    })
}

/// Reads samples of chunk number `chunk`, by their positions in it, into a new chunk that starts at
/// `first_sample`. `None` becomes a null. The samples must not be lost.
pub(in crate::read) fn select_from_chunk(
    column: &ColumnInner,
    chunk: u64,
    samples: &[Option<usize>],
    first_sample: u64,
    scratch: &mut ChunkScratch,
) -> Result<RawChunk> {
    with_chunk(column, chunk, scratch, |region, stored, decoder| {
        let salvaged_chunks = column.index().salvaged_chunks.as_ref();
        let lost = salvaged_chunks
            .map_or(Vec::new(), |salvaged_chunks| salvaged_chunks.lost().positions_in(&stored.header.entry.samples()));
        let intact;
        let content = if lost.is_empty() {
            region.check_body(stored.body.start())?; // each time, as in `stored_chunk`
            decoder.load(stored)?;
            decoder.content(stored.body)
        } else {
            intact = decode_intact(stored, &lost, decoder)?;
            Content { values: &intact, ..decoder.content(stored.body) }
        };
        let mut raw = select(stored.layout, &content, samples)?;
        (raw.column, raw.first_sample) = (usize::try_from(stored.header.column).unwrap_or(usize::MAX), first_sample);
        Ok(raw)
    })
}

fn with_chunk<T>(
    column: &ColumnInner,
    chunk: u64,
    scratch: &mut ChunkScratch,
    then: impl FnOnce(&RegionHeader, &StoredChunk<'_>, &mut ChunkDecoder) -> Result<T>,
) -> Result<T> {
    let take = || {
        let location = column.locate_chunk(chunk)?;
        let entry = location.ok_or_else(|| Error::bad_argument(format!("there is no chunk {chunk}")))?.entry;
        let copy = || {
            let (region, header, body) = fetch_chunk(column, &entry, &mut scratch.buffer)?;
            let stored =
                StoredChunk { layout: column.layout(), tables: column, header: &header, body: Body::whole(body) };
            then(&region, &stored, &mut scratch.decoder)
        };
        copy().map_err(|error| error.with_offset(entry.offset).with_samples(entry.samples()))
    };
    take().map_err(|error| column.in_column(error))
}

/// Returns the selected samples of a chunk of a nested column, in the form that an encoder expects.
fn nested_samples(layout: &Layout, content: &Content<'_>, samples: &[Option<usize>]) -> Result<RawChunk> {
    let (mut buffer, mut words, mut values) = (ColumnBuffer::new(), Vec::new(), Vec::new());
    buffer.begin_lists(layout.levels)?;
    for sample in samples {
        words.clear();
        let Some(i) = *sample else {
            stage_null(&mut words)?;
            push_sample(layout, &words, &mut buffer)?;
            continue;
        };
        stage_sample(layout, content, i, &mut words)?;
        push_sample(layout, &words, &mut buffer)?;
        // `i` is below the chunk's sample count
        memory::extend(&mut values, content.values_of(layout, &(i..i + 1))?)?;
    }
    le::swap_to_native(layout.element_bytes, &mut values); // to the byte order of the file
    let (validity, shape) = chunk_parts(layout, &buffer)?;
    Ok(RawChunk {
        sample_count: u32::try_from(samples.len()).unwrap_or(0), // at most 2^24
        null_count: u64_of(buffer.levels.first().map_or(0, ListBuffer::null_count)),
        validity,
        shape,
        values,
        ..RawChunk::default()
    })
}

/// Returns the selected samples of a chunk, in the form that an encoder expects.
fn select(layout: &Layout, content: &Content<'_>, samples: &[Option<usize>]) -> Result<RawChunk> {
    if layout.is_nested() {
        return nested_samples(layout, content, samples);
    }
    // at most 2^24
    let mut raw = RawChunk { sample_count: u32::try_from(samples.len()).unwrap_or(0), ..RawChunk::default() };
    let is_null = |sample: &Option<usize>| sample.is_none_or(|i| content.is_null(i));
    if samples.iter().any(is_null) {
        let mut bitmap = vec![0; validity_bytes(samples.len())];
        for (to, _) in samples.iter().enumerate().filter(|(_, from)| !is_null(from)) {
            if let Some(byte) = bitmap.get_mut(to / 8) {
                *byte |= 1 << (to % 8);
            }
        }
        raw.null_count = u64_of(samples.iter().filter(|sample| is_null(sample)).count());
        raw.validity = Some(bitmap);
    }
    let mut end = 0_u32;
    for &sample in samples {
        match sample {
            Some(i) => {
                // `i` is below the chunk's sample count
                let range = content.values_range(layout, &(i..i + 1))?;
                // in bounds: checked with the range
                memory::extend(&mut raw.values, content.values.get(range).unwrap_or(&[]))?;
            }
            None => {
                let length = raw.values.len().saturating_add(layout.null_value_bytes());
                memory::resize(&mut raw.values, length, 0)?;
            }
        }
        if layout.is_ragged() {
            let count = sample.map_or(Ok(0), |i| content.count(i))?;
            end = end.saturating_add(count); // no overflow: at most the end in the whole chunk
            raw.shape.extend(end.to_le_bytes());
        }
    }
    if layout.varying > 1 {
        for varying in 0..layout.varying {
            for sample in samples {
                let extent = sample.map_or(Ok(0), |i| content.extent(layout, i, varying))?;
                raw.shape.extend(extent.to_le_bytes());
            }
        }
    }
    // to the byte order of the file: swapping is its own inverse
    le::swap_to_native(layout.element_bytes, &mut raw.values);
    Ok(raw)
}
