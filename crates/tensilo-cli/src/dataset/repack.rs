//! `tensilo dataset repack`

use super::args::RepackArgs;
use super::publish::set_time;
use super::summary::{DatasetSize, write_dataset};
use crate::failure::Outcome;
use crate::output::Output;
use crate::progress::{Progress, Unit};
use crate::terminal::{output_width, write_wrapped};
use crate::text::human;
use tensilo_data::Dataset;

/// Writes all samples into new files, and prints the sizes before and after.
pub(super) fn run(args: &RepackArgs, quiet: bool) -> Outcome {
    let before = Dataset::open(&args.folder)?;
    let mut changes = before.change()?;
    set_time(&mut changes)?;
    let progress = Progress::new(Unit::Samples, quiet);
    let total = Some(before.sample_count());
    let options = args.encoding.writer_options().alignment(args.align);
    changes.repack(args.shard_bytes, &options, &mut |done| progress.set("repacking", done, total))?;
    drop(progress);
    let profile = args.encoding.profile.name();
    let shard_bytes = human::bytes(args.shard_bytes);
    let after = changes.publish(format!("repack to files of {shard_bytes}, profile {profile}"))?;
    if quiet {
        return Ok(());
    }
    let mut output = Output::stdout();
    write_dataset(&after, &args.folder, &mut output)?;
    let size = DatasetSize::of(&before)?;
    let (files, bytes, version) = (human::count(size.files, "file"), human::bytes(size.bytes), before.version());
    let line = format!("before: {files}, {bytes} together; version {version} keeps them until it is removed");
    write_wrapped(&mut output, &line, output_width())?;
    output.finish()
}
