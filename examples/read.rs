//! Reads single samples, borrowed views, ranges, and nullable text.
//!
//! `cargo run --example read`

use tensilo::sink::Stream;
use tensilo::{ColumnBuffer, ColumnSchema, DType, Profile, Reader, Schema, Shape, Value, Writer, WriterOptions};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // `Reader::open(path)` reads a file by position. This one is in memory.
    let reader = Reader::from_bytes(example_file()?)?;
    for column in reader.columns() {
        println!("{}: {} {}", column.schema().name, column.schema().dtype, column.schema().shape);
    }

    // A view borrows from the file. Only raw chunks in memory or in a map have views.
    let curve = reader.column("curve")?;
    match curve.view(517)? {
        Some(sample) => println!("view of sample 517: {:?}", sample.as_slice::<f32>()?),
        None => println!("this chunk is encoded; use a cursor"),
    }

    // A cursor reads samples of any encoding. It owns the memory for decoding, so reuse it.
    let mut cursor = curve.cursor();
    let mut values = [0.0_f32; 8];
    cursor.read_slice(42, &mut values)?;
    println!("sample 42: {values:?}");

    // A range decodes each chunk once. The next call reuses the memory of the buffer.
    let mut buffer = ColumnBuffer::new();
    cursor.range_into(100..200, &mut buffer)?;
    println!("samples 100 to 200: {} values", buffer.values::<f32>()?.len());

    // Null, empty and absent text are different.
    let mut captions = reader.column("caption")?.cursor();
    for i in 0..3 {
        match captions.read(i)?.as_str()? {
            Some(text) => println!("caption {i}: {text:?}"),
            None => println!("caption {i} is null"),
        }
    }

    // The same samples of several columns.
    let mut rows = reader.rows(&["curve", "caption"])?;
    let mut batch = Vec::new();
    rows.gather_into(&[7, 3, 7], &mut batch)?;
    println!("a batch of {} columns and {} samples", batch.len(), batch[0].sample_count());

    // Errors name the file, the column and the sample, and say what to do.
    if let Err(error) = cursor.read(1_000_000) {
        println!("as expected: {error}");
    }
    Ok(())
}

fn example_file() -> tensilo::Result<Vec<u8>> {
    let schema = Schema::new([
        ColumnSchema::tensor("curve", DType::F32, Shape::fixed(&[8])),
        ColumnSchema::utf8("caption").nullable(),
    ]);
    let options = WriterOptions::new().profile(Profile::Raw);
    let mut writer = Writer::new(Stream(Vec::new()), schema, &options)?;
    for i in 0..1000_u16 {
        let caption = match i % 3 {
            0 => Value::NULL,
            1 => Value::text(""),
            _ => Value::text("a curve"),
        };
        writer.push(&[Value::tensor(&[f32::from(i); 8]), caption])?;
    }
    writer.into_bytes()
}
