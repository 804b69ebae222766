//! The destination of a writer's bytes.

use crate::open::FileIdentity;
use std::io::{self, Write};
use std::path::Path;

/// The destination of a [`Writer`](crate::Writer), which writes a file from front to back.
///
/// [`AtomicFile`](crate::write::AtomicFile) and [`AppendedFile`](crate::write::AppendedFile) are
/// files, [`Stream`] is any other [`Write`].
pub trait Sink: Write {
    /// Makes all bytes durable that were written so far. Called twice for each commit: before and
    /// after the trailer is written.
    fn sync(&mut self) -> io::Result<()>;

    /// Makes the file visible to others. Called after each commit.
    fn publish(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// Returns the path of the file, for errors; `None` if there is none.
    fn path(&self) -> Option<&Path> {
        None
    }

    /// Returns the identity of the file that is written to or will be replaced, which no input may
    /// be; `None` if there is none. The default is that of the file at [`Sink::path`].
    fn identity(&self) -> Option<FileIdentity> {
        FileIdentity::at(self.path()?).ok().flatten()
    }
}

/// Any [`Write`] as a sink: a pipe, a socket, a `Vec<u8>`. A commit flushes it, which need not make
/// bytes durable.
#[derive(Debug)]
pub struct Stream<W>(pub W);

impl<W: Write> Write for Stream<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl<W: Write> Sink for Stream<W> {
    fn sync(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Implements [`Write`] and [`Sink`] for a file by its only field.
macro_rules! sink_of_field {
    ($file:ty) => {
        impl Write for $file {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                self.0.write(bytes)
            }

            fn flush(&mut self) -> io::Result<()> {
                self.0.flush()
            }
        }

        impl Sink for $file {
            fn sync(&mut self) -> io::Result<()> {
                self.0.sync()
            }

            fn publish(&mut self) -> io::Result<()> {
                self.0.publish()
            }

            fn path(&self) -> Option<&Path> {
                self.0.path()
            }
        }
    };
}

pub(super) use sink_of_field;
