//! `tensilo get`

mod args;
mod binary;
mod decimal;
mod element;
mod indices;
mod json;
mod npy_header;

pub(crate) use args::GetArgs;

use crate::failure::Outcome;
use crate::open::open;
use crate::output::{Data, Destination};
use args::Format;
use std::slice;

/// Prints samples of one column. Checks all arguments before it writes the first byte. Memory is
/// bounded by the largest chunk.
pub(crate) fn run(args: &GetArgs, quiet: bool) -> Outcome {
    let data = if args.format == Format::Json { Data::Text } else { Data::Binary };
    let inputs = slice::from_ref(&args.file);
    let destination = Destination::or_stdout(args.output.as_deref(), args.force, data, inputs)?;
    let reader = open(&args.file, quiet)?;
    let column = reader.column(&args.column)?;
    let selection = args.indices.resolve(reader.sample_count())?;
    let written = match args.format {
        Format::Json => json::write(args, column, &selection, destination),
        Format::Npy | Format::Raw => binary::write(args, column, &selection, destination),
    };
    written.map_err(|failure| failure.with_output(args.output.as_deref()))
}
