//! Replays the fuzz corpora, and the inputs that once broke something, without a fuzzer. No input
//! may break a promise.
//!
//! The corpora themselves are tested, too: they must have sound and broken chunks in every form, or
//! a replay would prove little.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tensilo_testing::{Files, archive};

#[path = "../../fuzz/src/lib.rs"]
#[allow(dead_code, reason = "the mutator is for libFuzzer")]
mod fuzz;

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz").join(name)
}

/// Returns the inputs of `fuzz/corpus.tar` for a target.
fn corpus(target: &str) -> Files {
    let prefix = format!("corpus/{target}/");
    archive("fuzz/corpus.tar").into_iter().filter(|(name, _)| name.starts_with(&prefix)).collect()
}

fn replay(target: &str, run: fuzz::Run, inputs: &Files) {
    for (name, input) in inputs {
        let result = std::panic::catch_unwind(|| run(input));
        assert!(result.is_ok(), "{target} broke on {name}");
    }
}

#[test]
fn every_input_of_a_corpus_keeps_the_promises() {
    for (target, run) in fuzz::TARGETS {
        let inputs = corpus(target);
        assert!(inputs.len() >= 10, "{target} has a corpus of {} inputs", inputs.len());
        replay(target, *run, &inputs);
    }
}

#[test]
fn every_input_that_once_broke_a_promise_keeps_it() {
    let inputs = archive("fuzz/regressions.tar");
    assert!(!inputs.is_empty());
    for (name, input) in inputs {
        let target = name.split('/').nth(1).expect("a folder for each target");
        let (_, run) = fuzz::TARGETS.iter().find(|(name, _)| *name == target).expect("a target of this name");
        replay(target, *run, &[(name.clone(), input)].into());
    }
}

/// A corpus without sound or without broken chunks would test little.
#[test]
fn corpora_have_sound_and_broken_chunks_of_each_form_and_long_ones() {
    for (id, name) in DECODERS {
        let inputs = corpus(&format!("decode_{name}"));
        let outcome = |input: &Vec<u8>| fuzz::decode::check(id, input);
        let outcomes: Vec<fuzz::decode::Outcome> = inputs.values().filter_map(outcome).collect();
        for in_blocks in [false, true] {
            let of_form = outcomes.iter().filter(|outcome| outcome.in_blocks == in_blocks);
            let sound = of_form.clone().filter(|outcome| outcome.sound_chunks == 2);
            let broken = of_form.filter(|outcome| outcome.sound_chunks < 2);
            // the block indexes of such long chunks are read on their own
            let long = sound.clone().filter(|outcome| outcome.stored_bytes >= 8 << 10);
            let counts = [sound.count(), broken.count(), long.count()];
            let expected = if !in_blocks {
                [5, 5, 0]
            } else if name == "constant" {
                [0; 3]
            } else {
                [5, 5, 1]
            };
            let is_enough = counts.iter().zip(expected).all(|(found, min)| *found >= min);
            assert!(is_enough, "{name}, in blocks: {in_blocks}: {counts:?}");
        }
    }
}

/// Inputs in which an option is only refused would not compare the kernels behind it.
#[test]
fn the_corpus_of_bins_has_sound_chunks_of_each_mapping_and_option() {
    let mut inputs = Vec::new();
    for input in corpus("decode_bins").into_values() {
        let Some(outcome) = fuzz::decode::check(6, &input).filter(|outcome| outcome.sound_chunks == 2) else {
            continue;
        };
        // the stored bytes of the first chunk start at offset 6; in blocks, the tables start 8
        // later
        inputs.push(input[if outcome.in_blocks { 14 } else { 6 }..].to_vec());
    }
    let table_byte = |tables: &Vec<u8>, at: usize| tables.get(at).copied();
    let classes = inputs.iter().filter_map(|tables| table_byte(tables, 22));
    let sound: Vec<u8> = inputs.iter().filter_map(|tables| table_byte(tables, 23)).collect();
    let count = |is_counted: &dyn Fn(u8) -> bool| sound.iter().filter(|mapping| is_counted(**mapping)).count();
    let of_mappings = [0, 1, 2, 3].map(|expected| count(&|mapping| mapping & 15 == expected));
    let of_options = [16, 32, 64].map(|expected| count(&|mapping| mapping & expected != 0));
    let of_both = count(&|mapping| mapping & 15 != 0 && mapping & !15 != 0);
    let of_classes = classes.filter(|count| *count > 1).count();
    println!("{of_mappings:?} of mappings, {of_options:?} of options, {of_both} of both, {of_classes} of classes");
    assert!(of_mappings.iter().chain(&of_options).chain([&of_classes]).all(|&count| count >= 3) && of_both >= 5);
}

/// The targets that decode stored bytes, each with its encoding.
const DECODERS: [(u16, &str); 8] = [
    (0, "raw"),
    (1, "constant"),
    (2, "zstd"),
    (3, "bitshuffle_zstd"),
    (4, "exponent_tiers"),
    (5, "residual_tiers"),
    (6, "bins"),
    (7, "planes_zstd"),
];

/// Returns a line for each input: what its file decodes to, or the rules that it breaks.
fn decoded() -> String {
    let mut lines = String::new();
    for (encoding, name) in DECODERS {
        for (file, input) in corpus(&format!("decode_{name}")) {
            let results = fuzz::decode::results(encoding, &input);
            let sum = |result: Result<Vec<u8>, Option<&str>>| match result {
                Ok(bytes) => format!("{:08x}", crc32fast::hash(&bytes)),
                Err(rule) => rule.unwrap_or("no rule").to_owned(),
            };
            let sums: Vec<String> = results.unwrap_or_default().into_iter().map(sum).collect();
            lines += &format!("{file}: {}\n", sums.join(" "));
        }
    }
    lines
}

/// The environment variable that makes a process of this program write decoded corpora to a path.
const WRITE_DECODED: &str = "TENSILO_TEST_WRITE_DECODED";

/// A process chooses its kernels once, so a child process does the work for
/// [`kernels_decode_corpora_alike`].
#[test]
fn decoded_corpora_are_written_on_request() {
    if let Some(path) = std::env::var_os(WRITE_DECODED) {
        fs::write(path, decoded()).unwrap();
    }
}

#[test]
fn kernels_decode_corpora_alike() {
    let expected = decoded();
    let expected: Vec<&str> = expected.lines().collect();
    assert!(expected.len() > 10 * DECODERS.len());
    let folder = tempfile::tempdir().unwrap();
    // a name that this CPU does not support selects the fastest kernels
    for kernels in ["scalar", "avx2", "avx512", "neon"] {
        let path = folder.path().join(kernels);
        let arguments = ["--exact", "corpora::decoded_corpora_are_written_on_request"];
        let mut command = Command::new(std::env::current_exe().unwrap());
        let child = command.args(arguments).env("TENSILO_KERNELS", kernels).env(WRITE_DECODED, &path).output().unwrap();
        assert!(child.status.success(), "{kernels}: {child:?}");
        let found = fs::read_to_string(path).unwrap();
        let differing: Vec<_> =
            expected.iter().zip(found.lines()).filter(|(expected, found)| *expected != found).collect();
        assert!(found.lines().count() == expected.len() && differing.is_empty(), "{kernels}: {differing:#?}");
    }
}

#[test]
fn every_target_can_be_fuzzed() {
    let mut known: BTreeSet<String> = fuzz::TARGETS.iter().map(|(name, _)| (*name).to_owned()).collect();
    known.insert("import_formats".to_owned()); // replayed by the tests of `tensilo-convert`
    let manifest = fs::read_to_string(folder("Cargo.toml")).unwrap();
    let binaries = manifest.split("[[bin]]\nname = \"").skip(1).map(|rest| rest.split('"').next().unwrap().to_owned());
    assert_eq!(binaries.collect::<BTreeSet<String>>(), known);
    let sources = fs::read_dir(folder("fuzz_targets")).unwrap().map(|entry| entry.unwrap().path());
    let names = |path: PathBuf| path.file_stem().unwrap().to_str().unwrap().to_owned();
    assert_eq!(sources.map(names).collect::<BTreeSet<String>>(), known);
}

/// Most mutants must pass the first checks, or the mutator reaches no code behind them.
#[test]
fn mutants_still_open() {
    let (mut opened, mut made) = (0, 0);
    for (seed, mut file) in (0..).zip(corpus("resealed").into_values()) {
        if tensilo::Reader::from_bytes(file.clone()).is_ok() {
            let length = file.len();
            fuzz::mutate::mutate(&mut file, length, length, seed, |_, size, _| size);
            made += 1;
            opened += usize::from(tensilo::Reader::from_bytes(file.clone()).is_ok());
        }
    }
    assert!(made > 20 && opened * 2 > made, "{opened} of {made} open");
}
