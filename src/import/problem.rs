//! Reasons why a row of an input cannot be stored.

use crate::error::Advice;

/// The reason why a row of a batch cannot be stored.
#[derive(Clone, Debug)]
pub(super) struct Problem {
    /// Counted from the start of the batch; `None` if it is not about one row.
    pub row: Option<usize>,
    pub message: String,
    /// Ways out for the caller.
    pub advice: Vec<Advice>,
}

impl Problem {
    pub(super) fn at(row: usize, message: impl Into<String>) -> Self {
        Self { row: Some(row), message: message.into(), advice: Vec::new() }
    }

    pub(super) fn advising(mut self, advice: impl IntoIterator<Item = Advice>) -> Self {
        self.advice.extend(advice);
        self
    }
}

impl From<String> for Problem {
    fn from(message: String) -> Self {
        Self { row: None, message, advice: Vec::new() }
    }
}
