//! Nested columns: what is pushed is read back, by every path.

use crate::common::config;
use proptest::prelude::*;
use tensilo::nested::{List, ListBatch};
use tensilo::sink::Stream;
use tensilo::source::InMemory;
use tensilo::stages::{Decoder, FetchedBytes, ReadPlan};
use tensilo::verify::{VerifyOptions, verify};
use tensilo::{
    Column, ColumnBatch, ColumnBuffer, ColumnSchema, DType, Extent, OpenOptions, Profile, Reader, Sample, Schema,
    Shape, Writer, WriterOptions,
};
use tensilo_testing::Random;

use crate::support::scattered::Scattered;

/// A sample, a list or an item.
#[derive(Clone, Debug, PartialEq)]
enum Entry {
    Null,
    List(Vec<Entry>),
    Item { extents: Vec<u32>, bytes: Vec<u8> },
}

#[derive(Clone, Debug)]
struct Plan {
    dtype: DType,
    shape: Vec<Extent>,
    /// Whether the entries of each level may be null, the samples first.
    nullable: Vec<bool>,
    sample_count: usize,
    seed: u64,
}

fn arbitrary_plan() -> impl Strategy<Value = Plan> {
    let tensors = prop::sample::select(vec![
        (DType::U8, vec![]),
        (DType::F32, vec![Extent::Fixed(3)]),
        (DType::I16, vec![Extent::Varying]),
        (DType::U8, vec![Extent::Varying, Extent::Fixed(2), Extent::Varying]),
        (DType::Bool, vec![Extent::Fixed(0)]),
        (DType::Utf8, vec![Extent::Varying]),
    ]);
    (tensors, prop::collection::vec(any::<bool>(), 2..6), 0..80_usize, any::<u64>())
        .prop_map(|((dtype, shape), nullable, sample_count, seed)| Plan { dtype, shape, nullable, sample_count, seed })
}

impl Plan {
    fn schema(&self, name: &str) -> ColumnSchema {
        let mut column = ColumnSchema::tensor(name, self.dtype, Shape::new(self.shape.iter().copied()));
        for &nullable in self.nullable[1..].iter().rev() {
            column.nullable = nullable;
            column = column.list();
        }
        column.nullable = self.nullable[0];
        column
    }

    fn entries(&self) -> Vec<Entry> {
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

fn push(writer: &mut Writer<Stream<Vec<u8>>>, plan: &Plan, samples: &[Entry]) {
    let flat = flat(plan, samples);
    let levels = flat.lengths.iter().zip(&flat.validity).zip(&plan.nullable);
    let levels: Vec<ListBatch<'_>> = levels
        .map(|((lengths, bits), nullable)| {
            let lists = ListBatch::new(lengths);
            if *nullable { lists.with_validity(bits) } else { lists }
        })
        .collect();
    let mut batch = ColumnBatch::from_bytes(plan.dtype, flat.items, &flat.extents, &flat.values).in_lists(&levels);
    if *plan.nullable.last().unwrap() {
        batch = batch.with_validity(flat.validity.last().unwrap());
    }
    writer.push_batch(&[batch]).unwrap();
}

/// What a buffer has.
fn entries_of(plan: &Plan, buffer: &ColumnBuffer) -> Vec<Entry> {
    let varying = plan.shape.iter().filter(|extent| **extent == Extent::Varying).count();
    let fixed = plan.schema("x").shape.inner_elements().unwrap() as usize * plan.dtype.element_bytes();
    let item = |i: usize| {
        if buffer.is_null(i) {
            return Entry::Null;
        }
        let bytes = if varying == 0 { &buffer.bytes()[i * fixed..][..fixed] } else { buffer.ragged_bytes(i).unwrap() };
        Entry::Item { extents: buffer.extents()[i * varying..][..varying].to_vec(), bytes: bytes.to_vec() }
    };
    let mut entries: Vec<Entry> = (0..buffer.item_count()).map(item).collect();
    for lists in buffer.lists().iter().rev() {
        let members = |i: usize| lists.offsets()[i] as usize..lists.offsets()[i + 1] as usize;
        let list = |i| if lists.is_null(i) { Entry::Null } else { Entry::List(entries[members(i)].to_vec()) };
        entries = (0..lists.list_count()).map(list).collect();
    }
    entries
}

/// What a list has.
fn entry_of(list: List<'_>) -> Entry {
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
    Entry::Item { extents: item.shape().to_vec(), bytes: item.bytes().to_vec() }
}

/// The same with all extents, as samples have them.
fn with_all_extents(plan: &Plan, entry: &Entry) -> Entry {
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

fn check(plan: &Plan, column: &Column, samples: &[Entry]) {
    let random = &mut Random(plan.seed ^ 1);
    let (mut cursor, mut out) = (column.cursor(), ColumnBuffer::new());
    cursor.range_into(0..samples.len() as u64, &mut out).unwrap();
    assert_eq!(entries_of(plan, &out), samples);
    for _ in 0..if samples.is_empty() { 0 } else { 20 } {
        let i = random.below(samples.len() as u64);
        let due = with_all_extents(plan, &samples[i as usize]);
        assert_eq!(entry_of(cursor.read_list(i).unwrap()), due);
        if let Some(list) = column.view_list(i).unwrap() {
            assert_eq!(entry_of(list), due);
        }
        assert!(cursor.read(i).is_err() && column.view(i).is_err());
    }
    for _ in 0..4 {
        let count = if samples.is_empty() { 0 } else { random.below(20) };
        let indices: Vec<u64> = (0..count).map(|_| random.below(samples.len() as u64)).collect();
        let due: Vec<Entry> = indices.iter().map(|&i| samples[i as usize].clone()).collect();
        cursor.gather_into(&indices, &mut out).unwrap();
        assert_eq!(entries_of(plan, &out), due);
        let (mut read, mut fetched, mut buffers) = (ReadPlan::new(), FetchedBytes::new(), [ColumnBuffer::new()]);
        read.select(std::slice::from_ref(column), &indices).unwrap();
        read.fetch(&mut fetched).unwrap();
        read.decode_by(3, &mut buffers, |parts| {
            parts.into_iter().rev().try_for_each(|part| part.decode(&mut Decoder::new(), &fetched))
        })
        .unwrap();
        assert_eq!(entries_of(plan, &buffers[0]), due);
    }
}

proptest! {
    #![proptest_config(config(64))]

    #[test]
    fn lists_are_read_as_they_were_pushed(
        plan in arbitrary_plan(),
        profile in prop::sample::select(vec![Profile::Raw, Profile::Balanced]),
        chunk_bytes in prop::sample::select(vec![1, 100, 1 << 16]),
        batch in 1..50_usize,
    ) {
        let samples = plan.entries();
        let options = WriterOptions::new().profile(profile).chunk_bytes(chunk_bytes);
        let mut writer = Writer::new(Stream(Vec::new()), Schema::new([plan.schema("x")]), &options).unwrap();
        samples.chunks(batch).for_each(|samples| push(&mut writer, &plan, samples));
        let file = writer.finish().unwrap().sink.0;
        let report = verify(&InMemory(&file), VerifyOptions::new().decode(true)).unwrap();
        prop_assert!(report.damages.is_empty(), "{:?}", report.damages);
        let reader = Reader::from_bytes(file.clone()).unwrap();
        prop_assert_eq!(reader.schema(), &Schema::new([plan.schema("x")]));
        check(&plan, &reader.column("x").unwrap(), &samples);
        let scattered = Scattered { file, fragment_bytes: 50, gap_bytes: 100 };
        let reader = OpenOptions::new().open(scattered).unwrap();
        check(&plan, &reader.column("x").unwrap(), &samples);
    }
}
