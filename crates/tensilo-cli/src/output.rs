//! Where data goes: a file that appears when it is complete, or a stream that is written into.

mod descriptor;

use crate::exit::{Failure, Outcome};
use crate::signals;
use crate::terminal::warning;
use descriptor::Descriptor;
use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Stdout, Write};
use std::path::{Path, PathBuf};
use tensilo::{AtomicFile, FileIdentity, Sink, display_path};

/// What is written; a terminal takes only text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Data {
    /// For people.
    Text,
    /// For programs.
    Binary,
}

/// Where data is to go. Nothing is opened or changed yet.
#[derive(Debug)]
pub(crate) struct Destination {
    place: Place,
    /// As the user named it.
    name: PathBuf,
    force: bool,
    data: Data,
}

/// What the name of a destination means.
#[derive(Debug, PartialEq, Eq)]
enum Place {
    /// A regular file, or none yet: it is replaced or made when all of it is written.
    File,
    /// A named pipe or a character device: it is written into.
    Stream,
    /// Something that is open: it is written into, and not opened again.
    Descriptor(Descriptor),
}

impl Destination {
    /// Resolves the path that the user gave; `-` is the standard output. Refuses early, before a
    /// long job is done for nothing: an output that is one of the inputs, a file that is in the way
    /// (unless `force`), what is neither file nor stream, a terminal for binary data (unless
    /// `force`).
    pub(crate) fn new(path: &Path, force: bool, data: Data, inputs: &[PathBuf]) -> Outcome<Self> {
        let place = Place::of(path)?;
        let destination = Self { place, name: path.to_path_buf(), force, data };
        destination.refuse_inputs(inputs)?;
        match &destination.place {
            // whatever else is the matter with the path is found when the file is created
            Place::File if !force && path.exists() => {
                return Err(Failure::exists(path));
            }
            Place::File | Place::Stream => {}
            Place::Descriptor(descriptor) => destination.refuse_terminal(descriptor.is_terminal())?,
        }
        Ok(destination)
    }

    /// The path that the user gave, or the standard output without one.
    pub(crate) fn or_stdout(path: Option<&Path>, force: bool, data: Data, inputs: &[PathBuf]) -> Outcome<Self> {
        Self::new(path.unwrap_or(Path::new("-")), force, data, inputs)
    }

    fn refuse_inputs(&self, inputs: &[PathBuf]) -> Outcome {
        let identity = match &self.place {
            Place::File => FileIdentity::at(&self.name),
            Place::Stream => Ok(None),
            Place::Descriptor(descriptor) => descriptor.duplicate().and_then(|file| FileIdentity::of(&file)),
        };
        let Ok(Some(identity)) = identity else { return Ok(()) }; // what cannot be asked is refused when it is opened
        let same = |input: &&PathBuf| FileIdentity::at(input).is_ok_and(|input| input.as_ref() == Some(&identity));
        match inputs.iter().find(same) {
            None => Ok(()),
            Some(input) => Err(Failure::Usage(format!(
                "{}: this is the input {} itself, which is not overwritten, even with --force; write to another file",
                shown(&self.name),
                display_path(input)
            ))),
        }
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

    /// Names in a warning what earlier runs to this destination that were killed have left behind.
    pub(crate) fn warn_of_litter(&self) {
        if self.place != Place::File {
            return;
        }
        // a folder that cannot be listed holds back nothing
        for path in AtomicFile::left_behind(&self.name).unwrap_or_default() {
            warning(&format!(
                "{}: a run that was killed has left {}; delete it if nothing writes to it",
                display_path(&self.name),
                display_path(&path)
            ));
        }
    }

    /// Opens the destination.
    pub(crate) fn create(self) -> Outcome<Output> {
        match &self.place {
            Place::File => {
                let file = AtomicFile::create(&self.name, self.force)?;
                signals::remove_at_exit(file.temporary_path());
                Ok(Output::File(Box::new(file), self.name))
            }
            Place::Stream => {
                let opened = File::options().write(true).open(&self.name);
                let file = opened.map_err(|error| Failure::output(&self.name, error))?;
                self.refuse_terminal(file.is_terminal())?;
                Ok(Output::Stream(BufWriter::new(file), self.name))
            }
            Place::Descriptor(Descriptor::STDOUT) => Ok(Output::stdout()),
            Place::Descriptor(descriptor) => {
                let file = descriptor.duplicate().map_err(|error| Failure::output(&self.name, error))?;
                Ok(Output::Stream(BufWriter::new(file), self.name))
            }
        }
    }
}

impl Place {
    /// Follows symbolic links by hand: one of them may lead to something that is open.
    fn of(path: &Path) -> Outcome<Self> {
        if path == Path::new("-") {
            return Ok(Self::Descriptor(Descriptor::STDOUT));
        }
        const MOST: usize = 40; // as Linux has it
        let mut at = path.to_path_buf();
        for _ in 0..MOST {
            if let Some(descriptor) = Descriptor::of(&at) {
                return Ok(Self::Descriptor(descriptor));
            }
            let Ok(link) = at.read_link() else { break };
            at = at.parent().unwrap_or(Path::new("")).join(link);
        }
        let Ok(metadata) = path.metadata() else { return Ok(Self::File) }; // whatever is the matter is found later
        match kind_of(metadata.file_type()) {
            Ok(place) => Ok(place),
            Err(what) => {
                let message = "and only a regular file is replaced; choose another path";
                Err(Failure::Usage(format!("{}: {what} is there, {message}", display_path(path))))
            }
        }
    }
}

#[cfg(unix)]
fn kind_of(file: std::fs::FileType) -> Result<Place, &'static str> {
    use std::os::unix::fs::FileTypeExt;
    match file {
        file if file.is_fifo() || file.is_char_device() => Ok(Place::Stream),
        file if file.is_dir() => Err("a folder"),
        file if file.is_socket() => Err("a socket"),
        file if file.is_block_device() => Err("a block device"),
        _ => Ok(Place::File),
    }
}

#[cfg(not(unix))]
fn kind_of(file: std::fs::FileType) -> Result<Place, &'static str> {
    if file.is_dir() { Err("a folder") } else { Ok(Place::File) }
}

/// An open destination, buffered. A file appears when [`Output::finish`] or [`Sink::publish`] is
/// called.
#[derive(Debug)]
pub(crate) enum Output {
    /// The standard output.
    Stdout(BufWriter<Stdout>),
    /// What is written into, and its name.
    Stream(BufWriter<File>, PathBuf),
    /// A file, and its name.
    File(Box<AtomicFile>, PathBuf),
}

impl Output {
    /// The standard output, for text.
    pub(crate) fn stdout() -> Self {
        Self::Stdout(BufWriter::new(io::stdout()))
    }

    /// Where to tell what came of it: the standard output, unless the data goes there.
    pub(crate) fn summary(&self) -> Box<dyn Write> {
        let shares_stdout = match self {
            Self::Stdout(_) => true,
            Self::Stream(file, _) => Descriptor::STDOUT.is(file.get_ref()),
            Self::File(..) => false,
        };
        if shares_stdout { Box::new(io::stderr()) } else { Box::new(Self::stdout()) }
    }

    /// Writes what is buffered, and puts the file in its place.
    pub(crate) fn finish(mut self) -> Outcome {
        let finished = self.sync().and_then(|()| self.publish());
        finished.map_err(|error| match self {
            Self::File(_, path) if error.kind() == io::ErrorKind::AlreadyExists => Failure::exists(&path),
            Self::File(_, path) | Self::Stream(_, path) if error.kind() != io::ErrorKind::BrokenPipe => {
                Failure::output(&path, error)
            }
            _ => Failure::from(error),
        })
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Stdout(stdout) => stdout.write(bytes),
            Self::Stream(stream, _) => stream.write(bytes),
            Self::File(file, _) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Stdout(stdout) => stdout.flush(),
            Self::Stream(stream, _) => stream.flush(),
            Self::File(file, _) => file.flush(),
        }
    }
}

impl Sink for Output {
    fn sync(&mut self) -> io::Result<()> {
        match self {
            Self::Stdout(_) | Self::Stream(..) => self.flush(),
            Self::File(file, _) => file.sync(),
        }
    }

    fn publish(&mut self) -> io::Result<()> {
        match self {
            Self::Stdout(_) | Self::Stream(..) => Ok(()),
            Self::File(file, _) => file.publish(),
        }
    }

    fn path(&self) -> Option<&Path> {
        match self {
            Self::Stdout(_) => None,
            Self::Stream(_, path) | Self::File(_, path) => Some(path),
        }
    }

    fn identity(&self) -> Option<FileIdentity> {
        match self {
            Self::Stdout(_) => FileIdentity::of(&Descriptor::STDOUT.duplicate().ok()?).ok().flatten(),
            Self::Stream(file, _) => FileIdentity::of(file.get_ref()).ok().flatten(),
            Self::File(file, _) => file.identity(),
        }
    }
}

/// What an output is called in messages.
pub(crate) fn shown(path: &Path) -> String {
    if path == Path::new("-") { "standard output".to_owned() } else { display_path(path).to_string() }
}

/// Writes a JSON document, for people and programs, and a line feed.
pub(crate) fn write_json(output: &mut impl Write, document: &serde_json::Value) -> Outcome {
    serde_json::to_writer_pretty(&mut *output, document).map_err(io::Error::from)?;
    Ok(writeln!(output)?)
}
