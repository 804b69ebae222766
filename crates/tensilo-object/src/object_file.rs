//! An object as a source of bytes, and how it is opened.
//!
//! A request to a store takes milliseconds for the round trip, no matter how many bytes it reads.
//! So an [`ObjectFile`] sends few requests, sends them concurrently, and sends none for bytes that
//! are cached or in flight:
//!
//! * *Open* reads the start and the end of the object in one round trip. For most files, opening
//!   needs no other bytes. If an object is known to be small, one request reads all of it. With a
//!   disk cache, opening only requests the version, because the bytes may be cached.
//! * *Read* divides its ranges into segments: cached in memory or on disk, missing, or in flight.
//!   It copies the cached segments, requests the missing segments (coalesced), and then waits for
//!   the segments in flight. Small reads fetch aligned lines, which stay in memory, because the
//!   next small read is usually close by.
//! * *Prefetch* claims ranges in the range cache, so that no other thread requests them, and
//!   returns at once; reads then find them in flight or cached. Sequential reads are detected, and
//!   the bytes after them are prefetched.
//!
//! A prefetch that fails is not an error: its claim ends, and the read that needs the bytes
//! requests them again and gets the error. A claim always ends, whatever happens to its request, so
//! no read waits forever. Responses that do not match the version that was opened are errors; see
//! `request.rs`.

use crate::address::Address;
use crate::cache::{self, CachedObject};
use crate::client::ObjectOptions;
use crate::error::{ObjectError, io_error};
use crate::range_cache::{LINE_BYTES, Segment, SequentialReads, align_to_lines, split};
use crate::request::{ObjectVersion, response};
use crate::runtime::{self, PendingResult, Task, catch_panic_async, thread_ended, threads};
use crate::storage::{ObjectStorage, failed};
use bytes::Bytes;
use futures_util::future;
use object_store::path::Path;
use object_store::{GetOptions, GetRange, ObjectStore};
use std::io;
use std::iter::repeat;
use std::ops::Range;
use std::path::Path as FilePath;
use std::slice;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver};
use tensilo::Error;
use tensilo::source::{CoalesceConfig, PositionedFile, RangeError, Requests, Source, range_length};
use tokio::task::JoinSet;

/// An object that is open for reading.
///
/// All ranges of a read are requested concurrently, and a long range is divided into several
/// requests. Small structures are read in lines of 64 KiB. These lines are cached, and so are the
/// ranges of [`Source::prefetch`]. Ranges are coalesced by [`Requests`] and not by `object_store`,
/// because some of their bytes may be cached or in flight. If the object is replaced, reads fail
/// with [`io::ErrorKind::StaleNetworkFileHandle`]: bytes of two versions are never mixed.
#[derive(Debug)]
pub struct ObjectFile(Arc<ObjectFileInner>);

/// An open object, shared with its requests in flight.
#[derive(Debug)]
struct ObjectFileInner {
    storage: ObjectStorage,
    key: Path,
    pinned: ObjectVersion,
    /// Identifies the object, and this version of it, in the range cache.
    id: u64,
    /// The entries of the object in the disk cache, if there is one.
    cached: Option<CachedObject>,
    sequential_reads: SequentialReads,
    /// Whether runs have been prefetched.
    has_runs: AtomicBool,
    /// Whether bytes have been requested since the caches were last invalidated.
    has_copies: AtomicBool,
}

/// The maximum gap to coalesce if bytes are probably cached; see [`ObjectFile::coalesce`]. It is
/// small, because without a round trip, reading single blocks costs less than reading their whole
/// chunk.
const CACHED_GAP_BYTES: u64 = 4 << 10;
/// Objects that are known to have at most this size are read completely when they are opened.
const WHOLE_BYTES: u64 = 1 << 20;
/// The maximum number of bytes that opening reads from the end of an object.
const MAX_END_BYTES: u64 = 8 << 20;
/// Prefetched ranges of at least this length are runs. Shorter ones are chunks that are about to be
/// read.
const RUN_BYTES: u64 = 256 << 10;

impl ObjectStorage {
    /// Opens an object for reading. Cost: one round trip with two concurrent requests, which read
    /// the start and the end of the object.
    pub fn open(&self, address: &Address) -> Result<ObjectFile, ObjectError> {
        self.begin_open(address, None)?.wait()
    }

    /// Starts to open an object and returns at once, so that many objects can be opened in one
    /// round trip. `end` is the range from the footer to the last byte, if the caller knows it.
    /// Opening then reads this range as the end of the object. Fails if the address is not in this
    /// store, or if the options are invalid.
    ///
    /// Cost: one round trip, for which [`PendingOpen::wait`] waits. If `end` shows that the object
    /// is at most 1 MiB long, one request reads all of it. Otherwise, two requests read its start
    /// and its end.
    pub fn begin_open(&self, address: &Address, end: Option<Range<u64>>) -> Result<PendingOpen, ObjectError> {
        self.check(address)?;
        let begun = ObjectFile::begin(self, address.key(), end);
        let opened = begun.map_err(|error| failed(address, "opening", error))?;
        Ok(PendingOpen { storage: self.clone(), address: address.clone(), opened })
    }
}

/// An object that is being opened. Dropping it cancels its requests.
#[derive(Debug)]
pub struct PendingOpen {
    storage: ObjectStorage,
    address: Address,
    opened: PendingResult<OpenResponse>,
}

/// The version of the object that was found, and the ranges that were read from it.
type OpenResponse = (ObjectVersion, Vec<(Range<u64>, Bytes)>);

impl PendingOpen {
    /// Waits until the object is open.
    pub fn wait(self) -> Result<ObjectFile, ObjectError> {
        let Self { storage, address, opened } = self;
        let object = opened.wait().and_then(|opened| ObjectFile::new(storage, address.key().clone(), opened));
        object.map_err(|error| failed(&address, "opening", error))
    }
}

impl ObjectFile {
    fn begin(storage: &ObjectStorage, key: &Path, end: Option<Range<u64>>) -> io::Result<PendingResult<OpenResponse>> {
        let (client, key) = (storage.client()?.clone(), key.clone());
        let has_cache = storage.cache()?.is_some();
        runtime::begin(async move {
            match end {
                _ if has_cache => open_without_reading(&*client, &key).await,
                Some(end) if (1..=WHOLE_BYTES).contains(&end.end) => open_whole(&*client, &key, end.end).await,
                end => open(&*client, &key, end).await,
            }
        })
    }

    fn new(storage: ObjectStorage, key: Path, (pinned, segments): OpenResponse) -> io::Result<Self> {
        let cached = storage.cached(&key, &pinned)?;
        let id = storage.range_cache().object_id(&key, &pinned);
        for (range, bytes) in segments {
            for claimed in storage.range_cache().claim(id, &range, LINE_BYTES) {
                let start = range_length(&(range.start..claimed.start));
                let claimed_bytes = bytes.slice(start..start.saturating_add(range_length(&claimed)));
                storage.range_cache().finish(id, &claimed, Some(claimed_bytes));
            }
        }
        let (has_runs, has_copies, sequential_reads) =
            (AtomicBool::new(false), AtomicBool::new(true), SequentialReads::default());
        Ok(Self(Arc::new(ObjectFileInner { storage, key, pinned, id, cached, sequential_reads, has_runs, has_copies })))
    }
}

impl ObjectFileInner {
    /// Copies a range if all of it is in memory. Returns whether it was.
    fn copy_cached(&self, range: &Range<u64>, out: &mut [u8]) -> bool {
        match self.storage.range_cache().segments(self.id, range).as_slice() {
            [Segment::Cached(_, bytes)] if bytes.len() == out.len() => {
                out.copy_from_slice(bytes);
                true
            }
            _ => false,
        }
    }

    /// Prefetches the bytes after a read, if the read is sequential.
    fn read_ahead(self: &Arc<Self>, read: &Range<u64>) {
        if let Some(lookahead) = self.sequential_reads.next(read, self.pinned.byte_count) {
            let _ = self.start_fetch(&lookahead); // the read will get the same errors
        }
    }

    /// Requests the bytes of a range that are not in memory, and puts them into the range cache.
    /// Does not wait for them.
    fn start_fetch(self: &Arc<Self>, range: &Range<u64>) -> io::Result<()> {
        let claimed =
            self.storage.range_cache().claim(self.id, range, self.storage.options().coalesce.max_request_bytes);
        // all claims are created before the first request, so that they end even if something fails
        let claim = |range| Claim { object: self.clone(), range, bytes: None };
        let claims: Vec<Claim> = claimed.into_iter().map(claim).collect();
        for claim in claims {
            let read = self.read(claim.range.clone())?;
            threads()?.spawn(async move {
                let mut claim = claim; // moves the whole claim, with its `drop`, into the task
                // the read that needs the bytes requests them again, and gets the error
                claim.bytes = catch_panic_async(read).await.ok();
            });
        }
        Ok(())
    }

    /// Returns a future that reads a range, through the disk cache.
    fn read(&self, range: Range<u64>) -> io::Result<impl Future<Output = io::Result<Bytes>> + Send + use<>> {
        let client = self.storage.client()?.clone();
        self.has_copies.store(true, Ordering::Relaxed);
        Ok(cache::read(client, self.key.clone(), self.pinned.clone(), self.cached.clone(), range))
    }

    /// Fills `out` with ranges. Copies cached segments, then requests missing segments, then waits
    /// for segments in flight.
    fn fill(&self, ranges: &[Range<u64>], out: &mut [u8]) -> Result<(), RangeError> {
        let mut starts = Vec::with_capacity(ranges.len());
        let mut end = 0_usize;
        for range in ranges {
            starts.push(end);
            end = end.saturating_add(range_length(range));
        }
        // the offset in `out` of the byte at `offset` of the object, which is in this range
        let out_offset = |range: usize, offset: u64| {
            let (start, before) = starts.get(range).zip(ranges.get(range))?;
            start.checked_add(range_length(&(before.start..offset)))
        };
        let mut put = |range: usize, offset: u64, bytes: &[u8]| {
            let to = out_offset(range, offset).and_then(|start| out.get_mut(start..)?.get_mut(..bytes.len()));
            to.into_iter().for_each(|to| to.copy_from_slice(bytes)); // equal lengths, in bounds
        };
        let (mut missing, mut in_flight) = (Vec::new(), Vec::new());
        for (range, segment) in self.storage.range_cache().segments_of(self.id, ranges) {
            match segment {
                Segment::Cached(offset, bytes) => put(range, offset, &bytes),
                Segment::InFlight(bytes) => in_flight.push((range, bytes)),
                Segment::Missing(bytes) => match self.cached.as_ref().and_then(|cached| cached.read(&bytes)) {
                    Some(found) => put(range, bytes.start, &found),
                    None => missing.push((bytes, range)),
                },
            }
        }
        let requested = self.request(missing, &mut put);
        let mut failed = requested.err();
        for (range, bytes) in in_flight {
            let found = match self.storage.range_cache().wait(self.id, &bytes) {
                Some(found) => {
                    put(range, bytes.start, &found);
                    Ok(())
                }
                None => self.request(vec![(bytes, range)], &mut put),
            };
            failed = earlier(failed, found.err());
        }
        failed.map_or(Ok(()), Err)
    }

    /// Requests segments, each with the index of its range, and passes their bytes to `put` as they
    /// arrive. Returns the error of the first range that failed, once all ranges before it have
    /// arrived. Other requests in flight are then cancelled.
    fn request(
        &self,
        segments: Vec<(Range<u64>, usize)>,
        put: &mut dyn FnMut(usize, u64, &[u8]),
    ) -> Result<(), RangeError> {
        let Some(&(_, first)) = segments.first() else { return Ok(()) };
        let config = &self.storage.options().coalesce;
        let of_range = |error| RangeError { range: first, error };
        let mut requests = Requests::default();
        let short =
            segments.iter().flat_map(|(bytes, range)| split(bytes, config.max_request_bytes).zip(repeat(*range)));
        requests.fill(short, config).map_err(|error| of_range(io::Error::other(error)))?;
        let first_range = |request: usize| requests.ranges_of(request).iter().map(|(_, range)| *range).min();
        let mut pending: Vec<bool> = vec![true; requests.as_slice().len()];
        let (mut left, mut failed) = (pending.len(), None::<RangeError>);
        let responses = self.responses(requests.as_slice(), config.max_in_flight).map_err(of_range)?;
        while left > 0 {
            let (request, response) = responses.receiver.recv().map_err(|_| of_range(thread_ended()))?;
            pending.get_mut(request).into_iter().for_each(|is_pending| *is_pending = false);
            let start = requests.as_slice().get(request).map_or(0, |bytes| bytes.start);
            match response {
                Ok(bytes) => {
                    for (segment, range) in requests.ranges_of(request) {
                        let of = |offset: u64| range_length(&(start..offset)).min(bytes.len());
                        put(*range, segment.start, bytes.get(of(segment.start)..of(segment.end)).unwrap_or(&[]));
                    }
                }
                Err(error) => {
                    let range = first_range(request).unwrap_or(first);
                    failed = earlier(failed, Some(RangeError { range, error }));
                }
            }
            left = match &failed {
                None => left.saturating_sub(1),
                // only earlier ranges can change the error
                Some(failed) => {
                    let is_before = |request: usize| first_range(request).is_some_and(|first| first < failed.range);
                    (0..).zip(&pending).filter(|(request, is_pending)| **is_pending && is_before(*request)).count()
                }
            };
        }
        failed.map_or(Ok(()), Err)
    }

    /// Sends requests, at most `max_in_flight` at a time. Dropping the result cancels them.
    fn responses(&self, ranges: &[Range<u64>], max_in_flight: usize) -> io::Result<Responses> {
        let (sender, receiver) = mpsc::channel();
        let reads = ranges.iter().map(|range| self.read(range.clone())).collect::<io::Result<Vec<_>>>()?;
        let task = threads()?.spawn(async move {
            let mut queued = reads.into_iter().enumerate();
            let mut in_flight = JoinSet::new();
            loop {
                while in_flight.len() < max_in_flight {
                    let Some((id, read)) = queued.next() else { break };
                    in_flight.spawn(async move { (id, catch_panic_async(read).await) });
                }
                let Some(response) = in_flight.join_next().await else { return };
                let is_received = response.is_ok_and(|response| sender.send(response).is_ok());
                if !is_received {
                    return; // the reader sees the channel close
                }
            }
        });
        Ok(Responses { receiver, _task: Task(task) })
    }
}

/// Receives the responses, each with the index of its request.
struct Responses {
    receiver: Receiver<Response>,
    _task: Task<()>,
}

/// The index of a request, and the bytes of its response.
type Response = (usize, io::Result<Bytes>);

/// Returns the error of the earlier range.
fn earlier(one: Option<RangeError>, other: Option<RangeError>) -> Option<RangeError> {
    match (one, other) {
        (Some(one), Some(other)) if other.range < one.range => Some(other),
        (None, other) => other,
        (one, _) => one,
    }
}

/// Opens an object: reads its start and its end, which for most files contain all that opening
/// needs. `end` is the range of the end, if it is known.
async fn open(store: &dyn ObjectStore, key: &Path, end: Option<Range<u64>>) -> io::Result<OpenResponse> {
    let ranged = |range| response(store, key, GetOptions { range: Some(range), ..GetOptions::default() });
    let last = match end {
        Some(Range { start, end }) => {
            let start = start.min(end.saturating_sub(LINE_BYTES)).max(end.saturating_sub(MAX_END_BYTES));
            GetRange::Bounded(start..end)
        }
        None => GetRange::Suffix(LINE_BYTES),
    };
    let (first, last) = future::join(ranged(GetRange::Bounded(0..LINE_BYTES)), ranged(last)).await;
    let (meta, range, bytes) = match last {
        Ok(last) => last,
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied) => {
            return Err(error);
        }
        // the store does not support suffix ranges, or the object is empty
        Err(_) => {
            return open_without_reading(store, key).await;
        }
    };
    let pinned = ObjectVersion::of(&meta);
    let mut ends = vec![(range, bytes)];
    // if the object was replaced between the two responses, the version of its end is pinned, and
    // the bytes of its start are ignored
    if let Ok((meta, range, bytes)) = first
        && ObjectVersion::of(&meta) == pinned
    {
        ends.push((range, bytes));
    }
    Ok((pinned, ends))
}

/// Opens an object without reading any of it, because a cache may have the bytes.
async fn open_without_reading(store: &dyn ObjectStore, key: &Path) -> io::Result<OpenResponse> {
    let options = GetOptions { head: true, ..GetOptions::default() };
    let meta = store.get_opts(key, options).await.map_err(io_error)?.meta;
    Ok((ObjectVersion::of(&meta), Vec::new()))
}

/// Opens an object that is expected to be `bytes` bytes long, and reads all of it.
async fn open_whole(store: &dyn ObjectStore, key: &Path, bytes: u64) -> io::Result<OpenResponse> {
    let options = GetOptions { range: Some(GetRange::Bounded(0..bytes)), ..GetOptions::default() };
    let (meta, range, bytes) = response(store, key, options).await?;
    Ok((ObjectVersion::of(&meta), vec![(range, bytes)]))
}

/// A claim on bytes in the range cache. Dropping it ends the claim, with `bytes` if the request
/// succeeded.
struct Claim {
    object: Arc<ObjectFileInner>,
    range: Range<u64>,
    bytes: Option<Bytes>,
}

impl Drop for Claim {
    fn drop(&mut self) {
        let range_cache = self.object.storage.range_cache();
        range_cache.finish(self.object.id, &self.range, self.bytes.take());
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
            if self.0.copy_cached(&range, out) {
                return Ok(());
            }
            if let Some(found) = self.0.cached.as_ref().and_then(|cached| cached.read(&range)) {
                out.copy_from_slice(&found); // equal lengths
                return Ok(());
            }
            self.0.start_fetch(&align_to_lines(&range, self.byte_count()))?;
        }
        self.0.fill(slice::from_ref(&range), out).map_err(|error| error.error)
    }

    /// Returns the config of the options, but with a small gap if there is a disk cache, or if runs
    /// have been prefetched and are thus in memory. Requests to the store are still coalesced as
    /// the options say.
    fn coalesce(&self) -> CoalesceConfig {
        let mut config = self.0.storage.options().coalesce;
        if self.0.cached.is_some() || self.0.has_runs.load(Ordering::Relaxed) {
            config.gap_bytes = CACHED_GAP_BYTES;
        }
        config
    }

    fn read_ranges(&self, ranges: &[Range<u64>], out: &mut [u8]) -> Result<(), RangeError> {
        if let [range] = ranges {
            self.0.read_ahead(range);
        }
        self.0.fill(ranges, out)
    }

    fn prefetch(&self, ranges: &[Range<u64>]) {
        let is_run = |range: &Range<u64>| range.end.saturating_sub(range.start) >= RUN_BYTES;
        if ranges.iter().any(is_run) {
            self.0.has_runs.store(true, Ordering::Relaxed);
        }
        // a read of the run may include the gap after it
        let gap = |range: &Range<u64>| if is_run(range) { CACHED_GAP_BYTES } else { 0 };
        let inside =
            ranges.iter().map(|range| range.start..range.end.saturating_add(gap(range)).min(self.byte_count()));
        let inside = inside.filter(|range| !range.is_empty());
        // bytes in the disk cache need no round trip; only runs are worth loading from there into
        // memory
        let is_cached = |range: &Range<u64>| self.0.cached.as_ref().is_some_and(|cached| cached.contains(range));
        let missing = inside.filter(|range| is_run(range) || !is_cached(range));
        let mut requests = Requests::default();
        // the read will get the same errors
        if requests.fill(missing.zip(repeat(0)), &self.0.storage.options().coalesce).is_ok() {
            let _ = requests.as_slice().iter().try_for_each(|range| self.0.start_fetch(range));
        }
    }

    fn invalidate(&self) {
        if self.0.has_copies.swap(false, Ordering::Relaxed) {
            self.0.storage.range_cache().invalidate(self.0.id);
            self.0.cached.iter().for_each(CachedObject::invalidate);
        }
    }
}

/// Opens an object if the path is an address. Otherwise, opens a file, which is read with `pread`.
///
/// Cost: for an object, one round trip.
pub fn source_at(path: &FilePath) -> tensilo::Result<Arc<dyn Source>> {
    source_with(path, ObjectOptions::new())
}

/// Like [`source_at`], with options for requests to a store.
pub fn source_with(path: &FilePath, options: ObjectOptions) -> tensilo::Result<Arc<dyn Source>> {
    if !Address::is_url_path(path) {
        return Ok(Arc::new(PositionedFile::open(path)?));
    }
    let file = Address::from_path(path).and_then(|address| ObjectStorage::new(&address, options).open(&address));
    let file = file.map_err(|error| Error::io("opening the object", error.into_io()).with_path(path))?;
    Ok(Arc::new(file))
}
