//! A child process: this program, started again to run one test that reports the number of samples
//! in its file. Environment variables tell that test that it is the child.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read};
use std::process::{ChildStdout, Command, Stdio};

/// Reports to the parent; called by the test that the child runs.
pub fn report(samples: u64) {
    println!("samples {samples}");
}

/// Returns the samples that a line of output reports, if it is a report.
fn reported(line: &str) -> Option<u64> {
    line.split("samples ").nth(1)?.trim().parse().ok()
}

/// Returns the arguments that make this program run one test.
pub fn arguments(test: &str) -> [&str; 3] {
    ["--exact", test, "--nocapture"]
}

pub struct Child {
    process: std::process::Child,
    output: BufReader<ChildStdout>,
}

impl Child {
    /// Starts the test of this path, for example `atomic::links::a_link_is_followed`.
    pub fn start<V: AsRef<OsStr>>(test: &str, environment: impl IntoIterator<Item = (&'static str, V)>) -> Self {
        let mut process = Command::new(std::env::current_exe().expect("this program"))
            .args(arguments(test))
            .envs(environment)
            .stdout(Stdio::piped())
            .spawn()
            .expect("this program can start itself");
        let output = BufReader::new(process.stdout.take().expect("a pipe"));
        Self { process, output }
    }

    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// Waits for a report.
    pub fn report(&mut self) -> u64 {
        loop {
            let mut line = String::new();
            assert!(self.output.read_line(&mut line).expect("text") > 0, "the child ended early");
            if let Some(samples) = reported(&line) {
                return samples;
            }
        }
    }

    /// Sends SIGKILL; returns the last report that was not read yet.
    pub fn kill(mut self) -> Option<u64> {
        self.process.kill().expect("it is still alive");
        let status = self.process.wait().expect("a child");
        assert!(!status.success(), "the child was done before it was killed");
        let mut rest = String::new();
        self.output.read_to_string(&mut rest).expect("text");
        // the last line may be incomplete
        let whole = rest.rfind('\n').map_or("", |end| &rest[..end]);
        whole.lines().filter_map(reported).next_back()
    }
}
