//! What `tensilo salvage` can be asked for.

use crate::encoding::EncodingArgs;
use clap::Args;
use std::path::PathBuf;

const SALVAGE: &str = "\
Examples:
  tensilo salvage broken.tsl                    what is lost
  tensilo salvage broken.tsl -o whole.tsl       and a file of what is left
  tensilo salvage broken.tsl -o whole.tsl --json | jq '.columns[].lost'

Finds every chunk that is intact, wherever header, index, footers or trailers
are damaged, cut off or missing, and after a writer that was killed. Chunks are
copied as they are stored. Only without header and without any footer nothing
can be done: the columns are then unknown.

Samples that a column has lost become nulls in it, and all samples keep their
numbers; with --leave-out, samples that any column has lost are left out, and
those after them get other numbers. How to encode only matters to the nulls,
and to chunks that samples are left out of. BROKEN.tsl is never changed.

Exits with 1 if a sample is lost, or may be at the end; what is left has been
written all the same.

JSON, schema tensilo.salvage/1 (members may be added, those named here stay):
  schema, ok, file_bytes, sample_count
  header_is_intact   if not, the schema is that of a footer
  committed_samples  up to the last commit whose footer is intact, or null
  end_is_known       false: there may have been more samples at the end
  columns: [{ name, chunk_count, stored_bytes, lost_count,
    lost     [[first, end], ...] sample numbers, end not included }]
  output             null, or { path, file_bytes, sample_count, file_id }";

/// `tensilo salvage`
#[derive(Args, Debug)]
#[command(after_help = SALVAGE)]
pub(crate) struct SalvageArgs {
    /// A damaged tensilo file
    #[arg(value_name = "BROKEN.tsl")]
    pub(crate) file: PathBuf,
    /// The file to write, - is the standard output; without it, only tell what is lost
    #[arg(short, long, value_name = "OUT.tsl")]
    pub(crate) output: Option<PathBuf>,
    /// Print a JSON document
    #[arg(long)]
    pub(crate) json: bool,
    /// Leave out the samples that any column has lost, instead of making them null in that column
    #[arg(long)]
    pub(crate) leave_out: bool,
    /// Replace OUT.tsl if it exists; write binary data to a terminal
    #[arg(short, long, requires = "output")]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) encoding: EncodingArgs,
}
