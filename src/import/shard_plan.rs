//! The plan of a conversion to several files, each of which another process can write.

use crate::Schema;
use crate::format::FileId;
use std::ops::Range;
use std::path::PathBuf;

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
