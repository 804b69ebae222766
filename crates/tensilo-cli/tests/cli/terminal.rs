//! Output on a terminal: colours and widths.
#![cfg(target_os = "linux")]

use super::{Folder, SampleFile, program, pseudo_terminal, unfinished_file};
use rustix::termios::{Winsize, tcsetwinsize};
use std::ffi::OsStr;
use std::io::Read;
use std::path::Path;
use std::thread;

/// Returns the output on a terminal of this width, with these variables.
fn on_terminal(width: u16, variables: &[(&str, &str)], args: &[&OsStr]) -> String {
    let (mut terminal, side) = pseudo_terminal();
    tcsetwinsize(&terminal, Winsize { ws_row: 50, ws_col: width, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
    let reader = thread::spawn(move || {
        let (mut bytes, mut part) = (Vec::new(), [0; 4096]);
        // an error (EIO) is the end: the other side is closed
        while let Ok(count @ 1..) = terminal.read(&mut part) {
            bytes.extend_from_slice(&part[..count]);
        }
        String::from_utf8(bytes).unwrap()
    });
    let mut command = program();
    command.env("TERM", "xterm-256color").envs(variables.iter().copied()).args(args);
    command.stdout(side.try_clone().unwrap()).stderr(side);
    let mut child = command.spawn().unwrap();
    drop(command); // it keeps the terminal open
    child.wait().unwrap();
    reader.join().unwrap()
}

fn words<'a>(command: &'a str, file: &'a Path) -> Vec<&'a OsStr> {
    let mut words = command.split(' ').map(OsStr::new);
    words.next().into_iter().chain([file.as_os_str()]).chain(words).collect()
}

/// Returns the visible text, without escape sequences.
fn seen(text: &str) -> String {
    let mut pieces = text.split("\u{1b}[");
    let first = pieces.next().unwrap().to_owned();
    pieces.fold(first, |seen, piece| seen + piece.split_once(|c: char| c.is_ascii_alphabetic()).unwrap().1)
}

#[test]
fn errors_are_red_and_warnings_yellow_as_those_of_the_command_line() {
    let folder = Folder::new();
    let missing = folder.path("missing.tsl");
    let error = on_terminal(80, &[], &words("inspect", &missing));
    let usage = on_terminal(80, &[], &words("inspect --wrong", &missing));
    let heading = error.split_once(' ').unwrap().0;
    assert!(heading.contains("\u{1b}[31m") && seen(heading) == "error:", "{error:?}");
    assert_eq!(usage.split_once(' ').unwrap().0, heading, "{usage:?}");
    let warning = on_terminal(80, &[], &words("get -c e -i 0", &folder.file("a.tsl", unfinished_file())));
    let heading = warning.split_once(' ').unwrap().0;
    assert!(heading.contains("\u{1b}[33m") && seen(heading) == "warning:", "{warning:?}");
}

#[test]
fn no_colours_are_printed_if_the_environment_forbids_them() {
    let folder = Folder::new();
    let file = folder.samples("a.tsl");
    let missing = folder.path("missing.tsl");
    for variable in [("NO_COLOR", "1"), ("CLICOLOR", "0"), ("TERM", "dumb")] {
        for args in [words("inspect", &missing), words("inspect --wrong", &file), words("map --quiet", &file)] {
            let text = on_terminal(80, &[variable], &args);
            assert!(!text.contains("\u{1b}[3") && !text.contains("\u{1b}[1"), "{variable:?}: {text:?}");
        }
    }
    assert!(on_terminal(80, &[], &words("map --quiet", &file)).contains("\u{1b}[3"), "else this test shows nothing");
}

#[test]
fn lines_are_as_wide_as_the_terminal() {
    let folder = Folder::new();
    let file = folder.samples("a.tsl");
    for width in [24, 50, 120] {
        for command in ["inspect --quiet", "map --quiet", "salvage --quiet"] {
            let text = seen(&on_terminal(width, &[], &words(command, &file)));
            let widest = text.lines().map(|line| line.chars().count()).max().unwrap();
            assert!(widest <= usize::from(width), "{command} in {width}: {text}");
            assert!(command != "map --quiet" || widest == usize::from(width), "{text}");
        }
    }
}

#[test]
fn the_progress_line_fits_in_the_narrowest_terminal() {
    let folder = Folder::new();
    let file = folder.samples("a.tsl");
    for (width, due) in [(20_u16, "verify"), (80, "verifying [")] {
        let text = seen(&on_terminal(width, &[], &words("verify", &file)));
        let (progress, _) = text.split_once("ok: ").unwrap();
        assert!(progress.contains(due), "{text:?}");
        for line in progress.split(['\r', '\n']) {
            assert!(line.chars().count() <= usize::from(width), "{line:?} in {width}");
        }
    }
}
