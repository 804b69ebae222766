//! Decodes a column of a file on a GPU, compares the result with the processor's, and measures the
//! speed.
//!
//! ```text
//! cargo run --release -p tensilo-cuda --example gpu -- train.tsl embedding
//! ```
//!
//! Times are medians. Launches that overlap are timed together, on the host.

use std::collections::VecDeque;
use std::error::Error;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use tensilo::stages::{Decoder, FetchedBytes, ReadPlan};
use tensilo::{Column, ColumnBuffer, Reader};
use tensilo_cuda::{
    BlockList, Conversion, Destination, DeviceBuffer, Gpu, LaunchReport, PendingLaunch, Resident, SampleRows,
};

/// Decoded bytes of a batch of consecutive samples.
const BATCH_BYTES: usize = 64 << 20;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(path), Some(name)) = (arguments.next(), arguments.next()) else {
        return Err("usage: gpu FILE COLUMN".into());
    };
    let gpu = Gpu::open(0)?;
    let reader = Reader::open(&path)?;
    let column = reader.column(&name)?;
    println!("{path}, {name}, on {}", gpu.name());

    let start = Instant::now();
    let resident = Resident::new(&gpu, &column, Conversion::None)?;
    let [stored, seconds] = [resident.byte_count() as f64 / 1e6, start.elapsed().as_secs_f64()];
    println!("resident: {} samples in {stored:.1} MB, uploaded in {seconds:.3} s", resident.sample_count());
    for count in [256, 10_000] {
        gather(&gpu, &resident, &column, count)?;
    }
    decode(&gpu, &column)
}

/// Returns pseudo-random numbers.
fn numbers(count: usize, below: u64) -> Vec<i64> {
    let mut state = 1_u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below.max(1)
    };
    (0..count).map(|_| next() as i64).collect()
}

fn median(mut times: Vec<Duration>) -> f64 {
    times.sort();
    times.get(times.len() / 2).map_or(0.0, Duration::as_secs_f64)
}

/// Returns how often to measure. An emulated GPU only shows that the program works.
fn times(gpu: &Gpu, times: u32) -> u32 {
    if gpu.is_emulated() { 2 } else { times }
}

/// Gathers random samples of a resident column.
fn gather(gpu: &Gpu, resident: &Resident, column: &Column, count: usize) -> Result<(), Box<dyn Error>> {
    let samples = numbers(count, resident.sample_count());
    let row_bytes = resident.row_bytes().next_multiple_of(8);
    let indices = gpu.buffer_from(bytemuck::cast_slice(&samples))?;
    let rows = gpu.buffer_from(&vec![0; count * row_bytes])?;
    let launch = || {
        // SAFETY: rows and indices live until all launches are finished.
        unsafe { resident.gather(indices.address(), count, rows.as_batch(), row_bytes) }
    };
    if let Some(refusal) = launch()?.finish()?.0 {
        return Err(format!("{refusal:?}").into());
    }
    let mut expected = ColumnBuffer::new();
    let requested: Vec<u64> = samples.iter().map(|&sample| sample as u64).collect();
    column.cursor().gather_into(&requested, &mut expected)?;
    let mut found = vec![0; count * row_bytes];
    rows.read(&mut found)?;
    for (position, row) in found.chunks_exact(row_bytes).enumerate() {
        let values = value_range(&expected, position);
        if row.get(..values.len()) != expected.bytes().get(values) {
            return Err(format!("row {position} differs").into());
        }
    }
    let times = times(gpu, 1000);
    let synchronous = (0..times).map(|_| {
        let start = Instant::now();
        launch().and_then(|gathered| gathered.finish()).map(|(_, on_device)| (start.elapsed(), on_device))
    });
    let (synchronous, on_device): (Vec<_>, Vec<_>) = synchronous.collect::<Result<Vec<_>, _>>()?.into_iter().unzip();
    let [synchronous, on_device] = [synchronous, on_device].map(median);
    let (start, mut in_flight) = (Instant::now(), VecDeque::new());
    for _ in 0..times {
        in_flight.push_back(launch()?);
        if in_flight.len() > 8 {
            in_flight.pop_front().map(|gathered| gathered.finish()).transpose()?;
        }
    }
    drop(in_flight);
    let each = start.elapsed().as_secs_f64() / f64::from(times);
    let speed = expected.bytes().len() as f64 / each / 1e9;
    let [on_device, synchronous, each] = [on_device, synchronous, each].map(|seconds| seconds * 1e6);
    println!(
        "gather of {count}: {on_device:.1} us on the GPU, {synchronous:.1} us with the host, {each:.1} us each if \
         launched in a row: {speed:.1} GB/s"
    );
    Ok(())
}

fn value_range(buffer: &ColumnBuffer, position: usize) -> std::ops::Range<usize> {
    let start = |position| buffer.value_start(position).unwrap_or(0);
    start(position)..start(position + 1)
}

/// Decodes consecutive samples, which are sent again with each launch.
fn decode(gpu: &Gpu, column: &Column) -> Result<(), Box<dyn Error>> {
    let (mut plan, mut bytes, mut expected) = (ReadPlan::new(), FetchedBytes::new(), ColumnBuffer::new());
    let all = column.sample_count();
    plan.select_range(std::slice::from_ref(column), 0..all.min(1000))?;
    plan.fetch(&mut bytes)?;
    Decoder::new().decode_column(&plan, &bytes, 0, &mut expected)?;
    let sample_bytes = (expected.bytes().len() / expected.sample_count().max(1)).max(1);
    let count = all.min((BATCH_BYTES / sample_bytes) as u64);
    plan.select_range(std::slice::from_ref(column), 0..count)?;
    plan.fetch(&mut bytes)?;
    Decoder::new().decode_column(&plan, &bytes, 0, &mut expected)?;
    let mut lists = Vec::new();
    let mut batches: Vec<DeviceBuffer> = Vec::new();
    for _ in 0..2 {
        let (mut list, mut shapes) = (gpu.new_list(), ColumnBuffer::new());
        Decoder::new().visit_blocks(&plan, &bytes, 0, &mut shapes, &mut |samples| list.push(0, &samples))?;
        let dtype = column.schema().dtype;
        let destination = Destination { dtype, conversion: Conversion::None, offset: 0, row_bytes: None };
        list.place(&destination, &[SampleRows { shapes: &shapes, rows: None }])?;
        lists.push(list);
        batches.push(gpu.buffer_from(&vec![0; expected.bytes().len()])?);
    }
    let sent = lists.first().map_or(0, |list| list.byte_count());
    let (start, times) = (Instant::now(), times(gpu, 40));
    let (mut in_flight, mut copying, mut decoding) = (VecDeque::new(), Vec::new(), Vec::new());
    let mut finish = |launched: PendingLaunch| -> Result<BlockList, Box<dyn Error>> {
        let LaunchReport { list, refusal, .. } = launched.finish().inspect(|finished| {
            copying.push(finished.copying);
            decoding.push(finished.decoding);
        })?;
        refusal.map_or(Ok(list), |refusal| Err(format!("{refusal:?}").into()))
    };
    for (_, batch) in (0..times).zip(batches.iter().cycle()) {
        let list = match lists.pop() {
            Some(list) => list,
            None => in_flight.pop_front().map(&mut finish).ok_or("no list")??,
        };
        // SAFETY: the batches live until all launches are finished.
        in_flight.push_back(unsafe { gpu.launch(list, batch.as_batch()) }?);
    }
    for launched in in_flight {
        finish(launched)?;
    }
    let each = start.elapsed().as_secs_f64() / f64::from(times);
    let mut found = vec![0; expected.bytes().len()];
    batches.last().map_or(Ok(()), |batch| batch.read(&mut found))?;
    if found != expected.bytes() {
        return Err("a batch differs".into());
    }
    let [decoded, sent] = [expected.bytes().len(), sent].map(|bytes| bytes as f64 / 1e6);
    let [out, link] = [decoded, sent].map(|megabytes| megabytes / each / 1e3);
    let [copied, kernel] = [sent / median(copying) / 1e3, decoded / median(decoding) / 1e3];
    println!("batches of {decoded:.1} MB, {sent:.1} MB sent: {out:.1} GB/s decoded, {link:.1} GB/s over the link");
    println!("copy only: {copied:.1} GB/s; kernel only: {kernel:.1} GB/s decoded");
    Ok(())
}
