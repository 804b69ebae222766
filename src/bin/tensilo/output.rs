//! Where data goes: the standard output, or a file that appears when it is complete.

use crate::exit::{Failure, Outcome};
use std::io::{self, BufWriter, StdoutLock, Write};
use std::path::{Path, PathBuf};
use tensilo::{AtomicFile, Sink};

/// The standard output or a file, buffered. Call [`Output::finish`] at the end: only then does the file appear.
pub(crate) enum Output {
    /// The standard output.
    Stdout(BufWriter<StdoutLock<'static>>),
    /// A file, and its name.
    File(Box<AtomicFile>, PathBuf),
}

impl Output {
    /// The standard output.
    pub(crate) fn stdout() -> Self {
        Self::Stdout(BufWriter::new(io::stdout().lock()))
    }

    /// The file at `path`, which may replace another only if `force`; without a path the standard output.
    pub(crate) fn create(path: Option<&Path>, force: bool) -> Outcome<Self> {
        match path {
            None => Ok(Self::stdout()),
            Some(path) => Ok(Self::File(Box::new(AtomicFile::create(path, force)?), path.to_path_buf())),
        }
    }

    /// Writes what is buffered, and puts the file in its place.
    pub(crate) fn finish(self) -> Outcome {
        match self {
            Self::Stdout(mut stdout) => Ok(stdout.flush()?),
            Self::File(mut file, path) => {
                file.sync()?;
                file.publish().map_err(|error| match error.kind() {
                    io::ErrorKind::AlreadyExists => Failure::exists(&path),
                    _ => Failure::from(error),
                })
            }
        }
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Stdout(stdout) => stdout.write(bytes),
            Self::File(file, _) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Stdout(stdout) => stdout.flush(),
            Self::File(file, _) => file.flush(),
        }
    }
}

/// Writes a JSON document, for people and programs, and a line feed.
pub(crate) fn write_json(output: &mut impl Write, document: &serde_json::Value) -> Outcome {
    serde_json::to_writer_pretty(&mut *output, document).map_err(io::Error::from)?;
    Ok(writeln!(output)?)
}

/// Refuses early to replace a file, before a long job is begun for nothing.
pub(crate) fn refuse_to_replace(path: &Path, force: bool) -> Outcome {
    // whatever else is the matter with the path is found when the file is created
    if !force && path.symlink_metadata().is_ok() { Err(Failure::exists(path)) } else { Ok(()) }
}
