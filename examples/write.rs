//! Writes a file with three columns, commits in between, and appends to it.
//!
//! `cargo run --example write`

use tensilo::{ColumnBatch, ColumnSchema, DType, Extent, Profile, Reader, Schema, Shape, Value, Writer, WriterOptions};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("train.tsl");

    // The schema never changes: names, types, shapes, nullability, casts.
    let frames_of_80 = Shape::new([Extent::Varying, Extent::Fixed(80)]);
    let schema = Schema::new([
        // Pushed as f32, stored as bf16. The file records the largest rounding error.
        ColumnSchema::tensor("embedding", DType::Bf16, Shape::fixed(&[16])).cast_from(DType::F32),
        ColumnSchema::tensor("mel", DType::F32, frames_of_80),
        ColumnSchema::utf8("caption").nullable(),
    ]);

    // The file appears at `path` with its first commit. On Linux it has no name before.
    let options = WriterOptions::new().profile(Profile::Balanced).threads(2);
    let mut writer = Writer::create(&path, schema, &options)?;

    // One sample at a time: one value per column, in the order of the schema.
    for i in 0..100_u16 {
        let embedding = [f32::from(i) / 100.0; 16];
        let frames = u32::from(i % 5);
        let mel = vec![0.25_f32; frames as usize * 80];
        let caption = format!("sample {i}");
        let caption = if i % 10 == 0 { Value::NULL } else { Value::text(&caption) };
        writer.push(&[Value::tensor(&embedding), Value::ragged(&mel, &[frames]), caption])?;
    }
    // When `commit` returns, everything so far is durable and readable.
    writer.commit()?;

    // Batches are faster and produce the same bytes.
    let embeddings = [0.5_f32; 50 * 16];
    let frames = [2_u32; 50];
    let mels = [0.25_f32; 50 * 2 * 80];
    let lengths = [5_u32; 50];
    let captions = b"words".repeat(50);
    writer.push_batch(&[
        ColumnBatch::fixed(50, &embeddings),
        ColumnBatch::ragged(50, &frames, &mels),
        ColumnBatch::ragged(50, &lengths, &captions),
    ])?;
    let summary = writer.finish()?;
    println!("{} samples, content id {}", summary.sample_count, summary.content_id);
    drop(summary); // it owns the file, and keeps it locked

    // Appending continues after the last commit. If it fails, the file is unchanged.
    let mut writer = Writer::append(&path, &WriterOptions::new())?;
    writer.push(&[Value::tensor(&[1.0_f32; 16]), Value::ragged::<f32>(&[], &[0]), Value::text("appended")])?;
    writer.finish()?;

    let reader = Reader::open(&path)?;
    println!("{} samples after {} commits", reader.sample_count(), reader.commit_count());
    for column in reader.columns() {
        let facts = column.facts();
        println!("{}: {} bytes stored for {} raw", column.schema().name, facts.stored_bytes, facts.raw_bytes);
        if let Some(cast) = facts.cast {
            println!("  largest error of the cast: {:.2e}", cast.max_abs_error);
        }
    }
    Ok(())
}
