//! The command line program `tensilo`: converts, appends, inspects, verifies, salvages, reads, exports, draws and measures tensilo files.
#![deny(missing_docs, unsafe_code)]
#![cfg_attr(not(test), warn(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic))]

mod advice;
mod append;
mod args;
mod bench;
mod casts;
mod convert;
mod encoding;
mod exit;
mod export;
mod get;
mod human;
mod input;
mod inspect;
mod layout;
mod map;
mod open;
mod output;
mod parse;
mod progress;
mod progress_line;
mod salvage;
mod shapes;
mod signals;
#[allow(unsafe_code, reason = "a mapped file can change under the reader: the user promises that it does not")]
mod sys;
mod table;
mod terminal;
mod verify;

use args::{Cli, Command};
use clap::Parser;
use exit::{Exit, Outcome};
use std::process::ExitCode;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            let _ = error.print(); // nobody is left to tell
            return if error.use_stderr() { Exit::Usage.into() } else { Exit::Done.into() };
        }
    };
    signals::watch();
    let exit = run(&cli).unwrap_or_else(|failure| {
        if let Some(message) = failure.message() {
            terminal::error(&message);
        }
        failure.exit()
    });
    exit.into()
}

fn run(cli: &Cli) -> Outcome<Exit> {
    let done = match &cli.command {
        Command::Convert(args) => convert::run(args, cli.quiet),
        Command::Append(args) => append::run(args, cli.quiet),
        Command::Inspect(args) => inspect::run(args, cli.quiet),
        Command::Verify(args) => return verify::run(args, cli.quiet),
        Command::Salvage(args) => return salvage::run(args, cli.quiet),
        Command::Get(args) => get::run(args, cli.quiet),
        Command::Export(args) => export::run(args, cli.quiet),
        Command::Map(args) => return map::run(args, cli.quiet),
        Command::Bench(args) => bench::run(args, cli.quiet),
    };
    done.map(|()| Exit::Done)
}
