//! Proves that children can read objects that their parent opened while requests of the parent are
//! in flight: they have none of its threads and connections, and start their own.

#[cfg(not(unix))]
fn main() {}

#[cfg(unix)]
fn main() {
    let folder = tensilo_testing::Folder::new();
    unix::check("without a cache", None);
    unix::check("with a cache", Some(tensilo_object::Cache::new(folder.path("cache"), 2 << 20)));
    println!("children read the right bytes while their parent reads");
}

#[cfg(unix)]
mod unix {
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
    use std::thread;
    use std::time::Duration;
    use tensilo::source::Source;
    use tensilo_object::{Address, Cache, ObjectFile, ObjectOptions, ObjectStorage};
    use tensilo_testing::{Child, HttpServer, Random};

    const CHILDREN: u64 = 30;

    pub fn check(what: &str, cache: Option<Cache>) {
        let bytes = Random(5).bytes(4 << 20);
        let server = HttpServer::start();
        server.put("/x", &bytes);
        let address = Address::parse(&server.url("/x")).unwrap();
        let options = ObjectOptions::new().memory_bytes(1 << 20).cache(cache);
        let file = ObjectStorage::new(&address, options).open(&address).unwrap();
        let (is_done, reads) = (AtomicBool::new(false), AtomicUsize::new(0));
        thread::scope(|scope| {
            for seed in 0..3 {
                let (file, bytes, is_done, reads) = (&file, &bytes, &is_done, &reads);
                scope.spawn(move || {
                    let mut random = Random(seed);
                    while !is_done.load(Ordering::Relaxed) {
                        assert!(is_right(file, bytes, &mut random), "{what}: the parent");
                        reads.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
            let _ends = Ends(&is_done);
            for seed in 0..CHILDREN {
                let before = reads.load(Ordering::Relaxed);
                while reads.load(Ordering::Relaxed) == before {
                    thread::sleep(Duration::from_millis(1));
                }
                // SAFETY: reading takes no lock that another thread may hold, which is what this
                // test checks.
                let child =
                    unsafe { Child::fork(|| (0..10).all(|i| is_right(&file, &bytes, &mut Random(seed * 100 + i)))) };
                child.assert_success(what);
            }
        });
    }

    /// Ends the threads of the parent when it is dropped, also if a child has failed.
    struct Ends<'a>(&'a AtomicBool);

    impl Drop for Ends<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }

    /// Reads a range, and returns whether its bytes are right.
    fn is_right(file: &ObjectFile, bytes: &[u8], random: &mut Random) -> bool {
        let start = random.index(bytes.len() - 300_000);
        let mut out = vec![0; 1 + random.index(300_000)];
        if random.one_in(3) {
            file.prefetch(std::slice::from_ref(&(start as u64..start as u64 + 300_000)));
        }
        file.read_exact_at(start as u64, &mut out).unwrap();
        out == bytes[start..start + out.len()]
    }
}
