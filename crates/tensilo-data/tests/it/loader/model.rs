//! A dataset whose samples are functions of their index: fixed, ragged and nested columns, in
//! several
//! files and column groups.

use half::bf16;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use tensilo::nested::ListLevel;
use tensilo::{ColumnSchema, DType, Extent, Profile, Schema, Shape, Value, Writer, WriterOptions};
use tensilo_data::{Batch, BatchColumn, Dataset};
use tensilo_testing::Folder;

/// The samples of the files. The last file was added with more columns.
pub const FILES: [u64; 4] = [37, 1, 64, 50];
pub const SAMPLES: u64 = 152;
pub const COLUMNS: [&str; 7] = ["id", "vector", "tokens", "frames", "words", "late", "maybe"];
/// The file whose samples have a value of `maybe`.
const WITH_MAYBE: std::ops::Range<u64> = 102..152;

pub fn id(i: u64) -> u64 {
    i * 3 + 1
}

pub fn vector(i: u64) -> Option<[bf16; 5]> {
    (i % 11 != 3).then(|| std::array::from_fn(|k| bf16::from_f32(((i * 5 + k as u64) % 97) as f32)))
}

pub fn tokens(i: u64) -> Vec<i32> {
    (0..i % 7).map(|k| (i * 10 + k) as i32).collect()
}

pub fn frames(i: u64) -> Option<Vec<f32>> {
    (i % 13 != 5).then(|| (0..i % 4 * 3).map(|k| i as f32 + k as f32 / 8.0).collect())
}

pub fn words(i: u64) -> Option<Vec<String>> {
    (i % 9 != 1).then(|| (0..i % 5).map(|k| format!("w{i}-{k}")).collect())
}

pub fn late(i: u64) -> f32 {
    i as f32 / 4.0
}

pub fn maybe(i: u64) -> Option<i16> {
    (WITH_MAYBE.contains(&i) && !i.is_multiple_of(3)).then_some(i as i16)
}

fn schema(name: &str) -> ColumnSchema {
    let nullable = |column: ColumnSchema| ColumnSchema { nullable: true, ..column };
    match name {
        "id" => ColumnSchema::tensor("id", DType::U64, Shape::scalar()),
        "vector" => nullable(ColumnSchema::tensor("vector", DType::Bf16, Shape::fixed(&[5]))),
        "tokens" => ColumnSchema::tensor("tokens", DType::I32, Shape::ragged()),
        "frames" => {
            let shape = Shape::new([Extent::Varying, Extent::Fixed(3)]);
            nullable(ColumnSchema::tensor("frames", DType::F32, shape))
        }
        "words" => {
            let words = ColumnSchema::tensor("words", DType::Utf8, Shape::ragged());
            nullable(ColumnSchema { levels: vec![ListLevel { nullable: false }], ..words })
        }
        "late" => ColumnSchema::tensor("late", DType::F32, Shape::scalar()),
        _ => nullable(ColumnSchema::tensor("maybe", DType::I16, Shape::scalar())),
    }
}

fn write(path: &Path, columns: &[&str], samples: std::ops::Range<u64>) {
    let schema = Schema::new(columns.iter().map(|name| schema(name)));
    let options = WriterOptions::new().profile(Profile::Raw).chunk_bytes(256);
    let mut writer = Writer::create(path, schema, &options).expect("a schema");
    for i in samples {
        let (id, vector, tokens, frames) = ([id(i)], vector(i), tokens(i), frames(i));
        let (late, maybe, words) = ([late(i)], maybe(i).map(|value| [value]), words(i));
        let texts: Option<Vec<Value<'_>>> =
            words.as_ref().map(|words| words.iter().map(|word| Value::text(word)).collect());
        let extents = [frames.as_ref().map_or(0, |frames| frames.len() as u32 / 3)];
        let length = [tokens.len() as u32];
        let value = |name: &&str| match *name {
            "id" => Value::tensor(&id),
            "vector" => vector.as_ref().map_or(Value::NULL, |vector| Value::tensor(vector)),
            "tokens" => Value::ragged(&tokens, &length),
            "frames" => frames.as_ref().map_or(Value::NULL, |frames| Value::ragged(frames, &extents)),
            "words" => texts.as_ref().map_or(Value::NULL, |texts| Value::list(texts)),
            "late" => Value::tensor(&late),
            _ => maybe.as_ref().map_or(Value::NULL, |maybe| Value::tensor(maybe)),
        };
        let row: Vec<Value<'_>> = columns.iter().map(value).collect();
        writer.push(&row).expect("a sample");
    }
    writer.finish().expect("disk space");
}

/// Creates the dataset. `late` is in files of its own, except for the last file of samples, the
/// only one with `maybe`.
pub fn create(folder: &Path) -> Dataset {
    let starts: Vec<u64> = (0..FILES.len()).map(|file| FILES[..file].iter().sum()).collect();
    let samples = |file: usize| starts[file]..starts[file] + FILES[file];
    let mut changes = Dataset::create(folder).expect("an empty folder");
    for file in 0..3 {
        let path = changes.next_path().expect("a path");
        write(&path, &COLUMNS[..5], samples(file));
        changes.add_file(&path).expect("a file of the dataset");
    }
    let dataset = changes.publish("create").expect("no other writer");
    let mut changes = dataset.change().expect("a dataset");
    let mut late = Vec::new();
    for file in 0..3 {
        late.push(changes.next_path().expect("a path"));
        write(&late[file], &["late"], samples(file));
    }
    changes.add_columns(&late).expect("the same samples");
    changes.add_nullable_column(schema("maybe")).expect("a new column");
    let path = changes.next_path().expect("a path");
    write(&path, &COLUMNS, samples(3));
    changes.add_file(&path).expect("all columns");
    changes.publish("grow").expect("no other writer")
}

/// Checks every column of a batch against the model. `samples` are indices in the dataset.
pub fn check(batch: &Batch, samples: &[u64]) {
    assert_eq!(batch.indices().len(), samples.len());
    for name in COLUMNS {
        let Ok(column) = batch.column(name) else { continue };
        assert_eq!(column.sample_count(), samples.len());
        for (position, &i) in samples.iter().enumerate() {
            check_sample(column, name, position, i);
        }
    }
}

fn row<T: tensilo::Element>(column: &BatchColumn, position: usize, length: usize) -> Option<Vec<T>> {
    let values = column.values::<T>().expect("the type");
    (!column.is_null(position)).then(|| values[position * length..][..length].to_vec())
}

fn ragged<T: tensilo::Element>(column: &BatchColumn, item: usize) -> Vec<T> {
    let offsets = column.offsets();
    column.values::<T>().expect("the type")[offsets[item] as usize..offsets[item + 1] as usize].to_vec()
}

fn check_sample(column: &BatchColumn, name: &str, position: usize, i: u64) {
    match name {
        "id" => assert_eq!(row(column, position, 1), Some(vec![id(i)])),
        "vector" => assert_eq!(row(column, position, 5), vector(i).map(|vector| vector.to_vec()), "{i}"),
        "tokens" => {
            assert_eq!(ragged::<i32>(column, position), tokens(i));
            assert_eq!(column.varying_extents()[position] as usize, tokens(i).len());
        }
        "frames" => {
            let found = (!column.is_null(position)).then(|| ragged::<f32>(column, position));
            assert_eq!(found, frames(i), "{i}");
        }
        "words" => {
            let lists = &column.lists()[0];
            let items = lists.offsets()[position] as usize..lists.offsets()[position + 1] as usize;
            let texts = items.map(|item| String::from_utf8(ragged::<u8>(column, item)).expect("UTF-8"));
            assert_eq!((!lists.is_null(position)).then(|| texts.collect()), words(i), "{i}");
        }
        "late" => assert_eq!(row(column, position, 1), Some(vec![late(i)])),
        _ => assert_eq!(row(column, position, 1), maybe(i).map(|value| vec![value]), "{i}"),
    }
}

/// The folder of the dataset, which no test changes.
pub fn folder() -> PathBuf {
    static FOLDER: OnceLock<Folder> = OnceLock::new();
    let folder = FOLDER.get_or_init(|| {
        let folder = Folder::new();
        create(&folder.path("data"));
        folder
    });
    folder.path("data")
}
