//! Whole objects.

use crate::common::{Hosted, quick, random_bytes};
use std::io::ErrorKind;
use tensilo_object::{Address, ObjectError};

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
fn a_host_that_takes_no_objects_says_so() {
    let hosted = Hosted::new(random_bytes(3), quick());
    let error = hosted.storage.create(&hosted.address, b"x").unwrap_err();
    assert_eq!(kind(error), ErrorKind::Unsupported);
}
