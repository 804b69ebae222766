//! `tensilo convert`

use crate::args::ConvertArgs;
use crate::casts::write_casts;
use crate::exit::Outcome;
use crate::human;
use crate::input::refuse_terminal;
use crate::output::{Data, Destination, Output, shown};
use crate::parse::Names;
use crate::progress::{Progress, Unit};
use crate::shapes::write_found;
use crate::table::{Cells, Table};
use crate::terminal::{output_width, write_wrapped};
use crate::{advice, terminal};
use std::io::Write;
use std::path::Path;
use tensilo::Summary;
use tensilo::import::{self, ConvertOptions};

/// Converts, and tells what came of it.
pub(crate) fn run(args: &ConvertArgs, quiet: bool) -> Outcome {
    refuse_terminal(&args.inputs)?;
    let destination = Destination::new(&args.output, args.force, Data::Binary, &args.inputs)?;
    if !quiet {
        destination.warn_of_litter();
    }
    let written = convert(args, destination.create()?, quiet)?;
    if quiet {
        return Ok(());
    }
    let mut output = written.sink.summary();
    write_summary(&written, &args.output, &mut output)?;
    output.flush()?;
    for note in written.schema.columns.iter().filter_map(advice::odd_samples) {
        terminal::note(&note);
    }
    Ok(())
}

fn convert(args: &ConvertArgs, output: Output, quiet: bool) -> tensilo::Result<Summary<Output>> {
    let progress = Progress::new(Unit::Samples, quiet);
    import::convert_into(&args.inputs, output, &options(args), &mut |at| match at {
        import::Progress::Scanning(done, total) => progress.set("scanning", done, total),
        import::Progress::Converting(done, total) => progress.set("converting", done, total),
    })
}

fn options(args: &ConvertArgs) -> ConvertOptions {
    ConvertOptions {
        bf16: args.bf16,
        casts: args.cast.clone(),
        columns: Names::all(&args.columns),
        skip: args.skip.clone(),
        shapes: args.shape.clone(),
        null_elements: args.null_elements.into(),
        writer: args.encoding.writer_options().alignment(args.align),
        dash_is_stdin: true,
        ..ConvertOptions::default()
    }
}

fn write_summary(written: &Summary<Output>, path: &Path, output: &mut impl Write) -> Outcome {
    let mut table = Table::new(&[
        ("column", Cells::Name),
        ("type", Cells::Text),
        ("shape", Cells::List(10)),
        ("raw bytes", Cells::Number),
        ("stored bytes", Cells::Number),
        ("ratio", Cells::Number),
    ]);
    let mut raw_bytes = 0_u64;
    for (schema, facts) in written.schema.columns.iter().zip(&written.columns) {
        raw_bytes = raw_bytes.saturating_add(facts.raw_bytes);
        table.row(vec![
            human::excerpt(&schema.name),
            schema.dtype.to_string(),
            schema.shape.to_string(),
            human::bytes(facts.raw_bytes),
            human::bytes(facts.stored_bytes),
            human::ratio(facts.raw_bytes, facts.stored_bytes),
        ]);
    }
    let width = output_width();
    table.write(output, width)?;
    write_found(&written.schema, width, output)?;
    let facts = written.columns.iter().map(|facts| facts.cast);
    write_casts(written.schema.columns.iter().zip(facts), width, output)?;
    let (samples, file_bytes) = (written.sample_count, written.file_bytes);
    let (raw, stored, ratio) = (human::bytes(raw_bytes), human::bytes(file_bytes), human::ratio(raw_bytes, file_bytes));
    let line = format!("{}: {samples} samples, {raw} raw, {stored} in the file, ratio {ratio}", shown(path));
    writeln!(output)?;
    Ok(write_wrapped(output, &line, width)?)
}
