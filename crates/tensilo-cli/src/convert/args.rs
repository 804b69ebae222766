//! The arguments of `tensilo convert`.

use crate::options::{EncodingArgs, Names, OnNullElement, values};
use clap::Args;
use std::path::PathBuf;
use tensilo::{DType, Shape};

const CONVERT: &str = "\
Examples:
  tensilo convert train.parquet -o train.tsl
      lossless
  tensilo convert 'shards/*.parquet' -o train.tsl --bf16
      floats rounded to bf16; the summary lists the errors
  tensilo convert a.arrow b.arrow -o both.tsl --columns id,mel --cast mel=f16
      two columns of two files, one of them rounded
  tensilo convert data/ -o train.tsl
      all files in a folder; folders year=2024/month=7 become columns
  zstdcat train.arrows.zst | tensilo convert - -o train.tsl
      an Arrow stream, or a file of any format, from the standard input
  tensilo convert train.parquet -o train.tsl --profile raw --align 4096
      uncompressed: samples are read without decoding, also with O_DIRECT
  tensilo convert train.parquet -o train.tsl --profile small
      the smallest file, for an archive or a slow network
  tensilo convert train.tsl -o small.tsl --profile small --columns id,mel
      a tensilo file once more: another profile, selected columns
  tensilo convert 'shards/*.parquet' -o train/ --shard-bytes 1GiB
      a dataset: a folder of files and their manifest
  tensilo convert mel.npy -o mel.tsl
      an array of NumPy: the first axis counts samples
  tensilo convert 's3://b/raw/*.parquet' -o s3://b/train --shard-bytes 1GiB
      from a bucket to a dataset in it, without a local copy
  tensilo convert 'train-*.tar' -o train/ --shard-bytes 1GiB
      archives of WebDataset: suffixes become columns
  tensilo convert 'layers/*.safetensors' -o layers.tsl --file-is-sample
      each file is one sample, with a column for each tensor
  tensilo convert train.parquet -o train.tsl --rename img=image
      the column img gets the name image
  tensilo convert day-1.parquet -o all.tsl --shape 'mel=*,80' --shape id=2
      mel varies in its first dimension, even if day-1 has only one length

Columns: a field of a struct becomes the column struct.field. The name of the
struct selects all its fields. Lists of texts, structs and maps become nested
columns. A second column with the same name becomes NAME#2. --rename NAME=NEW
renames a column; all other options use the old name.

Formats: Parquet, Arrow IPC, tensilo, and these, recognised by their content:
.npy            one column, array: the first axis counts samples
.npz            a column for each array
.safetensors    a column for each tensor; first axes are equal, unless
                --file-is-sample is given
.tar, .tar.gz   WebDataset: a column for each suffix, and __key__. Texts are
                .txt and .json, integers .cls, tensors .npy, bytes all others
.tfrecord       tf.train.Example: a column for each feature; checksums are
                compared
.jsonl          a column for each member; .gz too
.idx            Megatron: a column, tokens; the .bin file is beside it

Shapes: a dimension of a list is fixed if all samples have the same extent,
unless --shape declares it. The summary tells how many samples that was
inferred from. The shapes of a file never change: if later inputs may have
other lengths, declare *. A sample that contradicts --shape is refused.
Lists of different lengths side by side, and lists with nulls inside, are no
tensors. If there is one, outer dimensions of the column become lists. A
--shape with fewer dimensions than the type does the same.

Inputs must have the same columns, in any order. They are read in the order
given; those of a folder or glob in the order of their paths.
Where an input lacks a nullable column, or has it as a column of type null, the
samples are null. Formats that declare no types (JSON lines, TFRecord, tar) get
types that fit the values of all inputs. Inputs without samples are allowed, and
add no columns.

folder  All *.parquet files in it and its subfolders; if there are none, all
        *.arrow and *.feather files; if there are none, all *.tsl files. Names
        that begin with . or _ are skipped.
        A folder that \"datasets\" saved is read in the order of its state.json.
        The folder of a table of Delta, Iceberg or Hudi is refused, also through
        a glob: only its library knows which rows are valid.
-       The standard input. Like every pipe, it is first copied to an unnamed
        file in the folder for temporary files (TMPDIR).

s3://, gs://, az://, https://
        An object, a prefix or a pattern in a store, read without a copy. Of
        hosts of https, a prefix or pattern finds names directly below it.
        A key such as a//b is passed over with a warning; with --quiet, it is
        an error.

Folders called key=value become columns of integers or text, also in the path
of a single file. --skip key leaves such a column out.

An input that changes while it is read is an error. An input that is replaced
is read to its end. The same inputs and options give the same bytes.

With --shard-bytes, raw bytes are those of the values after casts and before
encoding, so that the same inputs give the same files. SOURCE_DATE_EPOCH sets
the time that the manifest records.

The output appears when it is complete. If it is a symbolic link, the target
is replaced and the link stays. Named pipes, devices and open descriptors
(-, /dev/stdout, /dev/fd/3) are written into. If the data goes to the standard
output, the summary goes to the standard error. An output that is one of the
inputs is refused.";

/// The arguments of `tensilo convert`.
#[derive(Args, Debug)]
#[command(after_help = CONVERT)]
pub(crate) struct ConvertArgs {
    /// Files of the formats below, folders or quoted globs of them; - is the standard input
    #[arg(required = true, value_name = "INPUT")]
    pub(crate) inputs: Vec<PathBuf>,
    /// The file to write; - is the standard output
    #[arg(short, long, value_name = "OUT.tsl")]
    pub(crate) output: PathBuf,
    /// Write a dataset: a folder OUT of files of at most so many raw bytes each, such as 1GiB, with
    /// a manifest
    #[arg(long, value_name = "N", value_parser = values::shard_bytes)]
    pub(crate) shard_bytes: Option<u64>,
    /// Round all float columns to bf16, except those that --cast names
    #[arg(long)]
    pub(crate) bf16: bool,
    /// Give the numbers or decimals of a column another type, such as bf16, f32, f64 or i64;
    /// repeatable
    #[arg(long, value_name = "NAME=TYPE", value_parser = values::cast)]
    pub(crate) cast: Vec<(String, DType)>,
    /// Only these columns, in this order; write "\," for a comma in a name
    #[arg(long, value_name = "a,b")]
    pub(crate) columns: Vec<Names>,
    /// Leave a column out; repeatable
    #[arg(long, value_name = "NAME")]
    pub(crate) skip: Vec<String>,
    /// Give a column another name; repeatable. A field stays in its struct: a.b=a.c
    #[arg(long, value_name = "NAME=NEW", value_parser = values::rename)]
    pub(crate) rename: Vec<(String, String)>,
    /// The shape of a list column, with * for an extent that varies; repeatable [default: inferred]
    #[arg(long, value_name = "NAME=*,80", value_parser = values::shape)]
    pub(crate) shape: Vec<(String, Shape)>,
    /// Every chunk begins at a multiple of this; 4096 allows O_DIRECT
    #[arg(long, value_name = "BYTES", value_parser = values::alignments(), default_value = "64")]
    pub(crate) align: u32,
    /// Treatment of a null element of a tensor, which cannot be stored (a null tensor can)
    #[arg(long, value_name = "CHOICE", value_enum, default_value_t)]
    pub(crate) null_elements: OnNullElement,
    /// Take each .npz and .safetensors file as one sample, with a column for each tensor
    #[arg(long)]
    pub(crate) file_is_sample: bool,
    /// Look for nulls also where the statistics of an input deny them, which takes a second pass
    #[arg(long)]
    pub(crate) distrust_statistics: bool,
    /// Replace OUT.tsl if it exists; write binary data to a terminal
    #[arg(short, long)]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) encoding: EncodingArgs,
}
