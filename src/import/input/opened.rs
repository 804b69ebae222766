//! An input that is open: its own columns, and those that its path tells.

use super::file::{InputFile, InputReader};
use super::partition::{Completion, Partition};
use crate::import::source::{Batches, Source, guard};
use crate::import::{ipc, parquet};
use crate::open::FileIdentity;
use crate::{Error, PositionedFile, Result};
use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

/// The file that the standard input is redirected from.
fn standard_input_identity() -> Option<FileIdentity> {
    #[cfg(unix)]
    let stdin = std::os::fd::AsFd::as_fd(&io::stdin()).try_clone_to_owned();
    #[cfg(windows)]
    let stdin = std::os::windows::io::AsHandle::as_handle(&io::stdin()).try_clone_to_owned();
    FileIdentity::of(&std::fs::File::from(stdin.ok()?)).ok().flatten()
}

/// A source that is watched for changes, with the columns of its [`Partition`] behind its own.
pub(in crate::import) struct OpenInput {
    file: Rc<InputFile>,
    content: Box<dyn Source>,
    origin: Vec<u8>,
    partition: Partition,
    schema: SchemaRef,
}

impl OpenInput {
    pub(super) fn open(path: &Path) -> Result<Self> {
        Self::of(InputFile::open(path)?, Partition::of_path(path)?)
    }

    pub(super) fn standard_input() -> Result<Self> {
        let file = InputFile::copied(Path::new("standard input"), io::stdin().lock())?;
        Self::of(file.copy_of(standard_input_identity()), Partition::default())
    }

    fn of(file: InputFile, mut partition: Partition) -> Result<Self> {
        let file = Rc::new(file);
        let recognised = guard(|| recognise(&file));
        let (content, mut origin) = recognised.map_err(|error| blame(&file, error).with_path(file.name()))?;
        partition.add_to_origin(&mut origin);
        partition.find_own(content.schema());
        let schema = content.schema().clone();
        Ok(Self { file, content, origin, partition, schema })
    }

    pub(in crate::import) fn source(&self) -> &dyn Source {
        self
    }

    pub(super) fn name(&self) -> &Path {
        self.file.name()
    }

    pub(super) fn identity(&self) -> Option<&FileIdentity> {
        self.file.identity()
    }

    pub(super) fn origin(&self) -> &[u8] {
        &self.origin
    }

    pub(super) fn release(&self) {
        self.file.release();
    }

    pub(super) fn partition_mut(&mut self) -> &mut Partition {
        &mut self.partition
    }

    /// To be called when the types of the partition's columns are known.
    pub(super) fn complete_schema(&mut self) {
        self.schema = self.partition.complete_schema(self.content.schema());
    }
}

/// The error, unless it comes of the file's having been changed.
fn blame(file: &InputFile, error: Error) -> Error {
    file.check_unchanged().err().unwrap_or(error)
}

impl Source for OpenInput {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn path(&self) -> Option<&Path> {
        Some(self.file.name())
    }

    fn row_count(&self) -> Option<u64> {
        self.content.row_count()
    }

    fn batches(&self, fields: &[usize]) -> Result<Batches<'_>> {
        let held = self.file.hold()?;
        let own_count = self.content.schema().fields().len();
        let (own, added): (Vec<usize>, Vec<usize>) = fields.iter().partition(|&&field| field < own_count);
        let added: Vec<usize> = added.into_iter().map(|field| field - own_count).collect(); // not less
        let completion = self.partition.completion(&own, &added);
        let content = self.content.batches(&own)?;
        Ok(Box::new(Pass { content, completion, input: self, is_over: false, _held: held }))
    }

    fn check_unchanged(&self) -> Result<()> {
        self.file.check_unchanged()
    }
}

/// One pass over an input. Its end is an error if the file was changed meanwhile.
struct Pass<'a> {
    content: Batches<'a>,
    completion: Completion<'a>,
    input: &'a OpenInput,
    is_over: bool,
    /// The file stays open for the whole pass.
    _held: Arc<PositionedFile>,
}

impl Iterator for Pass<'_> {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_over {
            return None;
        }
        let next = self.content.next().map(|batch| self.completion.complete(batch?));
        if let Some(Ok(_)) = next {
            return next;
        }
        self.is_over = true;
        match self.input.check_unchanged() {
            Err(changed) => Some(Err(changed)),
            Ok(()) => next,
        }
    }
}

/// What sort of file it is, by its first bytes; and what tells it from others.
fn recognise(file: &Rc<InputFile>) -> Result<(Box<dyn Source>, Vec<u8>)> {
    let mut reader = file.reader()?;
    let mut magic = Vec::new();
    (&mut reader).take(8).read_to_end(&mut magic).map_err(|error| file.io("reading the file", error))?;
    match magic.as_slice() {
        [b'P', b'A', b'R', b'1', ..] => parquet::open(file),
        [b'P', b'A', b'R', b'E', ..] => Err(parquet::encrypted_footer()),
        [b'A', b'R', b'R', b'O', b'W', b'1', ..] => Ok((ipc::open_file(file)?, ends(file, reader)?)),
        _ => Ok((ipc::open_stream(file)?, ends(file, reader)?)),
    }
}

/// Length, first and last bytes of a file: schema, some data, and the footer.
fn ends(file: &InputFile, mut reader: InputReader) -> Result<Vec<u8>> {
    const END_BYTES: u64 = 64 << 10;
    let mut read = || -> io::Result<Vec<u8>> {
        let length = reader.byte_count();
        let mut out = length.to_le_bytes().to_vec();
        for start in [0, length.saturating_sub(END_BYTES)] {
            reader.seek(SeekFrom::Start(start))?;
            (&mut reader).take(END_BYTES).read_to_end(&mut out)?;
        }
        Ok(out)
    };
    read().map_err(|error| file.io("reading the file", error))
}
