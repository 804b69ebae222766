//! Samples of nested columns as trees, and conversions to and from batches, buffers and lists.

use proptest::prelude::*;
use tensilo::nested::{List, ListBatch};
use tensilo::sink::Sink;
use tensilo::{ColumnBatch, ColumnBuffer, ColumnSchema, DType, Extent, Sample, Shape, Writer};
use tensilo_testing::Random;

/// A sample, a list or an item.
#[derive(Clone, Debug, PartialEq)]
pub enum Entry {
    Null,
    List(Vec<Entry>),
    Item { extents: Vec<u32>, bytes: Vec<u8> },
}

#[derive(Clone, Debug)]
pub struct Plan {
    pub dtype: DType,
    pub shape: Vec<Extent>,
    /// Whether the entries of each level may be null; samples come first.
    pub nullable: Vec<bool>,
    pub sample_count: usize,
    pub seed: u64,
}

pub fn arbitrary_plan() -> impl Strategy<Value = Plan> {
    let tensors = prop::sample::select(vec![
        (DType::U8, vec![]),
        (DType::F32, vec![Extent::Fixed(3)]),
        (DType::I16, vec![Extent::Varying]),
        (DType::U8, vec![Extent::Varying, Extent::Fixed(2), Extent::Varying]),
        (DType::Bool, vec![Extent::Fixed(0)]),
        (DType::Utf8, vec![Extent::Varying]),
        (DType::Bytes, vec![Extent::Varying]),
        (DType::F64, vec![Extent::Fixed(2), Extent::Fixed(2)]),
    ]);
    (tensors, prop::collection::vec(any::<bool>(), 2..6), 0..80_usize, any::<u64>())
        .prop_map(|((dtype, shape), nullable, sample_count, seed)| Plan { dtype, shape, nullable, sample_count, seed })
}

impl Plan {
    pub fn schema(&self, name: &str) -> ColumnSchema {
        let mut column = ColumnSchema::tensor(name, self.dtype, Shape::new(self.shape.iter().copied()));
        for &nullable in self.nullable[1..].iter().rev() {
            column.nullable = nullable;
            column = column.list();
        }
        column.nullable = self.nullable[0];
        column
    }

    pub fn entries(&self) -> Vec<Entry> {
        let random = &mut Random(self.seed);
        (0..self.sample_count).map(|_| self.entry(0, random)).collect()
    }

    fn entry(&self, level: usize, random: &mut Random) -> Entry {
        if self.nullable[level] && random.below(4) == 0 {
            return Entry::Null;
        }
        if level + 1 < self.nullable.len() {
            return Entry::List((0..random.below(4)).map(|_| self.entry(level + 1, random)).collect());
        }
        let mut extents = Vec::new();
        let mut elements = 1;
        for extent in &self.shape {
            elements *= match extent {
                Extent::Fixed(extent) => *extent,
                Extent::Varying => {
                    extents.push(random.below(5) as u32);
                    *extents.last().unwrap()
                }
            };
        }
        let bytes = (0..elements as usize * self.dtype.element_bytes())
            .map(|_| if self.dtype == DType::Bool { 1 } else { b'a' + random.below(26) as u8 })
            .collect();
        Entry::Item { extents, bytes }
    }
}

/// Entries laid out level by level.
#[derive(Default)]
struct Flat {
    lengths: Vec<Vec<u32>>,
    validity: Vec<Vec<u8>>,
    extents: Vec<u32>,
    values: Vec<u8>,
    items: usize,
}

fn flat(plan: &Plan, samples: &[Entry]) -> Flat {
    let mut out = Flat::default();
    let mut entries: Vec<&Entry> = samples.iter().collect();
    let varying = plan.shape.iter().filter(|extent| **extent == Extent::Varying).count();
    let fixed = plan.schema("x").shape.inner_elements().unwrap() as usize * plan.dtype.element_bytes();
    for level in 0..plan.nullable.len() {
        let mut bits = vec![0; entries.len().div_ceil(8)];
        (0..entries.len()).filter(|&i| *entries[i] != Entry::Null).for_each(|i| bits[i / 8] |= 1 << (i % 8));
        out.validity.push(bits);
        if level + 1 == plan.nullable.len() {
            break;
        }
        let members = |entry: &Entry| if let Entry::List(members) = entry { members.len() as u32 } else { 0 };
        out.lengths.push(entries.iter().map(|entry| members(entry)).collect());
        let below = entries.iter().flat_map(|entry| if let Entry::List(members) = entry { &members[..] } else { &[] });
        entries = below.collect();
    }
    out.items = entries.len();
    for item in entries {
        if let Entry::Item { extents, bytes } = item {
            out.extents.extend(extents);
            out.values.extend(bytes);
        } else {
            out.extents.extend(vec![0; varying]);
            out.values.extend(vec![0; if varying == 0 { fixed } else { 0 }]);
        }
    }
    out
}

/// Samples of one column, level by level.
struct Batch<'a> {
    plan: &'a Plan,
    flat: Flat,
}

impl Batch<'_> {
    fn lists(&self) -> Vec<ListBatch<'_>> {
        let levels = self.flat.lengths.iter().zip(&self.flat.validity).zip(&self.plan.nullable);
        levels
            .map(|((lengths, bits), nullable)| {
                let lists = ListBatch::new(lengths);
                if *nullable { lists.with_validity(bits) } else { lists }
            })
            .collect()
    }

    fn items(&self) -> ColumnBatch<'_> {
        let Flat { extents, values, items, validity, .. } = &self.flat;
        let batch = ColumnBatch::from_bytes(self.plan.dtype, *items, extents, values);
        if *self.plan.nullable.last().unwrap() { batch.with_validity(validity.last().unwrap()) } else { batch }
    }
}

/// Pushes samples of all columns as one batch.
pub fn push<K: Sink>(writer: &mut Writer<K>, columns: &[(&Plan, &[Entry])]) -> tensilo::Result<()> {
    let batches: Vec<Batch<'_>> =
        columns.iter().map(|(plan, samples)| Batch { plan, flat: flat(plan, samples) }).collect();
    let lists: Vec<Vec<ListBatch<'_>>> = batches.iter().map(Batch::lists).collect();
    let columns: Vec<ColumnBatch<'_>> =
        batches.iter().zip(&lists).map(|(batch, lists)| batch.items().in_lists(lists)).collect();
    writer.push_batch(&columns)
}

/// Pushes samples in batches of at most `batch`.
pub fn push_all<K: Sink>(writer: &mut Writer<K>, columns: &[(&Plan, &[Entry])], batch: usize) {
    let count = columns.first().map_or(0, |(_, samples)| samples.len());
    for start in (0..count).step_by(batch) {
        let end = count.min(start + batch);
        let part: Vec<(&Plan, &[Entry])> =
            columns.iter().map(|(plan, samples)| (*plan, &samples[start..end])).collect();
        push(writer, &part).unwrap();
    }
}

/// Returns the entries in a buffer.
pub fn entries_of(plan: &Plan, buffer: &ColumnBuffer) -> Vec<Entry> {
    let varying = plan.shape.iter().filter(|extent| **extent == Extent::Varying).count();
    let fixed = plan.schema("x").shape.inner_elements().unwrap() as usize * plan.dtype.element_bytes();
    let item = |i: usize| {
        if buffer.is_null(i) {
            return Entry::Null;
        }
        let bytes = if varying == 0 { &buffer.bytes()[i * fixed..][..fixed] } else { buffer.ragged_bytes(i).unwrap() };
        Entry::Item { extents: buffer.varying_extents()[i * varying..][..varying].to_vec(), bytes: bytes.to_vec() }
    };
    let mut entries: Vec<Entry> = (0..buffer.item_count()).map(item).collect();
    for lists in buffer.lists().iter().rev() {
        let members = |i: usize| lists.offsets()[i] as usize..lists.offsets()[i + 1] as usize;
        let list = |i| if lists.is_null(i) { Entry::Null } else { Entry::List(entries[members(i)].to_vec()) };
        entries = (0..lists.list_count()).map(list).collect();
    }
    entries
}

/// Returns the entries in a list.
pub fn entry_of(list: List<'_>) -> Entry {
    if list.is_null() {
        return Entry::Null;
    }
    if list.has_lists() {
        return Entry::List((0..list.len()).map(|k| entry_of(list.list(k).unwrap())).collect());
    }
    Entry::List(list.items().map(|item| item_of(&item.unwrap())).collect())
}

fn item_of(item: &Sample<'_>) -> Entry {
    if item.is_null() {
        return Entry::Null;
    }
    Entry::Item { extents: item.extents().to_vec(), bytes: item.bytes().to_vec() }
}

/// Returns the entry with all extents, as samples have them.
pub fn with_all_extents(plan: &Plan, entry: &Entry) -> Entry {
    match entry {
        Entry::Null => Entry::Null,
        Entry::List(members) => Entry::List(members.iter().map(|member| with_all_extents(plan, member)).collect()),
        Entry::Item { extents, bytes } => {
            let mut varying = extents.iter();
            let all = plan.shape.iter().map(|extent| match extent {
                Extent::Fixed(extent) => *extent,
                Extent::Varying => *varying.next().unwrap(),
            });
            Entry::Item { extents: all.collect(), bytes: bytes.clone() }
        }
    }
}
