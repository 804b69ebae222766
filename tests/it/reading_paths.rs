//! Tests that all calls that read a sample agree: for each invalid vector of the specification,
//! every path from the file to the caller gives the same values or refuses them.
//!
//! Each sample is read by about ten calls, from memory and by position, under every verification
//! policy, and twice, because chunks that were checked take other paths.

use crate::common::data::value_mask;
use crate::common::vectors::{bytes, file_of, vectors};
use crate::support::positional::Positional;
use std::collections::BTreeMap;
use tensilo::source::{InMemory, Source};
use tensilo::stages::{Decoder, FetchedBytes, ReadPlan};
use tensilo::{Column, ColumnBuffer, DType, Error, OpenOptions, Reader, Verification};

/// Whether a sample is null and its bytes, or the rule that it breaks.
type Read = Result<(bool, Vec<u8>), Option<&'static str>>;

/// Rules that every read of a sample checks (chapter 10.1), whatever was checked before.
const CHECKED: [&str; 6] = ["R-4.1", "R-4.4", "R-4.5", "R-4.9", "R-4.10", "R-4.12"];

/// The rules above that break with a sample that can be found.
const REFUSED: [&str; 3] = ["R-4.4", "R-4.5", "R-4.9"];

fn rule(error: Error) -> Option<&'static str> {
    error.rule()
}

/// Returns the only sample of a buffer, or the rule if the call failed and emptied the buffer.
fn one(result: tensilo::Result<()>, out: &ColumnBuffer) -> Read {
    if let Err(error) = result {
        assert_eq!((out.sample_count(), out.bytes().len(), out.null_count()), (0, 0, 0), "{error}");
        return Err(rule(error));
    }
    let is_null = out.lists().first().map_or_else(|| out.is_null(0), |lists| lists.is_null(0));
    Ok((is_null, out.bytes().to_vec()))
}

/// Reads a sample by every call, each with a fresh cursor or a fresh decoder.
fn read_by_all(reader: &Reader, column: &Column, i: u64) -> Vec<(&'static str, Read)> {
    let schema = column.schema();
    let mut found = Vec::new();
    if schema.levels.is_empty() {
        if let Some(view) = column.view(i).transpose() {
            found.push(("view", view.map(|view| (view.is_null(), view.bytes().to_vec())).map_err(rule)));
        }
        let mut cursor = column.cursor();
        let read = cursor.read(i).map(|sample| (sample.is_null(), sample.bytes().to_vec()));
        found.push(("read", read.map_err(rule)));
        let mut out = vec![0; 1 << 16];
        let length = column.cursor().read_bytes(i, &mut out);
        let none = if schema.shape.is_ragged() { 0 } else { fixed_bytes(column) };
        let read = length.map(|length| (length.is_none(), out[..length.unwrap_or(none)].to_vec()));
        found.push(("read_bytes", read.map_err(rule)));
    } else {
        if let Some(view) = column.view_list(i).transpose() {
            found.push(("view_list", view.map(|view| (view.is_null(), view.sample_bytes().to_vec())).map_err(rule)));
        }
        let mut cursor = column.cursor();
        let read = cursor.read_list(i).map(|list| (list.is_null(), list.sample_bytes().to_vec()));
        found.push(("read_list", read.map_err(rule)));
    }
    let mut out = ColumnBuffer::new();
    found.push(("gather_into", one(column.cursor().gather_into(&[i], &mut out), &out)));
    found.push(("range_into", one(column.cursor().range_into(i..i + 1, &mut out), &out)));
    let mut rows = reader.rows(&[&schema.name]).unwrap();
    let mut all = Vec::new();
    let gathered = rows.gather_into(&[i], &mut all);
    found.push(("rows", one(gathered, &all[0])));
    #[cfg(feature = "rayon")]
    found.push(("parallel", one(column.parallel_cursor().gather_into(&[i], &mut out), &out)));
    let (mut plan, mut fetched) = (ReadPlan::new(), FetchedBytes::new());
    let columns = [column.clone()];
    let planned = plan.select(&columns, &[i]).and_then(|()| plan.fetch(&mut fetched));
    let mut decoded = [ColumnBuffer::new()];
    match planned {
        Err(error) => found.push(("stages", Err(rule(error)))),
        Ok(()) => {
            let result = Decoder::new().decode(&plan, &fetched, &mut decoded);
            found.push(("decode", one(result, &decoded[0])));
            let result = plan.decode_segments(2, &mut decoded, |parts| {
                parts.into_iter().try_for_each(|part| part.decode(&mut Decoder::new(), &fetched))
            });
            found.push(("decode_segments", one(result, &decoded[0])));
        }
    }
    if schema.levels.is_empty() && !schema.shape.is_ragged() {
        let mut out = vec![0; fixed_bytes(column)];
        let nulls = column.cursor().gather_bytes(&[i], &mut out);
        found.push(("gather_bytes", nulls.map(|nulls| (nulls > 0, out.clone())).map_err(rule)));
        let nulls = column.cursor().range_bytes(i..i + 1, &mut out);
        found.push(("range_bytes", nulls.map(|nulls| (nulls > 0, out.clone())).map_err(rule)));
        // the second of three slots of a batch, so the slots are not consecutive
        let mut batch = vec![0; 3 * out.len()];
        if plan.select(&columns, &[i, i]).and_then(|()| plan.fetch(&mut fetched)).is_ok() {
            let mut nulls = Vec::new();
            let scattered = Decoder::new().scatter(&plan, &fetched, 0, &[2, 0], &mut batch, &mut nulls);
            let read = scattered.map(|()| (!nulls.is_empty(), batch[..out.len()].to_vec()));
            found.push(("scatter", read.map_err(rule)));
        }
    }
    found
}

fn fixed_bytes(column: &Column) -> usize {
    column.schema().shape.inner_elements().unwrap() as usize * column.schema().dtype.element_bytes()
}

/// Returns whether two reads are equal. The values of nulls are zeros or absent in a valid file
/// which reads do not check.
fn is_same(a: &(bool, Vec<u8>), b: &(bool, Vec<u8>)) -> bool {
    a.0 == b.0 && (a.0 || a.1 == b.1)
}

/// Reads all samples of a file, twice, because chunks that were checked are read in other ways.
/// Returns the differences.
fn check(name: &str, expected_rule: &str, reader: &Reader, what: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut refusals: BTreeMap<&str, usize> = BTreeMap::new();
    // only verification looks at padding between parts
    let is_checked = CHECKED.contains(&expected_rule) && !name.contains("R-4.4-padding");
    for round in 0..2 {
        for column in reader.columns() {
            // text is checked when it is returned as text
            let is_text = column.schema().dtype == DType::Utf8;
            for i in 0..reader.sample_count().min(5) {
                let found = read_by_all(reader, &column, i);
                let context = format!("{name}, {what}, round {round}, column {:?}, sample {i}", column.schema().name);
                let values: Vec<_> = found.iter().filter_map(|(_, read)| read.as_ref().ok()).collect();
                if values.windows(2).any(|pair| !is_same(pair[0], pair[1])) {
                    wrong.push(format!("{context}: {found:?}"));
                }
                let (dtype, mask) = (column.schema().dtype, value_mask(column.schema().dtype) as u8);
                let is_wrong = |value: &&(bool, Vec<u8>)| value.1.iter().any(|&byte| byte & !mask != 0);
                if dtype.value_bits() < 8 && values.iter().any(is_wrong) {
                    wrong.push(format!("{context}: a {dtype} of {found:?}"));
                }
                for (call, read) in &found {
                    *refusals.entry(*call).or_default() += usize::from(read.is_err());
                }
                let refused = found.iter().filter(|(_, read)| read.is_err()).count();
                if is_checked && !is_text && refused != 0 && refused != found.len() {
                    wrong.push(format!("{context}: {refused} refuse {found:?}"));
                }
            }
        }
    }
    let is_text = reader.schema().columns.iter().any(|column| column.dtype == DType::Utf8);
    // a chunk that breaks may have no sample that can be found
    let is_found = is_checked && REFUSED.contains(&expected_rule);
    if is_found && !is_text && refusals.values().any(|&count| count == 0) {
        wrong.push(format!("{name}, {what}: {refusals:?}"));
    }
    wrong
}

fn open(source: impl Source + 'static, policy: Verification) -> Option<Reader> {
    OpenOptions::new().verification(policy).open_source(source).ok()
}

#[test]
fn every_path_refuses_what_another_refuses_or_reads_the_same() {
    let mut wrong = Vec::new();
    let mut refused = 0;
    for vector in vectors(false) {
        let (file, name) = (bytes(file_of(&vector)), file_of(&vector));
        let expected_rule = vector["rule"].as_str().unwrap();
        let is_opened = open(InMemory(file.clone()), Verification::FirstTouch).is_some();
        refused += usize::from(is_opened && REFUSED.contains(&expected_rule));
        for policy in [Verification::FirstTouch, Verification::Always, Verification::Never] {
            if let Some(reader) = open(InMemory(file.clone()), policy) {
                wrong.extend(check(name, expected_rule, &reader, &format!("in memory, {policy:?}")));
            }
            if let Some(reader) = open(Positional(file.clone()), policy) {
                wrong.extend(check(name, expected_rule, &reader, &format!("by position, {policy:?}")));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let expected = if cfg!(feature = "zstd") { 36 } else { 33 };
    assert!(refused >= expected, "only {refused} files break a rule that reads check");
}

/// The sample is named, even in a batch of many.
#[test]
fn an_invalid_bool_is_named_by_its_sample() {
    for (vector, sample) in [("R-4.9-bool", 1), ("R-4.9-bool-of-list", 0), ("R-4.9-bool-residuals", 2)] {
        let file = bytes(&format!("invalid/{vector}.hex"));
        for reader in
            [open(InMemory(file.clone()), Verification::FirstTouch), open(Positional(file), Verification::Never)]
        {
            let reader = reader.unwrap();
            let column = reader.column_at(0).unwrap();
            let all: Vec<u64> = (0..reader.sample_count()).rev().collect();
            let mut out = ColumnBuffer::new();
            let gathered = column.cursor().gather_into(&all, &mut out).unwrap_err();
            let ranged = column.cursor().range_into(0..reader.sample_count(), &mut out).unwrap_err();
            for error in [gathered, ranged] {
                assert_eq!((error.rule(), error.samples()), (Some("R-4.9"), Some(sample..sample + 1)), "{error}");
            }
        }
    }
}
