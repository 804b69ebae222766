//! Tests that a panic of a source ends `verify` with that panic, on any number of threads.

use std::io;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;
use tensilo::sink::Stream;
use tensilo::source::{InMemory, Source};
use tensilo::verify::{VerifyOptions, verify};
use tensilo::{ColumnSchema, DType, Profile, Schema, Shape, Value, Writer, WriterOptions};

/// Longer than any read of a header, and shorter than any span but the last.
const SPAN: usize = 64 << 10;

/// Writes a file of chunks of 300 bytes, in more than ten spans.
fn written() -> Vec<u8> {
    let schema = Schema::new([ColumnSchema::tensor("a", DType::U8, Shape::fixed(&[300]))]);
    let options = WriterOptions::new().profile(Profile::Raw).chunk_bytes(300);
    let mut writer = Writer::new(Stream(Vec::new()), schema, &options).unwrap();
    (0..3000).for_each(|i| writer.push(&[Value::tensor(&[(i % 251) as u8; 300])]).unwrap());
    writer.into_bytes().unwrap()
}

/// A source that panics in one of its reads.
struct PanickingSource {
    file: Arc<Vec<u8>>,
    reads: AtomicUsize,
    panics_at: usize,
    /// Whether a read of a span is an error: the walk then reads headers individually.
    refuses_spans: bool,
}

impl Source for PanickingSource {
    fn byte_count(&self) -> u64 {
        self.file.len() as u64
    }

    fn read_exact_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        if self.reads.fetch_add(1, Ordering::Relaxed) == self.panics_at {
            resume_unwind(Box::new("without a message in the output"));
        }
        if self.refuses_spans && out.len() >= SPAN {
            return Err(io::ErrorKind::TimedOut.into());
        }
        InMemory(self.file.as_slice()).read_exact_at(offset, out)
    }
}

/// Returns whether `verify` ends with a panic. Runs it in a thread: a call that hangs must fail,
/// not block the test.
fn panics(source: PanickingSource, threads: usize) -> bool {
    let (ended, end) = channel::<()>();
    let call = thread::spawn(move || {
        let _ended = ended; // dropped at the end
        verify(&source, VerifyOptions::new().threads(threads)).map(|_| ())
    });
    let end = end.recv_timeout(Duration::from_secs(60));
    assert_eq!(end, Err(RecvTimeoutError::Disconnected), "verify hangs, {threads} threads");
    call.join().is_err()
}

#[test]
fn the_panic_of_a_source_ends_all_threads() {
    let file = Arc::new(written());
    assert!(file.len() > 10 * SPAN, "{} bytes", file.len());
    let source = |panics_at, refuses_spans| PanickingSource {
        file: Arc::clone(&file),
        reads: AtomicUsize::new(0),
        panics_at,
        refuses_spans,
    };
    for refuses_spans in [false, true] {
        let count = source(usize::MAX, refuses_spans);
        verify(&count, VerifyOptions::new().threads(1)).unwrap();
        let count = count.reads.into_inner();
        assert!(count > 10, "{count} reads");
        // the number of reads depends slightly on the number of threads
        for panics_at in (0..count / 2).step_by(1 + count / 40) {
            for threads in [1, 2, 4] {
                let what = format!("read {panics_at} of {count}, {threads} threads");
                assert!(panics(source(panics_at, refuses_spans), threads), "{what}");
            }
        }
    }
}
