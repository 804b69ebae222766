//! Tests that no damage goes unnoticed: `verify` reports it, and no read returns a wrong value.
//!
//! Every bit of every vector and of files in every encoding is flipped, and the files are cut off
//! at every byte. In arbitrary files, blocks and chunks are zeroed, copied, swapped and replaced.
//!
//! `TENSILO_DAMAGE=long` adds larger files, and damages more of them.

mod bins;
mod blocks;
mod bytes;
mod files;
mod in_blocks;

use tensilo::nested::List;
use tensilo::source::InMemory;
use tensilo::verify::{VerifyOptions, verify};
use tensilo::{Cursor, DType, Reader, Result};

fn is_long() -> bool {
    std::env::var("TENSILO_DAMAGE").is_ok_and(|mode| mode == "long")
}

fn is_noticed(file: &[u8]) -> bool {
    verify(&InMemory(file), VerifyOptions::new()).map_or(true, |report| !report.findings.is_empty())
}

/// A sample as it was read: null, or extents and bytes.
type Sample = Option<(Vec<u32>, Vec<u8>)>;

/// Returns all samples of all columns of an intact file.
fn read_all(file: &[u8]) -> Vec<Vec<Sample>> {
    let reader = Reader::from_bytes(file.to_vec()).unwrap();
    let of_column = |column: usize| {
        if let DType::Unknown { .. } = reader.schema().columns[column].dtype {
            return Vec::new();
        }
        let mut cursor = reader.column_at(column).unwrap().cursor();
        let mut read = |i| read_one(&mut cursor, i).unwrap();
        (0..reader.sample_count()).map(&mut read).collect()
    };
    (0..reader.schema().columns.len()).map(of_column).collect()
}

/// Returns sample `i`; for a nested column, its lists and extents and the bytes of all items.
fn read_one(cursor: &mut Cursor, i: u64) -> Result<Sample> {
    if cursor.column().schema().levels.is_empty() {
        let sample = cursor.read(i)?;
        return Ok((!sample.is_null()).then(|| (sample.extents().to_vec(), sample.bytes().to_vec())));
    }
    let list = cursor.read_list(i)?;
    let (mut extents, mut bytes) = (Vec::new(), Vec::new());
    flatten(&list, &mut extents, &mut bytes)?;
    Ok((!list.is_null()).then_some((extents, bytes)))
}

fn flatten(list: &List<'_>, extents: &mut Vec<u32>, bytes: &mut Vec<u8>) -> Result<()> {
    extents.extend([u32::from(list.is_null()), list.len() as u32]);
    if list.has_lists() {
        return (0..list.len()).try_for_each(|k| flatten(&list.list(k)?, extents, bytes));
    }
    for item in list.items() {
        let item = item?;
        extents.push(u32::from(item.is_null()));
        extents.extend(item.extents());
        bytes.extend(item.bytes());
    }
    Ok(())
}

/// How many samples of a damaged file could be read, and how many were refused.
#[derive(Clone, Copy, Debug, Default)]
struct Reads {
    right: u64,
    refused: u64,
}

/// Checks that each read of a damaged file fails or gives the value of the intact file.
fn check_reads(damaged: &[u8], intact: &[Vec<Sample>], what: &str) -> Reads {
    let mut reads = Reads::default();
    let Ok(reader) = Reader::from_bytes(damaged.to_vec()) else {
        reads.refused = intact.iter().map(|samples| samples.len() as u64).sum();
        return reads;
    };
    for (column, samples) in intact.iter().enumerate() {
        let mut cursor = reader.column_at(column).unwrap().cursor();
        for (i, expected) in (0..).zip(samples) {
            let Ok(found) = read_one(&mut cursor, i) else {
                reads.refused += 1;
                continue;
            };
            assert!(found == *expected, "{what}: column {column}, sample {i} is wrong and was not refused");
            reads.right += 1;
        }
    }
    reads
}
