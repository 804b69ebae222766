//! Chapter 5.7: the tables of tiers, and what a block of tiers begins with.

use crate::codec::anatomy::Anatomy;
use crate::codec::tier_head::TierHead;
use crate::codec::tier_plan::TierEncodeScratch;
use crate::codec::tier_stream::TierStream;
use crate::codec::transform::{TRANSFORM_BYTES, Transform};
use crate::le::structure;
use crate::{Error, Result};

structure! {
    /// Chapter 5.7: the tables of tiers, after the transform.
    mod tier_tables: 32 bytes {
        0 => WIDTHS: [u8; 3],
        3 => BY_RANK: [u8; 29],
    }
}

structure! {
    /// Chapter 5.7: what a block of tiers begins with.
    mod block_head: 8 bytes {
        0 => COUNT_2: u16,
        2 => COUNT_3: u16,
        4 => COUNT_4: u16,
        6 => RESERVED: u16,
    }
}

/// The length of the tables.
pub(in crate::codec) const TABLE_BYTES: usize = TRANSFORM_BYTES + tier_tables::SIZE;

/// The tables of tiers.
#[derive(Clone, Copy)]
pub(in crate::codec) struct TierTables {
    pub transform: Transform,
    /// Widths and ranks. The counts differ from block to block.
    pub head: TierHead,
    /// See [`TierHead::tables`].
    symbols: [[u8; 16]; 3],
}

/// The tables that were parsed last, and the bytes that they were parsed from.
#[derive(Default)]
pub(in crate::codec) struct KeptTables(Option<([u8; TABLE_BYTES], TierTables)>);

impl KeptTables {
    /// Returns [`TierTables::parse`] of these bytes.
    #[inline]
    pub(super) fn get(&mut self, tables: &[u8]) -> Result<TierTables> {
        match &self.0 {
            Some((bytes, parsed)) if bytes == tables => Ok(*parsed),
            _ => {
                let parsed = TierTables::parse(tables)?;
                self.0 = tables.first_chunk().map(|bytes| (*bytes, parsed));
                Ok(parsed)
            }
        }
    }
}

/// The sections of a block.
pub(super) struct TierBlock<'a> {
    pub low_bytes: &'a [u8],
    pub symbols: TierStream<'a>,
    /// The bytes after the literals.
    pub rest: &'a [u8],
}

#[cold]
pub(in crate::codec) fn wrong_length() -> Error {
    Error::corrupt("R-5.17", "a block of tiers does not end where its sections end")
}

impl TierTables {
    pub(super) fn new(transform: Transform, head: TierHead) -> Self {
        Self { transform, head, symbols: head.tables() }
    }

    /// Parses the tables.
    pub(super) fn parse(tables: &[u8]) -> Result<Self> {
        let split = || {
            let (transform, rest) = tables.split_first_chunk::<TRANSFORM_BYTES>()?;
            Some((transform, rest.first_chunk::<{ tier_tables::SIZE }>()?))
        };
        let (transform, tiers) = split().ok_or_else(|| Error::internal("the tables of tiers were not split off"))?;
        let head = TierHead::new(tier_tables::WIDTHS.get(tiers), tier_tables::BY_RANK.get(tiers));
        if !head.is_valid() {
            return Err(Error::corrupt("R-5.8", format!("the tables of tiers are malformed: {tiers:02x?}")));
        }
        Ok(Self::new(Transform::parse(transform)?, head))
    }

    pub(super) fn write(&self, tables: &mut Vec<u8>) {
        let mut tiers = [0; tier_tables::SIZE];
        tier_tables::WIDTHS.put(&mut tiers, self.head.widths);
        tier_tables::BY_RANK.put(&mut tiers, self.head.ranks);
        tables.extend_from_slice(&self.transform.to_bytes());
        tables.extend_from_slice(&tiers);
    }

    /// Splits the stored bytes of a block of `count` elements, which has `low_bytes`.
    #[inline]
    pub(super) fn split<'a>(&self, count: usize, low_bytes: usize, stored: &'a [u8]) -> Result<TierBlock<'a>> {
        let split = || {
            let (fields, rest) = stored.split_first_chunk::<{ block_head::SIZE }>()?;
            let counts =
                [block_head::COUNT_2.get(fields), block_head::COUNT_3.get(fields), block_head::COUNT_4.get(fields)];
            let low_bytes = rest.get(..low_bytes)?;
            let head = TierHead { escapes: counts.map(u32::from), ..self.head };
            let start = block_head::SIZE + low_bytes.len(); // inside the block
            let (symbols, rest) = TierStream::split(head, self.symbols, count, stored, start)?;
            Some((TierBlock { low_bytes, symbols, rest }, block_head::RESERVED.get(fields)))
        };
        match split() {
            Some((block, 0)) => Ok(block),
            Some(_) => Err(Error::corrupt("R-5.8", "the reserved field of a block of tiers is not zero")),
            None => Err(wrong_length()),
        }
    }
}

/// Appends a block: low bytes, and the tier stream of symbols for which `head` was planned.
pub(super) fn write_block<'l>(
    head: &TierHead,
    low_bytes: impl Iterator<Item = &'l [u8]>,
    symbols: &[u8],
    stored: &mut Vec<u8>,
    scratch: &mut TierEncodeScratch,
) -> Result<()> {
    let start = stored.len();
    stored.resize(start + block_head::SIZE, 0);
    low_bytes.for_each(|plane| stored.extend_from_slice(plane));
    let [count_2, count_3, count_4] = head.write(symbols, start, stored, scratch);
    let field = |count| u16::try_from(count).map_err(|_| Error::internal("a block has too many elements"));
    let mut block = [0; block_head::SIZE];
    block_head::COUNT_2.put(&mut block, field(count_2)?);
    block_head::COUNT_3.put(&mut block, field(count_3)?);
    block_head::COUNT_4.put(&mut block, field(count_4)?);
    stored.iter_mut().skip(start).zip(block).for_each(|(to, from)| *to = from);
    Ok(())
}

/// Describes what a block begins with.
pub(super) fn describe_head(stored: &[u8], anatomy: &mut Anatomy) {
    anatomy.add("heads of blocks", "numbers of codes", stored.get(..block_head::SIZE).unwrap_or(stored));
}
