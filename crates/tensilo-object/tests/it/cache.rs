//! The disk cache: bytes are right whatever happened to its files, and are fetched once.

use crate::common::{Hosted, file, quick, random_bytes, sample};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;
use tensilo::source::Source;
use tensilo::{ErrorKind, OpenOptions};
use tensilo_object::{Address, Cache, ObjectOptions, ObjectStorage};
use tensilo_testing::{Folder, HttpFault, Random, available};

const MIB: usize = 1 << 20;

/// Returns a connection to the host with nothing in memory yet.
fn storage(hosted: &Hosted, cache: &Cache) -> ObjectStorage {
    ObjectStorage::new(&hosted.address, quick().cache(Some(cache.clone())))
}

fn hosted(bytes: Vec<u8>) -> Hosted {
    Hosted::new(bytes, quick())
}

/// Reads a range, and checks it.
fn check(hosted: &Hosted, file: &dyn Source, start: usize, length: usize) {
    let mut out = vec![0; length];
    file.read_exact_at(start as u64, &mut out).unwrap();
    assert!(out == hosted.bytes[start..start + length], "{length} bytes at {start}");
}

/// Returns the files of entries.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        match entry.path() {
            path if path.is_dir() => found.extend(entries(&path)),
            path => found.push(path),
        }
    }
    found.sort();
    found
}

#[test]
fn bytes_read_once_are_not_requested_again() {
    let (folder, hosted) = (Folder::new(), hosted(random_bytes(5 * MIB / 2)));
    let cache = Cache::new(folder.path("cache"), 1 << 30);
    for round in 0..3 {
        let storage = storage(&hosted, &cache);
        let file = storage.open(&hosted.address).unwrap();
        for (start, length) in [(0, 100), (MIB - 1, 2), (2 * MIB + 7, MIB / 2 - 7), (0, hosted.bytes.len())] {
            check(&hosted, &file, start, length);
        }
        let ranges = hosted.take_ranges();
        assert_eq!(ranges.is_empty(), round > 0, "round {round}: {ranges:?}");
    }
    let stats = cache.stats().unwrap();
    assert_eq!((stats.objects, stats.entries), (1, 10));
    assert!(stats.bytes > 5 * MIB as u64 / 2 && stats.oldest_use.is_some());
    assert_eq!(cache.clear().unwrap(), stats);
    assert_eq!(cache.stats().unwrap().entries, 0);
}

#[test]
fn damaged_entries_are_fetched_again() {
    let (folder, hosted) = (Folder::new(), hosted(random_bytes(7 * MIB / 2)));
    let cache = Cache::new(folder.path("cache"), 1 << 30);
    let mut random = Random(3);
    for _ in 0..100 {
        let file = storage(&hosted, &cache).open(&hosted.address).unwrap();
        let start = random.below(hosted.bytes.len() as u64) as usize;
        let max_bytes = if random.one_in(3) { hosted.bytes.len() } else { 10_000 };
        check(&hosted, &file, start, random.below(max_bytes.min(hosted.bytes.len() - start) as u64) as usize);
        let all = entries(&folder.path("cache"));
        let Some(path) = all.get(random.below(all.len().max(1) as u64) as usize) else { continue };
        let mut bytes = fs::read(path).unwrap();
        match random.below(4) {
            0 => bytes.truncate(random.below(bytes.len() as u64) as usize),
            1 => bytes.push(0),
            2 => bytes.fill(0), // as after a loss of power
            _ => {
                let at = random.below(bytes.len() as u64) as usize;
                bytes[at] ^= 1 << random.below(8);
            }
        }
        fs::write(path, bytes).unwrap();
    }
}

#[test]
fn one_entry_is_not_accepted_as_another() {
    let (folder, hosted) = (Folder::new(), hosted(random_bytes(3 * MIB)));
    let cache = Cache::new(folder.path("cache"), 1 << 30);
    check(&hosted, &storage(&hosted, &cache).open(&hosted.address).unwrap(), 0, 3 * MIB);
    let all = entries(&folder.path("cache"));
    fs::copy(&all[0], &all[1]).unwrap();
    check(&hosted, &storage(&hosted, &cache).open(&hosted.address).unwrap(), 0, 3 * MIB);
}

#[test]
fn each_entry_is_fetched_by_one_of_many() {
    let (folder, hosted) = (Folder::new(), hosted(random_bytes(8 * MIB)));
    hosted.server.take_sent_bytes();
    thread::scope(|scope| {
        for number in 0..4 {
            let (hosted, folder) = (&hosted, &folder);
            // each is a separate process, as far as the cache can tell
            scope.spawn(move || {
                let cache = Cache::new(folder.path("cache"), 1 << 30);
                let file = storage(hosted, &cache).open(&hosted.address).unwrap();
                for start in 0..16 {
                    check(hosted, &file, (start + number) % 16 * MIB / 2, MIB / 2);
                }
            });
        }
    });
    assert_eq!(hosted.server.take_sent_bytes(), 8 * MIB);
}

#[test]
fn the_least_recently_used_entries_are_evicted() {
    let (folder, hosted) = (Folder::new(), hosted(random_bytes(16 * MIB)));
    let max_bytes = 5 * MIB as u64;
    let cache = Cache::new(folder.path("cache"), max_bytes);
    let file = storage(&hosted, &cache).open(&hosted.address).unwrap();
    for start in 0..16 {
        check(&hosted, &file, start * MIB, MIB);
        let stats = cache.stats().unwrap();
        assert!(stats.bytes <= max_bytes && (stats.entries >= 3 || start < 3), "{stats:?}");
    }
    assert!(entries(&folder.path("cache")).iter().any(|path| path.ends_with("63")), "the last entry is cached");
    check(&hosted, &storage(&hosted, &cache).open(&hosted.address).unwrap(), 0, 16 * MIB);
    let none = Cache::new(folder.path("none"), 1000);
    check(&hosted, &storage(&hosted, &none).open(&hosted.address).unwrap(), 0, 16 * MIB);
    assert_eq!(none.stats().unwrap().bytes, 0);
}

#[test]
fn a_folder_that_cannot_be_written_is_done_without() {
    let (folder, hosted) = (Folder::new(), hosted(random_bytes(2 * MIB)));
    fs::write(folder.path("cache"), "a file instead of the folder").unwrap();
    let cache = Cache::new(folder.path("cache"), 1 << 30);
    check(&hosted, &storage(&hosted, &cache).open(&hosted.address).unwrap(), 5, 2 * MIB - 5);
    assert_eq!(cache.stats().unwrap().entries, 0);
}

/// A small disk, which is unmounted when this is dropped.
struct SmallDisk<'a>(&'a Path);

impl<'a> SmallDisk<'a> {
    /// Returns `None` if the user may not mount one.
    fn mount(folder: &'a Path, size: &str) -> Option<Self> {
        let mut command = Command::new("mount");
        command.args(["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"]).arg(folder).stderr(Stdio::null());
        let mounted = command.status().map_err(|error| error.to_string());
        let mounted =
            mounted.and_then(|status| if status.success() { Ok(Self(folder)) } else { Err(status.to_string()) });
        available("the right to mount a tmpfs", mounted, "TENSILO_REQUIRE_MOUNT")
    }
}

impl Drop for SmallDisk<'_> {
    fn drop(&mut self) {
        assert!(Command::new("umount").arg("-l").arg(self.0).status().unwrap().success());
    }
}

#[test]
fn a_full_disk_is_done_without() {
    let (folder, hosted) = (Folder::new(), hosted(random_bytes(8 * MIB)));
    let path = folder.path("cache");
    fs::create_dir(&path).unwrap();
    let Some(_disk) = SmallDisk::mount(&path, "3500k") else { return };
    let cache = Cache::new(&path, 1 << 30);
    for round in 0..2 {
        check(&hosted, &storage(&hosted, &cache).open(&hosted.address).unwrap(), 0, 8 * MIB);
        let stats = cache.stats().unwrap();
        assert!((1..14).contains(&stats.entries), "round {round}: {stats:?}");
        assert!(entries(&path).iter().all(|path| path.extension().is_none()), "an incomplete file is left");
    }
}

#[test]
fn a_replaced_object_is_another_one() {
    let (folder, mut hosted) = (Folder::new(), hosted(random_bytes(2 * MIB)));
    let cache = Cache::new(folder.path("cache"), 1 << 30);
    check(&hosted, &storage(&hosted, &cache).open(&hosted.address).unwrap(), 0, 2 * MIB);
    hosted.bytes.reverse();
    hosted.server.put("/data/x.tsl", &hosted.bytes);
    check(&hosted, &storage(&hosted, &cache).open(&hosted.address).unwrap(), 0, 2 * MIB);
    assert_eq!(cache.stats().unwrap().objects, 2);
}

/// A network may deliver wrong bytes that are noticed only by the reader.
#[test]
fn wrong_bytes_are_forgotten_when_a_reader_notices_them() {
    let (folder, hosted) = (Folder::new(), hosted(file(20_000)));
    for with_cache in [true, false] {
        let cache = with_cache.then(|| Cache::new(folder.path("cache"), 1 << 30));
        let storage = ObjectStorage::new(&hosted.address, quick().cache(cache));
        let open = || OpenOptions::new().open_source(storage.open(&hosted.address).unwrap());
        hosted.server.set_faults(|_| Some(HttpFault::WrongByte));
        assert_eq!(open().err().map(|error| error.kind()), Some(ErrorKind::Corrupt));
        hosted.server.set_faults(|_| None);
        let reader = open().unwrap();
        let mut cursor = reader.column("x").unwrap().cursor();
        hosted.server.set_faults(|_| Some(HttpFault::WrongByte));
        let (mut right, mut wrong) = (0, 0);
        for number in (0..20_000).step_by(16) {
            match cursor.read(number).map(|found| found.as_slice::<i32>().unwrap().to_vec()) {
                Ok(found) => {
                    assert_eq!(found, sample(number as u32));
                    right += 1;
                }
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
                    wrong += 1;
                }
            }
        }
        assert!(wrong > 0, "{right} right");
        hosted.server.set_faults(|_| None);
        let reader = open().unwrap();
        let mut cursor = reader.column("x").unwrap().cursor();
        let mut failed = 0;
        for number in (0..20_000).step_by(16) {
            // wrong bytes that no read has used yet are noticed now, and read again
            failed += usize::from(cursor.read(number).is_err());
            assert_eq!(cursor.read(number).unwrap().as_slice::<i32>().unwrap(), sample(number as u32));
        }
        assert!(failed <= 3, "{failed} errors");
    }
}

/// The variables that enable [`reads_all_and_is_killed`]: an address, and a folder.
const CHILD: [&str; 2] = ["TENSILO_TEST_ADDRESS", "TENSILO_TEST_CACHE"];

#[test]
fn reads_all_and_is_killed() {
    let [Ok(address), Ok(folder)] = CHILD.map(std::env::var) else { return };
    let address = Address::parse(&address).unwrap();
    let cache = Cache::new(folder, 6 * MIB as u64);
    loop {
        let options = ObjectOptions::new().cache(Some(cache.clone()));
        let file = ObjectStorage::new(&address, options).open(&address).unwrap();
        let mut out = vec![0; file.byte_count() as usize];
        file.read_exact_at(0, &mut out).unwrap();
    }
}

#[test]
fn a_process_that_is_killed_leaves_no_wrong_byte() {
    let kills = std::env::var("TENSILO_CACHE_KILLS").ok().map_or(10, |text| text.parse().unwrap());
    let (folder, hosted) = (Folder::new(), hosted(random_bytes(8 * MIB)));
    let cache = Cache::new(folder.path("cache"), 6 * MIB as u64);
    let mut random = Random(11);
    let mut incomplete = 0;
    for _ in 0..kills {
        let mut children: Vec<_> = (0..2)
            .map(|_| {
                let mut command = Command::new(std::env::current_exe().unwrap());
                command.args(["--exact", "cache::reads_all_and_is_killed"]).stdout(Stdio::null()).stderr(Stdio::null());
                command.env(CHILD[0], hosted.address.to_string()).env(CHILD[1], folder.path("cache")).spawn().unwrap()
            })
            .collect();
        thread::sleep(Duration::from_millis(20 + random.below(100)));
        for child in &mut children {
            child.kill().unwrap();
            assert!(!child.wait().unwrap().success());
        }
        let names = entries(&folder.path("cache"));
        let is_entry = |path: &PathBuf| path.extension().is_none() && !path.to_string_lossy().contains("new-");
        incomplete += names.iter().filter(|path| !is_entry(path)).count();
        check(&hosted, &storage(&hosted, &cache).open(&hosted.address).unwrap(), 0, 8 * MIB);
    }
    println!("{kills} times two processes killed: {incomplete} incomplete files found, no wrong byte");
}
