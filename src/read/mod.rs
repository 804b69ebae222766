//! Reading a file: open it, find a sample, check and decode its chunk.

mod bitmap;
mod buffer;
mod column;
mod current;
mod cursor;
mod explain;
mod gather;
mod listed;
mod lookup;
#[cfg(feature = "rayon")]
mod parallel;
mod salvage;
mod sample;
mod stored;
mod verify;

pub use buffer::ColumnBuffer;
pub use column::{ChunkInfo, Column};
pub use cursor::Cursor;
pub use explain::Explanation;
pub use gather::Rows;
#[cfg(feature = "rayon")]
pub use parallel::ParallelCursor;
pub use salvage::{Losses, LostSamples, OnLoss, SalvageOptions, Salvaged, salvage};
pub use sample::Sample;
pub(crate) use stored::ChunkScratch;
pub use verify::{Damage, VerifyOptions, VerifyReport, verify};

use crate::format::{ContentId, FileId, Schema};
use crate::names::no_column;
use crate::open::{self, FileIdentity, InMemory, Source, refuse_same, source};
use crate::{Error, Result, limits};
use lookup::ColumnIndex;
use std::path::{Path, PathBuf};

/// When a reader checks the checksum of a chunk. (Heads, index pages and footers are checked in any case.)
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Verification {
    /// Each chunk when this reader first touches it.
    #[default]
    FirstTouch,
    /// Each chunk each time it is loaded.
    Always,
    /// Never: wrong bytes may give wrong values without an error.
    Never,
}

/// How a file is opened.
#[derive(Clone, Copy, Debug, Default)]
pub struct OpenOptions {
    verification: Verification,
    max_chunk_bytes: Option<u32>,
}

impl OpenOptions {
    /// The default: chunks are checked on first touch.
    pub fn new() -> Self {
        Self::default()
    }

    /// When chunks are checked.
    pub fn verification(mut self, verification: Verification) -> Self {
        self.verification = verification;
        self
    }

    /// Refuses chunks that decode to more than this, before memory is taken for them: [`ErrorKind::OverLimit`](crate::ErrorKind). Set it where
    /// files come from strangers: a file of some bytes may hold a sample of 4 GiB, all of it the same. Chunks of several samples decode to
    /// 64 MiB at most, and writers keep to some hundred KiB unless one sample is larger. Default: what the format allows,
    /// [`limits::CHUNK_BYTES`].
    pub fn max_chunk_bytes(mut self, bytes: u32) -> Self {
        self.max_chunk_bytes = Some(bytes);
        self
    }

    /// Opens a file from any source.
    pub fn open<S: Source>(self, source: S) -> Result<Reader<S>> {
        let header = open::open_header(&source)?;
        let commit = open::open_last_commit(&source, &header)?;
        let tail_bytes = source.byte_count().saturating_sub(commit.trailer_offset.saturating_add(64));
        let mut columns = Vec::with_capacity(header.schema.columns.len());
        for (index, (column, facts)) in (0..).zip(header.schema.columns.iter().zip(commit.footer.columns)) {
            columns.push(ColumnIndex::new(index, column, facts)?);
        }
        Ok(Reader {
            source,
            path: None,
            file_id: header.header.file_id,
            content_id: commit.footer.content_id,
            alignment: header.header.alignment,
            schema: header.schema,
            columns,
            sample_count: commit.footer.sample_count,
            commit_count: commit.footer.commit.saturating_add(1),
            is_finished: commit.trailer.finished,
            tail_bytes,
            verification: self.verification,
            max_chunk_bytes: self.max_chunk_bytes.unwrap_or(limits::CHUNK_BYTES),
        })
    }
}

/// An open file.
///
/// It holds no threads, locks, file position or global state: share it between threads by reference, use it after `fork`.
/// Opening costs the same for any number of samples.
pub struct Reader<S> {
    source: S,
    path: Option<PathBuf>,
    schema: Schema,
    file_id: FileId,
    content_id: ContentId,
    alignment: u32,
    columns: Vec<ColumnIndex>,
    sample_count: u64,
    commit_count: u32,
    is_finished: bool,
    tail_bytes: u64,
    verification: Verification,
    max_chunk_bytes: u32,
}

impl<B: AsRef<[u8]> + Send + Sync> Reader<InMemory<B>> {
    /// Opens a file that is in memory.
    pub fn from_bytes(bytes: B) -> Result<Self> {
        OpenOptions::new().open(InMemory(bytes))
    }
}

impl<S: Source> Reader<S> {
    pub(crate) fn with_path(reader: Result<Self>, path: &Path) -> Result<Self> {
        let mut reader = reader.map_err(|error| error.with_path(path))?;
        reader.path = Some(path.to_path_buf());
        Ok(reader)
    }

    /// The same reader on another source of the same bytes.
    #[cfg(feature = "mmap")]
    pub(crate) fn try_map_source<T: Source>(self, other: impl FnOnce(S) -> Result<T>) -> Result<Reader<T>> {
        Ok(Reader {
            source: other(self.source)?,
            path: self.path,
            schema: self.schema,
            file_id: self.file_id,
            content_id: self.content_id,
            alignment: self.alignment,
            columns: self.columns,
            sample_count: self.sample_count,
            commit_count: self.commit_count,
            is_finished: self.is_finished,
            tail_bytes: self.tail_bytes,
            verification: self.verification,
            max_chunk_bytes: self.max_chunk_bytes,
        })
    }

    /// The columns and the file's metadata.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// Samples in the file.
    pub fn sample_count(&self) -> u64 {
        self.sample_count
    }

    /// The file's id.
    pub fn file_id(&self) -> FileId {
        self.file_id
    }

    /// Returns the 16 bytes that identify the content of the file up to the commit that is read.
    /// They are read from the footer; [`verify()`] checks that they are right. Of a salvaged file
    /// they are those of its last intact footer, or zero if none is left.
    pub fn content_id(&self) -> ContentId {
        self.content_id
    }

    /// The length of the file.
    pub fn file_bytes(&self) -> u64 {
        self.source.byte_count()
    }

    /// Every chunk's body starts at a multiple of this: 64 or 4096.
    pub fn alignment(&self) -> u32 {
        self.alignment
    }

    /// Commits up to the state that is read.
    pub fn commit_count(&self) -> u32 {
        self.commit_count
    }

    /// Whether the writer said that the file is complete. If not, it is still at work or was stopped after a commit.
    pub fn is_finished(&self) -> bool {
        self.is_finished
    }

    /// Bytes after the last commit, which are not read: what a writer at work has written since, or a killed one left
    /// behind, or a later commit whose end is damaged. Normally 0.
    pub fn tail_bytes(&self) -> u64 {
        self.tail_bytes
    }

    /// The source.
    pub fn source(&self) -> &S {
        &self.source
    }

    /// The column called `name`. Cost: linear in the number of columns; keep the handle.
    pub fn column(&self, name: &str) -> Result<Column<'_, S>> {
        let index = self.schema.column_index(name);
        index
            .and_then(|index| self.column_at(index))
            .ok_or_else(|| self.place(no_column(name, self.schema.columns.iter().map(|column| column.name.as_str()))))
    }

    /// The column with this number, counted from 0.
    pub fn column_at(&self, index: usize) -> Option<Column<'_, S>> {
        let schema = self.schema.columns.get(index)?;
        Some(Column::new(self, schema, self.columns.get(index)?))
    }

    /// All columns, in order.
    pub fn columns(&self) -> impl Iterator<Item = Column<'_, S>> {
        (0..self.columns.len()).filter_map(|index| self.column_at(index))
    }

    /// Several columns, to be read for the same samples by one call.
    pub fn rows(&self, columns: &[&str]) -> Result<Rows<'_, S>> {
        let cursors = columns.iter().map(|name| Ok(self.column(name)?.cursor()));
        Ok(Rows::new(cursors.collect::<Result<_>>()?))
    }

    /// Checks every byte of the file, see [`verify()`].
    pub fn verify(&self, options: VerifyOptions<'_>) -> Result<VerifyReport> {
        verify(&self.source, options)
    }

    /// Refuses an output that is this file.
    pub(crate) fn check_output(&self, output: Option<FileIdentity>, path: Option<&Path>) -> Result<()> {
        refuse_same(output, path, [(self.source.identity(), self.path.as_deref())])
    }

    /// Refuses what decodes to more than [`OpenOptions::max_chunk_bytes`].
    fn check_decoded_bytes(&self, bytes: u64) -> Result<()> {
        let limit = self.max_chunk_bytes;
        if bytes <= limit.into() {
            return Ok(());
        }
        let message = format!("the chunk decodes to {bytes} bytes; the file was opened with a limit of {limit}");
        Err(Error::over_limit(message))
    }

    /// Adds the path to an error.
    pub(crate) fn place(&self, error: Error) -> Error {
        match &self.path {
            Some(path) => error.with_path(path),
            None => error,
        }
    }
}
