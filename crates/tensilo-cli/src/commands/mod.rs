//! The commands of the program, and the command line that contains them: overview, exit codes,
//! dispatch.
//!
//! Each command is a module that contains its arguments, its help and its implementation. A command
//! checks its arguments before it writes the first byte, prints data to standard output, and
//! returns an exit code or a [`Failure`](crate::failure::Failure). Commands that only read accept a
//! file or a dataset. A dataset is named by a folder, a prefix in an object store, or a pattern.
//!
//! The `--help` of a command is its manual: examples, formats, JSON members. Tests check that its
//! lines fit in 80 columns, and that the defaults it states match the library.

mod append;
mod bench;
mod cache;
mod convert;
pub(crate) mod dataset;
mod export;
mod get;
pub(crate) mod inspect;
pub(crate) mod layout;
mod plan;
pub(crate) mod salvage;
mod verify;

use crate::failure::{Exit, Outcome};
use append::AppendArgs;
use bench::BenchArgs;
use cache::CacheArgs;
use clap::{Parser, Subcommand};
use convert::ConvertArgs;
use dataset::DatasetArgs;
use export::ExportArgs;
use get::GetArgs;
use inspect::InspectArgs;
use layout::LayoutArgs;
use plan::PlanArgs;
use salvage::SalvageArgs;
use verify::VerifyArgs;

const OVERVIEW: &str = "\
Examples:
  tensilo convert 'p/*.parquet' -o train.tsl --bf16     convert to a file
  tensilo convert 'p/*.parquet' -o train/ --shard-bytes 1GiB   ... to a dataset
  tensilo append train.tsl more.parquet                 append more samples
  tensilo inspect train.tsl                             list columns and sizes
  tensilo verify train.tsl                              check every byte
  tensilo salvage broken.tsl -o whole.tsl               recover a damaged file
  tensilo get train.tsl -c embedding -i 0,7,100..110    print some samples
  tensilo export train.tsl -o train.parquet             convert back
  tensilo layout train.tsl --svg train.svg              draw the file
  tensilo bench train.tsl --threads 8                   measure read speed
  tensilo bench train/ --loader                         ... of training batches
  tensilo plan train/ --nodes 64 --storage s3           predict a training job
  tensilo dataset log train/                            list the versions
  tensilo verify s3://bucket/train                      read an object store
  tensilo cache stat                                    show the local cache

Exit codes:
  0  done
  1  the file is damaged or not a tensilo file
  2  bad usage or unsupported input
  3  reading or writing failed, or another program is changing the file or
     dataset: repeating the command can succeed
  4  a bug in tensilo or a fault of this machine; please report this
  5  `verify`: all committed samples are intact, but the writer has not finished
  130, 143, 129  stopped by Ctrl-C, SIGTERM or SIGHUP; no file was changed
                 (a second signal ends the program at once: `append` can then
                 leave an uncommitted tail, which readers ignore)

Data goes to standard output, messages to standard error. If standard error is a
terminal, it also shows a progress bar. NO_COLOR is respected.";

/// Columnar tensor files (*.tsl): every byte is checked, and any sample can be read by its index.
#[derive(Debug, Parser)]
#[command(name = "tensilo", version, max_term_width = 110, after_help = OVERVIEW)]
pub(crate) struct Cli {
    /// Print only data and errors: no progress, warnings or summaries
    #[arg(short, long, global = true, display_order = 900)]
    pub(crate) quiet: bool,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Convert Parquet, Arrow, NumPy, safetensors, WebDataset, TFRecord, JSON, Megatron or tensilo
    /// files to a tensilo file or a dataset
    Convert(ConvertArgs),
    /// Append files of any format that "convert" reads to a tensilo file or a dataset
    Append(AppendArgs),
    /// Show the columns, sizes, encodings and metadata of a file or a dataset
    Inspect(InspectArgs),
    /// Check every byte of a file or a dataset, and list all damage
    Verify(VerifyArgs),
    /// Recover the intact samples of a damaged file or dataset, and list the losses
    Salvage(SalvageArgs),
    /// Print samples of one column or struct
    Get(GetArgs),
    /// Export columns to a Parquet, Arrow, NumPy, safetensors, WebDataset or Megatron file
    Export(ExportArgs),
    /// Draw the layout of a file to scale, with its compression and damage
    Layout(LayoutArgs),
    /// Measure how fast the samples of a column, or the batches of a loader, are read
    Bench(BenchArgs),
    /// Predict what a training job will read, wait for and keep in memory
    Plan(PlanArgs),
    /// Create and change datasets: folders of files that are read as one sequence of samples
    Dataset(DatasetArgs),
    /// Show or clear the local cache of object-store data
    Cache(CacheArgs),
}

impl Command {
    /// Runs the command and returns its exit code.
    pub(crate) fn run(&self, quiet: bool) -> Outcome<Exit> {
        let done = match self {
            Self::Convert(args) => convert::run(args, quiet),
            Self::Append(args) => append::run(args, quiet),
            Self::Inspect(args) => inspect::run(args, quiet),
            Self::Verify(args) => return verify::run(args, quiet),
            Self::Salvage(args) => return salvage::run(args, quiet),
            Self::Get(args) => get::run(args, quiet),
            Self::Export(args) => export::run(args, quiet),
            Self::Layout(args) => return layout::run(args, quiet),
            Self::Bench(args) => bench::run(args, quiet),
            Self::Plan(args) => plan::run(args),
            Self::Dataset(args) => dataset::run(args, quiet),
            Self::Cache(args) => cache::run(args, quiet),
        };
        done.map(|()| Exit::Done)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::BlockBytes;
    use clap::CommandFactory;
    use std::num::NonZeroUsize;
    use tensilo::{DType, Profile};

    #[test]
    fn convert_takes_all_that_the_contract_names_and_leaves_the_rest_to_the_library() {
        Cli::command().debug_assert();
        let args = convert_args(
            "--bf16 --cast x=f16 --cast y=z=f32 --columns a,b --skip c --skip d --profile raw --column-profile x=y=small \
             --chunk-bytes 1MiB --block-bytes 4KiB --align 4096 --threads 3 --no-check --force",
        );
        assert_eq!(args.cast, [("x".to_owned(), DType::F16), ("y=z".to_owned(), DType::F32)]);
        assert_eq!((args.skip.concat().as_str(), args.align), ("cd", 4096));
        let encoding = &args.encoding;
        assert_eq!((encoding.profile, encoding.chunk_bytes), (Profile::Raw, Some(1 << 20)));
        assert_eq!((encoding.block_bytes, encoding.threads), (Some(BlockBytes(Some(4096))), NonZeroUsize::new(3)));
        assert_eq!(encoding.column_profile, [("x=y".to_owned(), Profile::Small)]);
        assert!(args.bf16 && encoding.no_check && args.force);
        let args = convert_args("").encoding;
        assert_eq!((args.profile, args.chunk_bytes, args.threads), (Profile::Balanced, None, None));
        assert!(args.block_bytes.is_none() && !args.no_check);
    }

    /// Doc comments of options cannot interpolate constants such as [`Profile::chunk_bytes`], so
    /// this test compares the numbers in them.
    #[test]
    fn the_help_of_convert_describes_each_profile() {
        let help = Cli::command().find_subcommand_mut("convert").unwrap().render_long_help().to_string();
        let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
        for profile in Profile::ALL {
            let name = profile.name();
            let special = format!("with --profile {name}, ");
            let before = if help.contains(&special) { special.as_str() } else { "[default: " };
            let chunk = format!("{before}{}KiB", profile.chunk_bytes() >> 10);
            let block = match profile.block_bytes() {
                Some(8192) => "[default: 8KiB; ".to_owned(),
                Some(bytes) => format!("with --profile {name}, {}KiB", bytes >> 10),
                None => format!("with {name}, none]"),
            };
            for expected in [chunk, block, format!("- {name}: For ")] {
                assert!(help.contains(&expected), "{expected}: {help}");
            }
        }
    }

    #[test]
    fn explanations_fit_into_80_columns() {
        for command in Cli::command().get_subcommands() {
            let text = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(!text.is_empty(), "{command}");
            let inner = command.get_subcommands().filter_map(|command| command.get_after_help());
            for text in inner.map(ToString::to_string).chain([text]) {
                let long: Vec<&str> = text.lines().filter(|line| line.chars().count() > 80).collect();
                assert!(long.is_empty(), "{command}: {long:?}");
            }
        }
    }

    fn convert_args(line: &str) -> ConvertArgs {
        let fixed = ["tensilo", "convert", "a", "b", "-o", "out.tsl"];
        let cli = Cli::try_parse_from(fixed.into_iter().chain(line.split_whitespace())).unwrap();
        let Command::Convert(args) = cli.command else { panic!("not convert") };
        args
    }
}
