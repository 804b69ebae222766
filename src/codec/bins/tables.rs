//! The tables of bins (chapter 5.13): transform, bins, frequencies of classes, mapping, options.
//!
//! They stand in front of the blocks of a part, which are decoded with them alone. Parsing checks
//! all that decoding relies on: bins cover the values of a window without gaps, the frequencies of
//! a class add up to 256, and fields of mapping and options fit the width of elements and numbers.
//! A reader keeps the tables that it parsed last, as one sample mostly follows another of its
//! chunk.

use super::classes::Frequencies;
use super::mappings::Mapping;
use super::options::Options;
use super::{cut, malformed_tables};
use crate::codec::{bits::ClassCodes, part::PartSpec, transform::Transform};
use crate::kernel::{
    Width,
    bins::{BINS, BinModel, CLASSES},
};
use crate::le::{Fields, structure};
use crate::{Error, Result, memory};
use std::sync::Arc;

structure! {
    /// Chapter 5.13: what tells where the tables end.
    mod length: 4 bytes {
        0 => TABLE_BYTES: u32,
    }
}

structure! {
    /// Chapter 5.13: what the tables begin with.
    mod table_head: 24 bytes with length {
        4 => TRANSFORM: [u8; 16],
        20 => LOW_BYTES: u8,
        21 => BIN_COUNT: u8,
        22 => CLASS_COUNT: u8,
        23 => MAPPING: u8,
    }
}

const MOST_BITS: u8 = 15;

pub(super) const TABLE_HEAD_BYTES: usize = table_head::SIZE;

/// Bins, frequencies and classes, as the front states them.
#[derive(Clone)]
pub(crate) struct BinTables {
    pub transform: Transform,
    /// Bytes of a coded integer below its window.
    pub low_bytes: usize,
    pub model: BinModel,
    pub bin_count: usize,
    pub class_count: usize,
    pub mapping: Mapping,
    pub options: Options,
}

/// Returns the length of the tables, from the bytes that they begin with; `None` if these are too
/// few, or if the length does not include its own field.
pub(crate) fn table_bytes(tables: &[u8]) -> Option<usize> {
    let bytes = usize::try_from(length::TABLE_BYTES.get(tables.first_chunk()?)).ok()?;
    (bytes >= length::SIZE).then_some(bytes)
}

/// The fields of the tables that writers choose.
#[derive(Clone, Copy)]
pub(super) struct ChosenFields<'a> {
    /// The width of elements.
    pub width: Width,
    pub mapping: &'a Mapping,
    pub options: &'a Options,
    pub transform: Transform,
    pub low_bytes: usize,
}

pub(super) fn write_tables(
    head: ChosenFields<'_>,
    bins: &[u8],
    classes: &[Frequencies],
    tables: &mut Vec<u8>,
) -> Result<()> {
    let start = tables.len();
    tables.resize(start + table_head::SIZE, 0);
    tables.extend_from_slice(bins);
    for class in classes {
        let (first, frequencies) = class.range();
        tables.extend([first as u8, frequencies.len() as u8]); // exact: at most 64
        tables.extend_from_slice(frequencies);
    }
    head.mapping.write(tables);
    head.options.write(head.width, tables);
    let field = |count: usize| u8::try_from(count).map_err(|_| Error::internal("bins have too many of something"));
    let table_bytes = u32::try_from(tables.len() - start).map_err(|_| cut())?;
    let to = tables.get_mut(start..).and_then(<[u8]>::first_chunk_mut).ok_or_else(cut)?;
    table_head::TRANSFORM.put(to, head.transform.to_bytes());
    table_head::LOW_BYTES.put(to, field(head.low_bytes)?);
    table_head::BIN_COUNT.put(to, field(bins.len())?);
    table_head::CLASS_COUNT.put(to, field(classes.len())?);
    table_head::MAPPING.put(to, head.mapping.kind() | head.options.bits());
    let to = to.first_chunk_mut().ok_or_else(cut)?;
    length::TABLE_BYTES.put(to, table_bytes);
    Ok(())
}

impl BinTables {
    /// Parses tables.
    pub(crate) fn parse(spec: PartSpec<'_>, tables: &[u8]) -> Result<Self> {
        let mut parsed = Self {
            transform: Transform::None,
            low_bytes: 0,
            model: BinModel::default(),
            bin_count: 0,
            class_count: 0,
            mapping: Mapping::None,
            options: Options::default(),
        };
        parsed.set(spec, tables).map(|()| parsed)
    }

    /// Becomes what [`BinTables::parse`] returns. On an error, its contents are unspecified.
    fn set(&mut self, spec: PartSpec<'_>, tables: &[u8]) -> Result<()> {
        let (width, _) = spec.width_and_count()?;
        let (head, rest) = tables.split_first_chunk::<{ table_head::SIZE }>().ok_or_else(cut)?;
        self.transform = Transform::parse_of_bins(&table_head::TRANSFORM.get(head))?;
        self.low_bytes = table_head::LOW_BYTES.get(head).into();
        self.bin_count = table_head::BIN_COUNT.get(head).into();
        self.class_count = table_head::CLASS_COUNT.get(head).into();
        let (mapping, options) = Options::split(table_head::MAPPING.get(head));
        let fields = [
            ("bin_count", (2..=BINS).contains(&self.bin_count)),
            ("class_count", (1..=CLASSES).contains(&self.class_count)),
            ("mapping", Mapping::is_known(mapping) && Options::are_known(options)),
        ];
        if let Some((wrong, _)) = fields.into_iter().find(|(_, is_right)| !is_right) {
            return Err(malformed_tables(&format!("{wrong} is out of range")));
        }
        let (bins, mut rest) = rest.split_at_checked(self.bin_count).ok_or_else(cut)?;
        for class in 0..self.class_count {
            rest = self.set_class(class, rest)?;
        }
        let mut rest = Fields::new(rest);
        self.mapping.set(mapping, width, &mut rest)?;
        self.options = Options::parse(options, width, &mut rest)?;
        if rest.remaining() > 0 {
            return Err(cut());
        }
        let width = self.mapping.widths(width).number;
        if self.low_bytes > width.bytes().saturating_sub(2) {
            return Err(malformed_tables("low_bytes is out of range"));
        }
        check_bins(bins, 8 * width.bytes().min(2))?;
        self.options.check_numbers(width, self.low_bytes, self.transform)?;
        self.model.set_bins(bins);
        Ok(())
    }

    /// Sets the frequencies of a class. Returns the bytes after them.
    fn set_class<'a>(&mut self, class: usize, rest: &'a [u8]) -> Result<&'a [u8]> {
        let ([first, count], rest) = rest.split_first_chunk().ok_or_else(cut)?;
        let (first, count) = (usize::from(*first), usize::from(*count));
        let (frequencies, rest) = rest.split_at_checked(count).ok_or_else(cut)?;
        let sum: u32 = frequencies.iter().map(|&frequency| u32::from(frequency)).sum();
        if first + count > self.bin_count || sum != 256 {
            return Err(malformed_tables(&format!(
                "the frequencies of class {class} are {sum}, not 256, or of no bins"
            )));
        }
        self.model.set_class(class, first, frequencies);
        Ok(rest)
    }

    /// Returns whether elements are coded themselves, and all of them.
    pub(crate) fn is_plain(&self) -> bool {
        matches!(self.mapping, Mapping::None) && self.options.are_none()
    }

    pub(super) fn class_codes(&self) -> ClassCodes {
        ClassCodes::new(self.class_count)
    }
}

/// Checks of the bins of windows of `window_bits`.
fn check_bins(bins: &[u8], window_bits: usize) -> Result<()> {
    let mut start = 0_u32;
    for &bits in bins {
        if bits > MOST_BITS || !start.is_multiple_of(1 << bits) {
            return Err(malformed_tables(&format!("a bin of 2^{bits} values begins at {start}")));
        }
        start += 1 << bits; // at most 64 times 2^15
    }
    if start != 1 << window_bits {
        return Err(malformed_tables(&format!("the bins end at {start}, not at 2^{window_bits}")));
    }
    Ok(())
}

/// The tables that were parsed last, and the bytes that they were parsed from.
#[derive(Default)]
pub(crate) struct KeptBins(Option<ParsedBins>);

struct ParsedBins {
    element_bytes: usize,
    bytes: Vec<u8>,
    tables: Arc<BinTables>,
}

impl KeptBins {
    /// Returns the tables that are parsed from these bytes. Parses them in the memory of the last
    /// ones, if nobody else has these.
    pub(crate) fn get(&mut self, spec: PartSpec<'_>, bytes: &[u8]) -> Result<Arc<BinTables>> {
        match &mut self.0 {
            Some(kept) if kept.element_bytes == spec.element_bytes && kept.bytes == bytes => {}
            Some(kept) => {
                kept.element_bytes = 0; // none, unless they are right
                kept.bytes.clear();
                match Arc::get_mut(&mut kept.tables) {
                    Some(tables) => tables.set(spec, bytes)?,
                    None => kept.tables = Arc::new(BinTables::parse(spec, bytes)?),
                }
                memory::extend(&mut kept.bytes, bytes)?;
                kept.element_bytes = spec.element_bytes;
            }
            None => {
                let tables = Arc::new(BinTables::parse(spec, bytes)?);
                let bytes = memory::copied(bytes)?;
                self.0 = Some(ParsedBins { element_bytes: spec.element_bytes, bytes, tables });
            }
        }
        self.0.as_ref().map(|kept| Arc::clone(&kept.tables)).ok_or_else(cut)
    }
}
