//! The arguments of `tensilo inspect`.

use crate::terminal::output_width;
use clap::Args;
use std::path::PathBuf;

const INSPECT: &str = "\
Examples:
  tensilo inspect train.tsl
  tensilo inspect train.tsl --wide | less -S
      all facts of each column
  tensilo inspect train.tsl --json | jq '.columns[] | {name, dtype, shape}'
  tensilo inspect train/
      the columns of all files of a dataset
  tensilo inspect train.tsl --explain
      why each column has its size, and the size with other profiles
  tensilo inspect train.tsl --explain --sample 517 --json

Lines are as wide as the terminal, or 80 characters. The most important facts
come first; facts that do not fit are cut or left out. --wide prints them all.

\"block\" is the decoded bytes of a block, on average: the part of a chunk that is
read and checked alone. \"cold read\" is the cost of one random sample that is in
no cache, if the file is read by position: the bytes of its block, and of the
front that lists the blocks of its chunk; without blocks, and if the chunk has
less than 8 KiB, the bytes of its chunk. \"amplification\" is that cost divided
by the stored bytes of a sample, on average. Of a column in blocks, the fronts
of eight chunks are read, whatever the size of the file. Damaged ones are left
out.

--explain analyses one chunk of each column: the bits per element in each plane
or tier, the size in every encoding, and the choice of each profile with its
reason. It takes some milliseconds for each column, whatever the size of the
file. Sections that each block has are added up. Elements of text and bytes are
single bytes; the data of nulls and extents is not counted.

Profiles estimate from a sample which encoding, transform, mapping and options
take the least. --regret encodes the chunk with all of them instead, and prints
by how much each choice is worse than the best, in percent. Encodings that
decode more slowly count as larger. A chunk of 512 KiB takes a second.

JSON, schema tensilo.inspect/1 (members may be added; those named here stay):
  schema, file_bytes, sample_count
  columns: [{ name, dtype, nullable, raw_bytes, stored_bytes, chunk_count,
    shape      of an item; a varying extent is null
    nullable_levels  for each level of lists, whether their members may be null
    encodings  the number of chunks with each encoding; 0: only the data of
               nulls and extents uses it
    cast       null, or the cost of rounding: source, rounding, max_abs_error,
               max_rel_error, to_infinite, to_subnormal
    block_bytes         decoded, on average; null without blocks
    front_bytes         the part of cold_read_bytes that is read once for all
               samples of a chunk
    cold_read_bytes
    read_amplification  null if samples are stored in 0 bytes
    explanation         with --explain; null if the chunk does not exist:
      chunk, samples, encoding, transform, elements, raw_bytes, stored_bytes,
      bits_per_element, front_bytes, cold_read_bytes, read_amplification
      blocks   null, or [{ samples, stored_bytes, raw_bytes }]; the last sample
               of one may be the first of the next
      pieces   [{ name, detail, stored_bytes, bits_per_element }]
      trials   [{ encoding, profiles, stored_bytes, bits_per_element, ratio,
                  in_file }]; stored_bytes is null if it cannot be used
      choices  [{ profile, encoding, stored_bytes, reason, in_file, regret }];
               regret is null without --regret, and 0.01 for one percent }]

JSON of a folder, schema tensilo.inspect-dataset/1:
  schema, dataset_id, version, sample_count, files, file_bytes, metadata
  run_samples, window_runs  the sizes of the windowed order
  columns: [{ name, dtype, nullable, nullable_levels, shape, files, raw_bytes,
              stored_bytes, null_count, chunk_count }]";

/// The arguments of `tensilo inspect`.
#[derive(Args, Debug)]
#[command(after_help = INSPECT)]
pub(crate) struct InspectArgs {
    /// A tensilo file, the folder of a dataset, or a quoted glob of files
    pub(crate) file: PathBuf,
    /// Print a JSON document
    #[arg(long)]
    pub(crate) json: bool,
    /// Print all facts of each column, in lines of any width
    #[arg(long, conflicts_with = "json")]
    pub(crate) wide: bool,
    /// Explain the size of a chunk of each column
    #[arg(long)]
    pub(crate) explain: bool,
    /// Compare the choice of each profile with the best of all combinations: takes seconds
    #[arg(long, requires = "explain")]
    pub(crate) regret: bool,
    /// Explain this chunk of each column, counted from 0 [default: 0]
    #[arg(long, value_name = "N", requires = "explain", conflicts_with = "sample")]
    pub(crate) chunk: Option<u64>,
    /// Explain the chunk that contains this sample
    #[arg(long, value_name = "N", requires = "explain")]
    pub(crate) sample: Option<u64>,
}

impl InspectArgs {
    /// Returns the width of a line.
    pub(super) fn width(&self) -> usize {
        if self.wide { usize::MAX } else { output_width() }
    }
}
