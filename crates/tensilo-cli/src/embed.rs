//! What `inspect`, `salvage` and `map` compute, as functions: the Python package calls them.
//!
//! [`run`](crate::run) takes the whole process: it installs handlers of signals, prints, and
//! returns an exit code. A package of another language needs values, has handlers of its own, and
//! raises its own errors. These functions therefore return documents and drawings, never write to
//! the terminal, and fail with the errors of the crates.
//!
//! Documents, tiles and drawings come from the commands. A step that a command does with a
//! progress bar is here a second time, with a [`Tell`] in its place: that bar only looks for
//! signals that the handlers of `run` have seen.

use crate::dataset::DatasetFacts;
use crate::failure::Failure;
use crate::inspect::{self, InspectArgs};
use crate::map::damage::Subject;
use crate::map::dataset::Bars;
use crate::map::{MapArgs, TILES, legend, svg, tiles};
use crate::open;
use crate::options::threads;
use crate::output::Output;
use crate::salvage::dataset::{WrittenFile, begin};
use crate::salvage::losses::{DatasetLosses, FileLosses};
use crate::salvage::report::SalvageReport;
use serde_json::Value;
use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use tensilo::salvage::{RewriteOptions, SalvageOptions, Salvaged, salvage as find_intact};
use tensilo::sink::{AtomicFile, Sink};
use tensilo::verify::{DamageKind, VerifyOptions, verify};
use tensilo::{Error, ErrorKind, OpenOptions, Summary, WriterOptions};
use tensilo_data::{Changes, DataError, Dataset, SampleGroup};
use tensilo_object::{Address, ObjectOptions, ObjectStorage};

/// A function that is told phase, done and total of some work, as far as it is known. If it
/// breaks, the work ends with an error of kind [`ErrorKind::Cancelled`], and what it wrote
/// vanishes.
pub type Tell<'a> = &'a mut dyn FnMut(&'static str, u64, Option<u64>) -> ControlFlow<()>;

/// Returns the document of `tensilo inspect --json`: the columns, sizes, encodings and metadata of
/// a file or a dataset.
///
/// # Errors
///
/// The file or the dataset cannot be opened or read.
pub fn inspect(path: &Path) -> Result<Value, DataError> {
    if let Some(dataset) = open::dataset(path)? {
        return Ok(inspect::dataset::document(&dataset, &DatasetFacts::of(&dataset, true)?));
    }
    let file = path.to_path_buf();
    let args = InspectArgs { file, json: true, wide: false, explain: false, regret: false, chunk: None, sample: None };
    Ok(inspect::document::document(&args, &open::open(path, true)?)?)
}

/// Finds what is intact in a damaged file or dataset, writes it to a new one if there is an
/// `output`, and returns the document of `tensilo salvage --json`.
///
/// # Errors
///
/// Nothing can be salvaged, reading or writing failed, or something has the path of the output.
pub fn salvage(path: &Path, output: Option<&Path>, tell: Tell<'_>) -> Result<Value, DataError> {
    if let Some(dataset) = open::dataset(path)? {
        return salvage_dataset(&dataset, output, tell);
    }
    let source = open::source(path)?;
    let output = output.map(|path| Ok::<_, DataError>((path, create(path)?))).transpose()?;
    let mut look = |done, total| tell("looking for chunks", done, Some(total));
    let options = SalvageOptions::new().decode(true).progress(&mut look);
    let salvaged = find_intact(source, options).map_err(|error| Failure::about(path, error))?;
    let written = output.map(|(path, output)| Ok::<_, DataError>((path, rewrite(&salvaged, output, tell)?)));
    let written = written.transpose()?;
    let written = written.as_ref().map(|(path, summary)| (*path, summary));
    Ok(SalvageReport { salvaged: &salvaged, written }.document())
}

/// Returns the drawing of `tensilo map --svg`: the chunks of a file to scale, or the files of a
/// dataset. If `verify`, checks every byte of a file, and draws the damage, too.
///
/// # Errors
///
/// The width is not 600 to 10000 pixels, a dataset is to be verified, or the file or the dataset
/// cannot be opened or read.
pub fn draw_layout(path: &Path, width: u32, verify: bool, tell: Tell<'_>) -> Result<String, DataError> {
    if !(600..=10_000).contains(&width) {
        return Err(DataError::BadArgument(format!("width={width}: a drawing is 600 to 10000 pixels wide")));
    }
    let mut drawing = Vec::new();
    let drawn = match open::dataset(path)? {
        Some(_) if verify => {
            let message = format!("{}: this is a dataset; verify is for a file of it", path.display());
            return Err(DataError::BadArgument(message));
        }
        Some(dataset) => {
            let args = MapArgs { file: path.to_path_buf(), svg: None, verify, width: Some(width), force: false };
            let width = usize::try_from(width).unwrap_or(usize::MAX);
            Bars::of(&args, &dataset)?.write_svg(&mut drawing, &dataset, width)
        }
        None => {
            let subject = subject(path, verify, tell)?;
            let reader = &subject.reader;
            let tiles = match legend::chunk_count(reader) {
                ..=TILES => tiles::chunk_tiles(reader, path, TILES, true)?,
                _ => tiles::equal_tiles(reader, path, reader.file_bytes().div_ceil(TILES), true)?,
            };
            svg::write(&mut drawing, &subject, path, &tiles, width)
        }
    };
    drawn.map_err(|error| Error::io("drawing", error))?;
    Ok(String::from_utf8_lossy(&drawing).into_owned())
}

/// Opens a file for a drawing, after verifying it if requested. If it cannot be opened, salvages
/// the intact chunks.
fn subject(path: &Path, is_verified: bool, tell: Tell<'_>) -> Result<Subject, DataError> {
    if !is_verified {
        let reader = open::open(path, true)?;
        return Ok(Subject { reader, is_verified, is_salvaged: false, damages: Vec::new() });
    }
    let about = |error| Failure::about(path, error);
    let source = open::source(path)?;
    let mut advance = |bytes| tell("verifying", bytes, Some(source.byte_count()));
    let options = VerifyOptions::new().threads(threads(None)).progress(&mut advance);
    let mut damages = verify(&source, options).map_err(about)?.damages;
    damages.retain(|damage| damage.kind == DamageKind::Damaged);
    let (reader, is_salvaged) = match OpenOptions::new().open(source.clone()) {
        Err(error) if error.kind() == ErrorKind::Corrupt => {
            let mut look = |done, total| tell("looking for chunks", done, Some(total));
            (find_intact(source, SalvageOptions::new().progress(&mut look)).map_err(about)?.reader, true)
        }
        opened => (opened.map_err(about)?, false),
    };
    Ok(Subject { reader, is_verified, is_salvaged, damages })
}

/// Salvages all files of a dataset, and writes a new dataset if there is an `output`.
fn salvage_dataset(dataset: &Dataset, output: Option<&Path>, tell: Tell<'_>) -> Result<Value, DataError> {
    let mut changes = output.map(|folder| begin(dataset, &folder.to_path_buf())).transpose()?;
    let mut losses = DatasetLosses::new(dataset);
    for group in dataset.groups() {
        let group = group?;
        let mut written = Vec::new();
        for file in 0..group.files.len() {
            let mut look = |done, total| tell("looking for chunks", done, Some(total));
            let options = SalvageOptions::new().decode(true).progress(&mut look);
            let found = dataset.salvage_file(&group, file, options)?;
            let lost = FileLosses::of(dataset, &group, file, &found);
            if let Some(changes) = &mut changes {
                for column in lost.columns.iter().filter(|column| !column.lost.is_empty()) {
                    changes.make_nullable(column.number);
                }
                written.push(rewrite_file(changes, &group, file, &found.salvaged, tell)?);
            }
            losses.add(lost);
        }
        if let Some(changes) = &mut changes {
            changes.append_group(&written)?;
        }
    }
    let made = changes.map(|changes| changes.publish("salvage")).transpose()?;
    Ok(losses.document(made.as_ref().zip(output))?)
}

/// Writes what is left of a file to the next file of a new dataset.
fn rewrite_file(
    changes: &mut Changes,
    group: &SampleGroup,
    file: usize,
    salvaged: &Salvaged,
    tell: Tell<'_>,
) -> Result<WrittenFile, DataError> {
    let output = changes.next_file()?;
    let path: PathBuf = output.path().to_path_buf();
    rewrite(salvaged, output, tell)?;
    let columns = group.files.get(file).map(|file| file.columns.clone()).unwrap_or_default();
    Ok((path, columns))
}

/// Writes what is left of a file, with nulls for what is lost.
fn rewrite<K: Sink>(salvaged: &Salvaged, output: K, tell: Tell<'_>) -> tensilo::Result<Summary<K>> {
    let total = Some(salvaged.reader.sample_count());
    let mut advance = |done| tell("writing", done, total);
    let writer = WriterOptions::new().threads(threads(None)).alignment(salvaged.reader.alignment());
    salvaged.write_to(output, &writer, RewriteOptions::new().progress(&mut advance))
}

/// Begins a file, or an object if the path is its address.
fn create(path: &Path) -> Result<Output, DataError> {
    if !Address::is_path(path) {
        return Ok(Output::File(Box::new(AtomicFile::create(path, false)?), path.to_path_buf()));
    }
    let upload = Address::of_path(path)
        .and_then(|address| ObjectStorage::new(&address, ObjectOptions::new()).upload(&address, false));
    let failed = |error: tensilo_object::ObjectError| Error::io("creating the object", error.into_io());
    let upload = upload.map_err(|error| failed(error).with_path(path))?;
    Ok(Output::Object(Box::new(upload), path.to_path_buf()))
}

/// Returns the error of the crates, without what the program would print about it.
impl From<Failure> for DataError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Library(error, Some(path)) if error.path().is_none() => error.with_path(&path).into(),
            Failure::Library(error, _) => error.into(),
            Failure::Dataset(error) => error,
            Failure::Usage(message) => Self::BadArgument(message),
            Failure::Output(error, _) => Error::io("writing the output", error).into(),
            Failure::Cancelled => Error::cancelled().into(),
            Failure::Closed => Error::io("writing the output", io::ErrorKind::BrokenPipe.into()).into(),
        }
    }
}
