//! The state of an open file, which all handles to it share.

use super::column_index::ColumnIndex;
use super::options::Verification;
use super::slot_cache::SlotCache;
use crate::format::{ContentId, FileId, Schema};
use crate::open::{FileIdentity, Source, refuse_same, source::FileBytes};
use crate::{Error, ErrorKind, Result};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The maximum number of index pages of a file that are cached: 1 MiB.
pub(in crate::read) const CACHED_PAGES: usize = 256;

/// An open file. Nothing in it changes but caches and the records of checked chunks and pages,
/// which any thread sets.
pub(in crate::read) struct OpenedFile {
    pub source: Arc<dyn Source>,
    /// The source of the bytes after the last commit, too, if `source` ends there and the file does
    /// not.
    pub with_tail: Option<Arc<dyn Source>>,
    pub path: Option<PathBuf>,
    pub schema: Schema,
    pub file_id: FileId,
    pub content_id: ContentId,
    pub alignment: u32,
    /// One for each column of the schema.
    pub columns: Vec<ColumnIndex>,
    /// Index pages that were checked, by their offsets divided by the length of a page. Empty if
    /// the file is in memory.
    pub index_pages: SlotCache<IndexPage>,
    pub sample_count: u64,
    pub commit_count: u32,
    pub is_finished: bool,
    pub footer_offset: u64,
    pub tail_bytes: u64,
    pub verification: Verification,
    pub max_chunk_bytes: u32,
}

/// A page of the index: head and body.
pub(in crate::read) struct IndexPage {
    pub offset: u64,
    pub bytes: Vec<u8>,
}

impl OpenedFile {
    #[inline]
    pub(in crate::read) fn bytes(&self) -> FileBytes<'_> {
        FileBytes::of(&*self.source)
    }

    /// Returns the source of the whole file as it was when it was opened.
    pub(in crate::read) fn whole(&self) -> &Arc<dyn Source> {
        self.with_tail.as_ref().unwrap_or(&self.source)
    }

    /// Refuses an output that is this file.
    pub(in crate::read) fn check_output(&self, output: Option<FileIdentity>, path: Option<&Path>) -> Result<()> {
        refuse_same(output, path, [(self.source.identity(), self.path.as_deref())])
    }

    /// Refuses a chunk that decodes to more than the limit of the options.
    pub(in crate::read) fn check_decoded_bytes(&self, bytes: u64) -> Result<()> {
        let limit = self.max_chunk_bytes;
        if bytes <= limit.into() {
            return Ok(());
        }
        let message = format!("the chunk decodes to {bytes} bytes; the file was opened with a limit of {limit}");
        Err(Error::over_limit(message))
    }

    /// Adds the path to an error, and tells the source of damage.
    pub(in crate::read) fn in_file(&self, error: Error) -> Error {
        if error.kind() == ErrorKind::Corrupt {
            self.source.invalidate();
        }
        match &self.path {
            Some(path) => error.with_path(path),
            None => error,
        }
    }
}
