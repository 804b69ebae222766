//! HTTP requests, and the faults that a test injects.

use crate::random::{Random, mix};
use std::io::{self, BufRead, Read};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A received request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpRequest {
    /// The method, such as `GET`.
    pub method: String,
    /// The path, with its `/`.
    pub path: String,
    /// The requested byte range, as written: `0-99` or `-100`.
    pub range: Option<String>,
    /// The `ETag` that the object must have.
    pub(crate) if_match: Option<String>,
}

/// A fault that a server produces instead of a correct response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HttpFault {
    /// A response with this status.
    Status(u16),
    /// A closed connection instead of a response.
    Reset,
    /// A connection that is closed after this number of bytes of the body.
    Cut(usize),
    /// A body that is shorter by this number of bytes, with a matching `Content-Length`.
    Short(usize),
    /// Half of the body, then nothing for this number of milliseconds.
    Stall(u64),
    /// The whole object with status 200, regardless of the requested range.
    Whole,
    /// A range that starts and ends this number of bytes later than requested.
    Shifted(u64),
    /// The correct response after this number of milliseconds.
    Late(u64),
    /// A body whose first byte is wrong.
    WrongByte,
}

/// The faults of [`random_faults`]: all except a wrong byte.
const ALL_FAULTS: [HttpFault; 10] = [
    HttpFault::Status(500),
    HttpFault::Status(503),
    HttpFault::Status(404),
    HttpFault::Reset,
    HttpFault::Cut(7),
    HttpFault::Short(3),
    HttpFault::Stall(150),
    HttpFault::Whole,
    HttpFault::Shifted(1),
    HttpFault::Late(20),
];

/// Returns a function that chooses, on average, for one request in `rate`, a random fault. The seed
/// makes the faults reproducible.
pub fn random_faults(seed: u64, rate: u64) -> impl Fn(&HttpRequest) -> Option<HttpFault> + Send + Sync + 'static {
    let count = AtomicU64::new(0);
    move |_| {
        let mut random = Random(mix(seed, count.fetch_add(1, Ordering::Relaxed)));
        random.one_in(rate).then(|| random.pick(&ALL_FAULTS))
    }
}

type FaultFn = dyn Fn(&HttpRequest) -> Option<HttpFault> + Send + Sync;

/// The received requests, and the function that chooses faults.
#[derive(Default)]
pub(crate) struct Faults {
    requests: Mutex<Vec<HttpRequest>>,
    fault_of: Mutex<Option<Arc<FaultFn>>>,
}

impl Faults {
    pub(crate) fn set(&self, fault_of: impl Fn(&HttpRequest) -> Option<HttpFault> + Send + Sync + 'static) {
        *lock(&self.fault_of) = Some(Arc::new(fault_of));
    }

    /// Records a request, and returns its fault.
    pub(crate) fn of(&self, request: &HttpRequest) -> Option<HttpFault> {
        lock(&self.requests).push(request.clone());
        let fault_of = lock(&self.fault_of).clone();
        fault_of.and_then(|fault_of| fault_of(request))
    }

    pub(crate) fn take_requests(&self) -> Vec<HttpRequest> {
        std::mem::take(&mut *lock(&self.requests))
    }
}

/// A request with its header lines and its body.
pub(crate) struct Message {
    pub request: HttpRequest,
    /// The request line and the header lines with their line ends, but without the final empty
    /// line.
    pub head: Vec<String>,
    pub body: Vec<u8>,
}

/// Reads a request; `None` at the end of the connection.
pub(crate) fn read_message(reader: &mut impl BufRead) -> io::Result<Option<Message>> {
    let mut head = Vec::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        if line.trim_end().is_empty() {
            break;
        }
        head.push(line);
    }
    let mut words = head.first().map(String::as_str).unwrap_or_default().split_whitespace();
    let mut word = || words.next().unwrap_or_default().to_owned();
    let mut request = HttpRequest { method: word(), path: word(), range: None, if_match: None };
    let mut length = 0;
    for (name, value) in head.iter().skip(1).filter_map(|line| line.split_once(':')) {
        let value = value.trim();
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.parse().unwrap_or(0),
            "range" => request.range = value.strip_prefix("bytes=").map(str::to_owned),
            "if-match" => request.if_match = Some(value.to_owned()),
            _ => {}
        }
    }
    let mut body = Vec::new();
    reader.take(length).read_to_end(&mut body)?;
    Ok(Some(Message { request, head, body }))
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
