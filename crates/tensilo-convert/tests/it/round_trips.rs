//! Arbitrary tables: an export that is imported again has the same samples, or is refused.
//!
//! [`expected`] is the only list of what a format changes by design. An export that loses more
//! fails here.

use super::common::{backdate, convert};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use tensilo::export::{ExportOptions, export};
use tensilo::import::ConvertOptions;
use tensilo::nested::{ListBatch, ListLevel};
use tensilo::sink::AtomicFile;
use tensilo::{
    ColumnBatch, ColumnBuffer, ColumnSchema, DType, Extent, Reader, Result, Schema, Shape, Writer, WriterOptions,
};
use tensilo_convert::{FormatOptions, TargetFormat, TargetOptions, export_megatron, export_to};
use tensilo_testing::{Folder, Random};

/// A sample, a list or an item of a list.
#[derive(Clone, Debug, PartialEq)]
enum Entry {
    Null,
    List(Vec<Entry>),
    Item { shape: Vec<u32>, bytes: Vec<u8> },
}

/// The type and the samples of each column.
type Table = BTreeMap<String, (DType, Vec<Entry>)>;

/// A column to generate.
#[derive(Clone, Debug)]
struct Plan {
    dtype: DType,
    shape: Vec<Extent>,
    /// Whether the entries of each level may be null, starting with samples.
    nullable: Vec<bool>,
}

#[derive(Clone, Debug)]
struct TablePlan {
    columns: BTreeMap<String, Plan>,
    sample_count: usize,
    seed: u64,
}

const NAMES: [&str; 24] = [
    "__key__",
    "__KEY__",
    "__metadata__",
    "a",
    "A",
    "a.b",
    "a{b}",
    "a.npy",
    "a.txt",
    "a.cls",
    "a.json",
    ".",
    "..",
    "a/b",
    "/",
    "x__",
    "İ",
    "Σ.txt",
    " ",
    "\"",
    "\\",
    "'",
    "a,b",
    "array",
];

fn table_plans() -> impl Strategy<Value = TablePlan> {
    use Extent::{Fixed, Varying};
    let shapes: [&[Extent]; 10] = [
        &[],
        &[],
        &[Fixed(3)],
        &[Fixed(2), Fixed(2)],
        &[Fixed(0)],
        &[Fixed(2), Fixed(0), Fixed(3)],
        &[Varying],
        &[Varying, Fixed(3)],
        &[Varying, Fixed(0)],
        &[Varying, Fixed(2), Varying],
    ];
    let shape = prop::sample::select(shapes.map(<[Extent]>::to_vec).to_vec());
    let levels = prop_oneof![4 => Just(1_usize), 1 => 2..4_usize];
    let nullable = (levels, any::<u8>()).prop_map(|(levels, bits)| (0..levels).map(|i| bits >> i & 1 == 1).collect());
    // few formats have the small types
    let (small, other) = DType::ALL.into_iter().partition::<Vec<_>, _>(|dtype| dtype.is_small());
    let dtype = prop_oneof![1 => prop::sample::select(small), 9 => prop::sample::select(other)];
    let plan = (dtype, shape, nullable).prop_map(|(dtype, shape, nullable)| {
        let shape = if dtype.is_string() { vec![Varying] } else { shape };
        Plan { dtype, shape, nullable }
    });
    let long = Just("n".repeat(tensilo::limits::NAME_BYTES));
    let name = prop_oneof![
        6 => prop::sample::select(NAMES.to_vec()).prop_map(str::to_owned),
        6 => "\\PC{1,6}",
        1 => long,
    ];
    let columns = prop::collection::btree_map(name, plan, 0..5);
    let sample_count = prop_oneof![1 => Just(0), 2 => Just(1), 6 => 2..40_usize];
    (columns, sample_count, any::<u64>(), any::<bool>()).prop_map(|(mut columns, sample_count, seed, is_flat)| {
        // otherwise arrays would never be exported together
        columns.retain(|_, plan| !is_flat || !plan.shape.contains(&Varying));
        columns.values_mut().filter(|_| is_flat).for_each(|plan| plan.nullable = vec![false]);
        TablePlan { columns, sample_count, seed }
    })
}

/// The samples of a column, in the form in which they are pushed.
#[derive(Default)]
struct Samples {
    /// The lengths and the validity of each level, outermost first.
    lists: Vec<(Vec<u32>, Vec<u8>)>,
    items: usize,
    extents: Vec<u32>,
    values: Vec<u8>,
    validity: Vec<u8>,
}

fn bitmap(count: usize, nullable: bool, random: &mut Random) -> Vec<u8> {
    let mut bits = vec![0xFF; count.div_ceil(8)];
    // some columns have only nulls
    let one_in = random.pick(&[1, 4, 4, 4]);
    for i in (0..count).filter(|_| nullable && random.one_in(one_in)) {
        bits[i / 8] &= !(1 << (i % 8));
    }
    bits
}

fn text(random: &mut Random) -> String {
    let unique = format!("k{}", random.below(1_000));
    match random.below(24) {
        0 => {
            ["", "é\0", "a\nb", "x.y", ".x", "a//b", "/a", "a/../b", "a/./b", "__x", "a/"][random.index(11)].to_owned()
        }
        1 => format!("./{unique}"),
        2 => format!("{}/{unique}", "long".repeat(70)),
        _ => unique,
    }
}

fn samples(plan: &Plan, count: usize, random: &mut Random) -> Samples {
    let is_present = |bitmap: &[u8], i: usize| bitmap[i / 8] >> (i % 8) & 1 == 1;
    let mut samples = Samples { items: count, ..Samples::default() };
    let (own, levels) = plan.nullable.split_last().unwrap();
    for nullable in levels {
        let validity = bitmap(samples.items, *nullable, random);
        let length = |i| if is_present(&validity, i) { random.below(4) as u32 } else { 0 };
        let lengths: Vec<u32> = (0..samples.items).map(length).collect();
        samples.items = lengths.iter().sum::<u32>() as usize;
        samples.lists.push((lengths, validity));
    }
    samples.validity = bitmap(samples.items, *own, random);
    let special = [0, 1, u64::MAX, 1 << 63, 0x7F80_0001_7C01_7F81, 0x7FF0_0000_0000_0001, 0xFFC0_1234_FFC1_FE01];
    for item in 0..samples.items {
        let is_present = is_present(&samples.validity, item);
        let mut elements = 1;
        if plan.dtype.is_string() {
            let text = if is_present { text(random) } else { String::new() };
            samples.extents.push(text.len() as u32);
            samples.values.extend(text.into_bytes());
            continue;
        }
        for extent in &plan.shape {
            elements *= match extent {
                Extent::Fixed(extent) => *extent,
                Extent::Varying => {
                    samples.extents.push(if is_present { random.below(4) as u32 } else { 0 });
                    samples.extents[samples.extents.len() - 1]
                }
            };
        }
        for _ in 0..elements {
            let bits = if random.one_in(4) { random.pick(&special) } else { random.bits() >> random.below(64) };
            let width = plan.dtype.element_bytes();
            let bits = bits & (u64::MAX >> (64 - plan.dtype.value_bits()));
            samples.values.extend(&bits.to_le_bytes()[..width]);
        }
    }
    samples
}

/// Writes a table. Returns `None` if tensilo files cannot have these columns.
fn write(path: &Path, plan: &TablePlan) -> Option<Reader> {
    let random = &mut Random(plan.seed);
    let column = |(name, plan): (&String, &Plan)| {
        let column = ColumnSchema::tensor(name, plan.dtype, Shape::new(plan.shape.iter().copied()));
        let levels = plan.nullable[1..].iter().map(|&nullable| ListLevel { nullable }).collect();
        ColumnSchema { nullable: plan.nullable[0], levels, ..column }
    };
    let schema = Schema::new(plan.columns.iter().map(column).collect::<Vec<_>>());
    let options = WriterOptions::new().chunk_bytes(1 + random.index(2_000));
    let mut writer = Writer::create(path, schema, &options).ok()?;
    let all: Vec<Samples> = plan.columns.values().map(|plan_of| samples(plan_of, plan.sample_count, random)).collect();
    let lists: Vec<Vec<ListBatch<'_>>> = all
        .iter()
        .map(|samples| samples.lists.iter().map(|(l, v)| ListBatch::new(l).with_validity(v)).collect())
        .collect();
    let batches = all.iter().zip(&lists).zip(plan.columns.values()).map(|((samples, lists), plan)| {
        let batch = ColumnBatch::from_bytes(plan.dtype, samples.items, &samples.extents, &samples.values);
        let batch = batch.with_validity(&samples.validity);
        if lists.is_empty() { batch } else { batch.in_lists(lists) }
    });
    if !plan.columns.is_empty() {
        writer.push_batch(&batches.collect::<Vec<_>>()).unwrap();
    }
    writer.finish().unwrap();
    Some(Reader::open(path).unwrap())
}

/// Returns the whole content of a file.
fn table(reader: &Reader) -> Table {
    let column = |column: tensilo::Column| {
        let schema = column.schema();
        let mut buffer = ColumnBuffer::new();
        column.cursor().range_into(0..column.sample_count(), &mut buffer).unwrap();
        (schema.name.clone(), (schema.dtype, entries(schema, &buffer)))
    };
    reader.columns().map(column).collect()
}

fn entries(schema: &ColumnSchema, buffer: &ColumnBuffer) -> Vec<Entry> {
    let mut own = buffer.varying_extents().iter().copied();
    let mut position = 0;
    let mut item = |i: usize| {
        let mut extent = |extent: &Extent| match extent {
            Extent::Fixed(extent) => *extent,
            Extent::Varying => own.next().unwrap_or(0),
        };
        if schema.dtype.is_string() {
            return match buffer.is_null(i) {
                true => Entry::Null,
                false => Entry::Item { shape: Vec::new(), bytes: buffer.ragged_bytes(i).unwrap().to_vec() },
            };
        }
        let shape: Vec<u32> = schema.shape.extents().iter().map(&mut extent).collect();
        let length = shape.iter().product::<u32>() as usize * schema.dtype.element_bytes();
        let bytes = buffer.bytes()[position..position + length].to_vec();
        position += length;
        if buffer.is_null(i) { Entry::Null } else { Entry::Item { shape, bytes } }
    };
    let mut entries: Vec<Entry> = (0..buffer.item_count()).map(&mut item).collect();
    for lists in buffer.lists().iter().rev() {
        let list = |i: usize| match lists.is_null(i) {
            true => Entry::Null,
            false => {
                let members = lists.offsets()[i] as usize..lists.offsets()[i + 1] as usize;
                Entry::List(entries[members].to_vec())
            }
        };
        entries = (0..lists.list_count()).map(list).collect();
    }
    entries
}

/// A format, given by the extension of its files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Format(&'static str);

impl Format {
    /// Returns whether there are tables that the format cannot hold.
    fn is_lossy(self) -> bool {
        !["arrow", "arrows", "parquet", "tsl"].contains(&self.0)
    }

    /// Exports a table. Returns the file to import.
    fn export(self, reader: &Reader, columns: Option<&str>, folder: &Folder) -> Result<PathBuf> {
        let path = folder.path(format!("a.{}", self.0));
        let options = || columns.map_or_else(TargetOptions::new, |name| TargetOptions::new().columns([name]));
        match self.0 {
            "idx" => {
                let sinks = (AtomicFile::create(&path, true)?, AtomicFile::create(path.with_extension("bin"), true)?);
                export_megatron(reader, sinks, options())?;
                backdate(&path.with_extension("bin"));
            }
            "tsl" => {
                let convert = ConvertOptions::new().overwrite(true);
                let source = folder.path("source.tsl");
                tensilo::import::convert(&[source], &path, &convert, &mut |_| ControlFlow::Continue(()))?;
            }
            _ => match TargetFormat::of(&path) {
                Some(format) => drop(export_to(reader, AtomicFile::create(&path, true)?, format, options())?),
                None => export(reader, &path, ExportOptions::new().overwrite(true))?,
            },
        }
        backdate(&path);
        Ok(path)
    }

    /// Returns the table that an import of the export should give, with the differences of each
    /// format.
    fn expected(self, table: &Table) -> Table {
        let widened = |(name, (dtype, samples)): (&String, &(DType, Vec<Entry>))| match dtype {
            // NumPy has no bf16
            DType::Bf16 => (name.clone(), (DType::F32, samples.iter().map(widen).collect())),
            _ => (name.clone(), (*dtype, samples.clone())),
        };
        match self.0 {
            "npy" => table.iter().map(widened).map(|(_, column)| ("array".to_owned(), column)).collect(),
            "idx" => table.values().map(|column| ("tokens".to_owned(), column.clone())).collect(),
            // neither do Arrow and Parquet
            "npz" | "arrow" | "arrows" | "parquet" => table.iter().map(widened).collect(),
            "tar" => archived(&table.iter().map(widened).collect()),
            _ => table.clone(),
        }
    }
}

fn widen(entry: &Entry) -> Entry {
    match entry {
        Entry::Null => Entry::Null,
        Entry::List(members) => Entry::List(members.iter().map(widen).collect()),
        Entry::Item { shape, bytes } => {
            let widened = bytes.chunks(2).flat_map(|bits| [0, 0, bits[0], bits[1]]).collect();
            Entry::Item { shape: shape.clone(), bytes: widened }
        }
    }
}

/// Returns a tensor as lists of its elements.
fn in_lists(entry: &Entry) -> Entry {
    match entry {
        Entry::Null => Entry::Null,
        Entry::List(members) => Entry::List(members.iter().map(in_lists).collect()),
        Entry::Item { shape, bytes } => match shape.split_first() {
            None => entry.clone(),
            Some((count, shape)) => {
                let each = bytes.len() / (*count).max(1) as usize;
                let member =
                    |i: u32| Entry::Item { shape: shape.to_vec(), bytes: bytes[i as usize * each..][..each].to_vec() };
                Entry::List((0..*count).map(|i| in_lists(&member(i))).collect())
            }
        },
    }
}

/// An archive has no schema, but keys, lower-case suffixes that tell the type, and integers of 64
/// bits.
fn archived(table: &Table) -> Table {
    let is_key = |name: &str, dtype: DType| name == "__key__" && dtype == DType::Utf8;
    let mut archive = Table::new();
    let count = table.values().next().map_or(0, |(_, samples)| samples.len());
    let numbers = (0..count).map(|i| Entry::Item { shape: Vec::new(), bytes: format!("{i:09}").into_bytes() });
    archive.insert("__key__".to_owned(), (DType::Utf8, numbers.collect()));
    for (name, (dtype, samples)) in table {
        if is_key(name, *dtype) {
            archive.insert(name.clone(), (*dtype, samples.clone()));
            continue;
        }
        let shape =
            samples.iter().find_map(|sample| if let Entry::Item { shape, .. } = sample { Some(shape) } else { None });
        let is_scalar = shape.is_none_or(Vec::is_empty);
        let name = name.to_lowercase();
        let last = name.rsplit('.').next().unwrap();
        let (texts, integers) = (["txt", "json"].contains(&last), last == "cls");
        let (ending, has_ending, is_integer) = match dtype {
            DType::Utf8 => (".txt", texts, false),
            DType::Bytes => (".bin", !texts && !integers && last != "npy", false),
            _ if !dtype.is_number() || dtype.is_float() || !is_scalar || last == "npy" => {
                (".npy", last == "npy", false)
            }
            _ => (".cls", integers, true),
        };
        let name = format!("{name}{}", if has_ending { "" } else { ending });
        let long = |sample: &Entry| match sample {
            Entry::Item { shape, bytes } => {
                let is_negative =
                    format!("{dtype}").starts_with('i') && bytes.last().is_some_and(|byte| byte >> 7 == 1);
                let mut bytes = bytes.clone();
                bytes.resize(8, if is_negative { 0xFF } else { 0 });
                Entry::Item { shape: shape.clone(), bytes }
            }
            other => other.clone(),
        };
        let column = match is_integer {
            true => (DType::I64, samples.iter().map(long).collect()),
            false => (*dtype, samples.clone()),
        };
        archive.insert(name, column);
    }
    archive
}

/// Exports and imports tables of all kinds. At least one of `one_in` exports must not be refused.
fn check(format: &'static str, one_in: usize) {
    let (format, done, refused) = (Format(format), Cell::new(0_usize), Cell::new(0_usize));
    const CASES: u32 = 96;
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(CASES);
    let config = Config { failure_persistence: None, ..Config::with_cases(cases) };
    let checked = TestRunner::new(config).run(&table_plans(), |plan| {
        let folder = Folder::new();
        let Some(reader) = write(&folder.path("source.tsl"), &plan) else { return Ok(()) };
        backdate(&folder.path("source.tsl"));
        let whole = table(&reader);
        let parts: Vec<(Option<&str>, Table)> = match format.0 {
            "npy" | "idx" => {
                let one = |(name, column): (&String, &_)| Table::from([(name.clone(), Clone::clone(column))]);
                whole.iter().map(|column| (Some(column.0.as_str()), one(column))).collect()
            }
            _ => vec![(None, whole.clone())],
        };
        for (column, part) in parts {
            let path = match format.export(&reader, column, &folder) {
                Ok(path) => path,
                Err(error) => {
                    let holds_all = !format.is_lossy() && !plan.columns.is_empty();
                    prop_assert!(!holds_all, "{:?}: {}", column, error);
                    prop_assert_ne!(error.kind(), tensilo::ErrorKind::Io, "{}", error);
                    prop_assert_ne!(error.kind(), tensilo::ErrorKind::Internal, "{}", error);
                    refused.set(refused.get() + 1);
                    continue;
                }
            };
            done.set(done.get() + 1);
            let imported = convert(&[path], FormatOptions::new());
            if plan.columns.is_empty() && !format.is_lossy() {
                prop_assert!(imported.is_err()); // a table without columns has no samples
                continue;
            }
            let imported = imported.map_err(|error| TestCaseError::fail(format!("{column:?}: {error}")))?;
            let mut found = table(&imported);
            let mut expected = format.expected(&part);
            if format.0 == "tar" && imported.sample_count() == 0 {
                found.clear();
                expected.retain(|_, (_, samples)| !samples.is_empty());
            }
            if !format.is_lossy() && format.0 != "tsl" {
                // lists of numbers become tensors, if they can
                for (name, _) in plan.columns.iter().filter(|(_, p)| p.nullable.len() > 1 && !p.dtype.is_string()) {
                    for table in [&mut found, &mut expected] {
                        let column = table.get_mut(name).map(|(_, samples)| samples);
                        column.into_iter().flatten().for_each(|sample| *sample = in_lists(sample));
                    }
                }
            }
            prop_assert_eq!(&found, &expected, "{:?}", column);
            if !expected.is_empty() {
                prop_assert_eq!(imported.sample_count(), reader.sample_count());
            }
        }
        Ok(())
    });
    checked.unwrap_or_else(|error| panic!("{format:?}: {error}"));
    let (done, refused) = (done.get(), refused.get());
    // with fewer cases, all may be refused by chance
    if cases >= CASES {
        let is_enough = done > 0 && done * one_in >= done + refused;
        assert!(is_enough, "{format:?}: {done} exports, and {refused} are refused");
    }
}

#[test]
fn arrays() {
    check("npy", 5);
}

#[test]
fn archives_of_arrays() {
    check("npz", 5);
}

#[test]
fn safetensors() {
    check("safetensors", 5);
}

#[test]
fn archives_of_files() {
    check("tar", 8);
}

#[test]
fn documents() {
    check("idx", 40);
}

#[test]
fn arrow_files() {
    check("arrow", 2);
}

#[test]
fn arrow_streams() {
    check("arrows", 2);
}

#[test]
fn parquet_files() {
    check("parquet", 2);
}

#[test]
fn tensilo_files() {
    check("tsl", 2);
}
