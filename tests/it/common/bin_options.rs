//! Columns whose bins have options, dictionaries ordered by frequency, and float multiples. Golden
//! files have these values: none may change.

use super::bins::{below, noise};
use super::damage::chunks;
use half::bf16;
use tensilo::{ColumnBuffer, ColumnSchema, DType, Reader, Shape, Value};

/// As in `bins.rs`.
pub const CODINGS: [(&str, [&str; 2]); 4] = [
    ("pitch", ["gaps; ", "gaps; "]),
    ("pauses", ["outliers with ", "outliers with "]),
    ("tokens", ["a dictionary of ", "a dictionary of "]),
    ("halves", ["multiples of 65536", "multiples of 65536"]),
];

pub fn schemas() -> [ColumnSchema; 4] {
    [
        ColumnSchema::tensor("pitch", DType::F32, Shape::fixed(&[20])),
        ColumnSchema::tensor("pauses", DType::I64, Shape::fixed(&[10])),
        ColumnSchema::tensor("tokens", DType::I32, Shape::fixed(&[20])),
        ColumnSchema::tensor("halves", DType::F32, Shape::fixed(&[20])),
    ]
}

/// The values of a sample.
pub struct Options {
    pitch: Vec<f32>,
    pauses: Vec<i64>,
    tokens: Vec<i32>,
    halves: Vec<f32>,
}

impl Options {
    pub fn of_sample(i: usize) -> Self {
        let all = |count: usize| i * count..(i + 1) * count;
        let pitch = |k: usize| match below(60, k / 35, 3) {
            0 => 0.0,
            _ => (140.0 + (k % 200).abs_diff(100) as f64 * 0.75 + 4.0 * noise(61, k)) as f32,
        };
        let pauses = |k: usize| {
            let pauses: u64 = (0..=k / 70).map(|pause| below(64, pause, 1 << 34)).sum();
            1_700_000_000_000_000 + k as i64 * 10_000 + below(65, k, 2000) as i64 + pauses as i64
        };
        let token = |k: usize| {
            let rarity = below(69, k, 1 << 20).trailing_zeros().min(9);
            (below(70, rarity as usize, 5000) + below(71, k, 4 << rarity) * 97) as i32
        };
        let half = |k: usize| bf16::from_f64(noise(72, k) / f64::from(1 << below(75, k, 6))).to_f32();
        Self {
            pitch: all(20).map(pitch).collect(),
            pauses: all(10).map(pauses).collect(),
            tokens: all(20).map(token).collect(),
            halves: all(20).map(half).collect(),
        }
    }

    pub fn values(&self) -> [Value<'_>; 4] {
        [
            Value::tensor(&self.pitch),
            Value::tensor(&self.pauses),
            Value::tensor(&self.tokens),
            Value::tensor(&self.halves),
        ]
    }
}

/// Returns the values of the dictionary of 4-byte elements in tables of bins, decoded as chapters
/// 5.13 and 5.14 state.
fn dictionary(tables: &[u8]) -> Vec<i32> {
    let [bin_count, class_count, mapping] = [21, 22, 23].map(|at| usize::from(tables[at]));
    assert_eq!(mapping, 1, "a dictionary");
    let mut at = 24 + bin_count;
    (0..class_count).for_each(|_| at += 2 + usize::from(tables[at + 1]));
    let max_number = usize::from(u16::from_le_bytes([tables[at + 4], tables[at + 5]]));
    let mut steps = tables[at + 6..].iter();
    let mut values = vec![0_i32, 0];
    for _ in 0..=max_number {
        let mut step = 0_u64;
        for shift in (0..).step_by(7) {
            let byte = steps.next().unwrap();
            step |= u64::from(byte & 0x7F) << shift;
            if byte & 0x80 == 0 {
                break;
            }
        }
        let difference = (step >> 1) as i32 ^ -((step & 1) as i32);
        let [.., before, last] = values[..] else { unreachable!() };
        values.push(last.wrapping_mul(2).wrapping_sub(before).wrapping_add(difference));
    }
    assert!(steps.next().is_none(), "bytes after the dictionary");
    values.split_off(2)
}

/// Checks that the dictionary of tokens starts with the most frequent ones.
pub fn assert_frequent_tokens_are_first(file: &[u8]) {
    let reader = Reader::from_bytes(file.to_vec()).unwrap();
    let column = reader.schema().columns.iter().position(|column| column.name == "tokens").unwrap();
    let chunks = chunks(file);
    let [chunk] = &chunks.iter().filter(|chunk| chunk.column == column).collect::<Vec<_>>()[..] else {
        panic!("several chunks")
    };
    // the values are a single block, and all that the chunk has
    let stored = &file[chunk.bytes.start + 64..];
    let table_bytes = u32::from_le_bytes(*stored.first_chunk().unwrap()) as usize;
    let values = dictionary(&stored[..table_bytes]);
    let mut buffer = ColumnBuffer::new();
    reader.column_at(column).unwrap().cursor().range_into(0..reader.sample_count(), &mut buffer).unwrap();
    let tokens: Vec<i32> = buffer.bytes().as_chunks().0.iter().map(|bytes| i32::from_ne_bytes(*bytes)).collect();
    let counts: Vec<usize> = values.iter().map(|value| tokens.iter().filter(|token| *token == value).count()).collect();
    assert_eq!(counts.iter().sum::<usize>(), tokens.len(), "tokens without a value");
    // writers order them by powers of two of their counts
    assert!(counts.is_sorted_by_key(|count| count.leading_zeros()), "{counts:?}");
    assert!(!values.is_sorted(), "they ascend, as they would in any dictionary");
}
