//! `tensilo inspect`

mod args;
mod cold_read;
pub(crate) mod dataset;
pub(crate) mod document;
mod explain;
mod tables;

pub(crate) use args::InspectArgs;

use crate::failure::{Failure, Outcome};
use crate::open::{self, open};
use crate::output::{Output, write_json};
use document::document;
use std::io::Write;
use tables::write_text;
use tensilo::Reader;
use tensilo::error::display_path;
use tensilo_data::Dataset;

/// Prints the columns, sizes, encodings and metadata of a file, or the columns of a dataset.
pub(crate) fn run(args: &InspectArgs, quiet: bool) -> Outcome {
    if let Some(dataset) = open::dataset(&args.file)? {
        return match args.explain {
            true => Err(explain_a_file(args, &dataset)),
            false => dataset::run(args, &dataset, quiet),
        };
    }
    let reader = open(&args.file, quiet)?;
    let mut output = Output::stdout();
    if args.json {
        write_json(&mut output, &document(args, &reader)?)?;
    } else {
        write_text(args, &reader, &mut output)?;
        write_explanations(args, &reader, &mut output)?;
    }
    output.finish()
}

fn explain_a_file(args: &InspectArgs, dataset: &Dataset) -> Failure {
    let path = display_path(&args.file);
    let first = dataset.groups().flatten().find_map(|group| Some(group.files.first()?.path.clone()));
    let such = first.map_or_else(String::new, |first| format!(", such as {}", display_path(&first)));
    Failure::Usage(format!("{path}: this is a dataset; --explain explains a file of it{such}"))
}

fn write_explanations(args: &InspectArgs, reader: &Reader, output: &mut impl Write) -> Outcome {
    for column in reader.columns().filter(|_| args.explain) {
        let explanation = explain::explain(args, &column).map_err(|error| Failure::about(&args.file, error))?;
        explain::write(output, &column, explanation.as_ref(), args.width())?;
    }
    Ok(())
}
