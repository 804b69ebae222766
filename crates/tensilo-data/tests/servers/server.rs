//! Servers that tests start.

use std::fs;
use std::io::{self, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tensilo_object::ObjectOptions;
use tensilo_testing::{Folder, available};

/// The default account of Azurite.
const AZURITE_ACCOUNT: &str = "devstoreaccount1";
const AZURITE_KEY: &str = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

/// A running server.
pub struct Server {
    process: Child,
    pub address: SocketAddr,
    _folder: Folder,
}

impl Server {
    /// Starts a program that listens on the port it is given, and waits until it is ready. If the
    /// program ends, another test took its port, and it gets another one.
    fn start(folder: Folder, command: impl Fn(u16) -> Command, is_ready: fn(SocketAddr) -> bool) -> Self {
        let end = Instant::now() + Duration::from_secs(60);
        let start = || {
            let port = free_port();
            let process = command(port).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the server starts");
            (process, SocketAddr::from(([127, 0, 0, 1], port)))
        };
        let (process, address) = start();
        let mut server = Self { process, address, _folder: folder };
        loop {
            if server.process.try_wait().expect("its state").is_some() {
                (server.process, server.address) = start();
            } else if is_ready(server.address) {
                return server;
            }
            assert!(Instant::now() < end, "the server is not ready");
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Returns a free port.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address").port()
}

/// Returns the path of a program if it is installed.
fn found(program: &str) -> Option<PathBuf> {
    let path = match program {
        "nginx" => Path::new("/usr/sbin/nginx").to_path_buf(),
        program => PathBuf::from(std::env::var_os("TENSILO_SERVERS")?).join(program),
    };
    path.exists().then_some(path)
}

/// Returns the path of a program. If it is not installed, the test is skipped, or fails if servers
/// are required.
fn program(name: &str) -> Option<PathBuf> {
    available(name, found(name).ok_or("it is not installed"), "TENSILO_REQUIRE_SERVERS")
}

/// Starts a server with the protocol of S3 and the bucket `bucket`.
pub fn s3() -> Option<Server> {
    let program = program("venv/bin/moto_server")?;
    let command = |port: u16| {
        let mut command = Command::new(&program);
        command.args(["-H", "127.0.0.1", "-p"]).arg(port.to_string());
        command
    };
    Some(Server::start(Folder::new(), command, |server| put_bucket(server).unwrap_or(false)))
}

/// Creates the bucket `bucket`. Returns whether it exists: an earlier answer may have been lost.
fn put_bucket(server: SocketAddr) -> io::Result<bool> {
    let mut stream = TcpStream::connect(server)?;
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    write!(stream, "PUT /bucket HTTP/1.1\r\nHost: {server}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")?;
    let answer = io::read_to_string(stream)?;
    Ok(["HTTP/1.1 200", "HTTP/1.1 409"].iter().any(|status| answer.starts_with(status)))
}

/// Returns whether a server accepts connections.
fn listens(server: SocketAddr) -> bool {
    TcpStream::connect(server).is_ok()
}

/// Starts a server with the protocol of Azure and the container `container`.
pub fn azure() -> Option<Server> {
    let program = program("node_modules/.bin/azurite-blob")?;
    let folder = Folder::new();
    let directory = folder.root().to_path_buf();
    let command = |port: u16| {
        let mut command = Command::new(&program);
        command.args(["--blobHost", "127.0.0.1", "--skipApiVersionCheck", "--silent", "--blobPort"]);
        command.arg(port.to_string()).arg("--location").arg(&directory);
        command
    };
    Some(Server::start(folder, command, put_container))
}

/// Creates the container `container`. Returns whether it exists. The request needs a signature,
/// which Node.js can compute.
fn put_container(server: SocketAddr) -> bool {
    let script = r#"
        const [port, account, key] = process.argv.slice(1);
        const date = new Date().toUTCString();
        const resource = `/${account}/${account}/container\nrestype:container`;
        const text = `PUT\n\n\n\n\n\n\n\n\n\n\n\nx-ms-date:${date}\nx-ms-version:2021-12-02\n${resource}`;
        const mac = require("crypto").createHmac("sha256", Buffer.from(key, "base64")).update(text, "utf8").digest("base64");
        const headers = { "x-ms-date": date, "x-ms-version": "2021-12-02", "content-length": 0,
                          authorization: `SharedKey ${account}:${mac}` };
        const path = `/${account}/container?restype=container`;
        const request = require("http").request({ host: "127.0.0.1", port, method: "PUT", path, headers }, answer => {
            process.exitCode = [201, 409].includes(answer.statusCode) ? 0 : 1;
            answer.resume();
        });
        request.end();
    "#;
    let mut command = Command::new("node");
    command.args(["-e", script]).arg(server.port().to_string()).args([AZURITE_ACCOUNT, AZURITE_KEY]);
    command.output().expect("node starts").status.success()
}

/// Starts a host of the files of a folder.
pub fn host(files: &Path) -> Option<Server> {
    let program = program("nginx")?;
    let folder = Folder::new();
    let root = folder.root().to_path_buf();
    let command = |port: u16| {
        let configuration = format!(
            "daemon off; master_process off; pid {0}/pid; error_log {0}/errors; events {{}}
            http {{
                access_log off; client_body_temp_path {0}/body; proxy_temp_path {0}/proxy;
                fastcgi_temp_path {0}/fastcgi; uwsgi_temp_path {0}/uwsgi; scgi_temp_path {0}/scgi;
                server {{ listen 127.0.0.1:{port}; root {1}; autoindex on; }}
            }}",
            root.display(),
            files.display(),
        );
        let path = root.join("nginx.conf");
        fs::write(&path, configuration).expect("a file");
        let mut command = Command::new(&program);
        command.arg("-e").arg(root.join("errors")).arg("-c").arg(path);
        command
    };
    Some(Server::start(folder, command, listens))
}

/// Returns options that use a server, or a proxy in front of it, at this address.
pub fn s3_options(address: SocketAddr) -> ObjectOptions {
    ObjectOptions::new()
        .setting("aws_endpoint_url", format!("http://{address}"))
        .setting("aws_access_key_id", "test")
        .setting("aws_secret_access_key", "test")
        .setting("aws_region", "us-east-1")
}

/// Like [`s3_options`], for Azure.
pub fn azure_options(address: SocketAddr) -> ObjectOptions {
    ObjectOptions::new()
        .setting("azure_endpoint", format!("http://{address}/{AZURITE_ACCOUNT}"))
        .setting("azure_storage_account_name", AZURITE_ACCOUNT)
        .setting("azure_storage_account_key", AZURITE_KEY)
        .setting("azure_allow_http", "true")
}
