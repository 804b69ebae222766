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
        let (versions, paths) = (garbage.versions.len(), garbage.paths.len());
        let (folder, bytes) = (shown(&args.folder), human::bytes(garbage.bytes));
        let verb = if args.dry_run { "would remove" } else { "removed" };
        let line = format!("{folder}: {verb} {versions} versions, and {paths} files or folders of {bytes}");
        write_wrapped(&mut output, &line, output_width())?;
    }
    output.finish()
}
