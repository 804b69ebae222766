//! Formats other than NumPy's.

use super::common::{check, check_refused, columns, convert, data};
use std::fs;
use tensilo::{DType, Extent, Shape};
use tensilo_convert::FormatOptions;
use tensilo_testing::Folder;

#[test]
fn safetensors_have_the_values_that_the_library_reads() {
    check("safetensors/samples.safetensors", FormatOptions::new());
    check("one-sample/weights.safetensors", FormatOptions::new().file_is_sample(true));
    check_refused(&data("one-sample/weights.safetensors"), "one sample");
}

#[test]
fn a_header_of_safetensors_is_inside_the_file_and_its_limit() {
    let folder = Folder::new();
    for (length, text) in
        [(150_000_000_u64, "150000000 bytes, more than 100000000"), (9, "9 bytes, but only 2 bytes follow in the file")]
    {
        let bytes = [&length.to_le_bytes()[..], b"{}"].concat();
        check_refused(&folder.file("a.safetensors", bytes), text);
    }
}

#[test]
fn metadata_of_safetensors_are_preserved() {
    let file = convert(&[data("safetensors/samples.safetensors")], FormatOptions::new()).unwrap();
    assert_eq!(file.schema().metadata["source"], "make.py");
    assert_eq!(file.schema().columns[0].metadata.get("tensilo.bf16"), None);
}

#[test]
fn archives_of_webdataset_have_the_values_that_the_library_reads() {
    check("webdataset/train.tar", FormatOptions::new());
    check("webdataset/train.tar.gz", FormatOptions::new());
}

#[test]
fn arrays_in_an_archive_have_the_shape_that_all_have() {
    let file = convert(&[data("webdataset/train.tar")], FormatOptions::new()).unwrap();
    let shape = |name: &str| file.column(name).unwrap().schema().shape.clone();
    assert_eq!(shape("fixed.npy"), Shape::fixed(&[3]));
    assert_eq!(shape("mel.npy"), Shape::new([Extent::Varying, Extent::Fixed(2)]));
    assert_eq!(shape("scalar.npy"), Shape::scalar());
}

#[test]
fn tfrecords_have_the_values_that_the_library_reads() {
    check("tfrecord/train.tfrecord", FormatOptions::new());
}

#[test]
fn a_wrong_checksum_of_a_record_is_named() {
    let folder = Folder::new();
    let whole = fs::read(data("tfrecord/train.tfrecord")).unwrap();
    for (offset, text) in [(3, "checksum of its length"), (20, "checksum of its bytes"), (whole.len() - 1, "record 4")]
    {
        let mut damaged = whole.clone();
        damaged[offset] ^= 1;
        check_refused(&folder.file("a.tfrecord", damaged), text);
    }
}

/// A batch that ends with a large value must fit the offsets of Arrow, too.
#[test]
fn a_record_is_smaller_than_the_offsets_of_arrow_allow() {
    let length = ((1_u64 << 31) - 1).to_le_bytes();
    let crc = crc32c::crc32c(&length).rotate_right(15).wrapping_add(0xA282_EAD8).to_le_bytes();
    let folder = Folder::new();
    check_refused(
        &folder.file("a.tfrecord", [&length[..], &crc].concat()),
        "it has 2147483647 bytes, more than 2145386495",
    );
}

#[test]
fn json_lines_have_the_values_that_python_reads() {
    check("json-lines/train.jsonl", FormatOptions::new());
    check("json-lines/train.jsonl.gz", FormatOptions::new());
}

#[test]
fn a_line_that_cannot_be_stored_is_named() {
    let folder = Folder::new();
    check_refused(
        &folder.file("a.jsonl", "{\"a\": 1}\n\n{\"a\": \"x\"}\n"),
        "line 3: a: found a string, but earlier values are integers",
    );
    check_refused(&folder.file("b.jsonl", "{\"a\": 1}\n[]\n"), "line 2: the value is not an object");
    check_refused(&folder.file("c.jsonl", "{\"a\": 1}\n{\"a\": "), "line 2: invalid JSON");
}

#[test]
fn members_of_empty_lists_and_nulls_have_some_type() {
    let folder = Folder::new();
    let lines = "{\"n\": null, \"l\": [], \"o\": {}}\n{\"n\": null, \"l\": null, \"o\": null}\n";
    let file = convert(&[folder.file("a.jsonl", lines)], FormatOptions::new()).unwrap();
    assert_eq!(file.sample_count(), 2);
    assert_eq!(file.column("l").unwrap().schema().dtype, DType::I64);
}

#[test]
fn documents_of_megatron_are_their_sequences() {
    check("megatron/text.idx", FormatOptions::new());
}

#[test]
fn a_file_of_tokens_that_is_missing_or_short_is_named() {
    let folder = Folder::new();
    let index = folder.file("a.idx", fs::read(data("megatron/text.idx")).unwrap());
    let missing = convert(std::slice::from_ref(&index), FormatOptions::new()).err().unwrap();
    assert!(missing.to_string().contains("a.bin"), "{missing}");
    folder.file("a.bin", &fs::read(data("megatron/text.bin")).unwrap()[..20]);
    check_refused(&index, "sequence 4 has 4 bytes at offset 18");
}

#[test]
fn an_index_of_sequences_without_documents_is_refused() {
    let folder = Folder::new();
    folder.file("a.bin", [1, 0, 0, 0]);
    let header = [b"MMIDIDX\0\0".as_slice(), &1_u64.to_le_bytes(), &[4]].concat();
    let counts = [1_u64, 1].map(u64::to_le_bytes).concat();
    let lists = [&1_i32.to_le_bytes()[..], &0_i64.to_le_bytes(), &0_i64.to_le_bytes()].concat();
    check_refused(&folder.file("a.idx", [header, counts, lists].concat()), "1 sequences, but no documents");
}

#[test]
fn formats_are_recognized_without_a_name() {
    let folder = Folder::new();
    let names = [
        "npz/stored.npz",
        "safetensors/samples.safetensors",
        "webdataset/train.tar.gz",
        "tfrecord/train.tfrecord",
        "json-lines/train.jsonl.gz",
    ];
    for name in names {
        let unnamed = folder.file("unnamed", fs::read(data(name)).unwrap());
        let found = convert(&[unnamed], FormatOptions::new()).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(columns(&found), columns(&convert(&[data(name)], FormatOptions::new()).unwrap()), "{name}");
    }
}
