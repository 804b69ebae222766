//! Chapter 5.13: bins.

use super::bin_choice::{Means, choose, each_choice, each_finalist};
use super::bin_layers::{decode_layers, describe_layers};
use super::block_codec::{Block, BlockCodec, BlockEncoder, VisitPlan, WORDS};
use super::combination::{BinChoice, Combination};
use super::front::BlockLimits;
use super::two_blocks::{are_decoded_together, decode_together};
use crate::codec::anatomy::Anatomy;
use crate::codec::bins::{BinTables, Mapping, PlannedPart, StoredBins, planes_of, table_bytes};
use crate::codec::exponent_tiers::split;
use crate::codec::geometry::Geometry;
use crate::codec::part_spec::PartSpec;
use crate::codec::predict::transform_blocks;
use crate::codec::sample::{Pieces, SampledPart};
use crate::codec::scratch::{DecodeScratch, EncodeScratch};
use crate::codec::transform::Transform;
use crate::kernel::Width;
use crate::{Error, Result};
use std::ops::Range;
use std::sync::Arc;

pub(in crate::codec) struct BinBlocks {
    /// Whether it writes details below numbers, which are slow to decode.
    pub for_size: bool,
}

impl BlockCodec for BinBlocks {
    type Tables = Arc<BinTables>;

    const LIMITS: BlockLimits = WORDS;
    const TABLES_RULE: &'static str = "R-5.18";

    fn id(&self) -> u16 {
        6
    }

    fn name(&self) -> &'static str {
        "bins"
    }

    fn table_bytes(&self, front: &[u8]) -> Option<usize> {
        table_bytes(front)
    }

    fn parse_tables(&self, spec: PartSpec<'_>, tables: &[u8]) -> Result<Arc<BinTables>> {
        BinTables::parse(spec, tables).map(Arc::new)
    }

    /// Parses them without a place to keep them.
    fn check_tables(&self, spec: PartSpec<'_>, tables: &[u8]) -> Result<()> {
        BinTables::parse(spec, tables).map(drop)
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
        if !tables.is_plain() {
            return decode_layers(tables, block, &(0..count), out, scratch);
        }
        StoredBins::split(tables, width, count, block.stored)?.decode(out, &mut scratch.windows)?;
        tables.transform.undo(width, out);
        Ok(())
    }

    /// Decodes both at once: the processor does steps of one while those of the other wait.
    fn decode_two(
        &self,
        tables: &Arc<BinTables>,
        blocks: [&Block<'_>; 2],
        outs: [&mut [u8]; 2],
        scratch: &mut DecodeScratch,
    ) -> Result<()> {
        if !tables.is_plain() {
            if are_decoded_together(tables) {
                return decode_together(tables, blocks, outs, scratch);
            }
            let mut both = blocks.into_iter().zip(outs);
            return both.try_for_each(|(block, out)| self.decode(tables, block, out, scratch));
        }
        let [a, b] = blocks.map(|block| {
            let (width, count) = block.spec.width_and_count()?;
            Ok::<_, Error>((width, StoredBins::split(tables, width, count, block.stored)?))
        });
        let [(width, a), (_, b)] = [a?, b?];
        let [out_a, out_b] = outs;
        StoredBins::decode_two([a, b], [&mut *out_a, &mut *out_b], &mut scratch.windows)?;
        [out_a, out_b].into_iter().for_each(|out| tables.transform.undo(width, out));
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
        decode_layers(tables, block, range, out, scratch).map(|()| true)
    }

    fn transform(&self, tables: &Arc<BinTables>) -> Option<String> {
        let transform = tables.transform.describe();
        let mapping = tables.mapping.describe().map_or_else(String::new, |mapping| format!("{mapping}; "));
        Some(format!("{}{mapping}{transform}", tables.options.describe()))
    }

    fn describe(&self, tables: &Arc<BinTables>, block: &Block<'_>, anatomy: &mut Anatomy) -> Result<()> {
        describe_layers(tables, block, anatomy)
    }
}

/// Parts have at least this many times the elements of samples that are encoded.
const MIN_ONE_IN: f64 = 3.0;
/// The finalists that encode the sample to at most one in this many bytes more than the smallest
/// encode the part, too: at most `MAX_EQUAL` of them, and one unless size counts.
const EQUAL_TO_ONE_IN: usize = 128;
const MAX_EQUAL: usize = 2;

impl BlockEncoder for BinBlocks {
    fn estimate(&self, part: &mut SampledPart<'_>, scratch: &mut EncodeScratch) -> Option<usize> {
        let width = Width::from_bytes(part.geometry.element_bytes)?;
        let means = self.means(width);
        let choice = choose(means, part, scratch);
        let bytes = choice.bytes();
        scratch.bin_choice = Some(choice);
        Some(bytes)
    }

    /// Encodes the blocks of the sample with each finalist, and keeps those that are the smallest.
    fn estimate_by_encoding(&self, part: &mut SampledPart<'_>, scratch: &mut EncodeScratch) -> Result<Option<usize>> {
        let one_in = part.one_in();
        if one_in < MIN_ONE_IN {
            return Ok(None);
        }
        let Some(choice) = scratch.bin_choice.take() else { return Ok(None) };
        let Some(width) = Width::from_bytes(part.geometry.element_bytes) else { return Ok(None) };
        let Pieces { bytes, ends } = &part.sample.blocks;
        let geometry = part.geometry.in_blocks(ends);
        let (mut tables, mut stored) = (Vec::new(), Vec::new());
        let mut measured = Vec::new();
        let mut measure = |combination: Combination, scratch: &mut EncodeScratch| {
            tables.clear();
            stored.clear();
            if self.plan_with(combination.transform, &geometry, bytes, &mut tables, scratch)?
                && self.append(&geometry, bytes, &tables, &mut stored, scratch)?
            {
                // tables are in front of blocks; an estimate, and saturating
                let bytes = tables.len() + ((stored.len() - tables.len()) as f64 * one_in) as usize;
                measured.push((combination.cost(bytes), bytes, combination));
            }
            Ok(())
        };
        each_finalist(&choice, self.means(width), &geometry, bytes, scratch, &mut measure)?;
        measured.sort_by_key(|(cost, ..)| *cost);
        let Some(&(least, least_bytes, _)) = measured.first() else { return Ok(None) };
        measured.retain(|(cost, ..)| *cost <= least + least / EQUAL_TO_ONE_IN);
        let finalists = measured.into_iter().map(|(.., combination)| combination);
        let finalists = finalists.take(if self.for_size { MAX_EQUAL } else { 1 }).collect();
        scratch.bin_choice = Some(BinChoice { finalists, ..choice });
        Ok(Some(least_bytes))
    }

    fn each_plan(
        &self,
        geometry: &Geometry<'_>,
        raw: &[u8],
        scratch: &mut EncodeScratch,
        visit: &mut VisitPlan<'_>,
    ) -> Result<()> {
        let spec = PartSpec::new(geometry.element_bytes, raw.len());
        let Ok((width, _)) = spec.width_and_count() else { return Ok(()) };
        let means = self.means(width);
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
            return each_choice(means, geometry, raw, scratch, &mut visit_combination);
        }
        let choice = scratch
            .bin_choice
            .take()
            .unwrap_or_else(|| scratch.estimated(geometry, raw, |part, scratch| choose(means, part, scratch)));
        each_finalist(&choice, means, geometry, raw, scratch, &mut visit_combination)?;
        scratch.last_bins = best.map(BinChoice::of);
        Ok(())
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
        let EncodeScratch { symbols, low_bytes, bins, numbers, filters, present, .. } = scratch;
        let widths = numbers.mapping.widths(width);
        let block = geometry.blocks.partition_point(|&end| (end as usize) <= elements.start); // exact
        let (planes, count) = planes_of(widths.number, low_bytes, symbols);
        let planes = planes.get(..count).unwrap_or(&[]);
        let Some(_) = present.gaps else {
            numbers.append_head(widths, block, elements, raw, stored)?;
            filters.append_codes(geometry, block, stored);
            return bins.encode(geometry, planes, (block, elements), stored);
        };
        present.append_marks(block, stored);
        let elements = present.of_block(block);
        let geometry = present.geometry(geometry);
        numbers.append_head(widths, block, &elements, &present.bytes, stored)?;
        filters.append_codes(&geometry, block, stored);
        bins.encode(&geometry, planes, (block, &elements), stored)
    }
}

impl BinBlocks {
    /// Returns what these bins may use.
    fn means(&self, width: Width) -> Means {
        Means { for_size: self.for_size, width }
    }

    /// Plans blocks with a transform, for what the scratch has of gaps, mapping and filters; see
    /// [`BlockEncoder::plan`].
    pub(super) fn plan_with(
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
        let (planes, count) = planes_of(number_width, low_bytes, symbols);
        let part = PlannedPart {
            mapping: &numbers.mapping,
            gaps: present.gaps,
            transform,
            filters,
            geometry: &geometry,
            planes: planes.get(..count).unwrap_or(&[]),
            search,
        };
        bins.plan(&part, width, tables)?;
        Ok(true)
    }
}
