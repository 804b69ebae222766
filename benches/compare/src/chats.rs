//! Writes a Parquet file of chats of any size, to measure the conversion of a large file.

use crate::nested::data::{CHAT, texts::Samples};
use crate::nested::{Columns, IndexedColumns, arrow};
use anyhow::{Context, Result, ensure};
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;
use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;

/// Writes a Parquet file of chats, to measure the conversion of a large file.
///
/// A chat is a list of structs of two texts, `role` and `content`. Pages are compressed with
/// Snappy. Memory use does not depend on the size of the file.
#[derive(clap::Args)]
pub struct Arguments {
    /// Minimum size of the file in bytes; it becomes a little larger
    #[arg(long)]
    bytes: u64,
    /// File to write, which must not exist
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// As in the comparison; texts repeat if there are too few
    #[arg(long, value_name = "DIR", env = "TENSILO_TEXTS")]
    texts: Option<PathBuf>,
}

/// The raw bytes of a batch.
const BATCH_BYTES: usize = 1 << 20;
/// The stored bytes of a row group.
const GROUP_BYTES: usize = 64 << 20;

pub fn run(arguments: &Arguments) -> Result<()> {
    let file = File::create_new(&arguments.out).with_context(|| arguments.out.display().to_string())?;
    let schema = Arc::new(arrow::schema(&CHAT));
    let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
    let mut writer = ArrowWriter::try_new(file, schema.clone(), Some(properties))?;
    let mut samples = Samples::new("chat", arguments.texts.as_deref())?;
    let (mut chats, mut raw_bytes) = (0, 0);
    while ((writer.bytes_written() + writer.in_progress_size()) as u64) < arguments.bytes {
        let mut columns = Columns::new(&CHAT);
        while columns.raw_bytes() < BATCH_BYTES {
            if !samples.append(&mut columns)? {
                ensure!(chats > 0 || !columns.lists.is_empty(), "the texts do not suffice for a chat");
                samples.rewind();
            }
        }
        let indexed = IndexedColumns::new(CHAT, columns);
        chats += indexed.samples();
        raw_bytes += indexed.columns.raw_bytes();
        writer.write(&arrow::batch(&indexed, 0..indexed.samples(), schema.clone())?)?;
        if writer.in_progress_size() >= GROUP_BYTES {
            writer.flush()?;
        }
    }
    let groups = writer.close()?.num_row_groups();
    println!("{chats} chats, {raw_bytes} bytes raw, {groups} row groups");
    Ok(())
}
