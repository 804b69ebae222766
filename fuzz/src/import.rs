//! Converts arbitrary bytes as Parquet, as Arrow, or as another format.
//!
//! A conversion must end with an error and no output, or with a file that verifies and has as many
//! samples as reported. libFuzzer limits its memory. The length of the input chooses some options.

use std::fs;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tensilo::Reader;
use tensilo::import::{ConvertOptions, InputFormat, NullElements, convert};
use tensilo::verify::VerifyOptions;

const PARQUET: &[u8; 4] = b"PAR1";

/// Converts a Parquet file. Sets its two magic numbers, without which nothing would be parsed.
pub fn parquet(input: &[u8]) {
    let mut file = input.to_vec();
    if file.len() >= 12 {
        let tail = file.len() - 4;
        file[..4].copy_from_slice(PARQUET);
        file[tail..].copy_from_slice(PARQUET);
        run(&file, ConvertOptions::new());
    }
}

/// Converts an Arrow file or stream.
pub fn arrow(input: &[u8]) {
    if !input.starts_with(PARQUET) {
        run(input, ConvertOptions::new());
    }
}

/// Converts a file of one of these formats. The second file that some formats need has the same
/// bytes.
pub fn formats(input: &[u8], formats: Vec<Arc<dyn InputFormat>>) {
    if !input.starts_with(PARQUET) {
        run(input, ConvertOptions::new().formats(formats));
    }
}

fn run(file: &[u8], options: ConvertOptions) {
    // a folder in memory, if there is one
    let memory = Path::new("/dev/shm");
    let parent = if memory.is_dir() { memory.to_path_buf() } else { std::env::temp_dir() };
    let folder = tempfile::tempdir_in(parent).unwrap();
    let (input, output) = (folder.path().join("input"), folder.path().join("output.tsl"));
    for path in [&input, &input.with_extension("bin")] {
        fs::write(path, file).unwrap();
        // an old time: a conversion of a new file waits until its time would reveal later changes
        let old = SystemTime::now() - Duration::from_secs(60);
        fs::File::options().write(true).open(path).and_then(|file| file.set_modified(old)).unwrap();
    }
    let null_elements = [NullElements::Refuse, NullElements::Zero, NullElements::Nan][file.len() % 3];
    let options = options.null_elements(null_elements).bf16(file.len().is_multiple_of(5));
    match convert(&[input], &output, &options, &mut |_| ControlFlow::Continue(())) {
        Ok(samples) => {
            let reader = Reader::from_bytes(fs::read(&output).unwrap()).unwrap();
            assert_eq!(reader.sample_count(), samples);
            let findings = reader.verify(VerifyOptions::new().deep(true)).unwrap().findings;
            assert!(findings.is_empty(), "{findings:?}");
        }
        Err(_) => assert!(!output.exists(), "an output despite an error"),
    }
}
