//! The S3 server of the cluster.

use super::Failure;
use std::io::{self, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tensilo_object::ObjectOptions;

/// A running server with the bucket `bucket`.
pub struct Server {
    process: Child,
    address: SocketAddr,
}

impl Server {
    pub fn start() -> Result<Self, Failure> {
        let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
        let folder = std::env::var_os("TENSILO_SERVERS").map(PathBuf::from);
        let program = folder.map_or("moto_server".into(), |folder| folder.join("venv/bin/moto_server"));
        let mut command = Command::new(&program);
        command.args(["-H", "127.0.0.1", "-p"]).arg(address.port().to_string());
        let process = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let process = process.map_err(|error| {
            format!("{}: {error}; install it with: pip install 'moto[s3,server]'", program.display())
        })?;
        let server = Self { process, address };
        let end = Instant::now() + Duration::from_secs(60);
        while !put_bucket(address).unwrap_or(false) {
            if Instant::now() > end {
                return Err("moto_server does not listen".into());
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(server)
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Creates the bucket. Returns whether it exists.
fn put_bucket(server: SocketAddr) -> io::Result<bool> {
    let mut stream = TcpStream::connect(server)?;
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    write!(stream, "PUT /bucket HTTP/1.1\r\nHost: {server}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")?;
    Ok(io::read_to_string(stream)?.starts_with("HTTP/1.1 200"))
}

/// Returns options for the server, or for a proxy in front of it, at this address.
pub fn options(address: SocketAddr) -> ObjectOptions {
    ObjectOptions::new()
        .setting("aws_endpoint_url", format!("http://{address}"))
        .setting("aws_access_key_id", "test")
        .setting("aws_secret_access_key", "test")
        .setting("aws_region", "us-east-1")
}
