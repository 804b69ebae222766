//! An object as a source of bytes.

use crate::address::Address;
use crate::cache::{self, CachedObject};
use crate::error::{ObjectError, io_error};
use crate::lines::{LINE_BYTES, widened};
use crate::pieces::{Part, split};
use crate::request::{Pinned, answer};
use crate::requests::{Asked, Requests, joined};
use crate::runtime::{caught_later, threads, wait};
use crate::sequence::Sequence;
use crate::storage::{ObjectStorage, failed};
use bytes::Bytes;
use futures_util::future;
use object_store::path::Path;
use object_store::{GetOptions, GetRange, ObjectStore};
use std::collections::VecDeque;
use std::io;
use std::ops::{ControlFlow, Range};
use std::slice;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tensilo::source::Source;
use tensilo::stages::{Fragment, RangeError};
use tokio::time::sleep;

/// An object that is open for reading.
///
/// All ranges of a read are asked for at the same time, in parts. Small structures are read in
/// lines of 64 KiB, which are kept; what [`Source::will_need`] announces is read ahead, and kept.
/// If the object is replaced, reads fail with [`io::ErrorKind::StaleNetworkFileHandle`]: bytes of
/// two versions are never mixed.
#[derive(Debug)]
pub struct ObjectFile(Arc<OpenObject>);

/// An open object. Requests that are on their way share it.
#[derive(Debug)]
struct OpenObject {
    storage: ObjectStorage,
    key: Path,
    pinned: Pinned,
    /// The number that its pieces have.
    number: u64,
    /// Its pieces on a disk of this machine.
    cached: Option<CachedObject>,
    sequence: Sequence,
    /// Whether runs were announced.
    has_runs: AtomicBool,
    /// Whether bytes were asked for since copies were last forgotten.
    has_copies: AtomicBool,
}

/// See [`Source::gap_bytes`]: runs that were read ahead are in memory, and pieces of a cache on a
/// disk, where a block costs less than its chunk.
const KEPT_GAP_BYTES: u64 = 4 << 10;
/// An object of at most so many bytes is read as a whole when it is opened.
const WHOLE_BYTES: u64 = 1 << 20;
/// An announcement of this length is of a run. Shorter ones are of chunks that are wanted at once.
const RUN_BYTES: u64 = 256 << 10;
/// Announcements that follow each other so soon are asked for together.
const ANNOUNCEMENTS: Duration = Duration::from_millis(1);

impl ObjectStorage {
    /// Opens an object for reading. Cost: one round trip, of two requests that read its begin and
    /// its end.
    pub fn open(&self, address: &Address) -> Result<ObjectFile, ObjectError> {
        self.open_within(address, None)
    }

    /// As [`ObjectStorage::open`], of an object that is expected to have so many bytes. Cost: one
    /// round trip; if there are at most 1 MiB, of one request that reads all.
    pub fn open_sized(&self, address: &Address, bytes: u64) -> Result<ObjectFile, ObjectError> {
        self.open_within(address, Some(bytes).filter(|bytes| (1..=WHOLE_BYTES).contains(bytes)))
    }

    /// Opens an object, and reads the first bytes only if a number is given.
    fn open_within(&self, address: &Address, whole: Option<u64>) -> Result<ObjectFile, ObjectError> {
        self.check(address)?;
        ObjectFile::open(self.clone(), address.key().clone(), whole).map_err(|error| failed(address, "opening", error))
    }
}

impl ObjectFile {
    fn open(storage: ObjectStorage, key: Path, whole: Option<u64>) -> io::Result<Self> {
        let client = storage.client()?.clone();
        storage.asks();
        let opened_key = key.clone();
        let has_cache = storage.cache()?.is_some();
        let (pinned, ends) = wait(async move {
            match whole {
                _ if has_cache => open_alone(&*client, &opened_key).await,
                Some(bytes) => open_whole(&*client, &opened_key, bytes).await,
                None => open(&*client, &opened_key).await,
            }
        })?;
        let cached = storage.cached(&key, &pinned)?;
        let number = storage.pieces().number_of(&key, &pinned);
        for (range, bytes) in ends {
            for claimed in storage.pieces().claim(number, &range, LINE_BYTES) {
                let start = usize::try_from(claimed.start - range.start).unwrap_or(usize::MAX);
                let length = usize::try_from(claimed.end - claimed.start).unwrap_or(usize::MAX);
                let piece = bytes.slice(start..start.saturating_add(length));
                storage.pieces().finish(number, &claimed, Some(piece));
            }
        }
        let (has_runs, has_copies, sequence) = (AtomicBool::new(false), AtomicBool::new(true), Sequence::default());
        Ok(Self(Arc::new(OpenObject { storage, key, pinned, number, cached, sequence, has_runs, has_copies })))
    }

    /// Asks soon for the ranges that were announced, or at once if one of them is wanted before.
    fn ask_soon(&self) -> io::Result<()> {
        let object = self.0.clone();
        threads()?.spawn(async move {
            sleep(ANNOUNCEMENTS).await;
            let _ = object.ask_for_announced(); // reading meets the same errors
        });
        Ok(())
    }
}

impl OpenObject {
    /// Copies a range that is in memory as a whole. Returns whether it is.
    fn copy_kept(&self, range: &Range<u64>, out: &mut [u8]) -> bool {
        match self.storage.pieces().parts(self.number, range).as_slice() {
            [Part::Kept(_, bytes)] if bytes.len() == out.len() => {
                out.copy_from_slice(bytes);
                true
            }
            _ => false,
        }
    }

    /// Returns whether bytes of a range are neither in memory nor on their way.
    fn is_missing(&self, range: &Range<u64>) -> bool {
        let parts = self.storage.pieces().parts(self.number, range);
        parts.iter().any(|part| matches!(part, Part::Missing(_)))
    }

    /// Asks for the ranges that were announced.
    fn ask_for_announced(self: &Arc<Self>) -> io::Result<()> {
        let options = self.storage.options();
        let ranges = self.storage.pieces().take_announced(self.number, options.gap_bytes, options.part_bytes);
        ranges.iter().try_for_each(|range| self.keep(range))
    }

    /// Asks for what follows a read that is one of a sequence.
    fn read_ahead(self: &Arc<Self>, read: &Range<u64>) {
        if let Some(ahead) = self.sequence.next(read, self.pinned.byte_count) {
            let _ = self.keep(&ahead); // reading meets the same errors
        }
    }

    /// Asks for the bytes of a range that are not in memory, and keeps them there.
    fn keep(self: &Arc<Self>, range: &Range<u64>) -> io::Result<()> {
        let claimed = self.storage.pieces().claim(self.number, range, self.storage.options().part_bytes);
        // all of them end, whatever fails
        let claim = |range| Claim { object: self.clone(), range, bytes: None };
        let claims: Vec<Claim> = claimed.into_iter().map(claim).collect();
        for claim in claims {
            let read = self.read(claim.range.clone())?;
            threads()?.spawn(async move {
                let mut claim = claim; // all of it is of the task
                // a reader asks again, and gets the error
                claim.bytes = caught_later(read).await.ok();
            });
        }
        Ok(())
    }

    /// Returns the work of reading a range.
    fn read(&self, range: Range<u64>) -> io::Result<impl Future<Output = io::Result<Bytes>> + Send + use<>> {
        let client = self.storage.client()?.clone();
        self.has_copies.store(true, Ordering::Relaxed);
        self.storage.asks();
        Ok(cache::read(client, self.key.clone(), self.pinned.clone(), self.cached.clone(), range))
    }

    /// Reads ranges: what is in memory first, then what has to be asked for, then what is coming.
    fn deliver(
        &self,
        ranges: &[Range<u64>],
        arrived: &mut dyn FnMut(Fragment<'_>) -> ControlFlow<()>,
    ) -> Result<(), RangeError> {
        let mut fragment = |range: usize, offset: u64, bytes: &Bytes| {
            let start = ranges.get(range).map_or(offset, |range| range.start);
            let offset = usize::try_from(offset.saturating_sub(start)).unwrap_or(usize::MAX);
            arrived(Fragment { range, offset, bytes })
        };
        let (mut missing, mut coming) = (Vec::new(), Vec::new());
        for (range, part) in self.storage.pieces().parts_of(self.number, ranges) {
            match part {
                Part::Kept(offset, bytes) => {
                    if fragment(range, offset, &bytes).is_break() {
                        return Ok(());
                    }
                }
                Part::Coming(bytes) => coming.push((range, bytes)),
                Part::Missing(bytes) => match self.cached.as_ref().and_then(|cached| cached.read(&bytes)) {
                    Some(found) => {
                        if fragment(range, bytes.start, &found).is_break() {
                            return Ok(());
                        }
                    }
                    None => {
                        let parts = split(&bytes, self.storage.options().part_bytes);
                        missing.extend(parts.map(|bytes| (range, bytes)));
                    }
                },
            }
        }
        if self.ask(joined(missing, self.storage.options()), &mut fragment)?.is_break() {
            return Ok(());
        }
        for (range, bytes) in coming {
            let flow = match self.storage.pieces().wait(self.number, &bytes) {
                Some(found) => fragment(range, bytes.start, &found),
                None => self.ask(joined(vec![(range, bytes)], self.storage.options()), &mut fragment)?,
            };
            if flow.is_break() {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Asks for bytes, some requests at a time, and hands them over as they arrive.
    fn ask(
        &self,
        mut wanted: VecDeque<Asked>,
        fragment: &mut dyn FnMut(usize, u64, &Bytes) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, RangeError> {
        let mut requests = Requests::new();
        loop {
            while requests.in_flight() < self.storage.options().requests {
                let Some(next) = wanted.pop_front() else { break };
                let range = next.first_range();
                self.start(&mut requests, next).map_err(|error| RangeError { range, error })?;
            }
            if requests.in_flight() == 0 {
                return Ok(ControlFlow::Continue(()));
            }
            let (asked, found) = requests.next();
            let found = found.map_err(|error| RangeError { range: asked.first_range(), error })?;
            for (range, bytes) in asked.parts {
                let of =
                    |offset: u64| usize::try_from(offset - asked.bytes.start).unwrap_or(found.len()).min(found.len());
                if fragment(range, bytes.start, &found.slice(of(bytes.start)..of(bytes.end))).is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
        }
    }

    fn start(&self, requests: &mut Requests, wanted: Asked) -> io::Result<()> {
        let read = self.read(wanted.bytes.clone())?;
        let reply = requests.reply(wanted);
        let task = threads()?.spawn(async move {
            let reply = reply; // all of it is of the task
            reply.send(caught_later(read).await);
        });
        requests.add(task.abort_handle());
        Ok(())
    }
}

/// Opens an object: reads its begin and its end, where most files have all that opening them takes.
/// Returns the object, and these parts.
async fn open(store: &dyn ObjectStore, key: &Path) -> io::Result<(Pinned, Vec<(Range<u64>, Bytes)>)> {
    let ranged = |range| answer(store, key, GetOptions { range: Some(range), ..GetOptions::default() });
    let (first, last) =
        future::join(ranged(GetRange::Bounded(0..LINE_BYTES)), ranged(GetRange::Suffix(LINE_BYTES))).await;
    let (meta, range, bytes) = match last {
        Ok(last) => last,
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied) => {
            return Err(error);
        }
        // the store does not know such ranges, or the object is empty
        Err(_) => {
            return open_alone(store, key).await;
        }
    };
    let pinned = Pinned::of(&meta);
    let mut ends = vec![(range, bytes)];
    // one that was replaced between both answers is read as it is now
    if let Ok((meta, range, bytes)) = first
        && Pinned::of(&meta) == pinned
    {
        ends.push((range, bytes));
    }
    Ok((pinned, ends))
}

/// Opens an object, and reads nothing of it: a cache may have what is wanted. Returns as [`open`]
/// does.
async fn open_alone(store: &dyn ObjectStore, key: &Path) -> io::Result<(Pinned, Vec<(Range<u64>, Bytes)>)> {
    let options = GetOptions { head: true, ..GetOptions::default() };
    let meta = store.get_opts(key, options).await.map_err(io_error)?.meta;
    Ok((Pinned::of(&meta), Vec::new()))
}

/// Opens an object of about so many bytes, and reads these. Returns as [`open`] does.
async fn open_whole(store: &dyn ObjectStore, key: &Path, bytes: u64) -> io::Result<(Pinned, Vec<(Range<u64>, Bytes)>)> {
    let options = GetOptions { range: Some(GetRange::Bounded(0..bytes)), ..GetOptions::default() };
    let (meta, range, bytes) = answer(store, key, options).await?;
    Ok((Pinned::of(&meta), vec![(range, bytes)]))
}

/// A claim of bytes, which ends however the request for them ends.
struct Claim {
    object: Arc<OpenObject>,
    range: Range<u64>,
    bytes: Option<Bytes>,
}

impl Drop for Claim {
    fn drop(&mut self) {
        let pieces = self.object.storage.pieces();
        pieces.finish(self.object.number, &self.range, self.bytes.take());
    }
}

impl Source for ObjectFile {
    fn byte_count(&self) -> u64 {
        self.0.pinned.byte_count
    }

    fn read_exact_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let end = u64::try_from(out.len()).ok().and_then(|length| offset.checked_add(length));
        let end = end.filter(|end| *end <= self.byte_count()).ok_or(io::ErrorKind::UnexpectedEof)?;
        let range = offset..end;
        self.0.read_ahead(&range);
        if end - offset <= LINE_BYTES {
            if self.0.copy_kept(&range, out) {
                return Ok(());
            }
            if let Some(found) = self.0.cached.as_ref().and_then(|cached| cached.read(&range)) {
                out.copy_from_slice(&found); // equal lengths
                return Ok(());
            }
            self.0.ask_for_announced()?;
            if self.0.is_missing(&range) {
                self.0.keep(&widened(&range, self.byte_count()))?;
            }
        }
        let mut copy = |fragment: Fragment<'_>| {
            let to = out.get_mut(fragment.offset..).and_then(|rest| rest.get_mut(..fragment.bytes.len()));
            to.into_iter().for_each(|to| to.copy_from_slice(fragment.bytes)); // equal lengths
            ControlFlow::Continue(())
        };
        self.0.deliver(slice::from_ref(&range), &mut copy).map_err(|error| error.error)
    }

    fn will_need(&self, range: Range<u64>) {
        let range = range.start..range.end.min(self.byte_count());
        let is_run = range.end.saturating_sub(range.start) >= RUN_BYTES;
        if !is_run && self.0.cached.as_ref().is_some_and(|cached| cached.has_all(&range)) {
            return; // it takes no round trip
        }
        if is_run {
            self.0.has_runs.store(true, Ordering::Relaxed);
        }
        let is_first = !range.is_empty() && self.0.storage.pieces().announce(self.0.number, range);
        if is_first {
            let _ = self.ask_soon(); // reading meets the same errors
        }
    }

    /// Returns the gap of the options, or a small one if runs were announced or a cache keeps what
    /// is read. What is asked for is joined by the options, whatever this is.
    fn gap_bytes(&self) -> u64 {
        match self.0.cached.is_some() || self.0.has_runs.load(Ordering::Relaxed) {
            true => KEPT_GAP_BYTES,
            false => self.0.storage.options().gap_bytes,
        }
    }

    fn distrust(&self) {
        if self.0.has_copies.swap(false, Ordering::Relaxed) {
            self.0.storage.pieces().forget(self.0.number);
            self.0.cached.iter().for_each(CachedObject::forget);
        }
    }

    fn read_ranges(
        &self,
        ranges: &[Range<u64>],
        _: &mut Vec<u8>,
        arrived: &mut dyn FnMut(Fragment<'_>) -> ControlFlow<()>,
    ) -> Result<(), RangeError> {
        if let [range] = ranges {
            self.0.read_ahead(range);
        }
        // errors of these are met again, if their bytes are wanted
        let _ = self.0.ask_for_announced();
        self.0.deliver(ranges, arrived)
    }
}
