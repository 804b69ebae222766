//! Runs the command line program as a process.

mod append;
mod bench;
mod bench_loader;
mod convert;
mod dataset;
mod dataset_appends;
mod dataset_changes;
mod dataset_exports;
mod dataset_reads;
mod dataset_salvage;
mod formats;
mod get;
mod inputs;
mod inspect;
mod layout;
mod map;
mod mistakes;
mod objects;
#[cfg(unix)]
mod outputs;
mod process;
mod salvage;
#[cfg(unix)]
mod signals;
mod terminal;
mod values;
mod verify;

use half::f16;
use std::ffi::OsStr;
#[cfg(unix)]
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tensilo::sink::Stream;
use tensilo::{ColumnBatch, ColumnSchema, DType, Extent, Profile, Schema, Shape, Value, Writer, WriterOptions};
use tensilo_testing::Folder;

/// A Parquet file of speech features, with columns of several types.
const SPEECH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/speech.parquet");

/// Writes the sample file to a folder.
trait SampleFile {
    /// Creates a file with the samples of [`sample_file`].
    fn samples(&self, name: &str) -> PathBuf;
}

impl SampleFile for Folder {
    fn samples(&self, name: &str) -> PathBuf {
        self.file(name, sample_file())
    }
}

/// The output and the exit code of a run.
#[derive(Debug)]
struct Run {
    code: i32,
    stdout: Vec<u8>,
    stderr: String,
}

impl Run {
    fn text(&self) -> String {
        String::from_utf8(self.stdout.clone()).unwrap()
    }

    fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Asserts the exit code, and a part of the standard error.
    #[track_caller]
    fn failed(&self, code: i32, message: &str) {
        assert_eq!(self.code, code, "{self:?}");
        assert!(self.stderr.contains(message), "{message:?} in {}", self.stderr);
    }

    #[track_caller]
    fn done(self) -> Self {
        assert_eq!(self.code, 0, "{self:?}");
        self
    }
}

impl From<Output> for Run {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code().expect("not killed"),
            stdout: output.stdout,
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

fn program() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tensilo"));
    // `CI` would turn colours on
    for name in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "CI"] {
        command.env_remove(name);
    }
    command
}

fn run<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Run {
    program().args(args).output().unwrap().into()
}

/// Opens both ends of a pseudo-terminal.
#[cfg(unix)]
fn pseudo_terminal() -> (File, File) {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap().into_string().unwrap();
    let slave = File::options().read(true).write(true).open(name).unwrap();
    (File::from(master), slave)
}

/// Runs `tensilo COMMAND FILE WORDS...`.
fn on(command: &str, file: &Path, words: &str) -> Run {
    run([OsStr::new(command), file.as_os_str()].into_iter().chain(words.split_whitespace().map(OsStr::new)))
}

/// Checks that a command warns of a file whose writer was stopped, unless it is to be quiet.
#[track_caller]
fn check_warning_of_unfinished_file(command: &str, words: &str) {
    let folder = Folder::new();
    let path = folder.file("unfinished.tsl", unfinished_file());
    let run = on(command, &path, words).done();
    assert!(run.stderr.contains("warning: ") && run.stderr.contains("not finished"), "{}", run.stderr);
    assert_eq!(on(command, &path, &format!("{words} --quiet")).done().stderr, "");
}

const SAMPLES: u32 = 20;
const SPECIAL: [f32; 5] = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, -0.0, 0.1];

fn schema() -> Schema {
    let mut schema = Schema::new([
        ColumnSchema::tensor("x", DType::Bf16, Shape::fixed(&[2])).cast_from(DType::F32),
        ColumnSchema::tensor("e", DType::F32, Shape::scalar()),
        ColumnSchema::utf8("t").nullable(),
        ColumnSchema::bytes("b"),
        ColumnSchema::tensor("r", DType::I32, Shape::new([Extent::Varying, Extent::Fixed(2)])).nullable(),
        ColumnSchema::tensor("flag", DType::Bool, Shape::fixed(&[3])),
        ColumnSchema::tensor("n", DType::I64, Shape::fixed(&[2])).nullable(),
        ColumnSchema::tensor("h", DType::F16, Shape::fixed(&[1, 2])),
    ]);
    schema.metadata.insert("source".into(), "a\u{1b}test".into());
    schema.columns[0].metadata.insert("unit".into(), "m".into());
    schema
}

/// Pushes samples. Sample `i`: x = [i, 1.1], e = SPECIAL or i, t = "text i" (3: null, 4: `"
/// `), b = [0, i], r = i % 3 rows (5: null), flag = [odd, true, false], n = [-i, i] (1 and 7:
/// null), h = [[i, 0.5]].
fn push_samples(writer: &mut Writer<Stream<Vec<u8>>>) {
    for i in 0..SAMPLES {
        let x = [i as f32, 1.1];
        let e = [SPECIAL.get(i as usize).copied().unwrap_or(i as f32)];
        let text = if i == 4 { "\"\n".to_owned() } else { format!("text {i}") };
        let r: Vec<i32> = (0..i as i32 % 3 * 2).collect();
        let n = [-i64::from(i), i64::from(i)];
        let (b, flag) = ([0, i as u8], [(i % 2) as u8, 1, 0]);
        let h = [f16::from_f32(i as f32), f16::from_f32(0.5)];
        let values = [
            Value::tensor(&x),
            Value::tensor(&e),
            if i == 3 { Value::NULL } else { Value::text(&text) },
            Value::bytes(&b),
            if i == 5 { Value::NULL } else { Value::tensor(&r) },
            Value::tensor(&flag),
            if i == 1 || i == 7 { Value::NULL } else { Value::tensor(&n) },
            Value::tensor(&h),
        ];
        writer.push(&values).unwrap();
    }
}

fn sample_file() -> Vec<u8> {
    let mut writer = Writer::new(Stream(Vec::new()), schema(), &WriterOptions::new().chunk_bytes(32)).unwrap();
    push_samples(&mut writer);
    writer.into_bytes().unwrap()
}

/// Returns a file of the same columns without samples.
/// Samples of 1 KiB, raw, in chunks of 64.
fn raw_file(chunks: usize, block_bytes: Option<usize>) -> Vec<u8> {
    let options = WriterOptions::new().profile(Profile::Raw).block_bytes(block_bytes);
    let schema = Schema::new([ColumnSchema::tensor("x", DType::U8, Shape::fixed(&[1024]))]);
    let mut writer = Writer::new(Stream(Vec::new()), schema, &options).unwrap();
    writer.push_batch(&[ColumnBatch::fixed(64 * chunks, &vec![1_u8; chunks << 16])]).unwrap();
    writer.into_bytes().unwrap()
}

fn empty_file() -> Vec<u8> {
    let writer = Writer::new(Stream(Vec::new()), schema(), &WriterOptions::new()).unwrap();
    writer.into_bytes().unwrap()
}

/// Returns a file whose writer was stopped after a commit of all samples.
fn unfinished_file() -> Vec<u8> {
    // the last 64 bytes are the trailer of the last commit; without them the previous commit is the
    // last
    let mut writer = Writer::new(Stream(Vec::new()), schema(), &WriterOptions::new().chunk_bytes(32)).unwrap();
    push_samples(&mut writer);
    writer.commit().unwrap();
    push_samples(&mut writer);
    let mut bytes = writer.into_bytes().unwrap();
    bytes.truncate(bytes.len() - 64);
    bytes
}

/// Returns the sample file with a bit flipped in the body of the first chunk.
fn damaged_file() -> Vec<u8> {
    let mut bytes = sample_file();
    let chunk = bytes.chunks(64).position(|region| region.starts_with(b"TSLC")).unwrap();
    bytes[chunk * 64 + 64] ^= 1;
    bytes
}

/// Returns a file of 64 samples of 1 KiB in one chunk of 8 blocks, the second of which is damaged.
fn file_with_damaged_block() -> Vec<u8> {
    let schema = Schema::new([ColumnSchema::tensor("x", DType::U32, Shape::fixed(&[256]))]);
    let options = WriterOptions::new().profile(Profile::Raw);
    let mut writer = Writer::new(Stream(Vec::new()), schema, &options).unwrap();
    let values: Vec<u32> = (0..64 * 256).collect();
    writer.push_batch(&[ColumnBatch::fixed(64, &values)]).unwrap();
    let mut bytes = writer.into_bytes().unwrap();
    let chunk = bytes.chunks(64).position(|region| region.starts_with(b"TSLC")).unwrap();
    // behind the head, the front and the first block
    bytes[chunk * 64 + 64 + 128 + 8192] ^= 1;
    bytes
}

/// Returns the sample file with a flag that no release knows.
fn too_new_file() -> Vec<u8> {
    let mut bytes = sample_file();
    bytes[35] |= 0x80;
    let head_crc = crc32fast::hash(&bytes[..60]);
    bytes[60..64].copy_from_slice(&head_crc.to_le_bytes());
    bytes
}
