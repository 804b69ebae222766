//! Other samples instead of damaged ones.

use super::batch_reader::BatchReader;
use super::deliver::batch::BatchColumn;
use super::metrics::Count;
use super::unread::Unread;
use crate::error::{DataError, Result};
use crate::order::{ATTEMPTS, substitute};

impl BatchReader {
    /// Replaces the samples that are damaged, and returns their places in the batch. `scratch` is
    /// used to read them, one at a time.
    pub(super) fn substitute(
        &mut self,
        samples: &mut [u64],
        epoch: u64,
        scratch: &mut [BatchColumn],
    ) -> Result<Vec<usize>> {
        let mut substituted = Vec::new();
        for (place, sample) in samples.iter_mut().enumerate() {
            if !self.is_intact(*sample, epoch, scratch)? {
                *sample = self.find_substitute(*sample, epoch, scratch)?;
                substituted.push(place);
            }
        }
        self.counters.add(Count::Substitutes, substituted.len() as u64); // exact
        Ok(substituted)
    }

    fn find_substitute(&mut self, sample: u64, epoch: u64, scratch: &mut [BatchColumn]) -> Result<u64> {
        for attempt in 0..ATTEMPTS {
            let candidate = substitute(self.schedule.n(), self.schedule.seed(), epoch, sample, attempt);
            if let Some(candidate) = candidate
                && self.is_intact(candidate, epoch, scratch)?
            {
                return Ok(candidate);
            }
        }
        // the error of the sample itself says what is damaged
        let read = self.fill(&[sample], epoch, scratch).map_err(Unread::into_error);
        Err(read.err().unwrap_or_else(|| {
            DataError::Internal(format!("sample {sample} of the view was damaged, and now it is not"))
        }))
    }

    fn is_intact(&mut self, sample: u64, epoch: u64, scratch: &mut [BatchColumn]) -> Result<bool> {
        match self.fill(&[sample], epoch, scratch) {
            Ok(()) => Ok(true),
            Err(unread) if unread.is_damage() => Ok(false),
            Err(unread) => Err(unread.into_error()),
        }
    }
}
