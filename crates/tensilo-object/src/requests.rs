//! The requests of one read.

use crate::options::ObjectOptions;
use crate::runtime::gone;
use bytes::Bytes;
use std::collections::VecDeque;
use std::io;
use std::ops::Range;
use std::sync::mpsc::{self, Receiver, Sender};
use tokio::task::AbortHandle;

/// A part of a range of the caller: the number of the range, and its bytes in the object.
pub(crate) type Wanted = (usize, Range<u64>);

/// Bytes to ask for by one request, and the parts of ranges that they have.
pub(crate) struct Asked {
    pub bytes: Range<u64>,
    pub parts: Vec<Wanted>,
}

impl Asked {
    pub(crate) fn first_range(&self) -> usize {
        self.parts.first().map_or(0, |(range, _)| *range)
    }
}

/// Returns the requests for parts of ranges: those with small gaps are one.
pub(crate) fn joined(mut parts: Vec<Wanted>, options: &ObjectOptions) -> VecDeque<Asked> {
    parts.sort_unstable_by_key(|(_, bytes)| bytes.start);
    let mut asked: VecDeque<Asked> = VecDeque::new();
    for (range, bytes) in parts {
        match asked.back_mut() {
            Some(last)
                if bytes.start <= last.bytes.end.saturating_add(options.gap_bytes)
                    && bytes.end.saturating_sub(last.bytes.start) <= options.part_bytes =>
            {
                last.bytes.end = last.bytes.end.max(bytes.end);
                last.parts.push((range, bytes));
            }
            _ => asked.push_back(Asked { bytes: bytes.clone(), parts: vec![(range, bytes)] }),
        }
    }
    asked
}

type Answer = (Asked, io::Result<Bytes>);

/// The answer of a request, which is sent however the request ends.
pub(crate) struct Reply {
    sender: Sender<Answer>,
    answer: Option<Answer>,
}

impl Reply {
    /// Sends what was found.
    pub(crate) fn send(mut self, found: io::Result<Bytes>) {
        if let Some((_, result)) = &mut self.answer {
            *result = found;
        }
    }
}

impl Drop for Reply {
    fn drop(&mut self) {
        let answer = self.answer.take();
        let _ = answer.map(|answer| self.sender.send(answer)); // nobody waits any more
    }
}

/// The requests of one read that are in flight. Those that nobody waits for any more are given up.
pub(crate) struct Requests {
    sender: Sender<Answer>,
    receiver: Receiver<Answer>,
    tasks: Vec<AbortHandle>,
    in_flight: usize,
}

impl Requests {
    pub(crate) fn new() -> Self {
        let (sender, receiver) = mpsc::channel();
        Self { sender, receiver, tasks: Vec::new(), in_flight: 0 }
    }

    pub(crate) fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// Returns the means to answer a request.
    pub(crate) fn reply(&self, asked: Asked) -> Reply {
        Reply { sender: self.sender.clone(), answer: Some((asked, Err(gone()))) }
    }

    /// Adds a request that was begun, and has a reply.
    pub(crate) fn add(&mut self, task: AbortHandle) {
        self.tasks.push(task);
        self.in_flight += 1;
    }

    /// Waits for the next answer. One is in flight.
    pub(crate) fn next(&mut self) -> Answer {
        self.in_flight = self.in_flight.saturating_sub(1);
        // there is an answer for each request, and this holds a sender
        self.receiver.recv().unwrap_or_else(|_| (Asked { bytes: 0..0, parts: Vec::new() }, Err(gone())))
    }
}

impl Drop for Requests {
    fn drop(&mut self) {
        self.tasks.iter().for_each(AbortHandle::abort);
    }
}
