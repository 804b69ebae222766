//! The program as a process: help, exit codes, pipes, and output on a terminal.

use super::{CommandLine, Folder, NAMES, damaged_file, folder_of, has, program, run, sample_file};
use std::fs::File;
use std::process::Stdio;

#[test]
fn help_has_examples_and_every_option_of_the_contract() {
    let text = run(["--help"]).text();
    has(&text, &["Examples:", "Exit codes:", "NO_COLOR"]);
    assert_eq!(run(["help"]).text(), text);
    for (command, example, options) in [
        (
            "convert",
            "--bf16",
            "-o --bf16 --cast --columns --skip --shape --profile --chunk-bytes --block-bytes --no-check --align \
             --threads --force --null-elements",
        ),
        (
            "append",
            "--skip-extra-columns",
            "--skip-extra-columns --discard-tail --profile --chunk-bytes --block-bytes --no-check --threads --null-elements",
        ),
        ("inspect", "tensilo.inspect/1", "--json --explain --chunk --sample --quiet"),
        ("verify", "tensilo.verify/1", "--json --deep"),
        ("get", "--format npy", "-c -i --format --as -o --nulls --force"),
        ("export", ".parquet", "-o --columns --force"),
        ("layout", "--svg train.svg", "--svg --width --verify --force"),
        ("bench", "tensilo.bench/1", "-c --access --batch --threads --cold --seconds --json --loader"),
        ("plan", "tensilo.plan/1", "--nodes --ranks --batch --step-ms --columns --storage --streams --json"),
        ("dataset", "tensilo.log/1", "create add-columns repack gc log"),
    ] {
        let text = run([command, "--help"]).text();
        has(&text, &["Examples:", example]);
        let (_, examples) = text.split_once("Examples:").unwrap(); // their lines are not wrapped
        assert!(examples.lines().all(|line| line.chars().count() <= 80), "{text}");
        has(&run([command, "-h"]).text(), &options.split_whitespace().collect::<Vec<_>>());
    }
    assert_eq!(run(["--version"]).text(), format!("tensilo {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn bad_usage_exits_with_2() {
    for line in [
        "",
        "nonsense",
        "inspect",
        "inspect a b",
        "inspect a --chunk 0",
        "inspect a --explain --chunk 0 --sample 0",
        "inspect a --explain --chunk -1",
        "convert in.parquet",
        "convert -o out.tsl",
        "convert in.parquet -o out.tsl --profile best",
        "convert in.parquet -o out.tsl --block-bytes 512",
        "convert in.parquet -o out.tsl --align 512",
        "convert in.parquet -o out.tsl --threads 0",
        "convert in.parquet -o out.tsl --null-elements drop",
        "append",
        "append in.tsl",
        "append in.tsl in.parquet --align 64",
        "get in.tsl -c x -i 1 --format csv",
        "export in.tsl",
        "bench",
        "bench in.tsl --access backwards",
        "bench in.tsl --batch 0",
        "bench in.tsl --threads 0",
        "plan",
        "plan in.tsl --nodes 0",
        "layout",
        "layout in.tsl --width 39",
        "layout in.tsl --width 1001",
        "layout in.tsl --svg out.svg --width 599",
        "layout in.tsl --force",
    ] {
        let run = run(line.split_whitespace());
        assert_eq!(run.code, 2, "{line}: {run:?}");
        assert!(!run.stderr.is_empty() && run.stdout.is_empty(), "{line}: {run:?}");
    }
    let folder = folder_of(&["a.tsl", "b.tsl"]);
    for command in ["inspect", "verify", "bench"] {
        folder.fails(&format!("{command} a.tsl b.tsl"), 2, "quote the pattern");
    }
}

#[test]
fn files_that_cannot_be_read_have_exit_codes() {
    let folder = folder_of(&["a.tsl"]);
    let whole = sample_file();
    // a flag that this release does not know
    let mut new = whole.clone();
    new[35] |= 0x80;
    let header_crc = crc32fast::hash(&new[..60]);
    new[60..64].copy_from_slice(&header_crc.to_le_bytes());
    folder.file("new.tsl", new);
    folder.file("a.txt", b"this is not a tensilo file, however long it may be, at least 64 bytes or so");
    folder.file("empty.tsl", b"");
    folder.file("half.tsl", &whole[..whole.len() / 2]);
    folder.file("damaged.tsl", damaged_file());
    std::fs::create_dir(folder.path("folder")).unwrap();
    for (line, code, message) in [
        ("inspect missing.tsl", 3, "missing.tsl"),
        ("get missing.tsl -c x -i 0", 3, "missing.tsl"),
        ("export missing.tsl -o out.parquet", 3, "missing.tsl"),
        ("get folder -c x -i 0", 2, "neither a manifest nor tensilo files"),
        ("inspect folder", 2, "folder"),
        ("inspect a.txt", 1, "not a tensilo file"),
        ("inspect empty.tsl", 1, "empty.tsl"),
        ("inspect half.tsl", 1, "tensilo verify"),
        ("inspect new.tsl", 2, "newer tensilo"),
        ("get a.tsl -c x -i 0 --format npy -o missing/out.npy", 3, "out.npy"),
    ] {
        folder.fails(line, code, message);
    }
    assert!(NAMES.iter().any(|column| folder.run(&format!("get damaged.tsl -c {column} -i ..")).code == 1));
}

#[test]
fn a_reader_that_stops_reading_is_not_a_failure() {
    let folder = folder_of(&["a.tsl"]);
    let indices = vec!["0..20"; 5_000].join(",");
    for format in ["json", "npy", "raw"] {
        let mut command = folder.command(&format!("get a.tsl -c x --format {format} -i {indices}"));
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take()); // the output is larger than a pipe holds
        let output = child.wait_with_output().unwrap();
        assert_eq!((output.status.code(), output.stderr.len()), (Some(0), 0));
    }
    // a closed standard error does no harm
    let mut command = folder.command("inspect missing.tsl");
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stderr.take());
    assert_eq!(child.wait().unwrap().code(), Some(3));
}

#[test]
#[cfg(target_os = "linux")]
fn an_output_that_cannot_be_written_exits_with_3() {
    let folder = folder_of(&["a.tsl"]);
    for line in ["inspect a.tsl", "inspect a.tsl --json", "get a.tsl -c x -i 0"] {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let output = folder.command(line).stdout(full).stderr(Stdio::piped()).spawn().unwrap();
        super::Run::from(output.wait_with_output().unwrap()).failed(3, "writing the output");
    }
}

#[test]
fn nothing_is_colored_in_a_pipe() {
    let folder = folder_of(&["a.tsl"]);
    for line in [
        "inspect a.tsl",
        "inspect a.tsl --json",
        "verify a.tsl",
        "layout a.tsl",
        "get a.tsl -c x -i 0",
        "get a.tsl -c nothing -i 0",
        "get a.tsl --wrong",
        "help",
    ] {
        let run = folder.run(line);
        assert!(!run.stdout.contains(&0x1B) && !run.stderr.contains('\u{1b}'), "{run:?}");
    }
    let colored = |variables: &[(&str, &str)]| {
        let output = program().arg("--wrong").envs(variables.iter().copied()).output().unwrap();
        !output.stderr.is_empty() && output.stderr.contains(&0x1B)
    };
    assert!(!colored(&[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")]));
    assert!(colored(&[("CLICOLOR_FORCE", "1")]), "otherwise this test proves nothing");
}

#[test]
fn tables_in_a_pipe_are_neither_wrapped_nor_cut() {
    use tensilo::{ColumnSchema, DType, Schema, Shape, Value, WriterOptions};
    let name = |i: usize| format!("encoder.layers.{i}.attention.self.query projection with a name that goes on.{i}");
    let schema = Schema::new((0..9).map(|i| ColumnSchema::tensor(name(i), DType::F32, Shape::fixed(&[2]))));
    let folder = Folder::new();
    let push = |writer: &mut tensilo::Writer<_>| writer.push(&vec![Value::tensor(&[1.1_f32, 2.2]); 9]).unwrap();
    folder.file("a.tsl", super::written(schema, WriterOptions::new(), push));
    for line in ["inspect a.tsl", "salvage a.tsl", "layout a.tsl", "convert a.tsl -o b.tsl"] {
        let text = folder.text(line);
        for i in 0..9 {
            let row = text.lines().find(|line| line.contains(&name(i))).unwrap_or_else(|| panic!("{i}: {text}"));
            assert!(row.contains(" B "), "{row}");
        }
    }
}

/// Output on a terminal: colors, widths and progress.
#[cfg(target_os = "linux")]
mod terminal {
    use super::super::{CommandLine, Folder, folder_of, pseudo_terminal, unfinished_file};
    use rustix::termios::{Winsize, tcsetwinsize};
    use std::io::Read;
    use std::thread;

    /// Returns the output on a terminal of this width, with these variables.
    fn on_terminal(folder: &Folder, width: u16, variables: &[(&str, &str)], line: &str) -> String {
        let (mut terminal, side) = pseudo_terminal();
        tcsetwinsize(&terminal, Winsize { ws_row: 50, ws_col: width, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
        let reader = thread::spawn(move || {
            let (mut bytes, mut buffer) = (Vec::new(), [0; 4096]);
            // an error (EIO) is the end: the other side is closed
            while let Ok(count @ 1..) = terminal.read(&mut buffer) {
                bytes.extend_from_slice(&buffer[..count]);
            }
            String::from_utf8(bytes).unwrap()
        });
        let mut command = folder.command(line);
        command.env("TERM", "xterm-256color").envs(variables.iter().copied());
        command.stdout(side.try_clone().unwrap()).stderr(side);
        let mut child = command.spawn().unwrap();
        drop(command); // it keeps the terminal open
        child.wait().unwrap();
        reader.join().unwrap()
    }

    /// Returns the visible text, without escape sequences.
    fn seen(text: &str) -> String {
        let mut segments = text.split("\u{1b}[");
        let first = segments.next().unwrap().to_owned();
        segments.fold(first, |seen, segment| seen + segment.split_once(|c: char| c.is_ascii_alphabetic()).unwrap().1)
    }

    #[test]
    fn errors_are_red_and_warnings_yellow_unless_the_environment_forbids_it() {
        let folder = folder_of(&["a.tsl"]);
        folder.file("b.tsl", unfinished_file());
        let heading = |line: &str| on_terminal(&folder, 80, &[], line).split_once(' ').unwrap().0.to_owned();
        let error = heading("inspect missing.tsl");
        assert!(error.contains("\u{1b}[31m") && seen(&error) == "error:", "{error:?}");
        assert_eq!(heading("inspect missing.tsl --wrong"), error);
        let warning = heading("get b.tsl -c e -i 0");
        assert!(warning.contains("\u{1b}[33m") && seen(&warning) == "warning:", "{warning:?}");
        for variable in [("NO_COLOR", "1"), ("CLICOLOR", "0"), ("TERM", "dumb")] {
            for line in ["inspect missing.tsl", "inspect a.tsl --wrong"] {
                let text = on_terminal(&folder, 80, &[variable], line);
                assert!(!text.contains("\u{1b}[3") && !text.contains("\u{1b}[1"), "{variable:?}: {text:?}");
            }
        }
    }

    #[test]
    fn tables_and_progress_fit_in_the_terminal() {
        let folder = folder_of(&["a.tsl"]);
        folder.done("convert SPEECH -o speech.tsl");
        for (width, command) in [(40_u16, "salvage"), (80, "salvage"), (80, "inspect"), (80, "layout"), (120, "layout")]
        {
            let text = seen(&on_terminal(&folder, width, &[], &format!("{command} speech.tsl -q")));
            // metadata lines are indented, and may have any width
            let lines = text.lines().filter(|line| !line.starts_with("  "));
            let widest = lines.map(|line| line.trim_end().chars().count()).max().unwrap();
            assert!(widest <= usize::from(width), "{command} in {width}: {text}");
            assert!(command != "layout" || widest == usize::from(width), "{text}");
        }
        for (width, expected) in [(20_u16, "verify"), (80, "verifying [")] {
            let text = seen(&on_terminal(&folder, width, &[], "verify a.tsl"));
            let (progress, _) = text.split_once("ok: ").unwrap();
            assert!(progress.contains(expected), "{text:?}");
            for line in progress.split(['\r', '\n']) {
                assert!(line.chars().count() <= usize::from(width), "{line:?} in {width}");
            }
            assert!(!on_terminal(&folder, width, &[], "verify a.tsl --quiet").contains("verif"));
        }
    }
}
