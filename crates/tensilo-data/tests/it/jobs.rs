//! Versions whose files many processes write.

use crate::common::{check_all, create, files_below, numbers, read, second_reader};
use std::cell::Cell;
use std::fs;
use std::path::Path;
use tensilo::facts::FileId;
use tensilo::{ColumnBatch, Schema, Writer, WriterOptions};
use tensilo_data::{DataError, Dataset, DatasetOptions, Garbage, JobFile, WriteJob};
use tensilo_testing::Folder;

const JOB: u64 = 1 << 40;

fn schema() -> Schema {
    Schema::new([numbers("x")])
}

fn job(folder: &Path, version: u64) -> WriteJob {
    DatasetOptions::new().job(folder, version, JOB).unwrap()
}

/// Writes a file of samples that start with `10 * number`.
fn write(job: &WriteJob, number: u32) -> Result<JobFile, DataError> {
    job.write(number, Some(FileId([7; 12])), |file| {
        let options = WriterOptions::new().file_id(FileId([7; 12]));
        let mut writer = Writer::new(file, schema(), &options)?;
        let samples: Vec<u32> = (0..10).map(|i| 10 * number + i).collect();
        writer.push_batch(&[ColumnBatch::fixed(10, &samples)])?;
        writer.finish()?;
        Ok(())
    })
}

fn publish(folder: &Path, version: u64, files: &[JobFile]) -> Result<Dataset, DataError> {
    job(folder, version).publish(&schema(), files, "job", |changes| changes.set_time(None))
}

#[test]
fn a_version_is_that_of_one_writer() {
    let folder = Folder::new();
    let many = folder.path("many");
    // in any order, and some of them twice
    let files: Vec<JobFile> = [2, 0, 1].map(|number| write(&job(&many, 1), number).unwrap()).into();
    assert_eq!(write(&job(&many, 1), 2).unwrap(), files[0]);
    assert!(Dataset::open(&many).is_err(), "nothing is visible yet");
    let dataset = publish(&many, 1, &files).unwrap();
    let one = create(&folder.path("one"), &[10, 10, 10]);
    assert_eq!((dataset.schema(), dataset.window_sizes()), (one.schema(), one.window_sizes()));
    for sample in 0..30 {
        assert_eq!(read(&dataset, "x", sample).unwrap(), Some(sample as u32));
    }
    check_all(&dataset).unwrap();
    second_reader(&many);

    // the next version of a dataset
    let more = write(&job(&folder.path("one"), 2), 3).unwrap();
    let next = publish(&folder.path("one"), 2, &[more]).unwrap();
    assert_eq!((next.version(), next.sample_count(), next.parent()), (2, 40, Some(1)));
    assert_eq!(read(&next, "x", 35).unwrap(), Some(35));
    second_reader(&folder.path("one"));
}

#[test]
fn a_file_that_exists_is_not_written_again() {
    let folder = Folder::new();
    let written = write(&job(folder.root(), 1), 0).unwrap();
    let called = Cell::new(false);
    let found = job(folder.root(), 1).write(0, Some(FileId([7; 12])), |_| {
        called.set(true);
        Ok(())
    });
    assert_eq!((found.unwrap(), called.get()), (written.clone(), false));
    // another process is faster
    let found = job(folder.root(), 1).write(1, None, |file| {
        write(&job(folder.root(), 1), 1)?;
        Writer::new(file, schema(), &WriterOptions::new())?.finish()?;
        Ok(())
    });
    assert_eq!(found.unwrap().samples, 10);
    let other = job(folder.root(), 1).write(0, Some(FileId([8; 12])), |_| Ok(()));
    assert!(other.unwrap_err().to_string().contains("belongs to another job"));
    let nothing = job(folder.root(), 1).write(5, None, |_| Ok(()));
    assert!(nothing.unwrap_err().to_string().contains("00005.tsl: this file of the job does not exist"));
}

#[test]
fn a_version_is_published_once() {
    let folder = Folder::new();
    let files: Vec<JobFile> = (0..3).map(|number| write(&job(folder.root(), 1), number).unwrap()).collect();
    publish(folder.root(), 1, &files).unwrap();
    let before = files_below(folder.root());
    assert_eq!(publish(folder.root(), 1, &files).unwrap().version(), 1);
    assert_eq!(files_below(folder.root()), before);
    // not with other files
    let conflict = publish(folder.root(), 1, &files[..2]);
    assert!(matches!(conflict, Err(DataError::Conflict { version: 1, .. })), "{conflict:?}");
    // when it is no longer the newest, and when it is gone
    let mut changes = Dataset::open(folder.root()).unwrap().change().unwrap();
    changes.rename_column("x", "y").unwrap();
    changes.publish("rename").unwrap();
    assert_eq!(publish(folder.root(), 1, &files).unwrap().version(), 1);
    Garbage::find(folder.root(), 1).unwrap().remove().unwrap();
    assert_eq!(publish(folder.root(), 1, &files).unwrap().version(), 2);
}

#[test]
fn files_of_jobs_that_were_given_up_are_garbage() {
    let folder = Folder::new();
    create(folder.root(), &[4]);
    let file = write(&job(folder.root(), 2), 0).unwrap();
    assert!(Garbage::find(folder.root(), 1).unwrap().paths.is_empty(), "the job is running");
    let mut changes = Dataset::open(folder.root()).unwrap().change().unwrap();
    changes.rename_column("x", "y").unwrap();
    changes.publish("rename").unwrap();
    let conflict = publish(folder.root(), 2, std::slice::from_ref(&file));
    assert!(matches!(conflict, Err(DataError::Conflict { version: 2, .. })), "{conflict:?}");
    let garbage = Garbage::find(folder.root(), u64::MAX).unwrap();
    assert_eq!(garbage.paths, [folder.path(format!("data/0000000002-{JOB}"))]);
    garbage.remove().unwrap();
    check_all(&Dataset::open(folder.root()).unwrap()).unwrap();
}

#[test]
fn what_is_missing_or_wrong_is_refused() {
    let folder = Folder::new();
    let files: Vec<JobFile> = (0..2).map(|number| write(&job(folder.root(), 1), number).unwrap()).collect();
    let refused = |files: &[JobFile]| publish(folder.root(), 1, files).unwrap_err().to_string();
    assert!(refused(&[files[0].clone(), files[0].clone()]).contains("the same number"));
    fs::remove_file(folder.path(format!("data/0000000001-{JOB}/00001.tsl"))).unwrap();
    assert!(refused(&files).contains("00001.tsl: this file of the job does not exist; run its task again"));
    assert!(!folder.path("manifest").exists());
    for (version, number) in [(0, JOB), (1, 7), (1, u64::from(u32::MAX))] {
        assert!(DatasetOptions::new().job(folder.root(), version, number).is_err());
    }
    let early = publish(folder.root(), 3, &files[..1]).unwrap_err().to_string();
    assert!(early.contains("version 2 does not exist") || early.contains("neither a manifest"), "{early}");
}
