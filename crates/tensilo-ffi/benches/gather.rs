//! The cost of a gather through C compared with Rust: `cargo bench -p tensilo-ffi`.
//!
//! Both gather the same samples of one mapped file, in turn, so that changes of the machine affect
//! both. The C function is called through a pointer that the compiler cannot see through, as a C
//! program calls it. Times are medians over rounds, per call; the ratio is the median of the ratios
//! of the rounds.

use std::hint::black_box;
use std::ptr;
use std::time::Instant;
use tensilo::{ColumnBatch, ColumnSchema, Cursor, DType, Profile, Reader, Schema, Shape, Writer, WriterOptions};
use tensilo_ffi::*;
use tensilo_testing::{Folder, Random};

const SAMPLES: u64 = 20_000;
const ELEMENTS: usize = 384;
const SAMPLE_BYTES: usize = ELEMENTS * 2;

/// Writes a file of embeddings of 768 bytes.
fn file(folder: &Folder, profile: Profile) -> std::path::PathBuf {
    let mut random = Random(1);
    let schema = Schema::new([ColumnSchema::tensor("x", DType::U16, Shape::fixed(&[ELEMENTS as u32]))]);
    let path = folder.path("x.tsl");
    let mut writer = Writer::create(&path, schema, &WriterOptions::new().profile(profile)).expect("a writer");
    // the upper halves of floats of a few magnitudes
    let values: Vec<u16> = (0..SAMPLES as usize * ELEMENTS).map(|_| 0x3C00 + random.below(0x200) as u16).collect();
    writer.push_batch(&[ColumnBatch::fixed(SAMPLES as usize, &values)]).expect("samples");
    writer.finish().expect("a file");
    path
}

type Gather = unsafe extern "C" fn(
    *mut tensilo_cursor,
    *const u64,
    usize,
    *mut u8,
    usize,
    *mut usize,
    *mut *mut tensilo_error,
) -> tensilo_status;

fn c_cursor(path: &std::path::Path) -> (*mut tensilo_reader, *mut tensilo_cursor) {
    let path = std::ffi::CString::new(path.to_str().expect("UTF-8")).expect("no NUL");
    let (mut reader, mut cursor) = (ptr::null_mut(), ptr::null_mut());
    let options = tensilo_open_options {
        struct_size: size_of::<tensilo_open_options>(),
        io: TENSILO_IO_MMAP,
        verification: TENSILO_VERIFICATION_FIRST_TOUCH,
        max_chunk_bytes: 0,
    };
    // SAFETY: arguments as the header requires; nothing changes the file.
    unsafe {
        let status = tensilo_reader_open(path.as_ptr(), &raw const options, &raw mut reader, ptr::null_mut());
        assert_eq!(status, TENSILO_OK);
        assert_eq!(tensilo_cursor_open(reader, c"x".as_ptr(), &raw mut cursor, ptr::null_mut()), TENSILO_OK);
    }
    (reader, cursor)
}

fn median(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// Returns the nanoseconds of one call.
fn time(calls: usize, mut call: impl FnMut(usize)) -> f64 {
    let start = Instant::now();
    (0..calls).for_each(&mut call);
    start.elapsed().as_nanos() as f64 / calls as f64
}

fn compare(name: &str, cursor: &mut Cursor, c_cursor: *mut tensilo_cursor, count: usize, rounds: usize) {
    let mut random = Random(1);
    let requests: Vec<Vec<u64>> = (0..64).map(|_| (0..count).map(|_| random.below(SAMPLES)).collect()).collect();
    let (mut out, mut c_out) = (vec![0_u8; count * SAMPLE_BYTES], vec![0_u8; count * SAMPLE_BYTES]);
    let gather: Gather = black_box(tensilo_cursor_gather);
    let calls = (200_000 / count).clamp(500, 20_000);
    let (mut rust, mut c, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..=rounds {
        let mut of_rust = || {
            time(calls, |i| {
                black_box(cursor.gather_bytes(&requests[i % 64], black_box(&mut out)).expect("samples"));
            })
        };
        let mut of_c = || {
            time(calls, |i| {
                let indices = &requests[i % 64];
                let (mut nulls, mut error) = (0, ptr::null_mut());
                // SAFETY: arguments as the header requires.
                let status = unsafe {
                    let out = black_box(&mut c_out);
                    let (from, to) = (indices.as_ptr(), out.as_mut_ptr());
                    gather(c_cursor, from, indices.len(), to, out.len(), &raw mut nulls, &raw mut error)
                };
                assert_eq!(status, TENSILO_OK);
            })
        };
        // the two alternate in going first; round 0 is the warm-up
        let (rust_ns, c_ns) = if round % 2 == 0 { (of_rust(), of_c()) } else { swap((of_c(), of_rust())) };
        if round > 0 || rounds == 0 {
            rust.push(rust_ns);
            c.push(c_ns);
            ratios.push(c_ns / rust_ns);
        }
    }
    assert!(out == c_out, "C and Rust gather the same samples");
    let (rust, c, ratio) = (median(&mut rust), median(&mut c), median(&mut ratios));
    println!("{name}, {count:>3} samples: Rust {rust:>9.1} ns, C {c:>9.1} ns, ratio {ratio:.4}");
}

fn swap((a, b): (f64, f64)) -> (f64, f64) {
    (b, a)
}

fn main() {
    let is_test = std::env::args().any(|argument| argument == "--test");
    let rounds = if is_test { 0 } else { 31 };
    for (name, profile) in [("raw", Profile::Raw), ("balanced", Profile::Balanced)] {
        let folder = Folder::new();
        let path = file(&folder, profile);
        // SAFETY: nothing changes the file.
        let reader = unsafe { Reader::map(&path) }.expect("the file");
        let mut cursor = reader.column("x").expect("the column").cursor();
        let (mut c_reader, mut c_cursor) = c_cursor(&path);
        for count in [1, 4, 16, 256] {
            compare(name, &mut cursor, c_cursor, count, rounds);
        }
        // SAFETY: created above and no longer used.
        unsafe {
            tensilo_cursor_close(&raw mut c_cursor);
            tensilo_reader_close(&raw mut c_reader);
        }
    }
}
