//! The command-line program `tensilo`.

use std::env;
use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(tensilo_cli::run(env::args_os()))
}
