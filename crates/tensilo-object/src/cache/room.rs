//! The room that a cache takes, and what makes room.

use std::fs::{self, DirEntry};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

/// The share of a cache that a process adds before it looks again at what others have added, and
/// that is removed at once.
const SHARE: u64 = 16;
/// The time for which nothing is written after a failure.
const PAUSE: Duration = Duration::from_secs(60);
/// Files in the making that are older were left behind by a process that was killed.
const LEFT_BEHIND: Duration = Duration::from_secs(3600);

/// The content of a cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CacheFacts {
    /// The objects with pieces here, each version counted.
    pub objects: u64,
    /// The pieces.
    pub pieces: u64,
    /// The bytes of all pieces.
    pub bytes: u64,
    /// The time at which the least recently used piece was used, exact to some minutes.
    pub oldest_use: Option<SystemTime>,
}

/// The knowledge of a process of the room.
#[derive(Debug, Default)]
pub(super) struct Room(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    /// The bytes of all pieces, as of the last look, and what this process added since.
    bytes: Option<u64>,
    added: u64,
    /// Nothing is written before.
    pause: Option<Instant>,
}

/// A piece on the disk.
struct PieceOnDisk {
    used: SystemTime,
    bytes: u64,
    path: PathBuf,
}

impl Room {
    /// Makes room for a piece of so many bytes in a cache that has at most `most`. Returns whether
    /// there is room.
    pub(super) fn make(&self, layout: &Path, most: u64, bytes: u64) -> bool {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.pause.is_some_and(|until| Instant::now() < until) || bytes > most {
            return false;
        }
        let room = known.bytes.map(|bytes| most.saturating_sub(bytes));
        if known.added > most / SHARE || room.is_none_or(|room| room < bytes) {
            let Ok(left) = remove_oldest(layout, most.saturating_sub(bytes), most / SHARE) else {
                return false;
            };
            (known.bytes, known.added) = (Some(left), 0);
        }
        known.added = known.added.saturating_add(bytes);
        known.bytes = known.bytes.map(|known| known.saturating_add(bytes));
        true
    }

    /// Notes that a piece could not be written. A full disk gets back some of the pieces.
    pub(super) fn has_failed(&self, layout: &Path, error: &io::Error) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.pause = Some(Instant::now() + PAUSE);
        known.bytes = None;
        if matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded) {
            let bytes = facts(layout).map_or(0, |facts| facts.bytes);
            let _ = remove_oldest(layout, bytes - bytes / SHARE, 0); // the pause goes on anyway
        }
    }
}

/// Removes pieces until at most `most` bytes are left, and `more` bytes beyond that if any is
/// removed. Returns the bytes that are left.
fn remove_oldest(layout: &Path, most: u64, more: u64) -> io::Result<u64> {
    let mut pieces = Vec::new();
    for_each_piece(layout, |piece| pieces.push(piece))?;
    let mut bytes: u64 = pieces.iter().map(|piece| piece.bytes).sum();
    if bytes <= most {
        return Ok(bytes);
    }
    pieces.sort_unstable_by_key(|piece| piece.used);
    for piece in pieces {
        if bytes <= most.saturating_sub(more) {
            break;
        }
        if fs::remove_file(&piece.path).is_ok() {
            bytes = bytes.saturating_sub(piece.bytes);
        }
    }
    remove_empty(layout);
    Ok(bytes)
}

/// Returns what there is.
pub(super) fn facts(layout: &Path) -> io::Result<CacheFacts> {
    let mut facts = CacheFacts::default();
    facts.objects = for_each_piece(layout, |piece| {
        facts.pieces += 1;
        facts.bytes += piece.bytes;
        facts.oldest_use = Some(facts.oldest_use.map_or(piece.used, |used| used.min(piece.used)));
    })?;
    Ok(facts)
}

/// Removes all pieces. Returns what there was.
pub(super) fn clear(layout: &Path) -> io::Result<CacheFacts> {
    let found = facts(layout)?;
    match fs::remove_dir_all(layout) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(found),
    }
}

/// Calls a function with each piece, and removes what was left behind. Returns the number of
/// objects that have pieces.
fn for_each_piece(layout: &Path, mut act: impl FnMut(PieceOnDisk)) -> io::Result<u64> {
    let mut objects = 0;
    for group in entries(layout)? {
        for object in entries(&group.path())? {
            let mut has_pieces = false;
            for file in entries(&object.path())? {
                // others remove pieces at the same time
                let Ok(facts) = file.metadata() else { continue };
                let used = facts.modified().unwrap_or(SystemTime::UNIX_EPOCH);
                let name = file.file_name();
                if name.to_str().is_some_and(|name| name.bytes().all(|byte| byte.is_ascii_digit())) {
                    has_pieces = true;
                    act(PieceOnDisk { used, bytes: facts.len(), path: file.path() });
                } else if used.elapsed().is_ok_and(|age| age > LEFT_BEHIND) {
                    let _ = fs::remove_file(file.path());
                }
            }
            objects += u64::from(has_pieces);
        }
    }
    Ok(objects)
}

/// Removes the folders of objects that have no piece left.
fn remove_empty(layout: &Path) {
    for group in entries(layout).into_iter().flatten() {
        for object in entries(&group.path()).into_iter().flatten() {
            let _ = fs::remove_dir(object.path()); // fails for all others
        }
    }
}

/// Returns the entries of a folder; none if it does not exist, or is no folder.
fn entries(folder: &Path) -> io::Result<Vec<DirEntry>> {
    match fs::read_dir(folder) {
        Ok(entries) => Ok(entries.flatten().collect()),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}
