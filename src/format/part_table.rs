//! Chapter 4.2: the parts of a chunk in its body.

use super::region::align;
use crate::le::{structure, u64_of};
use crate::{Error, Result};
use std::ops::Range;

structure! {
    /// Chapter 4.2: the part table.
    mod part_table: 64 bytes {
        0 => VALIDITY: [u8; 16],
        16 => SHAPE: [u8; 16],
        32 => VALUES: [u8; 16],
        48 => RESERVED: [u8; 16],
    }
}

structure! {
    /// Chapter 4.2: an entry of the part table.
    mod part_entry: 16 bytes {
        0 => STORED_BYTES: u32,
        4 => RAW_BYTES: u32,
        8 => ENCODING: u16,
        10 => RESERVED: [u8; 6],
    }
}

/// The length of the part table.
pub(crate) const PART_TABLE_BYTES: usize = part_table::SIZE;

/// An entry of the part table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Part {
    pub stored_bytes: u32,
    pub raw_bytes: u32,
    pub encoding: u16,
}

/// The lengths and encodings of the parts of a chunk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PartTable {
    pub validity: Part,
    pub shape: Part,
    pub values: Part,
}

impl PartTable {
    /// Returns the table of a body that has none, and so only values.
    pub(crate) fn values_only(values: Part) -> Self {
        Self { values, ..Self::default() }
    }

    pub(crate) fn to_bytes(self) -> [u8; PART_TABLE_BYTES] {
        let mut bytes = [0; PART_TABLE_BYTES];
        part_table::VALIDITY.put(&mut bytes, self.validity.to_bytes());
        part_table::SHAPE.put(&mut bytes, self.shape.to_bytes());
        part_table::VALUES.put(&mut bytes, self.values.to_bytes());
        bytes
    }

    /// Parses the table at the start of a body of `body_bytes`, of which at least the table was
    /// read, except for the padding. `encoding` and `raw_bytes` are those of the chunk's
    /// head.
    pub(crate) fn parse(body: &[u8], body_bytes: u32, encoding: u16, raw_bytes: u32) -> Result<Self> {
        let table: &[u8; PART_TABLE_BYTES] = body
            .first_chunk()
            .ok_or_else(|| Error::corrupt("R-4.4", "the chunk is too short for its table of parts"))?;
        let parts = Self {
            validity: Part::parse(&part_table::VALIDITY.get(table))?,
            shape: Part::parse(&part_table::SHAPE.get(table))?,
            values: Part::parse(&part_table::VALUES.get(table))?,
        };
        let all = [parts.validity, parts.shape, parts.values];
        let sum: u64 = all.iter().map(|part| u64::from(part.raw_bytes)).sum();
        let side = [parts.validity, parts.shape];
        if part_table::RESERVED.get(table) != [0; 16]
            || side.iter().any(|part| part.is_absent() && *part != Part::default())
            || parts.values.encoding != encoding
            || sum != u64::from(raw_bytes)
            || parts.values_at() + u64::from(parts.values.stored_bytes) != u64::from(body_bytes)
        {
            let message = format!("the chunk's table of parts does not fit the chunk: {parts:?}");
            return Err(Error::corrupt("R-4.4", message));
        }
        Ok(parts)
    }

    /// Returns the sum of the three decoded lengths that the table at the start of `body` states.
    /// Returns 0 if `body` is too short for a table.
    pub(super) fn sum_of_raw_bytes(body: &[u8]) -> u32 {
        let Some(table) = body.first_chunk::<PART_TABLE_BYTES>() else { return 0 };
        let entries = [part_table::VALIDITY.get(table), part_table::SHAPE.get(table), part_table::VALUES.get(table)];
        entries.iter().fold(0, |sum: u32, entry| sum.saturating_add(part_entry::RAW_BYTES.get(entry)))
    }

    /// Returns the offset of the shape part in the body.
    pub(crate) fn shape_at(&self) -> u64 {
        align(TABLE_END + u64::from(self.validity.stored_bytes), 64)
    }

    /// Returns the offset of the values in the body.
    pub(crate) fn values_at(&self) -> u64 {
        align(self.shape_at() + u64::from(self.shape.stored_bytes), 64)
    }

    /// Returns whether the bytes between the parts of `body` are zero.
    pub(crate) fn padding_is_zero(&self, body: &[u8]) -> bool {
        let gaps = [
            (TABLE_END + u64::from(self.validity.stored_bytes), self.shape_at()),
            (self.shape_at() + u64::from(self.shape.stored_bytes), self.values_at()),
        ];
        gaps.iter().all(|&(from, to)| {
            let gap = range(from, to - from).and_then(|range| body.get(range));
            gap.is_some_and(|gap| gap.iter().all(|&byte| byte == 0))
        })
    }

    /// Returns the ranges of validity, shape and values in the body. They lie inside the body if
    /// [`PartTable::parse`] has accepted it.
    pub(crate) fn ranges(&self) -> Option<[Range<usize>; 3]> {
        Some([
            range(TABLE_END, self.validity.stored_bytes.into())?,
            range(self.shape_at(), self.shape.stored_bytes.into())?,
            range(self.values_at(), self.values.stored_bytes.into())?,
        ])
    }
}

/// The offset in the body at which the part table ends and the first part begins.
const TABLE_END: u64 = u64_of(PART_TABLE_BYTES);

fn range(at: u64, length: u64) -> Option<Range<usize>> {
    let at = usize::try_from(at).ok()?;
    Some(at..at.checked_add(usize::try_from(length).ok()?)?)
}

impl Part {
    /// Returns whether validity or shape is absent.
    pub(crate) fn is_absent(&self) -> bool {
        self.raw_bytes == 0
    }

    fn to_bytes(self) -> [u8; part_entry::SIZE] {
        let mut bytes = [0; part_entry::SIZE];
        part_entry::STORED_BYTES.put(&mut bytes, self.stored_bytes);
        part_entry::RAW_BYTES.put(&mut bytes, self.raw_bytes);
        part_entry::ENCODING.put(&mut bytes, self.encoding);
        bytes
    }

    fn parse(bytes: &[u8; part_entry::SIZE]) -> Result<Self> {
        if part_entry::RESERVED.get(bytes) != [0; 6] {
            return Err(Error::corrupt("R-4.4", "reserved bytes of a part are set"));
        }
        Ok(Self {
            stored_bytes: part_entry::STORED_BYTES.get(bytes),
            raw_bytes: part_entry::RAW_BYTES.get(bytes),
            encoding: part_entry::ENCODING.get(bytes),
        })
    }
}
