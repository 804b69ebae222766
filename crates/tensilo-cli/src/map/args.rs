//! What `tensilo map` can be asked for.

use clap::Args;
use std::path::PathBuf;

const MAP: &str = "\
Examples:
  tensilo map train.tsl                       on the terminal
  tensilo map train.tsl --svg train.svg       every chunk, with tooltips
  tensilo map train.tsl --width 120 | less
  tensilo map broken.tsl --verify             and what of it is damaged

The file from its first byte to its last, to scale. On the terminal each
character is a piece of the file, and shows of what column most of it is: a
letter where the column changes and at the start of a line, else a block, the
lighter the better the chunks are compressed. What is no chunk (the header,
heads of chunks, index, footers, padding) is structure, a dot.

With --verify every byte is read and checked first. A character of which any
byte is damaged is then an exclamation mark, whatever column it is of; the
drawing has a cross over what is damaged. A file that is too damaged to be
opened is drawn, too, of what can be salvaged. Exits with 1 if anything is
damaged; \"tensilo verify\" says what.

The SVG has a tile for each chunk, with a hue for each column, and names
column, samples, encoding, stored bytes and ratio under the pointer. Of a file
with more than 4000 chunks, a tile is a 4000th of the file.

Ratio is raw bytes divided by stored bytes.";

/// `tensilo map`
#[derive(Args, Debug)]
#[command(after_help = MAP)]
pub(crate) struct MapArgs {
    /// A tensilo file
    pub(crate) file: PathBuf,
    /// Write a drawing to a file, which appears when it is complete; - is the standard output
    #[arg(long, value_name = "OUT.svg")]
    pub(crate) svg: Option<PathBuf>,
    /// Check every byte, and mark what is damaged
    #[arg(long)]
    pub(crate) verify: bool,
    /// Characters of a line, 40 to 1000, or pixels of the drawing, 600 to 10000 [default: those of the terminal, or 80; 1200]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(40..=10_000))]
    pub(crate) width: Option<u32>,
    /// Replace OUT.svg if it exists
    #[arg(short, long, requires = "svg")]
    pub(crate) force: bool,
}
