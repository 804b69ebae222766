//! One request for bytes of an object, and the checks of its response.
//!
//! An object may be replaced while it is read, and bytes of two versions must never mix. So opening
//! pins a version: the length, and the ETag or the time of the last change. Each request sends the
//! ETag as a condition if the store can check it, and each response must report the pinned version.
//!
//! The client library retries requests that fail, but not requests whose response ends early. These
//! are retried here.

use crate::error::{io_error, replaced};
use crate::runtime::threads;
use bytes::Bytes;
use futures_util::{Stream, StreamExt};
use object_store::path::Path;
use object_store::{GetOptions, GetRange, ObjectMeta, ObjectStore};
use std::io;
use std::ops::Range;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::sleep;

/// The maximum number of attempts if responses end early. The client retries requests that fail in
/// other ways.
const MAX_SHORT_RESPONSES: u32 = 5;

/// The version of an object that was opened, which all responses must match.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ObjectVersion {
    pub byte_count: u64,
    /// The ETag; `None` if the store does not report one.
    etag: Option<String>,
    /// The time of the last change, in seconds since 1970; 0 if the store does not report it.
    last_modified: i64,
}

impl ObjectVersion {
    pub(crate) fn of(meta: &ObjectMeta) -> Self {
        Self { byte_count: meta.size, etag: meta.e_tag.clone(), last_modified: meta.last_modified.timestamp() }
    }

    /// Returns a string that differs between versions. Returns `None` if the store reports nothing
    /// that distinguishes versions.
    pub(crate) fn version(&self) -> Option<String> {
        let of = |what: &str| format!("{} bytes, {what}", self.byte_count);
        match &self.etag {
            Some(etag) => Some(of(etag)),
            None => (self.last_modified != 0).then(|| of(&self.last_modified.to_string())),
        }
    }

    /// Returns the ETag as a condition for the store to check; `None` if the store cannot check it.
    fn condition(&self) -> Option<String> {
        // in an `If-Match` condition, weak ETags never match
        self.etag.clone().filter(|etag| !etag.starts_with("W/"))
    }

    /// Checks that a response belongs to this version. Times are compared only if there is no ETag,
    /// because copies of an object may have the same ETag but different times.
    fn check(&self, meta: &ObjectMeta) -> io::Result<()> {
        let found = Self::of(meta);
        let is_same = match (&self.etag, &found.etag) {
            (Some(etag), found) => found.as_ref() == Some(etag),
            (None, _) => found.last_modified == self.last_modified,
        };
        if is_same && found.byte_count == self.byte_count { Ok(()) } else { Err(replaced()) }
    }
}

/// Reads a range of an object, and retries if too few bytes arrive.
pub(crate) async fn read(
    store: Arc<dyn ObjectStore>,
    key: Path,
    pinned: ObjectVersion,
    range: Range<u64>,
) -> io::Result<Bytes> {
    let mut delay = Duration::from_millis(50);
    let mut attempts = 1;
    loop {
        let options = GetOptions {
            range: Some(GetRange::Bounded(range.clone())),
            if_match: pinned.condition(),
            ..GetOptions::default()
        };
        match response(&*store, &key, options).await {
            Ok((meta, found, bytes)) => {
                pinned.check(&meta)?;
                if found == range {
                    return Ok(bytes);
                }
                if attempts >= MAX_SHORT_RESPONSES {
                    return Err(short_response(&range, found.end.saturating_sub(found.start)));
                }
            }
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted && attempts < MAX_SHORT_RESPONSES => {}
            Err(error) => return Err(error),
        }
        attempts += 1;
        sleep(delay).await;
        delay *= 2;
    }
}

/// Reads bytes of an object. Returns the object's metadata, the range that was sent, and its bytes.
pub(crate) async fn response(
    store: &dyn ObjectStore,
    key: &Path,
    options: GetOptions,
) -> io::Result<(ObjectMeta, Range<u64>, Bytes)> {
    response_up_to(store, key, options, u64::MAX).await
}

/// Like [`response`], but fails with [`io::ErrorKind::FileTooLarge`] if there are more than
/// `max_bytes` bytes.
pub(crate) async fn response_up_to(
    store: &dyn ObjectStore,
    key: &Path,
    options: GetOptions,
    max_bytes: u64,
) -> io::Result<(ObjectMeta, Range<u64>, Bytes)> {
    let _permit = threads()?.requests.acquire().await;
    let result = store.get_opts(key, options).await.map_err(io_error)?;
    let (meta, range) = (result.meta.clone(), result.range.clone());
    if range.end.saturating_sub(range.start) > max_bytes {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("the object has more than {max_bytes} bytes")));
    }
    let bytes = body(&range, result.into_stream()).await?;
    Ok((meta, range, bytes))
}

/// Reads the body of a response. Fails unless the body is exactly as long as the range.
async fn body(range: &Range<u64>, stream: impl Stream<Item = object_store::Result<Bytes>> + Send) -> io::Result<Bytes> {
    let length = usize::try_from(range.end.saturating_sub(range.start)).unwrap_or(usize::MAX);
    let mut stream = pin!(stream);
    let mut bytes = Vec::new();
    while let Some(received) = stream.next().await {
        let received = received.map_err(io_error)?;
        if received.len() > length - bytes.len() {
            return Err(io::Error::other(format!("the store sent more than the {length} requested bytes")));
        }
        if received.len() == length {
            return Ok(received); // without a copy
        }
        if bytes.capacity() == 0 {
            bytes.try_reserve_exact(length).map_err(|_| io::ErrorKind::OutOfMemory)?;
        }
        bytes.extend_from_slice(&received);
    }
    if bytes.len() == length { Ok(bytes.into()) } else { Err(short_response(range, bytes.len() as u64)) }
}

/// Returns the error of a response that ended early, which is worth a retry.
fn short_response(range: &Range<u64>, found: u64) -> io::Error {
    let expected = range.end.saturating_sub(range.start);
    let text = format!("the store sent {found} of {expected} bytes at offset {}", range.start);
    io::Error::new(io::ErrorKind::ConnectionAborted, text)
}
