//! Any bytes as a Parquet file, Arrow file or stream, or a file of another format: a conversion
//! ends in an error or in a file that verifies, in bounded memory.

use std::fs;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tensilo::Reader;
use tensilo::import::{ConvertOptions, InputFormat, NullElements, convert};
use tensilo::verify::VerifyOptions;

const PARQUET: &[u8; 4] = b"PAR1";

/// The magic numbers are put where they belong.
pub fn parquet(input: &[u8]) {
    let mut file = input.to_vec();
    if file.len() >= 12 {
        let tail = file.len() - 4;
        file[..4].copy_from_slice(PARQUET);
        file[tail..].copy_from_slice(PARQUET);
        run(&file, ConvertOptions::new());
    }
}

pub fn arrow(input: &[u8]) {
    if !input.starts_with(PARQUET) {
        run(input, ConvertOptions::new());
    }
}

/// A file that one of these formats may take. The file beside it that some have is the same.
pub fn formats(input: &[u8], formats: Vec<Arc<dyn InputFormat>>) {
    if !input.starts_with(PARQUET) {
        run(input, ConvertOptions::new().formats(formats));
    }
}

fn run(file: &[u8], options: ConvertOptions) {
    // in memory, if the system has such a folder
    let memory = Path::new("/dev/shm");
    let parent = if memory.is_dir() { memory.to_path_buf() } else { std::env::temp_dir() };
    let folder = tempfile::tempdir_in(parent).unwrap();
    let (input, output) = (folder.path().join("input"), folder.path().join("output.tsl"));
    for path in [&input, &input.with_extension("bin")] {
        fs::write(path, file).unwrap();
        // long ago, so that nothing waits until the modification time tells later changes
        let old = SystemTime::now() - Duration::from_secs(60);
        fs::File::options().write(true).open(path).and_then(|file| file.set_modified(old)).unwrap();
    }
    let null_elements = [NullElements::Refuse, NullElements::Zero, NullElements::Nan][file.len() % 3];
    let options = options.null_elements(null_elements).bf16(file.len().is_multiple_of(5));
    match convert(&[input], &output, &options, &mut |_| ControlFlow::Continue(())) {
        Ok(samples) => {
            let reader = Reader::from_bytes(fs::read(&output).unwrap()).unwrap();
            assert_eq!(reader.sample_count(), samples);
            let damages = reader.verify(VerifyOptions::new().decode(true)).unwrap().damages;
            assert!(damages.is_empty(), "{damages:?}");
        }
        Err(_) => assert!(!output.exists(), "an output in spite of an error"),
    }
}
