//! Tar archives as different programs write them: no sample is lost without an error.

use super::common::{columns, convert, convert_options, data, gzip, npy};
use proptest::prelude::*;
use serde_json::Value;
use std::fs;
use std::process::Command;
use tar::Header;
use tensilo::import::ConvertOptions;
use tensilo::{DType, Reader};
use tensilo_convert::{FormatOptions, input_formats};
use tensilo_testing::{Folder, available};

/// Returns the blocks of a member.
fn member(kind: u8, name: &str, content: &[u8]) -> Vec<u8> {
    let mut header = Header::new_gnu();
    header.set_entry_type(tar::EntryType::new(kind));
    header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
    header.set_size(content.len() as u64);
    with_content(header, content)
}

fn with_content(mut header: Header, content: &[u8]) -> Vec<u8> {
    header.set_cksum();
    let mut blocks = [header.as_bytes(), content].concat();
    blocks.resize(blocks.len().next_multiple_of(512), 0);
    blocks
}

fn file(name: &str, content: &[u8]) -> Vec<u8> {
    member(b'0', name, content)
}

/// Returns the PAX records of the next member.
fn pax(records: &[(&str, &str)]) -> Vec<u8> {
    let record = |(key, value): &(&str, &str)| {
        let rest = key.len() + value.len() + 3;
        let length = (rest + 1..).find(|length| length.to_string().len() + rest == *length).unwrap();
        format!("{length} {key}={value}\n")
    };
    member(b'x', "pax", records.iter().map(record).collect::<String>().as_bytes())
}

fn archive(members: &[Vec<u8>]) -> Vec<u8> {
    [members.concat(), vec![0; 1_024]].concat()
}

fn import(bytes: &[u8]) -> tensilo::Result<Reader> {
    convert(&[Folder::new().file("a.tar", bytes)], FormatOptions::new())
}

fn import_without(bytes: &[u8], skipped: &str) -> tensilo::Result<Reader> {
    let options = ConvertOptions::new().formats(input_formats(FormatOptions::new())).skip([skipped]);
    convert_options(&[Folder::new().file("a.tar", bytes)], &options)
}

fn bytes_of(reader: &Reader, column: &str, sample: u64) -> Vec<u8> {
    reader.column(column).unwrap().cursor().read(sample).unwrap().bytes().to_vec()
}

fn keys(reader: &Reader) -> Vec<String> {
    (0..reader.sample_count()).map(|i| String::from_utf8(bytes_of(reader, "__key__", i)).unwrap()).collect()
}

#[track_caller]
fn refused(found: tensilo::Result<Reader>, texts: &[&str]) {
    let error = found.err().expect("it was converted").to_string();
    texts.iter().for_each(|text| assert!(error.contains(text), "{text:?} in {error}"));
}

/// Returns a sparse file in each of GNU's formats, with chunks of data at their offsets.
fn sparse(name: &str, size: u64, chunks: &[(u64, &[u8])]) -> [Vec<u8>; 4] {
    let (mut data, mut table) = (Vec::new(), Vec::new());
    for (offset, chunk) in chunks {
        data.extend_from_slice(chunk);
        table.push((*offset, chunk.len() as u64));
    }
    let size_text = size.to_string();

    let octal = |number: u64| -> [u8; 12] { format!("{number:011o}\0").into_bytes().try_into().unwrap() };
    let fields: Vec<u8> = table
        .iter()
        .chain([&(size, 0)])
        .flat_map(|&(offset, length)| [octal(offset), octal(length)].concat())
        .collect();
    let mut header = Header::new_gnu();
    header.set_entry_type(tar::EntryType::GNUSparse);
    header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
    header.set_size(data.len() as u64);
    let in_header = fields.len().min(96);
    header.as_mut_bytes()[386..386 + in_header].copy_from_slice(&fields[..in_header]);
    header.as_mut_bytes()[482] = u8::from(fields.len() > 96);
    header.as_mut_bytes()[483..495].copy_from_slice(&octal(size));
    let mut blocks = fields[in_header..].chunks(504).peekable();
    let mut behind = Vec::new();
    while let Some(block) = blocks.next() {
        let mut block = block.to_vec();
        block.resize(504, 0);
        block.push(u8::from(blocks.peek().is_some()));
        block.resize(512, 0);
        behind.extend(block);
    }
    header.set_cksum();
    let mut old = [header.as_bytes().as_slice(), &behind, &data].concat();
    old.resize(old.len().next_multiple_of(512), 0);

    let texts: Vec<String> =
        table.iter().flat_map(|&(offset, length)| [offset, length]).map(|n| n.to_string()).collect();
    let count = table.len().to_string();
    let mut records = vec![("GNU.sparse.size", size_text.as_str()), ("GNU.sparse.numblocks", &count)];
    for pair in texts.chunks(2) {
        records.extend([("GNU.sparse.offset", pair[0].as_str()), ("GNU.sparse.numbytes", &pair[1])]);
    }
    let version_0_0 = [pax(&records), file(name, &data)].concat();

    let map = texts.join(",");
    let records = [
        ("GNU.sparse.size", size_text.as_str()),
        ("GNU.sparse.numblocks", &count),
        ("GNU.sparse.name", name),
        ("GNU.sparse.map", &map),
    ];
    let version_0_1 = [pax(&records), file("./GNUSparseFile.7/a.other", &data)].concat();

    let records = [
        ("GNU.sparse.major", "1"),
        ("GNU.sparse.minor", "0"),
        ("GNU.sparse.name", name),
        ("GNU.sparse.realsize", size_text.as_str()),
    ];
    let mut content = [std::slice::from_ref(&count), texts.as_slice()].concat().join("\n").into_bytes();
    content.push(b'\n');
    content.resize(content.len().next_multiple_of(512), 0);
    content.extend_from_slice(&data);
    [old, version_0_0, version_0_1, [pax(&records), file("./GNUSparseFile.7/a.other", &content)].concat()]
}

#[test]
fn sparse_files_have_their_holes() {
    let chunk = [vec![1; 512], vec![2; 512]].concat();
    for (i, sparse) in sparse("a.bin", 65_536, &[(512, &chunk), (32_768, b"hello")]).into_iter().enumerate() {
        let reader = import(&archive(&[file("a.txt", b"x"), sparse, file("b.bin", b"y")])).unwrap();
        let mut expected = vec![0; 65_536];
        expected[512..1_536].copy_from_slice(&chunk);
        expected[32_768..32_773].copy_from_slice(b"hello");
        assert!(bytes_of(&reader, "bin", 0) == expected, "form {i}");
        assert_eq!((keys(&reader), bytes_of(&reader, "bin", 1)), (vec!["a".to_owned(), "b".to_owned()], b"y".to_vec()));
        assert_eq!(reader.schema().columns.len(), 3, "form {i}");
    }
}

#[test]
fn sparse_files_that_only_their_holes_make_large_are_refused() {
    for sparse in sparse("a.bin", 1 << 30, &[(0, &[1; 512])]) {
        let bytes = archive(&[file("a.txt", b"x"), sparse]);
        refused(import(&bytes), &["a.tar", "\"a.bin\"", "sparse", "--sparse", "skip"]);
        assert_eq!(keys(&import_without(&bytes, "bin").unwrap()), ["a"]);
    }
    let lies = archive(&[
        pax(&[("GNU.sparse.major", "2"), ("GNU.sparse.minor", "0"), ("GNU.sparse.size", "5")]),
        file("a.bin", b"hello"),
    ]);
    refused(import(&lies), &["a.bin", "version \"2.0\""]);
}

/// Each file is within its bound, but all together are not.
#[test]
fn sparse_files_that_are_large_together_are_refused() {
    let members: Vec<Vec<u8>> = (0..8).map(|i| sparse(&format!("k.c{i}"), 16 << 20, &[])[0].clone()).collect();
    let bytes = archive(&members);
    refused(import(&bytes), &["\"k.c1\"", "sparse files up to this one", "skip"]);
    let options = ConvertOptions::new().formats(input_formats(FormatOptions::new())).columns(["c0"]);
    let reader = convert_options(&[Folder::new().file("a.tar", bytes)], &options).unwrap();
    assert_eq!(bytes_of(&reader, "c0", 0).len(), 16 << 20);
    // as many as the data allow
    let data = vec![1; 64 << 10];
    let chunks = [(0, data.as_slice())];
    let members: Vec<Vec<u8>> = (0..3).map(|i| sparse(&format!("k.c{i}"), 60 << 20, &chunks)[0].clone()).collect();
    assert_eq!(import(&archive(&members)).unwrap().schema().columns.len(), 4);
}

#[test]
fn files_of_columns_that_are_left_out_are_not_read() {
    let bytes = archive(&[
        file("a.txt", b"1"),
        file("a.bin", b"x"),
        file("b.bin", b"y"),
        file("c.cls", b"7"),
        file("c.bin", b"z"),
    ]);
    let options = || ConvertOptions::new().formats(input_formats(FormatOptions::new()));
    let folder = Folder::new();
    let path = [folder.file("a.tar", bytes)];
    let whole = columns(&convert_options(&path, &options()).unwrap());
    for names in [&["__key__"][..], &["txt"], &["cls", "__key__"], &["bin"]] {
        let some = convert_options(&path, &options().columns(names.iter().copied())).unwrap();
        assert_eq!((some.sample_count(), some.schema().columns.len()), (3, names.len()));
        for (name, column) in columns(&some).as_object().unwrap() {
            assert_eq!(whole[name]["samples"], column["samples"], "{names:?}");
        }
    }
}

#[test]
fn an_archive_whose_names_have_no_suffix_is_refused() {
    let bytes = archive(&[file("img/0001", b"x"), file("img/0002", b"y")]);
    refused(import(&bytes), &["none of the 2 files has a suffix"]);
    let metadata = archive(&[file("__meta__/info.json", b"{}"), file("__x/y.z__", b"x")]);
    assert_eq!(keys(&import(&metadata).unwrap()), ["__x/y"]);
}

/// A column whose files contradict its suffix is found before any is stored, and can be skipped.
#[test]
fn files_that_contradict_their_suffix_can_be_left_out() {
    let array = |descr: &str, shape: &str, bytes: &[u8]| npy(descr, "False", shape, bytes);
    let small = array("|u1", "(2,)", &[1, 2]);
    for (suffix, first, second, text) in [
        ("id", b"5".to_vec(), b"abc".to_vec(), "does not contain a 64-bit integer"),
        ("txt", b"x".to_vec(), b"x\xFFy".to_vec(), "not UTF-8"),
        ("txt", b"x".to_vec(), "\u{e9}".as_bytes()[..1].to_vec(), "not UTF-8"),
        (
            "npy",
            small.clone(),
            array("|i1", "(2,)", &[1, 2]),
            "type i8 and 1 dimensions, but the first array has type u8 and 1",
        ),
        ("npy", small.clone(), array("|u1", "(2, 1)", &[1, 2]), "2 dimensions"),
        ("npy", small.clone(), small[..40].to_vec(), "truncated"),
        ("npy", b"x".to_vec(), small.clone(), "truncated"),
    ] {
        let bytes = archive(&[
            file("a.bin", b"x"),
            file(&format!("a.{suffix}"), &first),
            file("b.bin", b"y"),
            file(&format!("b.{suffix}"), &second),
        ]);
        refused(import(&bytes), &["a.tar", text, "skip"]);
        assert_eq!(keys(&import_without(&bytes, suffix).unwrap()), ["a", "b"]);
    }
    // the first bytes of a long text may end within a character
    let long = format!("{}\u{e9}x", "y".repeat(4_095));
    assert_eq!(bytes_of(&import(&archive(&[file("a.txt", long.as_bytes())])).unwrap(), "txt", 0), long.as_bytes());
}

#[test]
fn archives_may_be_concatenated() {
    let first = archive(&[file("a.txt", b"1")]);
    let second = archive(&[file("b.txt", b"2"), file("c.txt", b"3")]);
    for bytes in [
        [first.clone(), second.clone()].concat(),
        [first.clone(), vec![0; 10_240 - first.len()], second.clone()].concat(),
        [gzip(&first), gzip(&second)].concat(),
        gzip(&[first.clone(), second.clone()].concat()),
    ] {
        let reader = import(&bytes).unwrap();
        assert_eq!(keys(&reader), ["a", "b", "c"]);
        assert_eq!(bytes_of(&reader, "txt", 2), b"3");
    }
    refused(import(&[first, b"no header".repeat(100)].concat()), &["at offset 2048", "other bytes follow"]);
}

#[test]
fn compressed_files_may_be_concatenated() {
    let folder = Folder::new();
    for (name, file_name) in [("json-lines/train.jsonl", "a.jsonl.gz"), ("tfrecord/train.tfrecord", "a.tfrecord")] {
        let bytes = fs::read(data(name)).unwrap();
        let once = convert(&[data(name)], FormatOptions::new()).unwrap();
        let twice =
            convert(&[folder.file(file_name, [gzip(&bytes), gzip(&bytes)].concat())], FormatOptions::new()).unwrap();
        assert_eq!(twice.sample_count(), 2 * once.sample_count());
        let (once, twice) = (columns(&once), columns(&twice));
        for (column, content) in once.as_object().unwrap() {
            let samples = content["samples"].as_array().unwrap();
            assert_eq!(twice[column]["samples"], Value::Array([samples.as_slice(), samples].concat()), "{column}");
        }
    }
}

#[test]
fn files_of_one_key_follow_one_another() {
    let bytes = archive(&[file("a.txt", b"1"), file("b.txt", b"2"), file("a.cls", b"3")]);
    refused(import(&bytes), &["a.tar", "\"a\"", "sample 0", "sample 2", "cls", "--sort=name"]);
    let others: Vec<Vec<u8>> = (0..12).map(|i| file(&format!("a.c{i}"), b"3")).collect();
    let bytes = archive(&[file("a.txt", b"1"), file("b.txt", b"2"), others.concat()]);
    refused(import(&bytes), &["(c0, c1, c2, c3, c4, c5, c6, c7, ...)"]);
    let twice = archive(&[file("a.txt", b"1"), file("a.txt", b"2")]);
    refused(import(&twice), &["\"a\"", "\"txt\""]);
    // complete samples of concatenated archives
    let complete = archive(&[file("a.txt", b"1"), file("b.txt", b"2"), file("a.txt", b"3")]);
    assert_eq!(keys(&import(&complete).unwrap()), ["a", "b", "a"]);
}

#[test]
fn members_without_a_content_are_named() {
    for (kind, text) in
        [(b'1', "hard link"), (b'2', "symbolic link"), (b'3', "device"), (b'6', "pipe"), (b'Z', "unknown type")]
    {
        let bytes = archive(&[file("a.txt", b"x"), member(kind, "a.bin", b""), file("b.txt", b"y")]);
        refused(import(&bytes), &["a.tar", "\"a.bin\"", text, "skip"]);
        assert_eq!(keys(&import_without(&bytes, "bin").unwrap()), ["a", "b"]);
    }
    let folders = archive(&[member(b'5', "a.folder/", b""), file("a.folder/a.txt", b"x"), member(b'2', "link", b"")]);
    assert_eq!(keys(&import(&folders).unwrap()), ["a.folder/a"]);
}

#[test]
fn names_and_sizes_have_all_their_forms() {
    let long = format!("{}/{}.txt", "f".repeat(120), "n".repeat(120));
    let key = long.strip_suffix(".txt").unwrap();
    let mut binary = Header::new_gnu();
    binary.as_old_mut().name[..5].copy_from_slice(b"b.txt");
    binary.as_old_mut().size = [0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
    let members = [
        [member(b'L', "long", format!("{long}\0").as_bytes()), file("short", b"1")].concat(),
        with_content(binary, b"2"),
        [pax(&[("comment", "new\nline"), ("path", &long.replace('n', "ä"))]), file("short.x", b"3")].concat(),
        member(b'7', "c.txt", b"4"),
    ];
    let reader = import(&archive(&members)).unwrap();
    assert_eq!(keys(&reader), [key, "b", &key.replace('n', "ä"), "c"]);
    let texts: Vec<Vec<u8>> = (0..4).map(|i| bytes_of(&reader, "txt", i)).collect();
    assert_eq!(texts, [b"1", b"2", b"3", b"4"]);

    let malformed = [member(b'x', "pax", b"8 path=a\n"), file("b.txt", b"1")].concat();
    refused(import(&archive(&[malformed])), &["PAX"]);
    let global = [member(b'g', "pax", b"14 path=a.txt\n"), file("b.txt", b"1")].concat();
    refused(import(&archive(&[global])), &["malformed or unsupported: it sets names or sizes for all members"]);
    let cut_off = archive(&[file("a.txt", b"1"), member(b'L', "long", b"b.txt\0")]);
    refused(import(&cut_off), &["truncated"]);
}

#[test]
fn arrays_in_fortran_order_are_read() {
    let array = |order: &str, bytes: [u8; 6]| npy("|u1", order, "(2, 3)", &bytes);
    let members =
        [file("a.npy", &array("True", [1, 4, 2, 5, 3, 6])), file("b.npy", &array("False", [1, 2, 3, 4, 5, 6]))];
    let reader = import(&archive(&members)).unwrap();
    assert_eq!(reader.column("npy").unwrap().schema().dtype, DType::U8);
    assert_eq!(bytes_of(&reader, "npy", 0), bytes_of(&reader, "npy", 1));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(32) })]

    /// Tables of holes may have any length, and archives any bytes.
    #[test]
    fn sparse_files_of_any_chunks_are_read(
        chunks in prop::collection::vec((0..4_u64, 1..4_usize), 0..60),
        trailing_holes in 0..3_u64,
        flip in any::<prop::sample::Index>(),
    ) {
        let (mut expected, mut table) = (Vec::new(), Vec::new());
        for (i, (hole, blocks)) in chunks.into_iter().enumerate() {
            expected.resize(expected.len() + 512 * hole as usize, 0);
            let chunk = vec![i as u8 + 1; 512 * blocks];
            table.push((expected.len() as u64, chunk.clone()));
            expected.extend(chunk);
        }
        expected.resize(expected.len() + 512 * trailing_holes as usize, 0);
        let table: Vec<(u64, &[u8])> = table.iter().map(|(offset, chunk)| (*offset, chunk.as_slice())).collect();
        for sparse in sparse("a.bin", expected.len() as u64, &table) {
            let mut bytes = archive(&[file("a.txt", b"x"), sparse]);
            let reader = import(&bytes).unwrap();
            prop_assert!(bytes_of(&reader, "bin", 0) == expected);
            let at = flip.index(bytes.len());
            bytes[at] ^= 0x55;
            let _ = import(&bytes); // an error, or other values; never a panic
        }
    }
}

#[test]
fn archives_of_gnu_tar_are_read() {
    let version = match Command::new("tar").arg("--version").output() {
        Ok(output) if output.stdout.starts_with(b"tar (GNU tar)") => Ok(()),
        Ok(_) => Err("it is another tar".to_owned()),
        Err(error) => Err(error.to_string()),
    };
    if available("GNU tar", version, "TENSILO_REQUIRE_TAR").is_none() {
        return;
    }
    let folder = Folder::new();
    let mut sparse = vec![0; 1 << 20];
    sparse[500_000..500_005].copy_from_slice(b"hello");
    for (name, content) in [("a.bin", sparse.as_slice()), ("a.txt", b"x"), ("b.bin", b"y")] {
        folder.file(name, content);
    }
    for format in [
        &["--format=gnu"][..],
        &["--format=posix", "--sparse-version=0.0"],
        &["--format=posix", "--sparse-version=0.1"],
        &["--format=posix", "--sparse-version=1.0"],
    ] {
        let out = folder.path("all.tar");
        let mut tar = Command::new("tar");
        tar.args(["--create", "--sparse", "--hole-detection=raw", "--file"]).arg(&out).args(format);
        let status = tar.arg("-C").arg(folder.root()).args(["a.bin", "a.txt", "b.bin"]).status().unwrap();
        assert!(status.success(), "{format:?}");
        let reader = convert(&[out], FormatOptions::new()).unwrap();
        assert_eq!(keys(&reader), ["a", "b"]);
        assert!(bytes_of(&reader, "bin", 0) == sparse, "{format:?}");
    }
}
