//! The files of a conversion: which they are, what they are.

use super::source::{Source, guard};
use super::{ipc, parquet};
use crate::{Error, Result};
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use tempfile::TempPath;

/// A file, open for as many passes as needed.
pub(super) struct Input {
    source: Box<dyn Source>,
    origin: Vec<u8>,
    /// Where a pipe's bytes are kept.
    _copy: Option<TempPath>,
}

impl Input {
    pub(super) fn source(&self) -> &dyn Source {
        &*self.source
    }
}

/// Where a file is read, and what it is called in errors.
#[derive(Clone, Debug)]
pub(super) struct Place {
    /// As the caller named it.
    pub name: PathBuf,
    /// The same, or a copy.
    pub path: PathBuf,
}

impl Place {
    pub(super) fn open(&self) -> Result<File> {
        File::open(&self.path).map_err(|error| self.io("opening the file", error))
    }

    pub(super) fn io(&self, doing: &str, error: io::Error) -> Error {
        Error::io(doing, error).with_path(&self.name)
    }
}

/// Opens all inputs; those of a folder or glob one after the other.
pub(super) fn open_all(inputs: &[PathBuf]) -> Result<Vec<Input>> {
    let mut out = Vec::new();
    for input in inputs {
        for path in expand(input)? {
            out.push(open(path)?);
        }
    }
    if out.is_empty() {
        return Err(Error::bad_argument("there is no input"));
    }
    Ok(out)
}

/// What the ids of files made from these inputs depend on: nothing but the inputs' bytes.
pub(super) fn origin(inputs: &[Input]) -> Vec<u8> {
    let mut out = Vec::new();
    for input in inputs {
        out.extend((input.origin.len() as u64).to_le_bytes()); // exact: usize has at most 64 bits
        out.extend(&input.origin);
    }
    out
}

fn expand(input: &Path) -> Result<Vec<PathBuf>> {
    match fs::metadata(input) {
        Ok(metadata) if metadata.is_dir() => in_folder(input),
        Ok(_) => Ok(vec![input.to_path_buf()]),
        Err(error) if error.kind() == io::ErrorKind::NotFound && has_wildcard(input) => parquet::glob(input),
        Err(error) => Err(Error::io("opening the input", error).with_path(input)),
    }
}

fn has_wildcard(path: &Path) -> bool {
    path.to_string_lossy().contains(['*', '?', '['])
}

/// The Parquet files directly in a folder, in the byte order of their names.
fn in_folder(folder: &Path) -> Result<Vec<PathBuf>> {
    let list = || -> io::Result<Vec<PathBuf>> {
        let entries: Vec<PathBuf> = fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<io::Result<_>>()?;
        Ok(entries.into_iter().filter(|path| is_visible_parquet(path)).collect())
    };
    let mut paths = list().map_err(|error| Error::io("listing the folder", error).with_path(folder))?;
    if paths.is_empty() {
        return Err(Error::bad_input("the folder has no *.parquet file").with_path(folder));
    }
    paths.sort_by(|a, b| a.file_name().cmp(&b.file_name()));
    Ok(paths)
}

fn is_visible_parquet(path: &Path) -> bool {
    let hidden = path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
    !hidden && path.extension().is_some_and(|extension| extension == "parquet") && path.is_file()
}

fn open(name: PathBuf) -> Result<Input> {
    let metadata = fs::metadata(&name).map_err(|error| Error::io("opening the input", error).with_path(&name))?;
    let (path, copy) = if metadata.is_file() {
        (name.clone(), None)
    } else {
        let copy = spool(&name).map_err(|error| Error::io("copying the stream", error).with_path(&name))?;
        (copy.to_path_buf(), Some(copy))
    };
    let place = Place { name, path };
    let recognised = guard(|| recognise(&place)).map_err(|error| error.with_path(&place.name));
    let (source, origin) = recognised?;
    Ok(Input { source, origin, _copy: copy })
}

/// A pipe can be read once, and shapes take two passes.
fn spool(pipe: &Path) -> io::Result<TempPath> {
    let mut copy = tempfile::NamedTempFile::new()?;
    io::copy(&mut File::open(pipe)?, &mut copy)?;
    Ok(copy.into_temp_path())
}

/// What sort of file it is, by its first bytes.
fn recognise(place: &Place) -> Result<(Box<dyn Source>, Vec<u8>)> {
    let mut file = place.open()?;
    let mut magic = Vec::new();
    (&mut file).take(8).read_to_end(&mut magic).map_err(|error| place.io("reading the file", error))?;
    match magic.as_slice() {
        [b'P', b'A', b'R', b'1', ..] => parquet::open(place),
        [b'P', b'A', b'R', b'E', ..] => Err(Error::bad_input("the Parquet file is encrypted, which cannot be read")),
        [b'A', b'R', b'R', b'O', b'W', b'1', ..] => Ok((ipc::open_file(place)?, ends(place, &file)?)),
        _ => Ok((ipc::open_stream(place)?, ends(place, &file)?)),
    }
}

/// Length, first and last bytes of a file: schema, some data, and the footer.
fn ends(place: &Place, file: &File) -> Result<Vec<u8>> {
    const END_BYTES: u64 = 64 << 10;
    let read = || -> io::Result<Vec<u8>> {
        let (mut file, length) = (file, file.metadata()?.len());
        let mut out = length.to_le_bytes().to_vec();
        file.seek(SeekFrom::Start(0))?;
        file.take(END_BYTES).read_to_end(&mut out)?;
        file.seek(SeekFrom::Start(length.saturating_sub(END_BYTES)))?;
        file.take(END_BYTES).read_to_end(&mut out)?;
        Ok(out)
    };
    read().map_err(|error| place.io("reading the file", error))
}
