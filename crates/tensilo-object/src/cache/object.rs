//! The pieces of one version of an object, and reading through them.
//!
//! A read takes what the cache has. Otherwise it waits for its turn to fetch the pieces that are
//! missing: of all threads and processes, one fetches a piece and the others wait. Turns are taken
//! in ascending order, so that no two wait for each other. If the folder cannot be written, or a
//! piece turns out to be wrong, the bytes are requested as if there were no cache.

use super::handle::Cache;
use super::piece_file::{LINE_BYTES, OpenPiece, PIECE_BYTES, SUMS_BYTES};
use crate::request::{self, Pinned};
use crate::runtime::{blocking, threads};
use bytes::Bytes;
use object_store::ObjectStore;
use object_store::path::Path as Key;
use sha2::{Digest, Sha256};
use std::fmt::Write as _;
use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// The pieces of one version of an object.
#[derive(Clone, Debug)]
pub(crate) struct CachedObject {
    cache: Cache,
    folder: PathBuf,
    /// The first bytes of all checksums, so that no piece passes for another.
    digest: [u8; 32],
    byte_count: u64,
}

impl CachedObject {
    /// Returns the pieces of an object in the store `root`; `None` if nothing tells its versions
    /// apart.
    pub(crate) fn new(cache: &Cache, root: &str, key: &Key, pinned: &Pinned) -> Option<Self> {
        let version = pinned.version()?;
        let mut hasher = Sha256::new();
        for text in [root, key.as_ref(), &version] {
            hasher.update((text.len() as u64).to_le_bytes()); // exact: usize has at most 64 bits
            hasher.update(text);
        }
        let digest: [u8; 32] = hasher.finalize().into();
        let mut name = String::new();
        // never fails
        digest.iter().for_each(|byte| write!(name, "{byte:02x}").unwrap_or_default());
        let folder = cache.layout().join(name.get(..2).unwrap_or_default()).join(&name);
        Some(Self { cache: cache.clone(), folder, digest, byte_count: pinned.byte_count })
    }

    /// Returns the numbers of the pieces that a range is in.
    fn numbers(&self, range: &Range<u64>) -> Range<u64> {
        range.start / PIECE_BYTES..range.end.div_ceil(PIECE_BYTES)
    }

    /// Returns the bytes of the object that some pieces have.
    fn bytes_of(&self, numbers: &Range<u64>) -> Range<u64> {
        let at = |number: u64| number.saturating_mul(PIECE_BYTES).min(self.byte_count);
        at(numbers.start)..at(numbers.end)
    }

    fn path(&self, number: u64) -> PathBuf {
        self.folder.join(number.to_string())
    }

    /// Returns a range of the object, if all of it is here and right.
    pub(crate) fn read(&self, range: &Range<u64>) -> Option<Bytes> {
        let length = usize::try_from(range.end.checked_sub(range.start)?).ok()?;
        let mut all = Vec::new();
        for number in self.numbers(range) {
            let piece = self.bytes_of(&(number..number + 1));
            let found = self.read_piece(number, &piece, &(range.start.max(piece.start)..range.end.min(piece.end)))?;
            if found.len() == length {
                return Some(found);
            }
            all.try_reserve_exact(length - all.len()).ok()?;
            all.extend_from_slice(&found);
        }
        Some(all.into())
    }

    /// Returns a part of a piece.
    fn read_piece(&self, number: u64, piece: &Range<u64>, part: &Range<u64>) -> Option<Bytes> {
        let opened = self
            .cache
            .state()
            .opened
            .get((self.digest, number), || OpenPiece::open(&self.path(number), piece.end - piece.start))?;
        let first = (part.start - piece.start) / LINE_BYTES;
        let start = piece.start + first * LINE_BYTES;
        let end = part.end.next_multiple_of(LINE_BYTES).min(piece.end);
        let mut lines = vec![0; usize::try_from(end - start).ok()?];
        let line_bytes = usize::try_from(LINE_BYTES).ok()?;
        let sums = opened.sums.as_chunks::<4>().0.iter().skip(usize::try_from(first).ok()?);
        let is_right = opened.read(start - piece.start, &mut lines).is_ok()
            && lines
                .chunks(line_bytes)
                .zip((start..).step_by(line_bytes))
                .zip(sums)
                .all(|((line, offset), sum)| self.sum(offset, line) == u32::from_le_bytes(*sum));
        if !is_right {
            self.cache.state().opened.close(&(self.digest, number));
            let _ = fs::remove_file(self.path(number)); // it is fetched again
            return None;
        }
        let at = |offset: u64| usize::try_from(offset - start).unwrap_or(usize::MAX).min(lines.len());
        let (from, to) = (at(part.start), at(part.end));
        Some(Bytes::from(lines).slice(from..to))
    }

    /// Returns the checksum of a line.
    fn sum(&self, offset: u64, line: &[u8]) -> u32 {
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(&self.digest);
        hasher.update(&offset.to_le_bytes());
        hasher.update(line);
        hasher.finalize()
    }

    /// Returns whether a piece is here, unless it turns out to be wrong.
    fn has(&self, number: u64) -> bool {
        let piece = self.bytes_of(&(number..number + 1));
        fs::metadata(self.path(number)).is_ok_and(|facts| facts.len() == SUMS_BYTES + (piece.end - piece.start))
    }

    /// Returns whether all pieces that a range is in are here, as far as one can tell at a glance.
    pub(crate) fn has_all(&self, range: &Range<u64>) -> bool {
        self.numbers(range).all(|number| self.has(number))
    }

    /// Waits for the turns to fetch pieces, in ascending order: so nobody waits for someone who
    /// waits for him.
    fn turns(&self, numbers: Range<u64>) -> io::Result<Vec<Turn>> {
        fs::create_dir_all(&self.folder)?;
        numbers.filter_map(|number| Turn::wait(&self.path(number)).transpose()).collect()
    }

    /// Writes pieces whose bytes are there, the first of them `first`. Nothing is written while the
    /// disk has no room.
    fn write(&self, first: u64, bytes: &[u8]) {
        let piece_bytes = usize::try_from(PIECE_BYTES).unwrap_or(usize::MAX);
        for (piece, number) in bytes.chunks(piece_bytes).zip(first..) {
            let length = SUMS_BYTES + piece.len() as u64; // exact: usize has at most 64 bits
            if !self.cache.make_room(length) {
                return;
            }
            if let Err(error) = self.write_piece(number, piece) {
                self.cache.has_failed(&error);
                return;
            }
        }
    }

    /// Writes a piece, which appears when it is complete.
    fn write_piece(&self, number: u64, bytes: &[u8]) -> io::Result<()> {
        let line_bytes = usize::try_from(LINE_BYTES).unwrap_or(usize::MAX);
        let offsets = (number * PIECE_BYTES..).step_by(line_bytes);
        let mut sums: Vec<u8> =
            bytes.chunks(line_bytes).zip(offsets).flat_map(|(line, at)| self.sum(at, line).to_le_bytes()).collect();
        sums.resize(SUMS_BYTES as usize, 0); // a small constant
        fs::create_dir_all(&self.folder)?;
        let mut file = tempfile::Builder::new().prefix("new-").tempfile_in(&self.folder)?;
        file.write_all(&sums)?;
        file.write_all(bytes)?;
        file.persist(self.path(number)).map(drop).map_err(|error| error.error)
    }

    /// Forgets all pieces of the object.
    pub(crate) fn forget(&self) {
        self.cache.state().opened.close_object(&self.digest);
        let _ = fs::remove_dir_all(&self.folder); // what is left is checked again when it is read
    }
}

/// Reads a range of an object: from the cache, if there is one that has it. Otherwise fetches all
/// pieces that it is in, and keeps them.
pub(crate) async fn read(
    store: Arc<dyn ObjectStore>,
    key: Key,
    pinned: Pinned,
    cached: Option<CachedObject>,
    range: Range<u64>,
) -> io::Result<Bytes> {
    let Some(cached) = cached else { return request::read(store, key, pinned, range).await };
    let (object, wanted) = (cached.clone(), range.clone());
    if let Some(found) = blocking(move || object.read(&wanted)).await? {
        return Ok(found);
    }
    // those who wait for turns occupy threads
    let _permit = threads()?.fills.acquire().await;
    let numbers = cached.numbers(&range);
    let (object, wanted) = (cached.clone(), numbers.clone());
    let Ok(turns) = blocking(move || object.turns(wanted)).await? else {
        return request::read(store, key, pinned, range).await; // the folder cannot be written
    };
    let mut parts = Vec::new();
    for run in missing(&cached, numbers.clone()) {
        let bytes = request::read(store.clone(), key.clone(), pinned.clone(), cached.bytes_of(&run)).await?;
        parts.push((cached.bytes_of(&run), bytes.clone()));
        let object = cached.clone();
        blocking(move || object.write(run.start, &bytes)).await?;
    }
    drop(turns);
    if let Some(found) = parts.iter().find_map(|(bytes, part)| slice(bytes, part, &range)) {
        return Ok(found);
    }
    let (object, wanted) = (cached.clone(), range.clone());
    match blocking(move || assemble(&object, &parts, &wanted)).await? {
        Some(found) => Ok(found),
        // a piece that was here was wrong, or has made room for others
        None => request::read(store, key, pinned, range).await,
    }
}

/// Returns the runs of pieces that are not here.
fn missing(cached: &CachedObject, numbers: Range<u64>) -> Vec<Range<u64>> {
    let mut runs: Vec<Range<u64>> = Vec::new();
    for number in numbers.filter(|&number| !cached.has(number)) {
        match runs.last_mut() {
            Some(last) if last.end == number => last.end += 1,
            _ => runs.push(number..number + 1),
        }
    }
    runs
}

/// Returns a range of the object out of bytes that contain it.
fn slice(bytes: &Range<u64>, part: &Bytes, range: &Range<u64>) -> Option<Bytes> {
    if range.start < bytes.start || range.end > bytes.end {
        return None;
    }
    let at = |offset: u64| usize::try_from(offset - bytes.start).ok();
    Some(part.slice(at(range.start)?..at(range.end)?))
}

/// Returns a range of the object out of what was fetched, and what was here before.
fn assemble(cached: &CachedObject, parts: &[(Range<u64>, Bytes)], range: &Range<u64>) -> Option<Bytes> {
    let mut all = Vec::new();
    all.try_reserve_exact(usize::try_from(range.end - range.start).ok()?).ok()?;
    for number in cached.numbers(range) {
        let piece = cached.bytes_of(&(number..number + 1));
        let part = piece.start.max(range.start)..piece.end.min(range.end);
        let fetched = parts.iter().find_map(|(bytes, found)| slice(bytes, found, &part));
        all.extend_from_slice(&fetched.or_else(|| cached.read(&part))?);
    }
    Some(all.into())
}

/// The suffix of the files that are locked.
const SUFFIX: &str = "turn";
/// The time after which one does not wait any longer, and fetches the piece too: a process that was
/// forked meanwhile may hold the lock of one that was killed.
const PATIENCE: Duration = Duration::from_secs(60);
/// The time between two looks at a turn that another one has: at first, and at most.
const FIRST_LOOK: Duration = Duration::from_millis(1);
const LAST_LOOK: Duration = Duration::from_millis(20);

/// The turn to fetch a piece. It ends when it is dropped, and when its process ends, however that
/// does.
#[derive(Debug)]
struct Turn {
    path: PathBuf,
    locked: File,
}

impl Turn {
    /// Waits for the turn to fetch the piece with this path. Returns `None` if that takes too long.
    fn wait(piece: &Path) -> io::Result<Option<Self>> {
        let path = piece.with_extension(SUFFIX);
        let file = File::options().create(true).truncate(false).write(true).open(&path)?;
        let (begun, mut look) = (Instant::now(), FIRST_LOOK);
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Some(Self { path, locked: file })),
                Err(TryLockError::WouldBlock) if begun.elapsed() > PATIENCE => return Ok(None),
                Err(TryLockError::WouldBlock) => thread::sleep(look),
                Err(TryLockError::Error(error)) => return Err(error),
            }
            look = (look * 2).min(LAST_LOOK);
        }
    }
}

impl Drop for Turn {
    /// Removes the file, and unlocks it. Whoever waits for it has the turn next, and one who comes
    /// now makes a new one: both look for the piece first.
    ///
    /// Closing it would not do: a child that was forked since has the lock, too.
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path); // what is left is removed later, when there is no room
        let _ = self.locked.unlock(); // others lose patience
    }
}
