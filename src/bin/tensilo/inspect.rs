//! `tensilo inspect`

use crate::args::InspectArgs;
use crate::exit::Outcome;
use crate::human;
use crate::open::open;
use crate::output::{Output, write_json};
use crate::table::{Side, Table};
use serde_json::{Map, Value, json};
use std::io::{self, Write};
use std::path::Path;
use tensilo::{Column, ColumnFacts, ColumnSchema, Extent, Metadata, PositionedFile, Reader};

/// Prints what is in a file.
pub(crate) fn run(args: &InspectArgs, quiet: bool) -> Outcome {
    let reader = open(&args.file, quiet)?;
    let mut output = Output::stdout();
    if args.json {
        write_json(&mut output, &document(&reader))?;
    } else {
        write_text(&reader, &args.file, &mut output)?;
    }
    output.finish()
}

/// The document of schema `tensilo.inspect/1`.
fn document(reader: &Reader<PositionedFile>) -> Value {
    let columns: Vec<Value> = reader.columns().map(|column| column_object(&column)).collect();
    json!({
        "schema": "tensilo.inspect/1",
        "file_bytes": reader.file_bytes(),
        "sample_count": reader.sample_count(),
        "file_id": reader.file_id().to_string(),
        "alignment": reader.alignment(),
        "commit_count": reader.commit_count(),
        "finished": reader.is_finished(),
        "tail_bytes": reader.tail_bytes(),
        "metadata": reader.schema().metadata,
        "columns": columns,
    })
}

fn column_object(column: &Column<'_, PositionedFile>) -> Value {
    let (schema, facts) = (column.schema(), column.facts());
    let shape: Vec<Option<u32>> = schema.shape.extents().iter().map(extent).collect();
    let encodings: Map<String, Value> =
        facts.encodings.iter().map(|(name, chunks)| (name.clone(), json!(chunks))).collect();
    json!({
        "name": schema.name,
        "dtype": schema.dtype.name(),
        "shape": shape,
        "nullable": schema.nullable,
        "chunk_count": facts.chunk_count,
        "raw_bytes": facts.raw_bytes,
        "stored_bytes": facts.stored_bytes,
        "encodings": encodings,
        "cast": cast_object(schema, &facts),
        "null_count": facts.null_count,
        "cold_read_bytes": cold_read_bytes(&facts),
        "metadata": schema.metadata,
    })
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

fn write_text(reader: &Reader<PositionedFile>, path: &Path, output: &mut impl Write) -> io::Result<()> {
    let (file_bytes, samples) = (reader.file_bytes(), reader.sample_count());
    writeln!(output, "{}: {samples} samples, {} ({file_bytes} bytes)", path.display(), human::bytes(file_bytes))?;
    let state = if reader.is_finished() { "finished" } else { "not finished" };
    writeln!(
        output,
        "id {}, alignment {}, commits {}, {state}\n",
        reader.file_id(),
        reader.alignment(),
        reader.commit_count()
    )?;
    columns_table(reader).write(output)?;
    write_metadata(output, "file", &reader.schema().metadata)?;
    for column in &reader.schema().columns {
        write_metadata(output, &format!("column {}", human::excerpt(&column.name)), &column.metadata)?;
    }
    Ok(())
}

fn columns_table(reader: &Reader<PositionedFile>) -> Table {
    let mut table = Table::new(&[
        ("column", Side::Left),
        ("type", Side::Left),
        ("shape", Side::Left),
        ("nulls", Side::Right),
        ("raw", Side::Right),
        ("stored", Side::Right),
        ("ratio", Side::Right),
        ("chunks", Side::Right),
        ("samples/chunk", Side::Right),
        ("cold read", Side::Right),
        ("encodings", Side::Left),
        ("cast", Side::Left),
    ]);
    for column in reader.columns() {
        table.row(column_row(column.schema(), &column.facts(), reader.sample_count()));
    }
    table
}

fn column_row(schema: &ColumnSchema, facts: &ColumnFacts, sample_count: u64) -> Vec<String> {
    let nulls = if schema.nullable { facts.null_count.to_string() } else { "-".to_owned() };
    let encodings: Vec<String> = facts.encodings.iter().map(|(name, chunks)| format!("{name}:{chunks}")).collect();
    vec![
        human::excerpt(&schema.name),
        schema.dtype.to_string(),
        schema.shape.to_string(),
        nulls,
        human::bytes(facts.raw_bytes),
        human::bytes(facts.stored_bytes),
        human::ratio(facts.raw_bytes, facts.stored_bytes),
        facts.chunk_count.to_string(),
        samples_per_chunk(sample_count, facts.chunk_count),
        human::bytes(cold_read_bytes(facts)),
        if encodings.is_empty() { "-".to_owned() } else { encodings.join(" ") },
        human::cast(schema, facts.cast.as_ref()),
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

fn write_metadata(output: &mut impl Write, whose: &str, metadata: &Metadata) -> io::Result<()> {
    if metadata.is_empty() {
        return Ok(());
    }
    writeln!(output, "\nmetadata of {whose}")?;
    metadata
        .iter()
        .try_for_each(|(key, value)| writeln!(output, "  {} = {}", human::excerpt(key), human::excerpt(value)))
}
