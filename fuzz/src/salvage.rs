//! Salvages arbitrary bytes after correcting their checksums.
//!
//! In half of the inputs, one byte of each chunk in blocks is damaged afterwards. Every sample that
//! salvage does not report as lost must be readable, and rewriting them must give a file that
//! verifies. An undamaged file must lose nothing. If salvage finds nothing, the file must not open.

use super::open;
use super::regions::{CHUNK, HEADER_BYTES, block_index, body, headers, number, reseal, values_at};
use tensilo::salvage::{OnLoss, RewriteOptions, SalvageOptions, Salvaged, salvage};
use tensilo::sink::Stream;
use tensilo::source::InMemory;
use tensilo::verify::{VerifyOptions, verify};
use tensilo::{Column, ColumnBuffer, ErrorKind, Profile, Reader, Result, WriterOptions};

/// The maximum number of samples and bytes of a chunk, and of samples of a file. More is
/// legitimate, but would only cost time.
const SMALL: u64 = 1 << 12;

pub fn run(input: &[u8]) {
    let mut file = input.to_vec();
    reseal(&mut file);
    let is_small = |(at, magic)| {
        // samples, bytes
        magic != CHUNK || number(&file, at + 40, 4) <= SMALL && number(&file, at + 48, 4) <= SMALL
    };
    if !headers(&file).all(is_small) {
        return;
    }
    let salt = file.last().copied().unwrap_or(0); // part of a checksum: as good as random
    if salt & 4 == 4 {
        damage_blocks(&mut file, salt.into());
    }
    let salvaged = match salvage(InMemory(file.clone()), SalvageOptions::new().deep(true)) {
        Ok(salvaged) => salvaged,
        Err(error) => {
            // other errors: a region may need a newer release, but no reader looks at it
            let is_lost = error.kind() == ErrorKind::Corrupt;
            assert!(!is_lost || Reader::from_bytes(file.clone()).is_err(), "a file that opens has a header");
            return;
        }
    };
    if is_whole(&file) {
        assert!(salvaged.losses.is_empty() && salvaged.unconfirmed.is_empty() && salvaged.file_header_is_intact);
    }
    // a lost sample becomes a null, which takes all bytes of its shape
    let is_small = |column: Column| open::sample_bytes(&column) <= SMALL;
    if salvaged.reader.sample_count() <= SMALL && salvaged.reader.columns().all(is_small) {
        read(&salvaged);
        rewrite(&salvaged, salt);
    }
}

/// Changes one byte of the blocks of each chunk in blocks.
fn damage_blocks(file: &mut [u8], salt: usize) {
    let chunks: Vec<usize> = headers(file).filter(|(_, magic)| *magic == CHUNK).map(|(at, _)| at).collect();
    for at in chunks {
        let Some((values, body)) = values_at(file, at).zip(body(file, at)) else { continue };
        let end = at + HEADER_BYTES + body.len();
        let block_index = body.get(values..).and_then(|stored| block_index(stored, number(file, at + 52, 2) as u16));
        let Some(blocks) = block_index.map(|block_index| at + HEADER_BYTES + values + block_index.bytes..end) else {
            continue;
        };
        if !blocks.is_empty() {
            file[blocks.start + salt * 31 % blocks.len()] ^= 1;
        }
    }
}

fn is_whole(file: &[u8]) -> bool {
    let report = verify(&InMemory(file), VerifyOptions::new().deep(true));
    report.is_ok_and(|report| report.findings.is_empty())
}

/// Reads all samples that are not lost.
fn read(salvaged: &Salvaged) {
    let mut buffer = ColumnBuffer::new();
    let all: Vec<u64> = (0..salvaged.reader.sample_count()).collect();
    let mut left = Vec::new();
    for (column, (_, lost)) in salvaged.reader.columns().zip(&salvaged.losses.columns) {
        lost.resolve(&all, OnLoss::Skip, &mut left).expect("skipping never fails");
        let read = column.cursor().gather_into(&left, &mut buffer);
        if open::is_known(&column) {
            read.expect("a sample that is not lost can be read");
        } else {
            assert!(left.is_empty() || is_too_new(&read), "elements of an unknown type are not read");
        }
        assert_eq!(left.len() as u64, lost.intact_count());
    }
}

fn is_too_new<T>(result: &Result<T>) -> bool {
    result.as_ref().is_err_and(|error| error.kind() == ErrorKind::TooNew)
}

fn rewrite(salvaged: &Salvaged, salt: u8) {
    let drop_lost = salt & 1 == 1;
    let options = RewriteOptions::new().drop_lost(drop_lost);
    let block_bytes = (salt & 2 == 2).then_some(1024 + usize::from(salt));
    let writer = WriterOptions::new().profile(Profile::Raw).block_bytes(block_bytes);
    let written = salvaged.write_to(Stream(Vec::new()), &writer, options);
    if is_too_new(&written) {
        assert!(!salvaged.reader.columns().all(|column| open::is_known(&column)));
        return;
    }
    let written = written.expect("samples that can be read can be written");
    let lost = if drop_lost { salvaged.losses.of_all().count() } else { 0 };
    let expected = salvaged.reader.sample_count() - lost; // holds without columns, too
    assert_eq!(written.sample_count, expected);
    assert!(is_whole(&written.sink.0));
}
