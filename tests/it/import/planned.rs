//! Tests conversions that are planned first and then written file by file, in any order.

use super::common::*;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use tensilo::import::{
    AppendOptions, ConvertOptions, PlannedInput, ShardFiles, ShardPlan, append_shards, convert_rows, convert_shards,
    plan_appended_shards, plan_shards,
};
use tensilo::sink::Stream;
use tensilo::{Error, Result, Schema, Summary, WriterOptions};
use tensilo_testing::Folder;

/// Files in memory.
#[derive(Default)]
struct Memory(Vec<Vec<u8>>);

impl ShardFiles for Memory {
    type Sink = Stream<Vec<u8>>;
    type Error = Error;

    fn begin(&mut self) -> Result<Self::Sink> {
        Ok(Stream(Vec::new()))
    }

    fn finished(&mut self, file: Summary<Self::Sink>) -> Result<()> {
        self.0.push(file.sink.0);
        Ok(())
    }
}

fn writer() -> WriterOptions {
    WriterOptions::new().chunk_bytes(500)
}

fn go_on<T>(_: T) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

fn planned(inputs: &[PathBuf], bytes: u64) -> ShardPlan {
    plan_shards(inputs, bytes, &ConvertOptions::new().writer(writer()), &mut go_on).unwrap()
}

/// Writes one file of a plan.
fn file(plan: &ShardPlan, number: usize) -> Result<Vec<u8>> {
    let shard = &plan.shards[number];
    let options = AppendOptions::new().writer(writer().file_id(shard.file_id));
    let rows = shard.rows.clone();
    Ok(convert_rows(&plan.inputs, rows, &plan.schema, Path::new("table"), Stream(Vec::new()), &options, &mut go_on)?
        .sink
        .0)
}

/// Writes the files of a plan, the last one first.
fn files(plan: &ShardPlan) -> Vec<Vec<u8>> {
    let mut files: Vec<_> = (0..plan.shards.len()).rev().map(|number| file(plan, number).unwrap()).collect();
    files.reverse();
    files
}

/// Writes inputs of each format, with batches that end where no file does.
fn inputs(folder: &Folder) -> Vec<Vec<PathBuf>> {
    let batches = [mixed(90, 0), mixed(1, 90), mixed(133, 91)];
    write_arrow(folder.path("all.arrow"), &batches);
    write_parquet(folder.path("all.parquet"), &batches);
    write_parquet(folder.path("first.parquet"), &batches[..2]);
    write_parquet(folder.path("last.parquet"), &batches[2..]);
    convert_with(&[folder.path("all.arrow")], &folder.path("all.tsl"), &ConvertOptions::new()).unwrap();
    let lists: [&[&str]; 4] = [&["all.arrow"], &["all.parquet"], &["first.parquet", "last.parquet"], &["all.tsl"]];
    lists.map(|names| names.iter().map(|name| folder.path(name)).collect()).into()
}

#[test]
fn planned_files_equal_the_files_of_one_conversion() {
    let folder = Folder::new();
    for inputs in inputs(&folder) {
        for bytes in [1, 1_000, 5_000, u64::MAX] {
            let mut expected = Memory::default();
            let options = ConvertOptions::new().writer(writer());
            convert_shards(&inputs, &mut expected, bytes, &options, &mut go_on).unwrap();
            let plan = planned(&inputs, bytes);
            assert_eq!(plan.inputs.iter().map(|input| input.rows).sum::<u64>(), 224);
            assert!(files(&plan) == expected.0, "{inputs:?}, {bytes} bytes");
        }
    }
}

#[test]
fn planned_files_of_a_table_equal_the_files_of_an_append() {
    let folder = Folder::new();
    for inputs in inputs(&folder) {
        let schema: Schema = planned(&inputs, u64::MAX).schema;
        let table = Path::new("table");
        let mut expected = Memory::default();
        let options = AppendOptions::new().writer(writer());
        append_shards(&inputs, &schema, table, &mut expected, 2_000, &options, &mut go_on).unwrap();
        let plan = plan_appended_shards(&inputs, &schema, table, 2_000, &options, &mut go_on).unwrap();
        assert!(files(&plan) == expected.0 && expected.0.len() > 3, "{inputs:?}");
    }
}

#[test]
fn an_input_that_is_not_the_planned_one_is_refused() {
    let folder = Folder::new();
    let inputs = inputs(&folder).remove(1);
    let plan = planned(&inputs, 1_000);
    let refused = |plan: ShardPlan| file(&plan, 2).unwrap_err().to_string();
    let mut other = plan.clone();
    other.inputs[0].digest[3] ^= 1;
    assert!(refused(other).contains("replaced after"));
    let mut longer = plan.clone();
    longer.inputs[0].rows += 5;
    longer.shards[2].rows = 222..226;
    assert!(refused(longer).contains("the inputs yielded 2 samples, but samples 222..226 were planned"));
    let mut beyond = plan;
    beyond.inputs.push(PlannedInput { path: folder.path("nothing"), rows: 1, digest: [0; 16] });
    assert_eq!(file(&beyond, 2).unwrap(), file(&planned(&inputs, 1_000), 2).unwrap(), "it is not opened");
}
