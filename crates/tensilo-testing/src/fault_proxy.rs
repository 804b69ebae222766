//! A proxy in front of a real server. When a test requests it, the proxy answers late, wrongly or
//! not at all.

use crate::http::{Faults, HttpFault, HttpRequest, Message, read_message};
use std::io::{self, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

/// A proxy on the loopback address. Each connection serves one request and is then closed. The
/// proxy stops when it is dropped.
pub struct FaultProxy {
    address: SocketAddr,
    shared: Arc<ProxyState>,
}

struct ProxyState {
    server: SocketAddr,
    faults: Faults,
    sent: AtomicUsize,
    is_ended: AtomicBool,
}

impl FaultProxy {
    /// Starts a proxy for a server.
    pub fn start(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let shared = Arc::new(ProxyState {
            server,
            faults: Faults::default(),
            sent: AtomicUsize::new(0),
            is_ended: AtomicBool::new(false),
        });
        let proxy = shared.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if proxy.is_ended.load(Ordering::Relaxed) {
                    return;
                }
                let proxy = proxy.clone();
                thread::spawn(move || proxy.serve(stream)); // the client may disconnect at any time
            }
        });
        Self { address, shared }
    }

    /// Returns the address that clients use instead of the server's.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Sets the function that chooses the fault of each later request.
    pub fn set_faults(&self, faults: impl Fn(&HttpRequest) -> Option<HttpFault> + Send + Sync + 'static) {
        self.shared.faults.set(faults);
    }

    /// Returns the requests since the last call.
    pub fn take_requests(&self) -> Vec<HttpRequest> {
        self.shared.faults.take_requests()
    }

    /// Returns the number of bytes of bodies that were sent since the last call.
    pub fn take_sent_bytes(&self) -> usize {
        self.shared.sent.swap(0, Ordering::Relaxed)
    }
}

impl Drop for FaultProxy {
    fn drop(&mut self) {
        self.shared.is_ended.store(true, Ordering::Relaxed);
        let _ = TcpStream::connect(self.address); // wakes the accepting thread
    }
}

impl ProxyState {
    fn serve(&self, mut client: TcpStream) -> io::Result<()> {
        client.set_nodelay(true)?;
        let Some(message) = read_message(&mut BufReader::new(client.try_clone()?))? else { return Ok(()) };
        let fault = self.faults.of(&message.request);
        match fault {
            Some(HttpFault::Status(status)) => {
                let answer = format!("HTTP/1.1 {status} .\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
                return client.write_all(answer.as_bytes());
            }
            Some(HttpFault::Reset) => return Ok(()),
            Some(HttpFault::Late(milliseconds)) => thread::sleep(Duration::from_millis(milliseconds)),
            _ => {}
        }
        let (head, body) = self.forward(&message, fault == Some(HttpFault::Whole))?;
        let has_body = !body.is_empty();
        let (head, sent) = match fault {
            Some(HttpFault::Cut(bytes)) => (head, bytes.min(body.len().saturating_sub(1))),
            Some(HttpFault::Short(bytes)) => {
                let left = body.len().saturating_sub(bytes);
                (head.replace(&format!("ength: {}", body.len()), &format!("ength: {left}")), left)
            }
            Some(HttpFault::Stall(_)) => (head, body.len() / 2),
            _ => (head, body.len()),
        };
        client.write_all(head.as_bytes())?;
        client.write_all(&body[..sent])?;
        self.sent.fetch_add(sent, Ordering::Relaxed);
        if let Some(HttpFault::Stall(milliseconds)) = fault
            && has_body
        {
            thread::sleep(Duration::from_millis(milliseconds));
        }
        Ok(())
    }

    /// Forwards a request to the server. Returns the header lines and the body of the response.
    fn forward(&self, message: &Message, is_whole: bool) -> io::Result<(String, Vec<u8>)> {
        let mut server = TcpStream::connect(self.server)?;
        let is_forwarded = |line: &&String| {
            let name = line.split(':').next().unwrap_or_default().to_ascii_lowercase();
            name != "connection" && !(is_whole && name == "range")
        };
        let mut head: String = message.head.iter().filter(is_forwarded).map(String::as_str).collect();
        head += "Connection: close\r\n\r\n";
        server.write_all(head.as_bytes())?;
        server.write_all(&message.body)?;
        let mut answer = Vec::new();
        server.read_to_end(&mut answer)?;
        let end = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n").map_or(answer.len(), |at| at + 4);
        let body = answer.split_off(end);
        Ok((String::from_utf8_lossy(&answer).into_owned(), body))
    }
}
