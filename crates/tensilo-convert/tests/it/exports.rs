//! Exports can be imported again, with equal values.

use super::common::{columns, convert, data};
use std::fs;
use tensilo::error::Advice;
use tensilo::sink::Stream;
use tensilo::{ColumnBatch, ColumnSchema, DType, Reader, Schema, Shape, Value, Writer, WriterOptions};
use tensilo_convert::{FormatOptions, TargetFormat, TargetOptions, export_megatron, export_to};
use tensilo_testing::Folder;

fn exported(reader: &Reader, format: TargetFormat) -> Vec<u8> {
    export_to(reader, Stream(Vec::new()), format, TargetOptions::new()).unwrap().0
}

fn import(name: &str) -> Reader {
    convert(&[data(name)], FormatOptions::new()).unwrap()
}

/// Exports a file, converts the result, and compares.
fn check(name: &str, format: TargetFormat) {
    let folder = Folder::new();
    let first = import(name);
    let path = folder.file(format!("a.{}", format.extension()), exported(&first, format));
    let second = convert(&[path], FormatOptions::new()).unwrap();
    assert_eq!(columns(&second), columns(&first), "{name}");
}

#[test]
fn arrays_are_written_as_numpy_writes_them() {
    for name in ["f32", "f16", "u64", "i8", "bool", "nan", "no-samples", "no-elements"] {
        let name = format!("npy/{name}.npy");
        assert!(exported(&import(&name), TargetFormat::Npy) == fs::read(data(&name)).unwrap(), "{name}");
    }
}

#[test]
fn archives_and_tensors_come_back_equal() {
    check("npz/stored.npz", TargetFormat::Npz);
    check("npz/stored.npz", TargetFormat::Safetensors);
    check("safetensors/samples.safetensors", TargetFormat::Safetensors);
}

#[test]
fn a_column_is_exported_once() {
    for format in [TargetFormat::Npz, TargetFormat::Safetensors, TargetFormat::WebDataset] {
        let options = TargetOptions::new().columns(["half", "half"]);
        let exported = export_to(&import("safetensors/samples.safetensors"), Stream(Vec::new()), format, options);
        let error = exported.err().unwrap().to_string();
        assert!(error.contains("\"half\" is named twice"), "{error}");
    }
}

#[test]
fn samples_of_webdataset_come_back_equal_with_their_keys() {
    check("webdataset/train.tar", TargetFormat::WebDataset);
}

#[test]
fn documents_of_megatron_come_back_equal() {
    let (folder, first) = (Folder::new(), import("megatron/text.idx"));
    let sinks = (Stream(Vec::new()), Stream(Vec::new()));
    let (index, tokens) = export_megatron(&first, sinks, TargetOptions::new()).unwrap();
    // documents have the tokens of their sequences
    assert!(tokens.0 == fs::read(data("megatron/text.bin")).unwrap());
    folder.file("a.bin", &tokens.0);
    let second = convert(&[folder.file("a.idx", &index.0)], FormatOptions::new()).unwrap();
    assert_eq!(columns(&second), columns(&first));
}

#[test]
fn megatron_has_one_list_of_tokens_in_each_document() {
    for (name, column, text) in [
        ("npy/f32.npy", "array", "is not a list of tokens"),
        ("webdataset/train.tar", "json", "is not a list of tokens"),
        ("npz/stored.npz", "big", ""),
        ("safetensors/samples.safetensors", "half", "no token type"),
    ] {
        let sinks = (Stream(Vec::new()), Stream(Vec::new()));
        let exported = export_megatron(&import(name), sinks, TargetOptions::new().columns([column]));
        match exported {
            Ok(_) => assert!(text.is_empty(), "{name}"),
            Err(error) => assert!(!text.is_empty() && error.to_string().contains(text), "{name}: {error}"),
        }
    }
}

#[test]
fn columns_get_suffixes_that_state_their_types() {
    let folder = Folder::new();
    let path = folder.file("a.tar", exported(&import("safetensors/samples.safetensors"), TargetFormat::WebDataset));
    let second = convert(&[path], FormatOptions::new()).unwrap();
    let names: Vec<&str> = second.schema().columns.iter().map(|column| column.name.as_str()).collect();
    for name in ["__key__", "embedding.npy", "half.npy", "label.cls", "mask.npy", "image.npy"] {
        assert!(names.contains(&name), "{names:?}");
    }
}

/// Exports samples of these columns to an archive.
fn archive(columns: &[ColumnSchema], samples: &[&[Value<'_>]]) -> tensilo::Result<Vec<u8>> {
    let mut writer = Writer::new(Stream(Vec::new()), Schema::new(columns.to_vec()), &WriterOptions::new())?;
    samples.iter().try_for_each(|sample| writer.push(sample))?;
    let reader = Reader::from_bytes(writer.into_bytes()?)?;
    Ok(export_to(&reader, Stream(Vec::new()), TargetFormat::WebDataset, TargetOptions::new())?.0)
}

#[test]
fn samples_that_an_archive_cannot_distinguish_are_refused() {
    let key = || ColumnSchema::tensor("__key__", DType::Utf8, Shape::ragged()).nullable();
    let text = |name: &str| ColumnSchema::tensor(name, DType::Utf8, Shape::ragged()).nullable();
    let (a, b, x) = (|| Value::text("a"), || Value::text("b"), || Value::text("x"));
    let keyed = [key(), text("t"), text("u")];
    for (samples, text) in [
        (&[&[a(), x(), x()][..], &[b(), Value::NULL, Value::NULL]][..], "sample 1: all its values are null"),
        (&[&[a(), x(), x()], &[a(), x(), x()]], "sample 1: it has the same key as the previous sample"),
        (
            &[&[a(), x(), Value::NULL], &[b(), x(), x()], &[a(), Value::NULL, x()]],
            "sample 2: it has the same key as sample 0",
        ),
        (&[&[Value::NULL, x(), x()]], "sample 0: its key (__key__) is null"),
        (&[&[Value::text("a.b"), x(), x()]], "sample 0: no file can have the key \"a.b\""),
        (&[&[Value::text(""), x(), x()]], "sample 0: no file can have the key \"\""),
        (&[&[Value::text("a/"), x(), x()]], "sample 0: no file can have the key \"a/\""),
        (&[&[Value::text("../a"), x(), x()]], "sample 0: no file"),
    ] {
        let error = archive(&keyed, samples).err().unwrap().to_string();
        assert!(error.contains(text), "{text:?} in {error}");
    }
    for (columns, text) in [([text("t"), text("T")], "\"t.txt\""), ([text("t"), text("t.txt")], "\"t.txt\"")] {
        let error = archive(&columns, &[]).err().unwrap().to_string();
        assert!(error.contains(text), "{text:?} in {error}");
    }
    let samples: &[&[Value<'_>]] = &[&[a(), x(), Value::NULL], &[b(), x(), Value::NULL]];
    let error = archive(&keyed, samples).err().unwrap().to_string();
    assert!(error.contains("column \"u\": all samples are null"), "{error}");
    for columns in [&[key()][..], &[]] {
        let error = archive(columns, &[]).err().unwrap().to_string();
        assert!(error.contains("no column to export except the keys"), "{error}");
    }
    assert!(archive(&keyed, &[]).is_ok());
    let large = [ColumnSchema::tensor("n", DType::U64, Shape::scalar())];
    let error = archive(&large, &[&[Value::tensor(&[u64::MAX])]]).err().unwrap().to_string();
    assert!(error.contains("sample 0: column \"n\": 18446744073709551615"), "{error}");
}

#[test]
fn keys_are_written_unchanged() {
    let columns = ["__key__", "t"].map(|name| ColumnSchema::tensor(name, DType::Utf8, Shape::ragged()));
    let long = format!("{}/a", "f".repeat(300));
    for key in ["./a", "a//b", "a/./b", "a b", "ä", &long, "."] {
        let found = archive(&columns, &[&[Value::text(key), Value::text("x")]]);
        if key == "." {
            assert!(found.is_err());
            continue;
        }
        let reader = convert(&[Folder::new().file("a.tar", found.unwrap())], FormatOptions::new()).unwrap();
        assert_eq!(reader.column("__key__").unwrap().cursor().read(0).unwrap().bytes(), key.as_bytes());
    }
}

#[test]
fn nulls_and_texts_are_no_arrays() {
    let reader = import("webdataset/train.tar");
    for (column, text) in
        [("scalar.npy", "sample 3 is null"), ("json", "texts"), ("mel.npy", "several shapes"), ("x", "no column")]
    {
        let options = TargetOptions::new().columns([column]);
        let error = export_to(&reader, Stream(Vec::new()), TargetFormat::Safetensors, options).err().unwrap();
        assert!(error.to_string().contains(text), "{error}");
    }
}

/// Returns a file of one scalar column with these stored elements and this logical type.
fn logical<T: tensilo::Element>(extents: &[u32], values: &[T], logical_type: &str) -> Reader {
    let mut column = ColumnSchema::tensor("x", T::DTYPE, Shape::fixed(extents));
    column.metadata.insert("arrow.type".to_owned(), logical_type.to_owned());
    let mut writer = Writer::new(Stream(Vec::new()), Schema::new([column]), &WriterOptions::new()).unwrap();
    writer.push_batch(&[ColumnBatch::fixed(1, values)]).unwrap();
    Reader::from_bytes(writer.into_bytes().unwrap()).unwrap()
}

/// 150 is not 1.50, bytes are not an integer, and a count has a unit.
#[test]
fn columns_whose_elements_are_not_their_values_are_refused() {
    let refused = |reader: &Reader, logical_type: &str, cast: DType| {
        for format in [TargetFormat::Npy, TargetFormat::Npz, TargetFormat::Safetensors, TargetFormat::WebDataset] {
            let Err(error) = export_to(reader, Stream(Vec::new()), format, TargetOptions::new()) else {
                panic!("{logical_type} was exported to {format:?}")
            };
            assert_eq!(error.column(), Some("x"));
            assert!(error.message().contains(logical_type), "{error}");
            assert_eq!(error.advice(), [Advice::Cast(cast)]);
        }
    };
    refused(&logical(&[], &[150_i32], "decimal32[9, 2]"), "decimal32[9, 2]", DType::F64);
    refused(&logical(&[], &[150_i64], "decimal128[12, 2]"), "decimal128[12, 2]", DType::F64);
    refused(&logical(&[16], &[1_u8; 16], "decimal128[38, 0]"), "decimal128[38, 0]", DType::I64);
    refused(&logical(&[2, 32], &[1_u8; 64], "decimal256[40, 2]"), "decimal256[40, 2]", DType::F64);
    refused(&logical(&[3], &[1_i64; 3], "month_day_nano_interval"), "month_day_nano_interval", DType::I64);
    refused(&logical(&[], &[1_i64], "time64[us]"), "time64[us]", DType::I64);
    let whole = logical(&[], &[7_i32], "decimal128[9, 0]");
    assert!(exported(&whole, TargetFormat::Npy).ends_with(&7_i32.to_le_bytes()));
    let tokens = logical(&[2], &[1_i64, 2], "decimal64[18, 3]");
    let sinks = (Stream(Vec::new()), Stream(Vec::new()));
    assert!(export_megatron(&tokens, sinks, TargetOptions::new()).is_err());
}

/// Returns a safetensors file with one tensor.
fn tensor(dtype: &str, shape: &[u64], bytes: &[u8]) -> Vec<u8> {
    let (end, shape) = (bytes.len(), format!("{shape:?}").replace(' ', ""));
    let header = format!("{{\"x\":{{\"dtype\":\"{dtype}\",\"shape\":{shape},\"data_offsets\":[0,{end}]}}}}");
    let header = format!("{header:<width$}", width = header.len().next_multiple_of(8));
    [&(header.len() as u64).to_le_bytes(), header.as_bytes(), bytes].concat()
}

#[test]
fn packed_tensors_are_unpacked_and_packed_again() {
    let four: Vec<u8> = (0..150_000_u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let six: Vec<u8> = four.iter().take(29_970).copied().collect();
    let low = |bytes: &[u8]| -> Vec<u8> { bytes.iter().flat_map(|byte| [byte & 0xF, byte >> 4]).collect() };
    let triple = |bytes: &[u8]| u32::from_le_bytes([bytes[0], bytes[1], bytes[2], 0]);
    let sixths = |bytes: &[u8]| -> Vec<u8> {
        bytes.chunks(3).flat_map(|bytes| (0..4).map(move |i| (triple(bytes) >> (6 * i) & 0x3F) as u8)).collect()
    };
    // samples of 3 elements begin within bytes
    for (name, dtype, bytes, elements) in [
        ("F4", DType::F4E2M1, &four, low(&four)),
        ("F6_E2M3", DType::F6E2M3, &six, sixths(&six)),
        ("F6_E3M2", DType::F6E3M2, &six, sixths(&six)),
    ] {
        let count = elements.len() as u64 / 4;
        for shape in [vec![elements.len() as u64], vec![count, 4], vec![4 * count / 5, 5], vec![4 * count / 3, 3]] {
            let file = tensor(name, &shape, bytes);
            let folder = Folder::new();
            let reader = convert(&[folder.file("a.safetensors", &file)], FormatOptions::new()).unwrap();
            let column = reader.column("x").unwrap();
            assert_eq!((column.schema().dtype, reader.sample_count()), (dtype, shape[0]));
            let mut out = tensilo::ColumnBuffer::new();
            column.cursor().range_into(0..shape[0], &mut out).unwrap();
            assert!(out.bytes() == elements, "{name} {shape:?}");
            assert!(exported(&reader, TargetFormat::Safetensors) == file, "{name} {shape:?}");
        }
    }
}

#[test]
fn floats_of_eight_bits_and_complex_numbers_come_back_unchanged() {
    let bytes: Vec<u8> = (0..=255).collect();
    for (name, dtype) in [
        ("F8_E4M3", DType::F8E4M3Fn),
        ("F8_E4M3FNUZ", DType::F8E4M3Fnuz),
        ("F8_E5M2", DType::F8E5M2),
        ("F8_E5M2FNUZ", DType::F8E5M2Fnuz),
        ("F8_E8M0", DType::F8E8M0Fnu),
        ("C64", DType::Complex64),
    ] {
        let shape = [4, 64 / dtype.element_bytes() as u64];
        let file = tensor(name, &shape, &bytes);
        let reader = convert(&[Folder::new().file("a.safetensors", &file)], FormatOptions::new()).unwrap();
        assert_eq!(reader.column("x").unwrap().schema().dtype, dtype);
        assert!(exported(&reader, TargetFormat::Safetensors) == file, "{name}");
    }
}

fn of_small(dtype: DType, count: usize) -> Reader {
    let schema = Schema::new([ColumnSchema::tensor("x", dtype, Shape::scalar())]);
    let mut writer = Writer::new(Stream(Vec::new()), schema, &WriterOptions::new()).unwrap();
    writer.push_batch(&[ColumnBatch::fixed(count, &vec![1_u8; count])]).unwrap();
    Reader::from_bytes(writer.into_bytes().unwrap()).unwrap()
}

#[test]
fn small_types_that_a_format_lacks_are_refused() {
    let refused = |dtype, count, format| {
        let error = export_to(&of_small(dtype, count), Stream(Vec::new()), format, TargetOptions::new());
        error.map(|_| ()).unwrap_err().to_string()
    };
    for (dtype, count) in [(DType::F4E2M1, 3), (DType::F6E2M3, 6), (DType::F6E3M2, 1)] {
        let message = refused(dtype, count, TargetFormat::Safetensors);
        assert!(message.contains("whole byte") && message.contains("\"x\""), "{message}");
    }
    for dtype in [DType::I4, DType::U4] {
        let message = refused(dtype, 2, TargetFormat::Safetensors);
        assert!(message.contains(&format!("no type {dtype}")), "{message}");
    }
    for dtype in DType::ALL.into_iter().filter(|dtype| dtype.is_small()) {
        for format in [TargetFormat::Npy, TargetFormat::Npz, TargetFormat::WebDataset] {
            let message = refused(dtype, 2, format);
            assert!(message.contains(&format!("NumPy has no type {dtype}")), "{message}");
        }
    }
}
