//! Resolves the path of an output, checks it, and opens it.

use super::descriptor::Descriptor;
use super::writer::Output;
use crate::failure::{Failure, Outcome};
use crate::signals;
use crate::terminal::warning;
use std::fs::File;
use std::io::{self, BufWriter, IsTerminal};
use std::path::{Path, PathBuf};
use std::slice;
use tensilo::error::display_path;
use tensilo::export::Table;
use tensilo::sink::AtomicFile;
use tensilo::source::FileIdentity;
use tensilo_data::Dataset;
use tensilo_object::{Address, ObjectError, ObjectOptions, ObjectStorage};

/// The kind of data. Text may go to a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Data {
    /// Text for people.
    Text,
    /// Bytes for programs.
    Binary,
}

/// The inputs of a command, which its output must not overwrite.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Inputs<'a> {
    Files(&'a [PathBuf]),
    Dataset(&'a Dataset),
}

impl<'a> Inputs<'a> {
    pub(crate) fn file(path: &'a PathBuf) -> Self {
        Self::Files(slice::from_ref(path))
    }
}

/// A resolved output path. Nothing is opened or changed yet.
#[derive(Debug)]
pub(crate) struct Destination {
    target: Target,
    /// The path as the user wrote it.
    name: PathBuf,
    force: bool,
    data: Data,
}

/// The kind of file that a path refers to.
#[derive(Debug, PartialEq, Eq)]
enum Target {
    /// A regular file, or nothing yet. The complete output replaces or creates it.
    File,
    /// A named pipe or a character device. The output is written into it.
    Stream,
    /// An open descriptor. The output is written into it, without opening it again.
    Descriptor(Descriptor),
    /// An object of a store, or nothing yet. The complete output replaces or creates it.
    Object(Address),
}

impl Destination {
    /// Resolves the path that the user gave; `-` is the standard output. Fails early, before long
    /// work is done in vain, if:
    ///
    /// * the output is one of the inputs,
    /// * a file exists at the path (unless `force`),
    /// * the path is neither a file nor a stream,
    /// * binary data would go to a terminal (unless `force`).
    pub(crate) fn new(path: &Path, force: bool, data: Data, inputs: Inputs<'_>) -> Outcome<Self> {
        let target = Target::of(path)?;
        let destination = Self { target, name: path.to_path_buf(), force, data };
        destination.refuse_inputs(inputs)?;
        match &destination.target {
            // `create` reports all other problems with the path
            Target::File if !force && path.exists() => {
                return Err(Failure::exists(path));
            }
            Target::Object(address) => destination.refuse_input_object(address, inputs)?,
            Target::File | Target::Stream => {}
            Target::Descriptor(descriptor) => destination.refuse_terminal(descriptor.is_terminal())?,
        }
        Ok(destination)
    }

    /// Resolves the path that differs in its extension, for a second file of the same output.
    pub(crate) fn beside(&self, extension: &str) -> Outcome<Self> {
        if !matches!(self.target, Target::File | Target::Object(_)) {
            let message = format!("{}: two files are written, which a stream cannot be", shown(&self.name));
            return Err(Failure::Usage(message));
        }
        Self::new(&self.name.with_extension(extension), self.force, self.data, Inputs::Files(&[]))
    }

    /// Resolves the path that the user gave; without one, the standard output.
    pub(crate) fn or_stdout(path: Option<&Path>, force: bool, data: Data, inputs: Inputs<'_>) -> Outcome<Self> {
        Self::new(path.unwrap_or(Path::new("-")), force, data, inputs)
    }

    /// Refuses an object that is an input. Others know an object by its address alone.
    fn refuse_input_object(&self, address: &Address, inputs: Inputs<'_>) -> Outcome {
        let Inputs::Files(inputs) = inputs else { return Ok(()) };
        let is_same = |input: &&PathBuf| Address::of_path(input).is_ok_and(|input| input == *address);
        inputs.iter().find(is_same).map_or(Ok(()), |input| Err(self.is_input(input)))
    }

    fn is_input(&self, input: &Path) -> Failure {
        Failure::Usage(format!(
            "{}: this is the input {} itself, which is not overwritten, even with --force; write to another file",
            shown(&self.name),
            display_path(input)
        ))
    }

    fn refuse_inputs(&self, inputs: Inputs<'_>) -> Outcome {
        // if the identity is unknown, opening the file fails later
        let identity = self.identity().unwrap_or(None);
        let inputs = match inputs {
            Inputs::Files(files) => files,
            Inputs::Dataset(dataset) => {
                let path = (self.target == Target::File).then_some(self.name.as_path());
                return Ok(dataset.check_output(identity, path)?);
            }
        };
        let Some(identity) = identity else { return Ok(()) };
        let same = |input: &&PathBuf| FileIdentity::at(input).is_ok_and(|input| input.as_ref() == Some(&identity));
        match inputs.iter().find(same) {
            None => Ok(()),
            Some(input) => Err(self.is_input(input)),
        }
    }

    /// Returns the identity of what is at the path. An empty file is nobody's input.
    fn identity(&self) -> io::Result<Option<FileIdentity>> {
        let (metadata, identity) = match &self.target {
            Target::File => (self.name.metadata()?, FileIdentity::at(&self.name)?),
            Target::Stream | Target::Object(_) => return Ok(None),
            Target::Descriptor(descriptor) => {
                let file = descriptor.duplicate()?;
                (file.metadata()?, FileIdentity::of(&file)?)
            }
        };
        Ok(identity.filter(|_| metadata.len() > 0))
    }

    fn refuse_terminal(&self, is_terminal: bool) -> Outcome {
        if self.data == Data::Text || self.force || !is_terminal {
            return Ok(());
        }
        Err(Failure::Usage(format!(
            "{}: binary data is not written to a terminal; redirect it, name a file with --output, or use --force",
            shown(&self.name)
        )))
    }

    /// Warns about temporary files that killed runs to this destination have left.
    pub(crate) fn warn_of_litter(&self) {
        if self.target != Target::File {
            return;
        }
        // an unreadable folder is reported when the file is created
        for path in AtomicFile::left_behind(&self.name).unwrap_or_default() {
            warning(&format!(
                "{}: a run that was killed has left {}; delete it if nothing writes to it",
                display_path(&self.name),
                display_path(&path)
            ));
        }
    }

    /// Returns whether the output can be begun again: nothing is seen of it before it is complete.
    pub(crate) fn is_restartable(&self) -> bool {
        matches!(self.target, Target::File | Target::Object(_))
    }

    /// Opens the output.
    pub(crate) fn create(&self) -> Outcome<Output> {
        match &self.target {
            Target::File => {
                let file = AtomicFile::create(&self.name, self.force)?;
                signals::remove_at_exit(file.temporary_path());
                Ok(Output::File(Box::new(file), self.name.clone()))
            }
            Target::Object(address) => {
                let storage = ObjectStorage::new(address, ObjectOptions::new());
                let upload = storage.upload(address, self.force).map_err(|error| match error {
                    ObjectError::Io { error, .. } if error.kind() == io::ErrorKind::AlreadyExists => {
                        Failure::exists(&self.name)
                    }
                    error => Failure::output(&self.name, error.into_io()),
                })?;
                Ok(Output::Object(Box::new(upload), self.name.clone()))
            }
            Target::Stream => {
                let opened = File::options().write(true).open(&self.name);
                let file = opened.map_err(|error| Failure::output(&self.name, error))?;
                self.refuse_terminal(file.is_terminal())?;
                Ok(Output::Stream(BufWriter::new(file), self.name.clone()))
            }
            Target::Descriptor(Descriptor::STDOUT) => Ok(Output::stdout()),
            Target::Descriptor(descriptor) => {
                let file = descriptor.duplicate().map_err(|error| Failure::output(&self.name, error))?;
                Ok(Output::Stream(BufWriter::new(file), self.name.clone()))
            }
        }
    }
}

impl Target {
    /// Resolves a path. Follows symbolic links one by one, because one may lead to an open
    /// descriptor.
    fn of(path: &Path) -> Outcome<Self> {
        if path == Path::new("-") {
            return Ok(Self::Descriptor(Descriptor::STDOUT));
        }
        if Address::is_path(path) {
            return Address::of_path(path).map(Self::Object).map_err(|error| Failure::Usage(error.to_string()));
        }
        const MOST: usize = 40; // the limit of Linux
        let mut at = path.to_path_buf();
        for _ in 0..MOST {
            if let Some(descriptor) = Descriptor::of(&at) {
                return Ok(Self::Descriptor(descriptor));
            }
            let Ok(link) = at.read_link() else { break };
            at = at.parent().unwrap_or(Path::new("")).join(link);
        }
        // `create` reports the problem
        let Ok(metadata) = path.metadata() else { return Ok(Self::File) };
        match kind_of(metadata.file_type()) {
            Ok(target) => Ok(target),
            Err(what) => {
                let message = "and only a regular file is replaced; choose another path";
                Err(Failure::Usage(format!("{}: {what} is there, {message}", display_path(path))))
            }
        }
    }
}

#[cfg(unix)]
fn kind_of(file: std::fs::FileType) -> Result<Target, &'static str> {
    use std::os::unix::fs::FileTypeExt;
    match file {
        file if file.is_fifo() || file.is_char_device() => Ok(Target::Stream),
        file if file.is_dir() => Err("a folder"),
        file if file.is_socket() => Err("a socket"),
        file if file.is_block_device() => Err("a block device"),
        _ => Ok(Target::File),
    }
}

#[cfg(not(unix))]
fn kind_of(file: std::fs::FileType) -> Result<Target, &'static str> {
    match file {
        file if file.is_dir() => Err("a folder"),
        file if file.is_file() => Ok(Target::File),
        _ => Ok(Target::Stream),
    }
}

/// Returns the name of an output in messages.
pub(crate) fn shown(path: &Path) -> String {
    if path == Path::new("-") { "standard output".to_owned() } else { display_path(path).to_string() }
}
