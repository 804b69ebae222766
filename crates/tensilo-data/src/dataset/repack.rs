//! Chapter 9: the samples of all groups in new data files.

use super::changes::Changes;
use super::data_file::DataFile;
use super::facts::FileFacts;
use super::group_samples::GroupSamples;
use crate::error::{DataError, Result};
use crate::manifest::{Group, Layout};
use std::ops::ControlFlow;
use tensilo::{Error, Schema, Writer, WriterOptions};

impl Changes {
    /// Writes all samples into new data files of at most `shard_bytes` raw bytes, or one sample.
    /// Samples keep their numbers, so that a training goes on with the same batches.
    ///
    /// Raw bytes are those of the values as they are stored, before encoding. The columns are those
    /// that the dataset has so far, under its names; what was dropped is not copied. A file ends,
    /// too, before a sample that other columns have values for: where a column was added without
    /// values, no nulls are written.
    ///
    /// No value is rounded again. A file states of a cast the largest errors, and the sums of the
    /// counts, of all files that it has samples of: its own are at most these.
    ///
    /// The same dataset and options give the same files, for any number of threads. The ids of the
    /// files are derived from that of the dataset, the version and their number, whatever the
    /// options say of their origin. `progress` gets the number of samples done.
    ///
    /// Fails if samples have no column with values left. After an error, drop the changes: this
    /// removes the files that were written.
    ///
    /// Cost: reading and writing all samples once; memory for some MiB, or the largest chunk, of
    /// each column.
    pub fn repack(
        &mut self,
        shard_bytes: u64,
        options: &WriterOptions,
        progress: &mut dyn FnMut(u64) -> ControlFlow<()>,
    ) -> Result<()> {
        let mut files = NewFiles { changes: self, shard_bytes, options, open: None, done: Vec::new(), copied: 0 };
        go_on(progress(0))?;
        for page in 0..files.changes.page_count() {
            for group in files.changes.groups_of_page(page)? {
                files.copy(&group, progress)?;
            }
        }
        files.finish()?;
        let files = files.done;
        self.replace_groups(files);
        Ok(())
    }
}

/// The data files that are written, one after the other.
struct NewFiles<'a> {
    changes: &'a mut Changes,
    shard_bytes: u64,
    options: &'a WriterOptions,
    /// The file that takes samples. It has at least one, or gets one next.
    open: Option<BegunFile>,
    /// The files that are complete.
    done: Vec<(FileFacts, Layout)>,
    /// The number of samples done.
    copied: u64,
}

/// A data file in the making.
struct BegunFile {
    writer: Writer<DataFile>,
    /// The numbers of its columns in the dataset.
    columns: Vec<usize>,
    /// The raw bytes that it can take.
    left: u64,
    /// Whether it states the cast facts of the group that is read.
    has_facts: bool,
}

impl NewFiles<'_> {
    fn copy(&mut self, group: &Group, progress: &mut dyn FnMut(u64) -> ControlFlow<()>) -> Result<()> {
        // a batch is read again where a file ends, so it is not larger than a file
        let mut source = self.changes.samples_of(group, self.copied, self.shard_bytes)?;
        self.begin_group(&source)?;
        while source.read_next()? > 0 {
            let count = self.make_room(&source)?;
            source.shorten(count)?;
            self.push(&source)?;
            self.copied = self.copied.saturating_add(source.batch_samples());
            go_on(progress(self.copied))?;
        }
        Ok(())
    }

    /// Ends the file if the group has other columns.
    fn begin_group(&mut self, source: &GroupSamples) -> Result<()> {
        match &mut self.open {
            Some(open) if open.columns == source.numbers() => open.has_facts = false,
            _ => self.finish()?,
        }
        Ok(())
    }

    /// Returns how many samples of the batch go into the open file, at least one. Begins a file if
    /// none does.
    fn make_room(&mut self, source: &GroupSamples) -> Result<usize> {
        let fitting = self.open.as_ref().map_or(0, |open| source.fitting(open.left));
        if fitting > 0 {
            return Ok(fitting);
        }
        self.finish()?;
        self.begin(source)?;
        Ok(source.fitting(self.shard_bytes).max(1))
    }

    fn begin(&mut self, source: &GroupSamples) -> Result<()> {
        let all = self.changes.schema();
        let columns = source.numbers().iter().filter_map(|&number| all.columns.get(number).cloned());
        let schema = Schema { columns: columns.collect(), metadata: all.metadata };
        let options = self.options.clone().origin(self.changes.origin(self.done.len()));
        let sink = self.changes.next_file()?;
        let writer = Writer::of_rounded(sink, schema, &options, source.casts())?;
        let columns = source.numbers().to_vec();
        self.open = Some(BegunFile { writer, columns, left: self.shard_bytes, has_facts: true });
        Ok(())
    }

    /// Writes the batch.
    fn push(&mut self, source: &GroupSamples) -> Result<()> {
        let Some(open) = &mut self.open else { return Ok(()) }; // `make_room` has begun one
        if !std::mem::replace(&mut open.has_facts, true) {
            open.writer.join_cast_facts(source.casts());
        }
        open.left = open.left.saturating_sub(source.raw_bytes());
        Ok(open.writer.push_batch(&source.batches())?)
    }

    /// Completes the open file.
    fn finish(&mut self) -> Result<()> {
        let Some(BegunFile { writer, columns, .. }) = self.open.take() else { return Ok(()) };
        let file = writer.finish()?;
        let facts = self.changes.facts(file.sink.path())?;
        self.done.push((facts, self.changes.layout_of(&columns)));
        Ok(())
    }
}

fn go_on(flow: ControlFlow<()>) -> Result<()> {
    match flow {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(DataError::File(Error::cancelled())),
    }
}
