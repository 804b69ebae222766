//! `tensilo get`: prints samples of one column or struct, from a file or a dataset.
//!
//! There are three formats: JSON for any column or struct, NumPy arrays, and raw elements. Samples
//! are read and written one by one, so memory is bounded by the largest chunk of each column.
//! Binary formats have no nulls, and a NumPy array has only one shape. So a first pass checks the
//! samples, and a request that cannot be satisfied fails before the first byte of output.

mod args;
mod binary;
mod json;
mod samples;

pub(crate) use args::GetArgs;

use crate::failure::{Failure, Outcome};
use crate::output::{Data, Destination};
use args::Format;
use json::NamedStruct;
use samples::{SampleSource, Samples};
use std::path::Path;

/// Prints samples of one column or struct. Checks all arguments before it writes the first byte.
pub(crate) fn run(args: &GetArgs, quiet: bool) -> Outcome {
    let data = if args.format == Format::Json { Data::Text } else { Data::Binary };
    let source = SampleSource::open(&args.file, quiet)?;
    let output = args.output.as_deref().unwrap_or(Path::new("-"));
    let destination = Destination::new(output, args.force, data, source.inputs(&args.file))?;
    let found = find(args, &source)?;
    let selection = args.indices.resolve(source.sample_count())?;
    let written = match (found, args.format) {
        (Found::Struct(found), _) => json::write_structs(&found, args, &source, &selection, destination),
        (Found::Column(samples), Format::Json) => json::write(args, samples, &selection, destination),
        (Found::Column(samples), _) => binary::write(args, samples, &selection, destination),
    };
    written.map_err(|failure| failure.with_output(args.output.as_deref()))
}

/// What a name refers to.
enum Found {
    Column(Samples),
    Struct(NamedStruct),
}

/// Finds a column, or the columns that are the fields of a struct.
fn find(args: &GetArgs, source: &SampleSource) -> Outcome<Found> {
    let column = source.schema().find_column(&args.column);
    let has_values = column.as_ref().is_ok_and(|(_, column)| !column.is_struct_nulls());
    let found = if has_values { None } else { NamedStruct::find(source.schema(), &args.column) };
    match (found, args.format) {
        (None, _) => Ok(Found::Column(source.samples(&args.column)?)),
        (Some(found), Format::Json) => Ok(Found::Struct(found)),
        (Some(_), _) => {
            let message = format!("{:?} is a struct, which has no binary form; use --format json", args.column);
            Err(Failure::Usage(message))
        }
    }
}
