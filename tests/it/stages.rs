//! Tests the stages of reading: plan, fetch and decode.
//!
//! Explicit stages must give what a cursor gives, from sources that read ranges in any order, with
//! plans that are decoded backwards and by several threads. Planning must also be cheap: it
//! coalesces near ranges, bounds the length of a request, and prefetches what its next step needs,
//! so that no step waits. Stages that do not fit each other, and sources that fail, must end in an
//! error about the first sample.

use crate::common::config;
use crate::common::data::arbitrary_table;
use crate::common::plan::{arbitrary_plan, write};
use crate::support::positional::Positional;
use crate::support::reversed::Reversed;
use proptest::prelude::*;
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use tensilo::sink::Stream;
use tensilo::source::{CoalesceConfig, InMemory, RangeError, ReadMemory, Source};
use tensilo::stages::{BlockSamples, BlockScratch, Decoder, FetchedBytes, PlanSegment, ReadPlan};
use tensilo::{
    Column, ColumnBatch, ColumnBuffer, ColumnSchema, DType, Error, ErrorKind, Extent, OpenOptions, Profile, Reader,
    Schema, Shape, Value, Verification, Writer, WriterOptions,
};
use tensilo_testing::Random;

// ---- explicit stages

/// Everything that a buffer holds.
type Contents<'b> = (usize, &'b [u8], &'b [u64], &'b [u32], Option<&'b [u8]>);

fn contents(buffer: &ColumnBuffer) -> Contents<'_> {
    (buffer.sample_count(), buffer.bytes(), buffer.offsets(), buffer.varying_extents(), buffer.validity())
}

fn assert_same(found: &[ColumnBuffer], expected: &[ColumnBuffer], what: &str) {
    assert_eq!(found.len(), expected.len());
    for (number, (found, expected)) in found.iter().zip(expected).enumerate() {
        assert_eq!(contents(found), contents(expected), "{what}, column {number}");
    }
}

/// Decodes the segments of a plan on two threads, the last segment first.
fn decode_backwards(mut parts: Vec<PlanSegment<'_>>, bytes: &FetchedBytes) -> Result<(), Error> {
    let others = parts.split_off(parts.len() / 2);
    let work = |parts: Vec<PlanSegment<'_>>| {
        let mut decoder = Decoder::new();
        parts.into_iter().rev().try_for_each(|part| part.decode(&mut decoder, bytes))
    };
    thread::scope(|scope| {
        let thread = scope.spawn(|| work(others));
        work(parts).and(thread.join().expect("no panic"))
    })
}

fn check_plan(reader: &Reader, indices: &[u64], range: Range<u64>, parts: usize) {
    let columns: Vec<Column> = reader.columns().collect();
    let (mut plan, mut bytes, mut decoder) = (ReadPlan::new(), FetchedBytes::new(), Decoder::new());
    let mut expected: Vec<ColumnBuffer> = vec![ColumnBuffer::new(); columns.len()];
    let mut found = expected.clone();
    // twice, because samples of checked chunks can be read individually
    for round in 0..2 {
        plan.select(&columns, indices).unwrap();
        plan.fetch(&mut bytes).unwrap();
        decoder.decode(&plan, &bytes, &mut found).unwrap();
        for (column, expected) in columns.iter().zip(&mut expected) {
            column.cursor().gather_into(indices, expected).unwrap();
        }
        assert_same(&found, &expected, &format!("round {round}, samples {indices:?}"));
        check_blocks(&mut decoder, &plan, &bytes, &expected);
        plan.decode_segments(parts, &mut found, |parts| decode_backwards(parts, &bytes)).unwrap();
        assert_same(&found, &expected, &format!("round {round}, samples {indices:?} in parts"));

        check_batch(&columns, indices, &expected);

        plan.select_range(&columns, range.clone()).unwrap();
        plan.fetch(&mut bytes).unwrap();
        decoder.decode(&plan, &bytes, &mut found).unwrap();
        for (column, expected) in columns.iter().zip(&mut expected) {
            column.cursor().range_into(range.clone(), expected).unwrap();
        }
        assert_same(&found, &expected, &format!("round {round}, range {range:?}"));
        check_blocks(&mut Decoder::new(), &plan, &bytes, &expected);
        plan.decode_segments(parts, &mut found, |parts| decode_backwards(parts, &bytes)).unwrap();
        assert_same(&found, &expected, &format!("round {round}, range {range:?} in parts"));
    }
}

/// Decodes the stored blocks of a plan one by one, and puts their elements in place.
fn check_blocks(decoder: &mut Decoder, plan: &ReadPlan, bytes: &FetchedBytes, expected: &[ColumnBuffer]) {
    let mut scratch = BlockScratch::default();
    for (number, expected) in expected.iter().enumerate() {
        let (mut shapes, mut segments) = (ColumnBuffer::new(), Vec::new());
        let mut visit = |samples: BlockSamples<'_>| {
            let (block, width) = (samples.block, samples.block.element_bytes());
            let mut elements = vec![0; block.element_count() * width];
            block.decode(&mut elements, &mut scratch)?;
            let byte_range = samples.elements.start * width..samples.elements.end * width;
            segments.push((samples.position, samples.offset, elements[byte_range].to_vec()));
            Ok(())
        };
        decoder.visit_blocks(plan, bytes, number, &mut shapes, &mut visit).unwrap();
        let mut values = vec![0xAA; expected.bytes().len()];
        let mut filled = 0;
        for (position, offset, segment) in segments {
            let start = shapes.value_start(position).unwrap() + offset;
            values[start..start + segment.len()].copy_from_slice(&segment);
            filled += segment.len();
        }
        assert_eq!(
            (values.as_slice(), filled),
            (expected.bytes(), expected.bytes().len()),
            "blocks of column {number}"
        );
        assert!(shapes.bytes().is_empty());
        let shape_of = |buffer: &ColumnBuffer| {
            let starts: Vec<usize> = (0..).map_while(|position| buffer.value_start(position)).collect();
            (starts, buffer.varying_extents().to_vec(), buffer.validity().map(<[u8]>::to_vec), buffer.null_count())
        };
        assert_eq!(shape_of(&shapes), shape_of(expected), "shapes of column {number}");
        for (found, expected) in shapes.lists().iter().zip(expected.lists()) {
            assert_eq!(
                (found.offsets(), found.validity()),
                (expected.offsets(), expected.validity()),
                "lists of column {number}"
            );
        }
    }
}

/// Fills a batch with two plans; one has the samples at even positions.
fn check_batch(columns: &[Column], indices: &[u64], expected: &[ColumnBuffer]) {
    let (mut plan, mut bytes, mut decoder) = (ReadPlan::new(), FetchedBytes::new(), Decoder::new());
    let halves = [0, 1].map(|first| (first..indices.len()).step_by(2).collect::<Vec<usize>>());
    for (number, (column, expected)) in columns.iter().zip(expected).enumerate() {
        let mut buffers = [ColumnBuffer::new(), ColumnBuffer::new()];
        let (mut values, mut nulls) = (vec![0xAA; expected.bytes().len()], Vec::new());
        for (positions, buffer) in halves.iter().zip(&mut buffers) {
            let samples: Vec<u64> = positions.iter().map(|&position| indices[position]).collect();
            plan.select(columns, &samples).unwrap();
            plan.prefetch().unwrap();
            plan.fetch(&mut bytes).unwrap();
            decoder.decode_column(&plan, &bytes, number, buffer).unwrap();
            let scattered = decoder.scatter(&plan, &bytes, number, positions, &mut values, &mut nulls);
            assert_eq!(scattered.is_ok(), column.schema().shape.varying_count() == 0);
        }
        if column.schema().shape.varying_count() == 0 {
            assert_eq!(values, expected.bytes());
            nulls.sort_unstable();
            assert_eq!(nulls, (0..indices.len()).filter(|&i| expected.is_null(i)).collect::<Vec<usize>>());
        }
        let mut joined = ColumnBuffer::new();
        let samples = (0..indices.len()).map(|position| Some((&buffers[position % 2], position / 2)));
        joined.join(column.schema(), samples).unwrap();
        assert_same(&[joined], std::slice::from_ref(expected), "joined");
    }
}

proptest! {
    #![proptest_config(config(96))]

    #[test]
    fn explicit_stages_read_what_a_cursor_reads(
        table in arbitrary_table(300),
        plan in arbitrary_plan(),
        seed in any::<u64>(),
        parts in 1..20_usize,
        fragment_bytes in prop::sample::select(vec![1, 33, 4096, usize::MAX]),
        gap_bytes in prop::sample::select(vec![0, 100, 100_000]),
        max_in_flight in 1..4_usize,
        policy in prop::sample::select(vec![Verification::FirstTouch, Verification::Always, Verification::Never]),
    ) {
        let file: Arc<[u8]> = write(&table, &plan).into();
        let mut random = Random(seed);
        let samples = table.sample_count as u64;
        let count = if samples == 0 { 0 } else { random.below(60) };
        let indices: Vec<u64> = (0..count).map(|_| random.below(samples)).collect();
        let (a, b) = (random.below(samples + 1), random.below(samples + 1));
        let options = OpenOptions::new().verification(policy);
        for reader in [
            options.open_source(InMemory(file.clone())),
            options.open_source(Positional(file.clone())),
            options.open_source(Reversed { file, fragment_bytes, gap_bytes, max_in_flight }),
        ] {
            check_plan(&reader.unwrap(), &indices, a.min(b)..a.max(b), parts);
        }
    }
}

// ---- ranges

const SAMPLE_BYTES: u64 = 1024;

/// Writes samples of 1 KiB in raw chunks of 64.
fn raw_file(samples: u64) -> Vec<u8> {
    raw_chunks(samples, 64 << 10)
}

/// Writes samples of 1 KiB in chunks of `chunk_bytes`. Chunks of 64 KiB have 8 blocks.
pub fn raw_chunks(samples: u64, chunk_bytes: usize) -> Vec<u8> {
    let schema = Schema::new([ColumnSchema::tensor("x", DType::U32, Shape::fixed(&[256]))]);
    let options = WriterOptions::new().profile(Profile::Raw).chunk_bytes(chunk_bytes);
    let mut writer = Writer::new(Stream(Vec::new()), schema, &options).unwrap();
    let values: Vec<u32> = (0..samples as u32 * 256).collect();
    writer.push_batch(&[ColumnBatch::fixed(samples as usize, &values)]).unwrap();
    writer.into_bytes().unwrap()
}

/// A file read by position that counts reads, and coalesces ranges across gaps of `gap_bytes`.
struct CountingSource {
    file: InMemory<Vec<u8>>,
    gap_bytes: u64,
    reads: AtomicUsize,
    bytes: AtomicU64,
}

impl Source for CountingSource {
    fn byte_count(&self) -> u64 {
        self.file.byte_count()
    }

    fn read_exact_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(out.len() as u64, Ordering::Relaxed);
        self.file.read_exact_at(offset, out)
    }

    fn coalesce(&self) -> CoalesceConfig {
        let mut config = CoalesceConfig::MEMORY;
        config.gap_bytes = self.gap_bytes;
        config
    }
}

#[test]
fn gaps_that_cost_less_than_a_read_are_read() {
    // individual samples of checked chunks: the second of each pair is 3 samples after the first
    let indices: Vec<u64> = [70, 73, 100, 103, 500].into();
    for (gap_bytes, ranges, bytes) in [
        (0, 5, 5 * SAMPLE_BYTES),
        (2 * SAMPLE_BYTES - 1, 5, 5 * SAMPLE_BYTES),
        (2 * SAMPLE_BYTES, 3, 9 * SAMPLE_BYTES),
        (26 * SAMPLE_BYTES, 2, 35 * SAMPLE_BYTES),
    ] {
        let (reads, read) = (AtomicUsize::new(0), AtomicU64::new(0));
        let source = Arc::new(CountingSource { file: InMemory(raw_file(640)), gap_bytes, reads, bytes: read });
        let reader = OpenOptions::new().open_source(source.clone()).unwrap();
        let column = reader.column("x").unwrap();
        column.cursor().range_into(0..640, &mut ColumnBuffer::new()).unwrap();
        let mut plan = ReadPlan::new();
        plan.select(&[column], &indices).unwrap();
        assert_eq!((plan.ranges().len(), plan.fetched_bytes()), (ranges, bytes), "gaps of {gap_bytes}");
        assert_eq!((plan.task_count(), plan.sample_count(), plan.column_count()), (5, 5, 1));
        let before = (source.reads.load(Ordering::Relaxed), source.bytes.load(Ordering::Relaxed));
        let mut fetched = FetchedBytes::new();
        plan.fetch(&mut fetched).unwrap();
        let after = (source.reads.load(Ordering::Relaxed), source.bytes.load(Ordering::Relaxed));
        assert_eq!((after.0 - before.0, after.1 - before.1), (ranges, bytes), "gaps of {gap_bytes}");
        let mut out = [ColumnBuffer::new()];
        Decoder::new().decode(&plan, &fetched, &mut out).unwrap();
        let firsts = out[0].values::<u32>().unwrap().chunks(256).map(|sample| u64::from(sample[0]) / 256);
        assert!(firsts.eq(indices.iter().copied()), "gaps of {gap_bytes}");
    }
}

#[test]
fn ranges_end_where_they_would_fill_the_cache() {
    let gap_bytes = 1 << 10;
    let source = CountingSource {
        file: InMemory(raw_file(6400)),
        gap_bytes,
        reads: AtomicUsize::new(0),
        bytes: AtomicU64::new(0),
    };
    let reader = OpenOptions::new().open_source(source).unwrap();
    let mut plan = ReadPlan::new();
    plan.select_range(&[reader.column("x").unwrap()], 0..6400).unwrap();
    let lengths: Vec<u64> = plan.ranges().iter().map(|range| range.end - range.start).collect();
    assert!(lengths.iter().all(|&length| length <= 256 << 10) && lengths.len() > 20, "{lengths:?}");
    assert!(lengths.iter().rev().skip(1).all(|&length| length > 192 << 10), "chunks are read together: {lengths:?}");
}

#[test]
fn a_file_in_memory_needs_no_bytes() {
    let reader = Reader::from_bytes(raw_file(640)).unwrap();
    let mut plan = ReadPlan::new();
    plan.select(&[reader.column("x").unwrap()], &[5, 600]).unwrap();
    assert_eq!((plan.ranges(), plan.task_count()), (&[][..], 2));
    let mut out = [ColumnBuffer::new()];
    let mut fetched = FetchedBytes::new();
    plan.fetch(&mut fetched).unwrap();
    Decoder::new().decode(&plan, &fetched, &mut out).unwrap();
    assert_eq!(out[0].values::<u32>().unwrap()[256], 600 * 256);
}

// ---- step by step

/// A source that records what is prefetched and what is read.
struct RecordingSource {
    file: InMemory<Vec<u8>>,
    prefetched: Mutex<Vec<Range<u64>>>,
    read: Mutex<Vec<Range<u64>>>,
}

impl Source for RecordingSource {
    fn byte_count(&self) -> u64 {
        self.file.byte_count()
    }

    fn read_exact_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.read.lock().unwrap().push(offset..offset + out.len() as u64);
        self.file.read_exact_at(offset, out)
    }

    fn prefetch(&self, ranges: &[Range<u64>]) {
        self.prefetched.lock().unwrap().extend_from_slice(ranges);
    }
}

/// Writes chunks of 8 blocks each, with equal or differing sample counts: several index pages.
fn file_of_many_chunks(is_ragged: bool) -> Vec<u8> {
    let shape = if is_ragged { Shape::new([Extent::Varying]) } else { Shape::fixed(&[64]) };
    let schema = Schema::new([ColumnSchema::tensor("x", DType::I32, shape)]);
    let options = WriterOptions::new().profile(Profile::Raw).chunk_bytes(8 << 10).block_bytes(1 << 10);
    let mut writer = Writer::new(Stream(Vec::new()), schema, &options).unwrap();
    let mut random = Random(1);
    for sample in 0..20_000_u64 {
        let length = if is_ragged { 32 + random.below(64) as u32 } else { 64 };
        let elements = vec![sample as i32; length as usize];
        let extents = [length];
        let value = if is_ragged { Value::ragged(&elements, &extents) } else { Value::tensor(&elements) };
        writer.push(&[value]).unwrap();
    }
    writer.into_bytes().unwrap()
}

#[test]
fn each_step_of_planning_reads_what_the_step_before_has_prefetched() {
    for is_ragged in [false, true] {
        let (prefetched, read) = (Mutex::default(), Mutex::default());
        let source = Arc::new(RecordingSource { file: InMemory(file_of_many_chunks(is_ragged)), prefetched, read });
        let reader = OpenOptions::new().open_source(source.clone()).unwrap();
        let column = reader.column("x").unwrap();
        let take = |ranges: &Mutex<Vec<Range<u64>>>| std::mem::take(&mut *ranges.lock().unwrap());
        take(&source.read);
        let (mut plan, mut random) = (ReadPlan::new(), Random(2));
        for round in 0..10 {
            let indices: Vec<u64> = (0..20).map(|_| random.below(20_000)).collect();
            plan.begin(std::slice::from_ref(&column), &indices).unwrap();
            assert_eq!(take(&source.read), [], "{is_ragged}, round {round}: starting a plan waits for nothing");
            let mut missed = 0;
            let mut is_complete = false;
            while !is_complete {
                let prefetched = take(&source.prefetched);
                is_complete = plan.advance().unwrap();
                let was_prefetched =
                    |read: &&Range<u64>| prefetched.iter().any(|at| at.start <= read.start && read.end <= at.end);
                missed += take(&source.read).iter().filter(|read| !was_prefetched(read)).count();
            }
            // if chunks differ in length, the page of a sample is a guess
            assert!(missed <= if is_ragged { 2 } else { 0 }, "{is_ragged}, round {round}: {missed} reads were missed");
        }
    }
}

#[test]
fn a_plan_that_is_not_complete_is_refused() {
    let reader = Reader::from_bytes(raw_file(640)).unwrap();
    let columns = [reader.column("x").unwrap()];
    let (mut plan, mut bytes, mut out) = (ReadPlan::new(), FetchedBytes::new(), [ColumnBuffer::new()]);
    plan.begin(&columns, &[5]).unwrap();
    for _ in 0..2 {
        assert_eq!(plan.fetch(&mut bytes).unwrap_err().kind(), ErrorKind::BadArgument);
        let decoded = Decoder::new().decode(&plan, &bytes, &mut out);
        assert_eq!(decoded.unwrap_err().kind(), ErrorKind::BadArgument);
        let decoded = plan.decode_segments(2, &mut out, |_| Ok(()));
        assert_eq!(decoded.unwrap_err().kind(), ErrorKind::BadArgument);
        assert!(!plan.advance().unwrap_or(false));
        plan.begin(&columns, &[640]).unwrap();
        while plan.advance().is_ok_and(|is_complete| !is_complete) {}
    }
    plan.begin_range(&columns, 3..5).unwrap();
    while !plan.advance().unwrap() {}
    plan.fetch(&mut bytes).unwrap();
    Decoder::new().decode(&plan, &bytes, &mut out).unwrap();
    assert_eq!(out[0].sample_count(), 2);
}

// ---- failures

/// A source that cannot read one byte. It reads the ranges before that byte.
struct FailingSource {
    file: Vec<u8>,
    max_request_bytes: u64,
    broken: AtomicU64,
}

impl Source for FailingSource {
    fn byte_count(&self) -> u64 {
        self.file.len() as u64
    }

    fn read_exact_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        match (offset..offset + out.len() as u64).contains(&self.broken.load(Ordering::Relaxed)) {
            true => Err(io::Error::other("the cable is out")),
            false => InMemory(&self.file).read_exact_at(offset, out),
        }
    }

    fn coalesce(&self) -> CoalesceConfig {
        let mut config = CoalesceConfig::MEMORY;
        config.max_request_bytes = self.max_request_bytes;
        config.max_in_flight = 100;
        config
    }
}

#[test]
fn a_range_that_cannot_be_read_is_named_by_its_offset() {
    let source =
        Arc::new(FailingSource { file: raw_file(640), max_request_bytes: 256 << 10, broken: AtomicU64::new(u64::MAX) });
    let reader = OpenOptions::new().open_source(source.clone()).unwrap();
    let column = reader.column("x").unwrap();
    let indices = [0, 200, 400, 639];
    let mut plan = ReadPlan::new();
    plan.select(std::slice::from_ref(&column), &indices).unwrap();
    let start = plan.ranges()[2].start;
    source.broken.store(start + 100, Ordering::Relaxed);
    let error = column.cursor().gather_into(&indices, &mut ColumnBuffer::new()).unwrap_err();
    assert_eq!((error.kind(), error.column(), error.offset()), (ErrorKind::Io, Some("x"), Some(start)), "{error}");
    assert!(error.to_string().contains("the cable is out"), "{error}");
    plan.select(std::slice::from_ref(&column), &indices).unwrap();
    let mut fetched = FetchedBytes::new();
    let by_plan = plan.fetch(&mut fetched).unwrap_err();
    assert_eq!((by_plan.kind(), by_plan.offset()), (ErrorKind::Io, plan.ranges().get(2).map(|range| range.start)));
    let error = Decoder::new().decode(&plan, &fetched, &mut [ColumnBuffer::new()]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::BadArgument, "{error}");
    // ranges that were read before the failure are not lost for later reads
    assert!(column.cursor().gather_into(&indices[..2], &mut ColumnBuffer::new()).is_ok());
}

#[test]
fn the_first_sample_decides_the_error_whatever_is_read_first() {
    // in the file, the first column's samples come after the second's: one of them is damaged, and
    // some of the second column cannot be read
    let schema = ["x", "y"].map(|name| ColumnSchema::tensor(name, DType::U32, Shape::fixed(&[1024])));
    let options = WriterOptions::new().profile(Profile::Raw).chunk_bytes(1 << 16);
    let mut writer = Writer::new(Stream(Vec::new()), Schema::new(schema), &options).unwrap();
    let values: Vec<u32> = (0..64 * 1024).collect();
    writer.push_batch(&[ColumnBatch::fixed(64, &values), ColumnBatch::fixed(64, &values)]).unwrap();
    let mut file = writer.into_bytes().unwrap();
    let reader = Reader::from_bytes(file.clone()).unwrap();
    let chunk = |name, number| reader.column(name).unwrap().chunk(number).unwrap().unwrap();
    let (damaged, broken) = (chunk("x", 3), chunk("y", 0));
    file[damaged.file_range.start as usize + 1000] ^= 1;
    // each chunk is one request
    let source =
        FailingSource { file, max_request_bytes: 70_000, broken: AtomicU64::new(broken.file_range.start + 1000) };
    let reader = OpenOptions::new().open_source(source).unwrap();
    let mut buffers = Vec::new();
    let mut rows = reader.rows(&["x", "y"]).unwrap();
    let error = rows.gather_into(&[0, 48], &mut buffers).unwrap_err();
    assert_eq!((error.kind(), error.column()), (ErrorKind::Corrupt, Some("x")), "{error}");
}

#[test]
fn stages_that_do_not_fit_each_other_are_refused() {
    let [reader, other] = [1280, 640].map(|count| OpenOptions::new().open_source(Positional(raw_file(count))).unwrap());
    let (column, of_other) = (reader.column("x").unwrap(), other.column("x").unwrap());
    let (mut plan, mut fetched, mut decoder) = (ReadPlan::new(), FetchedBytes::new(), Decoder::new());
    let mut out = [ColumnBuffer::new()];
    let refused = |result: Result<(), Error>, part: &str| {
        let error = result.expect_err(part);
        assert_eq!(error.kind(), ErrorKind::BadArgument, "{error}");
        assert!(error.to_string().contains(part), "{error}");
    };
    refused(plan.select(&[column.clone(), of_other], &[0]), "one reader");
    refused(plan.select(std::slice::from_ref(&column), &[0, 1280]), "1280 samples");
    plan.select(std::slice::from_ref(&column), &[0, 700]).unwrap();
    refused(decoder.decode(&plan, &fetched, &mut out), "another plan");
    // bytes that were fetched by other means
    let length: u64 = plan.ranges().iter().map(|range| range.end - range.start).sum();
    let bytes = fetched.begin(&plan).unwrap();
    assert_eq!(bytes.len() as u64, length);
    let mut rest = &mut *bytes;
    for range in plan.ranges() {
        let to = rest.split_off_mut(..(range.end - range.start) as usize).unwrap();
        InMemory(raw_file(1280)).read_exact_at(range.start, to).unwrap();
    }
    decoder.decode(&plan, &fetched, &mut out).unwrap();
    assert_eq!(out[0].values::<u32>().unwrap()[256], 700 * 256);
    plan.fetch(&mut fetched).unwrap();
    refused(decoder.decode(&plan, &fetched, &mut []), "1 columns");
    refused(
        plan.decode_segments(2, &mut out, |parts| decode_backwards(parts.into_iter().take(1).collect(), &fetched)),
        "segments",
    );
    decoder.decode(&plan, &fetched, &mut out).unwrap();
    plan.select(&[column], &[0, 800]).unwrap();
    refused(decoder.decode(&plan, &fetched, &mut out), "another plan");
    // an empty plan
    plan.select(&[], &[]).unwrap();
    plan.fetch(&mut fetched).unwrap();
    decoder.decode(&plan, &fetched, &mut []).unwrap();
}

/// Memory of the caller that may refuse to grow.
struct CallerMemory {
    bytes: Vec<u8>,
    is_short: bool,
}

impl ReadMemory for CallerMemory {
    fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }

    fn reserve(&mut self, _used: usize, bytes: usize) -> Result<(), Error> {
        match self.is_short {
            true => Err(Error::bad_argument("there is no more")),
            false => {
                self.bytes.resize(bytes, 0xEE);
                Ok(())
            }
        }
    }
}

/// A source that reads into memory of the caller, loses it, or returns other memory.
struct LendingSource {
    file: FailingSource,
    behavior: AtomicUsize,
}

impl Source for LendingSource {
    fn byte_count(&self) -> u64 {
        self.file.byte_count()
    }

    fn read_exact_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(offset, out)
    }

    fn alignment(&self) -> Option<u64> {
        Some(4096)
    }

    fn read_to_memory(
        &self,
        ranges: &[Range<u64>],
        mut memory: Box<dyn ReadMemory>,
    ) -> (Option<Box<dyn ReadMemory>>, Result<(), RangeError>) {
        assert!(ranges.iter().all(|range| range.start % 4096 == 0));
        match self.behavior.load(Ordering::Relaxed) {
            0 => {
                let length = ranges.iter().map(|range| (range.end - range.start) as usize).sum();
                let read = self.read_ranges(ranges, &mut memory.bytes_mut()[..length]);
                (Some(memory), read)
            }
            1 => (None, Ok(())),
            _ => (Some(Box::new(CallerMemory { bytes: Vec::new(), is_short: false })), Ok(())),
        }
    }
}

#[test]
fn memory_of_the_caller_has_the_bytes_of_the_plan_or_none() {
    let file = FailingSource { file: raw_file(640), max_request_bytes: 256 << 10, broken: AtomicU64::new(u64::MAX) };
    let source = Arc::new(LendingSource { file, behavior: AtomicUsize::new(0) });
    let reader = OpenOptions::new().verification(Verification::Never).open_source(source.clone()).unwrap();
    let column = reader.column("x").unwrap();
    let (mut plan, mut bytes) = (ReadPlan::new(), FetchedBytes::new());
    let memory =
        |is_short| -> Option<Box<dyn ReadMemory>> { Some(Box::new(CallerMemory { bytes: Vec::new(), is_short })) };
    let decode = |plan: &ReadPlan, bytes: &FetchedBytes| {
        let mut found = ColumnBuffer::new();
        Decoder::new().decode_column(plan, bytes, 0, &mut found).map(|()| found)
    };
    let mut expected = ColumnBuffer::new();
    let indices = [0, 3, 200, 639];
    column.cursor().gather_into(&indices, &mut expected).unwrap();
    // bytes of another plan, in the library's memory
    plan.select(std::slice::from_ref(&column), &[5, 7, 300, 638]).unwrap();
    plan.fetch(&mut bytes).unwrap();
    plan.select(std::slice::from_ref(&column), &indices).unwrap();
    for is_short in [false, true] {
        drop(bytes.set_memory(memory(is_short)));
        let before = bytes.fetches();
        plan.fetch(&mut bytes).unwrap();
        // if the caller's memory cannot grow, the library's memory is used
        assert_eq!((bytes.memory().is_none(), bytes.fetches() != before), (is_short, true));
        assert!(decode(&plan, &bytes).unwrap().bytes() == expected.bytes());
        drop(bytes.set_memory(None));
        assert_eq!(decode(&plan, &bytes).is_ok(), is_short);
    }
    for behavior in [1, 2] {
        source.behavior.store(behavior, Ordering::Relaxed);
        drop(bytes.set_memory(memory(false)));
        assert_eq!(plan.fetch(&mut bytes).unwrap_err().kind(), ErrorKind::Io);
        assert_eq!(decode(&plan, &bytes).unwrap_err().kind(), ErrorKind::BadArgument);
    }
    source.behavior.store(0, Ordering::Relaxed);
    drop(bytes.set_memory(memory(false)));
    source.file.broken.store(plan.ranges()[2].start + 100, Ordering::Relaxed);
    let error = plan.fetch(&mut bytes).unwrap_err();
    assert_eq!((error.kind(), error.column()), (ErrorKind::Io, Some("x")), "{error}");
    assert_eq!(decode(&plan, &bytes).unwrap_err().kind(), ErrorKind::BadArgument);
}
