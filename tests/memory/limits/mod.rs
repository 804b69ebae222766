//! Tests that the smallest and the largest files work, or that the error names the limit. Memory
//! grows with a few chunks or with the largest sample, never with the file.

#[cfg(feature = "arrow")]
mod exports;
mod few;
#[cfg(feature = "zstd")]
mod large_encoded_samples;
mod large_samples;
mod lists;
mod many_samples;
mod opening;

use crate::support::on_disk::OnDisk;
use std::fs::File;
use std::io::BufWriter;
use tensilo::sink::Stream;
use tensilo::{ColumnSchema, DType, Profile, Schema, Shape, Writer, WriterOptions};

const MIB: usize = 1 << 20;

/// The profile that encodes, if this build has one.
const ENCODED: Profile = if cfg!(feature = "zstd") { Profile::BitshuffleZstd } else { Profile::Raw };

fn in_memory(schema: Schema, profile: Profile) -> Writer<Stream<Vec<u8>>> {
    Writer::new(Stream(Vec::new()), schema, &WriterOptions::new().profile(profile)).expect("a valid schema")
}

fn finish(writer: Writer<Stream<Vec<u8>>>) -> Vec<u8> {
    writer.into_bytes().expect("a sink that takes all")
}

/// Starts a file without syncing it to disk: these files are large.
fn large_file(disk: &OnDisk, schema: Schema, options: &WriterOptions) -> Writer<Stream<BufWriter<File>>> {
    let file = BufWriter::new(File::create(disk.path()).expect("a new file"));
    Writer::new(Stream(file), schema, options).expect("a valid schema")
}

fn u8_column(shape: Shape) -> Schema {
    Schema::new([ColumnSchema::tensor("x", DType::U8, shape)])
}

/// Returns a byte that depends on its offset. Such bytes do not compress.
fn noise(at: usize) -> u8 {
    ((at as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8
}
