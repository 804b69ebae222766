//! A view of several datasets in fixed proportions.
//!
//! A mixture is divided into blocks of 4,096 samples; the last block can be shorter. All full
//! blocks have the same number of samples of a component: its share of the block, rounded by the
//! largest-remainder method. So a lookup needs no list. The offset in the block determines the
//! component, and a multiplication computes how many samples of this component are in earlier
//! blocks.
//!
//! Across blocks and epochs, the samples of a component form one long sequence, in which each pass
//! over the component has its own shuffle. So a small component is repeated, and all samples of a
//! large component are used before any of them is repeated.

use super::selection::{ViewKind, identity};
use crate::error::{DataError, Result};
use crate::order::{EpochOrder, MAX_SAMPLES, Order, Purpose, WindowSizes, key};
use std::ops::Range;

/// The number of samples in a block. Components have the same shares in each block.
const BLOCK: u64 = 4096;

/// A component of a [`Mixture`]: a view of a dataset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Component {
    /// The id of the dataset; zero if it has none.
    pub dataset_id: [u8; 16],
    /// The identity of the view; 0 for all samples.
    pub view_id: u64,
    /// The number of samples of the view.
    pub sample_count: u64,
    /// The weight. Components contribute samples in proportion to their weights.
    pub weight: u32,
}

/// A view with samples of several datasets in fixed proportions. Each block of 4,096 samples is
/// divided among the components in proportion to their weights, up to rounding.
///
/// If a component has fewer samples than its share, it is repeated. If it has more, each epoch
/// continues where the previous epoch stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mixture {
    identity: u64,
    n: u64,
    run: WindowSizes,
    shares: Vec<Share>,
    components: Vec<Component>,
}

/// The share of a component.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Share {
    samples: u64,
    seed: u64,
    /// The range of its samples in a full block, and in the last block, which can be shorter.
    whole: Range<u64>,
    last: Range<u64>,
    /// The number of its samples in the whole mixture.
    sum: u64,
}

impl Mixture {
    /// Returns a mixture of `n` samples. Each component is shuffled in runs of `run` neighboring
    /// samples. If `run` is 1, its samples are shuffled individually.
    ///
    /// Fails if `run` is 0, if there are no components, if a component has no samples or no weight,
    /// or if its share is so small that the mixture has none of its samples.
    pub fn new(components: &[Component], n: u64, seed: u64, run: u32) -> Result<Self> {
        let sizes = WindowSizes::new(run, 1)?;
        if n > MAX_SAMPLES {
            return Err(bad("the mixture has more than 2^63 samples"));
        }
        if components.iter().any(|component| component.sample_count == 0) {
            return Err(bad("a component of the mixture has no samples"));
        }
        if components.iter().any(|component| component.weight == 0) {
            return Err(bad("a component of the mixture has a weight of 0"));
        }
        let weights: Vec<u32> = components.iter().map(|component| component.weight).collect();
        let ranges = ranges(BLOCK, &weights).zip(ranges(n % BLOCK, &weights));
        let (mut shares, words) = (Vec::new(), components.iter().flat_map(identity_words));
        for ((number, component), (whole, last)) in (0..).zip(components).zip(ranges) {
            let length = |range: &Range<u64>| range.end - range.start; // ascending
            let sum = n / BLOCK * length(&whole) + length(&last); // at most n
            if sum == 0 {
                return Err(bad("the weight of a component is too small: the mixture would have none of its samples"));
            }
            let seed = key(Purpose::Component, [seed, number]);
            shares.push(Share { samples: component.sample_count, seed, whole, last, sum });
        }
        if shares.is_empty() {
            return Err(bad("the mixture has no components"));
        }
        let identity = identity(ViewKind::Mixture, [seed, run.into(), n].into_iter().chain(words));
        Ok(Self { identity, n, run: sizes, shares, components: components.to_vec() })
    }

    /// Returns the number of samples.
    pub fn sample_count(&self) -> u64 {
        self.n
    }

    /// Returns the components that the mixture was made for.
    pub fn components(&self) -> &[Component] {
        &self.components
    }

    /// Returns the identity of the view, for a [`State`](crate::State).
    pub fn identity(&self) -> u64 {
        self.identity
    }

    /// Returns the number of the component that has sample `v` of the mixture in an epoch, and the
    /// index of the sample in that component. Returns `None` if `v` is not below
    /// [`Mixture::sample_count`]. Cost: about 230 ns.
    pub fn sample(&self, v: u64, epoch: u64) -> Option<(usize, u64)> {
        if v >= self.n {
            return None;
        }
        let (block, at) = (v / BLOCK, v % BLOCK);
        let is_last = block == self.n / BLOCK;
        let range = |share: &Share| if is_last { share.last.clone() } else { share.whole.clone() };
        let number = self.shares.partition_point(|share| range(share).end <= at);
        let share = self.shares.get(number)?;
        // at most n
        let in_epoch = block * (share.whole.end - share.whole.start) + at.checked_sub(range(share).start)?;
        // no overflow: below 2^128, because each factor has at most 64 bits
        let x = u128::from(epoch) * u128::from(share.sum) + u128::from(in_epoch);
        let samples = u128::from(share.samples); // at least 1
        // the epoch wraps around modulo 2^64; the position is below the number of samples
        let (epoch, position) = ((x / samples) as u64, (x % samples) as u64);
        let order = EpochOrder::new(Order::Windowed(self.run), share.samples, share.seed, epoch);
        Some((number, order.sample_at(position)?))
    }
}

/// Returns the range of each component in a block of `samples` samples. The ranges are contiguous.
/// Their lengths are rounded down, and the components with the largest remainders get one more
/// sample each.
fn ranges(samples: u64, weights: &[u32]) -> impl Iterator<Item = Range<u64>> {
    // below 2^96, because there are fewer than 2^64 weights; at least 1, because it is a divisor
    let all = weights.iter().map(|&weight| u128::from(weight)).sum::<u128>().max(1);
    let product = |&weight: &u32| u128::from(samples) * u128::from(weight); // below 2^96
    // at most `samples`
    let mut counts: Vec<u64> = weights.iter().map(|weight| u64::try_from(product(weight) / all).unwrap_or(0)).collect();
    let mut by_remainder: Vec<(u128, &mut u64)> =
        weights.iter().map(|weight| product(weight) % all).zip(&mut counts).collect();
    // fewer than there are weights
    let missing = samples.saturating_sub(by_remainder.iter().map(|(_, count)| **count).sum());
    by_remainder.sort_by_key(|(remainder, _)| std::cmp::Reverse(*remainder));
    let rounded_up = by_remainder.into_iter().take(usize::try_from(missing).unwrap_or(0));
    rounded_up.for_each(|(_, count)| *count += 1);
    counts.into_iter().scan(0, |start, count| {
        let range = *start..*start + count; // at most `samples`
        *start = range.end;
        Some(range)
    })
}

fn identity_words(component: &Component) -> [u64; 5] {
    let id = u128::from_le_bytes(component.dataset_id);
    // the low and the high half
    [id as u64, (id >> 64) as u64, component.view_id, component.sample_count, component.weight.into()]
}

fn bad(message: &str) -> DataError {
    DataError::BadArgument(message.to_owned())
}
