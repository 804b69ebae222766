//! Runs the command line program as a process.
//!
//! A test creates a folder with files and runs command lines in it:
//! `folder.text("get a.tsl -c x -i 0")`. Words of a line are separated by spaces; a word in
//! capitals stands for a path outside the folder, see [`word`]. [`sample_file`] has a column of
//! each kind, with nulls and special floats.

mod bench;
mod convert;
mod dataset;
mod get;
mod inputs;
mod inspect;
mod layout;
#[cfg(unix)]
mod outputs;
mod plan;
mod process;
mod salvage;
#[cfg(unix)]
mod signals;

use arrow_array::RecordBatch;
use arrow_ipc::writer::FileWriter;
use half::f16;
use serde_json::Value as Json;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tensilo::sink::Stream;
use tensilo::{ColumnBatch, ColumnSchema, DType, Extent, Profile, Reader, Schema, Shape, Value, Writer, WriterOptions};
use tensilo_testing::Folder;

/// The columns of the sample file.
const NAMES: [&str; 8] = ["x", "e", "t", "b", "r", "flag", "n", "h"];
const SAMPLES: u32 = 20;
const SPECIAL: [f32; 5] = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, -0.0, 0.1];

/// Expands a word of a command line. `SPEECH` is a Parquet file of speech features with columns of
/// several types, `IMPORT/` the folder of the core's inputs, and `FORMATS/` the folder of other
/// formats.
fn word(word: &str) -> PathBuf {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    match word.split_once('/') {
        _ if word == "SPEECH" => crates.join("../tests/data/speech.parquet"),
        Some(("IMPORT", name)) => crates.join("../tests/data/import").join(name),
        Some(("FORMATS", name)) => crates.join("tensilo-convert/tests/data").join(name),
        _ => word.into(),
    }
}

/// Returns a folder with copies of the sample file.
fn folder_of(names: &[&str]) -> Folder {
    let folder = Folder::new();
    names.iter().for_each(|name| drop(folder.samples(name)));
    folder
}

/// Runs command lines in a folder.
trait CommandLine {
    /// Returns the program with the words of a line.
    fn command(&self, line: &str) -> Command;
    /// Writes the sample file. Folders in its name are created.
    fn samples(&self, name: &str) -> PathBuf;
    /// Writes an Arrow file.
    fn arrow(&self, name: &str, batch: &RecordBatch);
    /// Converts `tests/data/speech.parquet` to a file named after `words`.
    fn speech(&self, words: &str) -> String;

    fn run(&self, line: &str) -> Run {
        self.command(line).output().unwrap().into()
    }

    /// Runs a command that succeeds.
    #[track_caller]
    fn done(&self, line: &str) -> Run {
        let run = self.run(line);
        assert_eq!(run.code, 0, "{line}: {run:?}");
        run
    }

    #[track_caller]
    fn text(&self, line: &str) -> String {
        self.done(line).text()
    }

    #[track_caller]
    fn json(&self, line: &str) -> Json {
        self.done(line).json()
    }

    /// Runs a command that fails with this exit code, and with this text on the standard error.
    #[track_caller]
    fn fails(&self, line: &str, code: i32, message: &str) -> Run {
        let run = self.run(line);
        run.failed(code, message);
        run
    }

    /// Returns all samples of a column.
    #[track_caller]
    fn all(&self, file: &str, column: &str) -> Json {
        self.json(&format!("get {file} -c {column} -i .."))
    }
}

impl CommandLine for Folder {
    fn command(&self, line: &str) -> Command {
        let mut command = program();
        command.current_dir(self.root()).args(line.split_whitespace().map(word));
        command
    }

    fn samples(&self, name: &str) -> PathBuf {
        fs::create_dir_all(self.path(name).parent().unwrap()).unwrap();
        self.file(name, sample_file())
    }

    fn arrow(&self, name: &str, batch: &RecordBatch) {
        let mut writer = FileWriter::try_new(File::create(self.path(name)).unwrap(), &batch.schema()).unwrap();
        writer.write(batch).unwrap();
        writer.finish().unwrap();
    }

    fn speech(&self, words: &str) -> String {
        let output = format!("speech{}.tsl", words.replace(' ', ""));
        self.done(&format!("convert SPEECH -o {output} {words}"));
        output
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

    fn json(&self) -> Json {
        serde_json::from_slice(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Asserts the exit code, and a text on the standard error.
    #[track_caller]
    fn failed(&self, code: i32, message: &str) {
        assert_eq!(self.code, code, "{self:?}");
        assert!(self.stderr.contains(message), "{message:?} in {}", self.stderr);
    }
}

impl From<Output> for Run {
    fn from(output: Output) -> Self {
        let code = output.status.code().expect("not killed");
        Self { code, stdout: output.stdout, stderr: String::from_utf8(output.stderr).unwrap() }
    }
}

/// Asserts that a text contains all of these texts.
#[track_caller]
fn has(text: &str, needles: &[&str]) {
    needles.iter().for_each(|needle| assert!(text.contains(needle), "{needle:?} in {text}"));
}

fn program() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tensilo"));
    // `CI` would turn colors on
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
        let (x, e) = ([i as f32, 1.1], [SPECIAL.get(i as usize).copied().unwrap_or(i as f32)]);
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

/// Returns the bytes of a file that `write` fills.
fn written(schema: Schema, options: WriterOptions, write: impl FnOnce(&mut Writer<Stream<Vec<u8>>>)) -> Vec<u8> {
    let mut writer = Writer::new(Stream(Vec::new()), schema, &options).unwrap();
    write(&mut writer);
    writer.into_bytes().unwrap()
}

fn sample_file() -> Vec<u8> {
    written(schema(), WriterOptions::new().chunk_bytes(32), push_samples)
}

/// Returns a file with the same columns and no samples.
fn empty_file() -> Vec<u8> {
    written(schema(), WriterOptions::new(), |_| {})
}

/// Returns a file of samples of 1 KiB, raw, in chunks of 64.
fn raw_file(chunks: usize, block_bytes: Option<usize>) -> Vec<u8> {
    let options = WriterOptions::new().profile(Profile::Raw).block_bytes(block_bytes);
    let schema = Schema::new([ColumnSchema::tensor("x", DType::U8, Shape::fixed(&[1024]))]);
    let values = vec![1_u8; chunks << 16];
    written(schema, options, |writer| writer.push_batch(&[ColumnBatch::fixed(64 * chunks, &values)]).unwrap())
}

/// Returns a file whose writer was stopped after a commit of all samples.
fn unfinished_file() -> Vec<u8> {
    let mut bytes = written(schema(), WriterOptions::new().chunk_bytes(32), |writer| {
        push_samples(writer);
        writer.commit().unwrap();
        push_samples(writer);
    });
    // without the last 64 bytes, the trailer, the previous commit is the last
    bytes.truncate(bytes.len() - 64);
    bytes
}

/// Flips a bit of the first byte of a chunk.
fn damage(bytes: &mut [u8], column: &str, chunk: u64) {
    let column = Reader::from_bytes(bytes.to_vec()).unwrap().column(column).unwrap();
    bytes[column.chunk(chunk).unwrap().unwrap().file_range.start as usize] ^= 1;
}

/// Returns the sample file with a bit flipped in the body of the first chunk.
fn damaged_file() -> Vec<u8> {
    let mut bytes = sample_file();
    let chunk = bytes.chunks(64).position(|region| region.starts_with(b"TSLC")).unwrap();
    bytes[chunk * 64 + 64] ^= 1;
    bytes
}

/// Returns a file of 64 samples of 1 KiB in one chunk of 8 blocks. The second block is damaged.
fn file_with_damaged_block() -> Vec<u8> {
    let schema = Schema::new([ColumnSchema::tensor("x", DType::U32, Shape::fixed(&[256]))]);
    let values: Vec<u32> = (0..64 * 256).collect();
    let write = |writer: &mut Writer<_>| writer.push_batch(&[ColumnBatch::fixed(64, &values)]).unwrap();
    let mut bytes = written(schema, WriterOptions::new().profile(Profile::Raw), write);
    let chunk = bytes.chunks(64).position(|region| region.starts_with(b"TSLC")).unwrap();
    // after the header, the block index and the first block
    bytes[chunk * 64 + 64 + 128 + 8192] ^= 1;
    bytes
}
