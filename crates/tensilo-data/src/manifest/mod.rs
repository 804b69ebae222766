//! `MANIFEST.md`: the texts that list the files of a dataset.
//!
//! A [`version`] lists columns, layouts and files. Most files are in a [`page`], which several
//! versions share; both have files in a [`group`]. Each text is JSON that ends with its own digest
//! ([`sealed`]). Here bytes become structures and back; `dataset` reads and writes the files.
//!
//! A text that breaks a rule is [`RuleViolation`]: the error names the rule.

mod column;
mod group;
mod json;
mod page;
mod sealed;
mod version;

pub(crate) use column::{DatasetColumn, Layout};
pub(crate) use group::{FileEntry, Group, check_path, join};
pub(crate) use json::Hex;
pub(crate) use page::{MAX_BYTES as MAX_PAGE_BYTES, PageEntry, to_bytes as page_to_bytes};
pub(crate) use version::{MAX_BYTES as MAX_VERSION_BYTES, Version, content_ids, dataset_id, number_of, path_of};

use crate::error::DataError;
use std::path::Path;

/// A rule that is broken, and how.
#[derive(Debug)]
pub(crate) struct RuleViolation {
    pub rule: &'static str,
    pub message: String,
}

impl RuleViolation {
    pub(crate) fn new(rule: &'static str, message: impl Into<String>) -> Self {
        Self { rule, message: message.into() }
    }

    /// Returns the error of the file that breaks the rule.
    pub(crate) fn of(self, path: &Path) -> DataError {
        DataError::Corrupt { path: path.to_path_buf(), rule: self.rule, message: self.message }
    }
}

/// Requires a condition of a rule.
pub(crate) fn ensure(
    condition: bool,
    rule: &'static str,
    message: impl FnOnce() -> String,
) -> Result<(), RuleViolation> {
    if condition { Ok(()) } else { Err(RuleViolation::new(rule, message())) }
}
