//! `tensilo inspect`: the columns, sizes, encodings and metadata of a file, or the columns of a
//! dataset.
//!
//! The facts of a file come from its footer and its index; no chunk is decoded. If the chunks of a
//! column have blocks, the cost of reading one cold sample is estimated from the block indexes of a
//! few chunks, however large the file is. `--explain` decodes one chunk of each column, and encodes
//! it again with every encoding that a profile would try.
//!
//! [`document`] and [`dataset_document`] return the JSON forms, which other programs parse. The
//! tables show only the facts that fit in 80 characters; `--wide` shows all.

use super::dataset::{DatasetFacts, dataset_id};
use crate::failure::{Failure, Outcome};
use crate::open::{self, open};
use crate::output::{Output, print_json, shown};
use crate::text::{self, Table, column_cells, divide, or_dash, write_casts, write_inferred_shapes};
use clap::Args;
use serde_json::{Map, Value, json};
use std::io::{self, Write};
use std::path::PathBuf;
use tensilo::error::display_path;
use tensilo::explain::{Choice, Explanation, Section, Trial};
use tensilo::facts::{BlockInfo, CastFacts, ChunkBlocks, ColumnFacts};
use tensilo::{Column, ColumnSchema, Extent, Metadata, Profile, Reader};
use tensilo_data::{Dataset, Io, WindowSizes};

const INSPECT: &str = "\
Examples:
  tensilo inspect train.tsl
  tensilo inspect train.tsl --wide | less -S
      all facts of each column
  tensilo inspect train.tsl --json | jq '.columns[] | {name, dtype, shape}'
  tensilo inspect train/
      the columns of all files of a dataset
  tensilo inspect train.tsl --explain
      why each column has its size, and the size with other profiles
  tensilo inspect train.tsl --explain --sample 517 --json

On a terminal, tables are as wide as the terminal and long texts wrap; in a
pipe, each row is one line. --wide prints more facts, on lines of any width.

\"block\" is the average decoded size of a block; each block is read and checked
individually. \"cold read\" is how many bytes are read for one random sample that
is not cached: its block and everything in its chunk before the blocks, or the
whole chunk if it has no blocks. \"amplification\" is \"cold read\" divided by the
average stored size of a sample.

--explain analyzes one chunk of each column: the bits per element in each plane
or tier, the size with every encoding, and the choice of each profile with its
reason. Elements of text and bytes are single bytes; nulls and extents are not
counted. --regret also tries all combinations of encodings and options that a
profile allows, and prints by how many percent the choice of the profile costs
more than the cheapest of them. The cost is the stored size times a weight,
which is higher for encodings that decode slowly. This takes a second for a
chunk of 512 KiB.

JSON, schema tensilo.inspect/1 (these members are stable, and more may be
added):
  schema, file_bytes, sample_count
  columns: [{ name, dtype, nullable, raw_bytes, stored_bytes, chunk_count,
    shape      of an item; a varying extent is null
    nullable_levels  for each level of lists, whether its entries can be null
    encodings  the number of chunks with each encoding; 0 for an encoding that
               encodes only validity or shapes
    cast       null, or the cost of rounding: source, rounding, max_abs_error,
               max_rel_error, to_infinite, to_subnormal
    block_bytes         decoded, on average; null without blocks
    prefix_bytes        the start of a chunk, up to its blocks; included in
                        cold_read_bytes, but read once for all its samples
    cold_read_bytes
    read_amplification  null if samples take no stored bytes
    explanation         with --explain; null if the chunk does not exist:
      chunk, samples, encoding, transform, elements, raw_bytes, stored_bytes,
      bits_per_element, prefix_bytes, cold_read_bytes, read_amplification
      blocks   null, or [{ samples, stored_bytes, raw_bytes }]; the last sample
               of a block can also be the first of the next block
      sections [{ name, detail, stored_bytes, bits_per_element }]
      trials   [{ encoding, profiles, stored_bytes, bits_per_element, ratio,
                  in_file }]
               stored_bytes is null if the encoding is unsuitable; in_file is
               true if the file contains exactly this result
      choices  [{ profile, encoding, stored_bytes, reason, in_file, regret }];
               regret is null without --regret, and 0.01 for one percent }]

JSON of a dataset, schema tensilo.inspect-dataset/1:
  schema, dataset_id, version, sample_count, file_count, file_bytes, metadata
  run_samples, window_runs, streams  the default sizes of the windowed order
  advised_window_sizes  null, or better sizes for this storage: run_samples,
                        window_runs, streams
  columns: [{ name, dtype, nullable, nullable_levels, shape, file_count,
              raw_bytes, stored_bytes, null_count, chunk_count }]";

#[derive(Args, Debug)]
#[command(after_help = INSPECT)]
pub(crate) struct InspectArgs {
    /// A tensilo file, the folder of a dataset, or a quoted glob of files
    file: PathBuf,
    /// Print a JSON document
    #[arg(long)]
    json: bool,
    /// Print all facts about each column, in lines of any width
    #[arg(long, conflicts_with = "json")]
    wide: bool,
    /// Explain the size of one chunk of each column
    #[arg(long)]
    explain: bool,
    /// Compare the choice of each profile with the best of all combinations of encodings (this
    /// takes seconds)
    #[arg(long, requires = "explain")]
    regret: bool,
    /// Explain this chunk of each column, counted from 0 [default: 0]
    #[arg(long, value_name = "N", requires = "explain", conflicts_with = "sample")]
    chunk: Option<u64>,
    /// Explain the chunk that contains this sample
    #[arg(long, value_name = "N", requires = "explain")]
    sample: Option<u64>,
}

impl InspectArgs {
    /// Writes a table of columns.
    fn write(&self, table: Table, output: &mut impl Write) -> io::Result<()> {
        if self.wide { table.write_wide(output) } else { table.write(output) }
    }
}

/// Prints the columns, sizes, encodings and metadata of a file, or the columns of a dataset.
pub(crate) fn run(args: &InspectArgs, quiet: bool) -> Outcome {
    if let Some(dataset) = open::dataset(&args.file)? {
        return match args.explain {
            true => Err(explain_needs_file(args, &dataset)),
            false => inspect_dataset(args, &dataset, quiet),
        };
    }
    let about = |error| Failure::about(&args.file, error);
    let reader = open(&args.file, quiet)?;
    if args.json {
        return print_json(&document(&reader, args.explain.then_some(args)).map_err(about)?);
    }
    let mut output = Output::stdout();
    write_text(args, &reader, &mut output)?;
    for column in reader.columns().filter(|_| args.explain) {
        let explanation = ChunkExplanation::of(args, &column).map_err(about)?;
        write_explanation(&mut output, &column, explanation.as_ref())?;
    }
    output.finish()
}

/// Prints the columns of a dataset.
fn inspect_dataset(args: &InspectArgs, dataset: &Dataset, quiet: bool) -> Outcome {
    let facts = DatasetFacts::of(dataset, quiet)?;
    if args.json {
        return print_json(&dataset_document(dataset, &facts));
    }
    let mut output = Output::stdout();
    write_dataset(args, dataset, &facts, &mut output)?;
    output.finish()
}

fn explain_needs_file(args: &InspectArgs, dataset: &Dataset) -> Failure {
    let path = display_path(&args.file);
    let first = dataset.groups().flatten().find_map(|group| Some(group.files.first()?.path.clone()));
    let such = first.map_or_else(String::new, |first| format!(", such as {}", display_path(&first)));
    Failure::Usage(format!("{path}: this is a dataset; --explain needs one of its files{such}"))
}

/// Returns the JSON document of schema `tensilo.inspect/1`, with the explanations that `explain`
/// requests.
pub(crate) fn document(reader: &Reader, explain: Option<&InspectArgs>) -> tensilo::Result<Value> {
    let mut columns = Vec::new();
    for column in reader.columns() {
        let mut object = column_object(&column);
        if let (Some(args), Some(members)) = (explain, object.as_object_mut()) {
            let explanation = ChunkExplanation::of(args, &column)?;
            members.insert("explanation".to_owned(), explanation.map_or(Value::Null, |found| found.document()));
        }
        columns.push(object);
    }
    Ok(json!({
        "schema": "tensilo.inspect/1",
        "file_bytes": reader.file_bytes(),
        "sample_count": reader.sample_count(),
        "file_id": reader.file_id().to_string(),
        "content_id": reader.content_id().to_string(),
        "alignment": reader.alignment(),
        "commit_count": reader.commit_count(),
        "finished": reader.is_finished(),
        "tail_bytes": reader.tail_bytes(),
        "metadata": reader.schema().metadata,
        "columns": columns,
    }))
}

fn column_object(column: &Column) -> Value {
    let (schema, facts, cost) = (column.schema(), column.facts(), SampleCost::of(column));
    let encodings: Map<String, Value> =
        facts.encodings.iter().map(|(name, chunks)| (name.clone(), json!(chunks))).collect();
    json!({
        "name": schema.name,
        "dtype": schema.dtype.to_string(),
        "shape": shape(schema),
        "nullable": schema.nullable,
        "nullable_levels": nullable_levels(schema),
        "chunk_count": facts.chunk_count,
        "raw_bytes": facts.raw_bytes,
        "stored_bytes": facts.stored_bytes,
        "encodings": encodings,
        "cast": cast_object(schema, facts.cast),
        "null_count": facts.null_count,
        "block_bytes": cost.block_bytes,
        "prefix_bytes": cost.prefix_bytes,
        "cold_read_bytes": cost.cold_read_bytes,
        "read_amplification": cost.read_amplification,
        "metadata": schema.metadata,
    })
}

/// Returns the extents of an item. `None` stands for a varying extent.
fn shape(schema: &ColumnSchema) -> Vec<Option<u32>> {
    let extent = |extent: &Extent| match extent {
        Extent::Fixed(extent) => Some(*extent),
        Extent::Varying => None,
    };
    schema.shape.extents().iter().map(extent).collect()
}

fn nullable_levels(schema: &ColumnSchema) -> Vec<bool> {
    schema.levels.iter().map(|level| level.nullable).collect()
}

fn cast_object(schema: &ColumnSchema, facts: Option<CastFacts>) -> Value {
    let (Some(spec), Some(cast)) = (schema.cast, facts) else { return Value::Null };
    json!({
        "source": spec.source.name(),
        "rounding": "nearest-even",
        "max_abs_error": cast.max_abs_error,
        "max_rel_error": cast.max_rel_error,
        "to_infinite": cast.to_infinite,
        "to_subnormal": cast.to_subnormal,
    })
}

/// Returns the JSON document of schema `tensilo.inspect-dataset/1`.
pub(crate) fn dataset_document(dataset: &Dataset, facts: &DatasetFacts) -> Value {
    let columns = dataset.schema().columns.iter().zip(&facts.columns).map(|(column, sums)| {
        json!({
            "name": column.name,
            "dtype": column.dtype.name(),
            "nullable": column.nullable,
            "nullable_levels": nullable_levels(column),
            "shape": shape(column),
            "file_count": sums.files,
            "raw_bytes": sums.raw_bytes,
            "stored_bytes": sums.stored_bytes,
            "cast": cast_object(column, sums.cast),
            "null_count": sums.nulls,
            "chunk_count": sums.chunks,
        })
    });
    json!({
        "schema": "tensilo.inspect-dataset/1",
        "dataset_id": dataset_id(dataset),
        "version": dataset.version(),
        "sample_count": dataset.sample_count(),
        "file_count": facts.size.files,
        "file_bytes": facts.size.bytes,
        "run_samples": dataset.window_sizes().run_samples(),
        "window_runs": dataset.window_sizes().window_runs(),
        "streams": dataset.window_sizes().streams(),
        "advised_window_sizes": advised_window_sizes(dataset, facts.size.bytes).map(|sizes| json!({
            "run_samples": sizes.run_samples(),
            "window_runs": sizes.window_runs(),
            "streams": sizes.streams(),
        })),
        "metadata": dataset.schema().metadata,
        "columns": columns.collect::<Vec<Value>>(),
    })
}

/// Returns better sizes for a dataset in an object store if its runs are too short. A dataset that
/// was written to a disk and copied has such runs.
fn advised_window_sizes(dataset: &Dataset, file_bytes: u64) -> Option<WindowSizes> {
    let is_object = dataset.io() == Io::Object;
    is_object.then(|| longer_runs(dataset.window_sizes(), dataset.sample_count(), file_bytes)).flatten()
}

/// Returns the default sizes for an object store if their runs are at least twice as long.
fn longer_runs(sizes: WindowSizes, sample_count: u64, file_bytes: u64) -> Option<WindowSizes> {
    let advised = WindowSizes::for_dataset(sample_count, file_bytes, WindowSizes::OBJECT_RUN_BYTES);
    let is_longer = advised.run_samples() / 2 >= sizes.run_samples();
    (is_longer && sample_count > sizes.run_samples().into()).then_some(advised)
}

fn write_dataset(args: &InspectArgs, dataset: &Dataset, facts: &DatasetFacts, output: &mut impl Write) -> Outcome {
    let (samples, files, bytes) =
        (dataset.sample_count(), text::count(facts.size.files, "file"), text::bytes(facts.size.bytes));
    writeln!(output, "{}: {samples} samples in {files}, {bytes} in total", shown(&args.file))?;
    let (id, sizes) = (dataset_id(dataset), dataset.window_sizes());
    let version = match dataset.version() {
        0 => "no manifest".to_owned(),
        version => format!("version {version}"),
    };
    writeln!(output, "id {id}, {version}, default order: {sizes}\n")?;
    if let Some(advised) = advised_window_sizes(dataset, facts.size.bytes) {
        let (run_samples, window_runs, streams) = (advised.run_samples(), advised.window_runs(), advised.streams());
        writeln!(output, "The runs of this order are short for an object store. Longer ones are read faster:")?;
        writeln!(output, "  tensilo dataset set-window-sizes {} --run-samples {run_samples} \\", shown(&args.file))?;
        writeln!(output, "      --window-runs {window_runs} --streams {streams}\n")?;
    }
    let headings = ["column", "type", "shape", ">raw", ">stored", ">ratio", ">nulls", ">files", ">chunks"];
    let mut table = Table::new(&headings);
    for (column, sums) in dataset.schema().columns.iter().zip(&facts.columns) {
        let mut row = column_cells(column, sums.raw_bytes, sums.stored_bytes);
        row.extend([sums.nulls, sums.files, sums.chunks].map(|number| number.to_string()));
        table.row(row);
    }
    args.write(table, output)?;
    let casts = dataset.schema().columns.iter().zip(facts.columns.iter().map(|sums| sums.cast));
    Ok(write_casts(casts, output)?)
}

/// Writes the facts of the file and of each column.
fn write_text(args: &InspectArgs, reader: &Reader, output: &mut impl Write) -> io::Result<()> {
    let (path, samples, file_bytes) = (shown(&args.file), reader.sample_count(), reader.file_bytes());
    writeln!(output, "{path}: {samples} samples, {} ({file_bytes} bytes)", text::bytes(file_bytes))?;
    let state = if reader.is_finished() { "finished" } else { "not finished" };
    let (id, alignment, commits) = (reader.file_id(), reader.alignment(), reader.commit_count());
    writeln!(output, "id {id}, alignment {alignment}, commits {commits}, {state}")?;
    writeln!(output, "content {}\n", reader.content_id())?;
    args.write(columns_table(args, reader), output)?;
    write_inferred_shapes(reader.schema(), output)?;
    let casts = reader.columns().map(|column| column.facts().cast);
    write_casts(reader.schema().columns.iter().zip(casts), output)?;
    write_metadata(output, "file", &reader.schema().metadata)?;
    for column in &reader.schema().columns {
        write_metadata(output, &format!("column {}", text::excerpt(&column.name)), &column.metadata)?;
    }
    Ok(())
}

/// Returns a table of the columns. With `--wide`, it has all facts, otherwise only the facts that
/// fit in 80 characters.
fn columns_table(args: &InspectArgs, reader: &Reader) -> Table {
    let mut headings = vec!["column", "type", "shape", ">raw", ">stored", ">ratio", ">nulls", "encodings"];
    if args.wide {
        headings.extend([">chunks", ">samples/chunk", ">block", ">cold read", ">amplification"]);
    }
    let mut table = Table::new(&headings);
    for column in reader.columns() {
        let (schema, facts) = (column.schema(), column.facts());
        let mut row = column_cells(schema, facts.raw_bytes, facts.stored_bytes);
        let nulls = schema.nullable.then_some(facts.null_count);
        row.extend([or_dash(nulls, |nulls| nulls.to_string()), text::encodings(&facts)]);
        if args.wide {
            let cost = SampleCost::of(&column);
            row.extend([
                facts.chunk_count.to_string(),
                samples_per_chunk(column.sample_count(), facts.chunk_count),
                or_dash(cost.block_bytes, text::bytes),
                text::bytes(cost.cold_read_bytes),
                amplification_text(cost.read_amplification),
            ]);
        }
        table.row(row);
    }
    if !args.wide {
        table.hide_blank();
    }
    table
}

/// Returns the average number of samples per chunk, with one decimal place unless it is an integer.
fn samples_per_chunk(samples: u64, chunks: u64) -> String {
    match (samples.checked_div(chunks), samples.checked_rem(chunks)) {
        (Some(each), Some(0)) => each.to_string(),
        (Some(_), Some(_)) => format!("{:.1}", samples as f64 / chunks as f64), // an approximation
        _ => "-".to_owned(),
    }
}

fn write_metadata(output: &mut impl Write, owner: &str, metadata: &Metadata) -> io::Result<()> {
    if metadata.is_empty() {
        return Ok(());
    }
    writeln!(output, "\nmetadata of {owner}")?;
    let line =
        |(key, value): (&String, &String)| writeln!(output, "  {} = {}", text::excerpt(key), text::excerpt(value));
    metadata.iter().try_for_each(line)
}

/// The maximum number of chunks of a column whose block indexes are read.
const SAMPLED_CHUNKS: u64 = 8;

/// The average cost of one random sample of a column.
#[derive(Clone, Copy, Debug, PartialEq)]
struct SampleCost {
    /// The decoded size of a block in bytes, or `None` if no chunk has blocks.
    block_bytes: Option<u64>,
    /// The number of bytes that are read once for each chunk: everything before its blocks.
    prefix_bytes: u64,
    /// The number of bytes that are read for the first sample of a chunk.
    cold_read_bytes: u64,
    /// `cold_read_bytes` divided by the stored size of a sample, or `None` if that size is 0.
    read_amplification: Option<f64>,
}

impl SampleCost {
    /// Returns the cost for a column. Reads the block indexes of a few chunks, and skips those that
    /// are damaged.
    fn of(column: &Column) -> Self {
        let facts = column.facts();
        let in_blocks = facts.encodings.iter().any(|(name, _)| name.ends_with(" in blocks"));
        let sums = if in_blocks { Sums::of(column, &facts) } else { Sums::default() };
        // an approximation
        let sample_bytes = divide(facts.stored_bytes, column.sample_count() as f64);
        let cold_read_bytes = sums.per_sample(sums.cold_bytes).unwrap_or_else(|| whole_chunk_bytes(&facts));
        Self {
            block_bytes: sums.raw_bytes.checked_div(sums.blocks),
            prefix_bytes: sums.per_sample(sums.prefix_bytes).unwrap_or(0),
            cold_read_bytes,
            read_amplification: sample_bytes.and_then(|bytes| divide(cold_read_bytes, bytes)),
        }
    }
}

/// Sums over the examined chunks. The bytes to read are weighted by the number of samples in the
/// chunk.
#[derive(Default)]
struct Sums {
    samples: u64,
    blocks: u64,
    raw_bytes: u64,
    prefix_bytes: u128,
    cold_bytes: u128,
}

impl Sums {
    fn of(column: &Column, facts: &ColumnFacts) -> Self {
        let mut sums = Self::default();
        let count = facts.chunk_count.min(SAMPLED_CHUNKS);
        for number in 0..count {
            // the first chunk, the last, and chunks at equal distances between them
            let last = u128::from(facts.chunk_count.saturating_sub(1));
            let chunk = (u128::from(number) * last).checked_div(u128::from(count.saturating_sub(1))).unwrap_or(0);
            let _ = sums.add(column, u64::try_from(chunk).unwrap_or(0)); // no overflow: at most `last`
        }
        sums
    }

    fn add(&mut self, column: &Column, chunk: u64) -> tensilo::Result<()> {
        let (info, cold, blocks) = (column.chunk(chunk)?, column.cold_read(chunk)?, column.blocks(chunk)?);
        let (Some(info), Some(cold)) = (info, cold) else { return Ok(()) };
        let samples = info.samples.end.saturating_sub(info.samples.start);
        self.samples = self.samples.saturating_add(samples);
        // no overflow: below 2^67 for 8 chunks
        self.prefix_bytes += u128::from(samples) * u128::from(cold.prefix_bytes);
        // no overflow: below 2^67 for 8 chunks
        self.cold_bytes += u128::from(samples) * u128::from(cold.bytes());
        for block in blocks.iter().flat_map(|ChunkBlocks { blocks, .. }| blocks) {
            self.blocks += 1; // no overflow: all blocks are in memory
            self.raw_bytes = self.raw_bytes.saturating_add(block.raw_bytes);
        }
        Ok(())
    }

    fn per_sample(&self, bytes: u128) -> Option<u64> {
        u64::try_from(bytes.checked_div(u128::from(self.samples))?).ok()
    }
}

/// Returns the average size of a chunk, including its header, in bytes.
fn whole_chunk_bytes(facts: &ColumnFacts) -> u64 {
    const HEADER_BYTES: u64 = 64;
    match facts.stored_bytes.checked_div(facts.chunk_count) {
        Some(bytes) => bytes.saturating_add(HEADER_BYTES),
        None => 0,
    }
}

fn amplification_text(ratio: Option<f64>) -> String {
    or_dash(ratio, |ratio| format!("{ratio:.1}"))
}

/// The explanation of a chunk.
struct ChunkExplanation {
    explanation: Explanation,
    /// The regret of each choice, if requested.
    regrets: Vec<Option<f64>>,
}

impl ChunkExplanation {
    /// Explains the requested chunk of a column. Returns `None` if the column has no such chunk.
    fn of(args: &InspectArgs, column: &Column) -> tensilo::Result<Option<Self>> {
        let explanation = match args.sample {
            Some(sample) => Some(column.explain_chunk_of(sample)?),
            None => column.explain(args.chunk.unwrap_or(0))?,
        };
        let Some(explanation) = explanation else { return Ok(None) };
        let regret = |choice: &Choice| match args.regret {
            true => column.regret(explanation.chunk, choice.profile),
            false => Ok(None),
        };
        let regrets = explanation.choices.iter().map(regret).collect::<tensilo::Result<_>>()?;
        Ok(Some(Self { explanation, regrets }))
    }

    /// Returns the JSON member `explanation` of a column.
    fn document(&self) -> Value {
        let Self { explanation, regrets } = self;
        let bits = |bytes: u64| explanation.bits_per_element(bytes);
        let section = |section: &Section| {
            json!({
                "name": section.name,
                "detail": section.detail,
                "stored_bytes": section.stored_bytes,
                "bits_per_element": bits(section.stored_bytes),
            })
        };
        let trial = |trial: &Trial| {
            json!({
                "encoding": trial.encoding,
                "profiles": names(&trial.profiles),
                "stored_bytes": trial.stored_bytes,
                "bits_per_element": trial.stored_bytes.and_then(bits),
                // an approximation
                "ratio": trial.stored_bytes.and_then(|bytes| divide(explanation.raw_bytes, bytes as f64)),
                "in_file": trial.in_file,
            })
        };
        let choice = |(choice, regret): (&Choice, &Option<f64>)| {
            json!({
                "profile": choice.profile.name(),
                "encoding": choice.encoding,
                "stored_bytes": choice.stored_bytes,
                "reason": choice.reason,
                "in_file": choice.in_file,
                "regret": regret,
            })
        };
        let block = |block: &BlockInfo| {
            json!({
                "samples": [block.samples.start, block.samples.end],
                "stored_bytes": block.file_range.end.saturating_sub(block.file_range.start),
                "raw_bytes": block.raw_bytes,
            })
        };
        let info = &explanation.info;
        json!({
            "chunk": explanation.chunk,
            "samples": [info.samples.start, info.samples.end],
            "encoding": info.encoding,
            "transform": explanation.transform,
            "elements": explanation.element_count,
            "raw_bytes": explanation.raw_bytes,
            "stored_bytes": explanation.stored_bytes,
            "bits_per_element": bits(explanation.stored_bytes),
            "sections": explanation.sections.iter().map(section).collect::<Vec<_>>(),
            "trials": explanation.trials.iter().map(trial).collect::<Vec<_>>(),
            "choices": explanation.choices.iter().zip(regrets).map(choice).collect::<Vec<_>>(),
            "blocks": explanation.blocks.as_ref().map(|found| found.blocks.iter().map(block).collect::<Vec<_>>()),
            "prefix_bytes": explanation.cold_read.prefix_bytes,
            "cold_read_bytes": explanation.cold_read.bytes(),
            "read_amplification": explanation.read_amplification(),
        })
    }
}

fn names(profiles: &[Profile]) -> Vec<&'static str> {
    profiles.iter().map(|profile| profile.name()).collect()
}

/// Writes the explanation of a column.
fn write_explanation(output: &mut impl Write, column: &Column, explained: Option<&ChunkExplanation>) -> io::Result<()> {
    let (name, chunks) = (text::excerpt(&column.schema().name), column.facts().chunk_count);
    let Some(explained @ ChunkExplanation { explanation, .. }) = explained else {
        return writeln!(output, "\ncolumn {name}: no such chunk; the number of chunks is {chunks}");
    };
    let (info, chunk) = (&explanation.info, explanation.chunk);
    let samples = format!("samples {}..{}", info.samples.start, info.samples.end);
    writeln!(output, "\ncolumn {name}: chunk {chunk} of {chunks}, {samples}, encoding {}", info.encoding)?;
    if let Some(transform) = &explanation.transform {
        writeln!(output, "transform: {transform}")?;
    }
    for table in [sections_table(explanation), trials_table(explanation), choices_table(explained)] {
        writeln!(output)?;
        table.write(output)?;
    }
    writeln!(output, "{}", origin(explanation))?;
    writeln!(output, "{}", cold_read(explanation))
}

fn sections_table(explanation: &Explanation) -> Table {
    let mut table = Table::new(&["section", ">bytes", ">bits/element", "what"]);
    let mut row = |name: &str, bytes: u64, detail: String| {
        table.row(vec![name.to_owned(), bytes.to_string(), bits(explanation, Some(bytes)), detail]);
    };
    for Section { name, stored_bytes, detail, .. } in &explanation.sections {
        row(name, *stored_bytes, detail.clone());
    }
    row("all", explanation.stored_bytes, format!("of {} elements", explanation.element_count));
    table
}

fn trials_table(explanation: &Explanation) -> Table {
    let mut table = Table::new(&["encoding", ">bytes", ">bits/element", ">ratio", "", "profiles"]);
    for trial in &explanation.trials {
        let bytes = trial.stored_bytes;
        table.row(vec![
            trial.encoding.clone(),
            bytes.map_or("cannot".to_owned(), |bytes| bytes.to_string()),
            bits(explanation, bytes),
            or_dash(bytes, |bytes| text::ratio(explanation.raw_bytes, bytes)),
            mark(trial.in_file),
            if trial.profiles.is_empty() { "-".to_owned() } else { names(&trial.profiles).join(", ") },
        ]);
    }
    table
}

fn choices_table(ChunkExplanation { explanation, regrets }: &ChunkExplanation) -> Table {
    let has_regrets = regrets.iter().any(Option::is_some);
    let mut table = Table::new(match has_regrets {
        true => &["profile", "chooses", ">bytes", "", ">regret", "because"],
        false => &["profile", "chooses", ">bytes", "", "because"],
    });
    for (choice, regret) in explanation.choices.iter().zip(regrets) {
        let mut row = vec![
            choice.profile.name().to_owned(),
            choice.encoding.clone(),
            choice.stored_bytes.to_string(),
            mark(choice.in_file),
        ];
        row.extend(regret.map(|regret| format!("{:.1} %", 100.0 * regret)));
        row.push(choice.reason.clone());
        table.row(row);
    }
    table
}

fn mark(in_file: bool) -> String {
    if in_file { "*" } else { "" }.to_owned()
}

/// Returns a line that explains the mark `*`, or why no choice has it.
fn origin(explanation: &Explanation) -> &'static str {
    if explanation.choices.iter().any(|choice| choice.in_file) {
        "* stored in this file"
    } else {
        "no profile chooses the stored encoding for this chunk: the writer reused the choice of an earlier chunk, or \
         another release wrote the file"
    }
}

fn cold_read(explanation: &Explanation) -> String {
    let cold = explanation.cold_read;
    let details = match cold.prefix_bytes {
        0 => String::new(),
        block_index => {
            format!(" ({} before the blocks, {} of blocks)", text::bytes(block_index), text::bytes(cold.sample_bytes))
        }
    };
    let amplification = amplification_text(explanation.read_amplification());
    format!("cold read of a sample: {}{details}, read amplification {amplification}", text::bytes(cold.bytes()))
}

fn bits(explanation: &Explanation, bytes: Option<u64>) -> String {
    let bits = bytes.and_then(|bytes| explanation.bits_per_element(bytes));
    or_dash(bits, |bits| format!("{bits:.3}"))
}
