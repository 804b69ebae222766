//! `tensilo bench --loader`

use super::{Folder, SAMPLES, SampleFile, on};
#[cfg(feature = "emulator")]
use super::{Run, program};
use serde_json::Value;

#[test]
fn a_file_and_a_folder_are_measured() {
    let folder = Folder::new();
    std::fs::create_dir(folder.path("data")).unwrap();
    folder.samples("data/a.tsl");
    folder.samples("data/b.tsl");
    for (file, files) in [("data/a.tsl", 1), ("data", 2)] {
        for words in [
            "",
            "--io mmap",
            "--io pread",
            "--order shuffled",
            "--decode-threads 2 --io-depth 3 --columns x,r --batch 10",
        ] {
            let words = format!("--loader --json --seconds 0.02 {words}");
            let document = on("bench", &folder.path(file), &words).done().json();
            assert_eq!(document["schema"], "tensilo.bench-loader/1");
            assert_eq!(document["sample_count"], SAMPLES * files);
            assert_eq!(document["files"], files);
            let io = document["io"].as_str().unwrap();
            match () {
                () if words.contains("mmap") => assert_eq!(io, "mmap"),
                () if words.contains("pread") => assert_eq!(io, "pread"),
                () => assert!(["io_uring", "pread"].contains(&io), "{io}"),
            }
            assert_eq!(document["batch"], if words.contains("--batch") { 10 } else { SAMPLES * files });
            assert_eq!(document["quality"].is_object(), words.contains("--order"));
            let runs = document["runs"].as_array().unwrap();
            for run in runs {
                for member in
                    ["decode_threads", "samples_per_s", "delivered_gb_per_s", "ns_per_batch_p50", "decoding_s"]
                {
                    assert!(run[member].as_f64().unwrap() > 0.0, "{member}: {run}");
                }
                assert!((0.0..=1.0).contains(&run["waiting_share"].as_f64().unwrap()));
            }
            if words.contains("--decode-threads") {
                assert_eq!(
                    (runs.len(), &runs[0]["decode_threads"], &runs[0]["io_depth"]),
                    (1, &Value::from(2), &Value::from(3))
                );
            }
        }
    }
}

/// The GPU is emulated.
#[cfg(feature = "emulator")]
#[test]
fn a_gpu_decodes() {
    let folder = Folder::new();
    let path = folder.samples("a.tsl");
    let bench = |words: &str| -> Run {
        let words = format!("--loader --device cuda --seconds 0.02 {words}");
        let mut command = program();
        command.env("TENSILO_EMULATED_GPU", "1").arg("bench").arg(&path).args(words.split_whitespace());
        command.output().unwrap().into()
    };
    let document = bench("--json").done().json();
    assert_eq!(document["device"], "emulated warp");
    for member in ["copied_bytes", "copying_s", "device_decoding_s", "device_waited_s", "samples_per_s"] {
        assert!(document["runs"][0][member].as_f64().unwrap() > 0.0, "{member}: {document}");
    }
    let text = bench("").done().text();
    assert!(text.contains("emulated warp: copies"), "{text}");
}

#[test]
fn the_verdict_says_how_many_decode_threads_are_enough() {
    let folder = Folder::new();
    let path = folder.samples("a.tsl");
    let verdict = |words: &str| {
        let document = on("bench", &path, &format!("--loader --json --seconds 0.02 {words}")).done().json();
        document["verdict"].as_str().unwrap().to_owned()
    };
    assert!(verdict("--gpus 1 --step-ms 3600000").starts_with("1 decode thread is enough"));
    let starving = verdict("--gpus 4294967295 --step-ms 0.001");
    assert!(starving.starts_with("not enough: ") && starving.contains("100 % of the time"), "{starving}");
    let text = on("bench", &path, "--loader --seconds 0.02 --order windowed").done().text();
    for part in ["required", "GPUs wait", "true shuffle", "enough"] {
        assert!(text.contains(part), "{text}");
    }
}

#[test]
fn the_drawing_is_svg() {
    let folder = Folder::new();
    let (path, svg) = (folder.samples("a.tsl"), folder.path("loader.svg"));
    let words = format!("--loader --seconds 0.02 --svg {}", svg.display());
    on("bench", &path, &words).done();
    let drawing = std::fs::read_to_string(&svg).unwrap();
    assert!(drawing.starts_with("<svg ") && drawing.ends_with("</svg>\n") && drawing.contains("required"));
    on("bench", &path, &words).failed(2, "--force");
    on("bench", &path, &format!("{words} --force")).done();
}

#[test]
fn what_cannot_be_measured_is_refused() {
    let folder = Folder::new();
    std::fs::create_dir(folder.path("data")).unwrap();
    let path = folder.samples("data/a.tsl");
    on("bench", &folder.path("data"), "-c x").failed(2, "this is a dataset");
    on("bench", &folder.path("data"), "--pattern sequential").failed(2, "this is a dataset");
    on("bench", &path, "--decode-threads 2").failed(2, "--loader");
    on("bench", &path, "--loader --pattern random").failed(2, "--pattern");
    on("bench", &path, "--loader --io fast").failed(2, "--io");
    on("bench", &path, "--io direct").failed(2, "--loader");
    on("bench", &path, "--loader --columns nothing").failed(2, "nothing");
    on("bench", &path, "--loader --batch 1000000").failed(2, "--batch");
}

#[test]
fn a_dataset_is_measured_by_a_loader_unless_told() {
    let folder = Folder::new();
    std::fs::create_dir(folder.path("data")).unwrap();
    folder.samples("data/a.tsl");
    let run = on("bench", &folder.path("data"), "--json --seconds 0.02").done();
    assert_eq!(run.json()["schema"], "tensilo.bench-loader/1");
    assert!(run.stderr.contains("as with --loader"), "{}", run.stderr);
}
