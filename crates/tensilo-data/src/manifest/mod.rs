//! The manifest: JSON files that list the files of a dataset, and the rules for their content
//! (`MANIFEST.md`).
//!
//! A [`version`] describes the complete dataset: its columns, its layouts and all of its files. It
//! lists most files in [`page`]s, which are named by their digest and shared between versions, so a
//! new version writes only what changed. Versions and pages list files in [`group`]s, and each
//! group has a range of consecutive samples. The JSON is readable without this crate, and each JSON
//! file ends with its own digest ([`sealed`]), so a truncated or damaged file is never mistaken for
//! a valid one.
//!
//! This module does no I/O: it turns bytes into structures and back. `dataset` reads and writes the
//! files. If the content of a file breaks a rule, parsing it fails with a [`RuleViolation`], which
//! names the rule.

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

/// A broken rule, and what breaks it.
#[derive(Debug)]
pub(crate) struct RuleViolation {
    pub rule: &'static str,
    pub message: String,
}

impl RuleViolation {
    pub(crate) fn new(rule: &'static str, message: impl Into<String>) -> Self {
        Self { rule, message: message.into() }
    }

    /// Returns the violation as an error of the file that breaks the rule.
    pub(crate) fn of(self, path: &Path) -> DataError {
        DataError::Corrupt { path: path.to_path_buf(), rule: self.rule, message: self.message }
    }
}

/// Fails with this rule and message unless the condition holds.
pub(crate) fn ensure(
    condition: bool,
    rule: &'static str,
    message: impl FnOnce() -> String,
) -> Result<(), RuleViolation> {
    if condition { Ok(()) } else { Err(RuleViolation::new(rule, message())) }
}
