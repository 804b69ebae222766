//! A data file and its entry in the manifest.
//!
//! A writer collects the facts of a new file ([`FileFacts`]). A reader opens a listed file, and
//! checks that it is the same commit of the same file ([`open`]), with the columns of the dataset
//! ([`check_column`]). So a file that was replaced or changed causes an error, not wrong samples.

use crate::error::{DataError, Result};
use crate::io::{Opener, PendingReader};
use crate::manifest::{DatasetColumn, FileEntry, Hex, Layout, RuleViolation, ensure};
use std::path::Path;
use tensilo::facts::FileId;
use tensilo::{ColumnSchema, OpenOptions, Reader, Schema};

/// The facts about a file that a manifest needs.
pub(super) struct FileFacts {
    pub samples: u64,
    pub schema: Schema,
    /// The entry for the manifest. Its layout is not known yet and is set to 0.
    pub listed: FileEntry,
}

impl FileFacts {
    /// Opens a file whose path in the dataset is `name`. Fails if the file has no samples, because
    /// a manifest cannot list it.
    pub(super) fn of_samples(opener: &Opener, path: &Path, name: &str) -> Result<Self> {
        let (facts, _) = Self::with_id(opener, path, name, None)?;
        if facts.samples == 0 {
            let path = tensilo::error::display_path(path);
            return Err(DataError::BadArgument(format!("{path}: the file has no samples; leave it out")));
        }
        Ok(facts)
    }

    /// Opens a file whose path in the dataset is `name`, or waits for a pending open. Also returns
    /// the id of the file.
    pub(super) fn with_id(
        opener: &Opener,
        path: &Path,
        name: &str,
        pending: Option<PendingReader>,
    ) -> Result<(Self, FileId)> {
        let reader = opener.open_pending(path, OpenOptions::new(), pending)?;
        let listed = FileEntry {
            layout: 0,
            path: name.into(),
            bytes: reader.file_bytes().saturating_sub(reader.tail_bytes()),
            footer: reader.footer_offset(),
            content_id: Hex(reader.content_id().0),
        };
        let samples = reader.sample_count();
        Ok((Self { samples, schema: reader.schema().clone(), listed }, reader.file_id()))
    }
}

/// What a manifest states about a file.
pub(super) struct Listing<'a> {
    pub file: &'a FileEntry,
    pub samples: u64,
    pub layout: &'a Layout,
    pub columns: &'a [DatasetColumn],
}

/// Opens a file, or waits for a pending open, and checks M-4.3, M-5.2 and M-7.1.
pub(super) fn open(
    opener: &Opener,
    path: &Path,
    listing: &Listing<'_>,
    pending: Option<PendingReader>,
) -> Result<Reader> {
    let options = OpenOptions::new().commit_within(listing.file.bytes);
    let reader = opener.open_pending(path, options, pending).map_err(|error| error.with_path(path))?;
    check(&reader, listing).map_err(|violation| violation.of(path))?;
    Ok(reader.with_path(path))
}

fn check(reader: &Reader, listing: &Listing<'_>) -> std::result::Result<(), RuleViolation> {
    let Listing { file, samples, layout, columns } = *listing;
    let found = Hex(reader.content_id().0);
    ensure(found == file.content_id, "M-7.1", || {
        let expected = file.content_id;
        format!("the file was replaced or changed: its content id is {found}, but the manifest states {expected}")
    })?;
    ensure(reader.file_bytes() == file.bytes && reader.tail_bytes() == 0, "M-5.2", || {
        let bytes = reader.file_bytes().saturating_sub(reader.tail_bytes());
        format!("the commit ends after {bytes} bytes, but the manifest states {}", file.bytes)
    })?;
    ensure(reader.footer_offset() == file.footer, "M-5.2", || {
        format!("the footer is at offset {}, but the manifest states {}", reader.footer_offset(), file.footer)
    })?;
    ensure(reader.sample_count() == samples, "M-5.2", || {
        format!("the file has {} samples, but the manifest states {samples}", reader.sample_count())
    })?;
    for (name, id) in layout {
        let stored = reader.schema().columns.iter().find(|column| column.name == *name);
        let stored = stored.ok_or_else(|| RuleViolation::new("M-4.3", format!("the file has no column {name:?}")))?;
        let expected = columns.iter().find(|column| column.id == *id); // `None` if the column was dropped
        expected.map_or(Ok(()), |expected| check_column(stored, &expected.schema))?;
    }
    Ok(())
}

/// Checks that samples of the column `stored` are valid samples of `expected` (M-4.3).
pub(super) fn check_column(stored: &ColumnSchema, expected: &ColumnSchema) -> std::result::Result<(), RuleViolation> {
    let of = |column: &ColumnSchema| (column.dtype, column.shape.clone(), column.levels.len(), column.cast);
    ensure(of(stored) == of(expected), "M-4.3", || {
        let (name, found, expected) = (&stored.name, type_of(stored), type_of(expected));
        format!("column {name:?} is {found}, but it is {expected} in the dataset")
    })?;
    let nulls = |column: &ColumnSchema| {
        let levels: Vec<bool> = column.levels.iter().map(|level| level.nullable).collect();
        std::iter::once(column.nullable).chain(levels)
    };
    ensure(nulls(stored).zip(nulls(expected)).all(|(has, may)| !has || may), "M-4.3", || {
        format!("column {:?} can have nulls where the column of the dataset cannot", stored.name)
    })
}

/// Describes the type, shape and cast of a column.
fn type_of(column: &ColumnSchema) -> String {
    let cast = column.cast.map(|cast| format!(", cast from {}", cast.source)).unwrap_or_default();
    format!("{} {}{cast}", column.type_name(), column.shape)
}
