//! Reading objects through a cache.

use super::pieces::CachedObject;
use crate::request::{self, Pinned};
use crate::runtime::{blocking, threads};
use bytes::Bytes;
use object_store::ObjectStore;
use object_store::path::Path;
use std::io;
use std::ops::Range;
use std::sync::Arc;

/// Reads a range of an object: from the cache, if there is one that has it. Otherwise fetches all
/// pieces that it is in, and keeps them.
pub(crate) async fn read(
    store: Arc<dyn ObjectStore>,
    key: Path,
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
