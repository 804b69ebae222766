//! Blocks of bins with gaps or outliers: invalid fields and blocks (chapter 5.15), and valid ones,
//! some of them large when decoded.

use super::bins::{Bins, rows};
use super::filters::{FILTERS, Fields, with_filters};
use super::mapped::{ZEROS, int_multiple, zeros};
use super::{F32, F64, Row, U8, U64};

pub const GAPS: u8 = 16;
const OUTLIERS: u8 = 32;
/// Marks of all elements, of none, and of the last one.
const ALL_OF_64: &str = "0 1111111111111111 1111110000000000";
pub const NONE_OF_64: &str = "1111111111111111 0000001000000000";
const LAST_OF_64: &str = "1111111111111111 1111110000000000 0";

/// Returns the bytes of a sequence of bits as the specification writes them, padded with zeros.
pub fn bytes_of(sequence: &str) -> Vec<u8> {
    let bits: Vec<u8> = sequence.bytes().filter(|digit| *digit != b' ').map(|digit| digit - b'0').collect();
    bits.chunks(8).map(|byte| byte.iter().rev().fold(0, |byte, bit| byte << 1 | bit)).collect()
}

/// Gaps in a block with `others` elements that are not gaps.
fn gaps(parameters: [u8; 2], marks: &str, others: u8) -> Bins {
    Bins {
        mapping: GAPS,
        fields: [&[7][..], &parameters].concat(),
        prefix: bytes_of(marks),
        lower: (0..others).collect(),
        upper: vec![2; others.into()],
        ..Bins::new()
    }
}

/// Bins of a window of 16 bits; only those below 128 are coded.
pub fn wide() -> Bins {
    Bins { bits: vec![7, 7, 8, 9, 10, 11, 12, 13, 14, 15], ..Bins::new() }
}

pub fn outliers(upper_bits: u8, parameters: [u8; 2], marks: &str, uppers: &[u8]) -> Bins {
    let fields = [&[upper_bits][..], &parameters].concat();
    Bins { mapping: OUTLIERS, fields, prefix: [&bytes_of(marks)[..], uppers].concat(), ..wide() }
}

/// The sections of all options at once, around int multiples of 8 bytes.
struct AllOptions {
    gaps: &'static str,
    /// The number of elements that are not gaps.
    others: u8,
    outliers: &'static str,
    uppers: Vec<u8>,
    /// More bits of `mapping`.
    more: u8,
}

/// 60 elements between 4 gaps, the last 2 of them outliers.
fn all() -> AllOptions {
    let outliers = "1111111111111111 0101110000000000 10";
    let gaps = "1110 1110 1111111111111111 0001110000000000";
    AllOptions { gaps, others: 60, outliers, uppers: vec![0xFF; 12], more: 0 }
}

impl AllOptions {
    fn bins(&self) -> Bins {
        let mut bins = int_multiple(-5, 1000);
        bins.fields[0] = 8; // bytes of a number
        bins.fields.extend([9; 8]);
        bins.fields.extend([0, 0, 48, 0, 0]);
        let prefix = [bytes_of(self.gaps), bins.prefix, bytes_of(self.outliers), self.uppers.clone()].concat();
        let (lower, upper) = ((0..self.others).collect(), vec![2; self.others.into()]);
        let mapping = bins.mapping | GAPS | OUTLIERS | self.more;
        Bins { mapping, fields: bins.fields, prefix, lower, upper, ..wide() }
    }
}

fn of_gaps() -> Vec<Row> {
    let of_marks = |what: &str, parameters, marks: &str, rule| rows(what, U8, &gaps(parameters, marks, 60), rule);
    let cut = |what: &str, parameters, marks: &str| rows(what, U8, &gaps(parameters, marks, 0), "R-5.23");
    let without = |bytes: usize| {
        let mut bins = gaps([0; 2], "0", 60);
        bins.fields.truncate(bytes);
        rows(&format!("gaps with {bytes} bytes of fields"), U8, &bins, "R-5.18")
    };
    let all = [
        of_marks("a first stretch of 65,535 elements", [0; 2], &"1".repeat(32), "R-5.23"),
        of_marks("a first stretch of 65 elements", [0; 2], "1111111111111111 1000001000000000", "R-5.23"),
        of_marks("a gap of 65,536 elements", [0; 2], &format!("0 {}", "1".repeat(32)), "R-5.23"),
        of_marks("a gap of 65 elements", [0; 2], "0 1111111111111111 0000001000000000", "R-5.23"),
        of_marks("a gap of 524,288 elements", [0, 15], &format!("0 {} 0 {}", "1".repeat(15), "1".repeat(15)), "R-5.23"),
        of_marks("a length of 32 bits that needs fewer", [0; 2], "1111111111111111 1111000000000000", "R-5.23"),
        of_marks("a length of 32 bits with a parameter of 12", [12, 0], &"1".repeat(32), "R-5.23"),
        of_marks("bits after the marks", [0; 2], &format!("{ALL_OF_64} 1"), "R-5.23"),
        cut("gap marks that are cut off in a quotient", [0; 2], "11111111"),
        cut("gap marks that are cut off in 16 bits", [0; 2], "1111111111111111 11111111"),
        cut("gap marks that are cut off between stretches", [0; 2], "00000000"),
        cut("gap marks that are cut off in a parameter", [15, 0], "0 0000000"),
        of_marks("a parameter of 16 of gaps", [0, 16], "0", "R-5.22"),
        of_marks("a parameter of 255 between gaps", [255, 0], "0", "R-5.22"),
        of_marks("bins of gaps", [0; 2], ALL_OF_64, "R-5.19"),
        rows("gaps without the rest of a block", U8, &gaps([0; 2], NONE_OF_64, 0), "R-5.19"),
        without(0),
        without(1),
        without(2),
    ];
    all.into_iter().flatten().collect()
}

fn of_outliers() -> Vec<Row> {
    let of_upper =
        |what: &str, upper_bits, dtype| rows(what, dtype, &outliers(upper_bits, [0; 2], NONE_OF_64, &[]), "R-5.22");
    let of_block =
        |what: &str, marks: &str, uppers: &[u8], rule| rows(what, U64, &outliers(48, [0; 2], marks, uppers), rule);
    let of_bytes = Bins { bits: vec![7, 7], ..outliers(1, [0; 2], NONE_OF_64, &[]) };
    let all = [
        of_upper("uppers of no bits", 0, U64),
        of_upper("uppers of 49 bits", 49, U64),
        of_upper("uppers of 255 bits", 255, U64),
        of_upper("uppers of 17 bits above floats", 17, F32),
        rows("uppers of one-byte elements", U8, &of_bytes, "R-5.22"),
        rows("a parameter of 255 of outliers", U64, &outliers(48, [0, 255], NONE_OF_64, &[]), "R-5.22"),
        of_block("outliers beyond their block", &"1".repeat(32), &[], "R-5.23"),
        of_block("missing uppers of 64 outliers", ALL_OF_64, &[], "R-5.23"),
        of_block("uppers that take the states", ALL_OF_64, &[0xFF; 380], "R-5.19"),
        of_block("one upper more than there are outliers", ALL_OF_64, &[0xFF; 390], "R-5.19"),
        rows("a bit after the uppers", U64, &outliers(1, [0; 2], LAST_OF_64, &[2]), "R-5.23"),
    ];
    all.into_iter().flatten().collect()
}

pub fn options() -> Vec<Row> {
    let of_all = |what: &str, all: AllOptions, rule| rows(what, U64, &all.bins(), rule);
    let mut long = all().bins();
    long.fields.extend([0; 5]);
    let rest = [
        rows("all options, and 5 bytes after their fields", U64, &long, "R-5.18"),
        of_all("all options, and an unknown mapping", AllOptions { more: 4, ..all() }, "R-5.18"),
        of_all("all options, and filters without fields", AllOptions { more: FILTERS, ..all() }, "R-5.18"),
        rows("all options, and filters of their numbers", U64, &with_filters(all().bins(), &Fields::new(1)), "R-5.22"),
        of_all("all options, and an unknown one", AllOptions { more: 128, ..all() }, "R-5.18"),
        of_all("all options, and gaps beyond the block", AllOptions { gaps: "0000000", ..all() }, "R-5.23"),
        of_all("all options, and outliers that are gaps", AllOptions { outliers: ALL_OF_64, ..all() }, "R-5.23"),
        of_all("all options, and an upper of none", AllOptions { uppers: vec![0xFF; 18], ..all() }, "R-5.19"),
        of_all("all options, and states of gaps", AllOptions { others: 64, ..all() }, "R-5.19"),
    ];
    of_gaps().into_iter().chain(of_outliers()).chain(rest.into_iter().flatten()).collect()
}

/// 65,535 gaps in three bytes.
fn only_gaps() -> Bins {
    let fields = [&[0x3F; 8][..], &[0, 15]].concat();
    let prefix = bytes_of("0 10 011111111111111");
    Bins { mapping: GAPS, fields, prefix, lower: Vec::new(), upper: Vec::new(), ..wide() }
}

/// Zeros with a gap at every second element: the maximum number of stretches.
fn every_second() -> Bins {
    let zeros = zeros(ZEROS / 2 + 1);
    let fields = [&zeros.fields[..], &[0; 10]].concat();
    // the first stretch is coded as its length, later ones as their length minus one
    let prefix = [&[1][..], &vec![0; ZEROS / 8], &zeros.prefix].concat();
    Bins { mapping: zeros.mapping | GAPS, fields, prefix, ..zeros }
}

/// Returns valid files, some of them large when decoded.
pub fn intact() -> Vec<(&'static str, Vec<u8>)> {
    let all_outliers = outliers(48, [0; 2], ALL_OF_64, &[0xFF; 384]);
    vec![
        ("gaps that decode to 8 MiB", only_gaps().file_of(F64, 16, ZEROS as u32)),
        ("every second element a gap, 8 MiB", every_second().file_of(F64, 16, ZEROS as u32)),
        ("only outliers, with all bits", all_outliers.file(U64, 200)),
        ("all options", all().bins().file(U64, 200)),
    ]
}
