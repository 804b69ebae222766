//! `tensilo convert`

use crate::args::ConvertArgs;
use crate::casts::write_casts;
use crate::exit::Outcome;
use crate::human;
use crate::input::refuse_terminal;
use crate::open::open;
use crate::output::{Output, refuse_to_replace};
use crate::parse::Names;
use crate::progress::{Progress, Unit};
use crate::table::{Cells, Table};
use crate::terminal::{output_width, write_wrapped};
use std::io::Write;
use std::path::Path;
use tensilo::import::{self, ConvertOptions};
use tensilo::{PositionedFile, Reader};

/// Converts, and tells what came of it.
pub(crate) fn run(args: &ConvertArgs, quiet: bool) -> Outcome {
    refuse_terminal(&args.inputs)?;
    refuse_to_replace(&args.output, args.force)?;
    convert(args, quiet)?;
    if quiet {
        return Ok(());
    }
    let reader = open(&args.output, quiet)?;
    let mut output = Output::stdout();
    write_summary(&reader, &args.output, &mut output)?;
    output.finish()
}

fn convert(args: &ConvertArgs, quiet: bool) -> Outcome {
    let progress = Progress::new(Unit::Samples, quiet);
    import::convert(&args.inputs, &args.output, &options(args), &mut |at| match at {
        import::Progress::Scanning(done, total) => progress.set("scanning", done, total),
        import::Progress::Converting(done, total) => progress.set("converting", done, total),
    })?;
    Ok(())
}

fn options(args: &ConvertArgs) -> ConvertOptions {
    ConvertOptions {
        bf16: args.bf16,
        casts: args.cast.clone(),
        columns: Names::all(&args.columns),
        skip: args.skip.clone(),
        null_elements: args.null_elements.into(),
        writer: args.encoding.writer_options().alignment(args.align),
        overwrite: args.force,
        dash_is_stdin: true,
        ..ConvertOptions::default()
    }
}

fn write_summary(reader: &Reader<PositionedFile>, path: &Path, output: &mut impl Write) -> Outcome {
    let mut table = Table::new(&[
        ("column", Cells::Name),
        ("type", Cells::Text),
        ("shape", Cells::List(10)),
        ("raw bytes", Cells::Number),
        ("stored bytes", Cells::Number),
        ("ratio", Cells::Number),
    ]);
    let mut raw_bytes = 0_u64;
    for column in reader.columns() {
        let (schema, facts) = (column.schema(), column.facts());
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
    write_casts(reader, width, output)?;
    let (samples, file_bytes) = (reader.sample_count(), reader.file_bytes());
    let (raw, stored, ratio) = (human::bytes(raw_bytes), human::bytes(file_bytes), human::ratio(raw_bytes, file_bytes));
    let line = format!("{}: {samples} samples, {raw} raw, {stored} in the file, ratio {ratio}", path.display());
    writeln!(output)?;
    Ok(write_wrapped(output, &line, width)?)
}
