//! `tensilo inspect`

mod args;
mod explain;

pub(crate) use args::InspectArgs;

use crate::casts::write_casts;
use crate::exit::{Failure, Outcome};
use crate::human;
use crate::layout::cut_end;
use crate::open::open;
use crate::output::{Output, write_json};
use crate::shapes::write_found;
use crate::table::{Cells, Table};
use crate::terminal::write_wrapped;
use serde_json::{Map, Value, json};
use std::io::{self, Write};
use tensilo::{Column, ColumnFacts, ColumnSchema, Explanation, Extent, Metadata, Reader};

/// Prints what is in a file.
pub(crate) fn run(args: &InspectArgs, quiet: bool) -> Outcome {
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

fn explain(args: &InspectArgs, column: &Column) -> Outcome<Option<Explanation>> {
    explain::explain(args, column).map_err(|error| Failure::about(&args.file, error))
}

fn write_explanations(args: &InspectArgs, reader: &Reader, output: &mut impl Write) -> Outcome {
    for column in reader.columns().filter(|_| args.explain) {
        explain::write(output, &column, explain(args, &column)?.as_ref(), args.width())?;
    }
    Ok(())
}

/// The document of schema `tensilo.inspect/1`.
fn document(args: &InspectArgs, reader: &Reader) -> Outcome<Value> {
    let mut columns = Vec::new();
    for column in reader.columns() {
        let mut object = column_object(&column);
        if args.explain {
            let explanation = explain(args, &column)?;
            object.insert("explanation".to_owned(), explanation.as_ref().map_or(Value::Null, explain::object));
        }
        columns.push(Value::Object(object));
    }
    Ok(json!({
        "schema": "tensilo.inspect/1",
        "file_bytes": reader.file_bytes(),
        "sample_count": reader.sample_count(),
        "file_id": reader.file_id().to_string(),
        "content_id": reader.content_id().to_string(),
        "alignment": reader.alignment(),
        "commit_count": reader.commit_count(),
        "finished": reader.is_finished(),
        "tail_bytes": reader.tail_bytes(),
        "metadata": reader.schema().metadata,
        "columns": columns,
    }))
}

fn column_object(column: &Column) -> Map<String, Value> {
    let (schema, facts) = (column.schema(), column.facts());
    let shape: Vec<Option<u32>> = schema.shape.extents().iter().map(extent).collect();
    let encodings: Map<String, Value> =
        facts.encodings.iter().map(|(name, chunks)| (name.clone(), json!(chunks))).collect();
    let members = [
        ("name", json!(schema.name)),
        ("dtype", json!(schema.dtype.name())),
        ("shape", json!(shape)),
        ("nullable", json!(schema.nullable)),
        ("chunk_count", json!(facts.chunk_count)),
        ("raw_bytes", json!(facts.raw_bytes)),
        ("stored_bytes", json!(facts.stored_bytes)),
        ("encodings", Value::Object(encodings)),
        ("cast", cast_object(schema, &facts)),
        ("null_count", json!(facts.null_count)),
        ("cold_read_bytes", json!(cold_read_bytes(&facts))),
        ("read_amplification", json!(read_amplification(&facts, column.sample_count()))),
        ("metadata", json!(schema.metadata)),
    ];
    members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

fn extent(extent: &Extent) -> Option<u32> {
    match extent {
        Extent::Fixed(extent) => Some(*extent),
        Extent::Varying => None,
    }
}

fn cast_object(schema: &ColumnSchema, facts: &ColumnFacts) -> Value {
    let (Some(spec), Some(cast)) = (schema.cast, facts.cast) else { return Value::Null };
    json!({
        "source": spec.source.name(),
        "rounding": "nearest-even",
        "max_abs_error": cast.max_abs_error,
        "max_rel_error": cast.max_rel_error,
        "to_infinite": cast.to_infinite,
        "to_subnormal": cast.to_subnormal,
    })
}

/// What one sample costs to read that is in no cache: head and body of its chunk, on average.
fn cold_read_bytes(facts: &ColumnFacts) -> u64 {
    const HEAD_BYTES: u64 = 64;
    match facts.stored_bytes.checked_div(facts.chunk_count) {
        Some(bytes) => bytes.saturating_add(HEAD_BYTES),
        None => 0,
    }
}

/// How many times more that is than a sample takes in the file, on average; `None` if samples take no bytes.
fn read_amplification(facts: &ColumnFacts, sample_count: u64) -> Option<f64> {
    quotient(cold_read_bytes(facts), quotient(facts.stored_bytes, sample_count as f64)?) // rounded anyway
}

fn quotient(amount: u64, divisor: f64) -> Option<f64> {
    (divisor > 0.0).then(|| amount as f64 / divisor) // rounded anyway
}

fn amplification(ratio: Option<f64>) -> String {
    ratio.map_or("-".to_owned(), |ratio| format!("{ratio:.1}"))
}

fn write_text(args: &InspectArgs, reader: &Reader, output: &mut impl Write) -> io::Result<()> {
    let (file_bytes, samples, width) = (reader.file_bytes(), reader.sample_count(), args.width());
    let bytes = human::bytes(file_bytes);
    let file = format!("{}: {samples} samples, {bytes} ({file_bytes} bytes)", tensilo::display_path(&args.file));
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

/// All facts of each column, the most important first.
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
        ("cold read", Cells::Number),
        ("amplification", Cells::Number),
    ]);
    for column in reader.columns() {
        table.row(column_row(column.schema(), &column.facts(), reader.sample_count()));
    }
    table
}

fn column_row(schema: &ColumnSchema, facts: &ColumnFacts, sample_count: u64) -> Vec<String> {
    let nulls = if schema.nullable { facts.null_count.to_string() } else { "-".to_owned() };
    vec![
        human::excerpt(&schema.name),
        schema.dtype.to_string(),
        schema.shape.to_string(),
        human::bytes(facts.raw_bytes),
        human::bytes(facts.stored_bytes),
        human::ratio(facts.raw_bytes, facts.stored_bytes),
        nulls,
        human::encodings(facts),
        facts.chunk_count.to_string(),
        samples_per_chunk(sample_count, facts.chunk_count),
        human::bytes(cold_read_bytes(facts)),
        amplification(read_amplification(facts, sample_count)),
    ]
}

/// The average; a decimal unless it is whole.
fn samples_per_chunk(samples: u64, chunks: u64) -> String {
    match (samples.checked_div(chunks), samples.checked_rem(chunks)) {
        (Some(each), Some(0)) => each.to_string(),
        (Some(_), Some(_)) => format!("{:.1}", samples as f64 / chunks as f64), // rounded anyway
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
