//! Blocks of bins with filters: invalid fields and blocks (chapter 5.15), and valid ones, some of
//! them large.

use super::bins::{Bins, rows, rows_of};
use super::mapped::{ZEROS, int_multiple, zeros};
use super::options::{GAPS, NONE_OF_64, bytes_of, outliers, wide};
use super::{Row, U8, U16, U64};

pub const FILTERS: u8 = 64;
const U32: u8 = 11;
/// Elements of a block of 16 segments.
const ELEMENTS_OF_16: u32 = 2048;

/// The fields of filters.
pub struct Fields {
    taps: u8,
    filter_count: u8,
    restart: u16,
    zero: u16,
    coefficients: Vec<i16>,
}

impl Fields {
    /// Filters of two coefficients.
    pub fn new(filter_count: u8) -> Self {
        let coefficients = [8192, -4096].repeat(filter_count.into());
        Self { taps: 2, filter_count, restart: 8, zero: 0, coefficients }
    }

    /// The maximum number of coefficients, with the largest and smallest values.
    fn max_size(restart: u16) -> Self {
        let coefficients = (0..16 * 16).map(|i: u16| if i % 17 < i % 5 { i16::MAX } else { i16::MIN }).collect();
        Self { taps: 16, filter_count: 16, restart, zero: 0x8000, coefficients }
    }

    fn bytes(&self) -> Vec<u8> {
        let [restart, zero] = [self.restart, self.zero].map(u16::to_le_bytes);
        let mut fields = [&[self.taps, self.filter_count][..], &restart, &zero].concat();
        fields.extend(self.coefficients.iter().flat_map(|coefficient| coefficient.to_le_bytes()));
        fields
    }
}

/// Adds filters to bins with other options.
pub fn with_filters(bins: Bins, fields: &Fields) -> Bins {
    Bins { mapping: bins.mapping | FILTERS, fields: [bins.fields, fields.bytes()].concat(), ..bins }
}

/// A block of 64 numbers with these filter codes.
fn coded(fields: &Fields, codes: &[u8]) -> Bins {
    with_filters(Bins { prefix: codes.to_vec(), ..wide() }, fields)
}

fn of_fields() -> Vec<Row> {
    let of_fields = |what: &str, fields: &Fields| rows(what, U16, &coded(fields, &[]), "R-5.22");
    let of_taps = |taps: u8| {
        let fields = Fields { taps, coefficients: vec![1; taps.into()], ..Fields::new(1) };
        of_fields(&format!("filters of {taps} taps"), &fields)
    };
    let of_count = |count: u8| of_fields(&format!("{count} filters"), &Fields::new(count));
    let of_numbers = |bytes: u8, dtype| {
        let bins = if dtype == U8 { Bins::new() } else { wide() };
        let what = format!("filters of numbers of {bytes} bytes");
        rows(&what, dtype, &with_filters(bins, &Fields::new(1)), "R-5.22")
    };
    let cut = |bytes: usize| {
        let mut bins = coded(&Fields::new(2), &[0]);
        bins.fields.truncate(bytes);
        rows(&format!("filters with {bytes} bytes of fields"), U16, &bins, "R-5.18")
    };
    let claims = |what: &str, taps, filter_count| {
        let fields = Fields { taps, filter_count, ..Fields::new(1) };
        rows(what, U16, &coded(&fields, &[0]), "R-5.18")
    };
    let mut long = coded(&Fields::new(2), &[0]);
    long.fields.push(0);
    // differences of integers: between samples, and along a row of one
    let mut delta = coded(&Fields::new(1), &[]);
    (delta.transform[0], delta.transform[4], delta.transform[8]) = (2, 64, 1);
    let of_outliers = Bins { fields: vec![1, 0, 0], ..outliers(1, [0; 2], NONE_OF_64, &[]) };
    let all = [
        of_taps(0),
        of_taps(17),
        of_taps(255),
        of_count(0),
        of_count(17),
        of_count(255),
        of_fields("filters that restart after no segment", &Fields { restart: 0, ..Fields::new(1) }),
        of_numbers(1, U8),
        of_numbers(4, U32),
        of_numbers(8, U64),
        rows(
            "filters of one-byte numbers of a mapping",
            U64,
            &with_filters(int_multiple(0, 1), &Fields::new(1)),
            "R-5.22",
        ),
        rows("filters of differences", U16, &delta, "R-5.22"),
        rows("filters and outliers", U16, &with_filters(of_outliers, &Fields::new(1)), "R-5.22"),
        cut(0),
        cut(1),
        cut(3),
        cut(5),
        cut(6),
        cut(13),
        claims("16 filters of 16 taps, but only two coefficients", 16, 16),
        claims("a filter of 3 taps, but only two coefficients", 3, 1),
        rows("a byte after the coefficients", U16, &long, "R-5.18"),
    ];
    all.into_iter().flatten().collect()
}

fn of_blocks() -> Vec<Row> {
    let of_codes = |what: &str, count, codes: &[u8], rule| rows(what, U16, &coded(&Fields::new(count), codes), rule);
    let of_16 = |what: &str, codes: usize, rule| {
        let bins = Bins { lower: Vec::new(), upper: Vec::new(), ..coded(&Fields::new(16), &vec![0; codes]) };
        rows_of(what, U16, ELEMENTS_OF_16, &bins, rule)
    };
    let all = [
        of_codes("filter 3 of 3", 3, &[3], "R-5.23"),
        of_codes("filter 15 of 5", 5, &[15], "R-5.23"),
        of_codes("a bit after filter codes of one", 2, &[2], "R-5.23"),
        of_codes("a bit after filter codes of two", 4, &[4], "R-5.23"),
        of_codes("a bit after filter codes of four", 16, &[16], "R-5.23"),
        of_codes("a filter code for the only filter", 1, &[0], "R-5.19"),
        of_16("14 of 16 filter codes", 7, "R-5.23"),
        of_16("2 of 16 filter codes", 1, "R-5.23"),
        of_16("a block of filter codes only", 8, "R-5.19"),
    ];
    all.into_iter().flatten().collect()
}

pub fn filters() -> Vec<Row> {
    of_fields().into_iter().chain(of_blocks()).collect()
}

/// 65,535 residuals of 32,767, and the maximum number of filter codes.
fn largest(fields: &Fields) -> Bins {
    let codes: Vec<u8> = (0..ZEROS.div_ceil(256)).map(|i| (i * 37) as u8).collect();
    // the second to last bin has the window 65,534, and a frequency of 255
    let bits = (0..16).rev().chain([0]).collect();
    let zeros =
        Bins { mapping: 0, fields: Vec::new(), prefix: codes, bits, classes: vec![15, 2, 255, 1], ..zeros(ZEROS) };
    with_filters(zeros, fields)
}

/// A block of gaps only, which has no filter codes.
fn only_gaps() -> Bins {
    let prefix = bytes_of("0 10 011111111111111");
    let (mapping, fields) = (GAPS, vec![0x3F, 0x3F, 0, 15]);
    let gaps = Bins { mapping, fields, prefix, lower: Vec::new(), upper: Vec::new(), ..wide() };
    with_filters(gaps, &Fields::max_size(1))
}

/// All options that filters can be combined with, in one block.
fn with_others() -> Bins {
    let prefix = [bytes_of(NONE_OF_64), vec![2]].concat();
    let gaps = Bins { mapping: GAPS, fields: vec![0x3F, 0x3F, 0, 0], prefix, ..wide() };
    with_filters(gaps, &Fields::new(3))
}

/// Returns valid files.
pub fn intact() -> Vec<(&'static str, Vec<u8>)> {
    let of_restart = |restart| largest(&Fields::max_size(restart)).file_of(U16, 16, ZEROS as u32);
    let one = Fields { taps: 1, coefficients: vec![i16::MIN], restart: u16::MAX, ..Fields::new(1) };
    let one = Bins { prefix: Vec::new(), ..largest(&one) };
    vec![
        ("16 filters of 16 taps that restart after a segment", of_restart(1)),
        ("16 filters of 16 taps that restart after 8 segments", of_restart(8)),
        ("16 filters of 16 taps that do not restart", of_restart(u16::MAX)),
        ("a filter of one tap", one.file_of(U16, 16, ZEROS as u32)),
        ("filters of gaps only", only_gaps().file_of(U16, 16, ZEROS as u32)),
        ("filters and gaps", with_others().file(U16, 200)),
        ("numbers of two bytes with a filter", coded(&Fields::new(1), &[]).file(U16, 20)),
    ]
}
