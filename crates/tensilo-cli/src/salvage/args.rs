//! The arguments of `tensilo salvage`.

use crate::options::EncodingArgs;
use clap::Args;
use std::path::PathBuf;

const SALVAGE: &str = "\
Examples:
  tensilo salvage broken.tsl                    list the losses
  tensilo salvage broken.tsl -o whole.tsl       and write the rest to a file
  tensilo salvage broken.tsl -o whole.tsl --json | jq '.columns[].lost'
  tensilo salvage train/ -o whole/              a new dataset of what is left

Finds every intact chunk, even if header, index, footers or trailers are
damaged, cut off or missing, or the writer was killed. Copies chunks as they
are stored. A damaged chunk in blocks loses only the samples of its damaged
blocks, if its front is intact. If the header and all footers are lost, nothing
can be salvaged: the columns are then unknown. BROKEN.tsl is never changed.

A chunk that an older file of the same columns has left there counts as lost if
the index and the footer show that. If these are damaged too, nothing confirms
the chunks: their samples are kept, and listed as unconfirmed. OUT.tsl names
them in the metadata \"tensilo.unconfirmed\" of their columns.

Samples that a column has lost become nulls in that column, and all samples
keep their numbers. With --leave-out, samples that any column has lost are left
out, and the following samples get lower numbers. The encoding options only
apply to chunks with such nulls or gaps.

Of a dataset with a manifest, every file is salvaged. The new dataset has the
same groups and sample numbers. A file that is missing, or of which nothing is
left, has nulls in all samples of its columns, whose types are in the manifest.
So has a whole file that is not the one in the manifest.

Exits with 1 if a sample is lost or unconfirmed, or may be lost at the end; the
output is complete nevertheless.

JSON, schema tensilo.salvage/1 (members may be added; those named here stay):
  schema, ok, file_bytes, sample_count
  header_is_intact   if false, the schema comes from a footer
  committed_samples  up to the last commit whose footer is intact, or null
  end_is_known       false: there may have been more samples at the end
  columns: [{ name, chunk_count, stored_bytes, lost_count,
    lost     [[first, end], ...] sample numbers, end excluded
    unconfirmed_count, unconfirmed  the same of samples that nothing confirms }]
  output             null, or { path, file_bytes, sample_count, file_id,
    content_id }
Of a dataset, schema tensilo.salvage-dataset/1:
  schema, ok, dataset_id, version, sample_count
  files: [{ path, ok, samples,
    message  why everything in the file is lost, or null
    columns  [{ name, lost_count, lost, unconfirmed_count, unconfirmed }] by
             sample numbers of the dataset }]
  output   null, or { path, dataset_id, sample_count, files, file_bytes }";

/// The arguments of `tensilo salvage`.
#[derive(Args, Debug)]
#[command(after_help = SALVAGE)]
pub(crate) struct SalvageArgs {
    /// A damaged tensilo file, the folder of a dataset, or a quoted glob of files
    #[arg(value_name = "BROKEN.tsl")]
    pub(crate) file: PathBuf,
    /// The file to write, - is the standard output; of a dataset, the folder of the new one;
    /// without it, only the losses are listed
    #[arg(short, long, value_name = "OUT.tsl|OUT/")]
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
