//! Batch iterators end cleanly whenever they are dropped, whatever goes wrong meanwhile, also in
//! forked processes: no hang, and no thread, descriptor or memory is leaked.
//!
//! The threads of the usual test harness would make `fork` unsound, and would be counted, so this
//! program has no harness. Like a Python interpreter, it does not use Rust's own `main` either: its
//! guard against stack overflows has a lock that each thread takes when it starts and ends, and a
//! child that is forked at such a moment could not start a thread.

#![cfg_attr(target_os = "linux", no_main)]

#[cfg(not(target_os = "linux"))]
fn main() {}

/// The entry point that the C library calls.
#[cfg(target_os = "linux")]
#[unsafe(no_mangle)]
extern "C" fn main() -> std::ffi::c_int {
    i32::from(!linux::succeeds())
}

#[cfg(target_os = "linux")]
mod linux {
    use std::fs;
    use std::io;
    use std::ops::Range;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::path::{Path, PathBuf};
    use std::sync::Arc;
    use std::time::{Duration, Instant};
    use tensilo::source::{PositionedFile, Source};
    use tensilo::{ColumnBatch, ColumnSchema, DType, OpenOptions, Profile, Schema, Shape, Writer, WriterOptions};
    use tensilo_data::{
        BatchAllocator, BatchIterator, BatchMemory, DataError, Dataset, DatasetOptions, LastBatch, LoaderOptions,
        OnDamage, Order, View,
    };
    use tensilo_testing::{Child, Folder, Random};

    const SAMPLES: u64 = 600;
    const FILES: u64 = 6;
    const CYCLES: u64 = 1000;
    /// A cycle that takes longer counts as a hang.
    const CYCLE_TIMEOUT: Duration = Duration::from_secs(60);

    fn write(path: &Path, samples: Range<u64>) {
        let schema = Schema::new([ColumnSchema::tensor("x", DType::U64, Shape::fixed(&[16]))]);
        let options = WriterOptions::new().profile(Profile::Raw).chunk_bytes(1024);
        let mut writer = Writer::create(path, schema, &options).expect("a schema");
        let count = (samples.end - samples.start) as usize;
        let values: Vec<u64> = samples.flat_map(|i| (0..16).map(move |k| i * 16 + k)).collect();
        writer.push_batch(&[ColumnBatch::fixed(count, &values)]).expect("samples");
        writer.finish().expect("disk space");
    }

    fn create(folder: &Path) -> Vec<PathBuf> {
        let mut changes = Dataset::create(folder).expect("an empty folder");
        let each = SAMPLES / FILES;
        let mut paths = Vec::new();
        for file in 0..FILES {
            let path = changes.next_path().expect("a path");
            write(&path, file * each..(file + 1) * each);
            changes.add_file(&path).expect("a file of the dataset");
            paths.push(path);
        }
        changes.publish("create").expect("no other writer");
        paths
    }

    /// A file whose reads are slow.
    struct Slow(PositionedFile);

    impl Source for Slow {
        fn byte_count(&self) -> u64 {
            self.0.byte_count()
        }

        fn read_exact_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
            std::thread::sleep(Duration::from_micros(200));
            self.0.read_exact_at(offset, out)
        }
    }

    /// An allocator without memory.
    struct Empty;

    impl BatchAllocator for Empty {
        fn allocate(&self, _: usize) -> Result<Box<dyn BatchMemory>, DataError> {
            Err(DataError::BadArgument("out of memory".to_owned()))
        }
    }

    /// An allocator that panics.
    struct Panicking;

    impl BatchAllocator for Panicking {
        fn allocate(&self, _: usize) -> Result<Box<dyn BatchMemory>, DataError> {
            panic!("the allocator of the test panics")
        }
    }

    /// What goes wrong in a cycle.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Fault {
        None,
        DamagedChunk,
        Vanished,
        Replaced,
        SlowDisk,
        /// The consumer takes nothing, so that the queue is full.
        FullQueue,
        PanickingConsumer,
        NoMemory,
        PanickingThread,
    }

    const FAULTS: [Fault; 9] = [
        Fault::None,
        Fault::DamagedChunk,
        Fault::Vanished,
        Fault::Replaced,
        Fault::SlowDisk,
        Fault::FullQueue,
        Fault::PanickingConsumer,
        Fault::NoMemory,
        Fault::PanickingThread,
    ];

    /// Breaks a file of the dataset, and returns its previous contents.
    fn break_file(fault: Fault, paths: &[PathBuf]) -> Vec<u8> {
        let bytes = fs::read(&paths[2]).expect("a file");
        match fault {
            Fault::DamagedChunk => {
                let mut damaged = bytes.clone();
                damaged[700] ^= 4;
                fs::write(&paths[2], damaged).expect("disk space");
            }
            Fault::Vanished => fs::remove_file(&paths[2]).expect("a file"),
            Fault::Replaced => {
                fs::copy(&paths[0], &paths[2]).expect("a file");
            }
            _ => {}
        }
        bytes
    }

    fn open(fault: Fault, folder: &Path, random: &mut Random) -> Dataset {
        let options = DatasetOptions::new().max_open_files(3);
        #[cfg(feature = "io-uring")]
        let options = if random.one_in(2) { options.io_uring() } else { options };
        #[cfg(not(feature = "io-uring"))]
        let _ = random;
        let options = match fault {
            Fault::SlowDisk => {
                options.open_with(|path, options: OpenOptions| options.open_source(Slow(PositionedFile::open(path)?)))
            }
            _ => options,
        };
        options.open(folder).expect("a dataset")
    }

    /// Takes some batches, and checks their samples. Returns the number of errors.
    fn take(batches: &mut BatchIterator, count: u64) -> u64 {
        let mut errors = 0;
        for _ in 0..count {
            match batches.next() {
                Some(Ok(batch)) => {
                    let values = batch.column("x").expect("a column").values::<u64>().expect("u64");
                    for (sample, values) in batch.indices().iter().zip(values.chunks_exact(16)) {
                        assert!((0..16).all(|k| values[k as usize] == sample * 16 + k), "sample {sample}");
                    }
                }
                Some(Err(_)) => errors += 1,
                None => break,
            }
        }
        errors
    }

    fn cycle(number: u64, folder: &Path, paths: &[PathBuf]) {
        let random = &mut Random(number);
        let fault = FAULTS[(number % 9) as usize];
        let before = break_file(fault, paths);
        let dataset = open(fault, folder, random);
        let policy = if random.one_in(2) { OnDamage::Substitute } else { OnDamage::Error };
        let options =
            LoaderOptions::new(1 + random.below(60) as u32).seed(number).last_batch(LastBatch::Exact).on_damage(policy);
        let options = options.order(if random.one_in(2) { Order::Shuffled } else { Order::Sequential });
        let options = options.decode_threads(random.index(4)).io_depth(random.index(7)).prefetch(random.index(9));
        let options = match fault {
            Fault::NoMemory => options.allocator(Arc::new(Empty)),
            Fault::PanickingThread => options.allocator(Arc::new(Panicking)),
            _ => options,
        };
        let loader = options.loader(&View::all(&dataset)).expect("options");
        let mut batches = loader.epochs(0..2);
        let count = random.below(12);
        match fault {
            Fault::FullQueue => assert!(batches.wait(CYCLE_TIMEOUT)),
            Fault::PanickingConsumer => {
                let panicking = move || {
                    take(&mut batches, count);
                    panic!("the consumer of the test panics")
                };
                assert!(catch_unwind(AssertUnwindSafe(panicking)).is_err());
                return;
            }
            _ => {}
        }
        let errors = match number / 9 % 4 {
            0 => take(&mut batches, count),
            // all of them, in this process or in a child that continues
            1 => take(&mut batches, u64::MAX),
            2 => {
                let errors = take(&mut batches, count);
                forked(|| {
                    take(&mut batches, u64::MAX);
                });
                errors + take(&mut batches, count)
            }
            _ => {
                take(&mut batches, count / 2);
                forked(|| {
                    take(&mut batches, count / 2);
                });
                drop(batches);
                0
            }
        };
        let may_fail = !matches!(fault, Fault::None | Fault::SlowDisk | Fault::FullQueue);
        assert!(errors == 0 || may_fail, "cycle {number}, {fault:?}: {errors} errors");
        let must_fail = matches!(fault, Fault::Vanished | Fault::Replaced | Fault::NoMemory | Fault::PanickingThread)
            || (fault == Fault::DamagedChunk && policy == OnDamage::Error);
        let is_whole = number / 9 % 4 == 1;
        assert!(errors > 0 || !must_fail || !is_whole, "cycle {number}, {fault:?}: no error");
        fs::write(&paths[2], before).expect("disk space");
    }

    /// Runs some work in a child, which must end successfully in time.
    fn forked(work: impl FnOnce()) {
        let work = || {
            work();
            true
        };
        // SAFETY: the child uses what `tensilo_data` promises to work after a fork.
        unsafe { Child::fork(work) }.assert_success("a child of the test");
    }

    fn count(folder: &str) -> usize {
        fs::read_dir(folder).expect("/proc").count()
    }

    /// Waits until ended threads are gone: the kernel removes them after the join.
    fn assert_threads(expected: usize) {
        let begun = Instant::now();
        while count("/proc/self/task") > expected && begun.elapsed() < Duration::from_secs(5) {
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(count("/proc/self/task"), expected, "threads remain");
    }

    pub fn succeeds() -> bool {
        // panics are part of the test
        std::panic::set_hook(Box::new(|_| {}));
        let result = catch_unwind(cycles);
        drop(std::panic::take_hook());
        if let Err(panic) = result {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            eprintln!("{}", text.or(panic.downcast_ref::<&str>().copied()).unwrap_or("a panic"));
            return false;
        }
        true
    }

    /// Returns how many more bytes of memory the process uses after 1,000 epochs than after 100.
    fn memory_of_epochs(folder: &Path) -> u64 {
        let resident = || {
            let text = fs::read_to_string("/proc/self/statm").expect("/proc");
            text.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok()).expect("pages") * 4096
        };
        let dataset = Dataset::open(folder).expect("a dataset");
        let options = LoaderOptions::new(50).order(Order::Shuffled).decode_threads(2);
        let loader = options.loader(&View::all(&dataset)).expect("options");
        let mut before = 0;
        for batch in loader.epochs(0..1_000) {
            let batch = batch.expect("intact files");
            if (batch.epoch(), batch.position()) == (100, 0) {
                before = resident();
            }
        }
        resident().saturating_sub(before)
    }

    fn cycles() {
        let folder = Folder::new();
        let data = folder.path("data");
        let paths = create(&data);
        let (threads, descriptors) = (count("/proc/self/task"), count("/proc/self/fd"));
        for number in 0..CYCLES {
            let begun = Instant::now();
            let before = fs::read(&paths[2]).expect("a file");
            // every second cycle is in a child
            if number % 2 == 0 {
                cycle(number, &data, &paths);
            } else {
                forked(|| cycle(number, &data, &paths));
            }
            fs::write(&paths[2], before).expect("disk space");
            assert!(begun.elapsed() < CYCLE_TIMEOUT, "cycle {number} took {:?}", begun.elapsed());
            assert_threads(threads);
            assert_eq!(count("/proc/self/fd"), descriptors, "cycle {number}: descriptors remain");
        }
        let grown = memory_of_epochs(&data);
        assert!(grown < 1 << 20, "{grown} bytes more after 1,000 epochs");
        println!("{CYCLES} cycles: no hang, no leaked thread or descriptor");
    }
}
