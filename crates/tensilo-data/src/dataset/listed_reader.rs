//! Opening a file that a manifest lists.

use crate::error::Result;
use crate::io::{Opener, Opening};
use crate::manifest::{Broken, Hex, IdentifiedColumn, Layout, ListedFile, need};
use std::path::Path;
use tensilo::{ColumnSchema, OpenOptions, Reader};

/// The facts that a manifest states of a file.
pub(super) struct Listing<'a> {
    pub file: &'a ListedFile,
    pub samples: u64,
    pub layout: &'a Layout,
    pub columns: &'a [IdentifiedColumn],
}

/// Opens a file, unless that was begun, and checks M-4.3, M-5.2 and M-7.1.
pub(super) fn open(opener: &Opener, path: &Path, listing: &Listing<'_>, begun: Option<Opening>) -> Result<Reader> {
    let options = OpenOptions::new().first_bytes(listing.file.bytes);
    let reader = opener.open_begun(path, options, begun).map_err(|error| error.with_path(path))?;
    check(&reader, listing).map_err(|broken| broken.of(path))?;
    Ok(reader.with_path(path))
}

fn check(reader: &Reader, listing: &Listing<'_>) -> std::result::Result<(), Broken> {
    let Listing { file, samples, layout, columns } = *listing;
    let found = Hex(reader.content_id().0);
    need(found == file.content_id, "M-7.1", || {
        let due = file.content_id;
        format!("the file was replaced or changed: its content id is {found}, and the manifest has {due}")
    })?;
    need(reader.file_bytes() == file.bytes && reader.tail_bytes() == 0, "M-5.2", || {
        let bytes = reader.file_bytes().saturating_sub(reader.tail_bytes());
        format!("the commit ends after {bytes} bytes, and the manifest says {}", file.bytes)
    })?;
    need(reader.footer_offset() == file.footer, "M-5.2", || {
        format!("the footer is at offset {}, and the manifest says {}", reader.footer_offset(), file.footer)
    })?;
    need(reader.sample_count() == samples, "M-5.2", || {
        format!("the file has {} samples, and the manifest says {samples}", reader.sample_count())
    })?;
    for (name, id) in layout {
        let stored = reader.schema().columns.iter().find(|column| column.name == *name);
        let stored = stored.ok_or_else(|| Broken::new("M-4.3", format!("the file has no column {name:?}")))?;
        let due = columns.iter().find(|column| column.id == *id); // else it was dropped
        due.map_or(Ok(()), |due| check_column(stored, &due.schema))?;
    }
    Ok(())
}

/// Checks that samples of `stored` are samples of `due`.
pub(super) fn check_column(stored: &ColumnSchema, due: &ColumnSchema) -> std::result::Result<(), Broken> {
    let of = |column: &ColumnSchema| (column.dtype, column.shape.clone(), column.levels.len(), column.cast);
    need(of(stored) == of(due), "M-4.3", || {
        let (name, found, due) = (&stored.name, type_of(stored), type_of(due));
        format!("column {name:?} is {found}, and the dataset has {due}")
    })?;
    let nulls = |column: &ColumnSchema| {
        let levels: Vec<bool> = column.levels.iter().map(|level| level.nullable).collect();
        std::iter::once(column.nullable).chain(levels)
    };
    need(nulls(stored).zip(nulls(due)).all(|(has, may)| !has || may), "M-4.3", || {
        format!("column {:?} may have nulls, and that of the dataset may not", stored.name)
    })
}

/// Describes the type, shape and cast of a column.
pub(super) fn type_of(column: &ColumnSchema) -> String {
    let cast = column.cast.map(|cast| format!(", cast from {}", cast.source)).unwrap_or_default();
    format!("{} {}{cast}", column.type_name(), column.shape)
}
