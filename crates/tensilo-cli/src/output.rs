//! Outputs: files, objects, streams, and descriptors that are open when the program starts.
//!
//! A conversion can run for hours, so mistakes must be found before it starts. Therefore, a
//! [`Destination`] is resolved first. It refuses an existing file, binary data for a terminal, and
//! an output that is also an input, whatever path, link or descriptor names it. Nothing is opened
//! or changed until [`Destination::create`].
//!
//! A file or an object appears only when it is complete, and then replaces the old one in a single
//! step. A pipe, a device or an open descriptor cannot be replaced, so the data is written into it.
//! `/dev/fd/3` is duplicated instead of opened, because opening it would start at the beginning of
//! the file.

use crate::failure::{Failure, Outcome};
use crate::signals;
use crate::terminal::warning;
use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Stdout, Write};
use std::path::{Path, PathBuf};
use std::slice;
use tensilo::error::display_path;
use tensilo::export::Table;
use tensilo::sink::{AtomicFile, Sink};
use tensilo::source::FileIdentity;
use tensilo_data::Dataset;
use tensilo_object::{Address, ObjectError, ObjectOptions, ObjectStorage};

/// The type of the data. By default, only text is written to a terminal.
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

/// What an output path refers to.
#[derive(Debug, PartialEq, Eq)]
enum Target {
    /// A regular file, which might not exist yet. The complete output creates or replaces it.
    File,
    /// A named pipe or a character device. The output is written into it.
    Stream,
    /// An open descriptor. The output is written into it, without opening it again.
    Descriptor(Descriptor),
    /// An object in a store, which might not exist yet. The complete output creates or replaces it.
    Object(Address),
}

impl Destination {
    /// Resolves the path that the user gave; `-` is standard output. Fails if:
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

    /// Resolves the same path with another extension, for the second file of an output.
    pub(crate) fn beside(&self, extension: &str, inputs: Inputs<'_>) -> Outcome<Self> {
        if !matches!(self.target, Target::File | Target::Object(_)) {
            let message = format!(
                "{}: two files are written, so the output cannot be a stream; write to a file",
                shown(&self.name)
            );
            return Err(Failure::Usage(message));
        }
        Self::new(&self.name.with_extension(extension), self.force, self.data, inputs)
    }

    /// Refuses an object that is an input. The address of an object is its only identity.
    fn refuse_input_object(&self, address: &Address, inputs: Inputs<'_>) -> Outcome {
        let Inputs::Files(inputs) = inputs else { return Ok(()) };
        let is_same = |input: &&PathBuf| Address::from_path(input).is_ok_and(|input| input == *address);
        inputs.iter().find(is_same).map_or(Ok(()), |input| Err(self.is_input(input)))
    }

    fn is_input(&self, input: &Path) -> Failure {
        Failure::Usage(format!(
            "{}: this is the same file as the input {}, which is never overwritten; write to another file",
            shown(&self.name),
            display_path(input)
        ))
    }

    fn refuse_inputs(&self, inputs: Inputs<'_>) -> Outcome {
        // if the identity cannot be read, opening the file fails later
        let identity = self.identity().unwrap_or(None);
        let inputs = match inputs {
            Inputs::Files(files) => files,
            Inputs::Dataset(dataset) => {
                let path = matches!(self.target, Target::File | Target::Object(_)).then_some(self.name.as_path());
                return Ok(dataset.check_output(identity, path)?);
            }
        };
        let Some(identity) = identity else { return Ok(()) };
        let same = |input: &&PathBuf| FileIdentity::at(input).is_ok_and(|input| input.as_ref() == Some(&identity));
        inputs.iter().find(same).map_or(Ok(()), |input| Err(self.is_input(input)))
    }

    /// Returns the identity of the output if it exists. Returns `None` for an empty file, because
    /// it cannot be an input.
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

    /// Warns about temporary files that killed processes left next to this destination.
    pub(crate) fn warn_of_leftover_files(&self) {
        if self.target != Target::File {
            return;
        }
        // an unreadable folder is reported when the file is created
        for path in AtomicFile::left_behind(&self.name).unwrap_or_default() {
            warning(&format!(
                "{}: a killed process left {}; delete it if no running process is writing it",
                display_path(&self.name),
                display_path(&path)
            ));
        }
    }

    /// Returns whether the output can be restarted, that is, whether nothing is visible until it is
    /// complete.
    pub(crate) fn is_restartable(&self) -> bool {
        matches!(self.target, Target::File | Target::Object(_))
    }

    /// Opens the output.
    pub(crate) fn create(&self) -> Outcome<Output> {
        match &self.target {
            Target::File => {
                let file = AtomicFile::create(&self.name, self.force)?;
                signals::remove_at_exit(file.temporary_path());
                Ok(Output::Whole(Box::new(file), self.name.clone()))
            }
            Target::Object(address) => {
                let storage = ObjectStorage::new(address, ObjectOptions::new());
                let upload = storage.upload(address, self.force).map_err(|error| match error {
                    ObjectError::Io { error, .. } if error.kind() == io::ErrorKind::AlreadyExists => {
                        Failure::exists(&self.name)
                    }
                    error => Failure::output(&self.name, error.into_io()),
                })?;
                Ok(Output::Whole(Box::new(upload), self.name.clone()))
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
    /// Resolves a path. Follows symbolic links one by one, because any of them can name an open
    /// descriptor.
    fn of(path: &Path) -> Outcome<Self> {
        if path == Path::new("-") {
            return Ok(Self::Descriptor(Descriptor::STDOUT));
        }
        if Address::is_url_path(path) {
            return Address::from_path(path).map(Self::Object).map_err(|error| Failure::Usage(error.to_string()));
        }
        const MAX: usize = 40; // the maximum number of links that Linux follows
        let mut at = path.to_path_buf();
        for _ in 0..MAX {
            if let Some(descriptor) = Descriptor::of(&at) {
                return Ok(Self::Descriptor(descriptor));
            }
            let Ok(link) = at.read_link() else { break };
            at = at.parent().unwrap_or(Path::new("")).join(link);
        }
        // `create` reports the problem
        let Ok(metadata) = path.metadata() else { return Ok(Self::File) };
        kind_of(metadata.file_type()).map_err(|what| {
            let message = "but only regular files can be replaced; choose another path";
            Failure::Usage(format!("{}: this is {what}, {message}", display_path(path)))
        })
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

/// Returns the name of an output for messages.
pub(crate) fn shown(path: &Path) -> String {
    if path == Path::new("-") { "standard output".to_owned() } else { display_path(path).to_string() }
}

/// An open, buffered output. A file or an object appears when [`Output::finish`] or
/// [`Sink::publish`] is called.
pub(crate) enum Output {
    /// Standard output.
    Stdout(BufWriter<Stdout>),
    /// A stream, and its name.
    Stream(BufWriter<File>, PathBuf),
    /// A file or an object in a store, and its name.
    Whole(Box<dyn Sink + Send>, PathBuf),
}

impl Output {
    /// Returns standard output, for text.
    pub(crate) fn stdout() -> Self {
        Self::Stdout(BufWriter::new(io::stdout()))
    }

    /// Returns the writer for a summary: standard error if the data goes to standard output,
    /// otherwise standard output.
    pub(crate) fn summary(&self) -> Box<dyn Write> {
        let shares_stdout = match self {
            Self::Stdout(_) => true,
            Self::Stream(file, _) => Descriptor::STDOUT.is(file.get_ref()),
            Self::Whole(..) => false,
        };
        if shares_stdout { Box::new(io::stderr()) } else { Box::new(Self::stdout()) }
    }

    fn writer(&mut self) -> &mut dyn Write {
        match self {
            Self::Stdout(stdout) => stdout,
            Self::Stream(stream, _) => stream,
            Self::Whole(sink, _) => sink,
        }
    }

    /// Writes the buffered bytes, and publishes the file.
    pub(crate) fn finish(mut self) -> Outcome {
        let finished = self.sync().and_then(|()| self.publish());
        finished.map_err(|error| match (self, error.kind()) {
            (Self::Whole(_, path), io::ErrorKind::AlreadyExists) => Failure::exists(&path),
            (Self::Stdout(_), _) | (_, io::ErrorKind::BrokenPipe) => Failure::from(error),
            (Self::Whole(_, path) | Self::Stream(_, path), _) => Failure::output(&path, error),
        })
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.writer().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer().flush()
    }
}

impl Sink for Output {
    fn sync(&mut self) -> io::Result<()> {
        if let Self::Whole(sink, _) = self { sink.sync() } else { self.flush() }
    }

    fn publish(&mut self) -> io::Result<()> {
        if let Self::Whole(sink, _) = self { sink.publish() } else { Ok(()) }
    }

    fn path(&self) -> Option<&Path> {
        match self {
            Self::Stdout(_) => None,
            Self::Stream(_, path) | Self::Whole(_, path) => Some(path),
        }
    }

    fn identity(&self) -> Option<FileIdentity> {
        match self {
            Self::Stdout(_) => FileIdentity::of(&Descriptor::STDOUT.duplicate().ok()?).ok().flatten(),
            Self::Stream(file, _) => FileIdentity::of(file.get_ref()).ok().flatten(),
            Self::Whole(sink, _) => sink.identity(),
        }
    }
}

/// Prints a line to standard output.
pub(crate) fn print_line(line: &str) -> Outcome {
    let mut output = Output::stdout();
    writeln!(output, "{line}")?;
    output.finish()
}

/// Prints a JSON document to standard output.
pub(crate) fn print_json(document: &serde_json::Value) -> Outcome {
    let mut output = Output::stdout();
    write_json(&mut output, document)?;
    output.finish()
}

/// Writes an indented JSON document and a line feed.
pub(crate) fn write_json(output: &mut impl Write, document: &serde_json::Value) -> Outcome {
    serde_json::to_writer_pretty(&mut *output, document).map_err(io::Error::from)?;
    Ok(writeln!(output)?)
}

/// The number of an open file descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Descriptor(i32);

impl Descriptor {
    const STDOUT: Self = Self(1);
    const STDERR: Self = Self(2);

    /// Returns the descriptor that a path names, even if the path does not exist on this system.
    fn of(path: &Path) -> Option<Self> {
        let path = path.to_str().filter(|_| cfg!(unix))?;
        match path {
            "/dev/stdout" => return Some(Self::STDOUT),
            "/dev/stderr" => return Some(Self::STDERR),
            _ => {}
        }
        let own = format!("/proc/{}/fd/", std::process::id());
        let folders = ["/dev/fd/", "/proc/self/fd/", "/proc/thread-self/fd/", &own];
        let number = folders.into_iter().find_map(|folder| path.strip_prefix(folder))?;
        let is_number = number.bytes().all(|byte| byte.is_ascii_digit());
        number.parse().ok().filter(|_| is_number).map(Self)
    }

    fn is_terminal(self) -> bool {
        match self {
            Self::STDOUT => io::stdout().is_terminal(),
            _ => self.duplicate().is_ok_and(|file| file.is_terminal()),
        }
    }

    /// Duplicates the descriptor. The duplicate has the same file position.
    #[cfg(unix)]
    fn duplicate(self) -> io::Result<File> {
        use std::os::fd::AsFd;
        match self {
            Self::STDOUT => Ok(File::from(io::stdout().as_fd().try_clone_to_owned()?)),
            Self::STDERR => Ok(File::from(io::stderr().as_fd().try_clone_to_owned()?)),
            Self(number) => duplicate(number),
        }
    }

    #[cfg(windows)]
    fn duplicate(self) -> io::Result<File> {
        use std::os::windows::io::AsHandle;
        // on Windows, standard output is the only descriptor
        Ok(File::from(io::stdout().as_handle().try_clone_to_owned()?))
    }

    /// Returns whether this descriptor and `file` refer to the same file, pipe or device.
    #[cfg(unix)]
    fn is(self, file: &File) -> bool {
        use std::os::unix::fs::MetadataExt;
        let identity = |file: &File| file.metadata().map(|metadata| (metadata.dev(), metadata.ino()));
        let own = self.duplicate().and_then(|own| identity(&own));
        own.is_ok_and(|own| identity(file).is_ok_and(|other| own == other))
    }

    #[cfg(windows)]
    fn is(self, _: &File) -> bool {
        false
    }
}

/// Duplicates a descriptor by number.
///
/// On Linux, opening `/dev/fd/3` opens the file again. So this function instead fetches the
/// descriptor from its own process, as if from another process. If a container forbids that, pipes
/// and devices are opened by name.
#[cfg(target_os = "linux")]
fn duplicate(number: i32) -> io::Result<File> {
    use rustix::process::{PidfdFlags, PidfdGetfdFlags, getpid, pidfd_getfd, pidfd_open};
    let own = pidfd_open(getpid(), PidfdFlags::empty())?;
    pidfd_getfd(own, number, PidfdGetfdFlags::empty()).map(File::from).or_else(|error| {
        let path = format!("/proc/self/fd/{number}");
        if std::fs::metadata(&path)?.is_file() {
            return Err(error.into());
        }
        File::options().write(true).open(path)
    })
}

/// Duplicates a descriptor by number. On these systems, opening `/dev/fd/3` duplicates it.
#[cfg(all(unix, not(target_os = "linux")))]
fn duplicate(number: i32) -> io::Result<File> {
    File::options().write(true).open(format!("/dev/fd/{number}"))
}
