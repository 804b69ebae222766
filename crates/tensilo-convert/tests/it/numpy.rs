//! NumPy arrays, and archives of them.

use super::common::{check, check_left_out, check_refused, convert, data, names_in, npy};
use tensilo::{ColumnBuffer, DType};
use tensilo_convert::FormatOptions;
use tensilo_testing::Folder;

#[test]
fn arrays_have_the_values_that_numpy_reads() {
    names_in("npy").iter().for_each(|name| check(name, FormatOptions::new()));
}

#[test]
fn archives_have_the_values_that_numpy_reads() {
    names_in("npz").iter().for_each(|name| check(name, FormatOptions::new()));
}

#[test]
fn arrays_follow_one_another() {
    let both = convert(&[data("npy/f32.npy"), data("npy/version-2.npy")], FormatOptions::new()).unwrap();
    assert_eq!(both.sample_count(), 10);
}

#[test]
fn arrays_that_cannot_be_stored_are_refused_with_a_reason() {
    check_refused(&data("refused/records.npy"), "records");
    check_refused(&data("refused/complex.npy"), "imaginary");
    check_refused(&data("refused/objects.npy"), "pickled");
    check_refused(&data("refused/bfloat16.npy"), "safetensors");
    check_refused(&data("refused/axes.npz"), "must have the same length");
}

/// Returns a zip archive of these files.
fn zip(arrays: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let mut archive = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (name, bytes) in arrays {
        archive.start_file(*name, zip::write::SimpleFileOptions::default()).unwrap();
        std::io::Write::write_all(&mut archive, bytes).unwrap();
    }
    archive.finish().unwrap().into_inner()
}

fn array(descr: &str, count: usize, bytes: usize) -> Vec<u8> {
    npy(descr, "False", &format!("({count},)"), &vec![1; bytes])
}

#[test]
fn arrays_that_are_left_out_may_be_of_any_kind() {
    let folder = Folder::new();
    for (name, bytes, text) in [
        ("names.npy", array("<U1", 4, 16), "texts"),
        ("objects.npy", array("|O", 4, 32), "pickled"),
        ("complex.npy", array("<c16", 4, 64), "imaginary"),
        ("short.npy", array("<f4", 4, 12), "truncated"),
        ("long.npy", array("<f4", 5, 20), "has 5"),
        ("header.npy", b"\x93NUMPY\x01\x00\x02\x00{}".to_vec(), "malformed"),
        ("meta.json", b"{}".to_vec(), "not an array"),
    ] {
        let path = folder.file("a.npz", zip(&[("x.npy", array("<f4", 4, 16)), (name, bytes)]));
        let column = name.strip_suffix(".npy").unwrap_or(name);
        assert_eq!(check_left_out(&path, text, column, &["x"]).sample_count(), 4, "{name}");
    }
}

/// Damage to one array does not affect the others.
#[test]
fn a_damaged_array_can_be_left_out() {
    let folder = Folder::new();
    let mut bytes = zip(&[("x.npy", array("<f4", 4, 16)), ("y.npy", array("<f4", 4, 16))]);
    // in the file's header, the name is followed by extra bytes and the stream
    let name = bytes.windows(5).position(|bytes| bytes == b"y.npy").unwrap();
    let extra = usize::from(bytes[name - 2]);
    bytes[name + 5 + extra] = 0xFF; // an invalid block type
    let path = folder.file("a.npz", bytes);
    let left = check_left_out(&path, "the header of the array: the file is malformed", "y", &["x"]);
    assert_eq!(left.sample_count(), 4);
}

#[test]
fn two_arrays_of_one_name_are_refused() {
    let mut bytes = zip(&[("x.npy", array("<f4", 4, 16)), ("y.npy", array("<f4", 4, 16))]);
    for i in 0..bytes.len() - 5 {
        if &bytes[i..i + 5] == b"y.npy" {
            bytes[i] = b'x';
        }
    }
    check_refused(&Folder::new().file("a.npz", bytes), "two files with the same name");
}

#[test]
fn arrays_of_complex_numbers_are_read_in_either_byte_order() {
    let parts = [1.5_f32, -0.0, f32::NAN, 3.0];
    let (little, big) = (parts.map(f32::to_le_bytes).concat(), parts.map(f32::to_be_bytes).concat());
    for (descr, bytes) in [("<c8", &little), (">c8", &big)] {
        let file = npy(descr, "False", "(2,)", bytes);
        let reader = convert(&[Folder::new().file("a.npy", file)], FormatOptions::new()).unwrap();
        let column = reader.column("array").unwrap();
        assert_eq!((column.schema().dtype, column.schema().shape.ndim()), (DType::Complex64, 0));
        let mut out = ColumnBuffer::new();
        column.cursor().range_into(0..2, &mut out).unwrap();
        assert_eq!(out.bytes(), parts.map(f32::to_ne_bytes).concat(), "{descr}");
    }
}

#[test]
fn an_archive_is_one_sample_on_demand() {
    let one = convert(&[data("refused/axes.npz")], FormatOptions::new().file_is_sample(true)).unwrap();
    assert_eq!(one.sample_count(), 1);
    let shapes: Vec<String> = one.columns().map(|column| column.schema().shape.to_string()).collect();
    assert_eq!(shapes, ["[3]", "[4]"]);
}
