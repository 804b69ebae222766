//! An HTTP server for objects in memory. When a test requests it, the server answers late, wrongly
//! or not at all.

use crate::http::{Faults, HttpFault, HttpRequest, Message, lock, read_message};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{self, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// An HTTP server on the loopback address. It supports `HEAD`, and `GET` with at most one range,
/// and serves a page of links for each folder. It stops when it is dropped.
pub struct HttpServer {
    address: SocketAddr,
    shared: Arc<ServerState>,
}

#[derive(Default)]
struct ServerState {
    objects: Mutex<BTreeMap<String, Object>>,
    faults: Faults,
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
        let shared = Arc::new(ServerState::default());
        let server = shared.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if server.is_ended.load(Ordering::Relaxed) {
                    return;
                }
                let server = server.clone();
                thread::spawn(move || {
                    server.connections.fetch_add(1, Ordering::Relaxed);
                    let _ = server.serve(stream); // fails if the client disconnects
                    server.connections.fetch_sub(1, Ordering::Relaxed);
                });
            }
        });
        Self { address, shared }
    }

    /// Returns the URL of a path, which starts with `/`.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Adds or replaces an object. Replacing it changes its `ETag`.
    pub fn put(&self, path: &str, bytes: &[u8]) {
        let mut objects = lock(&self.shared.objects);
        let version = objects.get(path).map_or(1, |object| object.version + 1);
        objects.insert(path.to_owned(), Object { bytes: bytes.into(), version });
    }

    /// Sets the function that chooses the fault of each later request.
    pub fn set_faults(&self, faults: impl Fn(&HttpRequest) -> Option<HttpFault> + Send + Sync + 'static) {
        self.shared.faults.set(faults);
    }

    /// Returns the requests since the last call.
    pub fn take_requests(&self) -> Vec<HttpRequest> {
        self.shared.faults.take_requests()
    }

    /// Returns the number of body bytes sent since the last call.
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
        let _ = TcpStream::connect(self.address); // wakes the accepting thread
    }
}

impl ServerState {
    /// Answers the requests of a connection.
    fn serve(&self, stream: TcpStream) -> io::Result<()> {
        stream.set_nodelay(true)?;
        let mut reader = BufReader::new(stream.try_clone()?);
        let mut stream = stream;
        while let Some(Message { request, .. }) = read_message(&mut reader)? {
            let fault = self.faults.of(&request);
            let is_whole = self.answer(&request, fault, &mut stream)?;
            if !is_whole || self.is_ended.load(Ordering::Relaxed) {
                break;
            }
        }
        Ok(())
    }

    /// Answers a request. Returns whether the connection can be reused.
    fn answer(&self, request: &HttpRequest, fault: Option<HttpFault>, stream: &mut TcpStream) -> io::Result<bool> {
        match fault {
            Some(HttpFault::Status(status)) => return write_status(stream, status).map(|()| true),
            Some(HttpFault::Reset) => return Ok(false),
            Some(HttpFault::Late(milliseconds)) => thread::sleep(Duration::from_millis(milliseconds)),
            _ => {}
        }
        let found = lock(&self.objects).get(&request.path).cloned();
        let Some(object) = found.or_else(|| self.page(&request.path)) else {
            return write_status(stream, 404).map(|()| true);
        };
        if request.if_match.as_ref().is_some_and(|tag| *tag != object.tag()) {
            return write_status(stream, 412).map(|()| true);
        }
        let length = object.bytes.len() as u64;
        let requested_range = request.range.as_deref().filter(|_| fault != Some(HttpFault::Whole));
        let mut range = match requested_range.map(|range| parse_range(range, length)) {
            Some(None) => return write_status(stream, 416).map(|()| true),
            Some(Some(range)) => range,
            None => 0..length,
        };
        if let Some(HttpFault::Shifted(bytes)) = fault {
            range = (range.start + bytes).min(length)..(range.end + bytes).min(length);
        }
        let body = &object.bytes[range.start as usize..range.end as usize];
        let (content_length, sent) = match fault {
            Some(HttpFault::Short(bytes)) => (body.len().saturating_sub(bytes), body.len().saturating_sub(bytes)),
            Some(HttpFault::Cut(bytes)) => (body.len(), bytes.min(body.len())),
            Some(HttpFault::Stall(_)) => (body.len(), body.len() / 2),
            _ => (body.len(), body.len()),
        };
        let status = if requested_range.is_some() { "206 Partial Content" } else { "200 OK" };
        let mut head = format!("HTTP/1.1 {status}\r\nContent-Length: {content_length}\r\nETag: {}\r\n", object.tag());
        if requested_range.is_some() {
            head += &format!("Content-Range: bytes {}-{}/{length}\r\n", range.start, range.end.saturating_sub(1));
        }
        head += "Accept-Ranges: bytes\r\nLast-Modified: Wed, 25 Nov 2026 00:00:00 GMT\r\n\r\n";
        stream.write_all(head.as_bytes())?;
        if request.method == "HEAD" {
            return Ok(true);
        }
        let mut body = Cow::Borrowed(&body[..sent]);
        if fault == Some(HttpFault::WrongByte) && sent > 0 {
            body.to_mut()[0] ^= 1;
        }
        stream.write_all(&body)?;
        self.sent.fetch_add(sent, Ordering::Relaxed);
        if let Some(HttpFault::Stall(milliseconds)) = fault {
            thread::sleep(Duration::from_millis(milliseconds));
        }
        Ok(sent == content_length)
    }

    /// Returns the page of a folder, with links to its direct children.
    fn page(&self, path: &str) -> Option<Object> {
        let folder = format!("{}/", path.trim_end_matches('/'));
        let objects = lock(&self.objects);
        let below = objects.keys().filter_map(|path| path.strip_prefix(&folder));
        let mut names: Vec<String> = below
            .map(|path| match path.split_once('/') {
                Some((name, _)) => format!("{name}/"),
                None => path.to_owned(),
            })
            .collect();
        names.dedup();
        // absolute links, because the request may lack the trailing `/`
        let links = names.iter().map(|name| format!("<a href=\"{folder}{name}\">{name}</a>\n"));
        let page = format!("<html><a href=\"../\">../</a>\n{}</html>", links.collect::<String>());
        (!names.is_empty()).then(|| Object { bytes: page.into_bytes().into(), version: 0 })
    }
}

/// Parses the requested range; `None` if it is outside the object.
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

fn write_status(stream: &mut TcpStream, status: u16) -> io::Result<()> {
    stream.write_all(format!("HTTP/1.1 {status} .\r\nContent-Length: 0\r\n\r\n").as_bytes())
}
