//! A file that is read repeatedly through one handle and watched for changes.
//!
//! A conversion makes several passes, which must see the same bytes. All passes use one handle, so
//! replacing the file at its path has no effect. A [stamp](Stamp) of size and modification time
//! reveals in-place changes. A stream is first copied to an unnamed temporary file. An input can
//! also be in a [store](InputStore), which detects replaced inputs itself.
//!
//! The number of open files is limited, so a file can be [released](InputFile::release) between
//! passes. It is then reopened by name, and refused if it is a different file or has changed.

use crate::bytes::le::u64_of;
use crate::open::foreign::FIRST_BYTES;
use crate::open::{FileIdentity, PositionedFile, Source};
use crate::{Error, ErrorKind, Result};
use std::fs::{File, Metadata};
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use std::{fmt, fs, io, thread};

/// A file that is open for any number of passes.
///
/// All passes use one handle, so replacing the file at its path has no effect.
/// [`InputFile::check_unchanged`] reports in-place changes.
pub(in crate::import) struct InputFile {
    /// The name that the caller gave.
    name: PathBuf,
    /// The stamp at the time of opening. `None` for a private copy, which no other process can
    /// change, and for an input in a store, which detects changes itself.
    stamp: Option<Stamp>,
    /// The file that the bytes come from, or `None` if they come from a stream.
    identity: Option<FileIdentity>,
    handle: Mutex<Handle>,
    /// Other files that belong to this one.
    companions: Mutex<Vec<Arc<InputFile>>>,
    read_error: ReadError,
}

/// The error of the last failed read. Some decoders pass on only its message, as if the file were
/// malformed.
type ReadError = Arc<Mutex<Option<io::Error>>>;

enum Handle {
    Open(Arc<PositionedFile>),
    /// The file is reopened when it is needed. The reference can be upgraded as long as a pass
    /// still uses the file.
    Released(Weak<PositionedFile>),
    /// The input is in a store.
    Stored(Arc<dyn Source>),
}

impl InputFile {
    /// Opens an input in the store, or a file. The content of a file that is not regular, such as a
    /// pipe, is copied to an unnamed temporary file.
    pub(in crate::import) fn open(name: &Path, store: &OptionalStore) -> Result<Self> {
        if let Some(store) = store.of(name) {
            return Self::stored(name, store);
        }
        let file = File::open(name).map_err(|error| Error::io("opening the input", error).with_path(name))?;
        let is_file = file.metadata().map(|metadata| metadata.is_file());
        match is_file.map_err(|error| Error::io("inspecting the input", error).with_path(name))? {
            true => Self::in_place(name, file),
            false => Self::copied(name, file),
        }
    }

    /// Copies a stream, which can be read only once, to a temporary file.
    pub(in crate::import) fn copied(name: &Path, mut stream: impl Read) -> Result<Self> {
        let mut copy = || -> io::Result<PositionedFile> {
            let mut copy = tempfile::tempfile()?;
            io::copy(&mut stream, &mut copy)?;
            PositionedFile::of(copy)
        };
        let copy = copy().map_err(|error| {
            let operation = format!("copying the stream to a temporary file in {}", std::env::temp_dir().display());
            Error::io(&operation, error).with_path(name)
        })?;
        Ok(Self::of(name, None, None, Handle::Open(Arc::new(copy))))
    }

    fn of(name: &Path, stamp: Option<Stamp>, identity: Option<FileIdentity>, handle: Handle) -> Self {
        let (name, handle) = (name.to_path_buf(), Mutex::new(handle));
        Self { name, stamp, identity, handle, companions: Mutex::default(), read_error: ReadError::default() }
    }

    fn stored(name: &Path, store: &Arc<dyn InputStore>) -> Result<Self> {
        let source = store.open(name).map_err(|error| error.with_path(name))?;
        Ok(Self::of(name, None, None, Handle::Stored(source)))
    }

    fn in_place(name: &Path, file: File) -> Result<Self> {
        let failed = |error| Error::io("inspecting the input", error).with_path(name);
        let Some(stamp) = Stamp::wait_until_stable(&file).map_err(failed)? else {
            let message = "the file is still being written; convert it when it is complete";
            return Err(Error::bad_input(message).with_path(name));
        };
        let identity = FileIdentity::of(&file).map_err(failed)?;
        let file = PositionedFile::of(file).map_err(failed)?;
        Ok(Self::of(name, Some(stamp), identity, Handle::Open(Arc::new(file))))
    }

    /// Marks the bytes as a copy of the file with this identity.
    pub(in crate::import) fn copy_of(self, identity: Option<FileIdentity>) -> Self {
        Self { identity, ..self }
    }

    pub(in crate::import) fn identity(&self) -> Option<&FileIdentity> {
        self.identity.as_ref()
    }

    /// Returns the name by which errors refer to the file.
    pub(in crate::import) fn name(&self) -> &Path {
        &self.name
    }

    pub(in crate::import) fn io(&self, operation: &str, error: io::Error) -> Error {
        Error::io(operation, error).with_path(&self.name)
    }

    /// Returns a reader that starts at the beginning of the file.
    pub(in crate::import) fn reader(&self) -> Result<InputReader> {
        Ok(InputReader { file: self.hold()?, position: 0, read_error: Arc::clone(&self.read_error) })
    }

    /// Returns the original error of a failed read, if a decoder turned it into `error`.
    pub(in crate::import) fn or_read_error(&self, error: Error) -> Error {
        let mut failed = self.read_error.lock().unwrap_or_else(PoisonError::into_inner);
        let failed = failed.take().filter(|_| error.kind() == ErrorKind::BadInput);
        failed.map_or(error, |failed| self.io("reading the file", failed))
    }

    /// Returns the first bytes, which identify the format.
    pub(in crate::import) fn first_bytes(&self) -> Result<Vec<u8>> {
        let mut first = Vec::new();
        let read = self.reader()?.take(u64_of(FIRST_BYTES)).read_to_end(&mut first);
        read.map_err(|error| self.io("reading the file", error))?;
        Ok(first)
    }

    fn handle(&self) -> MutexGuard<'_, Handle> {
        // no code panics while it holds the lock
        self.handle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a companion file. Like this file, it is watched for changes and closed between passes.
    #[cfg(feature = "arrow")]
    pub(in crate::import) fn add_companion(&self, file: Arc<InputFile>) {
        self.locked_companions().push(file);
    }

    pub(in crate::import) fn companions(&self) -> Vec<Arc<InputFile>> {
        self.locked_companions().clone()
    }

    fn locked_companions(&self) -> MutexGuard<'_, Vec<Arc<InputFile>>> {
        // no code panics while it holds the lock
        self.companions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Closes the file and its companions between passes. Private copies stay open, because they
    /// have no name.
    pub(in crate::import) fn release(&self) {
        self.companions().iter().for_each(|companion| companion.release());
        if self.stamp.is_some() {
            let mut handle = self.handle();
            if let Handle::Open(file) = &*handle {
                *handle = Handle::Released(Arc::downgrade(file));
            }
        }
    }

    /// Returns the open file. It stays open as long as the returned value lives.
    pub(in crate::import) fn hold(&self) -> Result<Arc<dyn Source>> {
        let mut handle = self.handle();
        let released = match &*handle {
            Handle::Open(file) => return Ok(Arc::<PositionedFile>::clone(file)),
            Handle::Stored(source) => return Ok(Arc::clone(source)),
            Handle::Released(file) => file.upgrade(),
        };
        if let Some(file) = released {
            return Ok(file);
        }
        let file = Arc::new(self.reopen()?);
        *handle = Handle::Released(Arc::downgrade(&file));
        Ok(file)
    }

    fn reopen(&self) -> Result<PositionedFile> {
        let file = File::open(&self.name).map_err(|error| self.io("reopening the input", error))?;
        let now = file.metadata().map_err(|error| self.io("inspecting the input", error))?;
        if let Some(stamp) = &self.stamp {
            let now = Stamp::of(&now);
            if !stamp.is_same_file(&now) {
                return Err(self.changed("another file replaced it while it was closed between two passes"));
            }
            if let Some(changes) = stamp.changes(&now) {
                return Err(self.changed(&changes));
            }
        }
        PositionedFile::of(file).map_err(|error| self.io("inspecting the input", error))
    }

    /// Refuses the file if it or a companion changed since it was opened.
    pub(in crate::import) fn check_unchanged(&self) -> Result<()> {
        self.companions().iter().try_for_each(|companion| companion.check_unchanged())?;
        let (Some(stamp), Some(now)) = (&self.stamp, self.current_stamp()?) else { return Ok(()) };
        match stamp.changes(&now) {
            // if the file is released, another file can have replaced it at its path; that file was
            // never read, so its stamp does not matter
            Some(changes) if stamp.is_same_file(&now) => Err(self.changed(&changes)),
            _ => Ok(()),
        }
    }

    /// Returns the current stamp of the open file or, if the file is released, of the file at its
    /// path. Returns `None` if no file is at the path, or if the input is in a store.
    fn current_stamp(&self) -> Result<Option<Stamp>> {
        let open = match &*self.handle() {
            Handle::Open(file) => Some(Arc::clone(file)),
            Handle::Released(file) => file.upgrade(),
            Handle::Stored(_) => return Ok(None),
        };
        let metadata = match open {
            Some(file) => file.file().metadata(),
            None => fs::metadata(&self.name),
        };
        match metadata {
            Ok(metadata) => Ok(Some(Stamp::of(&metadata))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(self.io("inspecting the input", error)),
        }
    }

    fn changed(&self, how: &str) -> Error {
        let message = format!(
            "the file changed while it was read ({how}); convert it again when no program changes or replaces it"
        );
        Error::bad_input(message).with_path(&self.name)
    }
}

/// A reader of an input, for sequential reads and reads at an offset. Each clone has its own
/// position. The length is determined when the input is opened.
#[derive(Clone)]
pub struct InputReader {
    file: Arc<dyn Source>,
    position: u64,
    read_error: ReadError,
}

impl InputReader {
    /// Returns the length of the file.
    pub fn byte_count(&self) -> u64 {
        self.file.byte_count()
    }
}

#[cfg(feature = "arrow")]
impl InputReader {
    /// Returns a reader of the same file in which the bytes at `offset` are replaced with `bytes`.
    pub(in crate::import) fn patched(&self, offset: u64, bytes: &Arc<[u8]>) -> Self {
        let file = Patched { file: Arc::clone(&self.file), offset, bytes: Arc::clone(bytes) };
        Self { file: Arc::new(file), position: 0, read_error: Arc::clone(&self.read_error) }
    }
}

/// A file in which some bytes are replaced.
#[cfg(feature = "arrow")]
struct Patched {
    file: Arc<dyn Source>,
    offset: u64,
    bytes: Arc<[u8]>,
}

#[cfg(feature = "arrow")]
impl Source for Patched {
    fn byte_count(&self) -> u64 {
        self.file.byte_count()
    }

    fn read_exact_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(offset, out)?;
        let ahead = |from: u64, to: u64| usize::try_from(to.saturating_sub(from)).unwrap_or(usize::MAX);
        let out = out.get_mut(ahead(offset, self.offset)..).unwrap_or(&mut []);
        let bytes = self.bytes.get(ahead(self.offset, offset)..).unwrap_or(&[]);
        out.iter_mut().zip(bytes).for_each(|(out, byte)| *out = *byte);
        Ok(())
    }
}

impl Read for InputReader {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let rest = self.byte_count().saturating_sub(self.position);
        let count = usize::try_from(rest).unwrap_or(usize::MAX).min(out.len());
        let out = out.get_mut(..count).unwrap_or(&mut []); // in bounds
        if out.is_empty() {
            return Ok(0); // the position can be beyond the end, where sources cannot read
        }
        self.read_exact_at(self.position, out)?;
        self.position = self.position.saturating_add(u64_of(count));
        Ok(count)
    }
}

impl Seek for InputReader {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let position = match to {
            SeekFrom::Start(position) => Some(position),
            SeekFrom::End(by) => self.byte_count().checked_add_signed(by),
            SeekFrom::Current(by) => self.position.checked_add_signed(by),
        };
        self.position = position.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.position)
    }
}

impl Source for InputReader {
    fn byte_count(&self) -> u64 {
        self.file.byte_count()
    }

    fn read_exact_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(offset, out).map_err(|error| {
            let passed_on = io::Error::new(error.kind(), error.to_string());
            *self.read_error.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
            passed_on
        })
    }
}

#[cfg(feature = "parquet")]
mod parquet {
    //! The traits through which the Parquet decoder reads an input.

    use super::{InputReader, Source};
    use crate::bytes::le::u64_of;
    use ::parquet::errors::{ParquetError, Result};
    use ::parquet::file::reader::{ChunkReader, Length};
    use bytes::Bytes;
    use std::io::BufReader;
    use std::ops::Range;

    /// How many bytes are read at once for a page header, whose length is unknown. The content of a
    /// page is read separately, because the header states its length.
    const HEADER_READ_BYTES: usize = 8 << 10;

    impl InputReader {
        /// Prefetches pages if the source benefits from coalesced requests.
        pub(in crate::import) fn prefetch(&self, pages: impl Iterator<Item = Range<u64>>) {
            if self.file.coalesce().gap_bytes > 0 {
                // include the bytes that are read beyond the last header
                let end =
                    |range: &Range<u64>| range.end.saturating_add(u64_of(HEADER_READ_BYTES)).min(self.byte_count());
                let ranges: Vec<Range<u64>> = pages.map(|range| range.start..end(&range)).collect();
                self.file.prefetch(&ranges);
            }
        }
    }

    impl Length for InputReader {
        fn len(&self) -> u64 {
            self.byte_count()
        }
    }

    impl ChunkReader for InputReader {
        type T = BufReader<Self>;

        fn get_read(&self, start: u64) -> Result<Self::T> {
            Ok(BufReader::with_capacity(HEADER_READ_BYTES, Self { position: start, ..self.clone() }))
        }

        fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
            // memory is allocated only for bytes in the file
            let end = start.checked_add(u64_of(length));
            if end.is_none_or(|end| end > self.byte_count()) {
                let message = format!("{length} bytes at offset {start} extend beyond the end of the file");
                return Err(ParquetError::EOF(message));
            }
            let mut bytes = vec![0; length];
            self.read_exact_at(start, &mut bytes)?;
            Ok(bytes.into())
        }
    }
}

/// Size and modification time of a file, and its identity if the system provides one.
#[derive(Clone, Debug)]
struct Stamp {
    bytes: u64,
    modified: Option<SystemTime>,
    /// Device and inode.
    identity: Option<(u64, u64)>,
}

impl Stamp {
    fn of(metadata: &Metadata) -> Self {
        Self { bytes: metadata.len(), modified: metadata.modified().ok(), identity: identity(metadata) }
    }

    /// Returns the stamp of a file that will be read. Any later change of the file alters the
    /// stamp.
    ///
    /// Modification times come from a clock with discrete ticks. Two changes in one tick leave the
    /// same modification time, so this function waits until the tick of the last change is over.
    /// Returns `None` if the file keeps changing.
    fn wait_until_stable(file: &File) -> io::Result<Option<Self>> {
        const TRIES: usize = 8;
        for _ in 0..TRIES {
            let stamp = Self::of(&file.metadata()?);
            match stamp.remaining_tick(SystemTime::now()) {
                None => return Ok(Some(stamp)),
                Some(rest) => thread::sleep(rest),
            }
        }
        Ok(None)
    }

    /// Returns the remaining time of the tick of the last change, or `None` if the tick is over.
    fn remaining_tick(&self, now: SystemTime) -> Option<Duration> {
        const TICK: Duration = Duration::from_millis(20);
        const COARSE_TICK: Duration = Duration::from_secs(2);
        let modified = self.modified?;
        let since_epoch = modified.duration_since(UNIX_EPOCH).ok()?;
        // FAT and HFS+ store no fractions of a second
        let tick = if since_epoch.subsec_nanos() == 0 { COARSE_TICK } else { TICK };
        let age = now.duration_since(modified).ok()?;
        tick.checked_sub(age).filter(|rest| !rest.is_zero())
    }

    /// Returns whether two stamps belong to the same file. If the system provides no identities,
    /// returns `true`.
    fn is_same_file(&self, other: &Self) -> bool {
        self.identity == other.identity
    }

    /// Returns a description of the changes since this stamp, or `None` if there are none.
    fn changes(&self, now: &Self) -> Option<String> {
        let size =
            (self.bytes != now.bytes).then(|| format!("its size changed from {} to {} bytes", self.bytes, now.bytes));
        let time = (self.modified != now.modified).then(|| "its modification time changed".to_owned());
        let changes: Vec<String> = size.into_iter().chain(time).collect();
        (!changes.is_empty()).then(|| changes.join(", "))
    }
}

#[cfg(unix)]
#[expect(clippy::unnecessary_wraps, reason = "other systems provide no identity")]
fn identity(metadata: &Metadata) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    Some((metadata.dev(), metadata.ino()))
}

#[cfg(not(unix))]
fn identity(_metadata: &Metadata) -> Option<(u64, u64)> {
    None
}

/// A source of inputs other than the file system, such as an object store; see
/// [`ConvertOptions::store`](crate::import::ConvertOptions::store).
///
/// The paths of its inputs are addresses, whose components are separated by `/`. Patterns, prefixes
/// and names `key=value` have the same meaning as in file paths.
///
/// Errors need not name the path, because the conversion adds it.
pub trait InputStore: Send + Sync {
    /// Returns whether an input belongs to the store.
    fn contains(&self, input: &Path) -> bool;

    /// Returns the addresses of all inputs below a prefix, in any order. The result may be empty.
    fn list_prefix(&self, prefix: &Path) -> Result<Vec<PathBuf>>;

    /// Opens an input. The returned source never returns changed bytes: if the input is replaced,
    /// reads fail.
    fn open(&self, input: &Path) -> Result<Arc<dyn Source>>;
}

/// The store of a conversion, if it has one.
#[derive(Clone, Default)]
pub(in crate::import) struct OptionalStore(pub Option<Arc<dyn InputStore>>);

impl OptionalStore {
    /// Returns the store if an input belongs to it.
    pub(in crate::import) fn of(&self, input: &Path) -> Option<&Arc<dyn InputStore>> {
        self.0.as_ref().filter(|store| store.contains(input))
    }
}

impl fmt::Debug for OptionalStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Some(InputStore)" } else { "None" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_read_behind_the_end() {
        let mut reader = InputFile::copied(Path::new("x"), &b"abc"[..]).unwrap().reader().unwrap();
        reader.seek(SeekFrom::End(5)).unwrap();
        assert_eq!(reader.read(&mut [0; 4]).unwrap(), 0);
        reader.seek(SeekFrom::End(-1)).unwrap();
        assert_eq!(reader.read(&mut [0; 4]).unwrap(), 1);
    }

    #[test]
    fn a_tick_is_waited_for_and_no_longer() {
        let rest = |modified: Duration, later_ms: u64| {
            let modified = UNIX_EPOCH + modified;
            let stamp = Stamp { bytes: 0, modified: Some(modified), identity: None };
            stamp.remaining_tick(modified + Duration::from_millis(later_ms))
        };
        let (fine, coarse) = (Duration::new(1_700_000_000, 1), Duration::new(1_700_000_000, 0));
        assert_eq!(
            [0, 5, 19, 20, 60].map(|later| rest(fine, later).map(|rest| rest.as_millis())),
            [Some(20), Some(15), Some(1), None, None]
        );
        assert_eq!((rest(coarse, 500), rest(coarse, 2000)), (Some(Duration::from_millis(1500)), None));
        // a modification time in the future says nothing about the tick
        let ahead = Stamp { bytes: 0, modified: Some(UNIX_EPOCH + fine), identity: None };
        assert_eq!(ahead.remaining_tick(UNIX_EPOCH), None);
    }

    #[test]
    fn size_and_time_reveal_a_change() {
        let stamp =
            |bytes, seconds| Stamp { bytes, modified: Some(UNIX_EPOCH + Duration::from_secs(seconds)), identity: None };
        assert_eq!(stamp(1, 1).changes(&stamp(1, 1)), None);
        assert!(stamp(1, 2).changes(&stamp(1, 1)).unwrap().contains("time"));
        let both = stamp(1, 1).changes(&stamp(2, 2)).unwrap();
        assert!(both.contains("from 1 to 2 bytes") && both.contains("time"), "{both}");
    }
}
