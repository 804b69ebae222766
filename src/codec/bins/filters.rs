//! Filters (chapter 5.15): linear prediction of a number from up to 16 numbers before it.
//!
//! Differences predict sound and other oscillating signals poorly. A weighted sum of the last 8 or
//! 16 numbers, with fitted coefficients, predicts them well, as in lossless audio codecs. A part
//! has up to 16 filters, and each segment of 128 numbers names one of them. Prediction restarts
//! every few segments, so that the rows between restarts can be decoded in parallel.
//!
//! Filters are fitted to the segments of a part by the covariance method of linear prediction (B.
//! S. Atal and S. L. Hanauer, 1971). Lloyd's algorithm clusters segments that share a filter. The
//! sums of products of each segment, its [`Moments`], are computed once; the squared residual of
//! any filter in the segment is then a quadratic form with these coefficients. Fitting takes time
//! and does not help most numbers, so writers look at a few segments first.

use super::{cut, malformed_marks, malformed_option};
use crate::Result;
use crate::bytes::le::{Fields, structure};
use crate::codec::{bits::ClassCodes, part::Geometry, transform::Transform};
use crate::kernel::{
    Width,
    predict::{self, FilterBank, MAX_FILTERS, MAX_TAPS, SEGMENT},
};
use std::ops::Range;

structure! {
    /// Chapter 5.15: the fields of *filters* before the coefficients.
    mod filter_fields: 6 bytes {
        0 => TAPS: u8,
        1 => FILTER_COUNT: u8,
        2 => RESTART_SEGMENTS: u16,
        4 => ZERO: u16,
    }
}

/// Chapter 5.15: the fields of *filters*.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Filters {
    pub(super) bank: FilterBank,
    pub(super) filter_count: usize,
}

impl Filters {
    /// Parses the fields, and checks except where it depends on the numbers.
    pub(super) fn parse(fields: &mut Fields<'_>) -> Result<Self> {
        use filter_fields::{FILTER_COUNT, RESTART_SEGMENTS, TAPS, ZERO};
        let header = fields.array().ok_or_else(cut)?;
        let (taps, filter_count) = (usize::from(TAPS.get(&header)), usize::from(FILTER_COUNT.get(&header)));
        let (restart, zero) = (RESTART_SEGMENTS.get(&header), ZERO.get(&header));
        if !(1..=MAX_TAPS).contains(&taps) || !(1..=MAX_FILTERS).contains(&filter_count) || restart == 0 {
            return Err(malformed_option(&format!(
                "the filters are out of range: {filter_count} filters, {taps} taps, restart after {restart} segments"
            )));
        }
        let mut coefficients = [[0; MAX_TAPS]; MAX_FILTERS];
        for filter in coefficients.iter_mut().take(filter_count) {
            for coefficient in filter.iter_mut().take(taps) {
                *coefficient = i16::from_le_bytes(fields.array().ok_or_else(cut)?);
            }
        }
        Ok(Self { bank: FilterBank { coefficients, taps, restart, zero }, filter_count })
    }

    /// Checks the conditions of on the numbers and the transform that filters are used with.
    pub(super) fn check_numbers(&self, number_width: Width, transform: Transform) -> Result<()> {
        match (number_width, transform) {
            (Width::W2, Transform::None) => Ok(()),
            _ => Err(malformed_option("filters need numbers of 2 bytes and no transform")),
        }
    }

    pub(super) fn write(&self, tables: &mut Vec<u8>) {
        use filter_fields::{FILTER_COUNT, RESTART_SEGMENTS, SIZE, TAPS, ZERO};
        let FilterBank { coefficients, taps, restart, zero } = &self.bank;
        let mut header = [0; SIZE];
        TAPS.put(&mut header, *taps as u8); // exact: at most 16, and so is the next
        FILTER_COUNT.put(&mut header, self.filter_count as u8);
        RESTART_SEGMENTS.put(&mut header, *restart);
        ZERO.put(&mut header, *zero);
        tables.extend(header);
        let coefficients = coefficients.iter().take(self.filter_count).flat_map(|filter| filter.iter().take(*taps));
        tables.extend(coefficients.flat_map(|coefficient| coefficient.to_le_bytes()));
    }

    pub(super) fn codes(&self) -> ClassCodes {
        ClassCodes::new(self.filter_count)
    }

    pub(super) fn describe(&self) -> String {
        format!("{} filters of {} taps; ", self.filter_count, self.bank.taps)
    }

    /// Splits the filter codes of a block of `count` numbers from the bytes after them, and checks
    /// for the codes.
    pub(crate) fn split<'a>(&self, count: usize, stored: &'a [u8]) -> Result<(&'a [u8], &'a [u8])> {
        let (codes, segments) = (self.codes(), count.div_ceil(SEGMENT));
        let split = codes.bytes(segments).and_then(|bytes| stored.split_at_checked(bytes));
        let (stored, bins) = split.ok_or_else(|| malformed_marks("it ends within its filter codes"))?;
        if !codes.are_valid(stored, segments) || !codes.end_in_zeros(stored, segments) {
            return Err(malformed_marks("a filter code is out of range, or padding bits are not zero"));
        }
        Ok((stored, bins))
    }

    /// Returns the index of the last restart of prediction at or before number `i`.
    pub(crate) fn start_of(&self, i: usize) -> usize {
        i - i % self.bank.restart_numbers()
    }

    /// Replaces coded integers of a block with numbers. `first` is the index of the first integer,
    /// which must be at a restart of prediction.
    pub(crate) fn undo(&self, codes: &[u8], first: usize, data: &mut [u8], scratch: &mut Vec<u8>) {
        let class_codes = self.codes();
        let segments = first / SEGMENT..(first + data.len() / Width::W2.bytes()).div_ceil(SEGMENT);
        scratch.clear();
        scratch.extend(segments.map(|segment| class_codes.get(codes, segment)));
        predict::best().undo_filter(&self.bank, scratch, data);
    }
}

/// The number of segments after which prediction restarts. A 64 KiB block of 2-byte numbers then
/// has 32 rows, one for each lane of the widest vector.
const RESTART_SEGMENTS: u16 = 8;
/// The minimum number of segments per filter.
const MIN_SEGMENTS_PER_FILTER: usize = 8;
/// The minimum number of segments per filter in a sample, where most segments are adjacent and
/// therefore similar.
const MIN_SEGMENTS_PER_FILTER_IN_SAMPLE: usize = 16;
/// The number of segments to which filters are fitted first.
const PROBE_SEGMENTS: usize = 16;
/// The maximum number of segments to which filters are fitted.
const MAX_FITTED_SEGMENTS: usize = 512;
/// The minimum saving of filters compared with differences, in bits per number, in the segments to
/// which they are fitted.
const MIN_GAIN: f64 = 0.1;

/// The filters of a part, in memory that is reused.
#[derive(Default)]
pub(crate) struct FilterPlan {
    /// `None` if there are no filters. The other fields then have no meaning.
    pub filters: Option<Filters>,
    /// The filter of each segment of all blocks.
    codes: Vec<u8>,
    moments: Vec<Moments>,
    window: Vec<f64>,
}

impl FilterPlan {
    /// Fits filters of `taps` coefficients to 2-byte numbers. Returns whether they seem worthwhile.
    /// In a sample, a few segments are tried first, because they can show that filters are not
    /// worthwhile.
    pub(crate) fn find(&mut self, taps: usize, is_sample: bool, geometry: &Geometry<'_>, numbers: &[u8]) -> bool {
        self.filters = None;
        let zero = mean(numbers);
        let segments_per_filter = if is_sample { MIN_SEGMENTS_PER_FILTER_IN_SAMPLE } else { MIN_SEGMENTS_PER_FILTER };
        let all: usize = segments(geometry).count();
        let mut fitted = Vec::new();
        let mut step = 0;
        // most numbers do not benefit from filters, and a few segments are enough to show it
        let steps = [(PROBE_SEGMENTS, MIN_GAIN / 4.0), (MAX_FITTED_SEGMENTS, MIN_GAIN)];
        for (max_segments, min_gain) in steps.into_iter().skip(if is_sample { 0 } else { 1 }) {
            if step == 1 {
                break; // all segments have been used
            }
            step = all.div_ceil(max_segments).max(1);
            self.set_moments(taps, zero, step, geometry, numbers);
            let filter_count = (self.moments.len() / segments_per_filter).clamp(1, MAX_FILTERS);
            fitted = fit(&self.moments, taps, filter_count);
            if self.gain(&assign(&self.moments, &fitted)) < min_gain {
                return false;
            }
        }
        let filter_count = fitted.len();
        if step > 1 {
            self.set_moments(taps, zero, 1, geometry, numbers);
        }
        self.codes.clear();
        self.codes.extend(assign(&self.moments, &fitted).into_iter().map(|(code, _)| code));
        let mut coefficients = [[0; MAX_TAPS]; MAX_FILTERS];
        for (to, from) in coefficients.iter_mut().zip(&fitted) {
            // exact: coefficients are multiples of 1/UNIT, and in range
            to.iter_mut().zip(from).for_each(|(to, from)| *to = (from * UNIT) as i16);
        }
        let bank = FilterBank { coefficients, taps, restart: RESTART_SEGMENTS, zero };
        self.filters = Some(Filters { bank, filter_count });
        true
    }

    /// Computes the moments of every `step`-th segment.
    fn set_moments(&mut self, taps: usize, zero: u16, step: usize, geometry: &Geometry<'_>, numbers: &[u8]) {
        let numbers = numbers.as_chunks().0;
        let counted = |number: &[u8; 2]| f64::from(u16::from_le_bytes(*number).wrapping_sub(zero).cast_signed());
        self.moments.clear();
        for (start, segment) in segments(geometry).step_by(step) {
            let before = numbers.get(start.max(segment.start.saturating_sub(MAX_TAPS))..segment.start).unwrap_or(&[]);
            self.window.clear();
            // no overflow: `before` has at most MAX_TAPS numbers
            self.window.resize(MAX_TAPS - before.len(), 0.0);
            self.window.extend(before.iter().chain(numbers.get(segment).unwrap_or(&[])).map(counted));
            self.moments.push(Moments::of(&self.window, taps));
        }
    }

    /// Returns the saving of filters in bits per number, compared with differences or no
    /// prediction, whichever needs fewer bits.
    fn gain(&self, assigned: &[(u8, f64)]) -> f64 {
        let bits = |squares: f64| (squares / SEGMENT as f64 + 1.0).log2() / 2.0;
        let mut sums = [0.0; 3];
        for (moments, (_, residual)) in self.moments.iter().zip(assigned) {
            let (square, of_difference) = moments.squares();
            let all = [square, of_difference, *residual].map(bits);
            sums.iter_mut().zip(all).for_each(|(sum, bits)| *sum += bits);
        }
        let [plain, difference, residual] = sums;
        (plain.min(difference) - residual) / self.moments.len().max(1) as f64
    }

    pub(crate) fn residuals(&self, geometry: &Geometry<'_>, numbers: &[u8], coded: &mut Vec<u8>) {
        coded.clear();
        coded.resize(numbers.len(), 0);
        let Some(filters) = &self.filters else { return };
        let mut codes = self.codes.as_slice();
        for block in geometry.block_ranges() {
            let bytes = 2 * block.start..2 * block.end;
            let (Some(numbers), Some(coded)) = (numbers.get(bytes.clone()), coded.get_mut(bytes)) else { return };
            predict::best().filter(&filters.bank, codes, numbers, coded);
            codes = codes.get(block.len().div_ceil(SEGMENT)..).unwrap_or(&[]);
        }
    }

    /// Returns the size of the fields and codes, in bytes. If the numbers are a sample of
    /// one in `sample_scale`, this is the size for all numbers, divided by `sample_scale`.
    pub(crate) fn other_bytes(&self, sample_scale: f64) -> f64 {
        let Some(filters) = &self.filters else { return 0.0 };
        let segments = self.codes.len() as f64 * sample_scale;
        let filter_count = (segments / MIN_SEGMENTS_PER_FILTER as f64).clamp(1.0, MAX_FILTERS as f64);
        let coefficients = filter_count * (2 * filters.bank.taps) as f64;
        (coefficients + segments * filter_count.log2().ceil() / 8.0) / sample_scale
    }

    /// Appends the codes of a block, if there are filters.
    pub(crate) fn append_codes(&self, geometry: &Geometry<'_>, block: usize, stored: &mut Vec<u8>) {
        let Some(filters) = &self.filters else { return };
        let mut counts = geometry.block_ranges().map(|block| block.len().div_ceil(SEGMENT));
        let before: usize = counts.by_ref().take(block).sum();
        let count = counts.next().unwrap_or(0);
        filters.codes().write(self.codes.get(before..before + count).unwrap_or(&[]), stored);
    }
}

/// Returns the segments of all blocks. Each segment comes with the index of the last restart of
/// prediction.
fn segments(geometry: &Geometry<'_>) -> impl Iterator<Item = (usize, Range<usize>)> {
    let row = SEGMENT * usize::from(RESTART_SEGMENTS);
    geometry.block_ranges().flat_map(move |block| {
        let starts = block.clone().step_by(SEGMENT);
        starts.map(move |start| {
            let restart = start - (start - block.start) % row;
            (restart, start..block.end.min(start + SEGMENT))
        })
    })
}

/// Returns the mean of numbers modulo 2^16, using the shortest distance of each number from the
/// first number.
fn mean(numbers: &[u8]) -> u16 {
    let numbers = || numbers.as_chunks().0.iter().map(|number| u16::from_le_bytes(*number));
    let first = numbers().next().unwrap_or(0);
    let sum: i64 = numbers().map(|number| i64::from(number.wrapping_sub(first).cast_signed())).sum();
    let count = i64::try_from(numbers().len()).unwrap_or(i64::MAX); // fewer than 2^32
    first.wrapping_add(sum.checked_div(count).unwrap_or(0) as u16) // modulo 2^16
}

// ---- fitting

/// The number of pairwise products, including squares, of a number and the `MAX_TAPS` numbers
/// before it.
const MAX_PRODUCTS: usize = (MAX_TAPS + 1) * (MAX_TAPS + 2) / 2;
const ROUNDS: usize = 5;
/// The ridge (Tikhonov) term, as a fraction of the mean square. It keeps coefficients small.
const RIDGE: f64 = 1e-6;
/// Coefficients are stored as multiples of 1/N.
pub(super) const UNIT: f64 = 4096.0;

/// Sums of products of numbers over a segment. The entry at [`product_index`] of `i` and `j` is the
/// sum, over all numbers, of the product of the two numbers that are `i` and `j` positions earlier.
#[derive(Clone, Copy)]
pub(super) struct Moments([f64; MAX_PRODUCTS]);

/// Returns the number of products of a filter of `taps` coefficients; later products are 0.
fn product_count(taps: usize) -> usize {
    (taps + 1) * (taps + 2) / 2 // at most MAX_PRODUCTS
}

/// Returns the index of the product of the two numbers that are `i` and `j` positions before
/// another number. `i` is at most `j`.
fn product_index(i: usize, j: usize) -> usize {
    j * (j + 1) / 2 + i
}

impl Moments {
    /// Returns the sums over a segment, which begins after [`MAX_TAPS`] numbers in `window`.
    pub(super) fn of(window: &[f64], taps: usize) -> Self {
        let mut products = [0.0; MAX_PRODUCTS];
        let (before, segment) = window.split_at(MAX_TAPS.min(window.len()));
        for j in 0..=taps {
            // no overflow: `taps` is at most MAX_TAPS
            let shifted = window.get(MAX_TAPS - j..).unwrap_or(&[]);
            products[product_index(0, j)] = sum_of_products(segment, shifted); // in bounds
        }
        // shifted back by one number, the sum gains a product at the start and loses one at the end
        let back = |numbers: &[f64], i: usize| numbers.get(numbers.len().wrapping_sub(1 + i)).copied().unwrap_or(0.0);
        for j in 0..taps {
            for i in 0..=j {
                let entering = back(before, i) * back(before, j);
                let leaving = back(window, i) * back(window, j);
                products[product_index(i + 1, j + 1)] = products[product_index(i, j)] + entering - leaving;
            }
        }
        Self(products)
    }

    /// Returns the sum of the squares of the numbers, and the sum of the squares of their
    /// differences.
    pub(super) fn squares(&self) -> (f64, f64) {
        // in bounds
        let [square, product, before] =
            [product_index(0, 0), product_index(0, 1), product_index(1, 1)].map(|product_index| self.0[product_index]);
        (square, square - 2.0 * product + before)
    }

    /// Returns the sum of the squared residuals of a filter.
    fn residual(&self, filter: &ErrorForm) -> f64 {
        let ErrorForm { form, count } = filter;
        let (moments, form) = (self.0.get(..*count).unwrap_or(&[]), form.get(..*count).unwrap_or(&[]));
        sum_of_products(moments, form).max(0.0)
    }
}

/// Returns the sum of the products of two sequences. Four partial sums allow vector instructions.
fn sum_of_products(a: &[f64], b: &[f64]) -> f64 {
    let count = a.len().min(b.len());
    let (a, b) = (a.get(..count).unwrap_or(&[]), b.get(..count).unwrap_or(&[]));
    let ((a, rest_a), (b, rest_b)) = (a.as_chunks::<4>(), b.as_chunks::<4>());
    let mut sums = [0.0; 4];
    for (a, b) in a.iter().zip(b) {
        for (sum, (a, b)) in sums.iter_mut().zip(a.iter().zip(b)) {
            *sum += a * b;
        }
    }
    let rest: f64 = rest_a.iter().zip(rest_b).map(|(a, b)| a * b).sum();
    sums.iter().sum::<f64>() + rest
}

pub(super) type Coefficients = [f64; MAX_TAPS];

/// The quadratic form of a filter. The sum of the products of its entries with the moments is the
/// squared residual.
struct ErrorForm {
    form: [f64; MAX_PRODUCTS],
    /// The number of entries in use; the others are 0.
    count: usize,
}

impl ErrorForm {
    fn of(filter: &Coefficients) -> Self {
        let taps = filter.iter().rposition(|coefficient| *coefficient != 0.0).map_or(0, |last| last + 1);
        let error = |i: usize| i.checked_sub(1).map_or(1.0, |tap| -filter.get(tap).copied().unwrap_or(0.0));
        let mut form = [0.0; MAX_PRODUCTS];
        for j in 0..=taps {
            for i in 0..=j {
                let product = error(i) * error(j);
                form[product_index(i, j)] = if i == j { product } else { 2.0 * product }; // in bounds
            }
        }
        Self { form, count: product_count(taps) }
    }
}

/// Fits filters to segments. Coefficients are rounded to the precision with which they are stored.
pub(super) fn fit(segments: &[Moments], taps: usize, filter_count: usize) -> Vec<Coefficients> {
    let mut weights: Vec<f64> = segments.iter().map(|moments| weight(moments.squares().0)).collect();
    let mut codes = by_slope(segments, &weights, filter_count);
    let mut filters = vec![[0.0; MAX_TAPS]; filter_count];
    for _ in 0..ROUNDS {
        let mut sums = vec![[0.0; MAX_PRODUCTS]; filter_count];
        for ((moments, weight), code) in segments.iter().zip(&weights).zip(&codes) {
            if let Some(sums) = sums.get_mut(usize::from(*code)) {
                let sums = sums.iter_mut().take(product_count(taps));
                sums.zip(moments.0).for_each(|(sum, product)| *sum += product * weight);
            }
        }
        for (filter, sums) in filters.iter_mut().zip(&sums) {
            if let Some(solved) = solve(sums, taps) {
                *filter = solved;
            }
        }
        let chosen = assign(segments, &filters);
        codes.clear();
        codes.extend(chosen.iter().map(|(code, _)| *code));
        weights.clear();
        weights.extend(chosen.iter().map(|(_, residual)| weight(*residual)));
    }
    filters
        .iter()
        .map(|filter| filter.map(|x| (x * UNIT).round().clamp(i16::MIN.into(), i16::MAX.into()) / UNIT))
        .collect()
}

/// Returns the weight of a segment, which is about 1/energy of its residual. The cost of a segment
/// grows with log(energy), so equal relative savings count equally in all segments.
fn weight(squares: f64) -> f64 {
    1.0 / (squares + SEGMENT as f64)
}

/// Assigns segments to filters for the first round, in the order of the correlation of their
/// neighboring numbers.
fn by_slope(segments: &[Moments], weights: &[f64], class_count: usize) -> Vec<u8> {
    // in bounds
    let slopes = segments.iter().zip(weights).map(|(moments, weight)| moments.0[product_index(0, 1)] * weight);
    let mut order: Vec<(usize, f64)> = slopes.enumerate().collect();
    order.sort_by(|a, b| a.1.total_cmp(&b.1));
    let mut codes = vec![0; segments.len()];
    for (rank, (segment, _)) in order.into_iter().enumerate() {
        if let Some(code) = codes.get_mut(segment) {
            *code = (rank * class_count.min(MAX_FILTERS) / segments.len()) as u8; // at most 15
        }
    }
    codes
}

/// Returns the best filter for each segment, and the squared residual.
pub(super) fn assign(segments: &[Moments], filters: &[Coefficients]) -> Vec<(u8, f64)> {
    let forms: Vec<ErrorForm> = filters.iter().map(ErrorForm::of).collect();
    let best = |moments: &Moments| {
        let residual = (0..).zip(forms.iter().map(|form| moments.residual(form)));
        residual.min_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or((0, 0.0))
    };
    segments.iter().map(best).collect()
}

/// Returns the filter with the smallest squared residual over the summed segments, by Cholesky
/// decomposition; `None` if the sums do not determine a filter.
fn solve(sums: &[f64; MAX_PRODUCTS], taps: usize) -> Option<Coefficients> {
    // all indices are in bounds: `taps` is at most MAX_TAPS
    let trace: f64 = (1..=taps).map(|i| sums[product_index(i, i)]).sum();
    let ridge = RIDGE * trace / taps.max(1) as f64;
    let mut lower = [[0.0; MAX_TAPS]; MAX_TAPS];
    let mut solved = [0.0; MAX_TAPS];
    for i in 0..taps {
        for j in 0..=i {
            let below: f64 = (0..j).map(|k| lower[i][k] * lower[j][k]).sum();
            let rest = sums[product_index(j + 1, i + 1)] - below;
            lower[i][j] =
                if i == j { Some(rest + ridge).filter(|rest| *rest > 0.0)?.sqrt() } else { rest / lower[j][j] };
        }
        let below: f64 = (0..i).map(|k| lower[i][k] * solved[k]).sum();
        solved[i] = (sums[product_index(0, i + 1)] - below) / lower[i][i];
    }
    for i in (0..taps).rev() {
        let above: f64 = (i + 1..taps).map(|k| lower[k][i] * solved[k]).sum();
        solved[i] = (solved[i] - above) / lower[i][i];
    }
    solved.iter().all(|x| x.is_finite()).then_some(solved)
}
