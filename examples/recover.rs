//! Damages a file, finds the damage, and recovers the intact samples.
//!
//! `cargo run --example recover`

use std::sync::Arc;
use tensilo::salvage::{OnLoss, RewriteOptions, SalvageOptions, salvage};
use tensilo::sink::{AtomicFile, Stream};
use tensilo::source::InMemory;
use tensilo::verify::{VerifyOptions, verify};
use tensilo::{ColumnSchema, DType, Reader, Schema, Shape, Value, Writer, WriterOptions};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut file = example_file()?;
    file[2_000] ^= 1; // one bit of a chunk
    let end = file.len() - 100;
    file.truncate(end); // without its trailer, the file cannot be opened
    let file: Arc<[u8]> = file.into(); // readers own or share their bytes
    println!("open: {}", Reader::from_bytes(file.clone()).err().ok_or("a truncated file must not open")?);

    // Verify lists every damaged region. It works on files that cannot be opened.
    let report = verify(&InMemory(&file), VerifyOptions::new())?;
    for damage in &report.findings {
        println!("bytes {:?}, samples {:?}: {}", damage.file_range, damage.samples, damage.error);
    }

    // Salvage finds every intact chunk. Samples keep their indices.
    let salvaged = salvage(InMemory(file.clone()), SalvageOptions::new())?;
    let lost = salvaged.losses.of(&["label"])?;
    println!("{} of {} samples are lost: {:?}", lost.count(), salvaged.reader.sample_count(), lost.ranges());

    // A training job decides what a batch reads instead. Every process makes the same choice.
    let requested = [0, 350, 351, 999];
    let mut samples = Vec::new();
    lost.resolve(&requested, OnLoss::Substitute, &mut samples)?;
    println!("instead of {requested:?} read {samples:?}");
    let mut labels = vec![0_i32; samples.len()];
    salvaged.reader.column("label")?.cursor().gather_slice(&samples, &mut labels)?;
    println!("labels: {labels:?}");

    // Intact chunks are copied to a new file without recoding. Lost samples become nulls.
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("whole.tsl");
    salvaged.write_to(AtomicFile::create(&path, false)?, &WriterOptions::new(), RewriteOptions::new())?;
    let reader = Reader::open(&path)?;
    println!("damage in the new file: {}", reader.verify(VerifyOptions::new().deep(true))?.findings.len());
    Ok(())
}

fn example_file() -> tensilo::Result<Vec<u8>> {
    let schema = Schema::new([ColumnSchema::tensor("label", DType::I32, Shape::scalar())]);
    let options = WriterOptions::new().profile(tensilo::Profile::Raw).chunk_bytes(400);
    let mut writer = Writer::new(Stream(Vec::new()), schema, &options)?;
    for label in 0..1000_i32 {
        writer.push(&[Value::tensor(&[label])])?;
    }
    writer.into_bytes()
}
