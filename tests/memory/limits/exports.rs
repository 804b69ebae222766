//! Memory of exports: a batch has at most 16 MiB unless one sample has more, and a column costs
//! little.

use super::{ENCODED, MIB, finish, in_memory};
use arrow_ipc::writer::StreamWriter;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use tensilo::export::{ExportFormat, ExportOptions, batches, export_into};
use tensilo::import::arrow::array::Array;
use tensilo::import::arrow::datatypes::{DataType, Field, Schema as ArrowSchema};
use tensilo::import::arrow::error::ArrowError;
use tensilo::nested::ListBatch;
use tensilo::sink::Stream;
use tensilo::{ColumnBatch, ColumnSchema, DType, Error, ErrorKind, Reader, Schema, Shape, Value};
use tensilo_testing::exclusive_test;

fn of_type(mut column: ColumnSchema, data_type: &str) -> Schema {
    column.metadata.insert("arrow.type".to_owned(), data_type.to_owned());
    Schema::new([column])
}

/// Stores a field as the schema of the source.
fn save(schema: &mut Schema, field: Field) {
    let message = StreamWriter::try_new(Vec::new(), &ArrowSchema::new(vec![field])).and_then(StreamWriter::into_inner);
    let value = STANDARD.encode(message.expect("the start of a stream"));
    schema.metadata.insert("ARROW:schema".to_owned(), value);
}

/// Writes samples of lists with `length` null items.
fn nulls(schema: Schema, samples: u32, length: u32) -> Reader {
    let mut writer = in_memory(schema, ENCODED);
    let items = length as usize;
    let (bits, lengths) = (vec![0; items.div_ceil(8)], [length]);
    let (extents, levels) = (vec![0; items], [ListBatch::new(&lengths)]);
    for _ in 0..samples {
        let items = ColumnBatch::from_bytes(DType::Bytes, items, &extents, b"").with_validity(&bits);
        writer.push_batch(&[items.in_lists(&levels)]).expect("a list of nulls");
    }
    Reader::from_bytes(finish(writer)).expect("an intact file")
}

/// Reads all batches; returns the bytes of the largest.
fn largest(reader: &Reader) -> Result<usize, Error> {
    let mut max_bytes = 0;
    for batch in batches(reader, None)? {
        match batch {
            Ok(batch) => {
                max_bytes = max_bytes.max(batch.columns().iter().map(|column| column.get_buffer_memory_size()).sum())
            }
            Err(ArrowError::ExternalError(error)) => return Err(*error.downcast().expect("an error of the crate")),
            Err(error) => panic!("{error}"),
        }
    }
    Ok(max_bytes)
}

#[test]
fn null_items_of_a_fixed_width_are_counted() {
    let exclusive_test = exclusive_test();
    let column = || ColumnSchema::bytes("x").nullable().list();
    let reader = nulls(of_type(column(), "fixed_size_binary[4096]"), 60, 1000);
    let (max_bytes, peak) = exclusive_test.peak_bytes(|| largest(&reader));
    let max_bytes = max_bytes.expect("batches of nulls");
    assert!((4 * MIB..=40 * MIB).contains(&max_bytes) && peak < 80 * MIB, "{max_bytes} bytes, {} MiB", peak / MIB);
    // beyond the maximum for one sample
    let reader = nulls(of_type(column(), "fixed_size_binary[65536]"), 1, 4000);
    let (error, peak) = exclusive_test.peak_bytes(|| largest(&reader).expect_err("260 MB of nulls"));
    assert_eq!((error.kind(), error.column(), error.samples()), (ErrorKind::OverLimit, Some("x"), Some(0..1)));
    assert!(error.message().contains("null items"), "{error}");
    assert!(peak < MIB, "{} MiB", peak / MIB);
}

#[test]
fn null_lists_of_one_length_are_counted_in_bytes() {
    let exclusive_test = exclusive_test();
    let column = ColumnSchema::bytes("x").nullable().list().nullable();
    let mut schema = of_type(column, "fixed_size_binary[16384]");
    let item = Field::new_list_field(DataType::FixedSizeBinary(16_384), true);
    save(&mut schema, Field::new("x", DataType::FixedSizeList(item.into(), 100), true));
    let mut writer = in_memory(schema, ENCODED);
    let lengths = [0; 100];
    let levels = [ListBatch::new(&lengths).with_validity(&[0; 13])];
    let items = ColumnBatch::from_bytes(DType::Bytes, 0, &[], b"");
    writer.push_batch(&[items.in_lists(&levels)]).expect("null lists");
    let reader = Reader::from_bytes(finish(writer)).expect("an intact file");
    let (error, peak) = exclusive_test.peak_bytes(|| largest(&reader).expect_err("160 MB of nulls"));
    assert!(error.message().contains("null lists of 100 members"), "{error}");
    assert!(peak < 20 * MIB, "{} MiB", peak / MIB);
}

#[test]
fn offsets_of_nested_lists_are_counted() {
    let exclusive_test = exclusive_test();
    let count = 20_000_u32;
    let texts = Schema::new([ColumnSchema::utf8("x").list()]);
    let lists = Schema::new([ColumnSchema::tensor("x", DType::U8, Shape::scalar()).list().list()]);
    let tensors = Schema::new([ColumnSchema::tensor("x", DType::U8, Shape::new([tensilo::Extent::Varying; 2])).list()]);
    let (lengths, extents, inner) = ([count], vec![0; count as usize], vec![0; count as usize]);
    let one = [ListBatch::new(&lengths)];
    let two = [ListBatch::new(&lengths), ListBatch::new(&inner)];
    let pairs = vec![0; 2 * count as usize];
    let cases = [
        (texts, ColumnBatch::from_bytes(DType::Utf8, count as usize, &extents, b"").in_lists(&one)),
        (lists, ColumnBatch::fixed::<u8>(0, &[]).in_lists(&two)),
        (tensors, ColumnBatch::ragged::<u8>(count as usize, &pairs, &[]).in_lists(&one)),
    ];
    for (schema, batch) in cases {
        let mut writer = in_memory(schema, ENCODED);
        (0..1000).for_each(|_| writer.push_batch(std::slice::from_ref(&batch)).expect("empty lists"));
        let reader = Reader::from_bytes(finish(writer)).expect("an intact file");
        let (max_bytes, peak) = exclusive_test.peak_bytes(|| largest(&reader).expect("batches of empty lists"));
        assert!((4 * MIB..=40 * MIB).contains(&max_bytes) && peak < 120 * MIB, "{max_bytes} bytes, {} MiB", peak / MIB);
    }
}

#[test]
fn a_dictionary_takes_a_limited_number_of_bytes() {
    let exclusive_test = exclusive_test();
    let mut schema = Schema::new([ColumnSchema::bytes("x")]);
    let keyed = DataType::Dictionary(DataType::Int32.into(), DataType::LargeBinary.into());
    save(&mut schema, Field::new("x", keyed, false));
    let mut writer = in_memory(schema, ENCODED);
    let mut value = vec![0; 16 * MIB];
    for i in 0..18 {
        value[0] = i;
        writer.push(&[Value::bytes(&value)]).expect("a sample of 16 MiB");
    }
    let reader = Reader::from_bytes(finish(writer)).expect("an intact file");
    let export = |stored| {
        let options = ExportOptions::new().stored_types(stored);
        export_into(&reader, Stream(std::io::sink()), ExportFormat::Arrow, options).map(|_| ())
    };
    let (error, peak) = exclusive_test.peak_bytes(|| export(false).expect_err("a dictionary of 288 MiB"));
    assert_eq!(error.column(), Some("x"));
    assert!(error.message().contains("the dictionary has more than 256 MiB"), "{error}");
    assert!(peak < 720 * MIB, "{} MiB", peak / MIB);
    let (done, peak) = exclusive_test.peak_bytes(|| export(true));
    done.expect("an export of the types that the file states");
    assert!(peak < 120 * MIB, "{} MiB", peak / MIB);
}

/// A column costs an export about as much as a conversion, so wide tables can be exported again.
#[cfg(feature = "parquet")]
#[test]
fn an_export_of_many_columns_takes_about_as_much_as_their_conversion() {
    use std::sync::Arc;
    use tensilo::import::arrow::array::{Float64Array, Int64Array, RecordBatch, StringArray};
    use tensilo::import::{ConvertOptions, convert};

    let exclusive_test = exclusive_test();
    let names: Vec<String> = (0..3_000).map(|number| format!("column {number}")).collect();
    let array = |number: usize| -> Arc<dyn Array> {
        match number % 3 {
            0 => Arc::new(Float64Array::from(vec![number as f64, 0.5, 1e9])),
            1 => Arc::new(Int64Array::from(vec![number as i64, -1, i64::MAX])),
            _ => Arc::new(StringArray::from(vec!["", "a text", "another"])),
        }
    };
    let table = RecordBatch::try_from_iter(names.iter().enumerate().map(|(number, name)| (name, array(number))));
    let table = table.expect("a batch");
    let folder = tensilo_testing::Folder::new();
    let mut writer = parquet::arrow::ArrowWriter::try_new(Vec::new(), table.schema(), None).expect("a writer");
    writer.write(&table).expect("a batch");
    let (input, file) = (folder.file("in.parquet", writer.into_inner().expect("a file")), folder.path("a.tsl"));
    let (written, converting) = exclusive_test.peak_bytes(|| {
        let go_on = &mut |_| std::ops::ControlFlow::Continue(());
        convert(&[input], &file, &ConvertOptions::new(), go_on)
    });
    written.expect("it can be stored");
    // read by position: fetched bytes take memory, too
    let reader = Reader::open(&file).expect("an intact file");
    for format in [ExportFormat::Parquet, ExportFormat::Arrow, ExportFormat::ArrowStream] {
        let export = || export_into(&reader, Stream(std::io::sink()), format, ExportOptions::new()).map(|_| ());
        let (done, exporting) = exclusive_test.peak_bytes(export);
        done.expect("an export");
        let kib = (exporting >> 10, converting >> 10);
        assert!(exporting * 5 <= converting * 6, "{format:?}: exported in {} KiB, converted in {} KiB", kib.0, kib.1);
    }
}
