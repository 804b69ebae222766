//! The state from which a job continues, and the receipt that proves which samples it took
//! (chapters 6 and 7 of `ORDER.md`).
//!
//! The samples that a job has taken are a prefix of its order, no matter how the ranks divided
//! them. So a [`State`] takes only 96 bytes. It contains the order and one position, but no batch
//! size, no number of ranks and no list of samples. Any number of ranks can continue at this
//! position. They take no sample of the prefix again in this epoch.
//!
//! A [`Receipt`] is a sum over all delivered samples: each sample adds a hash of itself and its
//! epoch. The sum does not depend on the order of the samples or on how ranks divide them. So two
//! jobs that took the same samples have equal receipts.

use super::division::LastBatch;
use super::permutation::{Purpose, key};
use super::{MAX_SAMPLES, Order, WindowSizes};
use crate::error::{DataError, Result};

/// The state of a job: the position at which the next step starts. Ranks that have taken the same
/// number of batches have equal states, except for [`State::receipt`], which proves which samples
/// were taken and does not affect how the job continues.
///
/// A state has no batch size and no number of ranks. If a job changes them, it still continues at
/// this position. With [`LastBatch::Exact`], the epoch then still has each sample exactly once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct State {
    /// The id of the dataset; zero for a mixture.
    pub dataset_id: [u8; 16],
    /// The version of the dataset that was read; 0 if it has none.
    pub dataset_version: u64,
    /// The identity of the view; 0 for all samples.
    pub view_id: u64,
    /// The number of samples of the view.
    pub sample_count: u64,
    /// How samples are shuffled.
    pub order: Order,
    /// What happens to an incomplete last step of an epoch.
    pub last_batch: LastBatch,
    /// The seed of the order.
    pub seed: u64,
    /// The epoch, counted from 0.
    pub epoch: u64,
    /// A position in the epoch, below `n`.
    pub position: u64,
    /// The receipt of the samples before the position. It covers one rank only, unless the program
    /// has added the receipts of the other ranks.
    pub receipt: Receipt,
}

const MAGIC: [u8; 4] = *b"TSLO";
const VERSION: u16 = 2;
/// The number of bytes that the checksum covers.
const CHECKSUMMED_BYTES: usize = State::BYTES - 4;

impl State {
    /// The length of a state in bytes.
    pub const BYTES: usize = 96;

    /// Encodes the state.
    pub fn to_bytes(&self) -> [u8; Self::BYTES] {
        let (order, run, window, streams) = match self.order {
            Order::Sequential => (0, 0, 0, 0),
            Order::Shuffled => (1, 0, 0, 0),
            Order::Windowed(sizes) => (2, sizes.run_samples(), sizes.window_runs(), sizes.streams()),
        };
        let mut bytes = [0; Self::BYTES];
        let mut rest = bytes.as_mut_slice();
        put(&mut rest, MAGIC);
        put(&mut rest, VERSION.to_le_bytes());
        let last_batch = match self.last_batch {
            LastBatch::Drop => 0,
            LastBatch::Pad => 1,
            LastBatch::Exact => 2,
        };
        put(&mut rest, [order, last_batch]);
        put(&mut rest, self.dataset_id);
        let words = [self.dataset_version, self.view_id, self.sample_count, self.seed, self.epoch, self.position];
        words.iter().for_each(|word| put(&mut rest, word.to_le_bytes()));
        put(&mut rest, run.to_le_bytes());
        put(&mut rest, window.to_le_bytes());
        put(&mut rest, self.receipt.0.to_le_bytes());
        put(&mut rest, streams.to_le_bytes());
        let crc = crc32fast::hash(bytes.get(..CHECKSUMMED_BYTES).unwrap_or(&[])); // within the array
        put(&mut bytes.get_mut(CHECKSUMMED_BYTES..).unwrap_or(&mut []), crc.to_le_bytes());
        bytes
    }

    /// Decodes a state. Fails if the bytes break rule O-6.1.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let bytes: &[u8; Self::BYTES] = bytes
            .try_into()
            .map_err(|_| bad(format!("expected a state of {} bytes, found {}", Self::BYTES, bytes.len())))?;
        let mut rest = bytes.as_slice();
        if take(&mut rest) != MAGIC {
            return Err(bad("not a state: the bytes do not start with TSLO".to_owned()));
        }
        let (stated, found) = (bytes.last_chunk(), crc32fast::hash(bytes.get(..CHECKSUMMED_BYTES).unwrap_or(&[])));
        if stated != Some(&found.to_le_bytes()) {
            return Err(bad("the state is damaged: its checksum is wrong".to_owned()));
        }
        let version = u16::from_le_bytes(take(&mut rest));
        if version == 1 {
            let message = "the state has version 1, from before the first release, whose orders had no streams: start \
                           the epoch again";
            return Err(bad(message.to_owned()));
        }
        if version != VERSION {
            return Err(bad(format!("the state has version {version}, but this release reads version {VERSION}")));
        }
        let [order, last_batch] = take(&mut rest);
        let dataset_id = take(&mut rest);
        let mut word = || u64::from_le_bytes(take(&mut rest));
        let [dataset_version, view_id, sample_count, seed, epoch, position] =
            [word(), word(), word(), word(), word(), word()];
        let run = u32::from_le_bytes(take(&mut rest));
        let window = u32::from_le_bytes(take(&mut rest));
        let receipt = Receipt(u64::from_le_bytes(take(&mut rest)));
        let streams = u32::from_le_bytes(take(&mut rest));
        let order = match (order, run, window, streams) {
            (0, 0, 0, 0) => Order::Sequential,
            (1, 0, 0, 0) => Order::Shuffled,
            (2, ..) => {
                let sizes = WindowSizes::new(run, window).and_then(|sizes| sizes.with_streams(streams));
                Order::Windowed(sizes.map_err(|error| bad(format!("the state has an invalid order: {error}")))?)
            }
            _ => {
                return Err(bad(format!(
                    "the state has the invalid order {order} with runs of {run}, windows of {window} and {streams} streams"
                )));
            }
        };
        let last_batch = match last_batch {
            0 => LastBatch::Drop,
            1 => LastBatch::Pad,
            2 => LastBatch::Exact,
            _ => return Err(bad(format!("the state has last_batch {last_batch}, expected 0 to 2"))),
        };
        if position >= sample_count || sample_count > MAX_SAMPLES {
            return Err(bad(format!(
                "the state has position {position} of {sample_count} samples, expected a position below the number of samples, \
                 which is at most 2^63"
            )));
        }
        Ok(Self {
            dataset_id,
            dataset_version,
            view_id,
            sample_count,
            order,
            last_batch,
            seed,
            epoch,
            position,
            receipt,
        })
    }
}

#[cold]
fn bad(message: String) -> DataError {
    DataError::BadState(message)
}

/// Writes the next bytes. `rest` is long enough for all fields of a state.
fn put<const N: usize>(rest: &mut &mut [u8], bytes: [u8; N]) {
    if let Some(to) = rest.split_off_mut(..N) {
        to.copy_from_slice(&bytes); // equal lengths
    }
}

/// Returns the next bytes. `rest` is long enough for all fields of a state.
fn take<const N: usize>(rest: &mut &[u8]) -> [u8; N] {
    rest.split_off(..N).and_then(|bytes| bytes.try_into().ok()).unwrap_or([0; N])
}

/// A sum of hashes over all samples that were delivered. It does not depend on their order or on
/// how ranks divided them. If the receipts of all ranks add up to the same sum in two jobs with the
/// same view, then both jobs took the same samples in the same epochs. The probability of a false
/// match is 2^-64. A receipt does not protect against an attacker who searches for equal sums.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Receipt(pub u64);

impl Receipt {
    /// Adds a sample of the view that was delivered in an epoch. Cost: 10 ns.
    #[inline]
    pub fn add(&mut self, sample: u64, epoch: u64) {
        self.0 = self.0.wrapping_add(key(Purpose::Receipt, [sample, epoch]));
    }

    /// Returns the sum of the receipts of two ranks, or of a job before and after it was resumed.
    pub fn plus(self, other: Self) -> Self {
        Self(self.0.wrapping_add(other.0))
    }
}
