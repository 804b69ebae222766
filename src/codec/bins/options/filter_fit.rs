//! Fits filters to the segments of a part: the covariance method of linear prediction (B. S. Atal
//! and S. L. Hanauer, 1971), and Lloyd's algorithm to share filters among segments.

use crate::kernel::predict::{MOST_FILTERS, MOST_TAPS, SEGMENT};

/// Products of a number and those before it, each with each: `(MOST_TAPS + 1)` times the next
/// number, halved.
const MOST_PRODUCTS: usize = (MOST_TAPS + 1) * (MOST_TAPS + 2) / 2;
const ROUNDS: usize = 5;
/// The part of the mean square that is added to the squares, so that coefficients stay small.
const RIDGE: f64 = 1e-6;
/// Coefficients are stored as multiples of one of this.
pub(super) const UNIT: f64 = 4096.0;

/// Sums of products of numbers of a segment: at [`place`] of `i` and `j`, that of the numbers `i`
/// and `j` before each.
#[derive(Clone, Copy)]
pub(super) struct Moments([f64; MOST_PRODUCTS]);

/// Returns the number of products of a filter of `taps` coefficients; those after them are 0.
fn product_count(taps: usize) -> usize {
    (taps + 1) * (taps + 2) / 2 // at most MOST_PRODUCTS
}

/// Returns the place of the product of numbers `i` and `j` before another. `i` is at most `j`.
fn place(i: usize, j: usize) -> usize {
    j * (j + 1) / 2 + i
}

impl Moments {
    /// Returns the sums over a segment, which begins after [`MOST_TAPS`] numbers in `window`.
    pub(super) fn of(window: &[f64], taps: usize) -> Self {
        let mut products = [0.0; MOST_PRODUCTS];
        let (before, segment) = window.split_at(MOST_TAPS.min(window.len()));
        for j in 0..=taps {
            // no overflow: `taps` is at most that
            let shifted = window.get(MOST_TAPS - j..).unwrap_or(&[]);
            products[place(0, j)] = sum_of_products(segment, shifted); // in bounds, as all places
        }
        // one number earlier, one product enters at the start and one leaves at the end
        let back = |numbers: &[f64], i: usize| numbers.get(numbers.len().wrapping_sub(1 + i)).copied().unwrap_or(0.0);
        for j in 0..taps {
            for i in 0..=j {
                let entering = back(before, i) * back(before, j);
                let leaving = back(window, i) * back(window, j);
                products[place(i + 1, j + 1)] = products[place(i, j)] + entering - leaving;
            }
        }
        Self(products)
    }

    /// Returns the sum of the squares of the numbers, and of their differences.
    pub(super) fn squares(&self) -> (f64, f64) {
        // in bounds
        let [square, product, before] = [place(0, 0), place(0, 1), place(1, 1)].map(|place| self.0[place]);
        (square, square - 2.0 * product + before)
    }

    /// Returns the sum of the squares of what a filter misses.
    fn missed(&self, filter: &ErrorForm) -> f64 {
        let ErrorForm { form, count } = filter;
        let (moments, form) = (self.0.get(..*count).unwrap_or(&[]), form.get(..*count).unwrap_or(&[]));
        sum_of_products(moments, form).max(0.0)
    }
}

/// Returns the sum of the products of the numbers of both, in four sums, as vectors have them.
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

pub(super) type Coefficients = [f64; MOST_TAPS];

/// The quadratic form of a filter: what it misses is the sum of products with moments.
struct ErrorForm {
    form: [f64; MOST_PRODUCTS],
    /// How many there are of them; the others are 0.
    count: usize,
}

impl ErrorForm {
    fn of(filter: &Coefficients) -> Self {
        let taps = filter.iter().rposition(|coefficient| *coefficient != 0.0).map_or(0, |last| last + 1);
        let error = |i: usize| i.checked_sub(1).map_or(1.0, |tap| -filter.get(tap).copied().unwrap_or(0.0));
        let mut form = [0.0; MOST_PRODUCTS];
        for j in 0..=taps {
            for i in 0..=j {
                let product = error(i) * error(j);
                form[place(i, j)] = if i == j { product } else { 2.0 * product }; // in bounds
            }
        }
        Self { form, count: product_count(taps) }
    }
}

/// Fits filters to segments. Their coefficients are those that can be stored.
pub(super) fn fit(segments: &[Moments], taps: usize, filter_count: usize) -> Vec<Coefficients> {
    let mut weights: Vec<f64> = segments.iter().map(|moments| weight(moments.squares().0)).collect();
    let mut codes = by_slope(segments, &weights, filter_count);
    let mut filters = vec![[0.0; MOST_TAPS]; filter_count];
    for _ in 0..ROUNDS {
        let mut sums = vec![[0.0; MOST_PRODUCTS]; filter_count];
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
        weights.extend(chosen.iter().map(|(_, missed)| weight(*missed)));
    }
    filters
        .iter()
        .map(|filter| filter.map(|x| (x * UNIT).round().clamp(i16::MIN.into(), i16::MAX.into()) / UNIT))
        .collect()
}

/// Returns the weight of a segment: bits follow the logarithm of what is missed, so that a part of
/// it counts the same in all segments.
fn weight(squares: f64) -> f64 {
    1.0 / (squares + SEGMENT as f64)
}

/// Divides segments into as many classes by how alike their neighbours are.
fn by_slope(segments: &[Moments], weights: &[f64], class_count: usize) -> Vec<u8> {
    // in bounds
    let slopes = segments.iter().zip(weights).map(|(moments, weight)| moments.0[place(0, 1)] * weight);
    let mut order: Vec<(usize, f64)> = slopes.enumerate().collect();
    order.sort_by(|a, b| a.1.total_cmp(&b.1));
    let mut codes = vec![0; segments.len()];
    for (rank, (segment, _)) in order.into_iter().enumerate() {
        if let Some(code) = codes.get_mut(segment) {
            *code = (rank * class_count.min(MOST_FILTERS) / segments.len()) as u8; // at most 15
        }
    }
    codes
}

/// Returns the filter that misses the least of each segment, and how much that is.
pub(super) fn assign(segments: &[Moments], filters: &[Coefficients]) -> Vec<(u8, f64)> {
    let forms: Vec<ErrorForm> = filters.iter().map(ErrorForm::of).collect();
    let best = |moments: &Moments| {
        let missed = (0..).zip(forms.iter().map(|form| moments.missed(form)));
        missed.min_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or((0, 0.0))
    };
    segments.iter().map(best).collect()
}

/// Returns the filter that misses the least of what was summed, by Cholesky's decomposition; `None`
/// if the sums determine none.
fn solve(sums: &[f64; MOST_PRODUCTS], taps: usize) -> Option<Coefficients> {
    // all places are in bounds: `taps` is at most MOST_TAPS
    let trace: f64 = (1..=taps).map(|i| sums[place(i, i)]).sum();
    let ridge = RIDGE * trace / taps.max(1) as f64;
    let mut lower = [[0.0; MOST_TAPS]; MOST_TAPS];
    let mut solved = [0.0; MOST_TAPS];
    for i in 0..taps {
        for j in 0..=i {
            let below: f64 = (0..j).map(|k| lower[i][k] * lower[j][k]).sum();
            let rest = sums[place(j + 1, i + 1)] - below;
            lower[i][j] =
                if i == j { Some(rest + ridge).filter(|rest| *rest > 0.0)?.sqrt() } else { rest / lower[j][j] };
        }
        let below: f64 = (0..i).map(|k| lower[i][k] * solved[k]).sum();
        solved[i] = (sums[place(0, i + 1)] - below) / lower[i][i];
    }
    for i in (0..taps).rev() {
        let above: f64 = (i + 1..taps).map(|k| lower[k][i] * solved[k]).sum();
        solved[i] = (solved[i] - above) / lower[i][i];
    }
    solved.iter().all(|x| x.is_finite()).then_some(solved)
}
