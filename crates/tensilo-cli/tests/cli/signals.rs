//! SIGINT, SIGTERM, SIGHUP and SIGKILL at random moments: `TENSILO_KILLS` of them, or 40, for each
//! command that writes.

use super::{CommandLine, Folder, word};
use rustix::process::{Pid, Signal, kill_process};
use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Once};
use std::thread;
use std::time::{Duration, Instant};
use tensilo::Reader;
use tensilo::source::InMemory;
use tensilo::verify::{VerifyOptions, verify};
use tensilo_testing::{Random, env_or};

/// The signals that can be caught, and their exit codes.
const SIGNALS: [(Signal, i32); 3] = [(Signal::INT, 130), (Signal::TERM, 143), (Signal::HUP, 129)];

/// Ensures that children ignore no signal. Under `nohup`, or in the background of a script, the
/// tests start with ignored signals, which their children would inherit. Children do not inherit
/// handlers, so a handler for each signal prevents that.
fn ignore_none() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        for (signal, _) in SIGNALS.iter().filter(|(signal, _)| is_ignored(*signal)) {
            signal_hook::flag::register(signal.as_raw(), Arc::new(AtomicBool::new(false))).unwrap();
        }
    });
}

/// Returns whether this process ignores a signal. Only Linux reports it. The program has the same
/// function; the test does not call that one, so that it does not trust the code under test.
fn is_ignored(signal: Signal) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.is_some_and(|mask| u64::from_str_radix(mask.trim(), 16).unwrap() >> (signal.as_raw() - 1) & 1 == 1)
}

fn send(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).unwrap();
}

/// How often the same input is passed, so that writing takes longer than starting and exiting.
const INPUTS: usize = 16;

/// A folder with a Parquet file, and a tensilo file converted from it.
struct Inputs {
    folder: Folder,
    parquet: PathBuf,
    file: PathBuf,
}

impl Inputs {
    fn new() -> Self {
        ignore_none();
        let folder = Folder::new();
        let (parquet, file) = (folder.path("in.parquet"), folder.path("in.tsl"));
        fs::copy(word("SPEECH"), &parquet).unwrap();
        folder.done("convert in.parquet -o in.tsl");
        Self { folder, parquet, file }
    }

    fn command(&self, line: &str) -> Command {
        let mut command = self.folder.command(line);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    /// Returns the duration of a command without signals.
    fn time(&self, line: &str) -> Duration {
        let start = Instant::now();
        assert!(self.command(line).status().unwrap().success());
        start.elapsed()
    }

    /// Sends a signal to a command after a delay, and returns the outcome.
    fn kill(&self, line: &str, after: Duration, signal: Signal) -> ExitStatus {
        let mut child = self.command(line).spawn().unwrap();
        thread::sleep(after);
        send(&child, signal);
        child.wait().unwrap()
    }
}

/// The outcome of a command that received a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Done,
    /// Ended by its own handler.
    Handled,
    /// Ended by SIGKILL, or before its handler was installed.
    Killed,
}

fn end(status: ExitStatus, signal: Signal) -> End {
    let expected = SIGNALS.iter().find(|(catchable, _)| *catchable == signal).map(|(_, code)| *code);
    match (status.code(), status.signal()) {
        (Some(0), _) => End::Done,
        (Some(code), _) if Some(code) == expected => End::Handled,
        (_, Some(killed)) if killed == signal.as_raw() => End::Killed,
        _ => panic!("{status} after {signal:?}"),
    }
}

/// Returns how often each command is killed.
fn kills() -> usize {
    env_or("TENSILO_KILLS", 40)
}

/// Returns the signals of `rounds` runs, each at a random moment.
fn moments(rounds: usize, time: Duration, seed: u64) -> impl Iterator<Item = (Duration, Signal)> {
    let mut random = Random(seed);
    let signals = [Signal::INT, Signal::TERM, Signal::HUP, Signal::KILL];
    (0..rounds).map(move |round| {
        (time.mul_f64(random.below(1 << 32) as f64 / (1_u64 << 32) as f64), signals[round % signals.len()])
    })
}

/// Prints how commands ended, and asserts that enough of them were interrupted in either way.
#[track_caller]
fn check_ends(ends: &[End]) {
    let [handled, killed, done] =
        [End::Handled, End::Killed, End::Done].map(|end| ends.iter().filter(|found| **found == end).count());
    println!("{handled} handled, {killed} killed, {done} done");
    assert!(handled.min(killed) >= kills() / 10, "{ends:?}");
}

#[test]
fn a_conversion_killed_at_any_moment_leaves_nothing_and_changes_no_input() {
    let inputs = Inputs::new();
    let before = fs::read(&inputs.parquet).unwrap();
    let line = &format!("convert{} -o out.tsl --force --profile raw", " in.parquet".repeat(INPUTS));
    let out = inputs.folder.path("out.tsl");
    let time = inputs.time(line);
    let expected = fs::read(&out).unwrap();
    let mut ends = Vec::new();
    for (round, (after, signal)) in moments(kills(), time, 1).enumerate() {
        let old = (round % 8 < 4).then_some(b"the old file".to_vec());
        match &old {
            Some(old) => fs::write(&out, old).unwrap(),
            None => drop(fs::remove_file(&out)),
        }
        let end = end(inputs.kill(line, after, signal), signal);
        let found = fs::read(&out).ok();
        // the signal may arrive between the last step and the end
        let whole = found.as_ref() == Some(&expected);
        assert!(whole || (found == old && end != End::Done), "{round}: {signal:?} after {after:?}: {end:?}");
        let others: Vec<String> = inputs.folder.names().into_iter().filter(|name| name != "out.tsl").collect();
        assert_eq!(others, ["in.parquet", "in.tsl"], "{round}: {signal:?} after {after:?}");
        assert!(fs::read(&inputs.parquet).unwrap() == before, "{round}");
        ends.push(end);
    }
    check_ends(&ends);
}

#[test]
fn an_append_killed_at_any_moment_leaves_the_last_commit() {
    let inputs = Inputs::new();
    let (before, input) = (fs::read(&inputs.file).unwrap(), fs::read(&inputs.parquet).unwrap());
    let line = &format!("append in.tsl{} --profile raw", " in.parquet".repeat(INPUTS));
    let time = inputs.time(line);
    let expected = fs::read(&inputs.file).unwrap();
    let (mut ends, mut tails) = (Vec::new(), 0);
    for (round, (after, signal)) in moments(kills(), time, 2).enumerate() {
        fs::write(&inputs.file, &before).unwrap();
        let end = end(inputs.kill(line, after, signal), signal);
        let found = fs::read(&inputs.file).unwrap();
        let what = format!("{round}: {signal:?} after {after:?}: {end:?}");
        if signal == Signal::KILL {
            // written bytes may remain after the last commit; nothing before them has changed
            assert!(
                found.starts_with(&before) && expected.starts_with(&found[..found.len().min(expected.len())]),
                "{what}"
            );
            let samples = Reader::from_bytes(found.to_vec()).unwrap().sample_count();
            let report = verify(&InMemory(found.as_slice()), VerifyOptions::new()).unwrap();
            let is_tail = report.findings.iter().all(|damage| damage.file_range.start >= before.len() as u64);
            assert!(
                is_tail && (samples == 5 || (samples == 5 + 5 * INPUTS as u64 && found == expected)),
                "{what}: {report:?}"
            );
            tails += usize::from(found.len() > before.len());
        } else {
            assert!(found == before && end != End::Done || found == expected, "{what}: {} bytes", found.len());
        }
        assert_eq!(inputs.folder.names(), ["in.parquet", "in.tsl"], "{what}");
        assert!(fs::read(&inputs.parquet).unwrap() == input, "{what}");
        ends.push(end);
    }
    println!("{tails} tails");
    check_ends(&ends);
}

/// Creates a named pipe, and opens its writing end, which keeps it open.
fn pipe(folder: &Folder) -> thread::JoinHandle<File> {
    let path = folder.path("pipe");
    assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
    thread::spawn(move || File::options().write(true).open(path).unwrap())
}

#[test]
fn a_process_that_waits_for_a_pipe_ends() {
    for (signal, code) in SIGNALS {
        ignore_none();
        let folder = Folder::new();
        let writer = pipe(&folder);
        let mut child = folder.command("convert pipe -o out.tsl").spawn().unwrap();
        let mut writer = writer.join().unwrap(); // the pipe has been opened for reading
        writer.write_all(b"ARROW").unwrap();
        send(&child, signal);
        assert_eq!(child.wait().unwrap().code(), Some(code), "{signal:?}");
        assert_eq!(folder.names(), ["pipe"], "{signal:?}");
    }
}

/// A standard output without a reader.
#[test]
fn a_process_that_waits_for_a_reader_ends() {
    let inputs = Inputs::new();
    for line in [
        "export in.tsl --format arrow -o -",
        "get in.tsl -c mel -i ..",
        "salvage in.tsl -o -",
        "convert in.parquet -o -",
    ] {
        for (signal, code) in SIGNALS {
            let mut child = inputs.command(line).stdout(Stdio::piped()).spawn().unwrap();
            let mut stdout = child.stdout.take().unwrap();
            stdout.read_exact(&mut [0]).unwrap(); // the output is larger than a pipe holds
            send(&child, signal);
            assert_eq!(child.wait().unwrap().code(), Some(code), "{line} {signal:?}");
            drop(stdout);
        }
    }
}

#[test]
fn a_second_signal_ends_the_process_too() {
    let inputs = Inputs::new();
    let mut child = inputs.command("export in.tsl --format arrow -o -").stdout(Stdio::piped()).spawn().unwrap();
    let mut stdout = child.stdout.take().unwrap();
    stdout.read_exact(&mut [0]).unwrap();
    send(&child, Signal::INT);
    send(&child, Signal::TERM);
    let code = child.wait().unwrap().code();
    assert!(code == Some(130) || code == Some(143), "{code:?}");
}

/// Runs with SIGHUP ignored, as under `nohup`.
#[test]
#[cfg(target_os = "linux")]
fn a_signal_that_is_ignored_stays_ignored() {
    let inputs = Inputs::new();
    let tensilo = inputs.command("export in.tsl --format arrow -o -");
    let mut shell = Command::new("sh");
    shell
        .current_dir(inputs.folder.root())
        .args(["-c", r#"trap "" HUP; exec "$0" "$@""#])
        .arg(tensilo.get_program())
        .args(tensilo.get_args());
    let mut child = shell.stdout(Stdio::piped()).spawn().unwrap();
    let mut stdout = child.stdout.take().unwrap();
    stdout.read_exact(&mut [0]).unwrap();
    send(&child, Signal::HUP);
    let mut rest = Vec::new();
    stdout.read_to_end(&mut rest).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert!(rest.ends_with(b"ARROW1"));
}

#[test]
fn a_salvage_that_is_stopped_says_what_has_happened() {
    let inputs = Inputs::new();
    let mut child =
        inputs.command("salvage in.tsl -o -").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdout = child.stdout.take().unwrap();
    stdout.read_exact(&mut [0]).unwrap();
    send(&child, Signal::TERM);
    // the run continues, and reacts to the signal
    thread::spawn(move || stdout.read_to_end(&mut Vec::new()));
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(143));
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "error: stopped by SIGTERM\n");
}
