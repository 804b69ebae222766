//! Tests inputs in an object store, where a request costs more than a few bytes.

use super::common::*;
use arrow_array::{ArrayRef, Int64Array, StringArray};
use arrow_schema::{DataType, Field};
use std::io;
use std::ops::{ControlFlow, Range};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use tensilo::import::{AppendOptions, ConvertOptions, InputStore, append, convert};
use tensilo::source::{CoalesceConfig, InMemory, Source};
use tensilo::{Error, ErrorKind, Result, WriterOptions};
use tensilo_testing::Folder;

/// A store of some files below `mem://`. Records what is prefetched and what is read.
#[derive(Clone, Default)]
struct Store {
    files: Vec<(String, Vec<u8>)>,
    notes: Arc<Notes>,
}

#[derive(Default)]
struct Notes {
    prefetched: Mutex<Vec<Range<u64>>>,
    read: Mutex<Vec<Range<u64>>>,
}

struct Object(InMemory<Vec<u8>>, Arc<Notes>);

impl Source for Object {
    fn byte_count(&self) -> u64 {
        self.0.byte_count()
    }

    fn read_exact_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.1.read.lock().unwrap().push(offset..offset + out.len() as u64);
        self.0.read_exact_at(offset, out)
    }

    fn coalesce(&self) -> CoalesceConfig {
        CoalesceConfig::OBJECT_STORE
    }

    fn prefetch(&self, ranges: &[Range<u64>]) {
        self.1.prefetched.lock().unwrap().extend_from_slice(ranges);
    }
}

impl InputStore for Store {
    fn contains(&self, input: &Path) -> bool {
        input.to_str().is_some_and(|input| input.starts_with("mem://"))
    }

    fn list_prefix(&self, prefix: &Path) -> Result<Vec<PathBuf>> {
        Ok(self.files.iter().map(|(name, _)| PathBuf::from(name)).filter(|name| name.starts_with(prefix)).collect())
    }

    fn open(&self, input: &Path) -> Result<Arc<dyn Source>> {
        match self.files.iter().find(|(name, _)| Path::new(name) == input) {
            Some((_, bytes)) => Ok(Arc::new(Object(InMemory(bytes.clone()), Arc::clone(&self.notes)))),
            None => Err(Error::io("opening the object", io::ErrorKind::NotFound.into())),
        }
    }
}

fn go_on<T>(_: T) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

/// Writes Parquet files in folders of years. Returns their paths below the folder.
fn years(folder: &Folder) -> Vec<String> {
    ["year=2024/a.parquet", "year=2025/b.parquet"]
        .into_iter()
        .zip(0..)
        .map(|(name, year)| {
            let path = folder.path(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            let ids: Vec<i64> = (0..5000).map(|i| year * 5000 + i).collect();
            let texts: ArrayRef = Arc::new(StringArray::from_iter_values(ids.iter().map(|id| format!("text {id}"))));
            let id = (Field::new("id", DataType::Int64, false), Arc::new(Int64Array::from(ids)) as ArrayRef);
            write_parquet(&path, &[batch(vec![id, (Field::new("text", DataType::Utf8, false), texts)])]);
            name.to_owned()
        })
        .collect()
}

fn stored(folder: &Folder, names: &[String]) -> Store {
    let file = |name: &String| (format!("mem://bucket/{name}"), std::fs::read(folder.path(name)).unwrap());
    Store { files: names.iter().map(file).collect(), ..Store::default() }
}

#[test]
fn a_conversion_from_a_store_equals_one_from_local_files() {
    let folder = Folder::new();
    let store = stored(&folder, &years(&folder));
    let convert = |input: PathBuf, output: &str| {
        let output = folder.path(output);
        let options = ConvertOptions::new().store(Arc::new(store.clone()));
        assert_eq!(convert(&[input], &output, &options, &mut go_on).unwrap(), 10_000);
        std::fs::read(output).unwrap()
    };
    let expected = convert(folder.root().to_path_buf(), "local.tsl");
    assert!(store.notes.read.lock().unwrap().is_empty());
    for (input, output) in [("mem://bucket", "prefix.tsl"), ("mem://bucket/year=*/*.parquet", "pattern.tsl")] {
        assert!(convert(input.into(), output) == expected, "{input}");
    }
    let target = folder.path("prefix.tsl");
    let options = AppendOptions::new().store(Arc::new(store));
    assert_eq!(append(&["mem://bucket/year=2025/b.parquet".into()], &target, &options, &mut go_on).unwrap(), 5000);
}

#[test]
fn pages_are_prefetched_before_they_are_read() {
    let folder = Folder::new();
    let store = stored(&folder, &years(&folder)[..1]);
    let options = ConvertOptions::new().store(Arc::new(store.clone())).columns(["id"]);
    let input = PathBuf::from("mem://bucket/year=2024/a.parquet");
    convert(&[input], &folder.path("out.tsl"), &options, &mut go_on).unwrap();
    let (prefetched, read) = (store.notes.prefetched.lock().unwrap(), store.notes.read.lock().unwrap());
    let is_prefetched =
        |read: &&Range<u64>| prefetched.iter().any(|all| all.start <= read.start && read.end <= all.end);
    let (pages, others): (Vec<_>, Vec<_>) = read.iter().partition(is_prefetched);
    assert!(pages.len() >= prefetched.len() && !prefetched.is_empty());
    // besides pages, only the footer is read
    let beside: u64 = others.iter().map(|range| range.end - range.start).sum();
    assert!(beside < 80_000, "{beside} bytes: {others:?}");
}

#[test]
fn columns_that_are_not_converted_are_not_read() {
    let folder = Folder::new();
    let text: ArrayRef = Arc::new(StringArray::from_iter_values((0..100).map(|i| format!("{i:060000}"))));
    let id: ArrayRef = Arc::new(Int64Array::from_iter_values(0..100));
    let columns =
        vec![(Field::new("id", DataType::Int64, false), id), (Field::new("text", DataType::Utf8, false), text)];
    write_parquet(folder.path("a.parquet"), &[batch(columns)]);
    let store = stored(&folder, &["a.parquet".to_owned()]);
    let options = ConvertOptions::new().store(Arc::new(store.clone())).columns(["id"]);
    convert(&["mem://bucket/a.parquet".into()], &folder.path("out.tsl"), &options, &mut go_on).unwrap();
    let read: u64 = store.notes.read.lock().unwrap().iter().map(|range| range.end - range.start).sum();
    assert!(store.files[0].1.len() > 5_000_000 && read < 200_000, "{read} bytes");
}

#[test]
fn errors_name_the_object() {
    let folder = Folder::new();
    let mut store = stored(&folder, &years(&folder));
    store.files[1].1.truncate(1000);
    let convert = |input: &str| {
        let options = ConvertOptions::new().store(Arc::new(store.clone()));
        convert(&[input.into()], &folder.path("out.tsl"), &options, &mut go_on).unwrap_err().to_string()
    };
    assert!(convert("mem://bucket/none.parquet").starts_with("mem://bucket/none.parquet: "));
    assert!(convert("mem://bucket/*.arrow").contains("mem://bucket/*.arrow"));
    assert!(convert("mem://bucket").starts_with("mem://bucket/year=2025/b.parquet: the Parquet file is truncated"));
    assert!(!folder.path("out.tsl").exists());
}

/// An object whose reads beyond an offset fail.
struct FailingSource(InMemory<Vec<u8>>, u64);

impl Source for FailingSource {
    fn byte_count(&self) -> u64 {
        self.0.byte_count()
    }

    fn read_exact_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let is_footer = offset + 20_000 > self.byte_count();
        if offset > self.1 && !is_footer {
            Err(io::ErrorKind::TimedOut.into())
        } else {
            self.0.read_exact_at(offset, out)
        }
    }
}

struct FailingStore(Vec<u8>, u64);

impl InputStore for FailingStore {
    fn contains(&self, input: &Path) -> bool {
        input.starts_with("mem://")
    }

    fn list_prefix(&self, _: &Path) -> Result<Vec<PathBuf>> {
        Ok(Vec::new())
    }

    fn open(&self, _: &Path) -> Result<Arc<dyn Source>> {
        Ok(Arc::new(FailingSource(InMemory(self.0.clone()), self.1)))
    }
}

#[test]
fn a_failed_read_is_not_a_malformed_file() {
    let folder = Folder::new();
    let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values((0..90_000).map(|i| i * i % 7919)));
    let table = one(numbers);
    write_parquet(folder.path("a.parquet"), std::slice::from_ref(&table));
    write_arrow(folder.path("a.arrow"), &[table.clone(), table.clone()]);
    write_stream(folder.path("a.arrows"), &[table.clone(), table]);
    for name in ["a.parquet", "a.arrow", "a.arrows"] {
        let bytes = std::fs::read(folder.path(name)).unwrap();
        let (middle, input) = (bytes.len() as u64 / 2, PathBuf::from(format!("mem://{name}")));
        for threads in [1, 2] {
            let store = Arc::new(FailingStore(bytes.clone(), middle));
            let options = ConvertOptions::new().store(store).writer(WriterOptions::new().threads(threads));
            let error =
                convert(std::slice::from_ref(&input), &folder.path("out.tsl"), &options, &mut go_on).unwrap_err();
            assert_eq!((error.kind(), error.path()), (ErrorKind::Io, Some(input.as_path())), "{error}");
            let cause = std::error::Error::source(&error).and_then(|cause| cause.downcast_ref::<io::Error>());
            assert_eq!(cause.map(io::Error::kind), Some(io::ErrorKind::TimedOut));
        }
    }
}
