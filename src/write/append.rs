//! Appending: what stands in a file is checked, and a writer goes on where its last commit ends (chapter 7.3).

use super::buffered::Buffered;
use super::output::Output;
use super::sink::Sink;
use super::storage::{Disk, Storage};
use super::{Start, Writer, WriterOptions};
use crate::format::Schema;
use crate::format::footer::{ColumnFacts, Footer};
use crate::format::region::{FileId, HEAD, HEAD_BYTES, RegionHead};
use crate::open::source::fetch;
use crate::open::{OpenedCommit, OpenedHeader, Source, open_header, open_last_commit};
use crate::{Advice, Error, Result};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// A file that exists and is appended to.
///
/// It is locked (`flock`; locks of other systems may keep readers out, too), so that a second appender gets an error. If the
/// writer fails or is dropped, what was written since the last commit is cut off again. A process that is killed leaves it
/// behind; readers do not see it.
#[derive(Debug)]
pub struct AppendedFile(Appended<Disk>);

impl Writer<AppendedFile> {
    /// Goes on with a file at its last commit, whether it is finished or not. Schema, file id and alignment are the file's; profile, chunk
    /// size, threads and checks are those of `options`.
    ///
    /// A reader sees the file as it was until [`Writer::commit`] or [`Writer::finish`] returns, or the process is killed; one that has opened the file keeps
    /// what it has seen. Without a commit the file stays as it is, to the last byte.
    ///
    /// What stands after the last commit is cut off before anything is written. If a region of this file is intact there, that is an error, unless
    /// [`WriterOptions::discard_tail`] is set: a writer that was stopped has left it behind, or it is a commit whose end is damaged,
    /// which `tensilo salvage` recovers. Errors too: another writer at work on the file, a file that a newer release
    /// has written in a way that this one cannot continue, one that cannot be opened.
    ///
    /// Cost: that of opening the file, and reading what stands after the last commit.
    ///
    /// ```
    /// # use tensilo::{ColumnSchema, DType, Reader, Result, Schema, Shape, Value, Writer, WriterOptions};
    /// # fn main() -> Result<()> {
    /// # let folder = tempfile::tempdir().expect("a folder");
    /// # let path = folder.path().join("numbers.tsl");
    /// # let schema = Schema::new([ColumnSchema::tensor("x", DType::I32, Shape::scalar())]);
    /// # Writer::create(&path, schema, &WriterOptions::new())?.finish()?;
    /// let mut writer = Writer::append(&path, &WriterOptions::new())?;
    /// writer.push(&[Value::tensor(&[7_i32])])?;
    /// writer.commit()?;
    /// assert_eq!(Reader::open(&path)?.sample_count(), 1);
    /// writer.push(&[Value::tensor(&[8_i32])])?;
    /// writer.finish()?;
    /// assert_eq!(Reader::open(&path)?.sample_count(), 2);
    /// # Ok(())
    /// # }
    /// ```
    pub fn append(path: impl AsRef<Path>, options: &WriterOptions) -> Result<Self> {
        append(Disk, path.as_ref(), options, AppendedFile)
    }
}

/// [`Writer::append`] on any storage; `wrap` makes the sink of it.
pub(super) fn append<S: Storage, K: Sink>(
    storage: S,
    path: &Path,
    options: &WriterOptions,
    wrap: impl FnOnce(Appended<S>) -> K,
) -> Result<Writer<K>> {
    options.check()?;
    let begin = || {
        let file = storage.open(path).map_err(|error| Error::io("opening the file to append to it", error))?;
        let header = open_header(&file)?;
        let commit = open_last_commit(&file, &header)?;
        header.header.flags.check_writable()?;
        commit.footer.flags.check_writable()?;
        check_facts(&commit, &header.schema)?;
        let end = commit.trailer_offset.saturating_add(HEAD);
        if !options.discard_tail {
            check_tail(&file, header.header.file_id, end)?;
        }
        let path = path.to_path_buf();
        let sink = Appended { storage, path, file: Buffered::new(file, end), begun: false };
        let output = Output::new(wrap(sink), header.header.file_id, header.header.alignment.into(), end);
        Writer::start(output, going_on(header, commit), options)
    };
    begin().map_err(|error| error.with_path(path))
}

fn going_on(header: OpenedHeader, commit: OpenedCommit) -> Start {
    let Footer { content_id, commit: number, flags, sample_count, tables, columns } = commit.footer;
    Start {
        schema: header.schema,
        schema_block: header.schema_block,
        flags: flags.union(header.header.flags), // R-9.2
        sample_count,
        tables,
        columns,
        commits: number.saturating_add(1), // below the limit: R-7.5
        content_id,
        last_trailer: commit.trailer_offset,
    }
}

/// R-7.4, as far as a wrong fact would be carried on and footer and schema alone tell that it is wrong.
fn check_facts(commit: &OpenedCommit, schema: &Schema) -> Result<()> {
    let samples = commit.footer.sample_count;
    let commits = usize::try_from(commit.footer.commit).unwrap_or(usize::MAX).saturating_add(1);
    for (facts, column) in commit.footer.columns.iter().zip(&schema.columns) {
        let ColumnFacts { null_count, stored_bytes, ref runs, .. } = *facts;
        let most_nulls = if column.nullable { samples } else { 0 };
        let wrong = if null_count > most_nulls {
            format!("{null_count} samples are null, where {most_nulls} can be")
        } else if stored_bytes > commit.trailer_offset {
            format!("its chunks have {stored_bytes} bytes, in a file of {}", commit.trailer_offset)
        } else if runs.len() > commits {
            format!("{} commits wrote chunks of it, of {commits}", runs.len())
        } else {
            continue;
        };
        let message =
            format!("the footer cannot be true, and is not continued ({wrong}); copy the file by exporting it");
        return Err(Error::corrupt("R-7.4", message)
            .with_column(&column.name)
            .with_offset(commit.trailer.footer_offset));
    }
    Ok(())
}

/// Refuses a file where something intact stands after its last commit, which ends at `end`.
fn check_tail(file: &impl Source, file_id: FileId, end: u64) -> Result<()> {
    let Some(found) = first_intact(file, file_id, end)? else { return Ok(()) };
    let bytes = file.byte_count().saturating_sub(end);
    let message = format!(
        "after the last commit stand {bytes} bytes, in them an intact {} at {}: a writer that was stopped has left \
         them, or they are a commit whose end is damaged; nothing is appended; recover what they hold with `tensilo \
         salvage`",
        found.kind, found.offset
    );
    Err(Error::corrupt("R-2.7", message).with_offset(end).with_advice([Advice::DiscardTail]))
}

/// The first region of this file at or after `from`, whose head is intact and which is inside the file (R-2.1 to R-2.5).
fn first_intact(file: &impl Source, file_id: FileId, from: u64) -> Result<Option<RegionHead>> {
    const BLOCK: u64 = 64 << 10;
    let (mut start, mut buffer) = (from, Vec::new());
    while start < file.byte_count() {
        let length = BLOCK.min(file.byte_count() - start);
        let block = fetch(file, start, usize::try_from(length).unwrap_or(0), &mut buffer)?; // at most BLOCK
        let (heads, _) = block.as_chunks::<HEAD_BYTES>();
        for (offset, bytes) in (start..).step_by(HEAD_BYTES).zip(heads).filter(|(_, head)| head.starts_with(b"TSL")) {
            let head = RegionHead::parse(bytes, offset).ok();
            let own = head.filter(|head| head.file_id == file_id && head.check_inside(file.byte_count()).is_ok());
            if own.is_some() {
                return Ok(own);
            }
        }
        start += length;
    }
    Ok(None)
}

impl Write for AppendedFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl Sink for AppendedFile {
    fn sync(&mut self) -> io::Result<()> {
        self.0.sync()
    }

    fn publish(&mut self) -> io::Result<()> {
        self.0.publish()
    }

    fn path(&self) -> Option<&Path> {
        self.0.path()
    }
}

/// [`AppendedFile`] on any storage.
#[derive(Debug)]
pub(super) struct Appended<S: Storage> {
    storage: S,
    path: PathBuf,
    file: Buffered<S::File>,
    /// Whether what stood after the last commit is cut off.
    begun: bool,
}

impl<S: Storage> Appended<S> {
    /// Before the first byte: that nothing stands after the last commit is made durable, also if nothing seems to stand there, else
    /// what an earlier appender wrote could come back between the new bytes after a loss of power. So is the file's name, which its
    /// writer may have had no time for.
    fn begin(&mut self) -> io::Result<()> {
        let Self { storage, path, file, .. } = self;
        file.cut()?;
        file.sync()?;
        file.attempt(|_| storage.sync_folder_of(path))?;
        self.begun = true;
        Ok(())
    }
}

impl<S: Storage> Write for Appended<S> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !self.begun {
            self.begin()?;
        }
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl<S: Storage> Sink for Appended<S> {
    fn sync(&mut self) -> io::Result<()> {
        self.file.sync()
    }

    fn publish(&mut self) -> io::Result<()> {
        self.file.committed();
        Ok(())
    }

    fn path(&self) -> Option<&Path> {
        Some(&self.path)
    }
}
