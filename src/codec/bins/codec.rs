//! The encoding *bins* (chapter 5.13): combines the layers.
//!
//! From the outside in, a block has gap marks, the patches and details (low-order bits) of a
//! mapping, outliers, filter codes, and bins. [`Layers`] splits them in this order and undoes them
//! in the opposite order. A part without a mapping and without options (gaps, outliers, filters)
//! has only bins, and is decoded directly to its elements.
//!
//! Windows, the two bytes of each integer that bins code, are decoded in a chain of dependent
//! steps. Two blocks of a part are therefore decoded at once: the processor works on one while the
//! other waits. Each of the 64 rANS states codes every 64th element, so decoding a range costs as
//! much as decoding all elements before its end.
//!
//! To encode a part, writers encode it with each finalist of `choice.rs`, and use the smallest
//! result.

use super::choice::{BinSettings, choose, each_choice, each_finalist};
use super::mapping::{MappedBlock, Mapping, Widths};
use super::options::{Gaps, Marks, OutlierBlock};
use super::plan::{BinChoice, Combination, PlanInput};
use super::tables::{BinTables, StoredBins, table_bytes, write_device_tables};
use crate::bytes::memory;
use crate::codec::{
    bits::{planes, split},
    blocked::{Block, BlockCodec, BlockEncoder, BlockLimits, VisitPlan, WORD_LIMITS},
    choice::{SampledPart, SampledRanges, transform_blocks},
    part::{Description, Geometry, PartSpec, RawPart},
    scratch::{DecodeScratch, EncodeScratch},
    transform::Transform,
};
use crate::kernel::Width;
use crate::{Error, Result};
use std::ops::Range;
use std::sync::Arc;

type BinBlock<'a> = Block<'a, Arc<BinTables>>;

pub(crate) struct BinBlocks {
    /// Whether only the stored size matters, not the decoding speed. Float multiples can then also
    /// store low-order bits of elements, which are slow to decode.
    pub for_size: bool,
}

impl BlockCodec for BinBlocks {
    type Tables = Arc<BinTables>;

    const ID: u16 = 6;
    const NAME: &'static str = "bins";
    const LIMITS: BlockLimits = WORD_LIMITS;
    const IS_DEVICE_DECODABLE: bool = true;
    const TABLES_RULE: &'static str = "R-5.18";

    fn table_bytes(&self, block_index: &[u8]) -> Option<usize> {
        table_bytes(block_index)
    }

    fn parse_tables(&self, spec: PartSpec<'_>, tables: &[u8]) -> Result<Arc<BinTables>> {
        BinTables::parse(spec, tables).map(Arc::new)
    }

    /// Parses tables without allocating an `Arc`.
    fn check_tables(&self, spec: PartSpec<'_>, tables: &[u8]) -> Result<()> {
        BinTables::parse(spec, tables).map(drop)
    }

    fn device_tables(&self, spec: PartSpec<'_>, tables: &[u8], out: &mut Vec<u8>) -> Result<()> {
        write_device_tables(spec, tables, out)
    }

    fn cached_tables(&self, spec: PartSpec<'_>, tables: &[u8], scratch: &mut DecodeScratch) -> Result<Arc<BinTables>> {
        scratch.bin_tables.get(spec, tables)
    }

    fn decode(&self, block: &BinBlock<'_>, out: &mut [u8], scratch: &mut DecodeScratch) -> Result<()> {
        let (tables, (width, count)) = (block.tables, block.spec.width_and_count()?);
        if !tables.is_plain() {
            return decode_range(block, &(0..count), out, scratch);
        }
        StoredBins::split(tables, width, count, block.stored)?.decode(out, &mut scratch.windows)?;
        tables.transform.undo(width, out);
        Ok(())
    }

    fn decode_two(&self, blocks: [&BinBlock<'_>; 2], outs: [&mut [u8]; 2], scratch: &mut DecodeScratch) -> Result<()> {
        let tables = blocks[0].tables;
        if tables.options.gaps.is_some() || tables.options.outliers.is_some() {
            let mut both = blocks.into_iter().zip(outs);
            return both.try_for_each(|(block, out)| self.decode(block, out, scratch));
        }
        if !tables.is_plain() {
            return decode_two(blocks, outs, scratch);
        }
        let [a, b] = blocks.map(|block| {
            let (width, count) = block.spec.width_and_count()?;
            Ok::<_, Error>((width, StoredBins::split(tables, width, count, block.stored)?))
        });
        let [(width, a), (_, b)] = [a?, b?];
        let [out_a, out_b] = outs;
        StoredBins::decode_two([&a, &b], [&mut *out_a, &mut *out_b], &mut scratch.windows)?;
        [out_a, out_b].into_iter().for_each(|out| tables.transform.undo(width, out));
        Ok(())
    }

    fn decode_range(
        &self,
        block: &BinBlock<'_>,
        range: &Range<usize>,
        out: &mut [u8],
        scratch: &mut DecodeScratch,
    ) -> Result<bool> {
        decode_range(block, range, out, scratch).map(|()| true)
    }

    fn transform(&self, tables: &Arc<BinTables>) -> Option<String> {
        let transform = tables.transform.describe();
        let mapping = tables.mapping.describe().map_or_else(String::new, |mapping| format!("{mapping}; "));
        Some(format!("{}{mapping}{transform}", tables.options.describe()))
    }

    fn describe(&self, block: &BinBlock<'_>, description: &mut Description) -> Result<()> {
        let (tables, (width, mut count)) = (block.tables, block.spec.width_and_count()?);
        let (mut stored, mut marks) = (block.stored, Marks::default());
        if let Some(gaps) = tables.options.gaps {
            let rest = gaps.read(count, stored, &mut marks)?;
            description.add("gaps", "the positions of gaps", bytes_before(stored, rest));
            (count, stored) = (marks.unmarked_count, rest);
        }
        let layers = Layers::split(tables, width, count, stored, &mut marks)?;
        layers.mapped.describe(description);
        if let Some(outliers) = &layers.outliers {
            let outlier_bytes = bytes_before(layers.mapped.numbers, outliers.bins);
            description.add("outliers", "their positions, and their bits above the window", outlier_bytes);
        }
        description.add("filters", "the filter of each segment of 128 numbers", layers.filter_codes);
        layers.bins.describe(description);
        Ok(())
    }
}

/// Returns the bytes of `all` before its suffix `rest`.
fn bytes_before<'a>(all: &'a [u8], rest: &[u8]) -> &'a [u8] {
    all.get(..all.len().saturating_sub(rest.len())).unwrap_or(&[])
}

/// The sections of a block, or of its elements outside gaps.
struct Layers<'a> {
    tables: &'a BinTables,
    widths: Widths,
    count: usize,
    mapped: MappedBlock<'a>,
    outliers: Option<OutlierBlock<'a>>,
    filter_codes: &'a [u8],
    bins: StoredBins<'a>,
}

impl<'a> Layers<'a> {
    /// Splits the sections of `count` elements. Sets `marks` to the positions of the outliers.
    fn split(
        tables: &'a BinTables,
        width: Width,
        count: usize,
        stored: &'a [u8],
        marks: &'a mut Marks,
    ) -> Result<Self> {
        let widths = tables.mapping.widths(width);
        let mapped = MappedBlock::split(&tables.mapping, widths, count, stored)?;
        let outliers = tables.options.outliers.map(|outliers| outliers.split(count, mapped.numbers, marks));
        let outliers = outliers.transpose()?;
        let stored = outliers.as_ref().map_or(mapped.numbers, |outliers| outliers.bins);
        let (filter_codes, stored) = match &tables.options.filters {
            Some(filters) => filters.split(count, stored)?,
            None => (&[][..], stored),
        };
        let bins = StoredBins::split(tables, widths.number, count, stored)?;
        Ok(Self { tables, widths, count, mapped, outliers, filter_codes, bins })
    }

    /// Returns the range of numbers that are needed to decode a range of elements. Prediction
    /// restarts at the first of them.
    fn numbers_for(&self, range: &Range<usize>) -> Range<usize> {
        let start = match &self.tables.options.filters {
            Some(filters) => filters.start_of(range.start),
            None => self.tables.transform.start_of(range.start),
        };
        self.mapped.numbers_for(range, start)
    }

    /// Sets `out` to the elements of a range. `numbers` has the coded integers up to the end of
    /// `requested`, which [`Layers::numbers_for`] returns for the range.
    fn finish(
        &self,
        numbers: &mut [u8],
        requested: &Range<usize>,
        range: &Range<usize>,
        out: &mut [u8],
        scratch: &mut DecodeScratch,
    ) -> Result<()> {
        let Self { tables, widths, .. } = *self;
        if let Some(outliers) = &self.outliers {
            outliers.add(widths.number, tables.low_bytes, numbers);
        }
        let v = widths.number.bytes();
        let numbers = numbers.get_mut(requested.start * v..requested.end * v).unwrap_or(&mut []);
        match &tables.options.filters {
            Some(filters) => filters.undo(self.filter_codes, requested.start, numbers, &mut scratch.filter_codes),
            None => tables.transform.undo(widths.number, numbers),
        }
        if !matches!(tables.mapping, Mapping::None) {
            return self.mapped.elements(widths, numbers, requested.start, range, out, &mut scratch.mapped);
        }
        let found = numbers.get((range.start - requested.start) * v..).and_then(|elements| elements.get(..out.len()));
        // equal lengths
        out.copy_from_slice(found.ok_or_else(|| Error::internal("a range lies outside its block"))?);
        Ok(())
    }
}

/// Decodes the elements of a range of a block to `out`, which has their length.
fn decode_range(block: &BinBlock<'_>, range: &Range<usize>, out: &mut [u8], scratch: &mut DecodeScratch) -> Result<()> {
    let (tables, (width, count)) = (block.tables, block.spec.width_and_count()?);
    match tables.options.gaps {
        Some(gaps) => decode_between_gaps(tables, gaps, (width, count, block.stored), range, out, scratch),
        None => decode_present(tables, (width, count, block.stored), range, out, scratch),
    }
}

/// Decodes the elements of a range of a block with gaps.
fn decode_between_gaps(
    tables: &BinTables,
    gaps: Gaps,
    (width, count, stored): (Width, usize, &[u8]),
    range: &Range<usize>,
    out: &mut [u8],
    scratch: &mut DecodeScratch,
) -> Result<()> {
    let (mut marks, mut present) = (std::mem::take(&mut scratch.gaps), std::mem::take(&mut scratch.present));
    let mut decode = || {
        let stored = gaps.read(count, stored, &mut marks)?;
        let requested = marks.unmarked_before(range.start)..marks.unmarked_before(range.end);
        memory::resize(&mut present, requested.len() * width.bytes(), 0)?; // no overflow: inside the block
        decode_present(tables, (width, marks.unmarked_count, stored), &requested, &mut present, scratch)?;
        gaps.spread(width, &marks, range, &present, out);
        Ok(())
    };
    let decoded = decode();
    (scratch.gaps, scratch.present) = (marks, present);
    decoded
}

/// Decodes a range of the elements that are not gaps.
fn decode_present(
    tables: &BinTables,
    (width, count, stored): (Width, usize, &[u8]),
    range: &Range<usize>,
    out: &mut [u8],
    scratch: &mut DecodeScratch,
) -> Result<()> {
    let (mut marks, mut numbers) = (std::mem::take(&mut scratch.outliers), std::mem::take(&mut scratch.coded));
    let decoded = Layers::split(tables, width, count, stored, &mut marks).and_then(|layers| {
        let requested = layers.numbers_for(range);
        // no overflow: at most the length of the block
        memory::resize(&mut numbers, requested.end * layers.widths.number.bytes(), 0)?;
        layers.bins.decode(&mut numbers, &mut scratch.windows)?;
        layers.finish(&mut numbers, &requested, range, out, scratch)
    });
    (scratch.outliers, scratch.coded) = (marks, numbers);
    decoded
}

/// Decodes all elements of two blocks of a part without gaps and outliers.
fn decode_two(blocks: [&BinBlock<'_>; 2], [out_a, out_b]: [&mut [u8]; 2], scratch: &mut DecodeScratch) -> Result<()> {
    let tables = blocks[0].tables;
    let (mut marks_a, mut marks_b) = (Marks::default(), Marks::default());
    let [a, b] = blocks.map(|block| Ok::<_, Error>((block.spec.width_and_count()?, block.stored)));
    let (((width, count_a), stored_a), ((_, count_b), stored_b)) = (a?, b?);
    let a = Layers::split(tables, width, count_a, stored_a, &mut marks_a)?;
    let b = Layers::split(tables, width, count_b, stored_b, &mut marks_b)?;
    let (mut numbers_a, mut numbers_b) =
        (std::mem::take(&mut scratch.coded), std::mem::take(&mut scratch.second_coded));
    let mut decode = || {
        let v = a.widths.number.bytes();
        memory::resize(&mut numbers_a, a.count * v, 0)?;
        memory::resize(&mut numbers_b, b.count * v, 0)?;
        StoredBins::decode_two([&a.bins, &b.bins], [&mut numbers_a, &mut numbers_b], &mut scratch.windows)?;
        a.finish(&mut numbers_a, &(0..a.count), &(0..a.count), out_a, scratch)?;
        b.finish(&mut numbers_b, &(0..b.count), &(0..b.count), out_b, scratch)
    };
    let decoded = decode();
    (scratch.coded, scratch.second_coded) = (numbers_a, numbers_b);
    decoded
}

/// A sample is encoded only if the part has at least N times as many elements.
const MIN_SAMPLE_SCALE: f64 = 3.0;
/// Finalists whose encoded sample exceeds the smallest one by at most 1/N are tied. If only the
/// stored size matters, at most [`MAX_TIED`] of them are tried on the part; otherwise, only the
/// best one is used.
const TIE_MARGIN_DIVISOR: usize = 128;
const MAX_TIED: usize = 2;

impl BlockEncoder for BinBlocks {
    fn estimate(&self, part: &mut SampledPart<'_>, scratch: &mut EncodeScratch) -> Option<usize> {
        let width = Width::from_bytes(part.geometry.element_bytes)?;
        let settings = self.settings(width);
        let choice = choose(settings, part, scratch);
        let bytes = choice.bytes();
        scratch.bin_choice = Some(choice);
        Some(bytes)
    }

    /// Encodes the blocks of the sample with each finalist, and keeps the finalists with the
    /// smallest results.
    fn estimate_by_encoding(&self, part: &mut SampledPart<'_>, scratch: &mut EncodeScratch) -> Result<Option<usize>> {
        let sample_scale = part.sample_scale();
        if sample_scale < MIN_SAMPLE_SCALE {
            return Ok(None);
        }
        let Some(choice) = scratch.bin_choice.take() else { return Ok(None) };
        let Some(width) = Width::from_bytes(part.geometry.element_bytes) else { return Ok(None) };
        let SampledRanges { bytes, ends } = &part.sample.blocks;
        let geometry = part.geometry.in_blocks(ends);
        let (mut tables, mut stored) = (Vec::new(), Vec::new());
        let mut measured = Vec::new();
        let mut measure = |combination: Combination, scratch: &mut EncodeScratch| {
            tables.clear();
            stored.clear();
            if self.plan_with(combination.transform, &geometry, bytes, &mut tables, scratch)?
                && self.append(RawPart { geometry: &geometry, raw: bytes }, &tables, &mut stored, scratch)?
            {
                // the part has the tables only once; an estimate, so the cast may saturate
                let bytes = tables.len() + ((stored.len() - tables.len()) as f64 * sample_scale) as usize;
                measured.push((combination.cost(bytes), bytes, combination));
            }
            Ok(())
        };
        each_finalist(&choice, self.settings(width), &geometry, bytes, scratch, &mut measure)?;
        measured.sort_by_key(|(cost, ..)| *cost);
        let Some(&(min_cost, min_bytes, _)) = measured.first() else { return Ok(None) };
        measured.retain(|(cost, ..)| *cost <= min_cost + min_cost / TIE_MARGIN_DIVISOR);
        let finalists = measured.into_iter().map(|(.., combination)| combination);
        let finalists = finalists.take(if self.for_size { MAX_TIED } else { 1 }).collect();
        scratch.bin_choice = Some(BinChoice { finalists, ..choice });
        Ok(Some(min_bytes))
    }

    fn each_plan(&self, part: RawPart<'_>, scratch: &mut EncodeScratch, visit: &mut VisitPlan<'_>) -> Result<()> {
        let RawPart { geometry, raw } = part;
        let spec = PartSpec::new(geometry.element_bytes, raw.len());
        let Ok((width, _)) = spec.width_and_count() else { return Ok(()) };
        let settings = self.settings(width);
        let mut tables = Vec::new();
        let mut best = None;
        let mut visit_combination = |combination: Combination, scratch: &mut EncodeScratch| {
            tables.clear();
            if self.plan_with(combination.transform, geometry, raw, &mut tables, scratch)?
                && visit(&tables, &|bytes| combination.cost(bytes), scratch)?
            {
                best = Some(combination);
            }
            Ok(())
        };
        if scratch.search.is_exhaustive {
            return each_choice(settings, geometry, raw, scratch, &mut visit_combination);
        }
        let choice = scratch
            .bin_choice
            .take()
            .unwrap_or_else(|| scratch.estimated(part, |part, scratch| choose(settings, part, scratch)));
        each_finalist(&choice, settings, geometry, raw, scratch, &mut visit_combination)?;
        scratch.last_bin_choice = best.map(BinChoice::of);
        Ok(())
    }

    fn encode(
        &self,
        part: RawPart<'_>,
        elements: &Range<usize>,
        stored: &mut Vec<u8>,
        scratch: &mut EncodeScratch,
    ) -> Result<()> {
        let RawPart { geometry, raw } = part;
        let width =
            Width::from_bytes(geometry.element_bytes).ok_or_else(|| Error::internal("invalid element width"))?;
        let EncodeScratch { symbols, low_bytes, bins, numbers, filters, present, .. } = scratch;
        let widths = numbers.mapping.widths(width);
        let block = geometry.blocks.partition_point(|&end| (end as usize) <= elements.start); // exact
        present.append_marks(block, stored);
        let (elements, geometry, raw) = match present.gaps {
            Some(_) => (present.of_block(block), present.geometry(geometry), present.bytes.as_slice()),
            None => (elements.clone(), *geometry, raw),
        };
        numbers.append_header(widths, block, &elements, raw, stored)?;
        filters.append_codes(&geometry, block, stored);
        bins.encode(&geometry, planes(low_bytes, symbols), (block, &elements), stored)
    }
}

impl BinBlocks {
    fn settings(&self, width: Width) -> BinSettings {
        BinSettings { for_size: self.for_size, width }
    }

    /// Plans blocks with a transform and with the gaps, mapping and filters in the scratch. Appends
    /// the tables.
    fn plan_with(
        &self,
        transform: Transform,
        geometry: &Geometry<'_>,
        raw: &[u8],
        tables: &mut Vec<u8>,
        scratch: &mut EncodeScratch,
    ) -> Result<bool> {
        let Some(width) = Width::from_bytes(geometry.element_bytes) else { return Ok(false) };
        let search = scratch.search;
        let EncodeScratch { symbols, low_bytes, coded, bins, numbers, filters, present, .. } = scratch;
        let (raw, geometry) = match present.gaps {
            Some(_) => (present.bytes.as_slice(), present.geometry(geometry)),
            None => (raw, *geometry),
        };
        let number_width = numbers.mapping.widths(width).number;
        let integers = if let Mapping::None = numbers.mapping { raw } else { &numbers.bytes };
        match filters.filters {
            Some(_) => filters.residuals(&geometry, integers, coded),
            None => transform_blocks(transform, number_width, &geometry, integers, coded),
        }
        split(number_width, false, coded, symbols, low_bytes);
        let planes: Vec<&[u8]> = planes(low_bytes, symbols).collect();
        let part = PlanInput {
            mapping: &numbers.mapping,
            gaps: present.gaps,
            transform,
            filters,
            geometry: &geometry,
            planes: &planes,
            search,
        };
        bins.plan(&part, width, tables)?;
        Ok(true)
    }
}
