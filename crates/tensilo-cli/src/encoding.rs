//! How chunks are encoded: options of all commands that write tensilo files.

use crate::parse;
use clap::Args;
use std::num::NonZeroUsize;
use tensilo::{Profile, WriterOptions};

/// Options of `convert`, `append` and `salvage`.
#[derive(Args, Debug)]
#[command(next_help_heading = "Encoding")]
pub(crate) struct EncodingArgs {
    /// What to trade for what; "inspect --explain" shows what each would give
    #[arg(long, value_parser = parse::profiles(), default_value = Profile::default().name())]
    pub(crate) profile: Profile,
    /// Decoded bytes of a chunk, such as 65536, 64KiB or 1MiB: what one random sample costs to read [default: 64KiB,
    /// with --profile small 256KiB]
    #[arg(long, value_name = "N", value_parser = parse::chunk_bytes)]
    pub(crate) chunk_bytes: Option<usize>,
    /// Do not decode each chunk again to compare it with what was encoded: a little faster, and errors of memory or
    /// processor can get into the file
    #[arg(long)]
    pub(crate) no_check: bool,
    /// Threads that encode; the bytes written do not depend on it [default: all cores]
    #[arg(long, value_name = "N")]
    pub(crate) threads: Option<NonZeroUsize>,
}

impl EncodingArgs {
    /// What the library is told.
    pub(crate) fn writer_options(&self) -> WriterOptions {
        let options = WriterOptions::new().profile(self.profile).threads(parse::threads(self.threads));
        let options = options.check_chunks(!self.no_check);
        match self.chunk_bytes {
            Some(bytes) => options.chunk_bytes(bytes),
            None => options, // the profile's own
        }
    }
}
