//! `tensilo bench`

use super::{Folder, SAMPLES, SampleFile, check_warning_of_unfinished_file, damaged_file, empty_file, on, raw_file};
use serde_json::{Value, json};
use std::path::Path;
use tensilo::sink::Stream;
use tensilo::{Schema, Writer, WriterOptions};

/// Runs a short measurement.
fn bench(file: &Path, words: &str) -> Value {
    on("bench", file, &format!("--json --seconds 0.01 {words}")).done().json()
}

const NUMBERS: [&str; 10] = [
    "samples_per_s",
    "decoded_gb_per_s",
    "memcpy_gb_per_s",
    "ns_per_sample_p50",
    "ns_per_sample_p99",
    "seconds",
    "decoded_bytes_per_sample",
    "stored_bytes_per_sample",
    "requests_per_sample",
    "read_amplification",
];

#[test]
fn json_has_what_the_contract_names() {
    let folder = Folder::new();
    let path = folder.samples("a.tsl");
    // long enough that each chunk is read before, even on a busy machine
    let document = on("bench", &path, "--json --seconds 0.5").done().json();
    assert_eq!(document["schema"], "tensilo.bench/1");
    assert_eq!(document["file"], path.to_str().unwrap());
    let choices = ["column", "dtype", "pattern", "batch", "threads", "cold", "warmed_up", "verification"];
    let due = json!(["x", "bf16", "random", 1, 1, false, true, "first-touch"]);
    assert_eq!(Value::from_iter(choices.map(|key| document[key].clone())), due);
    assert_eq!(document["sample_count"], SAMPLES);
    assert!(document["samples"].as_u64().unwrap() > 0);
    for key in NUMBERS {
        assert!(document[key].as_f64().unwrap() > 0.0, "{key}: {document}");
    }
    assert!(document["ns_per_sample_p50"].as_f64() <= document["ns_per_sample_p99"].as_f64());
    assert_eq!(document["decoded_bytes_per_sample"], 4.0);
}

#[test]
fn every_column_is_measured_in_every_pattern() {
    let folder = Folder::new();
    let path = folder.samples("a.tsl");
    for column in ["x", "e", "t", "b", "r", "flag", "n", "h"] {
        for (pattern, batch, threads) in [("random", 7, 3), ("sequential", 1, 1), ("shuffled", 64, 2)] {
            let words = format!("-c {column} --pattern {pattern} --batch {batch} --threads {threads}");
            let document = bench(&path, &words);
            let choices = ["column", "pattern", "batch", "threads"].map(|key| document[key].clone());
            assert_eq!(Value::from_iter(choices), json!([column, pattern, batch, threads]));
            assert!(document["samples"].as_u64().unwrap() >= batch * threads, "{document}");
            assert!(document["samples_per_s"].as_f64().unwrap() > 0.0, "{document}");
        }
    }
}

#[test]
fn bytes_read_of_the_file_are_counted() {
    let folder = Folder::new();
    let path = folder.samples("a.tsl");
    // 20 samples of 8 bytes in chunks of 4: 5 heads and 5 bodies for 20 samples, except in the
    // last, incomplete pass, and a page of the index for all
    let read = |words: &str| bench(&path, words)["stored_bytes_per_sample"].as_f64().unwrap();
    let sequential = read("-c r --pattern sequential --verification always");
    assert!((10.0..300.0).contains(&sequential), "{sequential}");
    assert!(read("-c r --pattern random --verification always") > sequential);
}

/// Each sample of 100 chunks of 64 KiB is in another chunk than the sample before it, or nearly so.
#[test]
fn a_random_sample_costs_a_block_or_a_chunk() {
    let folder = Folder::new();
    for (block_bytes, due) in [(Some(8 << 10), 8 << 10), (Some(2 << 10), 2 << 10), (None, 64 << 10)] {
        let document = bench(&folder.file("raw.tsl", raw_file(100, block_bytes)), "--verification always");
        let number = |member: &str| document[member].as_f64().unwrap();
        let (bytes, requests, amplification) =
            (number("stored_bytes_per_sample"), number("requests_per_sample"), number("read_amplification"));
        // the front of each of the chunks is read once; the page of the index was read before
        let fronts = if block_bytes.is_some() { 100.0 / number("samples") } else { 0.0 };
        let bytes_due = f64::from(due) + fronts * 1024.0;
        assert!(0.9 * f64::from(due) < bytes && bytes < 1.1 * bytes_due, "{block_bytes:?}: {document}");
        let requests_due = if block_bytes.is_some() { 0.9..=1.1 + 2.0 * fronts } else { 0.9..=1.1 };
        assert!(requests_due.contains(&requests), "{block_bytes:?}: {document}");
        // reading a number from JSON can change its last digit
        assert!((amplification / (bytes / 1024.0) - 1.0).abs() < 1e-9, "{block_bytes:?}: {document}");
    }
}

/// Samples of the same block are read together.
#[test]
fn gathers_read_each_block_once() {
    let folder = Folder::new();
    let path = folder.file("raw.tsl", raw_file(100, Some(8 << 10)));
    let bytes =
        |words: &str| bench(&path, &format!("--verification always {words}"))["stored_bytes_per_sample"].clone();
    // a batch of 800 has one sample of each block, on average, and misses 37 % of the blocks
    let gathered = bytes("--batch 800").as_f64().unwrap();
    assert!((0.55..0.75).contains(&(gathered / 8192.0)), "{gathered}");
    let whole = bytes("--batch 6400 --pattern shuffled").as_f64().unwrap();
    assert!((1000.0..1040.0).contains(&whole), "{whole}, the last chunk is held");
}

#[test]
fn verification_can_be_chosen() {
    let folder = Folder::new();
    let path = folder.samples("a.tsl");
    for check in ["first-touch", "always", "never"] {
        assert_eq!(bench(&path, &format!("--verification {check}"))["verification"], check);
    }
}

#[test]
#[cfg(any(target_os = "linux", target_os = "android", target_os = "freebsd"))]
fn cold_reads_each_sample_at_most_once() {
    let folder = Folder::new();
    let path = folder.samples("a.tsl");
    for pattern in ["random", "sequential", "shuffled"] {
        let words = format!("--json --cold --threads 3 --seconds 60 --pattern {pattern}");
        let document = on("bench", &path, &words).done().json();
        assert_eq!((&document["cold"], &document["warmed_up"]), (&json!(true), &json!(false)));
        assert_eq!(document["samples"], SAMPLES, "{pattern}");
    }
}

#[test]
#[cfg(not(any(target_os = "linux", target_os = "android", target_os = "freebsd")))]
fn cold_is_refused_where_it_cannot_be_had() {
    let folder = Folder::new();
    on("bench", &folder.samples("a.tsl"), "--cold").failed(2, "--cold");
}

#[test]
fn a_file_without_samples_has_nothing_to_measure() {
    let folder = Folder::new();
    let path = folder.file("a.tsl", empty_file());
    for words in ["", "-c t", "--cold", "--threads 4 --batch 8"] {
        if words == "--cold" && cfg!(not(target_os = "linux")) {
            continue;
        }
        let document = bench(&path, words);
        assert_eq!((&document["samples"], &document["sample_count"]), (&json!(0), &json!(0)));
        for key in NUMBERS.iter().filter(|key| **key != "seconds") {
            assert_eq!(document[key], Value::Null, "{key}");
        }
    }
    assert!(on("bench", &path, "").done().text().contains("0 samples in 0.00 s"));
}

#[test]
fn there_are_not_more_threads_than_samples() {
    let folder = Folder::new();
    assert_eq!(bench(&folder.samples("a.tsl"), "--threads 64 --pattern sequential")["threads"], SAMPLES);
}

#[test]
fn text_is_a_table() {
    let folder = Folder::new();
    let path = folder.samples("a.tsl");
    let text = on("bench", &path, "--seconds 0.01 -c r --batch 3 --threads 2 --pattern shuffled").done().text();
    assert!(text.starts_with("file           "), "{text}");
    assert!(text.contains("\ncolumn         r, i32 [*,2], 20 samples\n"), "{text}");
    assert!(text.contains("\nreads          shuffled, batch 3, threads 2, warm, verification first-touch\n"), "{text}");
    for row in ["measured", "samples/s", "decoded", "memcpy", "p50", "p99", "from the file"] {
        assert!(text.contains(&format!("\n{row} ")), "{row}: {text}");
    }
}

#[test]
fn impossible_measurements_are_refused() {
    let folder = Folder::new();
    let path = folder.samples("a.tsl");
    on("bench", &path, "-c nothing").failed(2, "there is no column \"nothing\"");
    on("bench", &folder.path("missing.tsl"), "").failed(3, "missing.tsl");
    let damaged = folder.file("damaged.tsl", damaged_file());
    let mut runs = ["x", "e", "t", "b", "r", "flag", "n", "h"]
        .iter()
        .map(|column| on("bench", &damaged, &format!("-c {column} --seconds 0.01")));
    runs.find(|run| run.code != 0).unwrap().failed(1, "damaged.tsl");
    let columnless = Writer::new(Stream(Vec::new()), Schema::new([]), &WriterOptions::new()).unwrap();
    let columnless = columnless.into_bytes().unwrap();
    on("bench", &folder.file("none.tsl", columnless), "").failed(2, "no columns");
}

#[test]
fn an_unfinished_file_gives_a_warning() {
    check_warning_of_unfinished_file("bench", "--seconds 0.01");
}

#[test]
fn a_mapped_file_is_measured_and_named_as_such() {
    let folder = Folder::new();
    let path = folder.samples("a.tsl");
    for column in ["x", "r"] {
        let document = bench(&path, &format!("--io mmap -c {column} --threads 2 --batch 3"));
        assert_eq!(document["io"], "mmap");
        assert!(document["samples_per_s"].as_f64().unwrap() > 0.0, "{document}");
        assert_eq!(
            ["stored_bytes_per_sample", "requests_per_sample", "read_amplification"].map(|key| &document[key]),
            [&Value::Null; 3]
        );
    }
    let text = |words: &str| on("bench", &path, &format!("--seconds 0.01 {words}")).done().text();
    assert!(text("").contains("\nio             pread\n"));
    on("bench", &folder.path("missing.tsl"), "--io mmap").failed(3, "missing.tsl");
    on("bench", &folder.file("empty.tsl", b""), "--io mmap").failed(1, "empty.tsl");
}
