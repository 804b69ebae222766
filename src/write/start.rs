//! Prepares the state from which a writer starts: for a new file, or after the last commit of an
//! existing file (chapter 7.4 of the specification).
//!
//! The next footer repeats facts of the last one, so these facts are checked before an append.
//! Otherwise, the append would copy false facts and give them a new, valid checksum.
//!
//! An append removes the bytes after the last commit, so it first checks that nothing is lost with
//! them. Usually, a killed writer left them. But they can also be a whole commit whose trailer or
//! footer is damaged. If they contain an intact region, the two cases cannot be distinguished, and
//! the append fails unless the caller has agreed to discard the bytes.

use super::options::WriterOptions;
use super::region_writer::RegionWriter;
use super::sink::{AppendSink, Sink};
use super::storage::Storage;
use crate::codec::ZstdEncoderDictionary;
use crate::error::Advice;
use crate::format::column_record::ColumnRecord;
use crate::format::file_header::Header;
use crate::format::footer::{Footer, TableEntry};
use crate::format::region::{FileId, HEADER_LEN, RegionHeader};
use crate::format::{ColumnSchema, ContentId, Flags, Schema};
use crate::open::{Commit, FileHeader, HeaderScan, ReadSizes, Source, TableSlot, open_header, open_last_commit};
use crate::{Error, ErrorKind, Result};
use std::path::Path;
use std::sync::Arc;

/// The facts that the next footer and trailer record. The default describes a new file.
#[derive(Default)]
pub(super) struct CommitState {
    pub flags: Flags,
    pub tables: Vec<TableEntry>,
    /// The number of samples pushed so far.
    pub sample_count: u64,
    /// The number of commits so far.
    pub commits: u32,
    /// The content id of the last commit.
    pub content_id: ContentId,
    /// The offset of the last trailer; 0 before the first commit.
    pub last_trailer: u64,
}

/// What a writer starts from: the schema of a new file, or the last commit of an existing one.
pub(super) struct InitialState {
    pub schema: Schema,
    pub schema_block: Vec<u8>,
    pub columns: Vec<ColumnRecord>,
    /// The dictionary in the last table of each column, if it has one.
    pub zstd_dictionaries: Vec<Option<Arc<ZstdEncoderDictionary>>>,
    pub state: CommitState,
}

/// Opens a file on any storage to append to it. `wrap` converts the [`AppendSink`] to the sink of
/// the writer.
pub(super) fn open_to_append<S: Storage, K: Sink>(
    storage: S,
    path: &Path,
    options: &WriterOptions,
    wrap: impl FnOnce(AppendSink<S>) -> K,
) -> Result<(RegionWriter<K>, InitialState)> {
    let file = storage.open(path).map_err(|error| Error::io("opening the file for appending", error))?;
    let file_header = open_header(&file)?;
    let commit = open_last_commit(&file, &file_header)?;
    file_header.fields.flags.check_writable()?;
    commit.footer.flags.check_writable()?;
    commit.check_encodings(&file_header.schema)?;
    file_header.schema.columns.iter().try_for_each(ColumnSchema::check_known)?;
    check_facts(&commit, &file_header.schema)?;
    let end = commit.trailer_offset.saturating_add(HEADER_LEN);
    if !options.discard_tail {
        check_tail(&file, file_header.fields.file_id, end)?;
    }
    let zstd_dictionaries = last_zstd_dictionaries(&file, &file_header, &commit.footer.tables, options)?;
    let sink = AppendSink::new(storage, path, file, end);
    let Header { file_id, alignment, .. } = file_header.fields;
    let output = RegionWriter::after(wrap(sink), file_id, alignment.into(), commit.trailer_crc, end);
    Ok((output, continuation(file_header, commit, zstd_dictionaries)))
}

/// Returns the state after the last commit of a file.
fn continuation(
    file_header: FileHeader,
    commit: Commit,
    zstd_dictionaries: Vec<Option<Arc<ZstdEncoderDictionary>>>,
) -> InitialState {
    let Footer { content_id, commit: number, flags, sample_count, tables, columns } = commit.footer;
    InitialState {
        schema: file_header.schema,
        schema_block: file_header.schema_block,
        columns,
        zstd_dictionaries,
        state: CommitState {
            flags: flags.union(file_header.fields.flags),
            tables,
            sample_count,
            commits: number.saturating_add(1), // below the limit
            content_id,
            last_trailer: commit.trailer_offset,
        },
    }
}

/// Returns the dictionary in the last table of each column of text or bytes. Skips damaged tables.
fn last_zstd_dictionaries(
    file: &impl Source,
    file_header: &FileHeader,
    tables: &[TableEntry],
    options: &WriterOptions,
) -> Result<Vec<Option<Arc<ZstdEncoderDictionary>>>> {
    let mut zstd_dictionaries = vec![None; file_header.schema.columns.len()];
    let mut left = MAX_TABLE_BYTES;
    for (i, entry) in tables.iter().enumerate() {
        let is_last = tables.get(i + 1).is_none_or(|next| next.column != entry.column);
        let column = usize::try_from(entry.column).ok();
        let is_used = column.and_then(|i| file_header.schema.columns.get(i)).is_some_and(|column| {
            column.dtype.is_string() && options.of_column(&column.name).profile.has_zstd_dictionaries()
        });
        let Some(rest) = left.checked_sub(entry.body_bytes).filter(|_| is_last && is_used) else { continue };
        left = rest;
        let loaded = TableSlot::new(*entry).zstd_dictionary(file, file_header.fields.file_id);
        let zstd_dictionary =
            match loaded.and_then(|zstd_dictionary| ZstdEncoderDictionary::new(entry.table, zstd_dictionary)) {
                Err(error) if error.kind() != ErrorKind::Corrupt => return Err(error),
                zstd_dictionary => zstd_dictionary.ok().map(Arc::new),
            };
        if let Some(slot) = column.and_then(|column| zstd_dictionaries.get_mut(column)) {
            *slot = zstd_dictionary;
        }
    }
    Ok(zstd_dictionaries)
}

/// The maximum total size, in bytes, of the existing tables that a writer continues to use.
const MAX_TABLE_BYTES: u32 = 64 << 20;

/// Checks for the facts that the next footer repeats, as far as the footer and the schema
/// allow.
fn check_facts(commit: &Commit, schema: &Schema) -> Result<()> {
    let mut expected = (0, 0);
    for TableEntry { column, table, .. } in &commit.footer.tables {
        expected = if *column == expected.0 { expected } else { (*column, 0) };
        if *table != expected.1 {
            let message = "the footer is inconsistent (a table is missing), so nothing was appended; convert the file to a new one";
            return Err(Error::corrupt("R-4.11", message).with_offset(commit.trailer.footer_offset));
        }
        expected.1 += 1; // at most limits::TABLES
    }
    let samples = commit.footer.sample_count;
    let commits = usize::try_from(commit.footer.commit).unwrap_or(usize::MAX).saturating_add(1);
    for (record, column) in commit.footer.columns.iter().zip(&schema.columns) {
        let ColumnRecord { null_count, stored_bytes, ref runs, .. } = *record;
        let max_nulls = if column.nullable { samples } else { 0 };
        let wrong = if null_count > max_nulls {
            format!("{null_count} samples are null, but at most {max_nulls} can be")
        } else if stored_bytes > commit.trailer_offset {
            format!("the chunks take {stored_bytes} bytes, but only {} precede the trailer", commit.trailer_offset)
        } else if runs.len() > commits {
            format!("the index has {} runs, but there are only {commits} commits", runs.len())
        } else {
            continue;
        };
        let message =
            format!("the footer is inconsistent ({wrong}), so nothing was appended; convert the file to a new one");
        return Err(Error::corrupt("R-7.4", message)
            .with_column(&column.name)
            .with_offset(commit.trailer.footer_offset));
    }
    Ok(())
}

/// Fails if an intact region follows the last commit, which ends at `end`.
fn check_tail(file: &impl Source, file_id: FileId, end: u64) -> Result<()> {
    let Some(found) = first_intact(file, file_id, end)? else { return Ok(()) };
    let bytes = file.byte_count().saturating_sub(end);
    let message = format!(
        "{bytes} bytes follow the last commit, including an intact {} at offset {}: either a killed writer left \
         them, or they are a commit whose end is damaged; nothing was appended; recover them with `tensilo salvage`",
        found.kind, found.offset
    );
    Err(Error::corrupt("R-2.7", message).with_offset(end).with_advice([Advice::DiscardTail]))
}

/// The read sizes of the search after the last commit.
const TAIL_READS: ReadSizes = ReadSizes { first: 64 << 10, second: 64 << 10, max: 64 << 10 };

/// Returns the first intact header of this file at or after `from`, the end of a
/// commit.
fn first_intact(file: &impl Source, file_id: FileId, from: u64) -> Result<Option<RegionHeader>> {
    let end = file.byte_count();
    HeaderScan::new(file, TAIL_READS).first(from, end, |found| {
        let header = RegionHeader::parse(found.bytes, found.offset).ok()?;
        (header.file_id == file_id && header.check_inside(end).is_ok()).then_some(header)
    })
}
