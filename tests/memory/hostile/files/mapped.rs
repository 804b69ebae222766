//! Blocks of bins with a mapping: invalid fields and blocks (chapter 5.14), and valid ones that are
//! large when decoded.

use super::bins::{Bins, rows};
use super::{F64, Row, U64};

const DICTIONARY: u8 = 1;
const FLOAT_MULTIPLE: u8 = 2;
const INT_MULTIPLE: u8 = 3;

/// A dictionary of floats of 8 bytes, with one-byte numbers.
fn dictionary(count: u8, max_number: u16, steps: &[u8]) -> Bins {
    let fields = [&[1, 1, count, 0][..], &max_number.to_le_bytes(), steps].concat();
    Bins { mapping: DICTIONARY, fields, prefix: vec![0, 0], ..Bins::new() }
}

/// The fields of a float multiple, valid unless a row changes them.
struct FloatMultiple {
    number_bytes: u8,
    float_type: u8,
    detail_bits: u8,
    divisor: u32,
    exponent: i16,
}

const FLOAT_MULTIPLE_OF_F64: FloatMultiple =
    FloatMultiple { number_bytes: 1, float_type: 4, detail_bits: 0, divisor: 1, exponent: 4 };

impl FloatMultiple {
    /// Returns bins with this mapping. If there are details, a block states that many bytes of
    /// them.
    fn bins(&self, base: i64, details: &[u8]) -> Bins {
        let mut fields = vec![self.number_bytes, self.float_type, self.detail_bits, 0];
        fields.extend(self.divisor.to_le_bytes());
        fields.extend(self.exponent.to_le_bytes());
        fields.extend([0; 2]);
        let mut prefix = [&[0; 2][..], &base.to_le_bytes()].concat();
        if self.detail_bits > 0 {
            prefix.extend((details.len() as u32).to_le_bytes());
            prefix.extend(details);
        }
        Bins { mapping: FLOAT_MULTIPLE, fields, prefix, ..Bins::new() }
    }
}

/// Int multiples of 8 bytes, with one-byte numbers.
pub fn int_multiple(base: i64, factor: u64) -> Bins {
    let fields = [&[1, 0, 0, 0][..], &factor.to_le_bytes()].concat();
    let prefix = [&[0; 2][..], &base.to_le_bytes()].concat();
    Bins { mapping: INT_MULTIPLE, fields, prefix, ..Bins::new() }
}

/// Adds patches at these positions.
fn with_patches(bins: Bins, count: u16, positions: &[u16]) -> Bins {
    let mut prefix = count.to_le_bytes().to_vec();
    prefix.extend(&bins.prefix[2..]);
    prefix.extend(positions.iter().flat_map(|position| position.to_le_bytes()));
    prefix.extend(vec![7; 8 * positions.len()]);
    Bins { prefix, ..bins }
}

pub fn mappings() -> Vec<Row> {
    let of_steps =
        |what: &str, max_number, steps: &[u8], rule| rows(what, F64, &dictionary(1, max_number, steps), rule);
    let of_float_multiple =
        |what: &str, float_multiple: FloatMultiple| rows(what, F64, &float_multiple.bins(0, &[]), "R-5.20");
    // numbers from 0 to 63, with 4 bits of details each
    let detailed = |details: &[u8]| FloatMultiple { detail_bits: 4, ..FLOAT_MULTIPLE_OF_F64 }.bins(0, details);
    let of_positions = |what: &str, count, positions: &[u16]| {
        rows(what, U64, &with_patches(int_multiple(0, 1), count, positions), "R-5.21")
    };
    let of_block = |what: &str, bins: Bins, rule| rows(what, F64, &bins, rule);
    let mut of_4_gib = detailed(&[]);
    of_4_gib.prefix[10..].fill(0xFF); // the length of the details
    let all = [
        of_steps("a step of 11 bytes", 0, &[&[0x80; 10][..], &[1]].concat(), "R-5.20"),
        of_steps("a step of 2^64", 0, &[&[0x80; 9][..], &[2]].concat(), "R-5.20"),
        of_steps("a step with a byte more than it needs", 0, &[0x80, 0], "R-5.20"),
        of_steps("a step that does not end", 0, &[0x80; 1000], "R-5.20"),
        of_steps("a step that ends with the tables", 0, &[0x80; 5], "R-5.18"),
        of_steps("a dictionary of 65,536 values in three bytes", u16::MAX, &[2; 3], "R-5.18"),
        of_steps("a dictionary of 3 values in 1,000 bytes", 2, &[2; 1000], "R-5.18"),
        rows("255 dictionaries, but only one of them", F64, &dictionary(255, 63, &[2; 64]), "R-5.18"),
        rows("no dictionaries", F64, &dictionary(0, 63, &[2; 64]), "R-5.20"),
        rows("a number above the maximum", F64, &dictionary(1, 62, &[2; 63]), "R-5.21"),
        rows("numbers of a dictionary of one value", F64, &dictionary(1, 0, &[2]), "R-5.21"),
        of_float_multiple("a divisor of 0", FloatMultiple { divisor: 0, ..FLOAT_MULTIPLE_OF_F64 }),
        of_float_multiple("a divisor of 2^32 - 1", FloatMultiple { divisor: u32::MAX, ..FLOAT_MULTIPLE_OF_F64 }),
        of_float_multiple("an exponent of -32,768", FloatMultiple { exponent: i16::MIN, ..FLOAT_MULTIPLE_OF_F64 }),
        of_float_multiple("an exponent of 32,767", FloatMultiple { exponent: i16::MAX, ..FLOAT_MULTIPLE_OF_F64 }),
        of_float_multiple("255 bits of details", FloatMultiple { detail_bits: 255, ..FLOAT_MULTIPLE_OF_F64 }),
        of_float_multiple(
            "a number of 79 bits",
            FloatMultiple { number_bytes: 8, detail_bits: 15, ..FLOAT_MULTIPLE_OF_F64 },
        ),
        of_float_multiple("numbers of 255 bytes", FloatMultiple { number_bytes: 255, ..FLOAT_MULTIPLE_OF_F64 }),
        of_float_multiple("a float type of 255", FloatMultiple { float_type: 255, ..FLOAT_MULTIPLE_OF_F64 }),
        of_float_multiple("a float type of 2 bytes", FloatMultiple { float_type: 1, ..FLOAT_MULTIPLE_OF_F64 }),
        rows("a factor of 0", U64, &int_multiple(0, 0), "R-5.20"),
        of_positions("65,535 missing patches", u16::MAX, &[]),
        of_positions("patches without the last one", 3, &[0, 1]),
        of_positions("positions that are equal", 2, &[5, 5]),
        of_positions("positions that descend", 3, &[5, 60, 59]),
        of_positions("a position after the last element", 2, &[5, 64]),
        of_positions("position 65,535", 1, &[u16::MAX]),
        of_block("no details", detailed(&[]), "R-5.21"),
        of_block("a byte of details too few", detailed(&[0; 31]), "R-5.21"),
        of_block("a byte of details too many", detailed(&[0; 33]), "R-5.21"),
        of_block("1,000 bytes of details", detailed(&[0; 1000]), "R-5.21"),
        of_block("4 GiB of details", of_4_gib, "R-5.21"),
    ];
    all.into_iter().flatten().collect()
}

/// The maximum number of elements of a block, which codes only zeros.
pub const ZEROS: usize = 65_535;

/// A dictionary of one value, and bins with one that takes almost no bits.
pub fn zeros(count: usize) -> Bins {
    let mut states = [256_u32; 64];
    let mut stream = Vec::new();
    for group in (0..count.div_ceil(64)).rev() {
        let count = (count - 64 * group).min(64);
        // the last element first, as encoders do; bin 0 has one window, and a frequency of 255
        for state in states[..count].iter_mut().rev() {
            if *state >= 255 << 8 {
                stream.push(*state as u8);
                *state >>= 8;
            }
            *state = ((*state / 255) << 8) + *state % 255;
        }
    }
    stream.reverse();
    Bins {
        bits: vec![0, 0, 1, 2, 3, 4, 5, 6, 7],
        classes: vec![0, 2, 255, 1],
        lower: states.map(|state| state as u8).to_vec(),
        upper: states.map(|state| (state >> 8) as u8).to_vec(),
        stream,
        ..dictionary(1, 0, &[2])
    }
}

/// Returns valid files: large when decoded, or with numbers beyond the range of their type.
pub fn intact() -> Vec<(&'static str, Vec<u8>)> {
    let dictionaries: Vec<u8> = [&[0xFF; 2][..], &[2; 1 << 16]].concat().repeat(8);
    let many =
        Bins { mapping: DICTIONARY, fields: [&[1, 1, 8, 0][..], &dictionaries].concat(), ..dictionary(1, 0, &[]) };
    let float_multiple = |exponent, base| FloatMultiple { exponent, ..FLOAT_MULTIPLE_OF_F64 }.bins(base, &[]);
    vec![
        ("a dictionary that decodes to 8 MiB", zeros(ZEROS).file_of(F64, 16, ZEROS as u32)),
        ("a dictionary of one block", zeros(ZEROS).file_of(F64, 1, ZEROS as u32)),
        ("8 dictionaries of 65,536 values", many.file(F64, 20)),
        ("multiples of 2^64 - 1 from -2^63", int_multiple(i64::MIN, u64::MAX).file(U64, 20)),
        ("float multiples from -2^63 that are too large for an f64", float_multiple(-1022, i64::MIN).file(F64, 20)),
        ("subnormal float multiples", float_multiple(1022, 0).file(F64, 20)),
        ("float multiples of integers beyond 2^63", float_multiple(4, i64::MAX).file(F64, 20)),
    ]
}
