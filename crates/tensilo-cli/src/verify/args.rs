//! The arguments of `tensilo verify`.

use clap::Args;
use std::num::NonZeroUsize;
use std::path::PathBuf;

const VERIFY: &str = "\
Examples:
  tensilo verify train.tsl           every byte: checksums, structure, padding
  tensilo verify train.tsl --deep    also decode every chunk
  tensilo verify train.tsl --json | jq '.damages[].samples'
  tensilo verify train/              a dataset: its manifest and all its files
  tensilo verify 'train/*.tsl'       all files that match

Exits with 1 if anything is damaged, and with 5 if all samples of the last
commit are intact, but a writer has not finished: it is at work, or was stopped.
Also checks files that are too damaged to be opened.

Of a chunk in blocks, only the damaged blocks are named, and the samples with a
byte in them, unless its front is damaged too.

JSON, schema tensilo.verify/1 (members may be added; those named here stay):
  schema, ok, file_bytes, chunk_count, sample_count
  state    ok, unfinished or damaged; ok is false for the last two
  damages: [{ offset, bytes, message,
    kind     damaged; or uncommitted: bytes that an append has not committed;
             or unfinished: the last commit is intact, but the writer has not
             written the final one
    region   header, chunk, index page, ...; null if unknown
    column   the column of the chunk or index, or null
    samples  [first, end] of lost or doubtful samples, end excluded, or null;
             of blocks, empty samples between them are not lost
    rule     of the format specification, or null }]
Of a dataset, schema tensilo.verify-dataset/1:
  schema, ok, state, version
  files: [{ path, and the members above; of a file that is not the one in the
            manifest, a message instead }]";

/// The arguments of `tensilo verify`.
#[derive(Args, Debug)]
#[command(after_help = VERIFY)]
pub(crate) struct VerifyArgs {
    /// A tensilo file, the folder of a dataset, or a quoted glob of files
    pub(crate) file: PathBuf,
    /// Print a JSON document
    #[arg(long)]
    pub(crate) json: bool,
    /// Also decode every chunk, and check its content
    #[arg(long)]
    pub(crate) deep: bool,
    /// Threads that check; the report does not depend on it [default: all cores]
    #[arg(long, value_name = "N")]
    pub(crate) threads: Option<NonZeroUsize>,
}
