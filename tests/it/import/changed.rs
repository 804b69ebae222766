//! Tests inputs that are replaced or changed while they are read: the result is of one version of
//! each input, or the conversion fails.
//!
//! A conversion reads an input twice, once to infer shapes and once for the values, so a change in
//! between could mix versions silently. Here the input changes at every call of the progress
//! callback, and at random moments from another thread.

use super::common::*;
use std::fs;
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};
use tensilo::import::arrow::array::{Array, ArrayRef, Int64Array, ListArray, RecordBatch};
use tensilo::import::arrow::datatypes::{DataType, Field, Int64Type};
use tensilo::import::{AppendOptions, ConvertOptions, append, convert};
use tensilo::{Error, ErrorKind, Reader};
use tensilo_testing::{Folder, Random};

/// Returns rows that all have the number of the version. The list makes a first pass necessary.
fn version(number: i64, rows: usize) -> Vec<RecordBatch> {
    let numbers: ArrayRef = Arc::new(Int64Array::from_value(number, rows));
    let lists = (0..rows).map(|_| Some(vec![Some(number); 3]));
    let lists: ArrayRef = Arc::new(ListArray::from_iter_primitive::<Int64Type, _, _>(lists));
    let whole = batch(vec![
        (Field::new("number", DataType::Int64, false), numbers),
        (Field::new("list", lists.data_type().clone(), false), lists),
    ]);
    (0..rows).step_by(100).map(|start| whole.slice(start, 100.min(rows - start))).collect()
}

/// Returns the version of a file, all of whose values must agree.
#[track_caller]
fn version_of(file: &Reader) -> i64 {
    let numbers = scalars::<i64>(file, "number");
    let lists = tensors::<i64>(file, "list");
    let first = numbers[0].unwrap();
    assert!(numbers.iter().all(|number| *number == Some(first)), "a mixture of versions");
    assert!(lists.iter().all(|list| *list == Some((vec![3], vec![first; 3]))), "a mixture of versions");
    first
}

type Writer = fn(&Path, &[RecordBatch]);

const FORMATS: &[Writer] = &[
    |path, batches| write_arrow(path, batches),
    |path, batches| write_stream(path, batches),
    #[cfg(feature = "parquet")]
    |path, batches| write_parquet(path, batches),
];

/// A change to an input, with its name.
type Event<'a> = (&'static str, Box<dyn Fn(&Path) + 'a>);

/// The event after which the input mixes two versions.
const OVERWRITTEN: &str = "overwritten in the middle";

/// Returns changes in place; `next` is the file of another version.
fn changes(next: &[u8]) -> [Event<'_>; 5] {
    let open = |path: &Path| fs::File::options().write(true).open(path).unwrap();
    [
        ("rewritten", Box::new(move |path| fs::write(path, next).unwrap())),
        ("truncated", Box::new(move |path| open(path).set_len(100).unwrap())),
        ("made empty", Box::new(move |path| open(path).set_len(0).unwrap())),
        (
            OVERWRITTEN,
            Box::new(move |path| {
                let mut file = open(path);
                file.seek(SeekFrom::Start(2000)).unwrap();
                file.write_all(&next[2000..4000]).unwrap();
            }),
        ),
        ("touched", Box::new(move |path| open(path).set_modified(SystemTime::now()).unwrap())),
    ]
}

#[track_caller]
fn is_changed(error: &Error, path: &Path) {
    assert_eq!((error.kind(), error.path()), (ErrorKind::BadInput, Some(path)), "{error}");
    assert!(error.message().contains("changed while it was read"), "{error}");
}

/// Converts, with the event at progress call `moment`. Also returns the number of calls.
fn at_moment(folder: &Path, inputs: &[PathBuf], moment: usize, event: &dyn Fn()) -> (tensilo::Result<Reader>, usize) {
    let output = folder.join("out.tsl");
    let mut calls = 0;
    let result = convert(inputs, &output, &ConvertOptions::new(), &mut |_| {
        if calls == moment {
            event();
        }
        calls += 1;
        GO_ON
    });
    let taken = |_| {
        let file = read(&output);
        fs::remove_file(&output).unwrap();
        file
    };
    (result.map(taken), calls)
}

#[cfg(unix)] // other systems may not allow replacing an open file
#[test]
fn a_file_that_is_replaced_is_read_to_its_end() {
    let folder = Folder::new();
    let (input, next) = (folder.path("input"), folder.path("next"));
    for write in FORMATS {
        let mut moment = 0;
        loop {
            write(&input, &version(1, 600));
            write(&next, &version(2, 700));
            let inputs = [input.clone()];
            let (result, calls) = at_moment(folder.root(), &inputs, moment, &|| fs::rename(&next, &input).unwrap());
            let file = result.unwrap();
            assert_eq!((version_of(&file), file.sample_count()), (1, 600));
            if moment >= calls {
                break;
            }
            assert_eq!(folder.names(), ["input"]);
            moment += 1;
        }
        assert!(moment > 5, "only {moment} moments");
    }
}

#[test]
fn a_file_that_is_changed_in_place_is_an_error() {
    let folder = Folder::new();
    let input = folder.path("input");
    for write in FORMATS {
        write(&input, &version(2, 600));
        let next = fs::read(&input).unwrap();
        for (name, change) in changes(&next) {
            for moment in 0.. {
                write(&input, &version(1, 600));
                let (result, calls) =
                    at_moment(folder.root(), std::slice::from_ref(&input), moment, &|| change(&input));
                if moment >= calls {
                    assert_eq!(version_of(&result.unwrap()), 1);
                    assert!(moment > 5, "only {moment} moments");
                    break;
                }
                let Err(error) = result else { panic!("{name} at {moment} was not noticed") };
                is_changed(&error, &input);
                assert_eq!(folder.names(), ["input"]);
            }
        }
    }
}

#[test]
fn the_error_names_what_has_changed() {
    let folder = Folder::new();
    let input = folder.path("input");
    write_arrow(&input, &version(1, 600));
    let bytes = fs::metadata(&input).unwrap().len();
    let changes = changes(&[]);
    let (_, truncate) = &changes[1];
    let (result, _) = at_moment(folder.root(), std::slice::from_ref(&input), 1, &|| truncate(&input));
    let text = result.map(|_| ()).unwrap_err().to_string();
    assert!(text.contains(&format!("its size changed from {bytes} to 100 bytes")), "{text}");
    write_arrow(&input, &version(1, 600));
    let (_, touch) = &changes[4];
    let (result, _) = at_moment(folder.root(), std::slice::from_ref(&input), 1, &|| touch(&input));
    let text = result.map(|_| ()).unwrap_err().to_string();
    assert!(text.contains("modification time") && !text.contains("size"), "{text}");
}

/// Another thread changes the input, so that this can happen at any time, even while the input is
/// opened or a batch is decoded.
#[test]
fn at_50_random_moments_there_is_no_mixture() {
    let folder = Folder::new();
    let (input, next) = (folder.path("input"), folder.path("next"));
    let write = FORMATS.last().unwrap();
    write(&next, &version(2, 3000));
    let bytes = fs::read(&next).unwrap();
    let mut events: Vec<Event> = changes(&bytes).into();
    if cfg!(unix) {
        let next = &next;
        events.extend((0..5).map(|_| -> Event { ("replaced", Box::new(move |path| fs::rename(next, path).unwrap())) }));
    }
    write(&input, &version(1, 3000));
    let start = Instant::now();
    converted(&folder, std::slice::from_ref(&input), &ConvertOptions::new()).unwrap();
    let usual = u64::try_from(start.elapsed().as_micros()).unwrap();
    let (mut random, mut seen) = (Random(42), [0; 3]);
    for moment in 0..50 {
        write(&input, &version(1, 3000));
        write(&next, &version(2, 3000));
        let (name, event) = &events[moment % events.len()];
        let delay = Duration::from_micros(random.below(usual));
        let result = std::thread::scope(|scope| {
            let (folder, input) = (&folder, &input);
            let converting =
                scope.spawn(move || converted(folder, std::slice::from_ref(input), &ConvertOptions::new()));
            std::thread::sleep(delay);
            event(input);
            converting.join().unwrap()
        });
        match result {
            // on a busy machine the change can be over before the file is opened: then the input
            // itself is a mixture, and is read unchanged
            Ok(file) if *name == OVERWRITTEN && reads_alike(&folder, &input, &file) => {}
            Ok(file) => seen[usize::try_from(version_of(&file)).unwrap()] += 1,
            Err(error) => {
                assert_ne!(*name, "replaced", "{error}");
                seen[0] += 1;
                check_refusal(&error, &input, name);
            }
        }
        assert!(!folder.path("out.tsl").exists());
    }
    assert!(seen[0] > 0 && seen[1] > 0, "errors, files of version 1 and 2: {seen:?}");
}

/// Returns whether converting the input now gives the same values.
fn reads_alike(folder: &Folder, input: &Path, file: &Reader) -> bool {
    let again = converted(folder, &[input.to_path_buf()], &ConvertOptions::new());
    again.is_ok_and(|again| {
        scalars::<i64>(&again, "number") == scalars::<i64>(file, "number")
            && tensors::<i64>(&again, "list") == tensors::<i64>(file, "list")
    })
}

/// Checks an error. An input that was truncated before it was opened is malformed, and one that its
/// writer had just emptied is empty. Otherwise the error names the change.
#[track_caller]
fn check_refusal(error: &Error, input: &Path, event: &str) {
    assert_eq!((error.kind(), error.path()), (ErrorKind::BadInput, Some(input)), "{event}: {error}");
    let is_named =
        ["changed while it was read", "still being written"].iter().any(|part| error.message().contains(part));
    let may_be_malformed = match event {
        "touched" => false,
        "rewritten" => error.message().starts_with("the file is empty"),
        _ => true,
    };
    assert!(is_named || may_be_malformed, "{event}: {error}");
}

#[test]
fn an_append_of_a_changed_input_leaves_the_file_unchanged() {
    let folder = Folder::new();
    let (input, file) = (folder.path("input"), folder.path("file.tsl"));
    let write = FORMATS.last().unwrap();
    write(&input, &version(2, 600));
    let next = fs::read(&input).unwrap();
    convert_with(std::slice::from_ref(&input), &file, &ConvertOptions::new()).unwrap();
    let before = fs::read(&file).unwrap();
    for (name, change) in changes(&next) {
        write(&input, &version(1, 600));
        let mut calls = 0;
        let result = append(std::slice::from_ref(&input), &file, &AppendOptions::new(), &mut |_| {
            if calls == 2 {
                change(&input);
            }
            calls += 1;
            GO_ON
        });
        assert!(calls > 2);
        let Err(error) = result else { panic!("{name} was not noticed") };
        is_changed(&error, &input);
        assert!(fs::read(&file).unwrap() == before, "{name}: the file was changed");
    }
}

/// Writes more inputs than are kept open; the first is `in-000`.
fn many(folder: &Path) -> Vec<PathBuf> {
    let inputs: Vec<PathBuf> = (0..300).map(|i| folder.join(format!("in-{i:03}"))).collect();
    inputs.iter().for_each(|input| write_arrow(input, &version(1, 1)));
    inputs
}

#[test]
fn more_inputs_than_stay_open_are_read_and_watched() {
    let folder = Folder::new();
    let inputs = many(folder.root());
    let (file, calls) = at_moment(folder.root(), &inputs, usize::MAX, &|| ());
    let file = file.unwrap();
    assert_eq!((version_of(&file), file.sample_count()), (1, 300));
    let touch = |input: &Path| {
        let file = fs::File::options().write(true).open(input).unwrap();
        file.set_modified(SystemTime::now()).unwrap();
    };
    // an input that was read and one that is still to be read, during inference and at the end
    for (moment, input) in [(0, 299), (calls - 1, 280), (calls - 1, 3)] {
        let input = &inputs[input];
        let (result, _) = at_moment(folder.root(), &inputs, moment, &|| touch(input));
        is_changed(&result.map(|_| ()).unwrap_err(), input);
    }
}

#[cfg(unix)]
#[test]
fn a_file_that_took_the_name_of_a_closed_one_is_never_read() {
    let folder = Folder::new();
    let next = folder.path("next");
    let inputs = many(folder.root());
    let (_, calls) = at_moment(folder.root(), &inputs, usize::MAX, &|| ());
    // (when, which, whether it is noticed): an input that is kept open, one that will be read
    // again, and one that was read completely
    for (moment, input, is_error) in [(0, 3, false), (0, 299, true), (calls - 100, 260, true), (calls - 1, 260, false)]
    {
        many(folder.root());
        write_arrow(&next, &version(2, 1));
        let input = &inputs[input];
        let (result, reached) = at_moment(folder.root(), &inputs, moment, &|| fs::rename(&next, input).unwrap());
        assert!(reached > moment && (is_error || reached == calls), "{reached} calls of {calls}");
        match result {
            Ok(file) => assert_eq!((version_of(&file), is_error), (1, false)),
            Err(error) => {
                is_changed(&error, input);
                assert!(is_error && error.message().contains("another file replaced it"), "{error}");
            }
        }
    }
}
