//! Damaged files give values, or an error that names the file. They never panic.

use super::common::{backdate, columns, convert, data, names_in};
use proptest::prelude::*;
use serde_json::Value;
use std::fs;
use std::path::PathBuf;
use tensilo_convert::FormatOptions;
use tensilo_testing::{Folder, archive};

/// Returns the files of test data that are read.
fn names() -> Vec<String> {
    let folders = ["npy", "npz", "safetensors", "webdataset", "tfrecord", "json-lines", "megatron"];
    let names = folders.iter().flat_map(|folder| names_in(folder));
    names.filter(|name| !name.ends_with(".bin")).collect()
}

/// A folder with a damaged file and its companions.
struct DamagedInput {
    folder: Folder,
    path: PathBuf,
}

impl DamagedInput {
    fn new(name: &str) -> Self {
        let folder = Folder::new();
        let path = folder.path(name.rsplit('/').next().unwrap());
        let tokens = data(name).with_extension("bin");
        if tokens.exists() {
            fs::copy(&tokens, path.with_extension("bin")).unwrap();
            backdate(&path.with_extension("bin"));
        }
        Self { folder, path }
    }

    /// Converts these bytes under the file's name. Returns the values, or `None` if it fails.
    fn convert(&self, bytes: &[u8]) -> Option<Value> {
        fs::write(&self.path, bytes).unwrap();
        backdate(&self.path);
        let converted = convert(std::slice::from_ref(&self.path), FormatOptions::new());
        if let Err(error) = &converted {
            assert!(error.path().is_some_and(|path| path.starts_with(self.folder.root())), "{error}");
            assert_ne!(error.kind(), tensilo::ErrorKind::Internal, "{error}");
            // a panic in a decoder is caught, and the error says so
            assert!(!error.to_string().contains("its decoder panicked"), "{error}");
        }
        converted.ok().map(|reader| columns(&reader))
    }
}

#[test]
fn files_may_end_anywhere() {
    for name in names() {
        let (whole, damaged) = (fs::read(data(&name)).unwrap(), DamagedInput::new(&name));
        // most of an archive is padding
        let step = if whole.len() > 4_096 { 61 } else { 1 };
        for end in (0..whole.len()).step_by(step) {
            damaged.convert(&whole[..end]);
        }
    }
}

/// Inputs that the fuzzer keeps are read, or refused by an error.
#[test]
fn inputs_of_the_corpus_are_read_or_refused() {
    let mut inputs = archive("fuzz/corpus.tar");
    inputs.retain(|name, _| name.starts_with("corpus/import_formats/"));
    assert!(inputs.len() >= 10);
    let damaged = DamagedInput::new("npy/unnamed");
    let read = inputs.values().filter_map(|input| damaged.convert(input)).count();
    assert!(read >= 10, "{read} of {} are read", inputs.len());
}

#[test]
fn flips_in_files_with_checksums_are_noticed() {
    for name in ["npz/stored.npz", "npz/compressed.npz", "tfrecord/train.tfrecord", "json-lines/train.jsonl.gz"] {
        let (whole, damaged) = (fs::read(data(name)).unwrap(), DamagedInput::new(name));
        let expected = damaged.convert(&whole).unwrap();
        // the directory of an archive has no checksum
        let list = whole.windows(4).position(|bytes| bytes == b"PK\x01\x02").unwrap_or(whole.len());
        let mut noticed = 0;
        for bit in 0..list * 8 {
            let mut bytes = whole.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            match damaged.convert(&bytes) {
                // times and modes in an archive do not affect values
                Some(found) => assert!(found == expected, "{name}: bit {bit} makes {found}"),
                None => noticed += 1,
            }
        }
        assert!(noticed * 10 > list * 8 * 4, "{name}: {noticed} of {} bits", list * 8);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(24) })]

    #[test]
    fn files_may_have_any_bytes(flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4)) {
        for name in names() {
            let (mut bytes, damaged) = (fs::read(data(&name)).unwrap(), DamagedInput::new(&name));
            // the start of a file says how the rest is read
            let prefix_bytes = bytes.len().min(1_536);
            for (at, byte) in &flips {
                let at = at.index(prefix_bytes);
                bytes[at] = *byte;
            }
            damaged.convert(&bytes);
        }
    }

    #[test]
    fn files_may_begin_as_others_do(rest in prop::collection::vec(any::<u8>(), 0..600)) {
        let damaged = DamagedInput::new("npy/unnamed");
        for name in names() {
            let start = fs::read(data(&name)).unwrap();
            for prefix_bytes in [8, 12, 40] {
                damaged.convert(&[&start[..prefix_bytes.min(start.len())], rest.as_slice()].concat());
            }
        }
    }
}
