//! The values that a reader has returned, compared with those that were written.

use crate::data::Dataset;
use anyhow::Result;
use half::bf16;

pub struct ReadOutcome<'a> {
    data: &'a Dataset,
    /// Samples handed out with their values, to the bit.
    pub right: usize,
    /// Samples handed out with other values.
    pub wrong: usize,
    /// Whether there was an error, or a sample is missing.
    pub error: bool,
}

impl<'a> ReadOutcome<'a> {
    /// Compares the values that `read` shows with the data.
    pub fn of(data: &'a Dataset, read: impl FnOnce(&mut Self) -> Result<()>) -> Self {
        let mut outcome = Self { data, right: 0, wrong: 0, error: false };
        let result = read(&mut outcome);
        outcome.error |= result.is_err() || outcome.right + outcome.wrong != data.samples();
        outcome
    }

    /// Records whole samples from number `first`. Counts incomplete samples and unknown numbers as
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

    /// Everything right, and no error.
    pub fn is_all(&self) -> bool {
        self.right == self.data.samples() && !self.error
    }
}
