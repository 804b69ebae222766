//! Operations on whole objects.

use crate::common::{Hosted, quick, random_bytes};
use std::io::{ErrorKind, Read, Write};
use std::net::TcpListener;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;
use tensilo::sink::Sink;
use tensilo_object::{Address, ObjectError, ObjectOptions, ObjectStorage};
use tensilo_testing::HttpServer;

fn kind(error: ObjectError) -> ErrorKind {
    match error {
        ObjectError::Io { error, .. } => error.kind(),
        error => panic!("{error}"),
    }
}

#[test]
fn an_object_is_read_as_a_whole() {
    let hosted = Hosted::new(random_bytes(300_000), quick());
    assert_eq!(hosted.storage.read(&hosted.address, 300_000).unwrap(), hosted.bytes);
    assert_eq!(kind(hosted.storage.read(&hosted.address, 299_999).unwrap_err()), ErrorKind::FileTooLarge);
}

#[test]
fn a_folder_of_a_host_has_the_names_that_its_page_links_to() {
    let hosted = Hosted::new(random_bytes(3), quick());
    hosted.server.put("/data/manifest/0000000001.json", b"{}");
    hosted.server.put("/data/manifest/pages/1.json", b"{}");
    let names = |path| {
        let folder = Address::parse(&hosted.server.url(path)).unwrap();
        hosted.storage.names(&folder).unwrap()
    };
    assert_eq!(names("/data"), ["manifest", "x.tsl"]);
    assert_eq!(names("/data/manifest/"), ["0000000001.json", "pages"]);
    assert_eq!(names("/none"), [""; 0]);
}

#[test]
fn https_hosts_are_contacted_over_tls() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let host = Address::parse(&format!("https://{}/data", listener.local_addr().unwrap())).unwrap();
    let (sender, starts) = mpsc::channel();
    thread::spawn(move || {
        for connection in listener.incoming() {
            let mut start = [0; 2];
            connection.unwrap().read_exact(&mut start).unwrap();
            sender.send(start).unwrap();
        }
    });
    let storage = ObjectStorage::new(&host, quick().retries(0, Duration::ZERO));
    let handshake = [0x16, 3];
    assert!(storage.read(&host, 10).is_err());
    assert_eq!(starts.recv().unwrap(), handshake);
    while starts.try_recv().is_ok() {}
    assert!(storage.names(&host).is_err());
    assert_eq!(starts.recv().unwrap(), handshake);
}

#[test]
fn a_host_that_takes_no_objects_says_so() {
    let hosted = Hosted::new(random_bytes(3), quick());
    let error = hosted.storage.create(&hosted.address, b"x").unwrap_err();
    assert_eq!(kind(error), ErrorKind::Unsupported);
}

/// A second attempt would create an object without the bytes of the first.
#[test]
fn an_upload_that_failed_is_not_published_later() {
    let server = HttpServer::start();
    let options = quick().setting("aws_endpoint_url", server.url("")).setting("aws_skip_signature", "true");
    let address = Address::parse("s3://bucket/x.tsl").unwrap();
    let mut upload = ObjectStorage::new(&address, options).upload(&address, true).unwrap();
    upload.write_all(b"x").unwrap();
    assert_eq!(upload.publish().unwrap_err().kind(), ErrorKind::NotFound);
    assert!(server.take_requests().iter().any(|request| request.method == "PUT"));
    assert_eq!(upload.publish().unwrap_err().kind(), ErrorKind::Unsupported);
    assert!(server.take_requests().is_empty());
}

/// Serves an S3 listing with these keys below `raw/`.
fn listed(keys: &[&str]) -> (Hosted, Address, ObjectOptions) {
    let hosted = Hosted::new(random_bytes(3), quick());
    host_list(&hosted, keys);
    let options = quick().setting("aws_endpoint_url", hosted.server.url("")).setting("aws_skip_signature", "true");
    (hosted, Address::parse("s3://bucket/raw").unwrap(), options)
}

fn host_list(hosted: &Hosted, keys: &[&str]) {
    let time = "<LastModified>2026-11-25T00:00:00.000Z</LastModified><Size>3</Size>";
    let objects: String = keys.iter().map(|key| format!("<Contents><Key>{key}</Key>{time}</Contents>")).collect();
    let list = format!("<ListBucketResult><Name>bucket</Name><Prefix>raw/</Prefix>{objects}</ListBucketResult>");
    hosted.server.put("/bucket?list-type=2&prefix=raw%2F", list.as_bytes());
}

#[test]
fn a_key_that_cannot_be_read_does_not_hide_others() {
    let (_hosted, raw, options) = listed(&["raw/a.parquet", "raw//b.parquet", "raw/x&#9;y", "raw/c[1].parquet"]);
    let storage = ObjectStorage::new(&raw, options);
    let mut found: Vec<String> = storage.objects(&raw).unwrap().iter().map(Address::to_string).collect();
    found.sort();
    assert_eq!(found, ["s3://bucket/raw/a.parquet", "s3://bucket/raw/c[1].parquet"]);
    assert_eq!(storage.unreadable_keys(&raw), ["/b.parquet", "x\ty"]);
    let direct = Address::parse("s3://bucket/raw//b.parquet").unwrap_err().to_string();
    assert!(direct.contains("empty component") && direct.contains("copy the object"), "{direct}");
}

#[test]
fn objects_that_cannot_be_named_are_not_forgotten() {
    let (hosted, raw, options) = listed(&["raw/a.parquet", "raw//b.parquet"]);
    let storage = ObjectStorage::new(&raw, options);
    for failed in [storage.bytes(&raw).map(drop), storage.remove(&raw)] {
        let error = failed.unwrap_err().to_string();
        assert!(error.contains("raw//b.parquet") && error.contains("rename the object"), "{error}");
    }
    assert!(hosted.server.take_requests().iter().all(|request| request.method != "DELETE"));

    // until they are gone
    host_list(&hosted, &["raw/a.parquet"]);
    assert_eq!(storage.unreadable_keys(&raw), ["/b.parquet"]);
    assert_eq!(storage.bytes(&raw).unwrap(), 3);
    assert_eq!(storage.unreadable_keys(&raw), [""; 0]);
}

#[cfg(feature = "import")]
#[test]
fn an_input_that_cannot_be_read_is_an_error_or_reported() {
    use std::path::Path;
    use std::sync::{Arc, Mutex};
    use tensilo::import::InputStore;
    use tensilo_object::ObjectInputs;
    let (_hosted, _, options) = listed(&["raw/a.parquet", "raw//b 'x'&#9;.parquet"]);
    let raw = Path::new("s3://bucket/raw");
    let error = ObjectInputs::new(options.clone()).list_prefix(raw).unwrap_err().to_string();
    assert!(error.contains("s3://bucket/raw//b 'x'\\t.parquet: a key with an empty component"), "{error}");
    let reported = Arc::new(Mutex::new(Vec::new()));
    let noted = reported.clone();
    let inputs =
        ObjectInputs::new(options).skip_unreadable(move |address| noted.lock().unwrap().push(address.to_owned()));
    assert_eq!(inputs.list_prefix(raw).unwrap(), [Path::new("s3://bucket/raw/a.parquet")]);
    assert_eq!(*reported.lock().unwrap(), ["s3://bucket/raw//b 'x'\\t.parquet"]);
}
