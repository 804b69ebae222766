//! An object as a source of bytes.

use crate::address::Address;
use crate::error::{ObjectError, io_error};
use crate::lines::{LINE_BYTES, widened};
use crate::pieces::{Part, split};
use crate::request::{self, Pinned, answer};
use crate::runtime::{gone, threads, wait};
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
use std::sync::mpsc::{self, Receiver, Sender};
use tensilo::source::Source;
use tensilo::stages::{Fragment, RangeError};
use tokio::task::AbortHandle;

/// An object that is open for reading.
///
/// All ranges of a read are asked for at the same time, in parts. Small structures are read in
/// lines of 64 KiB, which are kept; what [`Source::will_need`] announces is read ahead, and kept.
/// If the object is replaced, reads fail with [`io::ErrorKind::StaleNetworkFileHandle`]: bytes of
/// two versions are never mixed.
#[derive(Debug)]
pub struct ObjectFile {
    storage: ObjectStorage,
    key: Path,
    pinned: Pinned,
    /// The number that its pieces have.
    number: u64,
}

/// A part of a range that was asked for: its range of the caller, its bytes in the object.
struct Wanted {
    range: usize,
    bytes: Range<u64>,
}

impl ObjectStorage {
    /// Opens an object for reading. Cost: one round trip, of two requests that read its begin and
    /// its end.
    pub fn open(&self, address: &Address) -> Result<ObjectFile, ObjectError> {
        self.check(address)?;
        ObjectFile::open(self.clone(), address.key().clone()).map_err(|error| failed(address, "opening", error))
    }
}

impl ObjectFile {
    fn open(storage: ObjectStorage, key: Path) -> io::Result<Self> {
        let client = storage.client()?.clone();
        let (opened_key, number) = (key.clone(), storage.next_number());
        let (pinned, ends) = wait(async move { open(&*client, &opened_key).await })?;
        for (range, bytes) in ends {
            for claimed in storage.pieces().claim(number, &range, LINE_BYTES) {
                let start = usize::try_from(claimed.start - range.start).unwrap_or(usize::MAX);
                let length = usize::try_from(claimed.end - claimed.start).unwrap_or(usize::MAX);
                let piece = bytes.slice(start..start.saturating_add(length));
                storage.pieces().finish(number, &claimed, Some(piece));
            }
        }
        Ok(Self { storage, key, pinned, number })
    }

    /// Returns the bytes of a range, on the threads of this process.
    async fn bytes(client: Arc<dyn ObjectStore>, key: Path, pinned: Pinned, range: Range<u64>) -> io::Result<Bytes> {
        request::read(client, key, pinned, range).await
    }

    /// Asks for the bytes of a range that are not in memory, and keeps them there.
    fn announce(&self, range: &Range<u64>) -> io::Result<()> {
        for claimed in self.storage.pieces().claim(self.number, range, self.storage.options().part_bytes) {
            let claim =
                Claim { storage: self.storage.clone(), number: self.number, range: claimed.clone(), bytes: None };
            let client = self.storage.client()?.clone();
            let read = Self::bytes(client, self.key.clone(), self.pinned.clone(), claimed);
            threads()?.spawn(async move {
                let mut claim = claim;
                claim.bytes = read.await.ok(); // a reader asks again, and gets the error
            });
        }
        Ok(())
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
        let (mut missing, mut coming) = (VecDeque::new(), Vec::new());
        for (range, bytes) in ranges.iter().enumerate() {
            for part in self.storage.pieces().parts(self.number, bytes) {
                match part {
                    Part::Kept(offset, bytes) => {
                        if fragment(range, offset, &bytes).is_break() {
                            return Ok(());
                        }
                    }
                    Part::Coming(bytes) => coming.push(Wanted { range, bytes }),
                    Part::Missing(bytes) => {
                        let parts = split(&bytes, self.storage.options().part_bytes);
                        missing.extend(parts.map(|bytes| Wanted { range, bytes }));
                    }
                }
            }
        }
        if self.ask(missing, &mut fragment)?.is_break() {
            return Ok(());
        }
        for wanted in coming {
            let flow = match self.storage.pieces().wait(self.number, &wanted.bytes) {
                Some(bytes) => fragment(wanted.range, wanted.bytes.start, &bytes),
                None => self.ask([wanted].into(), &mut fragment)?,
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
        mut wanted: VecDeque<Wanted>,
        fragment: &mut dyn FnMut(usize, u64, &Bytes) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, RangeError> {
        let mut requests = Requests::new();
        loop {
            while requests.in_flight < self.storage.options().requests {
                let Some(next) = wanted.pop_front() else { break };
                let range = next.range;
                self.start(&mut requests, next).map_err(|error| RangeError { range, error })?;
            }
            if requests.in_flight == 0 {
                return Ok(ControlFlow::Continue(()));
            }
            let (Wanted { range, bytes }, found) = requests.next();
            let found = found.map_err(|error| RangeError { range, error })?;
            if fragment(range, bytes.start, &found).is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
    }

    fn start(&self, requests: &mut Requests, wanted: Wanted) -> io::Result<()> {
        let client = self.storage.client()?.clone();
        let read = Self::bytes(client, self.key.clone(), self.pinned.clone(), wanted.bytes.clone());
        let sender = requests.sender.clone();
        let task = threads()?.spawn(async move {
            let _ = sender.send((wanted, read.await)); // nobody waits any more
        });
        requests.tasks.push(task.abort_handle());
        requests.in_flight += 1;
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
            let options = GetOptions { head: true, ..GetOptions::default() };
            let meta = store.get_opts(key, options).await.map_err(io_error)?.meta;
            (meta, 0..0, Bytes::new())
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

/// A claim of bytes, which ends however the request for them ends.
struct Claim {
    storage: ObjectStorage,
    number: u64,
    range: Range<u64>,
    bytes: Option<Bytes>,
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.storage.pieces().finish(self.number, &self.range, self.bytes.take());
    }
}

type Answer = (Wanted, io::Result<Bytes>);

/// The requests of one read that are in flight. Those that nobody waits for any more are given up.
struct Requests {
    sender: Sender<Answer>,
    receiver: Receiver<Answer>,
    tasks: Vec<AbortHandle>,
    in_flight: usize,
}

impl Requests {
    fn new() -> Self {
        let (sender, receiver) = mpsc::channel();
        Self { sender, receiver, tasks: Vec::new(), in_flight: 0 }
    }

    /// Waits for the next answer. One is in flight.
    fn next(&mut self) -> Answer {
        self.in_flight = self.in_flight.saturating_sub(1);
        // this holds a sender, so there is no end of answers
        self.receiver.recv().unwrap_or_else(|_| (Wanted { range: 0, bytes: 0..0 }, Err(gone())))
    }
}

impl Drop for Requests {
    fn drop(&mut self) {
        self.tasks.iter().for_each(AbortHandle::abort);
    }
}

impl Drop for ObjectFile {
    fn drop(&mut self) {
        self.storage.pieces().forget(self.number);
    }
}

impl Source for ObjectFile {
    fn byte_count(&self) -> u64 {
        self.pinned.byte_count
    }

    fn read_exact_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let end = u64::try_from(out.len()).ok().and_then(|length| offset.checked_add(length));
        let end = end.filter(|end| *end <= self.byte_count()).ok_or(io::ErrorKind::UnexpectedEof)?;
        let range = offset..end;
        if end - offset <= LINE_BYTES {
            self.announce(&widened(&range, self.byte_count()))?;
        }
        let mut copy = |fragment: Fragment<'_>| {
            let to = out.get_mut(fragment.offset..).and_then(|rest| rest.get_mut(..fragment.bytes.len()));
            to.into_iter().for_each(|to| to.copy_from_slice(fragment.bytes)); // equal lengths
            ControlFlow::Continue(())
        };
        self.deliver(slice::from_ref(&range), &mut copy).map_err(|error| error.error)
    }

    fn will_need(&self, range: Range<u64>) {
        // reading meets the same errors
        let _ = self.announce(&(range.start..range.end.min(self.byte_count())));
    }

    fn gap_bytes(&self) -> u64 {
        self.storage.options().gap_bytes
    }

    fn read_ranges(
        &self,
        ranges: &[Range<u64>],
        _: &mut Vec<u8>,
        arrived: &mut dyn FnMut(Fragment<'_>) -> ControlFlow<()>,
    ) -> Result<(), RangeError> {
        self.deliver(ranges, arrived)
    }
}
