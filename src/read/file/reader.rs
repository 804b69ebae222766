//! An open file: the handle that callers keep, and the options for opening it.
//!
//! Opening reads the header, the last valid trailer and its footer, whatever the number of samples.
//! The header and the samples can come from different sources: a mapped file is first opened with
//! positional reads (`pread`), and then mapped only up to its last commit.
//!
//! After an append, a new reader can take over what the old one has verified ([`Reader::refresh`]).
//! That is correct only if both read the same file and the new state of the file includes the
//! commit of the old reader. File identity, file id and content id prove that.

use super::column::Column;
use super::column_inner::ColumnInner;
use super::records::SlotCache;
use super::state::{ColumnIndex, MAX_CACHED_PAGES, ReaderInner, Verification};
use crate::format::region::HEADER_LEN;
use crate::format::{ContentId, FileId, Schema};
use crate::open::{self, FileIdentity, FirstBytes, InMemory, PositionedFile, Source, TableSlot};
use crate::read::cursor::Rows;
use crate::read::verify::{VerifyOptions, VerifyReport, verify};
use crate::{Error, ErrorKind, Result, limits};
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::{io, iter};

/// The options for opening a file, and the methods that open a file with them.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct OpenOptions {
    pub(in crate::read) verification: Verification,
    max_chunk_bytes: Option<u32>,
    commit_within: Option<u64>,
}

impl OpenOptions {
    /// Returns the defaults: verifies each chunk on first use, and accepts any chunk size that the
    /// format allows.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets when chunks are verified. The default is [`Verification::FirstTouch`].
    pub fn verification(mut self, verification: Verification) -> Self {
        self.verification = verification;
        self
    }

    /// Sets the maximum decoded length of a chunk. The default is [`limits::CHUNK_BYTES`], the
    /// limit of the format.
    ///
    /// A larger chunk is refused before memory is allocated for it, with an error of kind
    /// [`OverLimit`](crate::ErrorKind::OverLimit). Set this for untrusted files: a file of a few
    /// bytes can contain a sample of 4 GiB whose elements are all equal. Chunks of several samples
    /// decode to at most 64 MiB. Writers create chunks of a few hundred KiB unless one sample is
    /// larger.
    pub fn max_chunk_bytes(mut self, bytes: u32) -> Self {
        self.max_chunk_bytes = Some(bytes);
        self
    }

    /// Opens the file at the last commit that ends within its first `bytes` bytes, instead of the
    /// last commit of the file. Has no effect if the file is shorter.
    ///
    /// A commit ends with its trailer. To find the length of the file at its last commit, subtract
    /// a reader's [`tail_bytes`](crate::Reader::tail_bytes) from its
    /// [`file_bytes`](crate::Reader::file_bytes).
    pub fn commit_within(mut self, bytes: u64) -> Self {
        self.commit_within = Some(bytes);
        self
    }

    /// Returns the value set by [`OpenOptions::commit_within`], for functions that create a source.
    pub fn explicit_commit_within(&self) -> Option<u64> {
        self.commit_within
    }

    /// Returns the limit of [`OpenOptions::max_chunk_bytes`].
    fn chunk_bytes_limit(&self) -> u32 {
        self.max_chunk_bytes.unwrap_or(limits::CHUNK_BYTES)
    }

    /// Opens a file by path, with positional reads (`pread`).
    pub fn open(self, path: impl AsRef<Path>) -> Result<Reader> {
        let path = path.as_ref();
        let open = || {
            let source: Arc<dyn Source> = Arc::new(PositionedFile::open(path)?);
            self.open_through(source.clone(), Some(path), |_| Ok(source))
        };
        open().map_err(|error| error.with_path(path))
    }

    /// Opens a file from any source.
    pub fn open_source(self, source: impl Source + 'static) -> Result<Reader> {
        let source: Arc<dyn Source> = Arc::new(source);
        self.open_through(source.clone(), None, |_| Ok(source))
    }

    /// Opens a file whose header and footer are read from `first`, and everything else from the
    /// source that `source` creates. `source` receives the end of the last commit; the source it
    /// returns must have the same bytes up to that offset.
    pub(crate) fn open_through(
        self,
        first: Arc<dyn Source>,
        path: Option<&Path>,
        source: impl FnOnce(u64) -> Result<Arc<dyn Source>>,
    ) -> Result<Reader> {
        let first = self.limit(first);
        let opened = self.try_open(&first, path, source);
        if opened.as_ref().is_err_and(|error| error.kind() == ErrorKind::Corrupt) {
            first.invalidate();
        }
        opened
    }

    fn try_open(
        self,
        first: &Arc<dyn Source>,
        path: Option<&Path>,
        source: impl FnOnce(u64) -> Result<Arc<dyn Source>>,
    ) -> Result<Reader> {
        let file_header = open::open_header(&**first)?;
        let commit = open::open_last_commit(&**first, &file_header)?;
        let end = commit.trailer_offset.saturating_add(HEADER_LEN);
        let tail_bytes = first.byte_count().saturating_sub(end);
        let source = self.limit(source(end)?);
        let mut columns = Vec::with_capacity(file_header.schema.columns.len());
        let mut tables = commit.footer.tables.into_iter().peekable(); // sorted by column
        for (index, (column, facts)) in (0..).zip(file_header.schema.columns.iter().zip(commit.footer.columns)) {
            let own = iter::from_fn(|| tables.next_if(|table| table.column == index));
            columns.push(ColumnIndex::new(index, column, facts, own.map(TableSlot::new).collect())?);
        }
        Ok(Reader::new(ReaderInner {
            full_source: (source.byte_count() < first.byte_count()).then(|| first.clone()),
            source,
            path: path.map(Path::to_path_buf),
            file_id: file_header.fields.file_id,
            content_id: commit.footer.content_id,
            alignment: file_header.fields.alignment,
            schema: file_header.schema,
            index_pages: SlotCache::new(MAX_CACHED_PAGES, u64::MAX),
            columns,
            sample_count: commit.footer.sample_count,
            commit_count: commit.footer.commit.saturating_add(1),
            is_finished: commit.trailer.finished,
            footer_offset: commit.trailer.footer_offset,
            tail_bytes,
            verification: self.verification,
            max_chunk_bytes: self.chunk_bytes_limit(),
        }))
    }

    /// Limits a source to the number of bytes set by [`OpenOptions::commit_within`], if any.
    fn limit(&self, source: Arc<dyn Source>) -> Arc<dyn Source> {
        match self.commit_within {
            Some(bytes) => Arc::new(FirstBytes::new(source, bytes)),
            None => source,
        }
    }
}

/// An open file.
///
/// Cloning only increments a reference count, and the file stays open as long as a reader, a column
/// or a cursor exists. A reader has no threads, file position or global state, and never waits for
/// a lock, so any thread can use it, and it works after `fork`. The cost of opening does not depend
/// on the number of samples.
#[derive(Clone)]
pub struct Reader(Arc<ReaderInner>);

impl Reader {
    pub(in crate::read) fn new(file: ReaderInner) -> Self {
        Self(Arc::new(file))
    }

    /// Opens a file with positional reads (`pread`). This is safe, and the right choice for network
    /// file systems. Samples cannot be viewed without copying.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        OpenOptions::new().open(path)
    }

    /// Opens a file in memory. The reader owns `bytes`; pass an `Arc<[u8]>` to share them.
    pub fn from_bytes(bytes: impl AsRef<[u8]> + Send + Sync + 'static) -> Result<Self> {
        OpenOptions::new().open_source(InMemory(bytes))
    }

    /// Returns the columns and the file's metadata.
    pub fn schema(&self) -> &Schema {
        &self.0.schema
    }

    /// Returns the number of samples in the file.
    pub fn sample_count(&self) -> u64 {
        self.0.sample_count
    }

    /// Returns the file's id.
    pub fn file_id(&self) -> FileId {
        self.0.file_id
    }

    /// Returns the 16 bytes that identify the content of the file up to the commit that is read.
    /// They come from the footer; [`verify()`] checks that they are correct. In a salvaged file,
    /// they identify the last confirmed commit, or else the last intact footer; they are zero if no
    /// footer is intact.
    pub fn content_id(&self) -> ContentId {
        self.0.content_id
    }

    /// Returns the length of the file in bytes.
    pub fn file_bytes(&self) -> u64 {
        self.0.whole().byte_count()
    }

    /// Returns the alignment of chunks, 64 or 4096. The body of every chunk starts at a multiple of
    /// this number.
    pub fn alignment(&self) -> u32 {
        self.0.alignment
    }

    /// Returns the number of commits up to and including the one that is read.
    pub fn commit_count(&self) -> u32 {
        self.0.commit_count
    }

    /// Returns whether the writer has declared the file complete. If not, the writer is still
    /// running, or was stopped after a commit.
    pub fn is_finished(&self) -> bool {
        self.0.is_finished
    }

    /// Returns the offset of the footer of the commit that is read; 0 for a salvaged file.
    pub fn footer_offset(&self) -> u64 {
        self.0.footer_offset
    }

    /// Returns the number of bytes after the last commit, which are not read. Normally 0. Otherwise
    /// a writer is running or was killed, or the end of a later commit is damaged.
    pub fn tail_bytes(&self) -> u64 {
        self.0.tail_bytes
    }

    /// Returns the source of the file's bytes. For a mapped file, the source ends at the last
    /// commit.
    pub fn source(&self) -> &Arc<dyn Source> {
        &self.0.source
    }

    /// Returns the column called `name`. Cost: linear in the number of columns, so keep the handle.
    pub fn column(&self, name: &str) -> Result<Column> {
        let (index, _) = self.schema().find_column(name).map_err(|error| self.0.in_file(error))?;
        self.column_at(index).ok_or_else(|| self.0.in_file(Error::internal("a column of the schema is not open")))
    }

    /// Returns the column with this number, counted from 0.
    pub fn column_at(&self, index: usize) -> Option<Column> {
        ColumnInner::new(&self.0, index).map(Column::new)
    }

    /// Returns all columns, in order.
    pub fn columns(&self) -> impl Iterator<Item = Column> {
        (0..self.0.columns.len()).filter_map(|index| self.column_at(index))
    }

    /// Returns the columns with these names, in this order. Cost: linear in the number of names and
    /// of columns.
    pub fn columns_named<'n>(&self, names: impl IntoIterator<Item = &'n str>) -> Result<Vec<Column>> {
        let numbers: HashMap<&str, usize> =
            self.schema().columns.iter().map(|column| column.name.as_str()).zip(0..).collect();
        let column = |name| numbers.get(name).and_then(|&number| self.column_at(number));
        names.into_iter().map(|name| column(name).map_or_else(|| self.column(name), Ok)).collect()
    }

    /// Returns a reader of the same samples from several columns. Cost: linear in the number of
    /// names and of columns.
    pub fn rows(&self, columns: &[&str]) -> Result<Rows> {
        let columns = self.columns_named(columns.iter().copied())?;
        Ok(Rows::new(columns.iter().map(Column::cursor).collect()))
    }

    /// Checks every byte of the file; see [`verify()`]. If an append has failed since the file was
    /// opened, and has truncated it to its last commit, checks the file up to that commit.
    pub fn verify(&self, options: VerifyOptions<'_>) -> Result<VerifyReport> {
        let whole = self.0.whole();
        let last = whole.byte_count().saturating_sub(1);
        // other errors do not mean that the file was truncated
        let is_truncated = self.0.tail_bytes > 0
            && whole.read_exact_at(last, &mut [0]).is_err_and(|error| error.kind() == io::ErrorKind::UnexpectedEof);
        match is_truncated {
            false => verify(&**whole, options),
            true => verify(&FirstBytes::new(whole.clone(), whole.byte_count() - self.0.tail_bytes), options),
        }
    }

    /// Copies the verification state of this reader to `opened`, a reader of this file after an
    /// append, and returns `opened`. Chunks that were verified before are then not verified again.
    ///
    /// ```no_run
    /// # fn main() -> tensilo::Result<()> {
    /// # use tensilo::Reader;
    /// let mut reader = Reader::open("features.tsl")?;
    /// // ... another process appends ...
    /// reader = reader.refresh(Reader::open("features.tsl")?);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Leaves `opened` unchanged if it reads a different file or has a different [`Verification`].
    /// Two files are the same if their identities ([`Source::identity`]) are equal and both contain
    /// the commit that this reader reads.
    ///
    /// Cost: reads the footer of this reader's commit again, and copies a word for each of its
    /// chunks.
    pub fn refresh(&self, opened: Self) -> Self {
        if self.is_earlier_commit_of(&opened) {
            for (column, earlier) in opened.0.columns.iter().zip(&self.0.columns) {
                column.inherit_checks(earlier);
            }
        }
        opened
    }

    fn is_earlier_commit_of(&self, opened: &Self) -> bool {
        let (earlier, later) = (&self.0, &opened.0);
        let identity = earlier.source.identity();
        if identity.is_none() || identity != later.source.identity() || earlier.verification != later.verification {
            return false;
        }
        let end = earlier.whole().byte_count().saturating_sub(earlier.tail_bytes);
        let first = FirstBytes::new(later.whole().clone(), end);
        let commit = open::open_header(&first).and_then(|file_header| {
            Ok((file_header.fields.file_id, open::open_last_commit(&first, &file_header)?.footer.content_id))
        });
        commit.is_ok_and(|commit| commit == (earlier.file_id, earlier.content_id))
    }

    /// Refuses an output that is this file.
    pub(crate) fn check_output(&self, output: Option<FileIdentity>, path: Option<&Path>) -> Result<()> {
        self.0.check_output(output, path)
    }

    /// Sets the path that errors name, for a source without a path. Has no effect if other handles
    /// to the file exist, such as clones and columns.
    pub fn with_path(mut self, path: impl AsRef<Path>) -> Self {
        if let Some(file) = Arc::get_mut(&mut self.0) {
            file.path = Some(path.as_ref().to_path_buf());
        }
        self
    }

    /// Returns the path by which the file was opened.
    #[cfg(feature = "arrow")]
    pub(crate) fn path(&self) -> Option<&Path> {
        self.0.path.as_deref()
    }
}
