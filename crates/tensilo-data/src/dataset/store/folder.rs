//! A dataset in a folder of a file system.
//!
//! A file is published by linking a temporary file to a name that does not exist yet, which the
//! file system does in one step. A name is durable only after its folder was synced, so each
//! operation except removal syncs the folders that it changes.

use super::{DataFile, Store};
use crate::manifest::join;
use std::collections::BTreeSet;
use std::error::Error as _;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use tensilo::sink::{AtomicFile, Sink};

/// A folder.
#[derive(Debug)]
pub(in crate::dataset) struct Folder(pub PathBuf);

impl Store for Folder {
    fn read(&self, path: &str, max_bytes: u64) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let file = File::open(join(&self.0, path))?;
        file.take(max_bytes.saturating_add(1)).read_to_end(&mut bytes)?;
        if u64::try_from(bytes.len()).is_ok_and(|length| length <= max_bytes) {
            Ok(bytes)
        } else {
            Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("the file has more than {max_bytes} bytes")))
        }
    }

    fn names(&self, folder: &str) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(join(&self.0, folder))? {
            names.extend(entry?.file_name().into_string()); // names that are not UTF-8 are not part of a dataset
        }
        Ok(names)
    }

    fn create_root(&self) -> io::Result<Vec<PathBuf>> {
        create_root(&self.0)
    }

    fn create_folder(&self, path: &str) -> io::Result<bool> {
        let path = join(&self.0, path);
        let is_new = match fs::create_dir(&path) {
            Ok(()) => true,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => false,
            Err(error) => return Err(error),
        };
        sync_folder_of(&path)?;
        Ok(is_new)
    }

    fn publish(&self, path: &str, bytes: &[u8]) -> io::Result<()> {
        let path = join(&self.0, path);
        let written = write(&path, bytes);
        if written.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::AlreadyExists) {
            sync_folder_of(&path)?; // its writer may not have synced it yet
        }
        written
    }

    fn data_file(&self, path: &str) -> tensilo::Result<DataFile> {
        DataFile::local(&join(&self.0, path), false)
    }

    fn make_durable(&self, path: &str) -> io::Result<()> {
        let path = join(&self.0, path);
        File::open(&path)?.sync_all()?;
        let mut folders = path.ancestors().skip(1).take_while(|folder| folder.starts_with(&self.0));
        folders.try_for_each(sync_folder)
    }

    fn remove(&self, path: &str) -> io::Result<()> {
        refuse_links(&self.0, path)?;
        let path = join(&self.0, path);
        let removed = match fs::symlink_metadata(&path) {
            Ok(found) if found.is_dir() => fs::remove_dir_all(path),
            found => found.and_then(|_| fs::remove_file(path)),
        };
        or_nothing(removed)
    }

    fn sync_folder(&self, path: &str) -> io::Result<()> {
        sync_folder(&join(&self.0, path))
    }

    fn left_behind(&self, folder: &str) -> io::Result<Vec<String>> {
        // a temporary file of NAME is `.NAME.random.tmp`
        let destination =
            |name: String| Some(name.strip_prefix('.')?.strip_suffix(".tmp")?.rsplit_once('.')?.0.to_owned());
        let destinations: BTreeSet<String> =
            or_nothing(self.names(folder))?.into_iter().filter_map(destination).collect();
        let mut found = Vec::new();
        for name in destinations {
            let left = AtomicFile::left_behind(join(&self.0, folder).join(name)).map_err(io::Error::other)?;
            let names = left.iter().filter_map(|path| path.file_name()?.to_str());
            found.extend(names.map(|name| format!("{folder}/{name}")));
        }
        Ok(found)
    }

    fn bytes(&self, path: &str) -> io::Result<u64> {
        or_nothing(bytes(&join(&self.0, path)))
    }
}

/// Returns the result of an operation, or the default if the file does not exist.
fn or_nothing<T: Default>(result: io::Result<T>) -> io::Result<T> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(T::default()),
        result => result,
    }
}

fn bytes(path: &Path) -> io::Result<u64> {
    let found = fs::symlink_metadata(path)?;
    if !found.is_dir() {
        return Ok(found.len());
    }
    let mut sum = 0_u64;
    for entry in fs::read_dir(path)? {
        sum = sum.saturating_add(bytes(&entry?.path())?);
    }
    Ok(sum)
}

fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = AtomicFile::create(path, false).map_err(|error| match error.source() {
        Some(source) => match source.downcast_ref::<io::Error>() {
            Some(source) => io::Error::new(source.kind(), error),
            None => io::Error::other(error),
        },
        None => io::Error::other(error),
    })?;
    file.write_all(bytes)?;
    file.flush()?;
    file.sync()?;
    file.publish()
}

/// Fails if a folder between the dataset and the path is a symbolic link, because other datasets
/// may use the files behind it.
fn refuse_links(folder: &Path, path: &str) -> io::Result<()> {
    let path = join(folder, path);
    let between = path.ancestors().skip(1).take_while(|found| *found != folder && found.starts_with(folder));
    for found in between {
        if fs::symlink_metadata(found).is_ok_and(|metadata| metadata.file_type().is_symlink()) {
            return Err(io::Error::other(format!(
                "{} is a symbolic link, and files behind it are not removed, because another dataset may use them",
                found.display()
            )));
        }
    }
    Ok(())
}

/// Creates a folder and its missing parents, durably. Returns the created folders, innermost first.
fn create_root(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let missing = folder.ancestors().take_while(|folder| !folder.as_os_str().is_empty() && !folder.exists());
    let missing: Vec<PathBuf> = missing.map(Path::to_path_buf).collect();
    fs::create_dir_all(folder)?;
    missing.iter().try_for_each(|made| sync_folder_of(made))?;
    Ok(missing)
}

fn sync_folder_of(path: &Path) -> io::Result<()> {
    path.parent().map_or(Ok(()), sync_folder)
}

#[cfg(unix)]
fn sync_folder(folder: &Path) -> io::Result<()> {
    let is_current = folder.as_os_str().is_empty();
    File::open(if is_current { Path::new(".") } else { folder })?.sync_all()
}

#[cfg(not(unix))]
fn sync_folder(_: &Path) -> io::Result<()> {
    Ok(())
}
