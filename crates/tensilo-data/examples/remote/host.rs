//! An nginx server on the loopback address that counts its requests.

use std::fs;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

type Failure = Box<dyn std::error::Error>;

/// An nginx server on the loopback address.
pub struct Host {
    process: Child,
    address: SocketAddr,
    folder: tempfile::TempDir,
    counted: std::cell::Cell<usize>,
}

impl Host {
    /// Starts a server for the files of a folder.
    pub fn start(files: &Path) -> Result<Self, Failure> {
        let folder = tempfile::tempdir()?;
        let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
        let directory = folder.path().display();
        let paths = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
        let paths: String = paths.iter().map(|name| format!("{name}_temp_path {directory}/{name};")).collect();
        let configuration = format!(
            "daemon off; master_process off; pid {directory}/pid; error_log {directory}/errors; events {{ worker_connections 4096; }}
            http {{ access_log {directory}/requests; {paths} keepalive_requests 100000;
            server {{ listen {address}; root {}; autoindex on; }} }}",
            files.display()
        );
        let path = folder.path().join("nginx.conf");
        fs::write(&path, configuration)?;
        let mut command = Command::new("nginx");
        command
            .arg("-e")
            .arg(folder.path().join("errors"))
            .arg("-c")
            .arg(path)
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let host = Self { process: command.spawn()?, address, folder, counted: std::cell::Cell::new(0) };
        let end = Instant::now() + Duration::from_secs(10);
        while TcpStream::connect(address).is_err() {
            if Instant::now() > end {
                return Err("nginx does not listen".into());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(host)
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the number of requests since the last call.
    pub fn take_requests(&self) -> Result<usize, Failure> {
        let path: PathBuf = self.folder.path().join("requests");
        let all = fs::read_to_string(path)?.lines().count();
        Ok(all - self.counted.replace(all))
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
