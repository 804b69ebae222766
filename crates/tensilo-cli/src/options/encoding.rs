//! Encoding options of the commands that write tensilo files.

use super::values::{self, BlockBytes};
use clap::Args;
use std::num::NonZeroUsize;
use tensilo::{Profile, WriterOptions};

/// The encoding options of `convert`, `append` and `salvage`.
#[derive(Args, Debug)]
#[command(next_help_heading = "Encoding")]
pub(crate) struct EncodingArgs {
    /// The trade-off between size and speed; "inspect --explain" shows the result of each
    #[arg(long, value_parser = values::profiles(), default_value = Profile::default().name())]
    pub(crate) profile: Profile,
    /// The profile of one column, such as mel=small; repeatable
    #[arg(long, value_name = "NAME=PROFILE", value_parser = values::column_profile)]
    pub(crate) column_profile: Vec<(String, Profile)>,
    /// Decoded bytes of a chunk, such as 65536, 64KiB or 1MiB. If chunks have no blocks, one random
    /// sample costs as much to read [default: 64KiB, with --profile small 512KiB, of text
    /// 256KiB]
    #[arg(long, value_name = "N", value_parser = values::chunk_bytes)]
    pub(crate) chunk_bytes: Option<usize>,
    /// Decoded bytes of a block, 1KiB to 512KiB, or "none": the parts of a chunk that are read and
    /// checked alone. Smaller blocks: less is read for one sample, more bytes are stored
    /// [default: 8KiB, with --profile small 64KiB, with bitshuffle-zstd none]
    #[arg(long, value_name = "N", value_parser = values::block_bytes)]
    pub(crate) block_bytes: Option<BlockBytes>,
    /// Do not decode each chunk and compare it with its input: slightly faster, but faults of
    /// memory or processor can get into the file
    #[arg(long)]
    pub(crate) no_check: bool,
    /// Threads that encode, and as many that read Parquet; the output does not depend on it
    /// [default: all cores]
    #[arg(long, value_name = "N")]
    pub(crate) threads: Option<NonZeroUsize>,
}

impl EncodingArgs {
    /// Returns the options as the library takes them.
    pub(crate) fn writer_options(&self) -> WriterOptions {
        let options = WriterOptions::new().profile(self.profile).threads(values::threads(self.threads));
        let options = options.check_chunks(!self.no_check);
        let options = self
            .column_profile
            .iter()
            .fold(options, |options, (column, profile)| options.column_profile(column, *profile));
        let options = match self.chunk_bytes {
            Some(bytes) => options.chunk_bytes(bytes),
            None => options, // the default of the profile
        };
        match self.block_bytes {
            Some(BlockBytes(bytes)) => options.block_bytes(bytes),
            None => options, // the default of the profile
        }
    }
}
