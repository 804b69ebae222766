//! The arguments of `tensilo inspect`.

use crate::terminal::output_width;
use clap::Args;
use std::path::PathBuf;

const INSPECT: &str = "\
Examples:
  tensilo inspect train.tsl
  tensilo inspect train.tsl --wide | less -S
      all that is known of each column
  tensilo inspect train.tsl --json | jq '.columns[] | {name, dtype, shape}'
  tensilo inspect train.tsl --explain
      why each column is as small as it is, and what other profiles would give
  tensilo inspect train.tsl --explain --sample 517 --json

Lines are as wide as the terminal, or 80 characters. What is most important
comes first; what does not fit is left out or cut. --wide prints all of it.

The column \"cold read\" is what one random sample costs that is in no cache:
the bytes of a stored chunk, on average; \"amplification\" is that divided by
the bytes that a sample takes in the file, on average.

--explain takes one chunk of each column apart: how many bits of an element
are left in each plane, tier and so on; what every encoding would make of the
same values; what each profile takes for them, and why. That takes some
milliseconds for each column, however long the file is. Elements of text and
bytes are bytes; what tells nulls and extents is left out.

JSON, schema tensilo.inspect/1 (members may be added, those named here stay):
  schema, file_bytes, sample_count
  columns: [{ name, dtype, nullable, raw_bytes, stored_bytes, chunk_count,
    shape      a varying extent is null
    encodings  how many chunks have which encoding; 0: only what tells nulls
               and extents has it
    cast       null, or what rounding cost: source, rounding, max_abs_error,
               max_rel_error, to_infinite, to_subnormal
    cold_read_bytes
    read_amplification  null if samples take no bytes
    explanation         with --explain; null if there is no such chunk:
      chunk, samples, encoding, transform, elements, raw_bytes, stored_bytes,
      bits_per_element, cold_read_bytes, read_amplification
      pieces   [{ name, detail, stored_bytes, bits_per_element }]
      trials   [{ encoding, profiles, stored_bytes, bits_per_element, ratio,
                  in_file }]; stored_bytes is null if it cannot be so encoded
      choices  [{ profile, encoding, stored_bytes, reason, in_file }] }]";

/// `tensilo inspect`
#[derive(Args, Debug)]
#[command(after_help = INSPECT)]
pub(crate) struct InspectArgs {
    /// A tensilo file
    pub(super) file: PathBuf,
    /// Print a JSON document
    #[arg(long)]
    pub(super) json: bool,
    /// Print every fact of each column, whole, in lines as long as they need to be
    #[arg(long, conflicts_with = "json")]
    pub(super) wide: bool,
    /// Explain how a chunk of each column came to be as large as it is
    #[arg(long)]
    pub(super) explain: bool,
    /// Explain this chunk of each column, counted from 0 [default: 0]
    #[arg(long, value_name = "N", requires = "explain", conflicts_with = "sample")]
    pub(super) chunk: Option<u64>,
    /// Explain the chunk that holds this sample
    #[arg(long, value_name = "N", requires = "explain")]
    pub(super) sample: Option<u64>,
}

impl InspectArgs {
    /// The width of a line.
    pub(super) fn width(&self) -> usize {
        if self.wide { usize::MAX } else { output_width() }
    }
}
