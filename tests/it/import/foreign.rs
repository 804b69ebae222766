//! Tests files of other writers, from Apache's parquet-testing and arrow-testing.

use super::common::*;
use std::fs;
use std::path::PathBuf;
use tensilo::import::ConvertOptions;
use tensilo::{Error, ErrorKind, Reader};
use tensilo_testing::Folder;

fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/foreign").join(name)
}

fn import_file(name: &str, options: &ConvertOptions) -> Result<Reader, Error> {
    converted(&Folder::new(), &[path(name)], options)
}

fn without(names: &[&str]) -> ConvertOptions {
    ConvertOptions::new().skip(names.iter().copied())
}

#[track_caller]
fn check_refused(name: &str, parts: &[&str]) {
    let Err(error) = import_file(name, &ConvertOptions::new()) else { panic!("{name} was not refused") };
    assert_eq!((error.kind(), error.path()), (ErrorKind::BadInput, Some(path(name).as_path())), "{error}");
    for part in parts {
        assert!(error.to_string().contains(part), "{part}: {error}");
    }
}

#[test]
fn timestamps_of_spark_are_what_its_authors_say() {
    let file = import_file("int96_from_spark.parquet", &ConvertOptions::new()).unwrap();
    assert_eq!(column(&file, "a").metadata["arrow.type"], "timestamp[us]");
    // int96_from_spark.md
    let expected = [1_704_141_296_123_456, 1_704_070_800_000_000, 253_402_225_200_000_000, 1_735_599_600_000_000];
    let expected = expected.map(Some).into_iter().chain([None, Some(9_089_380_393_200_000_000)]);
    assert_eq!(scalars::<i64>(&file, "a"), expected.collect::<Vec<_>>());
}

#[test]
fn a_footer_that_counts_no_rows_is_read_by_its_row_groups() {
    let file = import_file("repeated_no_annotation.parquet", &without(&["phoneNumbers"])).unwrap();
    assert_eq!(scalars::<i32>(&file, "id"), (1..=6).map(Some).collect::<Vec<_>>());
}

#[test]
fn lengths_that_leave_out_the_headers_of_dictionary_pages_are_corrected() {
    let file = import_file("nation.dict-malformed.parquet", &ConvertOptions::new()).unwrap();
    assert_eq!(scalars::<i32>(&file, "nation_key"), (0..25).map(Some).collect::<Vec<_>>());
    assert_eq!(strings(&file, "name")[24].as_deref(), Some(&b"UNITED STATES"[..]));
    assert_eq!(
        strings(&file, "comment_col")[0].as_deref(),
        Some(&b" haggle. carefully final deposits detect slyly agai"[..])
    );
}

#[test]
fn encrypted_columns_are_named_and_the_others_are_read() {
    let name = "encrypt_columns_plaintext_footer.parquet.encrypted";
    check_refused(name, &[r#""float_field" (encrypted)"#, r#""double_field" (encrypted)"#]);
    let file = import_file(name, &without(&["float_field", "double_field", "int96_field"])).unwrap();
    assert_eq!(file.sample_count(), 50);
    assert_eq!(scalars::<i64>(&file, "int32_field"), (0..50).map(Some).collect::<Vec<_>>());
    check_refused("uniform_encryption.parquet.encrypted", &["and its footer are encrypted"]);
}

#[test]
fn inputs_that_cannot_be_read_are_named_by_their_kind() {
    check_refused("ARROW-17100.parquet", &["claim to be uncompressed"]);
    check_refused("schema_v6.arrow", &["version 6 of Arrow's IPC format"]);
    check_refused("bigendian.arrow_file", &["is big-endian"]);
    check_refused("bigendian.stream", &["is big-endian"]);
    check_refused("dict-page-offset-zero.parquet", &["malformed"]);
    check_refused("README.md", &["begins with the bytes 23 20 4f 74"]);
}

#[test]
fn a_parquet_file_that_is_cut_off_is_reported_as_cut_off() {
    let whole = fs::read(path("int96_from_spark.parquet")).unwrap();
    let folder = Folder::new();
    let input = folder.path("cut.parquet");
    for length in [4, 5, 11, 12, whole.len() / 2, whole.len() - 1] {
        fs::write(&input, &whole[..length]).unwrap();
        let output = folder.path("out.tsl");
        let error = convert_with(std::slice::from_ref(&input), &output, &ConvertOptions::new()).unwrap_err();
        assert!(error.message().contains("the Parquet file is truncated"), "{length}: {error}");
    }
}
