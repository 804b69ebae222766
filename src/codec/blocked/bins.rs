//! Chapter 5.13: bins, as an encoding of blocks.

use super::block_codec::{Block, BlockCodec, BlockEncoder};
use crate::codec::anatomy::Anatomy;
use crate::codec::bins::{BinTables, StoredBins, planes_of, table_bytes};
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
        StoredBins::split(tables, block.spec, block.stored)?.decode(out, &mut scratch.windows)?;
        tables.transform.undo(block.spec.width_and_count()?.0, out);
        Ok(())
    }

    /// Decodes both at once: the processor does steps of one while those of the other wait.
    fn decode_two(
        &self,
        tables: &Arc<BinTables>,
        blocks: [&Block<'_>; 2],
        mut outs: [&mut [u8]; 2],
        scratch: &mut DecodeScratch,
    ) -> Result<()> {
        let [a, b] = blocks.map(|block| StoredBins::split(tables, block.spec, block.stored));
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
        let (width, _) = block.spec.width_and_count()?;
        let w = width.bytes();
        let DecodeScratch { coded, windows, .. } = scratch;
        memory::resize(coded, range.end * w, 0)?; // at most the block
        StoredBins::split(tables, block.spec, block.stored)?.decode(coded, windows)?;
        let from = tables.transform.start_of(range.start) * w;
        tables.transform.undo(width, coded.get_mut(from..).unwrap_or(&mut []));
        let found = coded.get(range.start * w..).filter(|found| found.len() == out.len());
        // equal lengths
        out.copy_from_slice(found.ok_or_else(|| Error::internal("a range lies outside its block"))?);
        Ok(true)
    }

    fn transform(&self, tables: &Arc<BinTables>) -> Option<String> {
        Some(tables.transform.describe())
    }

    fn describe(&self, tables: &Arc<BinTables>, block: &Block<'_>, anatomy: &mut Anatomy) -> Result<()> {
        StoredBins::split(tables, block.spec, block.stored)?.describe(anatomy);
        Ok(())
    }
}

/// Returns the transform whose coded integers take the fewest bits, and an estimate of the bytes.
fn choose_transform(
    width: Width,
    geometry: &Geometry<'_>,
    raw: &[u8],
    scratch: &mut EncodeScratch,
) -> (Transform, usize) {
    let (predicted, predicted_bytes) = best_transform(Coding::Bins, width, geometry, raw, scratch);
    let plain = if geometry.float { Transform::Rotate } else { Transform::None };
    let count = raw.len() / width.bytes();
    sampled_tops(width, geometry.float, raw, scratch);
    let top_bits = entropy_bits(&histogram(&scratch.sampled)) / scratch.sampled.len().max(1) as f64;
    // an estimate, and saturating
    let plain_bytes = (top_bits * count as f64 / 8.0) as usize + count * (width.bytes() - 1);
    if plain_bytes <= predicted_bytes { (plain, plain_bytes) } else { (predicted, predicted_bytes) }
}

impl BlockEncoder for BinBlocks {
    fn estimate(&self, geometry: &Geometry<'_>, raw: &[u8], scratch: &mut EncodeScratch) -> Option<usize> {
        let width = Width::from_bytes(geometry.element_bytes)?;
        Some(choose_transform(width, geometry, raw, scratch).1)
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
        let (transform, _) = choose_transform(width, geometry, raw, scratch);
        let EncodeScratch { symbols, low_bytes, coded, bins, .. } = scratch;
        match transform {
            Transform::Predict(prediction) => {
                coded.resize(raw.len(), 0);
                for elements in geometry.block_ranges() {
                    let bytes = elements.start * width.bytes()..elements.end * width.bytes();
                    let (Some(raw), Some(coded)) = (raw.get(bytes.clone()), coded.get_mut(bytes)) else {
                        return Err(Error::internal("a block has elements that its part has not"));
                    };
                    predict::best().residuals(&prediction, width, raw, coded);
                }
                split(width, false, coded, symbols, low_bytes);
            }
            _ => split(width, transform == Transform::Rotate, raw, symbols, low_bytes),
        }
        let (planes, count) = planes_of(width, low_bytes, symbols);
        bins.plan(transform, geometry, planes.get(..count).unwrap_or(&[]), self.most_classes, tables)?;
        Ok(true)
    }

    fn encode(
        &self,
        geometry: &Geometry<'_>,
        _: &[u8],
        elements: &Range<usize>,
        stored: &mut Vec<u8>,
        scratch: &mut EncodeScratch,
    ) -> Result<()> {
        let width = Width::from_bytes(geometry.element_bytes).ok_or_else(|| Error::internal("bins of no width"))?;
        let EncodeScratch { symbols, low_bytes, bins, .. } = scratch;
        let (planes, count) = planes_of(width, low_bytes, symbols);
        bins.encode(geometry, planes.get(..count).unwrap_or(&[]), elements, stored)
    }
}
