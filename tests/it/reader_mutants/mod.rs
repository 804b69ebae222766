//! Tests that the crate and the second reader, `format-spec/reader.py`, accept the same files. For
//! each mutant of a valid vector or a generated file, either both accept it and read the same
//! values, or both refuse it.
//!
//! `TENSILO_READER_MUTANTS` is the number of mutants, `TENSILO_READER_SEED` their seed. Needs
//! Python as `second_reader` does.

mod mutants;

use crate::common::data::arbitrary_table;
use crate::common::plan::{WritePlan, arbitrary_plan, write};
use crate::common::vectors::{self, spec_folder};
use mutants::{Sample, changed_before, changed_in_place, samples};
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;
use std::collections::BTreeMap;
use std::io::Write;
use std::process::Stdio;
use tensilo::nested::List;
use tensilo::source::InMemory;
use tensilo::verify::{VerifyOptions, verify};
use tensilo::{ColumnSchema, DType, Reader};
use tensilo_testing::{Random, env_or, python};

/// The number of mutants, unless the environment says otherwise.
const MUTANTS: usize = 400;
/// The number of generated files.
const FILES: u32 = 40;
/// Mutants of longer files take longer and show nothing new.
const MAX_BYTES: usize = 64 << 10;
/// Mutants for each start of Python.
const BATCH: usize = 2_000;
/// The values of files with more samples are not compared.
const MAX_SAMPLES: u64 = 20_000;

/// For each file on standard input, preceded by its length, prints the rule that it breaks or the
/// CRC of its samples.
const SCRIPT: &str = "
import sys, zlib
sys.path.insert(0, sys.argv[1])
import reader
try:
    import resource
    resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))
except ImportError:
    pass
files = sys.stdin.buffer

def text_of(entry):
    if entry is None:
        return b'null'
    if isinstance(entry, list):
        return b'(' + b''.join(map(text_of, entry)) + b')'
    return str(entry['extents']).encode() + bytes.fromhex(entry['hex'])

def crc_of(found):
    crc = 0
    for column in found['columns']:
        for sample in column['samples'] or ():  # None: the dtype is unknown
            crc = zlib.crc32(text_of(sample), crc)
    return crc

while head := files.read(8):
    data = files.read(int.from_bytes(head, 'little'))
    try:
        violation = reader.verify(data)
        if violation:
            print(violation.rule)
            continue
        found = reader.read(data, requested=[])
        print('ok', crc_of(reader.read(data)) if found['sample_count'] <= int(sys.argv[2]) else 'many')
    except MemoryError:
        print('memory')
";

/// Returns the verdict of the second reader on each file.
fn second_verdicts(files: &[Vec<u8>]) -> Vec<String> {
    let mut command = python().expect("python3 was there before");
    command.arg("-c").arg(SCRIPT).arg(spec_folder()).arg(MAX_SAMPLES.to_string());
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("python3 starts");
    let mut stdin = child.stdin.take().expect("a pipe");
    let output = std::thread::scope(|scope| {
        scope.spawn(move || {
            for file in files {
                let prefix = (file.len() as u64).to_le_bytes();
                stdin.write_all(&prefix).and_then(|()| stdin.write_all(file)).expect("Python reads");
            }
        });
        child.wait_with_output().expect("Python ends")
    });
    assert!(output.status.success(), "the second reader failed");
    let lines: Vec<String> = String::from_utf8(output.stdout).expect("text").lines().map(str::to_owned).collect();
    assert_eq!(lines.len(), files.len());
    lines
}

/// Returns the verdict of the crate on a file, in the words of the script.
fn verdict(file: &[u8]) -> String {
    let refused = match verify(&InMemory(file), VerifyOptions::new().deep(true)) {
        Ok(report) => report.findings.into_iter().next().map(|damage| damage.error),
        Err(error) => Some(error),
    };
    match refused {
        Some(error) => error.rule().map_or_else(|| error.to_string(), str::to_owned),
        None => format!("ok {}", contents(file)),
    }
}

/// Returns the CRC of all samples.
fn contents(file: &[u8]) -> String {
    let reader = Reader::from_bytes(file.to_vec()).expect("an intact file");
    if reader.sample_count() > MAX_SAMPLES {
        return "many".to_owned();
    }
    let mut crc = crc32fast::Hasher::new();
    for column in reader.columns() {
        let (mut cursor, schema) = (column.cursor(), column.schema());
        if matches!(schema.dtype, DType::Unknown { .. }) {
            continue;
        }
        for i in 0..reader.sample_count() {
            match schema.levels.is_empty() {
                true => add_item(&mut crc, schema, &cursor.read(i).expect("an intact file")),
                false => add_list(&mut crc, schema, &cursor.read_list(i).expect("an intact file")),
            }
        }
    }
    crc.finalize().to_string()
}

fn add_list(crc: &mut crc32fast::Hasher, schema: &ColumnSchema, list: &List<'_>) {
    if list.is_null() {
        return crc.update(b"null");
    }
    crc.update(b"(");
    for k in 0..list.len() {
        match list.has_lists() {
            true => add_list(crc, schema, &list.list(k).expect("an intact file")),
            false => add_item(crc, schema, &list.item(k).expect("an intact file")),
        }
    }
    crc.update(b")");
}

fn add_item(crc: &mut crc32fast::Hasher, schema: &ColumnSchema, item: &tensilo::Sample<'_>) {
    if item.is_null() {
        return crc.update(b"null");
    }
    let dimensions = item.extents().iter().zip(schema.shape.extents());
    let varying = dimensions.filter(|(_, extent)| **extent == tensilo::Extent::Varying);
    crc.update(format!("{:?}", varying.map(|(extent, _)| *extent).collect::<Vec<u32>>()).as_bytes());
    let mut bytes = item.bytes().to_vec();
    if cfg!(target_endian = "big") {
        bytes.chunks_exact_mut(schema.dtype.element_bytes()).for_each(<[u8]>::reverse);
    }
    crc.update(&bytes);
}

/// Returns valid vectors and generated files.
fn intact_files() -> Vec<Vec<u8>> {
    let mut files: Vec<Vec<u8>> =
        vectors::vectors(true).iter().map(|vector| vectors::bytes(vectors::file_of(vector))).collect();
    let runner = &mut TestRunner::deterministic();
    for _ in 0..FILES {
        let tree = (arbitrary_table(60), arbitrary_plan()).new_tree(runner).expect("a table");
        let (table, plan): (crate::common::Table, WritePlan) = tree.current();
        files.push(write(&table, &plan));
    }
    files.retain(|file| file.len() <= MAX_BYTES);
    files
}

#[test]
fn both_readers_accept_the_same_mutants() {
    if python().is_none() {
        return;
    }
    let files = intact_files();
    let chunks: Vec<Sample> = files.iter().flat_map(|file| samples(file)).collect();
    let mut random = Random(env_or("TENSILO_READER_SEED", 13));
    let mut left = env_or("TENSILO_READER_MUTANTS", MUTANTS);
    let (mut said, mut differing) = (BTreeMap::<String, u64>::new(), Vec::new());
    while left > 0 {
        let count = left.min(BATCH);
        left -= count;
        let mutants: Vec<Vec<u8>> = (0..count)
            .map(|_| match random.one_in(2) {
                true => changed_in_place(&files[random.index(files.len())], &mut random),
                false => {
                    let [one, other] = [0; 2].map(|_| random.index(chunks.len()));
                    changed_before(&chunks[one], &chunks[other], &mut random)
                }
            })
            .collect();
        for (mutant, second) in mutants.iter().zip(second_verdicts(&mutants)) {
            let first = verdict(mutant);
            let kind = |verdict: &str| verdict.split(' ').next().unwrap_or("").to_owned();
            *said.entry(kind(&first)).or_default() += 1;
            *said.entry(if first == second { "same" } else { "other rule" }.to_owned()).or_default() += 1;
            let is_accepted = |verdict: &str| verdict.starts_with("ok");
            if second != "memory" && (is_accepted(&first) || is_accepted(&second)) && first != second {
                differing
                    .push(format!("the crate: {first}; reader.py: {second}; {}", save_mutant(mutant, differing.len())));
            }
        }
    }
    println!("{said:?}");
    assert!(said.get("ok").is_some_and(|count| *count > 0), "no mutant was accepted: {said:?}");
    assert!(differing.is_empty(), "{} differ:\n{}", differing.len(), differing.join("\n"));
}

/// Writes a mutant to a file for inspection; returns its path.
fn save_mutant(mutant: &[u8], number: usize) -> String {
    let path = std::env::temp_dir().join(format!("tensilo-mutant-{number}.tsl"));
    std::fs::write(&path, mutant).expect("disk space");
    path.display().to_string()
}
