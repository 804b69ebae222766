//! Proves that a file appears at its destination whole or not at all, although other writers use
//! the same destination and the writer may be killed at any time.

use super::child::{Child, arguments, report};
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;
use tensilo::sink::AtomicFile;
use tensilo::verify::VerifyOptions;
use tensilo::{
    ColumnSchema, DType, Error, ErrorKind, Profile, Reader, Result, Schema, Shape, Value, Writer, WriterOptions,
};

/// Elements of one sample: 16 KiB, so that a few samples of [`Profile::Raw`] exceed the 256 KiB
/// that an `AtomicFile` buffers.
const ELEMENTS: usize = 4_096;

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a temporary folder"))
    }

    fn destination(&self) -> PathBuf {
        self.0.path().join("out.tsl")
    }

    /// Whether a file has a temporary name here before it is complete.
    fn names_temporary_files(&self) -> bool {
        let file = AtomicFile::create(self.0.path().join("another"), false).expect("a new file");
        file.temporary_path().is_some()
    }

    /// All but the destination.
    fn others(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.0.path()).expect("a folder");
        let paths = entries.map(|entry| entry.expect("an entry").path());
        paths.filter(|path| *path != self.destination()).collect()
    }
}

fn begin(destination: &Path, overwrite: bool) -> Result<Writer<AtomicFile>> {
    let schema = Schema::new([ColumnSchema::tensor("x", DType::U32, Shape::fixed(&[ELEMENTS as u32]))]);
    let options = WriterOptions::new().profile(Profile::Raw);
    Writer::new(AtomicFile::create(destination, overwrite)?, schema, &options)
}

fn value(writer: u32, sample: u64) -> u32 {
    writer * 1_000_000 + sample as u32
}

fn push(writer: &mut Writer<AtomicFile>, number: u32, samples: u64) -> Result<()> {
    for _ in 0..samples {
        let sample = [value(number, writer.sample_count()); ELEMENTS];
        writer.push(&[Value::tensor(&sample)])?;
    }
    Ok(())
}

/// The samples of a file of writer `number`, which is intact.
fn check_whole(path: &Path, number: u32) -> u64 {
    let reader = Reader::open(path).unwrap_or_else(|error| panic!("{error}"));
    assert!(reader.is_finished());
    let report = reader.verify(VerifyOptions::new().decode(true)).expect("a readable file");
    assert!(report.damages.is_empty(), "{:?}", report.damages);
    check_samples(&reader, number)
}

fn check_samples(reader: &Reader, number: u32) -> u64 {
    let mut cursor = reader.column("x").expect("the column").cursor();
    for i in 0..reader.sample_count() {
        let sample = cursor.read(i).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(sample.as_slice::<u32>().expect("u32"), [value(number, i); ELEMENTS]);
    }
    reader.sample_count()
}

fn io_kind(error: &Error) -> Option<io::ErrorKind> {
    let source = std::error::Error::source(error)?;
    source.downcast_ref::<io::Error>().map(io::Error::kind)
}

#[test]
fn of_two_writers_that_must_not_overwrite_exactly_one_wins() {
    let folder = Folder::new();
    let destination = folder.destination();
    let mut first = begin(&destination, false).expect("a new file");
    let mut second = begin(&destination, false).expect("the first has not appeared yet");
    push(&mut first, 1, 100).expect("room");
    push(&mut second, 2, 50).expect("room");
    assert!(!destination.exists(), "a file appeared before it was finished");
    second.finish().expect("nothing stands at the destination");
    let error = first.finish().expect_err("the second stands there");
    assert_eq!((error.kind(), io_kind(&error)), (ErrorKind::Io, Some(io::ErrorKind::AlreadyExists)), "{error}");
    assert_eq!(error.path(), Some(destination.as_path()));
    assert_eq!(check_whole(&destination, 2), 50);
    assert_eq!(folder.others(), Vec::<PathBuf>::new());
    // a third need not even begin
    let error = begin(&destination, false).map(|_| ()).expect_err("a file stands there");
    assert_eq!(io_kind(&error), Some(io::ErrorKind::AlreadyExists), "{error}");
    assert_eq!(folder.others(), Vec::<PathBuf>::new());
}

#[test]
fn of_many_threads_that_finish_at_once_exactly_one_wins() {
    for _ in 0..5 {
        let folder = Folder::new();
        let destination = folder.destination();
        let barrier = std::sync::Barrier::new(6);
        let results: Vec<Result<()>> = std::thread::scope(|scope| {
            let write = |number: u32| {
                let (destination, barrier) = (&destination, &barrier);
                move || {
                    let mut writer = begin(destination, false).expect("nobody has finished yet");
                    push(&mut writer, number, 5 + u64::from(number)).expect("room");
                    barrier.wait();
                    writer.finish().map(|_| ())
                }
            };
            let threads: Vec<_> = (0..6).map(|number| scope.spawn(write(number))).collect();
            threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
        });
        let winners: Vec<usize> = (0..6).filter(|&number| results[number].is_ok()).collect();
        assert_eq!(winners.len(), 1, "{results:?}");
        for error in results.iter().filter_map(|result| result.as_ref().err()) {
            assert_eq!(io_kind(error), Some(io::ErrorKind::AlreadyExists), "{error}");
        }
        assert_eq!(check_whole(&destination, winners[0] as u32), 5 + winners[0] as u64);
        assert_eq!(folder.others(), Vec::<PathBuf>::new());
    }
}

#[test]
fn of_two_writers_that_may_overwrite_the_last_wins_and_its_file_is_whole() {
    let folder = Folder::new();
    let destination = folder.destination();
    fs::write(&destination, "something else").expect("room");
    let mut first = begin(&destination, true).expect("a new file");
    let mut second = begin(&destination, true).expect("a new file");
    push(&mut first, 1, 100).expect("room");
    push(&mut second, 2, 50).expect("room");
    assert_eq!(fs::read(&destination).expect("a file"), b"something else");
    second.finish().expect("overwriting is allowed");
    let old = Reader::open(&destination).expect("the second's");
    assert_eq!(check_whole(&destination, 2), 50);
    first.finish().expect("overwriting is allowed");
    assert_eq!(check_whole(&destination, 1), 100);
    assert_eq!(check_samples(&old, 2), 50, "a reader keeps the file that it has opened");
    assert_eq!(folder.others(), Vec::<PathBuf>::new());
}

#[test]
fn a_writer_that_is_dropped_leaves_nothing_and_what_stood_there() {
    for old in [None, Some("the old file")] {
        let folder = Folder::new();
        let destination = folder.destination();
        if let Some(old) = old {
            fs::write(&destination, old).expect("room");
        }
        let mut writer = begin(&destination, true).expect("a new file");
        push(&mut writer, 1, 200).expect("room");
        assert_eq!(folder.others().len(), usize::from(folder.names_temporary_files()), "{:?}", folder.others());
        drop(writer);
        assert_eq!(folder.others(), Vec::<PathBuf>::new());
        assert_eq!(fs::read_to_string(&destination).ok().as_deref(), old);
    }
}

#[test]
fn a_writer_that_is_dropped_after_a_commit_leaves_that_commit() {
    let folder = Folder::new();
    let mut writer = begin(&folder.destination(), false).expect("a new file");
    push(&mut writer, 1, 30).expect("room");
    assert!(!folder.destination().exists());
    writer.commit().expect("room");
    assert_eq!(Reader::open(folder.destination()).expect("a commit").sample_count(), 30);
    push(&mut writer, 1, 100).expect("room");
    drop(writer);
    let reader = Reader::open(folder.destination()).expect("a commit");
    assert_eq!(check_samples(&reader, 1), 30);
    assert!(!reader.is_finished());
    assert_eq!(folder.others(), Vec::<PathBuf>::new());
    let report = reader.verify(VerifyOptions::new()).expect("a readable file");
    assert!(!report.damages.is_empty(), "an unfinished file with a tail is reported");
}

#[test]
fn permissions_are_those_of_any_new_file() {
    let folder = Folder::new();
    fs::write(folder.0.path().join("plain"), "").expect("room");
    let mode = |path: &Path| fs::metadata(path).expect("a file").permissions().mode() & 0o777;
    let mut writer = begin(&folder.destination(), false).expect("a new file");
    push(&mut writer, 1, 1).expect("room");
    writer.finish().expect("room");
    assert_eq!(mode(&folder.destination()), mode(&folder.0.path().join("plain")));
}

/// The umask of this process may be one that makes private files; the children have others.
#[test]
fn permissions_follow_the_umask() {
    for (umask, due) in [("000", 0o666), ("022", 0o644), ("027", 0o640), ("077", 0o600)] {
        let folder = Folder::new();
        let command = format!("umask {umask}; exec \"$0\" \"$@\"");
        let status = Command::new("sh")
            .args(["-c", &command])
            .arg(std::env::current_exe().expect("this program"))
            .args(arguments(CHILD))
            .envs(child_environment(&folder.destination(), Work::Finish))
            .stdout(Stdio::null())
            .status();
        assert!(status.expect("a shell").success());
        assert_eq!(check_whole(&folder.destination(), 7), 20);
        let mode = fs::metadata(folder.destination()).expect("a file").permissions().mode();
        assert_eq!(mode & 0o777, due, "umask {umask}");
    }
}

#[test]
fn places_where_no_file_can_be_are_errors_with_their_path() {
    let folder = Folder::new();
    let missing = folder.0.path().join("no such folder").join("out.tsl");
    let error = begin(&missing, true).map(|_| ()).expect_err("no such folder");
    assert_eq!((error.path(), io_kind(&error)), (Some(missing.as_path()), Some(io::ErrorKind::NotFound)), "{error}");
    for path in [Path::new("/"), Path::new(".."), Path::new("")] {
        assert_eq!(begin(path, true).map(|_| ()).expect_err("no name").kind(), ErrorKind::Io);
    }
}

#[test]
fn only_a_regular_file_is_replaced() {
    type Make = fn(&Path);
    let make: [(&str, Make); 3] = [
        ("a folder", |path| fs::create_dir(path).expect("a folder")),
        ("a named pipe", |path| assert!(Command::new("mkfifo").arg(path).status().expect("mkfifo").success())),
        ("a socket", |path| drop(std::os::unix::net::UnixListener::bind(path).expect("a socket"))),
    ];
    for (what, make) in make {
        let folder = Folder::new();
        make(&folder.destination());
        let kind = || fs::symlink_metadata(folder.destination()).expect("it is there").file_type();
        let before = kind();
        for overwrite in [false, true] {
            let error = begin(&folder.destination(), overwrite).map(|_| ()).expect_err(what);
            assert_eq!(error.kind(), ErrorKind::Io);
            assert!(error.to_string().contains(what), "{error}");
        }
        assert_eq!(kind(), before, "{what}");
        assert_eq!(folder.others(), Vec::<PathBuf>::new());
    }
    let error = begin(Path::new("/dev/null"), true).map(|_| ()).expect_err("a device");
    assert!(error.to_string().contains("/dev/null: creating the file: a character device"), "{error}");
}

#[test]
fn a_folder_that_appears_meanwhile_is_not_replaced() {
    let folder = Folder::new();
    let mut writer = begin(&folder.destination(), true).expect("nothing is there yet");
    push(&mut writer, 1, 1).expect("room");
    fs::create_dir(folder.destination()).expect("a folder");
    assert_eq!(writer.finish().expect_err("a folder is there").kind(), ErrorKind::Io);
    assert!(folder.destination().is_dir());
    assert_eq!(folder.others(), Vec::<PathBuf>::new());
}

#[test]
fn a_symbolic_link_keeps_pointing_and_its_target_is_replaced() {
    for old in [None, Some("the old file")] {
        let folder = Folder::new();
        let elsewhere = tempfile::tempdir().expect("another folder");
        let target = elsewhere.path().join("target.tsl");
        if let Some(old) = old {
            fs::write(&target, old).expect("room");
        }
        // a chain of two links, the first of them relative
        let middle = folder.0.path().join("middle");
        std::os::unix::fs::symlink(&target, &middle).expect("a link");
        std::os::unix::fs::symlink("middle", folder.destination()).expect("a link");
        if old.is_some() {
            let error = begin(&folder.destination(), false).map(|_| ()).expect_err("a file is there");
            assert_eq!(
                (error.path(), io_kind(&error)),
                (Some(&*folder.destination()), Some(io::ErrorKind::AlreadyExists))
            );
        }
        let mut writer = begin(&folder.destination(), old.is_some()).expect("a new file");
        push(&mut writer, 1, 10).expect("room");
        writer.finish().expect("room");
        assert_eq!(fs::read_link(folder.destination()).expect("still a link"), Path::new("middle"));
        assert_eq!(fs::read_link(&middle).expect("still a link"), target);
        assert!(fs::symlink_metadata(&target).expect("a file").is_file());
        assert_eq!(check_whole(&target, 1), 10);
        assert_eq!(fs::read_dir(elsewhere.path()).expect("a folder").count(), 1);
    }
    let folder = Folder::new();
    std::os::unix::fs::symlink("out.tsl", folder.destination()).expect("a link to itself");
    let error = begin(&folder.destination(), true).map(|_| ()).expect_err("a circle");
    assert!(error.to_string().contains("symbolic links"), "{error}");
}

#[test]
fn a_file_that_replaces_another_gets_its_permissions() {
    for mode in [0o600, 0o640, 0o444, 0o777] {
        let folder = Folder::new();
        fs::write(folder.destination(), "old").expect("room");
        fs::set_permissions(folder.destination(), fs::Permissions::from_mode(mode)).expect("an own file");
        let mut writer = begin(&folder.destination(), true).expect("a new file");
        push(&mut writer, 1, 1).expect("room");
        writer.finish().expect("room");
        assert_eq!(check_whole(&folder.destination(), 1), 1);
        let found = fs::metadata(folder.destination()).expect("a file").permissions().mode();
        assert_eq!(found & 0o7777, mode);
    }
}

#[test]
fn what_killed_writers_left_behind_is_listed() {
    let folder = Folder::new();
    let left = |destination: &Path| AtomicFile::left_behind(destination).expect("a folder");
    assert_eq!(left(&folder.destination()), Vec::<PathBuf>::new());
    let names = [
        ".out.tsl.a1B2c3.tmp",
        ".out.tsl.short.tmp",
        ".out.tsl.a1B2c3.tmpx",
        ".other.tsl.a1B2c3.tmp",
        "out.tsl.a1B2c3.tmp",
    ];
    for name in names {
        fs::write(folder.0.path().join(name), "old").expect("room");
    }
    let due = folder.0.path().join(names[0]);
    assert_eq!(left(&folder.destination()), std::slice::from_ref(&due));
    // through a symbolic link it is the target's
    let link = tempfile::tempdir().expect("another folder");
    std::os::unix::fs::symlink(folder.destination(), link.path().join("link")).expect("a link");
    assert_eq!(left(&link.path().join("link")), std::slice::from_ref(&due));
    // the file of a writer at work is not listed
    let file = fs::File::open(&due).expect("a file");
    file.lock().expect("a lock");
    assert_eq!(left(&folder.destination()), Vec::<PathBuf>::new());
    drop(file);
    assert_eq!(left(&folder.destination()).len(), 1);
    assert!(due.exists(), "it is never removed");
}

// ---- killed writers

/// The work of a child.
#[derive(Clone, Copy)]
enum Work {
    /// Pushes without end.
    Push,
    /// Pushes and commits without end; says how many samples are in each commit that is done.
    Commit,
    /// Writes 20 samples and finishes.
    Finish,
}

fn child_environment(destination: &Path, work: Work) -> [(&'static str, String); 2] {
    let work = match work {
        Work::Push => "push",
        Work::Commit => "commit",
        Work::Finish => "finish",
    };
    let destination = destination.to_str().expect("a temporary folder of plain characters");
    [("TENSILO_TEST_DESTINATION", destination.to_owned()), ("TENSILO_TEST_WORK", work.to_owned())]
}

const CHILD: &str = "atomic::child_that_writes";

/// Not a test of its own: the other side of the tests that kill it.
#[test]
#[ignore = "started by other tests, in a process of its own"]
fn child_that_writes() {
    let Ok(destination) = std::env::var("TENSILO_TEST_DESTINATION") else { return };
    let work = std::env::var("TENSILO_TEST_WORK").expect("set beside the destination");
    let mut writer = begin(Path::new(&destination), true).expect("a new file");
    if work == "finish" {
        push(&mut writer, 7, 20).expect("room");
        writer.finish().expect("room");
        return;
    }
    // samples are bounded, so that a child whose parent is gone does not fill the disk
    for _ in 0..2_000 {
        push(&mut writer, 7, 20).expect("room");
        if work == "commit" {
            writer.commit().expect("room");
        }
        report(writer.sample_count());
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn start(destination: &Path, work: Work) -> Child {
    Child::start(CHILD, child_environment(destination, work))
}

/// The size of the child's file in this folder, if that has no name.
fn unnamed_bytes(child: &Child, folder: &Path) -> Option<u64> {
    let files = fs::read_dir(format!("/proc/{}/fd", child.id())).ok()?;
    let paths = files.map(|file| file.expect("an open file").path());
    let mut unnamed = paths.filter(|path| {
        let target = fs::read_link(path).unwrap_or_default();
        target.starts_with(folder) && target.to_string_lossy().ends_with(" (deleted)")
    });
    Some(fs::metadata(unnamed.next()?).expect("a file").len())
}

#[test]
fn a_writer_killed_at_any_time_leaves_what_stood_there_and_no_file_that_opens() {
    let mut sizes = Vec::new();
    for round in 0..20_u64 {
        let folder = Folder::new();
        let old = (round % 2 == 0).then_some("the old file");
        if let Some(old) = old {
            fs::write(folder.destination(), old).expect("room");
        }
        let mut child = start(&folder.destination(), Work::Push);
        // a writer queues 1 MiB before it writes
        (0..=2 * round).for_each(|_| assert!(child.report() > 0));
        std::thread::sleep(Duration::from_micros(700 * (round % 9)));
        sizes.extend(unnamed_bytes(&child, folder.0.path()));
        child.kill();
        assert_eq!(fs::read_to_string(folder.destination()).ok().as_deref(), old, "round {round}");
        let others = folder.others();
        assert_eq!(others.len(), usize::from(folder.names_temporary_files()), "{others:?}");
        for left in others {
            sizes.push(fs::metadata(&left).expect("a file").len());
            let name = left.file_name().and_then(|name| name.to_str()).expect("plain characters");
            assert!(name.starts_with(".out.tsl.") && name.ends_with(".tmp"), "{name}");
            let error = Reader::open(&left).map(|_| ()).expect_err("no commit");
            assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
        }
    }
    assert_eq!(sizes.len(), 20, "each killed writer had one temporary file");
    assert!(sizes.iter().filter(|size| **size > 0).count() >= 15, "they were killed too early: {sizes:?}");
    sizes.sort_unstable();
    sizes.dedup();
    assert!(sizes.len() >= 5, "they were all killed at the same place: {sizes:?}");
}

#[test]
fn a_writer_killed_after_a_commit_leaves_that_commit() {
    for round in 0..20_u64 {
        let folder = Folder::new();
        let mut child = start(&folder.destination(), Work::Commit);
        child.report();
        std::thread::sleep(Duration::from_micros(1_300 * (round % 11)));
        let reported = child.kill().unwrap_or(20);
        let reader = Reader::open(folder.destination()).unwrap_or_else(|error| panic!("round {round}: {error}"));
        let samples = check_samples(&reader, 7);
        // a commit that was done and not yet reported may be there too
        assert!(samples == reported || samples == reported + 20, "round {round}: {samples}, reported {reported}");
        assert!(!reader.is_finished());
        assert_eq!(folder.others(), Vec::<PathBuf>::new(), "its first commit gave it its name");
    }
}
