//! Converts a Parquet file to a tensilo file, lists the columns, and exports them to Parquet again.
//!
//! `cargo run --example import --features parquet -- tests/data/speech.parquet`

use std::ops::ControlFlow;
use std::path::PathBuf;
use tensilo::export::{ExportOptions, export};
use tensilo::import::{self, ConvertOptions, InferredShape, Progress};
use tensilo::{Reader, WriterOptions};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let input = std::env::args_os().nth(1).unwrap_or_else(|| "tests/data/speech.parquet".into());
    let folder = tempfile::tempdir()?;
    let output = folder.path().join("speech.tsl");

    // By default nothing is rounded; a cast is explicit.
    let writer = WriterOptions::new().threads(2);
    let options = ConvertOptions::new().bf16(true).writer(writer);

    // Inputs are files, folders, patterns or pipes. The output appears when it is complete.
    // Returning `Break` cancels the conversion and leaves no output.
    let mut report = |progress: Progress| {
        if let Progress::Converting { done, total: Some(total) } = progress {
            eprintln!("{done} of {total} samples");
        }
        ControlFlow::Continue(())
    };
    let samples = import::convert(&[PathBuf::from(input)], &output, &options, &mut report)?;
    println!("{samples} samples");

    let reader = Reader::open(&output)?;
    for column in reader.columns() {
        let (schema, facts) = (column.schema(), column.facts());
        let ratio = facts.raw_bytes as f64 / facts.stored_bytes.max(1) as f64;
        println!("{}: {} {}, ratio {ratio:.2}", schema.name, schema.dtype, schema.shape);
        // A list type does not fix its length. This is the shape that the conversion found.
        if let Some(found) = InferredShape::of(schema) {
            println!("  shape: {found}");
        }
    }

    // The export has the same values, shapes, nulls and metadata.
    let exported = folder.path().join("speech-again.parquet");
    export(&reader, &exported, ExportOptions::new())?;
    println!("{} bytes of Parquet", exported.metadata()?.len());
    Ok(())
}
