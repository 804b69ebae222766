//! `tensilo bench --loader`

mod args;
mod io;
mod measure;
mod plot;
mod report;
mod shuffle;

pub(crate) use args::LoaderArgs;

use super::args::BenchArgs;
use crate::dataset::DatasetSize;
use crate::failure::{Failure, Outcome};
use crate::output::{Data, Destination, Inputs, Output, write_json};
use args::{DecodeThreads, OrderName};
use measure::LoaderBench;
use report::LoaderReport;
use std::thread::available_parallelism;
use tensilo_cuda::Gpu;
use tensilo_data::{DataError, Dataset};

/// The samples of a batch, unless told.
const USUAL_BATCH: u32 = 256;

/// Measures how fast a loader delivers batches.
pub(super) fn run(args: &BenchArgs) -> Outcome {
    let dataset = io::open(args)?;
    let inputs = Inputs::Dataset(&dataset);
    let svg = args.loader.svg.as_deref();
    let svg = svg.map(|path| Destination::new(path, args.loader.force, Data::Text, inputs)).transpose()?;
    let report = measure(args, &dataset)?;
    let mut output = Output::stdout();
    if args.json {
        write_json(&mut output, &report.document())?;
    } else {
        report.write_text(&mut output)?;
    }
    output.finish()?;
    let Some(destination) = svg else { return Ok(()) };
    let mut drawing = destination.create()?;
    let written = plot::write_svg(&mut drawing, &report.rates(), report.required());
    written.map_err(|error| Failure::from(error).with_output(args.loader.svg.as_deref()))?;
    drawing.finish()
}

fn measure<'a>(args: &'a BenchArgs, dataset: &Dataset) -> Outcome<LoaderReport<'a>> {
    let order = args.loader.order.unwrap_or(OrderName::Windowed);
    let all = u32::try_from(dataset.sample_count()).unwrap_or(u32::MAX);
    let batch = args.batch.unwrap_or(USUAL_BATCH.min(all.max(1)));
    let gpu = args.loader.device.map(Gpu::open).transpose().map_err(DataError::from)?;
    let bench = LoaderBench { args, gpu: gpu.as_ref(), mode: args.loader.mode(order, dataset)?, batch };
    let sample_count = dataset.sample_count();
    if sample_count < u64::from(batch) {
        let message = format!("--batch {batch}: the dataset has {sample_count} samples");
        return Err(Failure::Usage(message));
    }
    let size = DatasetSize::of(dataset)?;
    let quality = args.loader.order.map(|_| shuffle::quality(bench.mode, sample_count, batch));
    let io = bench.io(dataset)?;
    let gpu = gpu.as_ref().map(|gpu| gpu.name().to_owned());
    let mut report = LoaderReport { args, io, gpu, order, batch, sample_count, size, runs: Vec::new(), quality };
    if !args.cold {
        bench.prepare(dataset)?;
    }
    for threads in numbers(args.loader.decode_threads) {
        let run = match args.cold {
            true => {
                bench.prepare(dataset)?;
                bench.run(&io::open(args)?, threads)?
            }
            false => bench.run(dataset, threads)?,
        };
        report.runs.push(run);
        if report.is_enough() {
            break;
        }
    }
    Ok(report)
}

/// Returns the numbers of decode threads that are tried.
fn numbers(threads: DecodeThreads) -> Vec<u32> {
    match threads {
        DecodeThreads::Number(number) => vec![number],
        DecodeThreads::Auto => {
            let processors = available_parallelism().map_or(1, |number| u32::try_from(number.get()).unwrap_or(1));
            let doubled = std::iter::successors(Some(1_u32), |number| number.checked_mul(2));
            doubled.take_while(|number| *number < processors).chain([processors]).collect()
        }
    }
}
