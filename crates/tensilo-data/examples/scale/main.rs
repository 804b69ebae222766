//! A model of training on 10^5 files with 10^12 samples, and its comparison with real datasets:
//!
//! ```text
//! cargo run --release -p tensilo-data --example scale
//! cargo run --release -p tensilo-data --example scale -- --measure
//! ```
//!
//! The model is `tensilo_data::model`. `README.md` has the tables.

mod manifest;
mod measured;
mod report;
mod scenario;
mod table;

use measured::reads::{Measured, modes};
use measured::source::Reading;
use measured::{Failure, datasets, many_files, reads};
use tensilo_testing::{CountingAllocator, Folder};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

fn main() -> Result<(), Failure> {
    let argument = std::env::args().nth(1);
    match argument.as_deref() {
        None => model(),
        Some("--measure") => measure(),
        Some(other) => Err(format!("{other}: expected --measure, or no argument").into()),
    }
}

fn title(text: &str) {
    println!("\n{text}\n");
}

/// Prints the tables of the model.
fn model() -> Result<(), Failure> {
    let dataset = scenario::dataset();
    title("Sizes");
    print!("{}", report::sizes(&dataset));
    for (title_of_job, job) in [
        ("An epoch of 8 ranks on one machine", scenario::ONE_NODE),
        ("An epoch of 512 ranks on 64 machines", scenario::MANY_NODES),
        ("An epoch of 8,192 ranks on 1,024 machines", scenario::LARGEST_JOB),
    ] {
        title(title_of_job);
        print!("{}", report::epochs(&dataset, &job)?);
    }
    title("Late responses of an object store with a cache");
    print!("{}", report::late_responses()?);
    title("Sizes of chunks: amplification for 64 machines, object store with a cache");
    print!("{}", report::chunk_sizes()?);
    title("Lengths of reads");
    print!("{}", report::lengths());
    Ok(())
}

/// How the measured dataset is read: from a local disk, and from object storage.
const NEAR: (&str, Reading) = ("gap 4 KiB, 256 open", Reading { gap: 4096, open_files: 256, line: None });
const FAR: (&str, Reading) = ("gap 1 MiB, 256 open", Reading { gap: 1 << 20, open_files: 256, line: None });
const FAR_ALL_OPEN: (&str, Reading) = ("gap 1 MiB, 1,000 open", Reading { open_files: 1000, ..FAR.1 });
const FAR_IN_LINES: (&str, Reading) =
    ("gap 1 MiB, 1,000 open, lines of 64 KiB", Reading { line: Some(64 << 10), ..FAR_ALL_OPEN.1 });

/// Prints the tables of real datasets.
fn measure() -> Result<(), Failure> {
    let folder = Folder::new();
    let dataset = datasets::write(&folder.path("samples"), 1000, 100_000)?;
    let file = first_file(&dataset)?;
    let model = datasets::model(&dataset, &file)?;
    let modes = modes(dataset.window_sizes());
    let measured = Measured { folder: &folder.path("samples"), model: &model, batch: 256, steps: 300 };
    title("Reads of 300 batches of 256 of 10^8 samples in 10^3 files");
    print!("{}", reads::table(&measured, &[NEAR, FAR, FAR_IN_LINES], &modes)?);
    title("A step of 32 samples, I/O depth 32, each read answered after 20 ms");
    let measured = Measured { batch: 32, steps: 128, ..measured };
    print!("{}", reads::times(&measured, &[FAR, FAR_ALL_OPEN, FAR_IN_LINES], &modes, 32)?);
    title("A manifest of 10^5 files with 10^12 samples");
    let dataset = datasets::link(&folder.path("files"), 100_000, 10_000_000)?;
    let model = datasets::model(&dataset, &first_file(&dataset)?)?;
    print!("{}", many_files::table(&folder.path("files"), &model)?);
    title("Its times");
    print!("{}", many_files::times(&folder.path("files"))?);
    Ok(())
}

fn first_file(dataset: &tensilo_data::Dataset) -> Result<std::path::PathBuf, Failure> {
    let group = dataset.groups().next().ok_or("the dataset has no groups")??;
    Ok(group.files.into_iter().next().ok_or("the group has no files")?.path)
}
