//! A proxy that adds latency and limits the bandwidth, like a link to a distant object store.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// The maximum number of bytes that are read at once.
const BUFFER_BYTES: usize = 64 << 10;
/// The maximum number of buffers in flight in one direction.
const QUEUE_CAPACITY: usize = 1024;

/// A proxy on the loopback address. It delays requests and forwards responses at once, so the delay
/// is the round-trip time. It stops when it is dropped.
pub struct DelayProxy {
    address: SocketAddr,
    is_ended: Arc<AtomicBool>,
}

impl DelayProxy {
    /// Starts a proxy for a server.
    pub fn start(server: SocketAddr, delay: Duration) -> Self {
        Self::start_on(server, delay, None)
    }

    /// Starts a proxy for a server. The responses of all connections share a link of `rate` bytes
    /// per second, and each connection delivers at most `connection_rate` bytes per second.
    pub fn start_limited(server: SocketAddr, delay: Duration, rate: u64, connection_rate: u64) -> Self {
        Self::start_on(server, delay, Some((Arc::new(Link::new(rate)), connection_rate)))
    }

    fn start_on(server: SocketAddr, delay: Duration, limits: Option<(Arc<Link>, u64)>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let is_ended = Arc::new(AtomicBool::new(false));
        let ended = is_ended.clone();
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                if ended.load(Ordering::Relaxed) {
                    return;
                }
                let limits = limits.clone();
                let _ = connect(client, server, delay, limits); // on failure, closes the connection
            }
        });
        Self { address, is_ended }
    }

    /// Returns the address that clients use instead of the server's.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for DelayProxy {
    fn drop(&mut self) {
        self.is_ended.store(true, Ordering::Relaxed);
        let _ = TcpStream::connect(self.address); // wakes the accepting thread
    }
}

/// A link with a limited bandwidth.
struct Link {
    /// Bytes per second.
    rate: u64,
    /// The time at which the link is free again.
    free_at: Mutex<Instant>,
}

impl Link {
    fn new(rate: u64) -> Self {
        Self { rate, free_at: Mutex::new(Instant::now()) }
    }

    /// Waits until `bytes` bytes have passed through the link.
    fn throttle(&self, bytes: usize) {
        let deliver_at = {
            let mut free_at = self.free_at.lock().unwrap_or_else(PoisonError::into_inner);
            *free_at = (*free_at).max(Instant::now()) + Duration::from_secs_f64(bytes as f64 / self.rate as f64);
            *free_at
        };
        thread::sleep(deliver_at.saturating_duration_since(Instant::now()));
    }
}

/// Copies all bytes, at the rate of the slowest link.
fn copy(from: &mut TcpStream, to: &mut TcpStream, links: &[&Link]) -> io::Result<()> {
    let mut bytes = vec![0; BUFFER_BYTES];
    loop {
        let count = from.read(&mut bytes)?;
        if count == 0 {
            return Ok(());
        }
        links.iter().for_each(|link| link.throttle(count));
        to.write_all(&bytes[..count])?;
    }
}

/// Connects a client to a server.
fn connect(client: TcpStream, server: SocketAddr, delay: Duration, limits: Option<(Arc<Link>, u64)>) -> io::Result<()> {
    let server = TcpStream::connect(server)?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let (mut to_client, mut from_server) = (client.try_clone()?, server.try_clone()?);
    thread::spawn(move || {
        let _ = match limits {
            Some((link, rate)) => copy(&mut from_server, &mut to_client, &[&Link::new(rate), &link]),
            None => io::copy(&mut from_server, &mut to_client).map(drop),
        }; // fails if either side disconnects
        let _ = to_client.shutdown(Shutdown::Write);
    });
    let (sender, receiver) = sync_channel::<(Instant, Vec<u8>)>(QUEUE_CAPACITY);
    thread::spawn(move || {
        let mut server = server;
        for (deliver_at, bytes) in receiver {
            thread::sleep(deliver_at.saturating_duration_since(Instant::now()));
            if server.write_all(&bytes).is_err() {
                return;
            }
        }
        let _ = server.shutdown(Shutdown::Write);
    });
    thread::spawn(move || {
        let (mut client, mut bytes) = (client, vec![0; BUFFER_BYTES]);
        while let Ok(count) = client.read(&mut bytes) {
            let is_taken = count > 0 && sender.send((Instant::now() + delay, bytes[..count].to_vec())).is_ok();
            if !is_taken {
                return;
            }
        }
    });
    Ok(())
}
