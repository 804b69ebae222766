//! Compares tensilo's choice of encodings with the best one, and measures what each technique
//! saves.
//!
//! The writer estimates encodings from a sample of each chunk. An exhaustive search encodes every
//! combination, so its result is the best that the profile allows, and the difference is the
//! *regret* of the estimate. Both are measured in the profile's cost: stored bytes, weighted by
//! decoding time. Runs of several chunks are written, because a writer keeps its choice for the
//! next chunks.

use crate::data::more::{self, DatasetEntry, ElementType};
use crate::data::{self, Dataset, Element};
use crate::nested;
use anyhow::{Context, Result, ensure};
use half::bf16;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use tensilo::search::{Search, Technique};
use tensilo::sink::Stream;
use tensilo::{ColumnBatch, ColumnSchema, Profile, Reader, Schema, Shape, Writer, WriterOptions};

/// Compares the encoder's choice with the best that its profile allows.
///
/// A profile may use many combinations of encoding, transform, mapping and options. The encoder
/// estimates them from a sample; an exhaustive search encodes each, which takes a second for a
/// chunk of 512 KiB. The regret is the additional cost of the encoder's choice. The profile defines
/// the cost: encodings that decode more slowly must save more. With `--ablation`, prints the bytes
/// that each technique saves in an exhaustive search, and the encoding time without it.
#[derive(clap::Args)]
pub struct Arguments {
    /// As in the comparison
    #[arg(long, value_name = "DIR", env = "TENSILO_DATA")]
    data: Option<PathBuf>,
    /// As in the comparison; may be repeated
    #[arg(long, value_name = "DIR")]
    more: Vec<PathBuf>,
    /// As in the comparison
    #[arg(long, value_name = "DIR", env = "TENSILO_TEXTS")]
    texts: Option<PathBuf>,
    /// Only these data sets, separated by commas
    #[arg(long, value_name = "DATASET", value_delimiter = ',')]
    only: Vec<String>,
    /// Profiles, separated by commas
    #[arg(long, value_name = "PROFILE", value_delimiter = ',', default_value = "fast,balanced,small", value_parser = profile)]
    profile: Vec<Profile>,
    /// Chunks of each data set, in evenly spaced runs of four, because writers keep a choice for
    /// the next chunks
    #[arg(long, value_name = "COUNT", default_value = "8", value_parser = clap::value_parser!(u16).range(1..))]
    chunks: u16,
    /// Print the loss without each technique
    #[arg(long)]
    ablation: bool,
    /// Fail if a regret is greater: one percentage per profile, separated by commas
    #[arg(long, value_name = "PERCENT", value_delimiter = ',')]
    at_most: Vec<f64>,
}

/// The number of consecutive chunks that are written as one file.
const RUN: usize = 4;
/// The raw bytes of a data set of texts.
const TEXT_BYTES: usize = 2 << 20;

/// A data set that is written with different searches.
trait Source {
    fn name(&self) -> &str;

    fn raw_bytes(&self) -> usize;

    /// Writes the data set to one or more files in memory.
    fn write(&self, options: &WriterOptions) -> Result<Vec<Vec<u8>>>;
}

/// Runs of consecutive chunks of a data set.
struct Chunks<'a, T> {
    data: &'a Dataset<T>,
    /// The number of samples in a run.
    samples: usize,
    /// The first sample of each run.
    starts: Vec<usize>,
}

fn profile(name: &str) -> Result<Profile> {
    Profile::ALL
        .into_iter()
        .find(|profile| profile.name() == name)
        .with_context(|| format!("there is no profile {name}"))
}

/// The totals of all chunks that were written.
#[derive(Default)]
struct EncodeResult {
    /// The stored bytes of the values.
    bytes: u64,
    /// The stored bytes, weighted as the profile compares encodings.
    cost: u64,
    time: Duration,
}

impl EncodeResult {
    /// Returns by how many percent the cost exceeds the cost of `best`.
    fn percents_above(&self, best: &Self) -> f64 {
        100.0 * (self.cost as f64 / best.cost.max(1) as f64 - 1.0)
    }
}

pub fn run(arguments: &Arguments) -> Result<()> {
    ensure!(
        [0, arguments.profile.len()].contains(&arguments.at_most.len()),
        "--at-most has {} percentages, expected one for each of {} profiles",
        arguments.at_most.len(),
        arguments.profile.len()
    );
    let is_requested = |name: &str| arguments.only.is_empty() || arguments.only.iter().any(|only| only == name);
    match arguments.ablation {
        true => println!(
            "| data | profile | technique | stored | without it | lost | time without it |\n|---|---|---|--:|--:|--:|--:|"
        ),
        false => println!("| data | profile | raw | stored | smallest | regret |\n|---|---|--:|--:|--:|--:|"),
    }
    let mut failures = Vec::new();
    for name in data::NAMES.into_iter().filter(|name| is_requested(name)) {
        measure_chunks(arguments, &data::load(name, arguments.data.as_deref())?, &mut failures)?;
    }
    for folder in &arguments.more {
        for set in more::list(folder)?.iter().filter(|set| is_requested(&set.name)) {
            measure_entry(arguments, set, &mut failures)?;
        }
    }
    let folders = nested::data::Folders { tensors: arguments.data.as_deref(), texts: arguments.texts.as_deref() };
    for name in nested::data::NAMES.into_iter().filter(|name| is_requested(name)) {
        let data = nested::data::load(name, folders, TEXT_BYTES)?;
        arguments.profile.iter().try_for_each(|&profile| measure(arguments, &data, profile, &mut failures))?;
    }
    ensure!(failures.is_empty(), "regrets above --at-most: {}", failures.join("; "));
    Ok(())
}

fn measure_entry(arguments: &Arguments, set: &DatasetEntry, failures: &mut Vec<String>) -> Result<()> {
    match set.dtype {
        ElementType::Bf16 => measure_chunks(arguments, &set.load::<bf16>()?, failures),
        ElementType::F32 => measure_chunks(arguments, &set.load::<f32>()?, failures),
        ElementType::F64 => measure_chunks(arguments, &set.load::<f64>()?, failures),
        ElementType::I16 => measure_chunks(arguments, &set.load::<i16>()?, failures),
        ElementType::I32 => measure_chunks(arguments, &set.load::<i32>()?, failures),
        ElementType::I64 => measure_chunks(arguments, &set.load::<i64>()?, failures),
    }
}

fn measure_chunks<T: Element>(arguments: &Arguments, data: &Dataset<T>, failures: &mut Vec<String>) -> Result<()> {
    arguments.profile.iter().try_for_each(|&profile| {
        measure(arguments, &Chunks::new(data, profile, arguments.chunks.into()), profile, failures)
    })
}

/// Prints the lines of one source and profile.
fn measure(arguments: &Arguments, source: &dyn Source, profile: Profile, failures: &mut Vec<String>) -> Result<()> {
    let name = format!("{} | {}", source.name(), profile.name());
    if arguments.ablation {
        return print_ablation(&name, source, profile);
    }
    let written = encode(source, profile, Search::new())?;
    let best = encode(source, profile, Search::new().exhaustive())?;
    let regret = written.percents_above(&best);
    println!("| {name} | {} | {} | {} | {regret:.2} % |", source.raw_bytes(), written.bytes, best.bytes);
    let mut limits = arguments.profile.iter().zip(&arguments.at_most);
    if limits.any(|(of, max_percent)| *of == profile && regret > *max_percent) {
        failures.push(format!("{}, {}: {regret:.2} %", source.name(), profile.name()));
    }
    Ok(())
}

/// Prints the techniques that save anything, and how much.
fn print_ablation(name: &str, source: &dyn Source, profile: Profile) -> Result<()> {
    let best = encode(source, profile, Search::new().exhaustive())?;
    let usual = encode(source, profile, Search::new())?;
    for technique in Technique::ALL {
        let without = encode(source, profile, Search::new().exhaustive().without(technique))?;
        if without.cost != best.cost {
            let shorter = encode(source, profile, Search::new().without(technique))?;
            println!(
                "| {name} | {technique:?} | {} | {} | {:.2} % | {:.0} % |",
                best.bytes,
                without.bytes,
                without.percents_above(&best),
                100.0 * shorter.time.as_secs_f64() / usual.time.as_secs_f64()
            );
        }
    }
    Ok(())
}

/// Writes all files of a source, and sums up their chunks.
fn encode(source: &dyn Source, profile: Profile, search: Search) -> Result<EncodeResult> {
    let options = WriterOptions::new().profile(profile).search(search).check_chunks(false);
    let start = Instant::now();
    let files = source.write(&options)?;
    let mut written = EncodeResult { time: start.elapsed(), ..EncodeResult::default() };
    for file in files {
        let reader = Reader::from_bytes(file)?;
        for column in reader.columns() {
            for number in 0..column.facts().chunk_count {
                let chunk = column.chunk(number)?.context("a chunk is missing")?;
                let bytes = chunk.file_range.end - chunk.file_range.start;
                written.bytes += bytes;
                written.cost += bytes * profile.weight(&chunk.encoding);
            }
        }
    }
    Ok(written)
}

impl<'a, T: Element> Chunks<'a, T> {
    fn new(data: &'a Dataset<T>, profile: Profile, max_chunks: usize) -> Self {
        let samples = RUN * data.samples_in(profile.chunk_bytes());
        let all = data.samples().div_ceil(samples);
        let count = all.min(max_chunks.div_ceil(RUN));
        // runs begin in the middle of equal shares of the data
        let starts = (0..count).map(|i| (2 * i + 1) * all / (2 * count) * samples).collect();
        Self { data, samples, starts }
    }

    fn runs(&self) -> impl Iterator<Item = &'a [u8]> {
        let (bytes, sample) = (self.data.bytes(), self.data.sample_bytes());
        self.starts.iter().map(move |start| {
            let end = (start + self.samples).min(bytes.len() / sample);
            &bytes[start * sample..end * sample]
        })
    }
}

impl<T: Element> Source for Chunks<'_, T> {
    fn name(&self) -> &str {
        &self.data.name
    }

    fn raw_bytes(&self) -> usize {
        self.runs().map(<[u8]>::len).sum()
    }

    /// Writes a file per run.
    fn write(&self, options: &WriterOptions) -> Result<Vec<Vec<u8>>> {
        let schema = Schema::new([ColumnSchema::tensor("x", T::DTYPE, Shape::fixed(&self.data.shape))]);
        let file = |run: &[u8]| {
            let samples = run.len() / self.data.sample_bytes();
            let mut writer = Writer::new(Stream(Vec::new()), schema.clone(), options)?;
            writer.push_batch(&[ColumnBatch::from_bytes(T::DTYPE, samples, &[], run)])?;
            Ok(writer.into_bytes()?)
        };
        self.runs().map(file).collect()
    }
}

impl Source for nested::data::Dataset {
    fn name(&self) -> &str {
        self.name
    }

    fn raw_bytes(&self) -> usize {
        self.samples.columns.raw_bytes()
    }

    fn write(&self, options: &WriterOptions) -> Result<Vec<Vec<u8>>> {
        Ok(vec![nested::write(self, Stream(Vec::new()), options)?.0])
    }
}
