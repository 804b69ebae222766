//! A version whose data files are written by many processes, on any number of machines.
//!
//! All processes are given the version and the number of the job. These determine the folder of the
//! job, in which each file is named by its number. So processes need not communicate. A task that
//! runs twice finds its file already written, or loses to a faster process that wrote the same
//! bytes. Publishing first checks whether the version already lists the files. So any process can
//! repeat any step.

use super::Changes;
use crate::dataset::handle::Dataset;
use crate::dataset::listed_file::FileFacts;
use crate::dataset::store::location::{ReadOptions, location};
use crate::dataset::store::{DataFile, Store};
use crate::dataset::versions;
use crate::error::{DataError, Result};
use crate::io::Opener;
use crate::manifest::{FileEntry, Hex, join};
use std::collections::{BTreeMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tensilo::Schema;
use tensilo::error::display_path;
use tensilo::facts::{ContentId, FileId};

/// A job that writes one version of a dataset. Many processes, on any number of machines, write its
/// data files.
///
/// No reader sees the version before [`WriteJob::publish`]. A process that dies leaves only
/// unlisted files, in the folder of the job. [`Garbage`](crate::Garbage) finds them once the
/// version, or a later one, exists.
///
/// Every step can be repeated, even by several processes at the same time: a file that exists is
/// not written again, and a version that lists the files is not published again.
///
/// ```
/// use tensilo::{ColumnBatch, ColumnSchema, DType, Schema, Shape, Writer, WriterOptions};
/// use tensilo_data::{DatasetOptions, JobFile};
///
/// # let temporary = tempfile::tempdir()?;
/// # let folder = temporary.path().join("train");
/// let schema = Schema::new([ColumnSchema::tensor("label", DType::U8, Shape::fixed(&[]))]);
/// let job = || DatasetOptions::new().job(&folder, 1, 1 << 40); // the first version
///
/// // one process for each file
/// let task = |number: u32, labels: &[u8]| {
///     job()?.write(number, None, |file| {
///         let mut writer = Writer::new(file, schema.clone(), &WriterOptions::new())?;
///         writer.push_batch(&[ColumnBatch::fixed(labels.len(), labels)])?;
///         writer.finish()?;
///         Ok(())
///     })
/// };
/// let files: Vec<JobFile> = vec![task(0, &[3, 5])?, task(1, &[4])?];
///
/// // one process, when all files are written
/// let dataset = job()?.publish(&schema, &files, "write", |_| {})?;
/// assert_eq!(dataset.sample_count(), 3);
/// assert_eq!(job()?.publish(&schema, &files, "write", |_| {})?.version(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct WriteJob {
    folder: PathBuf,
    store: Arc<dyn Store>,
    /// Opens the files of the job.
    opener: Opener,
    options: ReadOptions,
    version: u64,
    /// The path of the job's folder in the dataset.
    data: String,
}

/// A data file that a process of a [`WriteJob`] has written, as an entry for the manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobFile {
    /// The number of the file in the job. Samples of files with lower numbers come first.
    pub number: u32,
    /// The number of samples.
    pub samples: u64,
    /// The length of the file in bytes.
    pub bytes: u64,
    /// The offset of the footer.
    pub footer: u64,
    /// The content id.
    pub content_id: ContentId,
}

impl WriteJob {
    /// Returns the job with this number that writes `version`; see
    /// [`DatasetOptions::job`](crate::DatasetOptions::job).
    pub(in crate::dataset) fn new(folder: &Path, version: u64, number: u64, options: ReadOptions) -> Result<Self> {
        if number <= u64::from(u32::MAX) || version == 0 {
            let message = format!(
                "job {number} of version {version}: expected a job number of at least 2^32, and a version of at least 1"
            );
            return Err(DataError::BadArgument(message));
        }
        let (store, store_options) = location(folder, options.clone())?;
        let opener = store_options.opener_of_new_files();
        let (folder, data) = (folder.to_path_buf(), format!("data/{version:010}-{number}"));
        Ok(Self { folder, store, opener, options, version, data })
    }

    /// Writes the file with this number, unless it exists, and returns its entry for the manifest.
    /// The file appears only when it is complete, and is durable when this returns.
    ///
    /// All processes that write a file with the same number must write the same bytes. If `write`
    /// fails because another process was faster, the result is the file of that process. Fails if
    /// `id` is given and the existing file has a different id.
    ///
    /// Cost: calls `write`, and opens the file.
    pub fn write(
        &self,
        number: u32,
        id: Option<FileId>,
        write: impl FnOnce(DataFile) -> Result<()>,
    ) -> Result<JobFile> {
        if let Some(found) = self.find(number, id)? {
            return Ok(found);
        }
        let written = self.create(number).and_then(write);
        match (self.find(number, id), written) {
            (Ok(Some(found)), _) => Ok(found),
            (_, Err(error)) | (Err(error), _) => Err(error),
            (Ok(None), Ok(())) => Err(self.gone(number)),
        }
    }

    /// Opens a file of the job, and returns its schema.
    pub fn schema_of(&self, number: u32) -> Result<Schema> {
        let name = self.name(number);
        let (facts, _) = FileFacts::with_id(&self.opener, &join(&self.folder, &name), &name, None)?;
        Ok(facts.schema)
    }

    /// Publishes the version and returns it. In the new version, these files follow the files of
    /// the previous version, in the order of their numbers. `change` describes what changed, and
    /// `edit` can make further changes. If the version already lists the files, returns it
    /// unchanged.
    ///
    /// If the version exists with other files, fails with [`DataError::Conflict`].
    ///
    /// Cost: lists the folder of the job, and opens no file.
    pub fn publish(
        &self,
        schema: &Schema,
        files: &[JobFile],
        change: &str,
        edit: impl FnOnce(&mut Changes),
    ) -> Result<Dataset> {
        if let Some(published) = self.published(files)? {
            return Ok(published);
        }
        let mut changes = self.changes(schema, files)?;
        edit(&mut changes);
        match changes.publish(change) {
            Err(conflict @ DataError::Conflict { .. }) => self.published(files)?.ok_or(conflict),
            published => published,
        }
    }

    /// Returns the version that lists these files, if it is published.
    fn published(&self, files: &[JobFile]) -> Result<Option<Dataset>> {
        let versions = versions::list(&*self.store, &self.folder)?;
        let Some(&newest) = versions.last().filter(|&&newest| newest >= self.version) else { return Ok(None) };
        let version = if versions.contains(&self.version) { self.version } else { newest };
        let dataset = Dataset::open_version(&self.folder, Some(version), self.options.clone())?;
        let of_job = join(&self.folder, &self.data);
        let mut listed = BTreeMap::new();
        for group in dataset.groups() {
            let files = group?.files.into_iter().filter(|file| file.path.starts_with(&of_job));
            listed.extend(files.map(|file| (file.path, file.content_id.0)));
        }
        let expected = files.iter().map(|file| (join(&self.folder, &self.name(file.number)), file.content_id.0));
        if expected.collect::<BTreeMap<_, _>>() == listed {
            return Ok(Some(dataset));
        }
        Err(DataError::Conflict { path: self.folder.clone(), version: newest })
    }

    /// Starts the changes that make the version, and appends the files.
    fn changes(&self, schema: &Schema, files: &[JobFile]) -> Result<Changes> {
        let mut changes = match self.version {
            1 => Changes::create(&self.folder, self.options.clone())?,
            version => {
                let before = Some(version.saturating_sub(1));
                Dataset::open_version(&self.folder, before, self.options.clone())?.change()?
            }
        };
        let names = match self.store.names(&self.data) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            names => names.map_err(|error| self.failed(&self.data, "listing the folder", error))?,
        };
        let names: HashSet<String> = names.into_iter().collect();
        let ordered: BTreeMap<u32, &JobFile> = files.iter().map(|file| (file.number, file)).collect();
        if ordered.len() != files.len() {
            return Err(DataError::BadArgument("two files of a job have the same number".to_owned()));
        }
        for file in ordered.into_values() {
            // each file was durable before its `JobFile` was returned
            if !names.contains(&file_name(file.number)) {
                return Err(self.gone(file.number));
            }
            let name = self.name(file.number);
            let listed = FileEntry {
                layout: 0,
                path: name.as_str().into(),
                bytes: file.bytes,
                footer: file.footer,
                content_id: Hex(file.content_id.0),
            };
            let facts = FileFacts { samples: file.samples, schema: schema.clone(), listed };
            let refused = |what: String| DataError::BadArgument(format!("{}: {what}", self.shown(&name)));
            changes.append_facts(facts).map_err(refused)?;
        }
        Ok(changes)
    }

    /// Starts writing a file.
    fn create(&self, number: u32) -> Result<DataFile> {
        self.store.create_root().map_err(|error| DataError::Io {
            path: self.folder.clone(),
            operation: "creating the folder",
            error,
        })?;
        for folder in ["data", &self.data] {
            self.store.create_folder(folder).map_err(|error| self.failed(folder, "creating the folder", error))?;
        }
        Ok(self.store.data_file(&self.name(number))?)
    }

    /// Finds a file, and makes it durable. Returns `None` if it does not exist.
    fn find(&self, number: u32, id: Option<FileId>) -> Result<Option<JobFile>> {
        let name = self.name(number);
        match self.store.make_durable(&name) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            durable => durable.map_err(|error| self.failed(&name, "making the file durable", error))?,
        }
        let (facts, found) = FileFacts::with_id(&self.opener, &join(&self.folder, &name), &name, None)?;
        if id.is_some_and(|id| id != found) {
            let message =
                format!("{}: this file belongs to another job, as its id shows; remove it", self.shown(&name));
            return Err(DataError::BadArgument(message));
        }
        let FileFacts { samples, listed, .. } = facts;
        let content_id = ContentId(listed.content_id.0);
        Ok(Some(JobFile { number, samples, bytes: listed.bytes, footer: listed.footer, content_id }))
    }

    /// Returns the path of a file in the dataset.
    fn name(&self, number: u32) -> String {
        format!("{}/{}", self.data, file_name(number))
    }

    fn shown(&self, name: &str) -> String {
        display_path(&join(&self.folder, name)).to_string()
    }

    fn gone(&self, number: u32) -> DataError {
        let name = self.shown(&self.name(number));
        DataError::BadArgument(format!("{name}: this file of the job does not exist; run its task again"))
    }

    fn failed(&self, path: &str, operation: &'static str, error: io::Error) -> DataError {
        DataError::Io { path: join(&self.folder, path), operation, error }
    }
}

/// Returns the name of a file in the folder of its job.
fn file_name(number: u32) -> String {
    format!("{number:05}.tsl")
}
