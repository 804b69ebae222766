//! The files that a conversion to several files makes.

use crate::write::Sink;
use crate::{Error, Summary};

/// The files of a conversion to several files.
pub trait ShardFiles {
    /// The destination of a file.
    type Sink: Sink;

    /// The error of the caller, which ends the conversion.
    type Error: From<Error>;

    /// Begins the next file.
    fn begin(&mut self) -> Result<Self::Sink, Self::Error>;

    /// Takes a file that is complete.
    fn finished(&mut self, file: Summary<Self::Sink>) -> Result<(), Self::Error>;
}
