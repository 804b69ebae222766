//! Distributed conversion by many processes, see `tensilo.distributed`.
//!
//! One process plans which rows go to which file, with file ids that do not depend on the writer.
//! Any process can write a file of the plan, even if another process has already written it. One
//! process publishes the version. Frameworks such as Ray and Spark send work between processes, so
//! these functions take and return plain values.

use crate::arguments::{ByteCount, Threads};
use crate::error::{OrRaise, Result};
use crate::schema::Schema;
use crate::work;
use crate::write::convert::{Conversion, update};
use crate::write::inputs::{Inputs, UnreadableObjects, formats};
use crate::write::options::{
    Profiles, has_manifest, null_elements, paths, refuse_manifest, source_date_epoch, writer_options,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use tensilo::Error;
use tensilo::facts::{ContentId, FileId};
use tensilo::import::{self, AppendOptions, PlannedInput, ShardPlan};
use tensilo_data::{Dataset, DatasetOptions, JobFile, WriteJob};
use tensilo_object::{Address, ObjectOptions, ObjectStorage};

/// An input: path, rows and digest. The path is a string, because `pathlib` would change a URL.
type Input = (OsString, u64, [u8; 16]);

/// A plan: the inputs, the schema, and the first row, end row and id of each file.
type Plan = (Vec<Input>, Schema, Vec<(u64, u64, [u8; 12])>);

/// A written file: its number, number of samples, size in bytes, footer offset and content id.
type File = (u32, u64, u64, u64, [u8; 16]);

/// A job: folder, version and number.
#[derive(FromPyObject)]
pub struct Job(PathBuf, u64, u64);

impl Job {
    fn open(&self) -> Result<WriteJob> {
        DatasetOptions::new().job(&self.0, self.1, self.2)
    }
}

fn plan_of(plan: ShardPlan) -> Plan {
    let inputs = plan.inputs.into_iter().map(|input| (input.path.into_os_string(), input.rows, input.digest));
    let shards = plan.shards.into_iter().map(|shard| (shard.rows.start, shard.rows.end, shard.file_id.0));
    (inputs.collect(), Schema(plan.schema), shards.collect())
}

fn file_of(file: &JobFile) -> File {
    (file.number, file.samples, file.bytes, file.footer, file.content_id.0)
}

/// Plans the files of a new dataset.
#[pyfunction]
pub fn _plan(
    py: Python<'_>,
    inputs: Bound<'_, PyAny>,
    output: PathBuf,
    options: Conversion<'_>,
    shard_bytes: ByteCount,
    threads: Threads,
    progress: Option<Py<PyAny>>,
) -> PyResult<Plan> {
    refuse_manifest(&output)?;
    let inputs = Inputs::from_object(&inputs, &output)?;
    let options = options.to_options(&inputs, &threads)?;
    let (inputs, unreadable) = (inputs.paths, inputs.unreadable);
    let planned = work::run(py, progress.as_ref(), move |progress| {
        let plan = import::plan_shards(&inputs, shard_bytes.0, &options, &mut |at| update(progress, at))?;
        Ok(plan_of(plan))
    });
    unreadable.warned(py, planned)
}

/// Plans the files of an append. Returns the plan and the version that the append creates.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "one parameter per Python argument")]
pub fn _plan_append(
    py: Python<'_>,
    target: PathBuf,
    inputs: Bound<'_, PyAny>,
    skip_extra_columns: bool,
    null_elements: &str,
    profile: Profiles,
    shard_bytes: ByteCount,
    threads: Threads,
    progress: Option<Py<PyAny>>,
) -> PyResult<(Plan, u64)> {
    if !has_manifest(&target) {
        let message = format!("{}: not a dataset with a manifest, so files cannot be appended", target.display());
        return Err(PyValueError::new_err(message));
    }
    let inputs = paths(&inputs)?;
    let options =
        AppendOptions::new().skip_extra_columns(skip_extra_columns).writer(writer_options(&profile, &threads)?);
    let unreadable = UnreadableObjects::default();
    let options = options.null_elements(self::null_elements(null_elements)?).formats(formats(false));
    let options = options.store(unreadable.store());
    let planned = work::run(py, progress.as_ref(), move |progress| {
        let dataset = Dataset::open(&target)?;
        let mut update = |at| update(progress, at);
        let (schema, table) = (dataset.schema(), target.as_path());
        let plan = import::plan_appended_shards(&inputs, schema, table, shard_bytes.0, &options, &mut update)?;
        Ok((plan_of(plan), dataset.version().saturating_add(1)))
    });
    unreadable.warned(py, planned)
}

/// Writes a file of a plan unless it exists.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "one parameter per Python argument")]
pub fn _run_task(
    py: Python<'_>,
    job: Job,
    number: u32,
    inputs: Vec<Input>,
    rows: (u64, u64),
    schema: &Schema,
    file_id: [u8; 12],
    null_elements: &str,
    profile: Profiles,
    threads: Threads,
    skip_extra_columns: bool,
) -> PyResult<File> {
    let id = FileId(file_id);
    let options =
        AppendOptions::new().skip_extra_columns(skip_extra_columns).null_elements(self::null_elements(null_elements)?);
    let options = options.writer(writer_options(&profile, &threads)?.file_id(id)).formats(formats(false));
    let options = options.store(UnreadableObjects::default().store()); // planning has already warned
    let input = |(path, rows, digest): Input| PlannedInput { path: path.into(), rows, digest };
    let inputs: Vec<PlannedInput> = inputs.into_iter().map(input).collect();
    work::run(py, None, move |progress| {
        let write = |file| {
            let table = job.0.as_path();
            let mut update = |at| update(progress, at);
            import::convert_rows(&inputs, rows.0..rows.1, &schema.0, table, file, &options, &mut update)?;
            Ok(())
        };
        Ok(file_of(&job.open()?.write(number, Some(id), write)?))
    })
}

/// Converts files or Arrow data to a file of a job unless it exists. Returns the file and its
/// schema.
#[pyfunction]
pub fn _write_task(
    py: Python<'_>,
    job: Job,
    number: u32,
    inputs: Bound<'_, PyAny>,
    options: Conversion<'_>,
    threads: Threads,
) -> PyResult<(File, Schema)> {
    let inputs = Inputs::from_object(&inputs, &std::env::temp_dir().join("input"))?;
    let options = options.to_options(&inputs, &threads)?;
    let (inputs, unreadable) = (inputs.paths, inputs.unreadable);
    let written = work::run(py, None, move |progress| {
        let job = job.open()?;
        let file = job.write(number, None, |file| {
            import::convert_into(&inputs, file, &options, &mut |at| update(progress, at))?;
            Ok(())
        })?;
        Ok((file_of(&file), Schema(job.schema_of(number)?)))
    });
    unreadable.warned(py, written)
}

/// Publishes the files of a job unless they are published already. Returns the version.
#[pyfunction]
pub fn _publish(py: Python<'_>, job: Job, schema: &Schema, files: Vec<File>, change: &str) -> PyResult<u64> {
    let file = |(number, samples, bytes, footer, content_id)| {
        let content_id = ContentId(content_id);
        JobFile { number, samples, bytes, footer, content_id }
    };
    let files: Vec<JobFile> = files.into_iter().map(file).collect();
    work::run(py, None, move |_| {
        let time = source_date_epoch()?;
        let dataset = job.open()?.publish(&schema.0, &files, change, |changes| {
            if let Some(time) = time {
                changes.set_time(Some(time));
            }
        })?;
        Ok(dataset.version())
    })
}

/// Returns whether a folder has a dataset with a manifest.
#[pyfunction]
pub fn _has_manifest(py: Python<'_>, folder: PathBuf) -> bool {
    py.detach(|| has_manifest(Path::new(&folder)))
}

/// Returns a string that changes when an object is replaced; `None` if the store provides none.
#[pyfunction]
pub fn _object_version(py: Python<'_>, address: PathBuf) -> PyResult<Option<String>> {
    py.detach(|| {
        let address = Address::from_path(&address)?;
        ObjectStorage::new(&address, ObjectOptions::new()).version(&address)
    })
    .map_err(|error| Error::io("reading the metadata of the object", error.into_io()))
    .or_raise(py)
}
