//! Outputs that are inputs, links, streams, devices or terminals, and their names in messages.

use super::{CommandLine, Folder, Run, folder_of, program, pseudo_terminal};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::{FileTypeExt, MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;

/// All ways to name an output.
const COMMANDS: [&str; 5] = [
    "convert PARQUET -o OUT",
    "export FILE --format parquet -o OUT",
    "salvage FILE -o OUT",
    "get FILE -c e -i .. --format raw -o OUT",
    "layout FILE --svg OUT",
];

/// A folder with a tensilo file, and a Parquet file of some of its columns.
struct Inputs {
    folder: Folder,
}

impl Inputs {
    fn new() -> Self {
        let folder = folder_of(&["a.tsl"]);
        folder.done("export a.tsl --columns e,t,r -o in.parquet");
        Self { folder }
    }

    fn command(&self, line: &str, output: impl AsRef<OsStr>) -> Command {
        let mut command = program();
        command.args(line.split(' ').map(|word| match word {
            "FILE" => self.folder.path("a.tsl").into_os_string(),
            "PARQUET" => self.folder.path("in.parquet").into_os_string(),
            "OUT" => output.as_ref().to_os_string(),
            word => word.into(),
        }));
        command
    }

    fn run(&self, line: &str, output: impl AsRef<OsStr>) -> Run {
        self.command(line, output).output().unwrap().into()
    }

    #[track_caller]
    fn done(&self, line: &str, output: impl AsRef<OsStr>) -> Run {
        let run = self.run(line, output);
        run.failed(0, "");
        run
    }

    /// Returns the bytes that a command writes to a new file, and its messages.
    fn expected(&self, line: &str) -> (Vec<u8>, String) {
        let path = self.folder.path("due");
        let run = self.done(line, &path);
        let bytes = fs::read(&path).unwrap();
        fs::remove_file(&path).unwrap();
        (bytes, summary(&run.text(), path.to_str().unwrap()))
    }

    /// Returns the input of a command.
    fn of(&self, line: &str) -> PathBuf {
        self.folder.path(if line.contains("PARQUET") { "in.parquet" } else { "a.tsl" })
    }
}

/// Returns messages with the name of the output replaced, and without line breaks.
fn summary(text: &str, name: &str) -> String {
    text.replace(&format!("{name}: "), "OUT: ").split_whitespace().collect::<Vec<_>>().join(" ")
}

fn forced(line: &str) -> [String; 2] {
    [line.to_owned(), format!("{line} --force")]
}

#[test]
fn an_output_that_is_the_input_is_refused_through_any_path() {
    let inputs = Inputs::new();
    fs::create_dir(inputs.folder.path("sub")).unwrap();
    for line in COMMANDS {
        let input = &inputs.of(line);
        let before = fs::read(input).unwrap();
        let [hard, soft, chain] = ["hard", "soft", "chain"].map(|name| inputs.folder.path(name));
        fs::hard_link(input, &hard).unwrap();
        symlink(input.file_name().unwrap(), &soft).unwrap();
        symlink(&soft, &chain).unwrap();
        let around = inputs.folder.path("sub").join("..").join(input.file_name().unwrap());
        for output in [input, &hard, &soft, &chain, &around] {
            for line in forced(line) {
                let run = inputs.run(&line, output);
                run.failed(2, &format!("{}: this is the same file as the input", output.display()));
                assert!(run.stdout.is_empty(), "{run:?}");
                assert!(fs::read(input).unwrap() == before, "{line}");
            }
        }
        [hard, soft, chain].iter().for_each(|link| fs::remove_file(link).unwrap());
    }
    assert_eq!(inputs.folder.names(), ["a.tsl", "in.parquet", "sub"]);
}

/// Only the library can detect these, because it expands the inputs.
#[test]
fn an_output_that_is_one_of_many_inputs_is_refused() {
    let inputs = Inputs::new();
    let before = fs::read(inputs.folder.path("in.parquet")).unwrap();
    let link = inputs.folder.path("out.tsl");
    symlink(inputs.folder.path("in.parquet"), &link).unwrap();
    for input in [".", "*.parquet"] {
        inputs.folder.fails(
            &format!("convert {input} -fo out.tsl"),
            2,
            "out.tsl: the output is the same file as the input",
        );
        assert!(fs::read(inputs.folder.path("in.parquet")).unwrap() == before);
    }
}

/// `tensilo get a.tsl ... >> a.tsl` would read its own output.
#[test]
fn a_standard_output_that_is_the_input_is_refused() {
    let inputs = Inputs::new();
    for line in COMMANDS {
        let before = fs::read(inputs.of(line)).unwrap();
        for output in ["-", "/dev/stdout", "/dev/fd/1"] {
            let stdout = File::options().append(true).open(inputs.of(line)).unwrap();
            let output = inputs.command(line, output).stdout(stdout).stderr(Stdio::piped()).spawn().unwrap();
            Run::from(output.wait_with_output().unwrap()).failed(2, ": this is the same file as the input");
            assert!(fs::read(inputs.of(line)).unwrap() == before, "{line}");
        }
    }
}

#[test]
fn a_symbolic_link_stays_and_its_target_is_replaced() {
    let inputs = Inputs::new();
    let folder = inputs.folder.path("elsewhere");
    fs::create_dir(&folder).unwrap();
    let (link, target) = (inputs.folder.path("link"), folder.join("target"));
    symlink("elsewhere/target", &link).unwrap();
    for line in COMMANDS {
        let expected = inputs.expected(line).0;
        for old in [None, Some("old")] {
            if let Some(old) = old {
                fs::write(&target, old).unwrap();
                inputs.run(line, &link).failed(2, "link: the file exists; --force");
                assert_eq!(fs::read_to_string(&target).unwrap(), old);
                inputs.done(&format!("{line} --force"), &link);
            } else {
                inputs.done(line, &link);
            }
            assert_eq!(fs::read_link(&link).unwrap(), Path::new("elsewhere/target"), "{line}");
            assert!(fs::read(&target).unwrap() == expected, "{line}");
            assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
            fs::remove_file(&target).unwrap();
        }
    }
}

#[test]
fn folders_and_sockets_are_never_replaced() {
    let inputs = Inputs::new();
    fs::create_dir(inputs.folder.path("folder")).unwrap();
    drop(std::os::unix::net::UnixListener::bind(inputs.folder.path("socket")).unwrap());
    for line in COMMANDS.iter().flat_map(|line| forced(line)) {
        inputs.run(&line, inputs.folder.path("folder")).failed(2, "folder: this is a folder");
        inputs.run(&line, inputs.folder.path("socket")).failed(2, "socket: this is a socket");
    }
    let kind = |name| fs::symlink_metadata(inputs.folder.path(name)).unwrap().file_type();
    assert!(kind("folder").is_dir() && kind("socket").is_socket());
}

#[test]
fn a_device_is_written_into_and_stays_one() {
    let inputs = Inputs::new();
    let identity = || {
        let metadata = fs::symlink_metadata("/dev/null").unwrap();
        (metadata.ino(), metadata.rdev(), metadata.file_type().is_char_device())
    };
    let before = identity();
    assert!(before.2);
    for line in COMMANDS.iter().flat_map(|line| forced(line)) {
        inputs.done(&line, "/dev/null");
        assert_eq!(identity(), before, "{line}");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_full_device_exits_with_3_and_is_named() {
    let inputs = Inputs::new();
    for line in COMMANDS {
        inputs.run(line, "/dev/full").failed(3, "/dev/full: ");
        let full = File::options().write(true).open("/dev/full").unwrap();
        let output = inputs.command(line, "-").stdout(full).output().unwrap();
        assert_eq!(output.status.code(), Some(3), "{line}: {output:?}");
    }
}

#[test]
fn a_named_pipe_is_written_into_and_stays_one() {
    let inputs = Inputs::new();
    let pipe = inputs.folder.path("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    for line in COMMANDS {
        let expected = inputs.expected(line);
        for line in forced(line) {
            let reader = thread::spawn({
                let pipe = pipe.clone();
                move || fs::read(pipe).unwrap()
            });
            let run = inputs.done(&line, &pipe);
            assert!(reader.join().unwrap() == expected.0, "{line}");
            assert_eq!(summary(&run.text(), pipe.to_str().unwrap()), expected.1);
            assert!(fs::symlink_metadata(&pipe).unwrap().file_type().is_fifo());
        }
    }
}

/// A descriptor of a regular file is not opened again, and the file keeps its content.
#[test]
fn the_standard_output_is_written_into_and_the_summary_goes_to_the_standard_error() {
    let inputs = Inputs::new();
    let link = inputs.folder.path("link");
    symlink("/dev/stdout", &link).unwrap();
    for line in COMMANDS {
        let (bytes, expected) = inputs.expected(line);
        for output in ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1", link.to_str().unwrap()] {
            if output.starts_with("/proc") && !cfg!(target_os = "linux") {
                continue;
            }
            let run = inputs.done(line, output);
            assert!(run.stdout == bytes, "{line} {output}");
            let name = if output == "-" { "standard output" } else { output };
            assert_eq!(summary(&run.stderr, name), expected, "{line} {output}");

            let path = inputs.folder.file("into", b"before");
            let file = File::options().append(true).open(&path).unwrap();
            let status = inputs.command(line, output).stdout(file).stderr(Stdio::null()).status().unwrap();
            assert!(status.success(), "{line} {output}");
            assert!(fs::read(&path).unwrap() == [b"before", bytes.as_slice()].concat(), "{line} {output}");
        }
        let run = inputs.done(&format!("{line} --quiet"), "-");
        assert!(run.stdout == bytes && (run.stderr.is_empty() || line.starts_with("salvage")), "{run:?}");
    }
}

#[test]
fn another_descriptor_is_written_at_its_offset() {
    let inputs = Inputs::new();
    let path = inputs.folder.path("into");
    for line in COMMANDS {
        let (bytes, expected) = inputs.expected(line);
        for output in ["/dev/fd/3", "/proc/self/fd/3"] {
            if output.starts_with("/proc") && !cfg!(target_os = "linux") {
                continue;
            }
            // the shell's own writes before and after share the position
            let mut shell = Command::new("sh");
            let script = r#"{ printf before >&3; "$0" "$@"; printf after >&3; } 3>"$INTO""#;
            let tensilo = inputs.command(line, output);
            shell.args(["-c", script]).arg(tensilo.get_program()).args(tensilo.get_args()).env("INTO", &path);
            let run = Run::from(shell.output().unwrap());
            assert!(fs::read(&path).unwrap() == [b"before", bytes.as_slice(), b"after"].concat(), "{line} {output}");
            assert_eq!((summary(&run.text(), output), run.stderr.as_str()), (expected.clone(), ""));
        }
    }
}

/// If the reader of a stream stops, its file is incomplete, and must not look like a success.
#[test]
fn a_reader_that_stops_exits_with_3_if_a_whole_file_was_requested() {
    let folder = Folder::new();
    let mut command = folder.command("convert SPEECH -o -");
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    Run::from(child.wait_with_output().unwrap()).failed(3, "Broken pipe");
    assert!(folder.names().is_empty());
}

#[test]
fn an_export_to_a_stream_needs_a_format() {
    let inputs = Inputs::new();
    inputs.run("export FILE -o OUT", "-").failed(2, "standard output: the extension does not name a format; ");
    for (format, magic) in [("parquet", b"PAR1".as_slice()), ("arrow", b"ARROW1")] {
        let run = inputs.done(&format!("export FILE --format {format} -o OUT"), "-");
        assert!(run.stdout.starts_with(magic));
        // the option overrides the extension
        let path = inputs.folder.path("out.csv");
        inputs.done(&format!("export FILE --format {format} -o OUT --force"), &path);
        assert!(fs::read(&path).unwrap() == run.stdout);
    }
}

#[test]
fn binary_data_is_refused_on_a_terminal_unless_it_is_forced() {
    let inputs = Inputs::new();
    let binary = COMMANDS.iter().filter(|line| !line.starts_with("layout")).map(|line| (*line).to_owned());
    let formats = ["npy", "raw"].map(|format| format!("get FILE -c e -i 0 --format {format}"));
    for line in binary.chain(formats) {
        let (_master, slave) = pseudo_terminal();
        let output = inputs.command(&line, "-").stdout(slave).stderr(Stdio::piped()).spawn().unwrap();
        Run::from(output.wait_with_output().unwrap())
            .failed(2, "standard output: binary data is not written to a terminal");
    }
    for (line, expected) in [
        ("get FILE -c e -i 1 --format raw --force", f32::INFINITY.to_le_bytes().as_slice()),
        ("get FILE -c e -i 5", b"5.0\r\n"),
    ] {
        let (mut master, slave) = pseudo_terminal();
        assert!(inputs.command(line, "-").stdout(slave).status().unwrap().success());
        let mut found = vec![0; expected.len()];
        master.read_exact(&mut found).unwrap();
        assert_eq!(found, expected);
    }
}

/// A terminal is also recognized by its path.
#[test]
#[cfg(target_os = "linux")]
fn binary_data_is_refused_on_the_path_of_a_terminal() {
    let inputs = Inputs::new();
    let (_master, slave) = pseudo_terminal();
    let path = fs::read_link(format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&slave))).unwrap();
    for line in COMMANDS.iter().filter(|line| !line.starts_with("layout")) {
        let message = format!("{}: binary data is not written to a terminal", path.display());
        inputs.run(line, &path).failed(2, &message);
    }
}

#[test]
fn messages_show_the_path_of_the_user_with_control_characters_escaped() {
    let inputs = Inputs::new();
    let name = inputs.folder.path("a\u{1b}[31m\nb.tsl");
    let escaped = "a\\u{1b}[31m\\nb.tsl";
    let check = |run: Run, code| {
        let all = format!("{}{}", run.stderr, String::from_utf8_lossy(&run.stdout));
        assert!(!all.contains('\u{1b}') && all.contains(escaped), "{all:?}");
        assert!(!all.contains(".tsl."), "a temporary name: {all}");
        assert_eq!(run.code, code, "{all}");
    };
    check(inputs.run("convert PARQUET -o OUT", &name), 0);
    for line in COMMANDS {
        check(inputs.run(line, &name), 2); // the file exists
    }
    check(inputs.run("append OUT PARQUET", &name), 0);
    check(inputs.run("append FILE OUT", &name), 2);
    check(inputs.run("salvage FILE -o OUT --force", &name), 0);
    fs::write(&name, "no tensilo file").unwrap();
    for line in
        ["inspect OUT", "verify OUT --json", "get OUT -c e -i 0", "layout OUT", "export OUT -o - --format arrow"]
    {
        let run = inputs.run(line, &name);
        assert!(!run.stderr.contains('\u{1b}'), "{run:?}");
    }
    let missing = inputs.folder.path("no\u{7}folder").join("out");
    for line in COMMANDS {
        let run = inputs.run(line, &missing);
        run.failed(3, "no\\u{7}folder");
        assert!(!run.stderr.contains('\u{7}') && !run.stderr.contains(".out."), "{run:?}");
    }
}

#[test]
fn files_of_killed_runs_are_reported_and_preserved() {
    let inputs = Inputs::new();
    let left = inputs.folder.file(".out.tsl.aB3dE6.tmp", b"half a file");
    let out = inputs.folder.path("out.tsl");
    let run = inputs.done("convert PARQUET -o OUT", &out);
    let expected = format!("warning: {}: a killed process left {}; ", out.display(), left.display());
    assert!(run.stderr.starts_with(&expected), "{run:?}");
    assert_eq!(inputs.done("convert PARQUET -o OUT --force --quiet", &out).stderr, "");
    assert_eq!(inputs.done("convert PARQUET -o OUT", inputs.folder.path("other.tsl")).stderr, "");
    assert_eq!(fs::read(left).unwrap(), b"half a file");
}
