//! A dataset below a prefix of an object store.
//!
//! An object appears only if its key is free, and is then complete and durable. So this is simpler
//! than a folder: nothing has to be synced, and no temporary files are left behind. There are no
//! folders; a writer reserves a prefix by creating an object below it.

use super::{DataFile, Remote, Store};
use crate::error::{DataError, Result};
use crate::io::{Io, IoChoice, Opener, PendingReader};
use crate::manifest::join;
use crate::order::WindowSizes;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use tensilo_object::{Address, ObjectError, ObjectOptions, ObjectStorage, PendingOpen};

/// The name of the object that reserves a prefix for a writer.
const TAKEN: &str = ".taken";

/// Returns the store that a path names, or `None` if the path is not an address of an object or a
/// prefix.
pub(in crate::dataset) fn remote(path: &Path, options: &ObjectOptions) -> Result<Option<Remote>> {
    if !Address::is_url_path(path) {
        return Ok(None);
    }
    let address = Address::from_path(path).map_err(|error| DataError::BadArgument(error.to_string()))?;
    let storage = ObjectStorage::new(&address, options.clone());
    let io = io_of(storage.clone());
    let is_file = address.name().is_some_and(|name| name.ends_with(".tsl"));
    Ok(Some(Remote { store: Arc::new(Prefix { storage, address }), io, is_file }))
}

/// Returns the canonical form of a path that is an address, or `None` for a path in the file
/// system.
#[cfg(feature = "arrow")]
pub(in crate::dataset) fn address_of(path: &Path) -> Option<String> {
    Address::from_path(path).ok().map(|address| address.to_string())
}

/// Returns how the objects in a store are read.
fn io_of(storage: ObjectStorage) -> IoChoice {
    let opener = Opener::remote(move |path: &Path, end| begin(&storage, path, end));
    IoChoice::explicit(Io::Object, opener).with_reason("the files are in an object store")
}

fn begin(storage: &ObjectStorage, path: &Path, end: Option<Range<u64>>) -> PendingReader {
    let pending = Address::from_path(path).and_then(|address| storage.begin_open(&address, end));
    let path = path.to_path_buf();
    Box::new(move |options| {
        let file = pending.and_then(PendingOpen::wait);
        let file = file.map_err(|error| tensilo::Error::io("opening the object", error.into_io()).with_path(&path))?;
        options.open_source(file).map(|reader| reader.with_path(&path))
    })
}

/// A prefix of an object store.
#[derive(Debug)]
struct Prefix {
    storage: ObjectStorage,
    address: Address,
}

impl Prefix {
    /// Calls a function with the address of a path below the prefix.
    fn at<T>(&self, path: &str, act: impl FnOnce(&Address) -> std::result::Result<T, ObjectError>) -> io::Result<T> {
        self.address.join(path).and_then(|address| act(&address)).map_err(ObjectError::into_io)
    }
}

impl Store for Prefix {
    fn run_bytes(&self) -> u64 {
        WindowSizes::OBJECT_RUN_BYTES
    }

    fn reserve_memory(&self, bytes: u64) {
        self.storage.reserve_memory(bytes);
    }

    fn read(&self, path: &str, max_bytes: u64) -> io::Result<Vec<u8>> {
        self.at(path, |address| self.storage.read(address, max_bytes))
    }

    /// Fails if the key of a tensilo file directly below the prefix cannot be read. Otherwise, a
    /// dataset without a manifest would silently leave this file out.
    fn names(&self, folder: &str) -> io::Result<Vec<String>> {
        let names = self.at(folder, |address| self.storage.names(address))?;
        let unreadable = self.storage.unreadable_keys(&self.address);
        let is_file = |key: &&String| !key.contains('/') && key.ends_with(".tsl");
        match unreadable.iter().find(is_file).filter(|_| folder.is_empty()) {
            Some(key) => {
                let message = format!(
                    "the key {key:?} has a control character and cannot be read; copy the object to another key"
                );
                Err(io::Error::new(io::ErrorKind::InvalidInput, message))
            }
            None => Ok(names),
        }
    }

    /// Reserves a prefix in `data/` for the caller. Other prefixes need not be created.
    fn create_folder(&self, path: &str) -> io::Result<bool> {
        if !path.starts_with("data/") {
            return Ok(false);
        }
        match self.publish(&format!("{path}/{TAKEN}"), b"") {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn publish(&self, path: &str, bytes: &[u8]) -> io::Result<()> {
        self.at(path, |address| self.storage.create(address, bytes))
    }

    fn data_file(&self, path: &str) -> tensilo::Result<DataFile> {
        let upload = self.at(path, |address| self.storage.upload(address, false));
        let upload = upload.map_err(|error| tensilo::Error::io("creating the object", error));
        let named = |error: tensilo::Error| error.with_path(&join(Path::new(&self.address.to_string()), path));
        upload.map(DataFile::remote).map_err(named)
    }

    /// Checks that the object exists: existing objects are durable.
    fn make_durable(&self, path: &str) -> io::Result<()> {
        let bytes = self.bytes(path)?;
        if bytes > 0 { Ok(()) } else { Err(io::ErrorKind::NotFound.into()) }
    }

    fn remove(&self, path: &str) -> io::Result<()> {
        self.at(path, |address| self.storage.remove(address))
    }

    fn sync_folder(&self, _: &str) -> io::Result<()> {
        Ok(()) // names are durable when they appear
    }

    fn left_behind(&self, _: &str) -> io::Result<Vec<String>> {
        Ok(Vec::new()) // objects appear only when they are complete
    }

    fn bytes(&self, path: &str) -> io::Result<u64> {
        self.at(path, |address| self.storage.bytes(address))
    }
}
