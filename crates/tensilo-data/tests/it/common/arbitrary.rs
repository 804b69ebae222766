//! Datasets of arbitrary columns, and all their contents.

use super::files_below;
use std::fs;
use std::path::{Path, PathBuf};
use tensilo::nested::{ListBatch, ListLevel};
use tensilo::{ColumnBatch, ColumnBuffer, ColumnSchema, DType, Extent, Profile, Schema, Shape, Writer, WriterOptions};
use tensilo_data::Dataset;
use tensilo_testing::Random;

/// Returns an arbitrary column.
pub fn column(name: &str, random: &mut Random) -> ColumnSchema {
    use Extent::{Fixed, Varying};
    let dtype = random.pick(&DType::ALL);
    let shapes: [&[Extent]; 6] =
        [&[], &[Fixed(5)], &[Fixed(2), Fixed(0)], &[Varying], &[Varying, Fixed(3)], &[Varying, Fixed(2), Varying]];
    let shape = if dtype.is_string() { &[Varying] } else { random.pick(&shapes) };
    let mut column = ColumnSchema::tensor(name, dtype, Shape::new(shape.iter().copied()));
    column.nullable = random.one_in(2);
    let levels = if random.one_in(3) { 1 + random.index(2) } else { 0 };
    column.levels = (0..levels).map(|_| ListLevel { nullable: random.one_in(2) }).collect();
    match dtype {
        DType::Bf16 | DType::F16 if random.one_in(2) => column.cast_from(DType::F32),
        DType::F32 if random.one_in(2) => column.cast_from(DType::F64),
        _ => column,
    }
}

/// The samples of a column, in the form that a writer takes.
struct Samples {
    /// The lengths and the validity of each level, outermost first.
    lists: Vec<(Vec<u32>, Vec<u8>)>,
    items: usize,
    extents: Vec<u32>,
    values: Vec<u8>,
    validity: Vec<u8>,
}

/// Returns a bitmap of `count` bits. Some are 0 if entries may be null.
fn bitmap(count: usize, nullable: bool, random: &mut Random) -> Vec<u8> {
    let mut bits = vec![0xFF; count.div_ceil(8)];
    for i in (0..count).filter(|_| nullable && random.one_in(4)) {
        bits[i / 8] &= !(1 << (i % 8));
    }
    bits
}

fn is_present(bitmap: &[u8], i: usize) -> bool {
    bitmap[i / 8] >> (i % 8) & 1 == 1
}

fn samples(column: &ColumnSchema, count: usize, random: &mut Random) -> Samples {
    // for samples, for entries of the first lists, and so on; the last is for items
    let mut nullable = std::iter::once(column.nullable).chain(column.levels.iter().map(|level| level.nullable));
    let mut nullable = || nullable.next().expect("one more than levels");
    let mut items = count;
    let mut lists = Vec::new();
    for _ in &column.levels {
        let validity = bitmap(items, nullable(), random);
        let length = |i| if is_present(&validity, i) { random.below(4) as u32 } else { 0 };
        let lengths: Vec<u32> = (0..items).map(length).collect();
        items = lengths.iter().sum::<u32>() as usize;
        lists.push((lengths, validity));
    }
    let validity = bitmap(items, nullable(), random);
    let source = column.pushed_dtype();
    let (mut extents, mut values) = (Vec::new(), Vec::new());
    for item in 0..items {
        let mut elements = 1;
        for extent in column.shape.extents() {
            elements *= match extent {
                Extent::Fixed(extent) => *extent,
                Extent::Varying => {
                    extents.push(if is_present(&validity, item) { random.below(5) as u32 } else { 0 });
                    extents[extents.len() - 1]
                }
            };
        }
        for _ in 0..elements {
            let bits = random.bits().to_ne_bytes();
            let element = match source {
                DType::Utf8 => vec![b'a' + bits[0] % 26],
                dtype if dtype.value_bits() < 8 => vec![bits[0] & ((1 << dtype.value_bits()) - 1)],
                dtype => bits[..dtype.element_bytes()].to_vec(),
            };
            values.extend(element);
        }
    }
    Samples { lists, items, extents, values, validity }
}

/// Writes a file of arbitrary samples.
pub fn write(path: &Path, columns: &[ColumnSchema], count: usize, random: &mut Random) {
    let profile = random.pick(&[Profile::Raw, Profile::Fast, Profile::Balanced]);
    let options = WriterOptions::new().profile(profile).chunk_bytes(1 + random.index(2_000));
    let mut writer = Writer::create(path, Schema::new(columns.to_vec()), &options).expect("a schema");
    let all: Vec<Samples> = columns.iter().map(|column| samples(column, count, random)).collect();
    let lists: Vec<Vec<ListBatch<'_>>> = all
        .iter()
        .map(|samples| {
            let batch = |(lengths, validity)| ListBatch::new(lengths).with_validity(validity);
            samples.lists.iter().map(|(lengths, validity)| batch((lengths.as_slice(), validity.as_slice()))).collect()
        })
        .collect();
    let batches = all.iter().zip(&lists).zip(columns).map(|((samples, lists), column)| {
        let dtype = column.pushed_dtype();
        let batch = ColumnBatch::from_bytes(dtype, samples.items, &samples.extents, &samples.values);
        let batch = batch.with_validity(&samples.validity);
        if lists.is_empty() { batch } else { batch.in_lists(lists) }
    });
    writer.push_batch(&batches.collect::<Vec<_>>()).expect("samples of the columns");
    writer.finish().expect("disk space");
}

/// Creates a dataset of arbitrary columns with two versions. The second adds files with new
/// columns, and renames, drops and adds columns.
pub fn create(folder: &Path, random: &mut Random) -> Dataset {
    let mut columns: Vec<_> = (0..2 + random.index(3)).map(|i| column(&format!("c{i}"), random)).collect();
    let append = |changes: &mut tensilo_data::Changes, columns: &[ColumnSchema], random: &mut Random| {
        let path = changes.next_path().expect("a path");
        write(&path, columns, 1 + random.index(40), random);
        changes.add_file(&path).expect("a file of the dataset");
    };
    let mut changes = Dataset::create(folder).expect("an empty folder");
    (0..1 + random.index(4)).for_each(|_| append(&mut changes, &columns, random));
    let dataset = changes.publish("create").expect("no other writer");

    let mut changes = dataset.change().expect("a dataset");
    changes.drop_column("c0").expect("it exists");
    changes.rename_column("c1", "renamed").expect("it exists");
    columns.remove(0);
    columns[0].name = "renamed".to_owned();
    let mut late = column("late", random);
    late.levels.clear();
    late.nullable = true;
    changes.add_nullable_column(late.clone()).expect("a new column");
    let beside = column("beside", random);
    let groups: Vec<u64> =
        dataset.groups().map(|group| group.expect("a page").samples).map(|s| s.end - s.start).collect();
    let files: Vec<PathBuf> = groups
        .into_iter()
        .map(|samples| {
            let path = changes.next_path().expect("a path");
            write(&path, std::slice::from_ref(&beside), usize::try_from(samples).expect("few"), random);
            path
        })
        .collect();
    changes.add_columns(&files).expect("a file for each group");
    columns.extend([late, beside]);
    (0..random.index(3)).for_each(|_| append(&mut changes, &columns, random));
    changes.publish("grow").expect("no other writer")
}

/// The contents of a sample of a column: nulls and lengths of lists, nulls and extents of items,
/// bytes.
pub type Content = (Vec<(Vec<u64>, Option<Vec<u8>>)>, Vec<u64>, Vec<u32>, Option<Vec<u8>>, Vec<u8>);

/// Returns the samples of all columns, with `None` where a group has no file with the column.
pub fn contents(dataset: &Dataset) -> Vec<Vec<Option<Content>>> {
    let sample = |column: usize, sample: u64| {
        let found = dataset.find(column, sample).expect("an intact dataset");
        found.column.map(|column| {
            let mut buffer = ColumnBuffer::new();
            column.cursor().gather_into(&[found.index], &mut buffer).expect("an intact file");
            let lists =
                buffer.lists().iter().map(|lists| (lists.offsets().to_vec(), lists.validity().map(<[u8]>::to_vec)));
            let validity = buffer.validity().map(<[u8]>::to_vec);
            (
                lists.collect(),
                buffer.offsets().to_vec(),
                buffer.varying_extents().to_vec(),
                validity,
                buffer.bytes().to_vec(),
            )
        })
    };
    let columns = 0..dataset.schema().columns.len();
    columns.map(|column| (0..dataset.sample_count()).map(|i| sample(column, i)).collect()).collect()
}

/// Returns the bytes of all files below a folder, by their paths in it.
pub fn bytes_below(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let read =
        |path: PathBuf| (path.strip_prefix(folder).expect("below").to_path_buf(), fs::read(&path).expect("a file"));
    files_below(folder).into_iter().map(read).collect()
}
