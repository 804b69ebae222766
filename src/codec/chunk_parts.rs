//! The parts of a chunk: checked against its column, and found in its body.

use super::blocked::BlockedPart;
use super::body::Body;
use super::part_spec::{PartSpec, Tables};
use super::registry::codec;
use crate::format::chunk::{ChunkEntry, ChunkHead};
use crate::format::part_table::{Part, PartTable};
use crate::format::schema::Layout;
use crate::{Error, Result, limits};
use std::ops::Range;

/// A chunk as it is stored, and what decoding it needs of its column.
#[derive(Clone, Copy)]
pub(crate) struct StoredChunk<'a> {
    pub layout: &'a Layout,
    pub tables: &'a dyn Tables,
    pub head: &'a ChunkHead,
    pub body: Body<'a>,
}

impl StoredChunk<'_> {
    /// Returns the parts: see [`parts`].
    pub(super) fn parts(&self) -> Result<PartTable> {
        parts(self.layout, self.head, self.body.start())
    }

    /// Returns the ranges of validity, shape and values in the body; `parts` are those of the
    /// chunk.
    pub(super) fn ranges(&self, parts: &PartTable) -> Result<[Range<usize>; 3]> {
        if self.head.entry.has_parts() {
            return parts.ranges().ok_or_else(outside);
        }
        // a chunk that is too long for this machine was not read
        Ok([0..0, 0..0, 0..usize::try_from(self.head.entry.stored_bytes).unwrap_or(usize::MAX)])
    }

    /// Checks that the column has the tables that the parts need.
    pub(super) fn check_tables(&self, parts: &PartTable) -> Result<()> {
        let all = [parts.validity, parts.shape, parts.values];
        for (part, range) in all.into_iter().zip(self.ranges(parts)?) {
            let codec = codec(part.encoding)?;
            if codec.needs_table()
                && part.raw_bytes > 0
                && let Some(table) = codec.table(self.body.start().get(range.start..).ok_or_else(outside)?)?
            {
                self.tables.dictionary(table)?;
            }
        }
        Ok(())
    }
}

/// Returns the values of a chunk in blocks, whose parts are checked as by [`parts`].
pub(crate) fn values_in_blocks<'a>(layout: &Layout, head: &ChunkHead, body: Body<'a>) -> Result<BlockedPart<'a>> {
    let table = parts(layout, head, body.start())?;
    let range = match head.entry.has_parts() {
        true => table.ranges().map(|[.., values]| values).ok_or_else(outside)?,
        false => 0..usize::try_from(head.entry.stored_bytes).map_err(|_| outside())?,
    };
    let raw_bytes = usize::try_from(table.values.raw_bytes).map_err(|_| outside())?;
    let blocks = codec(table.values.encoding)?.blocks().ok_or_else(outside)?;
    BlockedPart::parse(blocks, PartSpec::new(layout.element_bytes, raw_bytes), body, &range)
}

/// Parses the part table of a body, and checks that the column allows its parts (R-4.3, R-4.6,
///
pub(crate) fn parts(layout: &Layout, head: &ChunkHead, body: &[u8]) -> Result<PartTable> {
    if !head.entry.has_parts() {
        if layout.has_shape() {
            return Err(Error::corrupt("R-4.3", "a chunk of a ragged or nested column has no table of parts"));
        }
        let ChunkEntry { stored_bytes, encoding, .. } = head.entry;
        return Ok(PartTable::values_only(Part { stored_bytes, raw_bytes: head.raw_bytes, encoding }));
    }
    let parts = PartTable::parse(body, head.entry.stored_bytes, head.entry.encoding, head.raw_bytes)?;
    if !parts.shape.is_absent() && !layout.has_shape() {
        return Err(Error::corrupt("R-4.4", "a chunk of a fixed column has a shape part"));
    }
    if parts.validity.is_absent() && !layout.has_shape() {
        return Err(Error::corrupt("R-4.3", "a chunk has a table of parts and does not need it"));
    }
    if !parts.validity.is_absent() && !layout.may_have_nulls() {
        return Err(Error::corrupt("R-4.6", "a chunk of a column that is not nullable has nulls"));
    }
    if layout.is_nested() {
        check_validity_and_shape(&parts)?;
    }
    Ok(parts)
}

/// Checks of validity and shape of a nested column.
fn check_validity_and_shape(parts: &PartTable) -> Result<()> {
    // below 2^33
    let bytes = u64::from(parts.validity.raw_bytes) + u64::from(parts.shape.raw_bytes);
    if bytes <= u64::from(limits::VALIDITY_AND_SHAPE_BYTES) {
        return Ok(());
    }
    let message =
        format!("validity and shape of a chunk have {bytes} bytes; {} are allowed", limits::VALIDITY_AND_SHAPE_BYTES);
    Err(Error::corrupt("R-4.12", message))
}

fn outside() -> Error {
    Error::internal("the parts of a checked chunk lie outside it")
}
