//! Real datasets of many files.

use super::Failure;
use super::source::opening_reads;
use half::bf16;
use std::fs;
use std::path::{Path, PathBuf};
use tensilo::{ColumnBatch, ColumnSchema, DType, Profile, Reader, Schema, Shape, Writer, WriterOptions};
use tensilo_data::model::{ColumnModel, OpeningRead};
use tensilo_data::{Changes, Dataset};
use tensilo_testing::mix;

/// The name of the only column.
const COLUMN: &str = "x";
/// The number of BF16 values of a sample.
const VALUES: u64 = 8;
/// The number of threads that write files.
const WRITERS: usize = 2;

/// Writes a dataset of files with `file_samples` samples of 16 bytes each, with the profile `fast`.
pub fn write(folder: &Path, files: u64, file_samples: u64) -> Result<Dataset, Failure> {
    let mut changes = Dataset::create(folder)?;
    let paths = (0..files).map(|_| changes.next_path()).collect::<Result<Vec<_>, _>>()?;
    std::thread::scope(|scope| {
        let work = |first: usize| {
            let mut of_thread = (0..).zip(&paths).skip(first).step_by(WRITERS);
            of_thread.try_for_each(|(number, path)| write_file(path, number, file_samples))
        };
        let threads: Vec<_> = (0..WRITERS).map(|first| scope.spawn(move || work(first))).collect();
        for thread in threads {
            thread.join().map_err(|_| "a writer panicked")??;
        }
        Ok::<_, Failure>(())
    })?;
    append_all(&mut changes, &paths)?;
    Ok(changes.publish("create")?)
}

fn append_all(changes: &mut Changes, paths: &[PathBuf]) -> Result<(), Failure> {
    Ok(paths.iter().try_for_each(|path| changes.add_file(path))?)
}

/// Writes values with the exponents of noise; their other bits are random.
fn write_file(path: &Path, number: u64, samples: u64) -> tensilo::Result<()> {
    let schema = Schema::new([ColumnSchema::tensor(COLUMN, DType::Bf16, Shape::fixed(&[VALUES as u32]))]);
    let options = WriterOptions::new().profile(Profile::Fast).origin(number.to_le_bytes());
    let mut writer = Writer::create(path, schema, &options)?;
    let value = |i: u64| {
        let bits = mix(number, i);
        let exponent = 126 - (bits >> 32).trailing_zeros().min(20) as u16;
        bf16::from_bits(bits as u16 & 0x807F | exponent << 7)
    };
    let values: Vec<bf16> = (0..samples * VALUES).map(value).collect();
    writer.push_batch(&[ColumnBatch::fixed(samples as usize, &values)])?;
    writer.finish().map(drop)
}

/// The number of hard links to a file. File systems allow this many, or a few more.
const LINKS: u64 = 50_000;

/// Creates a dataset of `files` files, which are hard links to a few small ones. Each sample is one
/// byte, the same in all.
pub fn link(folder: &Path, files: u64, file_samples: u64) -> Result<Dataset, Failure> {
    let mut changes = Dataset::create(folder)?;
    let mut paths = Vec::new();
    let mut first = PathBuf::new();
    for number in 0..files {
        let path = changes.next_path()?;
        if number % LINKS == 0 {
            write_constant(&path, number, file_samples)?;
            first.clone_from(&path);
        } else {
            fs::hard_link(&first, &path)?;
        }
        paths.push(path);
    }
    append_all(&mut changes, &paths)?;
    Ok(changes.publish("create")?)
}

fn write_constant(path: &Path, number: u64, samples: u64) -> tensilo::Result<()> {
    let schema = Schema::new([ColumnSchema::tensor(COLUMN, DType::U8, Shape::scalar())]);
    let mut writer = Writer::create(path, schema, &WriterOptions::new().origin(number.to_le_bytes()))?;
    writer.push_batch(&[ColumnBatch::fixed(samples as usize, &vec![7_u8; samples as usize])])?;
    writer.finish().map(drop)
}

/// Returns the model of a dataset of files that equal `file`, with the reads that open this file.
pub fn model(dataset: &Dataset, file: &Path) -> Result<ColumnModel, Failure> {
    let reader = Reader::open(file)?;
    let first = reader.column(COLUMN)?.chunk(0)?.ok_or("the file has no chunks")?;
    let opening = opening_reads(file)?.into_iter().map(|read| {
        let is_from_end = read.start > first.file_range.start;
        let offset = if is_from_end { reader.file_bytes() - read.start } else { read.start };
        OpeningRead { offset, is_from_end, bytes: read.end - read.start }
    });
    Ok(ColumnModel::of_file(&reader, COLUMN, dataset.sample_count(), opening.collect())?)
}
