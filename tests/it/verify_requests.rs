//! Tests that `verify` requests many small chunks at once, and requests little twice.

use std::sync::atomic::{AtomicUsize, Ordering};
use tensilo::sink::Stream;
use tensilo::source::{CoalesceConfig, InMemory, Source};
use tensilo::verify::{VerifyOptions, VerifyReport, verify};
use tensilo::{ColumnSchema, DType, Profile, Schema, Shape, Value, Writer, WriterOptions};

fn report(source: &impl Source, decode: bool, threads: usize) -> VerifyReport {
    verify(source, VerifyOptions::new().deep(decode).threads(threads)).unwrap()
}

/// Writes samples of `sample_bytes` in raw chunks of at most `chunk_bytes`.
fn written(samples: u32, sample_bytes: u32, chunk_bytes: usize) -> Vec<u8> {
    let schema = Schema::new([ColumnSchema::tensor("a", DType::U8, Shape::fixed(&[sample_bytes]))]);
    let options = WriterOptions::new().profile(Profile::Raw).chunk_bytes(chunk_bytes);
    let mut writer = Writer::new(Stream(Vec::new()), schema, &options).unwrap();
    for i in 0..samples {
        writer.push(&[Value::tensor(&vec![(i % 251) as u8; sample_bytes as usize])]).unwrap();
    }
    writer.into_bytes().unwrap()
}

/// A source by position that counts requests.
struct RequestCounter<'a> {
    file: &'a [u8],
    gap_bytes: u64,
    count: AtomicUsize,
    bytes: AtomicUsize,
}

impl<'a> RequestCounter<'a> {
    fn of(file: &'a [u8], gap_bytes: u64) -> Self {
        Self { file, gap_bytes, count: AtomicUsize::new(0), bytes: AtomicUsize::new(0) }
    }
}

impl Source for RequestCounter<'_> {
    fn byte_count(&self) -> u64 {
        InMemory(self.file).byte_count()
    }

    fn read_exact_at(&self, offset: u64, out: &mut [u8]) -> std::io::Result<()> {
        self.count.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(out.len(), Ordering::Relaxed);
        InMemory(self.file).read_exact_at(offset, out)
    }

    fn coalesce(&self) -> CoalesceConfig {
        let mut config = CoalesceConfig::MEMORY;
        config.gap_bytes = self.gap_bytes;
        config
    }
}

#[test]
fn chunks_are_fetched_many_at_a_time() {
    let file = written(20_000, 200, 300);
    let chunk_count = report(&InMemory(&file), false, 1).chunk_count;
    assert!(chunk_count > 10_000, "{chunk_count} chunks, {} bytes", file.len());
    for decode in [false, true] {
        for threads in [1, 3] {
            let source = RequestCounter::of(&file, 0);
            assert!(report(&source, decode, threads).findings.is_empty());
            let (count, bytes) = (source.count.into_inner(), source.bytes.into_inner());
            assert!(count as u64 <= chunk_count / 50, "{count} requests, {chunk_count} chunks, {threads} threads");
            assert!(bytes <= file.len() + file.len() / 10, "{bytes} bytes of {}, {threads} threads", file.len());
        }
    }
}

#[test]
fn a_slow_source_gets_more_requests_at_once() {
    let file = written(256, 64 << 10, 64 << 10);
    let requests = |gap_bytes| {
        let source = RequestCounter::of(&file, gap_bytes);
        assert!(report(&source, true, 1).findings.is_empty());
        source.count.into_inner()
    };
    let (near, distant) = (requests(0), requests(1 << 20));
    assert!(near <= 2 * 17 + 10 && distant <= 2 * 5 + 10, "{near} and {distant} requests for 256 chunks");
}

#[test]
fn chunks_without_a_trailer_are_fetched_many_at_a_time() {
    let mut file = written(20_000, 200, 300);
    file.truncate(file.len() - 64);
    for threads in [1, 3] {
        let source = RequestCounter::of(&file, 0);
        let report = report(&source, true, threads);
        assert_eq!((report.findings.len(), report.findings[0].error.rule()), (1, Some("R-2.9")), "{report:?}");
        let count = source.count.into_inner();
        assert!(count as u64 <= report.chunk_count / 50, "{count} requests, {} chunks", report.chunk_count);
    }
}

#[test]
fn large_chunks_are_fetched_individually() {
    let file = written(5, 3 << 20, 64 << 10);
    for threads in [1, 4] {
        let source = RequestCounter::of(&file, 0);
        assert!(report(&source, true, threads).findings.is_empty());
        let bytes = source.bytes.into_inner();
        assert!(bytes < file.len() + file.len() / 20, "{bytes} bytes of {}", file.len());
    }
}

#[test]
fn pages_of_the_index_are_fetched_many_at_a_time() {
    let file = written(60_000, 1, 1);
    let chunk_count = report(&InMemory(&file), false, 1).chunk_count;
    assert_eq!(chunk_count, 60_000, "476 pages of the index: more than a batch of one thread has");
    for threads in [1, 2] {
        let source = RequestCounter::of(&file, 0);
        assert!(report(&source, false, threads).findings.is_empty());
        let (count, bytes) = (source.count.into_inner(), source.bytes.into_inner());
        let spans = file.len().div_ceil(64 << 10);
        // a thread takes the work that is ready, even if it is less than a batch
        let max_requests = if threads == 1 { spans + spans / 10 + 20 } else { spans + spans / 2 };
        assert!(count <= max_requests, "{count} requests, {spans} spans, {threads} threads");
        assert!(bytes <= file.len() + file.len() / 10, "{bytes} bytes of {}, {threads} threads", file.len());
    }
}
