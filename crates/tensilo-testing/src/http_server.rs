//! A host of objects in memory, which answers late, wrong or not at all if a test asks for it.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// A server of `http` on the loopback address: `GET` with one range, `HEAD`, and a page of links
/// for each folder. It ends when it is dropped.
pub struct HttpServer {
    address: SocketAddr,
    shared: Arc<Shared>,
}

/// A request that has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpRequest {
    /// The method, such as `GET`.
    pub method: String,
    /// The path, with its `/`.
    pub path: String,
    /// The range of bytes, as it is written: `0-99` or `-100`.
    pub range: Option<String>,
    /// The tag that the object must have.
    if_match: Option<String>,
}

/// A behaviour of a server instead of a right answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HttpFault {
    /// An answer with this status.
    Status(u16),
    /// The end of the connection instead of an answer.
    Reset,
    /// The end of the connection after so many bytes of the body.
    Cut(usize),
    /// A body that has so many bytes less, with a length that says so.
    Short(usize),
    /// Half of the body, and then nothing for so many milliseconds.
    Stall(u64),
    /// The whole object with status 200, whatever range was asked for.
    Whole,
    /// The range that begins so many bytes later.
    Shifted(u64),
    /// The right answer after so many milliseconds.
    Late(u64),
}

type Faults = dyn Fn(&HttpRequest) -> Option<HttpFault> + Send + Sync;

#[derive(Default)]
struct Shared {
    objects: Mutex<BTreeMap<String, Object>>,
    requests: Mutex<Vec<HttpRequest>>,
    faults: Mutex<Option<Arc<Faults>>>,
    connections: AtomicUsize,
    sent: AtomicUsize,
    is_ended: AtomicBool,
}

#[derive(Clone)]
struct Object {
    bytes: Arc<[u8]>,
    version: usize,
}

impl Object {
    fn tag(&self) -> String {
        format!("\"{}\"", self.version)
    }
}

impl HttpServer {
    /// Starts a server without objects.
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let shared = Arc::new(Shared::default());
        let server = shared.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if server.is_ended.load(Ordering::Relaxed) {
                    return;
                }
                let server = server.clone();
                thread::spawn(move || {
                    server.connections.fetch_add(1, Ordering::Relaxed);
                    let _ = server.serve(stream); // the client has gone
                    server.connections.fetch_sub(1, Ordering::Relaxed);
                });
            }
        });
        Self { address, shared }
    }

    /// Returns the URL of a path, which begins with `/`.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Adds an object, or replaces it: then it has another tag.
    pub fn put(&self, path: &str, bytes: &[u8]) {
        let mut objects = locked(&self.shared.objects);
        let version = objects.get(path).map_or(1, |object| object.version + 1);
        objects.insert(path.to_owned(), Object { bytes: bytes.into(), version });
    }

    /// Sets what goes wrong, from now on. The function is called for each request.
    pub fn set_faults(&self, faults: impl Fn(&HttpRequest) -> Option<HttpFault> + Send + Sync + 'static) {
        *locked(&self.shared.faults) = Some(Arc::new(faults));
    }

    /// Returns the requests since the last call.
    pub fn take_requests(&self) -> Vec<HttpRequest> {
        std::mem::take(&mut *locked(&self.shared.requests))
    }

    /// Returns the bytes of bodies that were sent since the last call.
    pub fn take_sent_bytes(&self) -> usize {
        self.shared.sent.swap(0, Ordering::Relaxed)
    }

    /// Returns the number of open connections.
    pub fn connections(&self) -> usize {
        self.shared.connections.load(Ordering::Relaxed)
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        self.shared.is_ended.store(true, Ordering::Relaxed);
        let _ = TcpStream::connect(self.address); // wakes it
    }
}

impl Shared {
    /// Answers the requests of a connection.
    fn serve(&self, stream: TcpStream) -> io::Result<()> {
        stream.set_nodelay(true)?;
        let mut reader = BufReader::new(stream.try_clone()?);
        let mut stream = stream;
        while let Some(request) = read_request(&mut reader)? {
            locked(&self.requests).push(request.clone());
            let faults = locked(&self.faults).clone();
            let fault = faults.and_then(|faults| faults(&request));
            let is_whole = self.answer(&request, fault, &mut stream)?;
            if !is_whole || self.is_ended.load(Ordering::Relaxed) {
                break;
            }
        }
        Ok(())
    }

    /// Answers a request. Returns whether the connection can be used again.
    fn answer(&self, request: &HttpRequest, fault: Option<HttpFault>, stream: &mut TcpStream) -> io::Result<bool> {
        match fault {
            Some(HttpFault::Status(status)) => return status_alone(stream, status).map(|()| true),
            Some(HttpFault::Reset) => return Ok(false),
            Some(HttpFault::Late(milliseconds)) => thread::sleep(Duration::from_millis(milliseconds)),
            _ => {}
        }
        let found = locked(&self.objects).get(&request.path).cloned();
        let Some(object) = found.or_else(|| self.page(&request.path)) else {
            return status_alone(stream, 404).map(|()| true);
        };
        if request.if_match.as_ref().is_some_and(|tag| *tag != object.tag()) {
            return status_alone(stream, 412).map(|()| true);
        }
        let length = object.bytes.len() as u64;
        let asked = request.range.as_deref().filter(|_| fault != Some(HttpFault::Whole));
        let mut range = match asked.map(|range| parse_range(range, length)) {
            Some(None) => return status_alone(stream, 416).map(|()| true),
            Some(Some(range)) => range,
            None => 0..length,
        };
        if let Some(HttpFault::Shifted(bytes)) = fault {
            range = (range.start + bytes).min(length)..(range.end + bytes).min(length);
        }
        let body = &object.bytes[range.start as usize..range.end as usize];
        let (told, sent) = match fault {
            Some(HttpFault::Short(bytes)) => (body.len().saturating_sub(bytes), body.len().saturating_sub(bytes)),
            Some(HttpFault::Cut(bytes)) => (body.len(), bytes.min(body.len())),
            Some(HttpFault::Stall(_)) => (body.len(), body.len() / 2),
            _ => (body.len(), body.len()),
        };
        let status = if asked.is_some() { "206 Partial Content" } else { "200 OK" };
        let mut head = format!("HTTP/1.1 {status}\r\nContent-Length: {told}\r\nETag: {}\r\n", object.tag());
        if asked.is_some() {
            head += &format!("Content-Range: bytes {}-{}/{length}\r\n", range.start, range.end.saturating_sub(1));
        }
        head += "Accept-Ranges: bytes\r\nLast-Modified: Wed, 25 Nov 2026 00:00:00 GMT\r\n\r\n";
        stream.write_all(head.as_bytes())?;
        if request.method == "HEAD" {
            return Ok(true);
        }
        stream.write_all(&body[..sent])?;
        self.sent.fetch_add(sent, Ordering::Relaxed);
        if let Some(HttpFault::Stall(milliseconds)) = fault {
            thread::sleep(Duration::from_millis(milliseconds));
        }
        Ok(sent == told)
    }

    /// Returns the page of a folder: links to what is directly below it.
    fn page(&self, path: &str) -> Option<Object> {
        let folder = format!("{}/", path.trim_end_matches('/'));
        let objects = locked(&self.objects);
        let below = objects.keys().filter_map(|path| path.strip_prefix(&folder));
        let mut names: Vec<String> = below
            .map(|path| match path.split_once('/') {
                Some((name, _)) => format!("{name}/"),
                None => path.to_owned(),
            })
            .collect();
        names.dedup();
        // a base, since the request may come without the `/` at its end
        let links = names.iter().map(|name| format!("<a href=\"{folder}{name}\">{name}</a>\n"));
        let page = format!("<html><a href=\"../\">../</a>\n{}</html>", links.collect::<String>());
        (!names.is_empty()).then(|| Object { bytes: page.into_bytes().into(), version: 0 })
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Reads the head of a request, and its body, which counts for nothing. `None` at the end.
fn read_request(reader: &mut impl BufRead) -> io::Result<Option<HttpRequest>> {
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let mut words = line.split_whitespace();
    let mut word = || words.next().unwrap_or_default().to_owned();
    let mut request = HttpRequest { method: word(), path: word(), range: None, if_match: None };
    let mut body_bytes = 0;
    loop {
        let mut header = String::new();
        if reader.read_line(&mut header)? == 0 {
            return Ok(None);
        }
        let Some((name, value)) = header.trim_end().split_once(": ") else { break };
        match name.to_ascii_lowercase().as_str() {
            "range" => request.range = value.strip_prefix("bytes=").map(str::to_owned),
            "if-match" => request.if_match = Some(value.to_owned()),
            "content-length" => body_bytes = value.parse().unwrap_or(0),
            _ => {}
        }
    }
    io::copy(&mut reader.take(body_bytes), &mut io::sink())?;
    Ok(Some(request))
}

/// Returns the range that a header asks for; `None` if it is outside of the object.
fn parse_range(text: &str, length: u64) -> Option<Range<u64>> {
    let (start, end) = text.split_once('-')?;
    let range = match (start.parse::<u64>(), end.parse::<u64>()) {
        (Ok(start), Ok(last)) => start..(last + 1).min(length),
        (Ok(start), Err(_)) => start..length,
        (Err(_), Ok(suffix)) => length.saturating_sub(suffix)..length,
        (Err(_), Err(_)) => return None,
    };
    (!range.is_empty()).then_some(range)
}

fn status_alone(stream: &mut TcpStream, status: u16) -> io::Result<()> {
    stream.write_all(format!("HTTP/1.1 {status} .\r\nContent-Length: 0\r\n\r\n").as_bytes())
}
