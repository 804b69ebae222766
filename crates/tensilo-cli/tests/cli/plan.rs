//! `tensilo plan`: what a training job would read, predicted from a dataset.

use super::{CommandLine, SAMPLES, folder_of, has};
use serde_json::json;

#[test]
fn a_plan_predicts_what_each_order_reads() {
    let folder = folder_of(&["data/a.tsl", "data/b.tsl"]);
    for (file, files) in [("data/a.tsl", 1), ("data", 2)] {
        let words = "--nodes 2 --ranks 2 --batch 3 --step-ms 100 --run-samples 4 --window-runs 2 --streams 4";
        let document = folder.json(&format!("plan {file} --json {words}"));
        assert_eq!((&document["schema"], &document["file_count"]), (&json!("tensilo.plan/1"), &json!(files)));
        let samples = u64::from(SAMPLES * files);
        assert_eq!((&document["sample_count"], &document["steps"]), (&json!(samples), &json!(samples / 12)));
        assert_eq!(document["window_sizes"], json!({"run_samples": 4, "window_runs": 2, "streams": 4}));
        assert_eq!(document["storage"]["name"], "NVMe");
        let orders = document["orders"].as_array().unwrap();
        let names: Vec<_> = orders.iter().map(|order| order["order"].as_str().unwrap()).collect();
        assert_eq!(names, ["sequential", "windowed", "shuffled"]);
        for order in orders {
            let number = |member: &str| order[member].as_f64().unwrap();
            assert!(number("node_requests") > 0.0 && number("node_bytes") > 0.0, "{order}");
            assert!(number("amplification") > 0.0 && number("step_s") > 0.0, "{order}");
            assert!((0.0..=1.0).contains(&number("waiting_share")), "{order}");
            assert_eq!(number("window_bytes") > 0.0, order["order"] == "windowed", "{order}");
        }
    }
}

#[test]
fn storage_determines_the_waits() {
    let folder = folder_of(&["data/a.tsl"]);
    let waits = |words: &str| -> Vec<f64> {
        let document = folder.json(&format!("plan data --json --ranks 1 --batch 8 --step-ms 1 {words}"));
        let orders = document["orders"].as_array().unwrap();
        orders.iter().map(|order| order["waiting_share"].as_f64().unwrap()).collect()
    };
    let (near, far) = (waits("--storage s3 --latency-ms 1"), waits("--storage s3 --latency-ms 1000"));
    assert!(near.iter().zip(&far).all(|(near, far)| near <= far) && far[2] > 0.9, "{near:?} {far:?}");
    let tailed = waits("--storage s3 --latency-ms 1 --p99-latency-ms 1000");
    assert!(near.iter().zip(&tailed).all(|(near, tailed)| near <= tailed), "{near:?} {tailed:?}");
    let slow = waits("--storage nvme --gbit-per-s 0.001");
    assert!(slow.iter().all(|share| *share > 0.5), "{slow:?}");
}

#[test]
fn a_plan_is_a_table_for_people() {
    let folder = folder_of(&["data/a.tsl"]);
    let text = folder.text("plan data --nodes 2 --ranks 1 --batch 2 --storage s3-cache --columns x,e --streams 1");
    has(&text, &["2 machines with 1 rank", "object store, cache of 16 GiB: 20.00 ms", "amplification", "shuffled"]);
    has(&text, &["1 stream for 2 machines: machines share streams"]);
}

#[test]
fn plans_that_are_impossible_are_refused() {
    let folder = folder_of(&["data/a.tsl"]);
    for (words, message) in [
        ("--columns nothing", "nothing"),
        ("--nodes 1000 --batch 1000", "choose smaller batches or fewer ranks"),
        ("--nodes 0", "--nodes"),
        ("--streams 3", "power of two"),
        ("--storage tape", "--storage"),
        ("--gbit-per-s 0", "Gbit/s"),
    ] {
        folder.fails(&format!("plan data {words}"), 2, message);
    }
    folder.fails("plan missing.tsl", 3, "missing.tsl");
}
