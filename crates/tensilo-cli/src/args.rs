//! What the command line looks like. The help texts here are the manual.

use crate::bench::BenchArgs;
use crate::encoding::EncodingArgs;
use crate::get::GetArgs;
use crate::inspect::InspectArgs;
use crate::map::MapArgs;
use crate::parse::{self, Names};
use crate::salvage::SalvageArgs;
use clap::{Args, Parser, Subcommand, ValueEnum};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use tensilo::export::ExportFormat;
use tensilo::import::NullElements;
use tensilo::{DType, Shape};

const OVERVIEW: &str = "\
Examples:
  tensilo convert train-*.parquet -o train.tsl --bf16   convert a dataset
  tensilo append train.tsl more.parquet                 add to it
  tensilo inspect train.tsl                             what is in it
  tensilo verify train.tsl                              is it intact
  tensilo salvage broken.tsl -o whole.tsl               what is left of it
  tensilo get train.tsl -c embedding -i 0,7,100..110    some samples of a column
  tensilo export train.tsl -o train.parquet             and back
  tensilo map train.tsl --svg train.svg                 what it looks like
  tensilo bench train.tsl --threads 8                   how fast it is read

Exit codes:
  0  done
  1  the file is damaged or not a tensilo file
  2  bad usage or unsupported input
  3  reading or writing failed
  4  a fault of tensilo or of this machine; please report it
  130, 143, 129  stopped by Ctrl-C, SIGTERM or SIGHUP; no file has changed

Data goes to the standard output, everything else to the standard error, with
a progress bar where that is a terminal. NO_COLOR is respected.";

/// Columnar tensor files (*.tsl): one file, checked to the last bit, any sample by its number.
#[derive(Debug, Parser)]
#[command(name = "tensilo", version, max_term_width = 110, after_help = OVERVIEW)]
pub(crate) struct Cli {
    /// Print only data and errors: no progress, no warnings, no summaries
    #[arg(short, long, global = true, display_order = 900)]
    pub(crate) quiet: bool,
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Convert Parquet and Arrow files to one tensilo file
    Convert(ConvertArgs),
    /// Append Parquet and Arrow files to a tensilo file
    Append(AppendArgs),
    /// Show what is in a file: columns, sizes, encodings, metadata
    Inspect(InspectArgs),
    /// Check every byte of a file, and list all that is damaged
    Verify(VerifyArgs),
    /// Recover all that is intact of a damaged file, and tell what is lost
    Salvage(SalvageArgs),
    /// Print samples of one column
    Get(GetArgs),
    /// Write a Parquet or Arrow file, losslessly
    Export(ExportArgs),
    /// Draw where in a file its columns are, and how well they are compressed
    Map(MapArgs),
    /// Measure how fast samples of a column are read
    Bench(BenchArgs),
}

const CONVERT: &str = "\
Examples:
  tensilo convert train.parquet -o train.tsl
      everything as it is
  tensilo convert 'shards/*.parquet' -o train.tsl --bf16
      floats rounded to bf16; the table at the end tells what that cost
  tensilo convert a.arrow b.arrow -o both.tsl --columns id,mel --cast mel=f16
      two columns of two files, one column rounded
  tensilo convert data/ -o train.tsl
      all files below a folder; folders year=2024/month=7 become columns
  zstdcat train.arrows.zst | tensilo convert - -o train.tsl
      an Arrow stream, or a Parquet or Arrow file, from the standard input
  tensilo convert train.parquet -o train.tsl --profile raw --align 4096
      no compression: samples are read without decoding, also with O_DIRECT
  tensilo convert train.parquet -o train.tsl --profile small
      the fewest bytes, for an archive or a slow network
  tensilo convert day-1.parquet -o all.tsl --shape 'mel=*,80' --shape id=2
      mel varies in its first dimension even if day-1 has one length only

A field of a struct is a column called struct.field; the name of the struct
means all of them.

A dimension of a list is fixed if it is the same in all samples, unless
--shape declares it. The table at the end says in how many samples that was
found. A file never changes its shapes: declare * where later inputs may have
other lengths. A sample that is not as declared is refused.

Inputs must have the same columns; their order may differ. They are read in
the order given, those of a folder or glob in the order of their paths.

folder  All *.parquet files in it and below (or, if there are none, all *.arrow
        and *.feather files). Names that begin with . or _ are passed over.
        A folder that \"datasets\" saved is read in the order of its state.json.
-       The standard input. Like every pipe, it is copied to an unnamed file in
        the folder for temporary files (TMPDIR), which needs as much space.

Folders called key=value become columns of integers or text, also those in the
path of a file that is given by itself. --skip key leaves such a column out.

An input that is changed while it is read is an error; one that is replaced is
read to its end as it was. The same inputs and options give the same bytes.

The output appears when it is complete. A symbolic link stays, and the file it
leads to is replaced. Named pipes and devices are written into, and so is what
is open already (-, /dev/stdout, /dev/fd/3); the table goes to the standard
error if the data goes to the standard output. An output that is an input is
refused.";

/// `tensilo convert`
#[derive(Args, Debug)]
#[command(after_help = CONVERT)]
pub(crate) struct ConvertArgs {
    /// Parquet files, Arrow IPC files or streams, folders or quoted globs of them, - for the
    /// standard input
    #[arg(required = true, value_name = "INPUT")]
    pub(crate) inputs: Vec<PathBuf>,
    /// The file to write; - is the standard output
    #[arg(short, long, value_name = "OUT.tsl")]
    pub(crate) output: PathBuf,
    /// Round all float columns to bf16, except those that --cast names
    #[arg(long)]
    pub(crate) bf16: bool,
    /// Round a column to bf16, f16 or f32; may be repeated
    #[arg(long, value_name = "NAME=TYPE", value_parser = parse::cast)]
    pub(crate) cast: Vec<(String, DType)>,
    /// Only these columns, in this order; write "\," for a comma in a name
    #[arg(long, value_name = "a,b")]
    pub(crate) columns: Vec<Names>,
    /// Leave a column out; may be repeated
    #[arg(long, value_name = "NAME")]
    pub(crate) skip: Vec<String>,
    /// The shape of a list column, * for an extent that varies; may be repeated [default: as found]
    #[arg(long, value_name = "NAME=*,80", value_parser = parse::shape)]
    pub(crate) shape: Vec<(String, Shape)>,
    /// Every chunk starts at a multiple of this; 4096 allows O_DIRECT
    #[arg(long, value_name = "BYTES", value_parser = parse::alignments(), default_value = "64")]
    pub(crate) align: u32,
    /// What to do with a null inside a tensor, which cannot be stored (a null tensor can)
    #[arg(long, value_name = "CHOICE", value_enum, default_value_t)]
    pub(crate) null_elements: OnNullElement,
    /// Replace OUT.tsl if it exists; write binary data to a terminal
    #[arg(short, long)]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) encoding: EncodingArgs,
}

const APPEND: &str = "\
Examples:
  tensilo append train.tsl day-2.parquet
      all rows of a file that has the same columns
  tensilo append train.tsl 'more/*.parquet' --skip-others
      files that have other columns, too
  tensilo append train.tsl day-3.parquet --profile small
      the file does not remember its profile, so say it again

Inputs are those of \"tensilo convert\". They have the columns of the file: same
names, types and shapes, in any order. Columns that were rounded when the file was made are rounded again.
All differences are listed.

The samples appear together, when all are written. If anything fails before,
the file is as it was, to the last byte; readers are not disturbed. A second
append at the same time is refused.

After a kill, what was written so far stands behind the end of the last
commit: readers ignore it, \"tensilo verify\" reports it, and the next append
stops there. \"tensilo salvage\" recovers it, --discard-tail cuts it off.";

/// `tensilo append`
#[derive(Args, Debug)]
#[command(after_help = APPEND)]
pub(crate) struct AppendArgs {
    /// The tensilo file that is appended to
    pub(crate) file: PathBuf,
    /// Parquet files, Arrow IPC files or streams, folders or quoted globs of them, - for the
    /// standard input
    #[arg(required = true, value_name = "INPUT")]
    pub(crate) inputs: Vec<PathBuf>,
    /// Leave out columns that the file does not have
    #[arg(long)]
    pub(crate) skip_others: bool,
    /// Cut off what stands after the last commit, even if it could be recovered
    #[arg(long)]
    pub(crate) discard_tail: bool,
    /// What to do with a null inside a tensor, which cannot be stored (a null tensor can)
    #[arg(long, value_name = "CHOICE", value_enum, default_value_t)]
    pub(crate) null_elements: OnNullElement,
    #[command(flatten)]
    pub(crate) encoding: EncodingArgs,
}

/// `--null-elements`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum OnNullElement {
    /// Stop, and name column and row
    #[default]
    Refuse,
    /// Store NaN in float columns, and stop at others
    Nan,
    /// Store zero
    Zero,
}

impl From<OnNullElement> for NullElements {
    fn from(choice: OnNullElement) -> Self {
        match choice {
            OnNullElement::Refuse => Self::Refuse,
            OnNullElement::Nan => Self::Nan,
            OnNullElement::Zero => Self::Zero,
        }
    }
}

const VERIFY: &str = "\
Examples:
  tensilo verify train.tsl           every byte: checksums, structure, padding
  tensilo verify train.tsl --deep    also decode every chunk
  tensilo verify train.tsl --json | jq '.damages[].samples'

Exits with 1 if anything is damaged. Works also on files that are too damaged
to be opened.

JSON, schema tensilo.verify/1 (members may be added, those named here stay):
  schema, ok, file_bytes, chunk_count, sample_count
  damages: [{ offset, bytes, message,
    region   header, chunk, index page, ..., or null if it cannot be told
    column   whose chunk or index it is, or null
    samples  [first, end] that are lost or in doubt, end not included, or null
    rule     of the format specification, or null }]";

/// `tensilo verify`
#[derive(Args, Debug)]
#[command(after_help = VERIFY)]
pub(crate) struct VerifyArgs {
    /// A tensilo file
    pub(crate) file: PathBuf,
    /// Print a JSON document
    #[arg(long)]
    pub(crate) json: bool,
    /// Also decode every chunk, and check what it holds
    #[arg(long)]
    pub(crate) deep: bool,
    /// Threads that check; the report does not depend on it [default: all cores]
    #[arg(long, value_name = "N")]
    pub(crate) threads: Option<NonZeroUsize>,
}

const EXPORT: &str = "\
Examples:
  tensilo export train.tsl -o train.parquet
  tensilo export train.tsl -o part.arrow --columns id,embedding
  tensilo export train.tsl -o - --format arrow | other-program

The ending decides: .parquet, or .arrow for an Arrow IPC file. Nothing is lost:
values to the last bit (bf16 as float32), shapes, nulls and metadata.";

/// `tensilo export`
#[derive(Args, Debug)]
#[command(after_help = EXPORT)]
pub(crate) struct ExportArgs {
    /// A tensilo file
    pub(crate) file: PathBuf,
    /// The file to write; - is the standard output
    #[arg(short, long, value_name = "OUT.parquet|OUT.arrow")]
    pub(crate) output: PathBuf,
    /// What to write [default: as the ending says]
    #[arg(long, value_enum)]
    pub(crate) format: Option<OnExport>,
    /// Only these columns, in this order; write "\," for a comma in a name
    #[arg(long, value_name = "a,b")]
    pub(crate) columns: Vec<Names>,
    /// Replace the output if it exists; write binary data to a terminal
    #[arg(short, long)]
    pub(crate) force: bool,
}

/// `--format` of `export`
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OnExport {
    /// A Parquet file
    Parquet,
    /// An Arrow IPC file
    Arrow,
}

impl From<OnExport> for ExportFormat {
    fn from(format: OnExport) -> Self {
        match format {
            OnExport::Parquet => Self::Parquet,
            OnExport::Arrow => Self::Arrow,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;
    use tensilo::Profile;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn convert_takes_all_that_the_contract_names() {
        let line = "--bf16 --cast x=f16 --cast y=z=f32 --columns a,b --skip c --skip d --profile raw --chunk-bytes 1MiB \
                    --align 4096 --threads 3 --no-check --force";
        let args = convert_args(line);
        assert_eq!(args.cast, [("x".to_owned(), DType::F16), ("y=z".to_owned(), DType::F32)]);
        assert_eq!(args.skip, ["c", "d"]);
        let encoding = &args.encoding;
        assert_eq!((encoding.profile, encoding.chunk_bytes, args.align), (Profile::Raw, Some(1 << 20), 4096));
        assert_eq!(encoding.threads, NonZeroUsize::new(3));
        assert!(args.bf16 && encoding.no_check && args.force);
    }

    #[test]
    fn convert_leaves_to_the_library_what_is_not_said() {
        let args = convert_args("").encoding;
        assert_eq!((args.profile, args.chunk_bytes, args.threads), (Profile::Balanced, None, None));
        assert!(!args.no_check);
    }

    /// The help cannot be made of [`Profile::chunk_bytes`] by itself.
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
    fn the_help_of_convert_says_for_whom_each_profile_is() {
        let help = help_of_convert();
        for profile in Profile::ALL {
            let line = help.split(&format!("- {}: ", profile.name())).nth(1);
            assert!(line.is_some_and(|line| line.starts_with("For ")), "{}: {help}", profile.name());
        }
    }

    /// Without line breaks.
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
