//! The tables of `tensilo inspect`.

use super::args::InspectArgs;
use super::cold_read::{SampleCost, amplification_text};
use crate::terminal::write_wrapped;
use crate::text::{Cells, Table, cut_end, human, write_casts, write_found};
use std::io::{self, Write};
use tensilo::{Column, Metadata, Reader};

/// Writes the facts of the file and of each column.
pub(super) fn write_text(args: &InspectArgs, reader: &Reader, output: &mut impl Write) -> io::Result<()> {
    let (file_bytes, samples, width) = (reader.file_bytes(), reader.sample_count(), args.width());
    let bytes = human::bytes(file_bytes);
    let file = format!("{}: {samples} samples, {bytes} ({file_bytes} bytes)", tensilo::error::display_path(&args.file));
    write_wrapped(output, &file, width)?;
    let state = if reader.is_finished() { "finished" } else { "not finished" };
    let (id, alignment, commits) = (reader.file_id(), reader.alignment(), reader.commit_count());
    write_wrapped(output, &format!("id {id}, alignment {alignment}, commits {commits}, {state}"), width)?;
    write_wrapped(output, &format!("content {}", reader.content_id()), width)?;
    writeln!(output)?;
    write_columns(args, reader, output)?;
    write_found(reader.schema(), width, output)?;
    let casts = reader.columns().map(|column| column.facts().cast);
    write_casts(reader.schema().columns.iter().zip(casts), width, output)?;
    write_metadata(output, "file", &reader.schema().metadata, width)?;
    for column in &reader.schema().columns {
        let whose = format!("column {}", human::excerpt(&column.name));
        write_metadata(output, &whose, &column.metadata, width)?;
    }
    Ok(())
}

fn write_columns(args: &InspectArgs, reader: &Reader, output: &mut impl Write) -> io::Result<()> {
    let (table, width) = (columns_table(reader), args.width());
    let table = if args.wide { table } else { table.without_blank() };
    table.write(output, width)?;
    match table.left_out(width).join(", ") {
        left_out if left_out.is_empty() => Ok(()),
        left_out => write_wrapped(output, &format!("(--wide also shows: {left_out})"), width),
    }
}

/// Returns all facts of each column, the most important first.
fn columns_table(reader: &Reader) -> Table<'static> {
    let mut table = Table::new(&[
        ("column", Cells::Name),
        ("type", Cells::Text),
        ("shape", Cells::List(10)),
        ("raw", Cells::Number),
        ("stored", Cells::Number),
        ("ratio", Cells::Number),
        ("nulls", Cells::Number),
        ("encodings", Cells::List(16)),
        ("chunks", Cells::Number),
        ("samples/chunk", Cells::Number),
        ("block", Cells::Number),
        ("cold read", Cells::Number),
        ("amplification", Cells::Number),
    ]);
    for column in reader.columns() {
        table.row(column_row(&column));
    }
    table
}

fn column_row(column: &Column) -> Vec<String> {
    let (schema, facts, cost) = (column.schema(), column.facts(), SampleCost::of(column));
    let nulls = if schema.nullable { facts.null_count.to_string() } else { "-".to_owned() };
    vec![
        human::excerpt(&schema.name),
        schema.type_name(),
        schema.shape.to_string(),
        human::bytes(facts.raw_bytes),
        human::bytes(facts.stored_bytes),
        human::ratio(facts.raw_bytes, facts.stored_bytes),
        nulls,
        human::encodings(&facts),
        facts.chunk_count.to_string(),
        samples_per_chunk(column.sample_count(), facts.chunk_count),
        cost.block_bytes.map_or("-".to_owned(), human::bytes),
        human::bytes(cost.cold_read_bytes),
        amplification_text(cost.read_amplification),
    ]
}

/// Returns the average, with a decimal unless it is an integer.
fn samples_per_chunk(samples: u64, chunks: u64) -> String {
    match (samples.checked_div(chunks), samples.checked_rem(chunks)) {
        (Some(each), Some(0)) => each.to_string(),
        (Some(_), Some(_)) => format!("{:.1}", samples as f64 / chunks as f64), // an approximation
        _ => "-".to_owned(),
    }
}

fn write_metadata(output: &mut impl Write, whose: &str, metadata: &Metadata, width: usize) -> io::Result<()> {
    if metadata.is_empty() {
        return Ok(());
    }
    writeln!(output, "\n{}", cut_end(&format!("metadata of {whose}"), width))?;
    metadata.iter().try_for_each(|(key, value)| {
        let line = format!("  {} = {}", human::excerpt(key), human::excerpt(value));
        writeln!(output, "{}", cut_end(&line, width))
    })
}
