//! Uploads: objects that are written from front to back, and that appear, complete, when they are
//! published.
//!
//! A store cannot append to an object, and a writer does not know in advance how long a file will
//! be. So bytes are collected in memory until an upload part of 16 MiB is full. If the object ends
//! before its first part is full, a single `PUT` creates it. Otherwise, it becomes a multipart
//! upload, which keeps a few parts in flight while the writer continues. The store shows the object
//! only when the upload is completed, so a writer that fails or is killed leaves no object.
//!
//! After any failure, an upload stays failed. A second attempt to publish it could create an object
//! that lacks bytes of the first attempt.

use crate::address::Address;
use crate::error::{Result, io_error};
use crate::runtime::{catch_panic_async, thread_ended, threads, wait};
use crate::storage::{ObjectStorage, failed};
use bytes::Bytes;
use object_store::path::Path;
use object_store::{MultipartUpload, ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload};
use std::io::{self, Write};
use std::path::Path as FilePath;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};
use tensilo::sink::Sink;

/// The size of an upload part in bytes. Stores accept 10,000 parts, so an object has at most 156
/// GiB.
const PART_BYTES: usize = 16 << 20;
/// The maximum number of parts in flight. These parts are in memory, along with the part that is
/// being filled.
const PARTS_IN_FLIGHT: usize = 4;

/// An object that is written from front to back, and appears, complete, when it is published: a
/// [`Sink`] for a `Writer`.
///
/// It is sent in parts of 16 MiB while it is written. If it is dropped before it is published, no
/// object appears. It can be published only once, so a file in a store has one commit.
#[derive(Debug)]
pub struct ObjectUpload {
    storage: ObjectStorage,
    path: PathBuf,
    key: Path,
    replace: bool,
    part: Vec<u8>,
    state: State,
}

#[derive(Debug)]
enum State {
    /// All bytes that were written are in the first part, which has not been sent.
    First,
    /// A multipart upload was started.
    Parts {
        upload: Box<dyn MultipartUpload>,
        in_flight: Vec<Receiver<io::Result<()>>>,
    },
    Published,
    /// A request failed, so nothing can be published.
    Failed,
}

impl ObjectStorage {
    /// Starts to write an object. Unless `replace` is set, first asks the store whether the object
    /// exists, and fails if it does. Sends nothing else until the first part is full.
    pub fn upload(&self, address: &Address, replace: bool) -> Result<ObjectUpload> {
        self.check(address)?;
        let failed = |error| failed(address, "creating", error);
        let (key, client) = (address.key().clone(), self.client().map_err(failed)?.clone());
        if !replace {
            let checked_key = key.clone();
            let found = wait(async move {
                match client.head(&checked_key).await {
                    Ok(_) => Err(io::Error::from(io::ErrorKind::AlreadyExists)),
                    Err(object_store::Error::NotFound { .. }) => Ok(()),
                    Err(error) => Err(io_error(error)),
                }
            });
            found.map_err(failed)?;
        }
        let path = PathBuf::from(address.to_string());
        Ok(ObjectUpload { storage: self.clone(), path, key, replace, part: Vec::new(), state: State::First })
    }
}

impl ObjectUpload {
    /// Sends the full part, and waits if too many parts are in flight.
    fn send_part(&mut self) -> io::Result<()> {
        let part = PutPayload::from(Bytes::from(std::mem::take(&mut self.part)));
        if let State::First = self.state {
            self.state = State::Failed; // until the multipart upload exists
            let (client, key) = (self.storage.client()?.clone(), self.key.clone());
            let upload = wait(async move { client.put_multipart(&key).await.map_err(io_error) })?;
            self.state = State::Parts { upload, in_flight: Vec::new() };
        }
        let State::Parts { upload, in_flight } = &mut self.state else { return Err(ended()) };
        let (sender, receiver) = sync_channel(1);
        let sent = upload.put_part(part);
        threads()?.spawn(async move {
            let sent = catch_panic_async(async { sent.await.map_err(io_error) });
            let _ = sender.send(sent.await); // fails if the upload was dropped
        });
        in_flight.push(receiver);
        let all = in_flight.len();
        self.wait_for_parts(all.saturating_sub(PARTS_IN_FLIGHT))
    }

    /// Waits for the first `count` parts in flight.
    fn wait_for_parts(&mut self, count: usize) -> io::Result<()> {
        let State::Parts { in_flight, .. } = &mut self.state else { return Ok(()) };
        let mut sent = in_flight.drain(..count.min(in_flight.len()));
        let result = sent.try_for_each(|part| part.recv().unwrap_or_else(|_| Err(thread_ended())));
        drop(sent);
        if result.is_err() {
            self.abort();
        }
        result
    }

    /// Sends the remaining bytes, and makes the object appear.
    fn complete(&mut self) -> io::Result<()> {
        match &self.state {
            State::First => {
                let client = self.storage.client()?.clone();
                let (key, bytes) = (self.key.clone(), std::mem::take(&mut self.part));
                let mode = if self.replace { PutMode::Overwrite } else { PutMode::Create };
                self.state = State::Failed; // until the store has all bytes
                wait(put(client, key, bytes, mode))?;
            }
            State::Parts { .. } => {
                if !self.part.is_empty() {
                    self.send_part()?;
                }
                self.wait_for_parts(usize::MAX)?;
                let State::Parts { mut upload, .. } = std::mem::replace(&mut self.state, State::Failed) else {
                    return Err(ended());
                };
                wait(async move { upload.complete().await.map(drop).map_err(io_error) })?;
            }
            State::Published | State::Failed => return Err(ended()),
        }
        self.state = State::Published;
        Ok(())
    }

    /// Asks the store to remove the parts that were sent, and ignores failures.
    fn abort(&mut self) {
        if let State::Parts { mut upload, .. } = std::mem::replace(&mut self.state, State::Failed) {
            let _ = wait(async move { upload.abort().await.map_err(io_error) });
        }
    }
}

async fn put(client: Arc<dyn ObjectStore>, key: Path, bytes: Vec<u8>, mode: PutMode) -> io::Result<()> {
    let options = PutOptions { mode, ..PutOptions::default() };
    client.put_opts(&key, PutPayload::from(bytes), options).await.map(drop).map_err(io_error)
}

fn ended() -> io::Error {
    let text = "the upload is complete or has failed: it accepts no more data and cannot be published again";
    io::Error::new(io::ErrorKind::Unsupported, text)
}

impl Write for ObjectUpload {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if matches!(self.state, State::Published | State::Failed) {
            return Err(ended());
        }
        if self.part.len() >= PART_BYTES {
            self.send_part()?;
        }
        let count = bytes.len().min(PART_BYTES.saturating_sub(self.part.len()));
        self.part.try_reserve(count).map_err(|_| io::ErrorKind::OutOfMemory)?;
        self.part.extend_from_slice(bytes.get(..count).unwrap_or(bytes)); // in bounds
        Ok(count)
    }

    /// Does nothing: only whole parts are sent.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Sink for ObjectUpload {
    /// Does nothing: a published object is durable.
    fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn publish(&mut self) -> io::Result<()> {
        self.complete()
    }

    fn path(&self) -> Option<&FilePath> {
        Some(&self.path)
    }
}

impl Drop for ObjectUpload {
    fn drop(&mut self) {
        self.abort();
    }
}
