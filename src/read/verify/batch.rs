//! Some regions at a time, their bodies checked by several threads.

use super::body::{Body, BodyCheck};
use super::walk::{Met, Walk};
use crate::format::region::{HEAD, RegionHead, RegionKind};
use crate::le::u64_of;
use crate::{Error, threads};
use std::sync::{Mutex, PoisonError};

/// The limits of a batch: regions, and bytes of bodies for each thread. They are large enough for
/// threads to be worth starting, and small enough to bound the memory.
const REGIONS: usize = 4096;
const BYTES: u64 = 32 << 20;

/// The regions and damages that the walk has met, in the order of the file.
pub(super) struct Batch<'w, 'a> {
    walk: &'w mut Walk<'a>,
    met: Vec<(Met, Body)>,
    /// The error that ended the walk.
    error: Option<Error>,
    bytes_left: u64,
    is_closed: bool,
}

impl<'w, 'a> Batch<'w, 'a> {
    /// Walks on and checks bodies, with all of `workers`. The result does not depend on their
    /// number.
    pub(super) fn check(walk: &'w mut Walk<'a>, workers: &mut [BodyCheck<'a>]) -> (Vec<(Met, Body)>, Option<Error>) {
        let bytes_left = BYTES.saturating_mul(u64_of(workers.len()));
        let batch = Mutex::new(Self { walk, met: Vec::new(), error: None, bytes_left, is_closed: false });
        let lock = || batch.lock().unwrap_or_else(PoisonError::into_inner);
        threads::run(workers.iter_mut().map(|worker| {
            || {
                let worker = worker;
                // bodies are read directly after their heads: in the order of the file
                while let Some((place, head)) = { lock().take() } {
                    let found = worker.check(&head);
                    if let Some((_, body)) = lock().met.get_mut(place) {
                        *body = found;
                    }
                }
            }
        }));
        let batch = batch.into_inner().unwrap_or_else(PoisonError::into_inner);
        (batch.met, batch.error)
    }

    /// Walks on to the next body that a worker can check. Returns its position in the batch, too.
    fn take(&mut self) -> Option<(usize, RegionHead)> {
        while !self.is_closed {
            let place = self.met.len();
            match self.walk.next() {
                Ok(Some(met)) => self.met.push((met, Body::Unread)),
                Ok(None) => break,
                Err(error) => {
                    self.error = Some(error);
                    break;
                }
            }
            let region = match self.met.last() {
                Some((Met::Region(head), _)) => Some(*head),
                _ => None,
            };
            self.bytes_left = self.bytes_left.saturating_sub(region.map_or(HEAD, |head| head.body_bytes.into()));
            self.is_closed = self.bytes_left == 0 || self.met.len() >= REGIONS;
            if let Some(head) = region
                && matches!(head.kind, RegionKind::Chunk | RegionKind::Table)
            {
                return Some((place, head));
            }
        }
        self.is_closed = true;
        None
    }
}
