//! Conversions to several files, which one process writes one after the other, or each of which another
//! process writes.

use crate::format::FileId;
use crate::write::Sink;
use crate::{Error, Schema, Summary};
use std::ops::Range;
use std::path::PathBuf;

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

/// The files of a conversion to several files, see [`plan_shards`](super::plan_shards).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ShardPlan {
    /// The inputs, in the order of their rows.
    pub inputs: Vec<PlannedInput>,
    /// The columns and the metadata of each file.
    pub schema: Schema,
    /// The files, in the order of their samples.
    pub shards: Vec<PlannedShard>,
}

/// An input of a [`ShardPlan`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedInput {
    /// The path.
    pub path: PathBuf,
    /// The number of its rows.
    pub rows: u64,
    /// A digest of its length and metadata. If that is another one when the input is converted, the
    /// input was replaced since it was planned, and is refused.
    pub digest: [u8; 16],
}

/// A file of a [`ShardPlan`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedShard {
    /// Its samples, among those of all inputs.
    pub rows: Range<u64>,
    /// Its id.
    pub file_id: FileId,
}
