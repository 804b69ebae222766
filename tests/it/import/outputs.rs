//! Tests outputs that are inputs, custom sinks, and cancelled work.

use super::common::{GO_ON, mixed, write_arrow};
use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use tensilo::export::{ExportFormat, ExportOptions, export, export_into};
use tensilo::import::{
    AppendOptions, ConvertOptions, ShardFiles, append, append_shards, convert, convert_into, convert_shards,
};
use tensilo::salvage::{RewriteOptions, SalvageOptions, salvage};
use tensilo::sink::{AtomicFile, Stream};
use tensilo::source::PositionedFile;
use tensilo::verify::VerifyOptions;
use tensilo::{Error, ErrorKind, Reader, Summary, WriterOptions};
use tensilo_testing::Folder;

/// A folder with an Arrow file of three batches, and a tensilo file made from it.
struct Files(Folder);

impl Files {
    fn new() -> Self {
        let folder = Self(Folder::new());
        write_arrow(folder.input(), &[mixed(10, 0), mixed(10, 10), mixed(10, 20)]);
        convert(&[folder.input()], &folder.file(), &ConvertOptions::new(), &mut |_| GO_ON).unwrap();
        folder
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path(name)
    }

    fn input(&self) -> PathBuf {
        self.path("in.arrow")
    }

    fn file(&self) -> PathBuf {
        self.path("file.tsl")
    }

    /// Returns other paths to a file.
    fn names_of(&self, file: &Path) -> Vec<PathBuf> {
        let hard = file.with_extension("hard.arrow");
        fs::hard_link(file, &hard).unwrap();
        #[cfg(unix)]
        {
            let soft = file.with_extension("soft.arrow");
            std::os::unix::fs::symlink(file, &soft).unwrap();
            vec![file.to_path_buf(), hard, soft]
        }
        #[cfg(not(unix))]
        vec![file.to_path_buf(), hard]
    }
}

fn overwriting() -> ConvertOptions {
    ConvertOptions::new().overwrite(true)
}

#[track_caller]
fn check_refused<T>(result: Result<T, Error>, output: &Path, input: &Path, before: &[u8]) {
    let error = result.map(|_| ()).expect_err("an output that is an input");
    assert_eq!((error.kind(), error.path()), (ErrorKind::BadArgument, Some(output)), "{error}");
    assert!(error.message().contains("the output is the same file as the input"), "{error}");
    assert!(fs::read(input).unwrap() == before);
}

#[test]
fn an_input_is_never_converted_onto_itself() {
    let folder = Files::new();
    let before = fs::read(folder.input()).unwrap();
    let inputs = [folder.file(), folder.input()]; // even if it is not the first
    for output in folder.names_of(&folder.input()) {
        let result = convert(&inputs[1..], &output, &overwriting(), &mut |_| GO_ON);
        check_refused(result, &output, &folder.input(), &before);
        let sink = AtomicFile::create(&output, true).unwrap();
        let result = convert_into(&inputs[1..], sink, &overwriting(), &mut |_| GO_ON);
        check_refused(result, &output, &folder.input(), &before);
    }
}

/// A single file that replaces another one.
struct ReplacementFile(PathBuf);

impl ShardFiles for ReplacementFile {
    type Sink = AtomicFile;
    type Error = Error;

    fn begin(&mut self) -> Result<AtomicFile, Error> {
        AtomicFile::create(&self.0, true)
    }

    fn finished(&mut self, _: Summary<AtomicFile>) -> Result<(), Error> {
        Ok(())
    }
}

#[test]
fn an_input_is_never_one_of_several_outputs() {
    let folder = Files::new();
    let before = fs::read(folder.input()).unwrap();
    let schema = Reader::open(folder.file()).unwrap().schema().clone();
    for output in folder.names_of(&folder.input()) {
        let (inputs, mut files) = ([folder.input()], ReplacementFile(output.clone()));
        let result = convert_shards(&inputs, &mut files, u64::MAX, &ConvertOptions::new(), &mut |_| GO_ON);
        check_refused(result, &output, &folder.input(), &before);
        let (options, table) = (AppendOptions::new(), Path::new("table"));
        let result = append_shards(&inputs, &schema, table, &mut files, u64::MAX, &options, &mut |_| GO_ON);
        check_refused(result, &output, &folder.input(), &before);
    }
}

#[test]
fn a_file_is_never_exported_or_salvaged_onto_itself() {
    let folder = Files::new();
    let before = fs::read(folder.file()).unwrap();
    let reader = Reader::open(folder.file()).unwrap();
    for output in folder.names_of(&folder.file()) {
        if ExportFormat::of(&output).is_some() {
            check_refused(
                export(&reader, &output, ExportOptions::new().overwrite(true)),
                &output,
                &folder.file(),
                &before,
            );
        }
        let salvaged = salvage(PositionedFile::open(folder.file()).unwrap(), SalvageOptions::new()).unwrap();
        let sink = AtomicFile::create(&output, true).unwrap();
        let result = salvaged.write_to(sink, &WriterOptions::new(), RewriteOptions::new());
        check_refused(result, &output, &folder.file(), &before);
    }
}

/// Such an append would read its own output.
#[test]
fn a_file_is_never_appended_to_itself() {
    let folder = Files::new();
    let before = fs::read(folder.input()).unwrap();
    for file in folder.names_of(&folder.input()) {
        let result = append(&[folder.input()], &file, &AppendOptions::new(), &mut |_| GO_ON);
        check_refused(result, &file, &folder.input(), &before);
    }
}

#[test]
fn a_sink_gets_the_bytes_of_a_file_and_a_summary_of_what_is_in_it() {
    let folder = Files::new();
    let sink = Stream(Vec::new());
    let summary = convert_into(&[folder.input()], sink, &ConvertOptions::new(), &mut |_| GO_ON).unwrap();
    assert!(summary.sink.0 == fs::read(folder.file()).unwrap());
    let reader = Reader::open(folder.file()).unwrap();
    assert_eq!((&summary.schema, summary.sample_count), (reader.schema(), reader.sample_count()));
    assert_eq!((summary.file_id, summary.file_bytes), (reader.file_id(), reader.file_bytes()));
    assert_eq!(summary.columns, reader.columns().map(|column| column.facts()).collect::<Vec<_>>());

    let path = folder.path("out.arrow");
    export(&reader, &path, ExportOptions::new()).unwrap();
    let sink = export_into(&reader, Stream(Vec::new()), ExportFormat::Arrow, ExportOptions::new()).unwrap();
    assert!(sink.0 == fs::read(path).unwrap());
}

/// Runs work repeatedly, cancelled at the first call of its callback, then at the second, and so
/// on, until it completes. Returns how often it was cancelled.
fn cancelled(
    mut work: impl FnMut(&mut dyn FnMut() -> ControlFlow<()>) -> Result<(), Error>,
    mut check: impl FnMut(),
) -> usize {
    for calls in 0.. {
        let mut left = calls;
        let result = work(&mut || {
            if left == 0 {
                return ControlFlow::Break(());
            }
            left -= 1;
            GO_ON
        });
        match result {
            Ok(()) => return calls,
            Err(error) => assert_eq!(error.kind(), ErrorKind::Cancelled, "{error}"),
        }
        check();
    }
    unreachable!("it completes at some point")
}

#[test]
fn a_cancelled_conversion_leaves_what_was_there() {
    let folder = Files::new();
    for old in [None, Some("the old file")] {
        let out = folder.path("out.tsl");
        if let Some(old) = old {
            fs::write(&out, old).unwrap();
        }
        let times = cancelled(
            |go_on| convert(&[folder.input()], &out, &overwriting(), &mut |_| go_on()).map(|_| ()),
            || assert_eq!(fs::read_to_string(&out).ok().as_deref(), old),
        );
        assert!(times >= 7, "two passes over three batches: {times}");
        fs::remove_file(&out).unwrap();
        assert_eq!(folder.0.names(), ["file.tsl", "in.arrow"]);
    }
}

#[test]
fn a_cancelled_append_leaves_the_file_unchanged() {
    let folder = Files::new();
    let before = fs::read(folder.file()).unwrap();
    let times = cancelled(
        |go_on| append(&[folder.input()], &folder.file(), &AppendOptions::new(), &mut |_| go_on()).map(|_| ()),
        || assert!(fs::read(folder.file()).unwrap() == before),
    );
    assert_eq!(times, 4, "before the first of three batches, and after each");
    assert_eq!(Reader::open(folder.file()).unwrap().sample_count(), 60);
}

#[test]
fn a_cancelled_export_or_salvage_leaves_nothing() {
    let folder = Files::new();
    let reader = Reader::open(folder.file()).unwrap();
    let out = folder.path("out.arrow");
    let is_absent = || assert!(!out.exists());
    let export_all = |go_on: &mut dyn FnMut() -> ControlFlow<()>| {
        export(&reader, &out, ExportOptions::new().overwrite(true).progress(&mut |_| go_on()))
    };
    assert_eq!(cancelled(export_all, is_absent), 1);
    fs::remove_file(&out).unwrap();
    let source = || PositionedFile::open(folder.file()).unwrap();
    let read = |go_on: &mut dyn FnMut() -> ControlFlow<()>| {
        salvage(source(), SalvageOptions::new().deep(true).progress(&mut |_, _| go_on())).map(|_| ())
    };
    assert!(cancelled(read, is_absent) > 2);
    let salvaged = salvage(source(), SalvageOptions::new()).unwrap();
    let write = |go_on: &mut dyn FnMut() -> ControlFlow<()>| {
        let sink = AtomicFile::create(&out, false)?;
        let mut progress = |_| go_on();
        salvaged.write_to(sink, &WriterOptions::new(), RewriteOptions::new().progress(&mut progress)).map(|_| ())
    };
    assert!(cancelled(write, is_absent) > 1);
    fs::remove_file(&out).unwrap();
    let verify = |go_on: &mut dyn FnMut() -> ControlFlow<()>| {
        reader.verify(VerifyOptions::new().progress(&mut |_| go_on())).map(|_| ())
    };
    assert!(cancelled(verify, is_absent) > 0);
    assert_eq!(folder.0.names(), ["file.tsl", "in.arrow"]);
}
