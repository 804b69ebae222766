//! Other formats as new groups of a dataset.

use super::changes::Changes;
use super::data_file::DataFile;
use crate::error::{DataError, Result};
use std::ops::ControlFlow;
use std::path::PathBuf;
use tensilo::Summary;
use tensilo::import::{AppendOptions, ConvertOptions, Progress, ShardFiles, append_shards, convert_shards};

impl Changes {
    /// Converts files and appends their samples, in data files of at most `shard_bytes` raw bytes,
    /// or one sample. The inputs and their order are those of [`tensilo::import::convert`].
    ///
    /// Raw bytes are those of the values as they are stored, after casts and before encoding. The
    /// same inputs and options give the same files, for any number of threads. After an error, what
    /// was appended before the call is still there, and some of the samples may be: drop the
    /// changes, or convert again in new ones.
    pub fn import(
        &mut self,
        inputs: &[PathBuf],
        shard_bytes: u64,
        options: &ConvertOptions,
        progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
    ) -> Result<()> {
        convert_shards(inputs, &mut Shards(self), shard_bytes, options, progress)
    }

    /// Converts files to the columns that the dataset has, and appends their samples: as
    /// [`tensilo::import::append`] does to a file, with the casts that the columns record.
    ///
    /// The files are those of [`Changes::import`]. So is what an error leaves.
    pub fn import_rows(
        &mut self,
        inputs: &[PathBuf],
        shard_bytes: u64,
        options: &AppendOptions,
        progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
    ) -> Result<()> {
        let (schema, folder) = (self.schema(), self.folder.clone());
        append_shards(inputs, &schema, &folder, &mut Shards(self), shard_bytes, options, progress)
    }
}

/// The data files of changes.
struct Shards<'a>(&'a mut Changes);

impl ShardFiles for Shards<'_> {
    type Sink = DataFile;
    type Error = DataError;

    fn begin(&mut self) -> Result<DataFile> {
        self.0.next_file()
    }

    fn finished(&mut self, file: Summary<DataFile>) -> Result<()> {
        self.0.append(file.sink.path())
    }
}
