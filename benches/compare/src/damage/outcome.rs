//! Compares the values that a reader returns with the values that were written.

use crate::data::Dataset;
use anyhow::Result;
use half::bf16;

pub struct ReadOutcome<'a> {
    data: &'a Dataset,
    /// The number of samples whose bits are all right.
    pub right: usize,
    /// The number of samples that were returned with wrong values.
    pub wrong: usize,
    /// Whether there was an error, or a sample is missing.
    pub error: bool,
}

impl<'a> ReadOutcome<'a> {
    /// Compares the values that `read` reports with the data.
    pub fn of(data: &'a Dataset, read: impl FnOnce(&mut Self) -> Result<()>) -> Self {
        let mut outcome = Self { data, right: 0, wrong: 0, error: false };
        let result = read(&mut outcome);
        outcome.error |= result.is_err() || outcome.right + outcome.wrong != data.samples();
        outcome
    }

    /// Records samples from index `first` on. Incomplete samples and indices out of range are
    /// errors.
    pub fn samples(&mut self, first: usize, values: &[bf16]) {
        let samples = values.chunks_exact(self.data.elements());
        self.error |= !samples.remainder().is_empty();
        for (i, sample) in (first..).zip(samples) {
            if i >= self.data.samples() {
                self.error = true;
            } else if bytemuck::cast_slice::<_, u16>(sample) == bytemuck::cast_slice::<_, u16>(self.data.sample(i)) {
                self.right += 1;
            } else {
                self.wrong += 1;
            }
        }
    }

    pub fn error(&mut self) {
        self.error = true;
    }

    /// Returns whether all samples are right, without an error.
    pub fn is_all(&self) -> bool {
        self.right == self.data.samples() && !self.error
    }
}
