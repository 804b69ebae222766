//! `tensilo dataset gc`

use super::args::GcArgs;
use crate::failure::Outcome;
use crate::output::{Output, shown};
use crate::terminal::{output_width, write_wrapped};
use crate::text::human;
use std::io::Write;
use tensilo_data::Garbage;

/// Removes old versions and what only they need, or lists it.
pub(super) fn run(args: &GcArgs, quiet: bool) -> Outcome {
    let garbage = Garbage::find(&args.folder, args.keep.map_or(u64::MAX, u64::from))?;
    let mut output = Output::stdout();
    if args.dry_run {
        for version in &garbage.versions {
            writeln!(output, "version {version}")?;
        }
        for path in &garbage.paths {
            writeln!(output, "{}", shown(path))?;
        }
    } else {
        garbage.remove()?;
    }
    if !quiet {
        let number = |length: usize| u64::try_from(length).unwrap_or(u64::MAX);
        let versions = human::count(number(garbage.versions.len()), "version");
        let paths = human::count(number(garbage.paths.len()), "path");
        let (folder, bytes) = (shown(&args.folder), human::bytes(garbage.bytes));
        let verb = if args.dry_run { "would remove" } else { "removed" };
        let line = format!("{folder}: {verb} {versions} and {paths}, {bytes} together");
        write_wrapped(&mut output, &line, output_width())?;
    }
    output.finish()
}
