//! The facts of a file that a manifest lists, found in the file.

use crate::error::{DataError, Result};
use crate::io::{Opener, Opening};
use crate::manifest::{Hex, ListedFile};
use std::path::Path;
use tensilo::facts::FileId;
use tensilo::{OpenOptions, Schema};

/// The facts of a file.
pub(super) struct FileFacts {
    pub samples: u64,
    pub raw_bytes: u64,
    pub schema: Schema,
    /// Its layout is not known yet, and 0.
    pub listed: ListedFile,
}

impl FileFacts {
    /// Opens a file, whose path in the dataset is `name`. Fails if the file has no samples: a
    /// manifest lists no such file.
    pub(super) fn of_samples(opener: &Opener, path: &Path, name: &str) -> Result<Self> {
        let (facts, _) = Self::with_id(opener, path, name, None)?;
        if facts.samples == 0 {
            let path = tensilo::error::display_path(path);
            return Err(DataError::BadArgument(format!("{path}: the file has no samples; leave it out")));
        }
        Ok(facts)
    }

    /// Opens a file, whose path in the dataset is `name`, unless that was begun. Returns the id of
    /// the file, too.
    pub(super) fn with_id(opener: &Opener, path: &Path, name: &str, begun: Option<Opening>) -> Result<(Self, FileId)> {
        let reader = opener.open_begun(path, OpenOptions::new(), begun)?;
        let listed = ListedFile {
            layout: 0,
            path: name.into(),
            bytes: reader.file_bytes().saturating_sub(reader.tail_bytes()),
            footer: reader.footer_offset(),
            content_id: Hex(reader.content_id().0),
        };
        let raw_bytes = reader.columns().map(|column| column.facts().raw_bytes).fold(0, u64::saturating_add);
        let samples = reader.sample_count();
        Ok((Self { samples, raw_bytes, schema: reader.schema().clone(), listed }, reader.file_id()))
    }
}
