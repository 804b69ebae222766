//! Bins, in blocks and in one block: invalid tables and blocks (chapter 5.13).

use super::Refusal::Reading;
use super::block_indexes::StoredPart;
use super::{BINS, BLOCKS, Row, U8, column, one_chunk, row};
use crate::support::build::Chunk;

/// Elements of a sample: a block of one group.
const ELEMENTS: usize = 64;
/// Numbers of samples: of a part without *blocks*, of a chunk that is decoded as a whole, and of
/// one whose block index is read on its own.
const SAMPLES: [u32; 3] = [1, 20, 200];

/// A part of bins whose blocks are all the same.
#[derive(Clone)]
pub struct Bins {
    pub table_bytes: Option<u32>,
    pub transform: [u8; 16],
    pub low_bytes: u8,
    pub bin_count: Option<u8>,
    pub class_count: u8,
    pub mapping: u8,
    /// `K` of each bin.
    pub bits: Vec<u8>,
    /// *first*, *count* and frequencies of each class.
    pub classes: Vec<u8>,
    /// The fields of the mapping.
    pub fields: Vec<u8>,
    /// The bytes of a block before its states.
    pub prefix: Vec<u8>,
    pub lower: Vec<u8>,
    pub upper: Vec<u8>,
    pub stream: Vec<u8>,
}

impl Bins {
    /// Returns two bins of 128 windows of a byte. State `512 + x` then codes the window `x` and
    /// needs no stream.
    pub fn new() -> Self {
        Self {
            table_bytes: None,
            transform: [0; 16],
            low_bytes: 0,
            bin_count: None,
            class_count: 1,
            mapping: 0,
            bits: vec![7, 7],
            classes: vec![0, 2, 128, 128],
            fields: Vec::new(),
            prefix: Vec::new(),
            lower: (0..ELEMENTS as u8).collect(),
            upper: vec![2; ELEMENTS],
            stream: Vec::new(),
        }
    }

    fn tables(&self) -> Vec<u8> {
        let mut tables = self.transform.to_vec();
        tables.extend([self.low_bytes, self.bin_count.unwrap_or(self.bits.len() as u8)]);
        tables.extend([self.class_count, self.mapping]);
        let rest = [&self.bits, &self.classes, &self.fields];
        rest.into_iter().for_each(|bytes| tables.extend(bytes));
        let table_bytes = self.table_bytes.unwrap_or(tables.len() as u32 + 4);
        [&table_bytes.to_le_bytes()[..], &tables].concat()
    }

    /// Returns a file of a column of this type, whose samples are blocks of this many elements. One
    /// sample is a part without *blocks*.
    pub fn file_of(&self, dtype: u8, samples: u32, elements: u32) -> Vec<u8> {
        let block = [&self.prefix[..], &self.lower, &self.upper, &self.stream].concat();
        let element_bytes = [2, 2, 4, 8, 1, 2, 4, 8, 1, 2, 4, 8][usize::from(dtype) - 1];
        let raw_bytes = samples * elements * element_bytes;
        let column = column("x", dtype, false, &[elements]);
        if samples == 1 {
            let mut stored = self.tables();
            stored.resize(stored.len().next_multiple_of(16), 0);
            stored.extend(block);
            return one_chunk(column, &Chunk::of_values(1, (BINS, raw_bytes, &stored)));
        }
        let padded = block.len().next_multiple_of(16);
        let ends = (1..=samples).map(|k| (elements * k, (padded * (k as usize - 1) + block.len()) as u32));
        let mut blocks = [&block[..], &vec![0; padded - block.len()]].concat().repeat(samples as usize);
        blocks.truncate(blocks.len() - (padded - block.len()));
        let stored = StoredPart {
            block_index_bytes: None,
            block_count: None,
            tables: self.tables(),
            entries: ends.collect(),
            filling: 0,
            blocks,
        };
        stored.file(column, BLOCKS | BINS, samples, raw_bytes)
    }

    pub fn file(&self, dtype: u8, samples: u32) -> Vec<u8> {
        self.file_of(dtype, samples, ELEMENTS as u32)
    }
}

/// Returns rows for each number of samples.
pub fn rows(what: &str, dtype: u8, bins: &Bins, rule: &'static str) -> [Row; 3] {
    rows_of(what, dtype, ELEMENTS as u32, bins, rule)
}

/// Returns rows with blocks of this many elements.
pub fn rows_of(what: &str, dtype: u8, elements: u32, bins: &Bins, rule: &'static str) -> [Row; 3] {
    SAMPLES.map(|samples| {
        // is about block indexes: without one, tables that do not fit break another rule
        let rule = if samples == 1 && rule == "R-5.14" { "R-5.18" } else { rule };
        row(format!("{what}, in {samples} samples"), bins.file_of(dtype, samples, elements), Reading(rule, rule))
    })
}

pub fn bins() -> Vec<Row> {
    let changed = |what: &str, rule, change: &dyn Fn(&mut Bins)| {
        let mut bins = Bins::new();
        change(&mut bins);
        rows(what, U8, &bins, rule)
    };
    let classes = |what: &str, bits: &[u8], classes: &[u8]| {
        changed(what, "R-5.18", &|bins| (bins.bits, bins.classes) = (bits.to_vec(), classes.to_vec()))
    };
    let bits = |what: &str, bits: &[u8]| {
        let of_bits = [&[0, bits.len() as u8, 128, 128][..], &vec![0; bits.len() - 2]].concat();
        classes(what, bits, &of_bits)
    };
    let three_classes = [0, 2, 128, 128].repeat(3);
    let tables = |what: &str, rule, change: &dyn Fn(&mut Bins)| changed(what, rule, change);
    let all = [
        classes("frequencies that add up to 255", &[7, 7], &[0, 2, 128, 127]),
        classes("frequencies that add up to 257", &[7, 7], &[0, 2, 128, 129]),
        classes("frequencies that add up to 0", &[7, 7], &[0, 2, 0, 0]),
        classes("frequencies that add up to 512", &[6, 6, 7], &[0, 3, 255, 255, 2]),
        classes("frequencies from bin 255 on", &[7, 7], &[255, 2, 128, 128]),
        classes("frequencies of 255 bins", &[7, 7], &[&[0, 255, 2][..], &[1; 254]].concat()),
        bits("bins that overlap", &[6, 7, 6]),
        bits("bins that leave windows out", &[7, 6]),
        bits("bins beyond the window", &[7, 7, 7]),
        bits("64 bins beyond the window", &[15; 64]),
        bits("a bin of 2^255 windows", &[255, 7]),
        tables("255 bins, but only two of them", "R-5.18", &|bins| bins.bin_count = Some(255)),
        tables("no bins", "R-5.18", &|bins| bins.bin_count = Some(0)),
        tables("255 classes, but only one of them", "R-5.18", &|bins| bins.class_count = 255),
        tables("five classes", "R-5.18", &|bins| (bins.class_count, bins.classes) = (5, [0, 2, 128, 128].repeat(5))),
        tables("4 classes, but frequencies for only one", "R-5.18", &|bins| bins.class_count = 4),
        tables("255 bytes below a window of one", "R-5.18", &|bins| bins.low_bytes = 255),
        tables("an unknown mapping", "R-5.18", &|bins| bins.mapping = 255),
        tables("tables of 4 GiB", "R-5.14", &|bins| bins.table_bytes = Some(u32::MAX)),
        tables("tables of no bytes", "R-5.14", &|bins| bins.table_bytes = Some(0)),
        changed("states below 256", "R-5.19", &|bins| bins.upper = vec![0; ELEMENTS]),
        changed("one state below 256", "R-5.19", &|bins| bins.upper[ELEMENTS - 1] = 0),
        changed("states that end above 511", "R-5.19", &|bins| bins.upper = vec![255; ELEMENTS]),
        changed("states that take missing bytes", "R-5.19", &|bins| bins.upper = vec![1; ELEMENTS]),
        changed("blocks that end within their states", "R-5.19", &|bins| bins.upper.truncate(1)),
        changed("a stream that no state reads", "R-5.19", &|bins| bins.stream = vec![0; 1000]),
        changed("a class out of range, in blocks", "R-5.19", &|bins| {
            (bins.class_count, bins.classes, bins.prefix) = (3, three_classes.clone(), vec![3]);
        }),
        changed("a block of class codes only", "R-5.19", &|bins| {
            (bins.class_count, bins.classes, bins.prefix) = (3, three_classes.clone(), vec![0]);
            (bins.lower, bins.upper) = (Vec::new(), Vec::new());
        }),
    ];
    all.into_iter().flatten().collect()
}
