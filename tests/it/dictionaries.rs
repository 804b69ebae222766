//! Tests that texts compressed with Zstandard dictionaries read back by every path, and that a
//! damaged dictionary costs exactly the texts that need it.
//!
//! A dictionary is a table of its own in the file, trained on the first texts of a column. Appends
//! reuse it, salvage copies it, and its bytes must not depend on threads or batches.

use crate::common::blocked::chunks_with_dictionary;
use crate::support::build::seal;
use crate::support::intact::assert_intact;
use crate::support::on_disk::OnDisk;
use crate::support::positional::Positional;
use crate::support::regions::{Region, regions};
use tensilo::facts::RegionKind;
use tensilo::nested::ListBatch;
use tensilo::salvage::{RewriteOptions, SalvageOptions, salvage};
use tensilo::sink::Stream;
use tensilo::source::InMemory;
use tensilo::verify::{VerifyOptions, verify};
use tensilo::{ColumnBatch, ColumnBuffer, ColumnSchema, DType, OpenOptions, Profile, Reader, Schema, Shape};
use tensilo::{ErrorKind, Value, Writer, WriterOptions};
use tensilo_testing::{Random, mix};

/// Returns a text whose larger part is one of 250 common texts.
fn text(i: u64) -> String {
    let mut random = Random(mix(7, i));
    let common = random.below(250);
    let part: String = (0..20).map(|k| format!("{:016x}", mix(common, k))).collect();
    format!("{i} {part} {:0width$x}", random.bits(), width = 16 + random.index(200))
}

fn schema() -> Schema {
    Schema::new([
        ColumnSchema::tensor("n", DType::U64, Shape::scalar()),
        ColumnSchema::utf8("text").nullable(),
        ColumnSchema::utf8("texts").list(),
    ])
}

fn sample(i: u64) -> (Option<String>, Vec<String>) {
    let has_text = !i.is_multiple_of(17);
    (has_text.then(|| text(i)), (0..i % 4).map(|k| text(10 * i + k)).collect())
}

fn push<K: tensilo::sink::Sink>(writer: &mut Writer<K>, samples: impl IntoIterator<Item = u64>) {
    for i in samples {
        let (one, several) = sample(i);
        let one = one.as_deref().map_or(Value::NULL, Value::text);
        let several: Vec<Value<'_>> = several.iter().map(|text| Value::text(text)).collect();
        writer.push(&[Value::tensor(&[i]), one, Value::list(&several)]).unwrap();
    }
}

fn written(count: u64, options: &WriterOptions) -> Vec<u8> {
    let mut writer = Writer::new(Stream(Vec::new()), schema(), options).unwrap();
    push(&mut writer, 0..count);
    let file = writer.into_bytes().unwrap();
    assert_intact(&InMemory(file.as_slice()));
    file
}

/// Enough samples for dictionaries, and for chunks after them.
const MANY: u64 = 8000;

fn tables(file: &[u8]) -> Vec<Region> {
    regions(file).into_iter().filter(|region| region.kind == RegionKind::Table).collect()
}

/// Returns how many chunks of a column need a dictionary, and how many there are.
fn chunks_of(file: &[u8], name: &str) -> [u64; 2] {
    let schema = schema();
    let column = schema.columns.iter().position(|column| column.name == name).unwrap();
    let all = Reader::from_bytes(file.to_vec()).unwrap().column(name).unwrap().facts().chunk_count;
    [chunks_with_dictionary(file, column) as u64, all]
}

fn assert_all_with_dictionary(file: &[u8], name: &str) {
    let [with_dictionary, all] = chunks_of(file, name);
    assert_eq!(with_dictionary, all, "{name}");
}

fn check(reader: &Reader, count: u64) {
    let (mut one, mut several) = (reader.column("text").unwrap().cursor(), reader.column("texts").unwrap().cursor());
    for i in (0..count).map(|i| mix(3, i) % count).take(500).chain(0..count) {
        let (text, texts) = sample(i);
        let found = one.read(i).unwrap();
        assert_eq!(found.as_str().unwrap(), text.as_deref(), "{i}");
        let list = several.read_list(i).unwrap();
        let found: Vec<String> = list.items().map(|item| item.unwrap().as_str().unwrap().unwrap().to_owned()).collect();
        assert_eq!(found, texts, "{i}");
    }
    let indices: Vec<u64> = (0..300).map(|i| mix(5, i) % count).collect();
    let mut buffer = ColumnBuffer::new();
    one.gather_into(&indices, &mut buffer).unwrap();
    for (at, &i) in indices.iter().enumerate() {
        assert_eq!(buffer.ragged_bytes(at).unwrap(), sample(i).0.unwrap_or_default().as_bytes());
    }
}

#[test]
fn texts_come_back_from_chunks_with_dictionaries() {
    for profile in [Profile::Balanced, Profile::Small] {
        let file = written(MANY, &WriterOptions::new().profile(profile));
        assert_eq!(tables(&file).len(), 2);
        ["text", "texts"].into_iter().for_each(|name| assert_all_with_dictionary(&file, name));
        for reader in [
            Reader::from_bytes(file.clone()).unwrap(),
            OpenOptions::new().open_source(Positional(file.clone())).unwrap(),
            OpenOptions::new().verification(tensilo::Verification::Always).open_source(Positional(file)).unwrap(),
        ] {
            check(&reader, MANY);
        }
    }
}

#[test]
fn threads_share_the_dictionaries_of_a_reader() {
    let file = written(MANY, &WriterOptions::new());
    let readers =
        [Reader::from_bytes(file.clone()).unwrap(), OpenOptions::new().open_source(Positional(file)).unwrap()];
    for reader in &readers {
        std::thread::scope(|scope| {
            // the first thread finds tables that are not prepared yet
            for _ in 0..4 {
                scope.spawn(|| check(reader, MANY));
            }
        });
    }
}

#[test]
fn dictionaries_make_files_smaller() {
    let bytes = |profile| written(MANY, &WriterOptions::new().profile(profile)).len();
    let (with, without) = (bytes(Profile::Balanced), bytes(Profile::BitshuffleZstd));
    assert!(with < without, "{with} and {without}");
}

#[test]
fn bytes_do_not_depend_on_threads_and_batches() {
    let one_by_one = written(MANY, &WriterOptions::new());
    assert!(written(MANY, &WriterOptions::new().threads(3)) == one_by_one);
    let mut writer = Writer::new(Stream(Vec::new()), schema(), &WriterOptions::new()).unwrap();
    for first in (0..MANY).step_by(5000) {
        let samples: Vec<_> = (first..MANY.min(first + 5000)).map(|i| (i, sample(i))).collect();
        let n: Vec<u64> = samples.iter().map(|(i, _)| *i).collect();
        let lengths = |texts: Vec<&str>| texts.iter().map(|text| text.len() as u32).collect::<Vec<_>>();
        let one: Vec<&str> = samples.iter().map(|(_, (one, _))| one.as_deref().unwrap_or("")).collect();
        let several: Vec<&str> = samples.iter().flat_map(|(_, (_, texts))| texts.iter().map(String::as_str)).collect();
        let counts: Vec<u32> = samples.iter().map(|(_, (_, texts))| texts.len() as u32).collect();
        let mut validity = vec![0; samples.len().div_ceil(8)];
        for (at, (_, (one, _))) in samples.iter().enumerate() {
            validity[at / 8] |= u8::from(one.is_some()) << (at % 8);
        }
        let (one_lengths, several_lengths) = (lengths(one.clone()), lengths(several.clone()));
        let (one, items) = (one.concat(), several.concat());
        let lists = [ListBatch::new(&counts)];
        writer
            .push_batch(&[
                ColumnBatch::fixed(n.len(), &n),
                ColumnBatch::ragged(n.len(), &one_lengths, one.as_bytes()).with_validity(&validity),
                ColumnBatch::ragged(several_lengths.len(), &several_lengths, items.as_bytes()).in_lists(&lists),
            ])
            .unwrap();
    }
    assert!(writer.into_bytes().unwrap() == one_by_one);
}

#[test]
fn few_texts_noise_and_other_profiles_have_no_dictionary() {
    assert!(tables(&written(1000, &WriterOptions::new())).is_empty());
    for profile in [Profile::Fast, Profile::Raw, Profile::BitshuffleZstd] {
        assert!(tables(&written(MANY, &WriterOptions::new().profile(profile))).is_empty());
    }
    let mut writer =
        Writer::new(Stream(Vec::new()), Schema::new([ColumnSchema::bytes("image")]), &WriterOptions::new()).unwrap();
    let mut random = Random(1);
    (0..1000).for_each(|_| writer.push(&[Value::bytes(&random.bytes(5000))]).unwrap());
    let file = writer.into_bytes().unwrap();
    assert!(tables(&file).is_empty());
    // texts that fill a large chunk each
    let mut writer =
        Writer::new(Stream(Vec::new()), Schema::new([ColumnSchema::utf8("book")]), &WriterOptions::new()).unwrap();
    let book = |i: u64| (1500 * i..1500 * (i + 1)).map(text).collect::<String>();
    (0..6).for_each(|i| writer.push(&[Value::text(&book(i))]).unwrap());
    let file = writer.into_bytes().unwrap();
    assert!(tables(&file).is_empty());
}

#[test]
fn appended_texts_use_the_dictionary_of_the_file() {
    let file = OnDisk::new(&written(MANY, &WriterOptions::new()));
    let mut writer = Writer::append(file.path(), &WriterOptions::new()).unwrap();
    push(&mut writer, MANY..MANY + 500);
    writer.finish().unwrap();
    assert_eq!(tables(&file.bytes()).len(), 2);
    let reader = Reader::open(file.path()).unwrap();
    assert_all_with_dictionary(&file.bytes(), "text");
    check(&reader, MANY + 500);
    // without a dictionary in the file, a new one is trained as soon as enough texts are appended
    let file = OnDisk::new(&written(300, &WriterOptions::new()));
    let mut writer = Writer::append(file.path(), &WriterOptions::new()).unwrap();
    push(&mut writer, 300..400);
    writer.commit().unwrap();
    push(&mut writer, 400..MANY + 400);
    writer.finish().unwrap();
    assert_eq!(tables(&file.bytes()).len(), 2);
    assert_intact(&InMemory(file.bytes().as_slice()));
    check(&Reader::open(file.path()).unwrap(), MANY + 400);
}

#[test]
fn a_damaged_dictionary_costs_the_texts_that_need_it() {
    let mut file = written(MANY, &WriterOptions::new());
    let table = tables(&file).remove(0);
    file[table.header + 5000] ^= 4;
    let reader = Reader::from_bytes(file.clone()).unwrap();
    let (damaged, other) = if table.column == 1 { ("text", "texts") } else { ("texts", "text") };
    let mut cursor = reader.column(damaged).unwrap().cursor();
    let error = if damaged == "text" { cursor.read(1).err() } else { cursor.read_list(1).err() }.unwrap();
    assert_eq!(
        (error.kind(), error.rule(), error.offset()),
        (ErrorKind::Corrupt, Some("R-2.6"), Some(table.header as u64))
    );
    assert_eq!(error.column(), Some(damaged));
    let mut cursor = reader.column(other).unwrap().cursor();
    (0..MANY).for_each(|i| assert!(if other == "text" { cursor.read(i).is_ok() } else { cursor.read_list(i).is_ok() }));

    let report = verify(&InMemory(file.as_slice()), VerifyOptions::new().deep(true)).unwrap();
    assert_eq!(report.findings[0].region, Some(RegionKind::Table));
    for decode in [false, true] {
        let salvaged = salvage(InMemory(file.clone()), SalvageOptions::new().deep(decode)).unwrap();
        assert_eq!(salvaged.losses.of(&[damaged]).unwrap().count(), MANY);
        assert!(salvaged.losses.of(&[other]).unwrap().is_empty() && salvaged.losses.of(&["n"]).unwrap().is_empty());
        let copy = salvaged.write_to(Stream(Vec::new()), &WriterOptions::new(), RewriteOptions::new()).unwrap().sink.0;
        assert_intact(&InMemory(copy.as_slice()));
        assert_eq!(tables(&copy).len(), 1);
        assert!(chunks_of(&copy, other)[0] > 0);
    }
}

#[test]
fn salvage_copies_dictionaries() {
    let mut file = written(MANY, &WriterOptions::new());
    file.truncate(file.len() - 64);
    let salvaged = salvage(InMemory(file), SalvageOptions::new()).unwrap();
    check(&salvaged.reader, MANY);
    for drop_lost in [false, true] {
        let options = RewriteOptions::new().drop_lost(drop_lost);
        let copy = salvaged.write_to(Stream(Vec::new()), &WriterOptions::new(), options).unwrap().sink.0;
        assert_intact(&InMemory(copy.as_slice()));
        assert_eq!(tables(&copy).len(), 2);
        check(&Reader::from_bytes(copy).unwrap(), MANY);
    }
}

#[test]
fn chunks_of_any_size_have_dictionaries() {
    for chunk_bytes in [1000, 100 << 10] {
        let file = written(MANY, &WriterOptions::new().chunk_bytes(chunk_bytes));
        assert_eq!(tables(&file).len(), 2, "{chunk_bytes}");
        check(&Reader::from_bytes(file).unwrap(), MANY);
    }
}

#[test]
fn a_dictionary_after_a_damaged_one_is_intact() {
    let file = OnDisk::new(&written(MANY, &WriterOptions::new()));
    let mut bytes = file.bytes();
    let damaged = tables(&bytes).remove(0);
    bytes[damaged.header + 5000] ^= 4;
    std::fs::write(file.path(), &bytes).unwrap();
    let mut writer = Writer::append(file.path(), &WriterOptions::new()).unwrap();
    push(&mut writer, MANY..2 * MANY);
    writer.finish().unwrap();
    let bytes = file.bytes();
    assert_eq!(tables(&bytes).iter().filter(|table| table.column == damaged.column).count(), 2);
    let report = verify(&InMemory(bytes.as_slice()), VerifyOptions::new().deep(false)).unwrap();
    let found: Vec<_> = report.findings.iter().map(|damage| damage.file_range.start).collect();
    assert_eq!(found, [damaged.header as u64]);
    // the remaining samples are copied, and encoded again where numbers of tables changed
    let salvaged = salvage(InMemory(bytes), SalvageOptions::new()).unwrap();
    let copy = salvaged.write_to(Stream(Vec::new()), &WriterOptions::new(), RewriteOptions::new()).unwrap().sink.0;
    assert_intact(&InMemory(copy.as_slice()));
    let reader = Reader::from_bytes(copy).unwrap();
    let lost: u64 = salvaged.losses.columns.iter().map(|(_, lost)| lost.count()).sum();
    assert_eq!(lost, MANY);
    assert_eq!(reader.sample_count(), 2 * MANY);
}

#[test]
fn tables_that_overlap_are_refused() {
    let mut file = written(MANY, &WriterOptions::new());
    let [first, second] = tables(&file).try_into().unwrap();
    let footer = regions(&file).into_iter().find(|region| region.kind == RegionKind::Footer).unwrap();
    let (from, to) = ((second.header as u64).to_le_bytes(), (first.header as u64 + 64).to_le_bytes());
    let at = (footer.header..footer.end).find(|&at| file[at..at + 8] == from).unwrap();
    file[at..at + 8].copy_from_slice(&to);
    seal(&mut file, footer.header);
    let error = Reader::from_bytes(file).map(|_| ()).unwrap_err();
    assert_eq!(error.rule(), Some("R-7.4"), "{error}");
    assert!(error.to_string().contains("overlap"), "{error}");
}
