//! The writer of an open output.

use super::descriptor::Descriptor;
use crate::failure::{Failure, Outcome};
use std::fs::File;
use std::io::{self, BufWriter, Stdout, Write};
use std::path::{Path, PathBuf};
use tensilo::sink::{AtomicFile, Sink};
use tensilo::source::FileIdentity;
use tensilo_object::ObjectUpload;

/// An open, buffered output. A file appears when [`Output::finish`] or [`Sink::publish`] is called.
#[derive(Debug)]
pub(crate) enum Output {
    /// The standard output.
    Stdout(BufWriter<Stdout>),
    /// A stream, and its name.
    Stream(BufWriter<File>, PathBuf),
    /// A file, and its name.
    File(Box<AtomicFile>, PathBuf),
    /// An object of a store, and its address. It appears as a file does.
    Object(Box<ObjectUpload>, PathBuf),
}

impl Output {
    /// Returns the standard output, for text.
    pub(crate) fn stdout() -> Self {
        Self::Stdout(BufWriter::new(io::stdout()))
    }

    /// Returns the writer for a summary: the standard output, or the standard error if the data
    /// goes to the standard output.
    pub(crate) fn summary(&self) -> Box<dyn Write> {
        let shares_stdout = match self {
            Self::Stdout(_) => true,
            Self::Stream(file, _) => Descriptor::STDOUT.is(file.get_ref()),
            Self::File(..) | Self::Object(..) => false,
        };
        if shares_stdout { Box::new(io::stderr()) } else { Box::new(Self::stdout()) }
    }

    /// Writes the buffered bytes, and publishes the file.
    pub(crate) fn finish(mut self) -> Outcome {
        let finished = self.sync().and_then(|()| self.publish());
        finished.map_err(|error| match self {
            Self::File(_, path) | Self::Object(_, path) if error.kind() == io::ErrorKind::AlreadyExists => {
                Failure::exists(&path)
            }
            Self::File(_, path) | Self::Object(_, path) | Self::Stream(_, path)
                if error.kind() != io::ErrorKind::BrokenPipe =>
            {
                Failure::output(&path, error)
            }
            _ => Failure::from(error),
        })
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Stdout(stdout) => stdout.write(bytes),
            Self::Stream(stream, _) => stream.write(bytes),
            Self::File(file, _) => file.write(bytes),
            Self::Object(object, _) => object.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Stdout(stdout) => stdout.flush(),
            Self::Stream(stream, _) => stream.flush(),
            Self::File(file, _) => file.flush(),
            Self::Object(object, _) => object.flush(),
        }
    }
}

impl Sink for Output {
    fn sync(&mut self) -> io::Result<()> {
        match self {
            Self::Stdout(_) | Self::Stream(..) => self.flush(),
            Self::File(file, _) => file.sync(),
            Self::Object(object, _) => object.sync(),
        }
    }

    fn publish(&mut self) -> io::Result<()> {
        match self {
            Self::Stdout(_) | Self::Stream(..) => Ok(()),
            Self::File(file, _) => file.publish(),
            Self::Object(object, _) => object.publish(),
        }
    }

    fn path(&self) -> Option<&Path> {
        match self {
            Self::Stdout(_) => None,
            Self::Stream(_, path) | Self::File(_, path) | Self::Object(_, path) => Some(path),
        }
    }

    fn identity(&self) -> Option<FileIdentity> {
        match self {
            Self::Stdout(_) => FileIdentity::of(&Descriptor::STDOUT.duplicate().ok()?).ok().flatten(),
            Self::Stream(file, _) => FileIdentity::of(file.get_ref()).ok().flatten(),
            Self::File(file, _) => file.identity(),
            Self::Object(..) => None,
        }
    }
}
