//! Dictionaries (chapter 5.14): tables of the values that occur.
//!
//! If elements have few distinct values, such as pixels, prices or tokens, bins code the index of
//! the value instead. A dictionary by value is sorted, so indices are as predictable as the
//! elements. A dictionary by frequency begins with the most frequent values. It suits categorical
//! values, such as token ids, which cannot be predicted. Each channel can have its own dictionary.
//! Each value is stored as a *step*, its distance from the line through the two values before it.
//! Evenly spaced values lie on such a line, and need one or two bytes each.
//!
//! Writers look at a sample before they fill a table of all values, because most parts have too
//! many values. For 2-byte values, a table indexed by value costs less than looking at a sample.

use super::{cut, malformed_mapped, malformed_mapping, number_width};
use crate::Result;
use crate::bytes::le::Fields;
use crate::bytes::memory;
use crate::codec::{
    bits::{signed, wide, with_width},
    part::Geometry,
};
use crate::kernel::{
    Width,
    dictionaries::{self, DictionaryTables},
};

/// The bit of `dictionary_flags` that is set for floats.
const FLOAT: u8 = 1;
/// The maximum size of a number in bytes.
const MAX_NUMBER_BYTES: usize = 2;

/// Dictionaries of values. Element `i` of a block uses dictionary `i` modulo the number of
/// dictionaries.
#[derive(Clone, Default)]
pub(crate) struct Dictionaries {
    is_wide: bool,
    float: bool,
    element_bytes: usize,
    /// The values of all dictionaries, in the byte order of the file.
    pub(super) values: Vec<u8>,
    /// The end of each dictionary, as an index into the values.
    pub(super) ends: Vec<usize>,
}

impl Dictionaries {
    pub(super) fn number_width(&self) -> Width {
        if self.is_wide { Width::W2 } else { Width::W1 }
    }

    /// Parses dictionaries in place, and checks.
    pub(super) fn set(&mut self, width: Width, fields: &mut Fields<'_>) -> Result<()> {
        let [number_bytes, flags, count, reserved] = fields.array().ok_or_else(cut)?;
        self.is_wide = number_width(number_bytes, width.bytes().min(MAX_NUMBER_BYTES))? == Width::W2;
        if flags > FLOAT || count == 0 || reserved != 0 {
            return Err(malformed_mapping("dictionary_flags, dictionary_count or the reserved byte is invalid"));
        }
        self.float = flags == FLOAT;
        self.element_bytes = width.bytes();
        self.values.clear();
        self.ends.clear();
        for _ in 0..count {
            let max_number = u16::from_le_bytes(fields.array().ok_or_else(cut)?);
            self.set_dictionary(width, usize::from(max_number) + 1, fields)?;
        }
        Ok(())
    }

    fn set_dictionary(&mut self, width: Width, count: usize, fields: &mut Fields<'_>) -> Result<()> {
        if count > fields.remaining() {
            return Err(cut()); // a step has at least one byte
        }
        memory::reserve(&mut self.values, count * width.bytes())?;
        let mut line = Line::new(width, self.float);
        for _ in 0..count {
            let value = line.value(step(width, fields)?);
            self.values.extend(value.to_le_bytes().iter().take(width.bytes()));
        }
        self.ends.push(self.values.len() / width.bytes());
        Ok(())
    }

    pub(super) fn write(&self, tables: &mut Vec<u8>) {
        let Some(width) = Width::from_bytes(self.element_bytes) else { return };
        let count = self.ends.len() as u8; // exact: writers make at most 255
        let flags = if self.float { FLOAT } else { 0 };
        tables.extend([self.number_width() as u8, flags, count, 0]); // exact: a width
        let mut start = 0;
        for &end in &self.ends {
            let values = start * width.bytes()..end * width.bytes();
            let dictionary = self.values.get(values).unwrap_or(&[]);
            // exact: at most 2^16 values
            tables.extend(((end - start).saturating_sub(1) as u16).to_le_bytes());
            start = end;
            let mut line = Line::new(width, self.float);
            for value in dictionary.chunks_exact(width.bytes()) {
                write_step(line.step(wide(value).cast_unsigned()), tables);
            }
        }
    }

    pub(super) fn describe(&self) -> String {
        match &self.ends[..] {
            [count] => format!("a dictionary of {count} values"),
            ends => {
                format!("{} dictionaries, {} values in all", ends.len(), self.values.len() / self.element_bytes.max(1))
            }
        }
    }

    /// Looks up the values of numbers, and writes them to `out`. The first number belongs to
    /// element `first` of the block. Checks.
    pub(super) fn elements(&self, numbers: &[u8], first: usize, out: &mut [u8]) -> Result<()> {
        // always valid: `set` and `new` take it from a width
        let Some(width) = Width::from_bytes(self.element_bytes) else { return Ok(()) };
        let tables = DictionaryTables { width, is_wide: self.is_wide, values: &self.values, ends: &self.ends };
        match dictionaries::best().look_up(&tables, first, numbers, out) {
            true => Ok(()),
            false => Err(malformed_mapped("a number is beyond the end of its dictionary")),
        }
    }
}

/// Predicts each value from the line through the two values before it.
struct Line {
    top: u64,
    float: bool,
    last: u64,
    before: u64,
}

impl Line {
    fn new(width: Width, float: bool) -> Self {
        Self { top: 1 << (8 * width.bytes() - 1), float, last: 0, before: 0 }
    }

    /// Returns the modulus of the integers, minus one.
    fn mask(&self) -> u64 {
        self.top | (self.top - 1)
    }

    /// Maps a value to an integer that sorts like the float, or maps it back.
    fn mapped(&self, value: u64) -> u64 {
        if self.float && value & self.top != 0 { value ^ (self.top - 1) } else { value }
    }

    fn predicted(&self) -> u64 {
        self.last.wrapping_mul(2).wrapping_sub(self.before)
    }

    fn advance(&mut self, m: u64) {
        (self.before, self.last) = (self.last, m);
    }

    fn value(&mut self, step: u64) -> u64 {
        let residual = (step >> 1) ^ (step & 1).wrapping_neg();
        let m = self.predicted().wrapping_add(residual) & self.mask();
        self.advance(m);
        self.mapped(m)
    }

    fn step(&mut self, value: u64) -> u64 {
        let m = self.mapped(value);
        let residual = m.wrapping_sub(self.predicted()) & self.mask();
        self.advance(m);
        let doubled = residual << 1;
        (if residual & self.top != 0 { !doubled } else { doubled }) & self.mask()
    }
}

/// Reads a step, and checks.
fn step(width: Width, fields: &mut Fields<'_>) -> Result<u64> {
    let bits = 8 * width.bytes();
    let mut step = 0;
    let mut at = 0;
    loop {
        let [byte] = fields.array().ok_or_else(cut)?;
        let value = u64::from(byte & 0x7F);
        // no bits beyond the width, and no last byte of zeros unless it is the only byte
        if at >= bits || bits - at < 7 && value >> (bits - at) != 0 || byte == 0 && at > 0 {
            return Err(malformed_mapping("a step is too large or too long"));
        }
        step |= value << at;
        at += 7;
        if byte & 0x80 == 0 {
            return Ok(step);
        }
    }
}

fn write_step(mut step: u64, tables: &mut Vec<u8>) {
    while step >= 0x80 {
        tables.push(step as u8 | 0x80); // the lowest bits
        step >>= 7;
    }
    tables.push(step as u8); // exact: below 2^7
}

/// The maximum number of values in dictionaries. With more values, the table costs as much as it
/// saves.
const MAX_VALUES: usize = 4096;
/// The maximum for dictionaries by frequency, which save more.
const MAX_VALUES_BY_FREQUENCY: usize = 16384;
/// The minimum number of elements per value of a dictionary. Dictionaries by frequency need only a
/// quarter of this number.
const MIN_ELEMENTS_PER_VALUE: usize = 16;
/// The number of sampled elements whose values are counted.
const SAMPLE_ELEMENTS: usize = 4096;
/// The number of slots of a hash table per value that it can hold.
const SLOTS_PER_VALUE: usize = 4;
/// The number of sampled elements whose distance to the next larger value is measured.
const SAMPLED_DISTANCES: usize = 512;
/// The minimum saving that [`may_save`] must estimate, in bits per value of the dictionary. The
/// table needs about 8 bits per value, but the estimate is too low: it rounds the distances between
/// values down to powers of two, and residuals become shorter by more bits than elements do.
const MIN_BITS_SAVED_PER_VALUE: usize = 6;
/// [`may_save`] accepts every sample with at most this many values, because filters predict
/// their indices well: indices sort like the values, even if floats have both signs.
const FEW_VALUES: u32 = 320;
const SHORT_VALUES: usize = 1 << 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DictionaryOrder {
    /// In ascending order, so indices are as predictable as the elements.
    ByValue,
    /// The most frequent values first, for categorical values such as token ids. Frequencies are
    /// rounded down to powers of two. Values with the same rounded frequency are in ascending
    /// order, so that their steps are small.
    ByFrequency,
}

/// A request for dictionaries.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DictionaryRequest<'a> {
    pub order: DictionaryOrder,
    /// The number of dictionaries. Element `i` of a block uses dictionary `i` modulo this number.
    pub count: usize,
    /// All elements that will use the dictionaries, and their geometry.
    pub geometry: &'a Geometry<'a>,
    pub elements: &'a [u8],
    /// A sample of the elements, used to stop the search early if dictionaries do not seem
    /// worthwhile; `None` to always search all elements.
    pub sample: Option<&'a [u8]>,
}

/// The values that occur, each with a number, in a hash table with open addressing.
struct ValueTable {
    /// The index of a value plus 1, for each used slot. The number of slots is a power of two.
    slots: Vec<u16>,
    /// The values, in the order of their first occurrence.
    values: Vec<i64>,
    /// The number of elements with each value.
    counts: Vec<u32>,
    numbers: Vec<u16>,
    max_values: usize,
}

impl ValueTable {
    /// Creates a table for at most `max_values` values, which is below 2^16.
    fn new(max_values: usize) -> Self {
        let slots = SLOTS_PER_VALUE * max_values.max(1).next_power_of_two();
        Self { slots: vec![0; slots], values: Vec::new(), counts: Vec::new(), numbers: Vec::new(), max_values }
    }

    /// Returns the index of a value or, if it is absent, the free slot where it belongs.
    fn find(&self, value: i64) -> std::result::Result<usize, usize> {
        // Fibonacci hashing (Knuth, The Art of Computer Programming, 6.4)
        let product = value.cast_unsigned().wrapping_mul(0x9E37_79B9_7F4A_7C15);
        // in bounds: below the number of slots
        let mut at = (product >> (64 - self.slots.len().trailing_zeros())) as usize;
        // terminates: there are more slots than values
        while let Some(index) = self.slots.get(at).and_then(|slot| slot.checked_sub(1)) {
            if self.values.get(usize::from(index)) == Some(&value) {
                return Ok(index.into());
            }
            at = (at + 1) & (self.slots.len() - 1); // the length is a power of two
        }
        Err(at)
    }

    /// Adds an element. Returns `false` if there are too many values.
    fn add(&mut self, value: i64) -> bool {
        match self.find(value) {
            Ok(index) => {
                if let Some(count) = self.counts.get_mut(index) {
                    *count += 1; // a part has fewer than 2^32 elements
                }
                true
            }
            Err(free) if self.values.len() < self.max_values => {
                self.values.push(value);
                self.counts.push(1);
                if let Some(slot) = self.slots.get_mut(free) {
                    *slot = self.values.len() as u16; // exact: at most `max_values`
                }
                true
            }
            Err(_) => false,
        }
    }

    /// Numbers the values in `order`, and returns them in this order.
    fn sort(&mut self, order: DictionaryOrder, key: impl Fn(i64) -> i64) -> Vec<i64> {
        let octave = |count: u32| if order == DictionaryOrder::ByFrequency { count.leading_zeros() } else { 0 };
        let values = (0..).zip(self.values.iter().zip(&self.counts));
        // a value and its index; values differ, so indices do not affect the order
        let mut sorted: Vec<(u32, i64, usize)> =
            values.map(|(index, (&value, &count))| (octave(count), key(value), index)).collect();
        sorted.sort_unstable();
        self.numbers.resize(sorted.len(), 0);
        for (number, &(_, _, index)) in (0..).zip(&sorted) {
            if let Some(to) = self.numbers.get_mut(index) {
                *to = number;
            }
        }
        sorted.into_iter().filter_map(|(_, _, index)| self.values.get(index).copied()).collect()
    }

    fn number<const W: usize>(&self, element: [u8; W]) -> u16 {
        self.find(wide(&element)).ok().and_then(|index| self.numbers.get(index).copied()).unwrap_or(0)
    }
}

/// The index of each 2-byte value that occurs. The entries of other values are not used.
struct ShortTable(Vec<u16>);

impl ShortTable {
    /// Creates a table of the values of some elements. Also returns these values in ascending
    /// order.
    fn new(elements: impl Iterator<Item = [u8; 2]>, float: bool) -> (Self, Vec<i64>) {
        let mut numbers = vec![0; SHORT_VALUES];
        // in bounds
        elements.for_each(|element| numbers[usize::from(u16::from_le_bytes(element))] = 1);
        let mut values = Vec::new();
        for (i, eight) in numbers.chunks_exact(8).enumerate() {
            if eight.iter().any(|&seen| seen != 0) {
                let seen = eight.iter().enumerate().filter(|(_, seen)| **seen != 0);
                values.extend(seen.map(|(k, _)| (8 * i + k) as u16)); // exact: below 2^16
            }
        }
        let positive = values.partition_point(|value: &u16| value.cast_signed() >= 0);
        let negative = values.len() - positive;
        values.rotate_left(positive);
        if float && let Some(negative) = values.get_mut(..negative) {
            negative.reverse();
        }
        // in bounds
        (0..=u16::MAX).zip(&values).for_each(|(number, &value)| numbers[usize::from(value)] = number);
        (Self(numbers), values.into_iter().map(i64::from).collect())
    }

    fn number(&self, element: [u8; 2]) -> u16 {
        self.0[usize::from(u16::from_le_bytes(element))] // in bounds
    }
}

/// Dictionaries of all elements of a part, and the tables from values to numbers.
pub(crate) struct DictionaryPlan {
    pub(super) dictionaries: Dictionaries,
    /// The stored size of the dictionaries.
    pub(super) bytes: usize,
    tables: Tables,
}

enum Tables {
    Short(Vec<ShortTable>),
    Wide(Vec<ValueTable>),
}

/// Finds dictionaries; `None` if there are too many values.
pub(crate) fn find_dictionaries(width: Width, request: DictionaryRequest<'_>) -> Option<DictionaryPlan> {
    let max_values = request.max_values(width.bytes());
    // for 2-byte values, a table of all values costs less than looking at the sample
    if let Some(sample) = request.sample
        && (width, request.order) != (Width::W2, DictionaryOrder::ByValue)
        && !with_width!(width, W => has_few_values::<W>(max_values, sample))
    {
        return None;
    }
    match (width, request.order) {
        (Width::W1, _) => None,
        (Width::W2, DictionaryOrder::ByValue) => find_short(request),
        _ => with_width!(width, W => find::<W>(width, request)),
    }
}

/// Returns whether, judging by a sample, dictionaries of 2-byte values could save more than the
/// size of their tables. The answer is not certain, because the whole part has more values than the
/// sample, and shorter distances between them.
fn may_save(sample: &[u8], element_bytes: usize) -> bool {
    let sample = sample.as_chunks().0;
    let mut seen = [0_u64; SHORT_VALUES / 64];
    for value in sample.iter().copied().map(u16::from_le_bytes).map(usize::from) {
        seen[value / 64] |= 1 << (value % 64); // in bounds
    }
    let value_count: u32 = seen.iter().map(|word| word.count_ones()).sum();
    if value_count <= FEW_VALUES {
        return true;
    }
    // the distance to the next larger value
    let distance = |value: usize| {
        let above = seen[value / 64] & (u64::MAX - 1) << (value % 64); // in bounds
        let mut above = std::iter::once(above).chain(seen[value / 64 + 1..].iter().copied()).enumerate();
        let next = above.find(|(_, word)| *word != 0);
        next.map_or(1, |(words, word)| (value / 64 + words) * 64 + word.trailing_zeros() as usize - value)
    };
    let some = sample.iter().step_by((sample.len() / SAMPLED_DISTANCES).max(1)).copied().map(u16::from_le_bytes);
    let bits: usize = some.clone().map(|value| distance(value.into()).ilog2() as usize).sum();
    bits * element_bytes / 2 / some.len().max(1) >= MIN_BITS_SAVED_PER_VALUE * value_count as usize
}

/// Finds dictionaries by value for 2-byte elements.
fn find_short(request: DictionaryRequest<'_>) -> Option<DictionaryPlan> {
    let DictionaryRequest { count, geometry, elements, .. } = request;
    if count == 1 && request.sample.is_some_and(|sample| !may_save(sample, elements.len())) {
        return None;
    }
    let channel_table = |channel: usize| {
        let blocks = geometry.blocks_of(elements).map(|block| block.as_chunks().0);
        let channel_elements =
            blocks.flat_map(move |block| block.get(channel..).unwrap_or(&[]).iter().step_by(count.max(1)));
        ShortTable::new(channel_elements.copied(), geometry.float)
    };
    let (tables, values): (Vec<_>, Vec<_>) = (0..count.max(1)).map(channel_table).unzip();
    let is_small = values.iter().map(Vec::len).sum::<usize>() <= request.max_values(2);
    if !is_small || values.iter().any(Vec::is_empty) {
        return None;
    }
    Some(DictionaryPlan::new(Width::W2, geometry.float, &values, Tables::Short(tables)))
}

fn find<const W: usize>(width: Width, request: DictionaryRequest<'_>) -> Option<DictionaryPlan> {
    let (max_values, count, float) = (request.max_values(W), request.count.max(1), request.geometry.float);
    let mut tables: Vec<ValueTable> = (0..request.count).map(|_| ValueTable::new(max_values)).collect();
    for block in request.geometry.blocks_of(request.elements) {
        // channel by channel, to avoid a division for each element
        for (channel, table) in tables.iter_mut().enumerate() {
            let mut channel_elements = block.as_chunks::<W>().0.get(channel..).unwrap_or(&[]).iter().step_by(count);
            if !channel_elements.all(|element| table.add(wide(element))) {
                return None;
            }
        }
    }
    let value_count: usize = tables.iter().map(|table| table.values.len()).sum();
    if value_count > max_values || tables.iter().any(|table| table.values.is_empty()) {
        return None;
    }
    let key = |value: i64| {
        let value = signed(value, W);
        if float && value < 0 { value ^ i64::MAX >> (64 - 8 * W) } else { value }
    };
    let values: Vec<_> = tables.iter_mut().map(|table| table.sort(request.order, key)).collect();
    Some(DictionaryPlan::new(width, float, &values, Tables::Wide(tables)))
}

impl DictionaryPlan {
    fn new(width: Width, float: bool, values: &[Vec<i64>], tables: Tables) -> Self {
        let is_wide = values.iter().any(|values| values.len() > 256);
        let mut dictionaries = Dictionaries { is_wide, float, element_bytes: width.bytes(), ..Dictionaries::default() };
        for values in values {
            let bytes = values.iter().flat_map(|value| value.to_le_bytes().into_iter().take(width.bytes()));
            dictionaries.values.extend(bytes);
            dictionaries.ends.push(dictionaries.values.len() / width.bytes());
        }
        let mut written = Vec::new();
        dictionaries.write(&mut written);
        Self { dictionaries, bytes: written.len(), tables }
    }

    /// Appends the numbers of `raw`, which has some or all of the elements.
    pub(super) fn append_numbers(&self, geometry: &Geometry<'_>, raw: &[u8], numbers: &mut Vec<u8>) {
        match &self.tables {
            Tables::Short(tables) => self.append_with(tables, ShortTable::number, geometry, raw, numbers),
            Tables::Wide(tables) => match geometry.element_bytes {
                2 => self.append_with(tables, ValueTable::number::<2>, geometry, raw, numbers),
                4 => self.append_with(tables, ValueTable::number::<4>, geometry, raw, numbers),
                _ => self.append_with(tables, ValueTable::number::<8>, geometry, raw, numbers),
            },
        }
    }

    fn append_with<T, const W: usize>(
        &self,
        tables: &[T],
        number: impl Fn(&T, [u8; W]) -> u16,
        geometry: &Geometry<'_>,
        raw: &[u8],
        numbers: &mut Vec<u8>,
    ) {
        let is_wide = self.dictionaries.is_wide;
        let count = tables.len().max(1);
        for block in geometry.blocks_of(raw) {
            let elements = block.as_chunks().0;
            let start = numbers.len();
            numbers.resize(start + elements.len() * if is_wide { 2 } else { 1 }, 0);
            let to = numbers.get_mut(start..).unwrap_or(&mut []);
            // element `i` uses table `i` modulo the number of tables
            for (i, table) in tables.iter().enumerate() {
                let channel_elements = elements.get(i..).unwrap_or(&[]).iter().step_by(count);
                let channel_elements = channel_elements.map(|&element| number(table, element));
                if is_wide {
                    let to = to.as_chunks_mut().0.iter_mut().skip(i).step_by(count);
                    to.zip(channel_elements).for_each(|(to, number)| *to = number.to_le_bytes());
                } else {
                    let to = to.iter_mut().skip(i).step_by(count);
                    to.zip(channel_elements).for_each(|(to, number)| *to = number as u8); // exact: below 256
                }
            }
        }
    }
}

impl DictionaryRequest<'_> {
    /// Returns the maximum number of values in all dictionaries together, for elements of this
    /// size.
    fn max_values(&self, element_bytes: usize) -> usize {
        let (max_values, elements_per_value) = match self.order {
            DictionaryOrder::ByValue => (MAX_VALUES, MIN_ELEMENTS_PER_VALUE),
            DictionaryOrder::ByFrequency => (MAX_VALUES_BY_FREQUENCY, MIN_ELEMENTS_PER_VALUE / 4),
        };
        max_values.min(self.elements.len() / element_bytes.max(1) / elements_per_value)
    }
}

/// Returns whether the first elements of a sample have at most `max_values` distinct values.
fn has_few_values<const W: usize>(max_values: usize, sample: &[u8]) -> bool {
    let mut table = ValueTable::new(max_values);
    sample.as_chunks::<W>().0.iter().take(SAMPLE_ELEMENTS).all(|element| table.add(wide(element)))
}
