//! Headers of chunks, and chunks in impossible positions.

use super::Refusal::{Reading, Verifying};
use super::{MAX_CHUNK_BYTES, Row, bytes, patched, row};
use crate::support::build::{Build, Chunk, patch};
use tensilo::facts::RegionKind::{Chunk as ChunkRegion, IndexPage};

pub fn chunk_headers() -> Vec<Row> {
    let chunk = |at: usize, bytes: &[u8]| patched(ChunkRegion, at, bytes);
    vec![
        row("a chunk of 4 GiB in a small file", chunk(44, &[0xFF; 4]), Reading("R-2.5", "R-2.5")),
        row("a chunk of column 2^32 - 1", chunk(4, &[0xFF; 4]), Reading("R-4.1", "R-4.1")),
        row("a chunk of 2^32 - 1 samples", chunk(40, &[0xFF; 4]), Reading("R-4.1", "R-4.1")),
        row("a chunk of no samples", chunk(40, &[0; 4]), Reading("R-4.1", "R-4.1")),
        row("a chunk that decodes to 2^32 - 1 bytes", chunk(48, &[0xFF; 4]), Reading("R-4.1", "R-4.1")),
        row(
            "a chunk of two samples that decodes to 4 GiB",
            chunk(48, &MAX_CHUNK_BYTES.to_le_bytes()),
            Reading("R-4.10", "R-4.10"),
        ),
        row("a chunk that begins at sample 2^64 - 1", chunk(32, &[0xFF; 8]), Reading("R-4.2", "R-6.2")),
        row("a chunk that begins at sample 2^30", chunk(32, &(1_u64 << 30).to_le_bytes()), Reading("R-4.2", "R-6.2")),
        row("chunks and garbage in turn", chunks_and_garbage(5_000), Verifying("R-2.1")),
        row("a chunk in the body of another", nested_chunk(), Verifying("R-6.2")),
    ]
}

/// Empty chunks of 64 bytes, with 64 bytes of garbage between them.
fn chunks_and_garbage(count: usize) -> Vec<u8> {
    let mut build = Build::new(&[bytes(&[0])]);
    for _ in 0..count {
        build.chunk(&Chunk::of_values(1, (0, 0, &[])));
        build.file.extend([0x55; 64]);
    }
    build.finish(0, &[(0, count as u64)])
}

/// The index lists a chunk inside the body of another.
fn nested_chunk() -> Vec<u8> {
    let mut inner = Build::new(&[bytes(&[64])]);
    inner.file.resize(192, 0); // where the body of the first chunk will be
    inner.chunk(&Chunk::of_values(1, (0, 64, &[7; 64])));
    let body: [u8; 128] = inner.file[192..].try_into().unwrap();
    let mut build = Build::new(&[bytes(&[64])]);
    build.chunk(&Chunk::of_values(2, (0, 128, &body)));
    let mut file = build.finish(0, &[(0, 1)]);
    let inner_crc = &body[56..60];
    patch(&mut file, IndexPage, 64, &192_u64.to_le_bytes());
    patch(&mut file, IndexPage, 80, &64_u32.to_le_bytes());
    patch(&mut file, IndexPage, 84, &1_u32.to_le_bytes());
    patch(&mut file, IndexPage, 88, inner_crc);
    file
}
