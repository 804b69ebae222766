//! Reads everything that a file offers, by every path; errors are fine, anything else is not.

use tensilo::{ColumnBuffer, InMemory, OpenOptions, Verification, VerifyOptions, verify};

pub fn walk(file: &[u8]) {
    let _ = verify(&InMemory(file), VerifyOptions::new().decode(true));
    for verification in [Verification::FirstTouch, Verification::Never] {
        let Ok(reader) = OpenOptions::new().verification(verification).open(InMemory(file)) else { return };
        let count = reader.sample_count();
        let samples = (0..count.min(20)).chain(count.saturating_sub(3)..count);
        let mut buffer = ColumnBuffer::new();
        for column in reader.columns().take(20) {
            let mut cursor = column.cursor();
            for i in samples.clone() {
                let _ = column.view(i);
                let _ = column.chunk_of(i);
                if let Ok(sample) = cursor.read(i) {
                    let _ = sample.as_str();
                }
            }
            let some: Vec<u64> = samples.clone().rev().collect();
            let _ = cursor.gather_into(&some, &mut buffer);
            let _ = cursor.range_into(0..count.min(20), &mut buffer);
        }
    }
}
