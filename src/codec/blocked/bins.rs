//! Chapter 5.13: bins, as an encoding of blocks.

use super::block_codec::{Block, BlockCodec, BlockEncoder};
use crate::codec::anatomy::Anatomy;
use crate::codec::bins::{
    Bases, BinTables, MappedBlock, Mapping, Numbers, StoredBins, find_multiple, find_palettes, find_quotients,
    may_have_palettes, planes_of, table_bytes,
};
use crate::codec::exponent_tiers::{sampled_tops, split};
use crate::codec::geometry::Geometry;
use crate::codec::part_spec::PartSpec;
use crate::codec::predict::{Coding, best_transform, entropy_bits};
use crate::codec::scratch::{DecodeScratch, EncodeScratch};
use crate::codec::tier_plan::histogram;
use crate::codec::transform::Transform;
use crate::kernel::{Width, predict};
use crate::{Error, Result, limits, memory};
use std::ops::Range;
use std::sync::Arc;

pub(in crate::codec) struct BinBlocks {
    /// The most classes of groups that it writes.
    pub most_classes: usize,
    /// Whether it writes details below numbers, which take the most time to decode.
    pub has_details: bool,
}

impl BlockCodec for BinBlocks {
    type Tables = Arc<BinTables>;

    fn id(&self) -> u16 {
        13
    }

    fn name(&self) -> &'static str {
        "blocked-bins"
    }

    fn table_bytes(&self, front: &[u8]) -> Option<usize> {
        table_bytes(front)
    }

    fn parse_tables(&self, spec: PartSpec<'_>, tables: &[u8]) -> Result<Arc<BinTables>> {
        BinTables::parse(spec, tables).map(Arc::new)
    }

    fn kept_tables(&self, spec: PartSpec<'_>, tables: &[u8], scratch: &mut DecodeScratch) -> Result<Arc<BinTables>> {
        scratch.bin_tables.get(spec, tables)
    }

    fn decode(
        &self,
        tables: &Arc<BinTables>,
        block: &Block<'_>,
        out: &mut [u8],
        scratch: &mut DecodeScratch,
    ) -> Result<()> {
        let (width, count) = block.spec.width_and_count()?;
        if let Mapping::None = tables.mapping {
            StoredBins::split(tables, width, count, block.stored)?.decode(out, &mut scratch.windows)?;
            tables.transform.undo(width, out);
            return Ok(());
        }
        decode_mapped(tables, block, &(0..count), out, scratch)
    }

    /// Decodes both at once: the processor does steps of one while those of the other wait.
    fn decode_two(
        &self,
        tables: &Arc<BinTables>,
        blocks: [&Block<'_>; 2],
        mut outs: [&mut [u8]; 2],
        scratch: &mut DecodeScratch,
    ) -> Result<()> {
        let Mapping::None = tables.mapping else {
            let mut both = blocks.into_iter().zip(outs);
            return both.try_for_each(|(block, out)| self.decode(tables, block, out, scratch));
        };
        let [a, b] = blocks.map(|block| {
            let (width, count) = block.spec.width_and_count()?;
            StoredBins::split(tables, width, count, block.stored)
        });
        StoredBins::decode_two([a?, b?], outs.each_mut().map(|out| &mut **out), &mut scratch.windows)?;
        for (block, out) in blocks.into_iter().zip(outs) {
            tables.transform.undo(block.spec.width_and_count()?.0, out);
        }
        Ok(())
    }

    /// Decodes all elements before the end of the range: a state codes every 64th element.
    fn decode_range(
        &self,
        tables: &Arc<BinTables>,
        block: &Block<'_>,
        range: &Range<usize>,
        out: &mut [u8],
        scratch: &mut DecodeScratch,
    ) -> Result<bool> {
        let (width, count) = block.spec.width_and_count()?;
        let Mapping::None = tables.mapping else {
            return decode_mapped(tables, block, range, out, scratch).map(|()| true);
        };
        let w = width.bytes();
        let DecodeScratch { coded, windows, .. } = scratch;
        memory::resize(coded, range.end * w, 0)?; // at most the block
        StoredBins::split(tables, width, count, block.stored)?.decode(coded, windows)?;
        let from = tables.transform.start_of(range.start) * w;
        tables.transform.undo(width, coded.get_mut(from..).unwrap_or(&mut []));
        let found = coded.get(range.start * w..).filter(|found| found.len() == out.len());
        // equal lengths
        out.copy_from_slice(found.ok_or_else(|| Error::internal("a range lies outside its block"))?);
        Ok(true)
    }

    fn transform(&self, tables: &Arc<BinTables>) -> Option<String> {
        let transform = tables.transform.describe();
        Some(match tables.mapping.describe() {
            None => transform,
            Some(mapping) => format!("{mapping}; {transform}"),
        })
    }

    fn describe(&self, tables: &Arc<BinTables>, block: &Block<'_>, anatomy: &mut Anatomy) -> Result<()> {
        let (width, count) = block.spec.width_and_count()?;
        let widths = tables.mapping.widths(width);
        let mapped = MappedBlock::split(&tables.mapping, widths, count, block.stored)?;
        mapped.describe(anatomy);
        StoredBins::split(tables, widths.number, count, mapped.numbers)?.describe(anatomy);
        Ok(())
    }
}

/// Decodes the elements of a range of a block with a mapping.
fn decode_mapped(
    tables: &BinTables,
    block: &Block<'_>,
    range: &Range<usize>,
    out: &mut [u8],
    scratch: &mut DecodeScratch,
) -> Result<()> {
    let (width, count) = block.spec.width_and_count()?;
    let widths = tables.mapping.widths(width);
    let DecodeScratch { coded, windows, mapped, .. } = scratch;
    let mapped_block = MappedBlock::split(&tables.mapping, widths, count, block.stored)?;
    let wanted = mapped_block.numbers_for(range, tables.transform.start_of(range.start));
    let v = widths.number.bytes();
    memory::resize(coded, wanted.end * v, 0)?; // at most the block
    StoredBins::split(tables, widths.number, count, mapped_block.numbers)?.decode(coded, windows)?;
    let numbers = coded.get_mut(wanted.start * v..).unwrap_or(&mut []);
    tables.transform.undo(widths.number, numbers);
    mapped_block.elements(widths, numbers, wanted.start, range, out, mapped)
}

/// A mapping is chosen if it saves one in this many bytes: it takes time.
const MAPPING_SAVES_ONE_IN: usize = 40;
/// The base of the part is taken instead of those of blocks if its estimate is not greater by more
/// than one in this many bytes.
const BASE_COSTS_ONE_IN: usize = 16;
/// The most elements of the innermost dimension that have palettes of their own.
const MOST_CHANNELS: u32 = 16;

/// Returns the transform whose coded integers take the fewest bits, and an estimate of the bytes.
fn choose_transform(width: Width, geometry: &Geometry<'_>, raw: &[u8], scratch: &mut EncodeScratch) -> TransformChoice {
    let (predicted, predicted_bytes) = best_transform(Coding::Bins, width, geometry, raw, scratch);
    let plain = if geometry.float { Transform::Rotate } else { Transform::None };
    let count = raw.len() / width.bytes();
    sampled_tops(width, geometry.float, raw, scratch);
    let top_bits = entropy_bits(&histogram(&scratch.sampled)) / scratch.sampled.len().max(1) as f64;
    // an estimate, and saturating
    let plain_bytes = (top_bits * count as f64 / 8.0) as usize + count * (width.bytes() - 1);
    let is_predictable = predicted_bytes < plain_bytes;
    if is_predictable {
        TransformChoice { transform: predicted, bytes: predicted_bytes, is_predictable }
    } else {
        TransformChoice { transform: plain, bytes: plain_bytes, is_predictable }
    }
}

/// A transform, and an estimate of the stored bytes with it.
#[derive(Clone, Copy)]
struct TransformChoice {
    transform: Transform,
    bytes: usize,
    is_predictable: bool,
}

/// Chooses mapping and transform, and keeps the numbers in the scratch.
fn choose(
    has_details: bool,
    width: Width,
    geometry: &Geometry<'_>,
    raw: &[u8],
    scratch: &mut EncodeScratch,
) -> TransformChoice {
    let of_elements = choose_transform(width, geometry, raw, scratch);
    let mut search = MappingSearch {
        width,
        geometry,
        most: of_elements.bytes - of_elements.bytes / MAPPING_SAVES_ONE_IN,
        choice: of_elements,
        best: std::mem::take(&mut scratch.numbers),
        tried: std::mem::take(&mut scratch.other_numbers),
        scratch,
    };
    search.best.mapping = Mapping::None;
    search.run(raw, has_details);
    let MappingSearch { choice, best, tried, scratch, .. } = search;
    (scratch.numbers, scratch.other_numbers) = (best, tried);
    choice
}

/// The search for the mapping of a part.
struct MappingSearch<'a> {
    width: Width,
    geometry: &'a Geometry<'a>,
    /// A mapping must take fewer bytes than this.
    most: usize,
    choice: TransformChoice,
    best: Numbers,
    tried: Numbers,
    scratch: &'a mut EncodeScratch,
}

impl MappingSearch<'_> {
    fn run(&mut self, raw: &[u8], has_details: bool) {
        let is_predictable = self.choice.is_predictable;
        if may_have_palettes(self.width, raw) {
            let channels = self.geometry.strides.into_iter().find(|&stride| (2..=MOST_CHANNELS).contains(&stride));
            for count in std::iter::once(1).chain(channels) {
                // exact: at most 16
                if find_palettes(self.width, self.geometry, count as usize, raw, &mut self.tried) {
                    self.compare(Bases::OfBlocks);
                }
            }
        }
        if !self.geometry.float
            && let Some(multiple) = find_multiple(self.width, self.geometry, raw)
        {
            self.tried.set_multiple(multiple, Bases::OfBlocks, self.geometry, raw);
            if self.compare(Bases::OfBlocks) && self.tried.set_multiple(multiple, Bases::OfPart, self.geometry, raw) {
                self.compare(Bases::OfPart);
            }
        }
        let Some(float_type) = self.geometry.float_type else { return };
        for quotient in find_quotients(float_type, raw, has_details && is_predictable) {
            self.tried.set_quotient(quotient, Bases::OfBlocks, self.geometry, raw);
            if self.compare(Bases::OfBlocks) {
                self.tried.set_quotient(quotient, Bases::OfPart, self.geometry, raw);
                self.compare(Bases::OfPart);
            }
        }
    }

    /// Keeps the mapping that was tried, if it is better. Returns whether it is kept and its
    /// numbers are not predicted: the base of the part suits them, since equal elements then have
    /// equal numbers. Estimates do not tell that.
    fn compare(&mut self, bases: Bases) -> bool {
        let width = self.tried.mapping.widths(self.width).number;
        let geometry = Geometry { element_bytes: width.bytes(), float: false, float_type: None, ..*self.geometry };
        let mut choice = choose_transform(width, &geometry, &self.tried.bytes, self.scratch);
        choice.bytes = choice.bytes.saturating_add(self.tried.other_bytes(self.width.bytes()));
        let is_predicted = matches!(choice.transform, Transform::Predict(_));
        let most = match bases {
            Bases::OfBlocks => self.most,
            Bases::OfPart => self.most + self.most / BASE_COSTS_ONE_IN,
        };
        let is_better = choice.bytes < most && (bases == Bases::OfBlocks || !is_predicted);
        if is_better {
            self.most = choice.bytes;
            self.choice = choice;
            std::mem::swap(&mut self.best, &mut self.tried);
        }
        is_better && !is_predicted
    }
}

impl BlockEncoder for BinBlocks {
    fn estimate(&self, geometry: &Geometry<'_>, raw: &[u8], scratch: &mut EncodeScratch) -> Option<usize> {
        let width = Width::from_bytes(geometry.element_bytes)?;
        Some(choose(self.has_details, width, geometry, raw, scratch).bytes)
    }

    fn plan(
        &self,
        geometry: &Geometry<'_>,
        raw: &[u8],
        tables: &mut Vec<u8>,
        scratch: &mut EncodeScratch,
    ) -> Result<bool> {
        let spec = PartSpec::new(geometry.element_bytes, raw.len());
        let Ok((width, _)) = spec.width_and_count() else { return Ok(false) };
        // validity and shape have no blocks
        let fits = |block: Range<usize>| block.len() <= limits::BLOCK_ELEMENTS;
        if geometry.blocks.is_empty() || !geometry.block_ranges().all(fits) {
            return Ok(false);
        }
        let transform = choose(self.has_details, width, geometry, raw, scratch).transform;
        let EncodeScratch { symbols, low_bytes, coded, bins, numbers, .. } = scratch;
        let width = numbers.mapping.widths(width).number;
        let integers = if let Mapping::None = numbers.mapping { raw } else { &numbers.bytes };
        match transform {
            Transform::Predict(prediction) => {
                coded.resize(integers.len(), 0);
                for elements in geometry.block_ranges() {
                    let bytes = elements.start * width.bytes()..elements.end * width.bytes();
                    let (Some(integers), Some(coded)) = (integers.get(bytes.clone()), coded.get_mut(bytes)) else {
                        return Err(Error::internal("a block has elements that its part has not"));
                    };
                    predict::best().residuals(&prediction, width, integers, coded);
                }
                split(width, false, coded, symbols, low_bytes);
            }
            _ => split(width, transform == Transform::Rotate, integers, symbols, low_bytes),
        }
        let (planes, count) = planes_of(width, low_bytes, symbols);
        let planes = planes.get(..count).unwrap_or(&[]);
        bins.plan(&numbers.mapping, transform, geometry, planes, self.most_classes, tables)?;
        Ok(true)
    }

    fn encode(
        &self,
        geometry: &Geometry<'_>,
        raw: &[u8],
        elements: &Range<usize>,
        stored: &mut Vec<u8>,
        scratch: &mut EncodeScratch,
    ) -> Result<()> {
        let width = Width::from_bytes(geometry.element_bytes).ok_or_else(|| Error::internal("bins of no width"))?;
        let EncodeScratch { symbols, low_bytes, bins, numbers, .. } = scratch;
        let widths = numbers.mapping.widths(width);
        let block = geometry.blocks.partition_point(|&end| (end as usize) <= elements.start); // exact
        numbers.append_head(widths, block, elements, raw, stored)?;
        let (planes, count) = planes_of(widths.number, low_bytes, symbols);
        bins.encode(geometry, planes.get(..count).unwrap_or(&[]), elements, stored)
    }
}
