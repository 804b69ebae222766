//! The cost of reading one sample that is in no cache.

use tensilo::facts::ColumnFacts;

/// Returns the bytes of a cold read of one sample: head and body of its chunk, on average.
pub(super) fn cold_read_bytes(facts: &ColumnFacts) -> u64 {
    const HEAD_BYTES: u64 = 64;
    match facts.stored_bytes.checked_div(facts.chunk_count) {
        Some(bytes) => bytes.saturating_add(HEAD_BYTES),
        None => 0,
    }
}

/// Returns the bytes of a cold read divided by the stored bytes of a sample, on average; `None` if
/// samples are stored in 0 bytes.
pub(super) fn read_amplification(facts: &ColumnFacts, sample_count: u64) -> Option<f64> {
    // an approximation
    quotient(cold_read_bytes(facts), quotient(facts.stored_bytes, sample_count as f64)?)
}

pub(super) fn quotient(amount: u64, divisor: f64) -> Option<f64> {
    (divisor > 0.0).then(|| amount as f64 / divisor) // an approximation
}

pub(super) fn amplification_text(ratio: Option<f64>) -> String {
    ratio.map_or("-".to_owned(), |ratio| format!("{ratio:.1}"))
}
