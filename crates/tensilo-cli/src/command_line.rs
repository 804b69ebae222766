//! The command line as a whole: subcommands, the overview in `--help`, exit codes.

use crate::append::AppendArgs;
use crate::bench::BenchArgs;
use crate::cache::CacheArgs;
use crate::convert::ConvertArgs;
use crate::dataset::DatasetArgs;
use crate::export::ExportArgs;
use crate::get::GetArgs;
use crate::inspect::InspectArgs;
use crate::map::MapArgs;
use crate::salvage::SalvageArgs;
use crate::verify::VerifyArgs;
use clap::{Parser, Subcommand};

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
  tensilo map train.tsl --svg train.svg                 draw the file
  tensilo bench train.tsl --threads 8                   measure read speed
  tensilo bench train/ --loader                         ... of training batches
  tensilo dataset log train/                            list the versions
  tensilo verify s3://bucket/train                      read from an object store
  tensilo cache stat                                    what is kept of those

Exit codes:
  0  done
  1  the file is damaged or not a tensilo file
  2  bad usage or unsupported input
  3  reading or writing failed
  4  a fault of tensilo or of this machine; please report it
  5  `verify`: all that is committed is intact, but a writer has not finished
  130, 143, 129  stopped by Ctrl-C, SIGTERM or SIGHUP; no file has changed
                 (a second signal ends at once: `append` may then leave an
                 unfinished tail, which readers ignore)

Data goes to the standard output. Messages go to the standard error; if that
is a terminal, so does a progress bar. NO_COLOR is respected.";

/// Columnar tensor files (*.tsl): every byte is checked, every sample can be read by its number.
#[derive(Debug, Parser)]
#[command(name = "tensilo", version, max_term_width = 110, after_help = OVERVIEW)]
pub(crate) struct Cli {
    /// Print only data and errors: no progress, no warnings, no summaries
    #[arg(short, long, global = true, display_order = 900)]
    pub(crate) quiet: bool,
    /// The subcommand.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Convert Parquet, Arrow or tensilo files to a file, or to a dataset of many
    Convert(ConvertArgs),
    /// Append Parquet, Arrow or tensilo files to a file or a dataset
    Append(AppendArgs),
    /// Show what is in a file: columns, sizes, encodings, metadata
    Inspect(InspectArgs),
    /// Check every byte of a file, and list all damage
    Verify(VerifyArgs),
    /// Recover the intact part of a damaged file, and list the losses
    Salvage(SalvageArgs),
    /// Print samples of one column
    Get(GetArgs),
    /// Write a Parquet or Arrow file, losslessly
    Export(ExportArgs),
    /// Draw the columns of a file to scale, with their compression
    Map(MapArgs),
    /// Measure how fast the samples of a column, or the batches of a loader, are read
    Bench(BenchArgs),
    /// Work with datasets: folders of files that are read as one sequence of samples
    Dataset(DatasetArgs),
    /// Tell or remove what is kept on this machine of objects that were read from stores
    Cache(CacheArgs),
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::values::BlockBytes;
    use clap::CommandFactory;
    use std::num::NonZeroUsize;
    use tensilo::{DType, Profile};

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn convert_takes_all_that_the_contract_names() {
        let line = "--bf16 --cast x=f16 --cast y=z=f32 --columns a,b --skip c --skip d --profile raw --column-profile x=y=small --chunk-bytes 1MiB \
                    --block-bytes 4KiB \
                    --align 4096 --threads 3 --no-check --force";
        let args = convert_args(line);
        assert_eq!(args.cast, [("x".to_owned(), DType::F16), ("y=z".to_owned(), DType::F32)]);
        assert_eq!(args.skip, ["c", "d"]);
        let encoding = &args.encoding;
        assert_eq!((encoding.profile, encoding.chunk_bytes, args.align), (Profile::Raw, Some(1 << 20), 4096));
        assert_eq!((encoding.block_bytes, encoding.threads), (Some(BlockBytes(Some(4096))), NonZeroUsize::new(3)));
        assert_eq!(encoding.column_profile, [("x=y".to_owned(), Profile::Small)]);
        assert!(args.bf16 && encoding.no_check && args.force);
    }

    #[test]
    fn convert_leaves_to_the_library_what_is_not_said() {
        let args = convert_args("").encoding;
        assert_eq!((args.profile, args.chunk_bytes, args.threads), (Profile::Balanced, None, None));
        assert_eq!(args.block_bytes, None);
        assert!(!args.no_check);
    }

    /// The doc comment of the option cannot use [`Profile::chunk_bytes`], so this test compares
    /// them.
    #[test]
    fn the_help_of_convert_tells_the_chunk_size_of_each_profile() {
        let help = help_of_convert();
        for profile in Profile::ALL {
            let special = format!("with --profile {} ", profile.name());
            let due = if help.contains(&special) { special } else { "[default: ".to_owned() };
            let due = format!("{due}{}KiB", profile.chunk_bytes() >> 10);
            assert!(help.contains(&due), "{due}: {help}");
        }
    }

    #[test]
    fn the_help_of_convert_tells_the_block_size_of_each_profile() {
        let help = help_of_convert();
        for profile in Profile::ALL {
            let due = match profile.block_bytes() {
                Some(8192) => "[default: 8KiB, ".to_owned(),
                Some(bytes) => format!("with --profile {} {}KiB", profile.name(), bytes >> 10),
                None => format!("with {} none]", profile.name()),
            };
            assert!(help.contains(&due), "{due}: {help}");
        }
    }

    #[test]
    fn the_help_of_convert_says_for_whom_each_profile_is() {
        let help = help_of_convert();
        for profile in Profile::ALL {
            let line = help.split(&format!("- {}: ", profile.name())).nth(1);
            assert!(line.is_some_and(|line| line.starts_with("For ")), "{}: {help}", profile.name());
        }
    }

    /// The help of `convert` without line breaks.
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

    fn help_of_convert() -> String {
        let help = Cli::command().find_subcommand_mut("convert").unwrap().render_long_help().to_string();
        help.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    fn convert_args(line: &str) -> ConvertArgs {
        let fixed = ["tensilo", "convert", "a", "b", "-o", "out.tsl"];
        let cli = Cli::try_parse_from(fixed.into_iter().chain(line.split_whitespace())).unwrap();
        let Command::Convert(args) = cli.command else { panic!("not convert") };
        args
    }
}
