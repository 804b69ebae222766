//! `tensilo bench`: columns of files, and loaders.

use super::{CommandLine, Folder, NAMES, SAMPLES, damaged_file, empty_file, folder_of, has, written};
use serde_json::{Value, json};
use tensilo::{Schema, WriterOptions};

const NUMBERS: [&str; 6] = [
    "samples_per_s",
    "decoded_gb_per_s",
    "ns_per_sample_p50",
    "ns_per_sample_p99",
    "seconds",
    "decoded_bytes_per_sample",
];

#[test]
fn json_has_what_the_contract_names() {
    let folder = folder_of(&["a.tsl"]);
    // long enough to read each chunk in the warm-up, even on a busy machine
    let document = folder.json("bench a.tsl --json --seconds 0.5");
    let members = ["schema", "file", "column", "dtype", "access", "batch", "threads", "cold", "warmed_up"];
    let expected = json!(["tensilo.bench/1", "a.tsl", "x", "bf16", "random", 1, 1, false, true]);
    assert_eq!(Value::from_iter(members.map(|key| document[key].clone())), expected);
    assert_eq!(document["sample_count"], SAMPLES);
    for key in NUMBERS.iter().chain(&["read_samples"]) {
        assert!(document[key].as_f64().unwrap() > 0.0, "{key}: {document}");
    }
    assert!(document["ns_per_sample_p50"].as_f64() <= document["ns_per_sample_p99"].as_f64());
    assert_eq!(document["decoded_bytes_per_sample"], 4.0);
}

#[test]
fn every_column_is_measured_in_every_access_order() {
    let folder = folder_of(&["a.tsl"]);
    for column in NAMES {
        for (access, batch, threads) in [("random", 7, 3), ("sequential", 1, 1), ("shuffled", 64, 2)] {
            let words = format!("-c {column} --access {access} --batch {batch} --threads {threads}");
            let document = folder.json(&format!("bench a.tsl --json --seconds 0.01 {words}"));
            let choices = ["column", "access", "batch", "threads"].map(|key| document[key].clone());
            assert_eq!(Value::from_iter(choices), json!([column, access, batch, threads]));
            assert!(document["read_samples"].as_u64().unwrap() >= batch * threads, "{document}");
        }
    }
    let document = folder.json("bench a.tsl --json --seconds 0.01 --threads 64 --access sequential");
    assert_eq!(document["threads"], SAMPLES, "at most one per sample");
}

#[test]
fn cold_reads_each_sample_at_most_once_or_is_refused() {
    let folder = folder_of(&["a.tsl"]);
    if cfg!(not(any(target_os = "linux", target_os = "android", target_os = "freebsd"))) {
        folder.fails("bench a.tsl --cold", 2, "--cold");
        return;
    }
    for access in ["random", "sequential", "shuffled"] {
        let line = format!("bench a.tsl --json --cold --threads 3 --seconds 60 --access {access}");
        let document = folder.json(&line);
        assert_eq!((&document["cold"], &document["warmed_up"]), (&json!(true), &json!(false)));
        assert_eq!(document["read_samples"], SAMPLES, "{access}");
    }
}

#[test]
fn a_file_without_samples_has_nothing_to_measure() {
    let folder = Folder::new();
    folder.file("a.tsl", empty_file());
    for words in ["", "-c t", "--threads 4 --batch 8"] {
        let document = folder.json(&format!("bench a.tsl --json --seconds 0.01 {words}"));
        assert_eq!((&document["read_samples"], &document["sample_count"]), (&json!(0), &json!(0)));
        for key in NUMBERS.iter().filter(|key| **key != "seconds") {
            assert_eq!(document[key], Value::Null, "{key}");
        }
    }
    has(&folder.text("bench a.tsl --seconds 0.01"), &["0 samples in 0.00 s"]);
}

#[test]
fn text_has_a_line_for_each_fact() {
    let folder = folder_of(&["a.tsl"]);
    let text = folder.text("bench a.tsl --seconds 0.01 -c r --batch 3 --threads 2 --access shuffled");
    assert!(text.starts_with("file       a.tsl\ncolumn     r, i32 [*,2], 20 samples\n"), "{text}");
    let rows = ["reads      shuffled, batch 3, threads 2, warm", "io         pread", "measured ", "samples/s "];
    has(&text, &rows.map(|row| format!("\n{row}")).each_ref().map(String::as_str));
    has(&text, &["\ndecoded ", "\np50 ", "\np99 "]);
}

#[test]
fn a_mapped_file_is_measured_and_named_as_such() {
    let folder = folder_of(&["a.tsl"]);
    for column in ["x", "r"] {
        let line = format!("bench a.tsl --json --seconds 0.01 --io mmap -c {column} --threads 2 --batch 3");
        let document = folder.json(&line);
        assert_eq!(document["io"], "mmap");
        assert!(document["samples_per_s"].as_f64().unwrap() > 0.0, "{document}");
    }
    folder.fails("bench missing.tsl --io mmap", 3, "missing.tsl");
    folder.file("empty.tsl", b"");
    folder.fails("bench empty.tsl --io mmap", 1, "empty.tsl");
}

#[test]
fn impossible_measurements_are_refused() {
    let folder = folder_of(&["a.tsl", "data/a.tsl"]);
    folder.file("damaged.tsl", damaged_file());
    folder.file("none.tsl", written(Schema::new([]), WriterOptions::new(), |_| {}));
    for (line, code, message) in [
        ("a.tsl -c nothing", 2, "there is no column \"nothing\""),
        ("missing.tsl", 3, "missing.tsl"),
        ("none.tsl", 2, "no columns"),
        ("data -c x", 2, "this is a dataset"),
        ("data --access sequential", 2, "this is a dataset"),
        ("a.tsl --decode-threads 2", 2, "--loader"),
        ("a.tsl --columns x", 2, "--loader"),
        ("a.tsl --gpus 4", 2, "--loader"),
        ("a.tsl --loader --access random", 2, "--access"),
        ("a.tsl --loader --io fast", 2, "--io"),
        ("a.tsl --io direct", 2, "--loader"),
        ("a.tsl --loader --columns nothing", 2, "nothing"),
        ("a.tsl --loader --batch 1000000", 2, "--batch"),
        ("a.tsl --loader --order shuffled --run-samples 2", 2, "--order windowed"),
    ] {
        folder.fails(&format!("bench {line}"), code, message);
    }
    let mut runs = NAMES.iter().map(|column| folder.run(&format!("bench damaged.tsl -c {column} --seconds 0.01")));
    runs.find(|run| run.code != 0).unwrap().failed(1, "damaged.tsl");
}

#[test]
fn a_loader_reads_a_file_or_a_folder() {
    let folder = folder_of(&["data/a.tsl", "data/b.tsl"]);
    for (file, files) in [("data/a.tsl", 1), ("data", 2)] {
        for words in
            ["", "--io mmap", "--io pread", "--order shuffled", "--order windowed --run-samples 2 --window-runs 3"]
        {
            let document = folder.json(&format!("bench {file} --loader --json --seconds 0.02 {words}"));
            assert_eq!(document["schema"], "tensilo.bench-loader/1");
            assert_eq!((&document["sample_count"], &document["file_count"]), (&json!(SAMPLES * files), &json!(files)));
            assert_eq!(document["batch"], SAMPLES * files);
            let io = document["io"].as_str().unwrap();
            let expected = words.strip_prefix("--io ").map_or(vec!["io_uring", "pread"], |io| vec![io]);
            assert!(expected.contains(&io), "{io}");
            for run in document["runs"].as_array().unwrap() {
                for member in
                    ["decode_threads", "samples_per_s", "delivered_gb_per_s", "ns_per_batch_p50", "decoding_s"]
                {
                    assert!(run[member].as_f64().unwrap() > 0.0, "{member}: {run}");
                }
                assert!((0.0..=1.0).contains(&run["waiting_share"].as_f64().unwrap()));
            }
        }
    }
    let words = "--decode-threads 2 --io-depth 3 --columns x,r --batch 10";
    let document = folder.json(&format!("bench data --loader --json --seconds 0.02 {words}"));
    let runs = document["runs"].as_array().unwrap();
    assert_eq!((runs.len(), &runs[0]["decode_threads"], &runs[0]["io_depth"]), (1, &json!(2), &json!(3)));
    assert_eq!(document["batch"], 10);
    let run = folder.done("bench data --json --seconds 0.02");
    assert_eq!(run.json()["schema"], "tensilo.bench-loader/1");
    has(&run.stderr, &["as with --loader"]);
    let document = folder.json("bench data --quiet --json --seconds 0.02 --columns e --decode-threads 2");
    assert_eq!((&document["runs"][0]["decode_threads"], &document["sample_bytes"]), (&json!(2), &json!(4.0)));
}

/// The GPU is emulated.
#[cfg(feature = "emulator")]
#[test]
fn a_gpu_decodes() {
    let folder = folder_of(&["a.tsl"]);
    let bench = |words: &str| -> super::Run {
        let mut command = folder.command(&format!("bench a.tsl --loader --device cuda --seconds 0.02 {words}"));
        command.env("TENSILO_EMULATED_GPU", "1").output().unwrap().into()
    };
    let document = bench("--json").json();
    assert_eq!(document["device"], "emulated warp");
    for member in ["copied_bytes", "copying_s", "device_decoding_s", "device_waited_s", "samples_per_s"] {
        assert!(document["runs"][0][member].as_f64().unwrap() > 0.0, "{member}: {document}");
    }
    has(&bench("").text(), &["emulated warp: copies"]);
}

#[test]
fn the_verdict_says_how_many_decode_threads_are_enough() {
    let folder = folder_of(&["a.tsl"]);
    let verdict = |words: &str| {
        let document = folder.json(&format!("bench a.tsl --loader --json --seconds 0.02 {words}"));
        document["verdict"].as_str().unwrap().to_owned()
    };
    assert!(verdict("--gpus 1 --step-ms 3600000").starts_with("1 decode thread is enough"));
    let starving = verdict("--gpus 4294967295 --step-ms 0.001");
    assert!(starving.starts_with("not enough: ") && starving.contains("100 % of the time"), "{starving}");
    let text = folder.text("bench a.tsl --loader --seconds 0.02 --order windowed");
    has(&text, &["required", "GPUs wait", "enough"]);
}
