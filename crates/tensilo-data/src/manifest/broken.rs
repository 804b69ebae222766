//! The rule of `MANIFEST.md` that a text breaks.

use crate::error::DataError;
use std::path::Path;

/// A rule that is broken, and how.
#[derive(Debug)]
pub(crate) struct Broken {
    pub rule: &'static str,
    pub message: String,
}

impl Broken {
    pub(crate) fn new(rule: &'static str, message: impl Into<String>) -> Self {
        Self { rule, message: message.into() }
    }

    /// Returns the error of the file that breaks the rule.
    pub(crate) fn of(self, path: &Path) -> DataError {
        DataError::Corrupt { path: path.to_path_buf(), rule: self.rule, message: self.message }
    }
}

/// Requires a condition of a rule.
pub(crate) fn need(condition: bool, rule: &'static str, message: impl FnOnce() -> String) -> Result<(), Broken> {
    if condition { Ok(()) } else { Err(Broken::new(rule, message())) }
}
