//! `tensilo verify`

use crate::args::VerifyArgs;
use crate::exit::{Exit, Failure, Outcome};
use crate::human;
use crate::open::foreign;
use crate::output::{Output, write_json};
use crate::parse::threads;
use crate::progress::{Progress, Unit};
use crate::terminal::warning;
use serde_json::{Value, json};
use std::io::{self, Write};
use tensilo::{Damage, PositionedFile, RegionKind, Source, VerifyOptions, VerifyReport};

/// Verifies a file, and lists what is damaged.
pub(crate) fn run(args: &VerifyArgs, quiet: bool) -> Outcome<Exit> {
    let report = verify(args, quiet)?;
    if let Some(foreign) = foreign(&args.file).filter(|_| !quiet && !report.damages.is_empty()) {
        warning(&format!("{}: {foreign}", tensilo::display_path(&args.file)));
    }
    let verdict = if report.damages.is_empty() { Exit::Done } else { Exit::Damaged };
    match print(&report, args.json, quiet) {
        // the verdict does not depend on how much of it was read
        Ok(()) | Err(Failure::Closed) => Ok(verdict),
        Err(failure) => Err(failure),
    }
}

fn verify(args: &VerifyArgs, quiet: bool) -> Outcome<VerifyReport> {
    let about = |error| Failure::about(&args.file, error);
    let source = PositionedFile::open(&args.file).map_err(about)?;
    let progress = Progress::new(Unit::Bytes, quiet);
    let mut advance = |bytes| progress.set("verifying", bytes, Some(source.byte_count()));
    let options = VerifyOptions::new().decode(args.deep).threads(threads(args.threads)).progress(&mut advance);
    tensilo::verify(&source, options).map_err(about)
}

fn print(report: &VerifyReport, json: bool, quiet: bool) -> Outcome {
    let mut output = Output::stdout();
    if json {
        write_json(&mut output, &document(report))?;
    } else {
        write_text(report, quiet, &mut output)?;
    }
    output.finish()
}

/// The document of schema `tensilo.verify/1`.
fn document(report: &VerifyReport) -> Value {
    let damages: Vec<Value> = report.damages.iter().map(damage_object).collect();
    json!({
        "schema": "tensilo.verify/1",
        "ok": report.damages.is_empty(),
        "file_bytes": report.file_bytes,
        "chunk_count": report.chunk_count,
        "sample_count": report.sample_count,
        "damages": damages,
    })
}

fn damage_object(damage: &Damage) -> Value {
    let range = &damage.file_range;
    json!({
        "offset": range.start,
        "bytes": range.end.saturating_sub(range.start),
        "region": damage.region.map(RegionKind::name),
        "column": damage.column.as_deref(),
        "samples": damage.samples.as_ref().map(|samples| [samples.start, samples.end]),
        "rule": damage.error.rule(),
        "message": damage.error.message(),
    })
}

fn write_text(report: &VerifyReport, quiet: bool, output: &mut impl Write) -> io::Result<()> {
    for damage in &report.damages {
        writeln!(output, "{}", damage_line(damage))?;
    }
    if quiet {
        return Ok(());
    }
    let (bytes, chunks) = (report.file_bytes, report.chunk_count);
    let samples =
        report.sample_count.map_or_else(|| "no readable commit".to_owned(), |count| format!("{count} samples"));
    match report.damages.len() {
        0 => writeln!(output, "ok: {bytes} bytes, {chunks} chunks, {samples}"),
        1 => writeln!(output, "damaged: 1 place in {bytes} bytes; {chunks} chunks are intact, {samples}"),
        places => writeln!(output, "damaged: {places} places in {bytes} bytes; {chunks} chunks are intact, {samples}"),
    }
}

/// `bytes 4160..4672: chunk, column "x", samples 0..32: what is wrong (rule )`
pub(crate) fn damage_line(damage: &Damage) -> String {
    let mut line = format!("bytes {}..{}", damage.file_range.start, damage.file_range.end);
    let mut separator = ": ";
    let mut add = |text: String| {
        line.push_str(separator);
        line.push_str(&text);
        separator = ", ";
    };
    if let Some(region) = damage.region {
        add(region.to_string());
    }
    if let Some(column) = &damage.column {
        add(format!("column \"{}\"", human::excerpt(column)));
    }
    if let Some(samples) = &damage.samples {
        add(format!("samples {}..{}", samples.start, samples.end));
    }
    line.push_str(": ");
    line.push_str(damage.error.message());
    match damage.error.rule() {
        Some(rule) => format!("{line} (rule {rule})"),
        None => line,
    }
}
