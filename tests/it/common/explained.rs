//! Checks that explanations of chunks are consistent and true.

use std::ops::Range;
use tensilo::Profile;
use tensilo::explain::{Choice, Explanation};
use tensilo::facts::ChunkBlocks;

/// Checks the explanation of a chunk that this profile wrote. A chunk after the first may reuse the
/// choice of the previous chunk, which explanations do not know.
#[track_caller]
pub fn check(explanation: &Explanation, profile: Profile) {
    let info = &explanation.info;
    let sections: u64 = explanation.sections.iter().map(|section| section.stored_bytes).sum();
    assert_eq!(sections, explanation.stored_bytes, "{explanation:?}");
    assert!(explanation.stored_bytes <= explanation.chunk_bytes() && explanation.raw_bytes <= info.raw_bytes);
    check_ratios(explanation);
    let choice = explanation.choices.iter().find(|choice| choice.profile == profile).unwrap();
    let is_first = explanation.chunk == 0;
    assert!(choice.in_file || !is_first, "{profile:?} gives other bytes than it wrote: {explanation:?}");
    let is_written = (&choice.encoding, choice.stored_bytes) == (&info.encoding, explanation.stored_bytes);
    assert!(is_written || !choice.in_file, "{explanation:?}");
    for choice in &explanation.choices {
        let trial = explanation.trials.iter().find(|trial| {
            (&trial.encoding, trial.stored_bytes) == (&choice.encoding, Some(choice.stored_bytes))
                && trial.profiles.contains(&choice.profile)
        });
        let trial = trial.unwrap_or_else(|| panic!("{choice:?} was not tried: {explanation:?}"));
        assert!(trial.in_file || !choice.in_file);
        check_reason(explanation, choice);
    }
    let written = explanation.trials.iter().filter(|trial| trial.in_file).count();
    assert!(written == 1 || written == 0 && !is_first, "{explanation:?}");
    let sizes: Vec<u64> = explanation.trials.iter().filter_map(|trial| trial.stored_bytes).collect();
    assert!(sizes.is_sorted());
    // raw is always possible
    let raw = explanation.trials.iter().find(|trial| trial.encoding == "raw").unwrap();
    assert_eq!(raw.stored_bytes, Some(explanation.raw_bytes));
}

fn check_ratios(explanation: &Explanation) {
    let info = &explanation.info;
    let chunk_bytes = info.file_range.end - info.file_range.start;
    assert_eq!(explanation.chunk_bytes(), chunk_bytes);
    let cold_bytes = check_cold_read(explanation);
    let is_near = |a: f64, b: f64| (a - b).abs() <= 1e-9 * b;
    let samples = (info.samples.end - info.samples.start) as f64;
    match explanation.read_amplification() {
        Some(times) => assert!(is_near(times * chunk_bytes as f64, cold_bytes as f64 * samples), "{times}"),
        None => assert_eq!(chunk_bytes, 0),
    }
    match explanation.bits_per_element(explanation.stored_bytes) {
        Some(bits) => {
            assert!(is_near(bits * explanation.element_count as f64, 8.0 * explanation.stored_bytes as f64), "{bits}")
        }
        None => assert_eq!(explanation.element_count, 0),
    }
}

/// Checks the blocks, and that reading a sample costs its blocks. Returns the cost.
fn check_cold_read(explanation: &Explanation) -> u64 {
    let (info, cold) = (&explanation.info, explanation.cold_read);
    let samples = info.samples.end - info.samples.start;
    assert_eq!(explanation.blocks.is_some(), info.encoding.ends_with(" in blocks"), "{explanation:?}");
    let blocks = explanation.blocks.as_ref().filter(|blocks| {
        check_blocks(explanation, blocks);
        samples > 1 && explanation.chunk_bytes() >= 8 << 10 // smaller chunks are read whole
    });
    let Some(blocks) = blocks else {
        assert_eq!((cold.prefix_bytes, cold.sample_bytes), (0, explanation.chunk_bytes() + 64));
        return cold.bytes();
    };
    assert_eq!(cold.prefix_bytes, (64 + blocks.block_index.end - blocks.block_index.start).max(1024));
    let length = |range: &Range<u64>| range.end - range.start;
    let sum = blocks.blocks.iter().map(|block| length(&block.file_range) * length(&block.samples)).sum::<u64>();
    assert_eq!(cold.sample_bytes, sum.div_ceil(samples));
    assert_eq!(cold.bytes(), cold.prefix_bytes + cold.sample_bytes);
    cold.bytes()
}

/// Checks that blocks follow each other from the block index to the end of the chunk.
fn check_blocks(explanation: &Explanation, blocks: &ChunkBlocks) {
    let info = &explanation.info;
    assert_eq!(blocks.block_index.start, info.file_range.start);
    let (mut end, mut raw_bytes, mut sample) = (blocks.block_index.end, 0, info.samples.start);
    for block in &blocks.blocks {
        assert!(block.file_range.start == end && block.file_range.end > end, "{blocks:?}");
        assert!(block.samples.start + 1 >= sample && block.samples.end >= sample, "{blocks:?}");
        assert!(!block.samples.is_empty(), "{blocks:?}");
        (end, sample) = (block.file_range.end, block.samples.end);
        raw_bytes += block.raw_bytes;
    }
    assert_eq!((end, raw_bytes), (info.file_range.end, explanation.raw_bytes));
    assert!(sample <= info.samples.end);
}

/// Checks that the stated reason is true.
fn check_reason(explanation: &Explanation, choice: &Choice) {
    let is_blocked = |name: &str| name.ends_with(" in blocks");
    let tried = explanation.trials.iter().filter(|trial| trial.profiles.contains(&choice.profile));
    let in_blocks = tried.clone().any(|trial| trial.encoding == "raw in blocks");
    // these exist in one form only
    let is_for_both = |name: &str| ["zstd", "zstd in blocks", "constant"].contains(&name);
    let tried = tried.filter(|trial| is_blocked(&trial.encoding) == in_blocks || is_for_both(&trial.encoding));
    let tried = tried.filter(|trial| !is_raw(&trial.encoding));
    let smallest = tried.filter_map(|trial| Some((trial.stored_bytes?, trial.encoding.as_str()))).min();
    let (raw, chosen) = (explanation.raw_bytes, choice.stored_bytes);
    let (min_bytes, name) = smallest.unwrap_or((raw, ""));
    let reason = choice.reason.strip_prefix(name).unwrap_or(&choice.reason);
    if let Some(percent) = required_percent(reason) {
        let holds = min_bytes < chosen && min_bytes * 100 >= chosen * (100 - percent);
        assert!(holds && [4, 17, 20].contains(&percent), "{choice:?} of {explanation:?}");
        return;
    }
    let is_true = match reason {
        "the values are empty" => raw == 0,
        "the profile stores all values raw" => choice.profile == Profile::Raw,
        "no encoding of the profile can express the values" => raw > 0 && smallest.is_none(),
        "the smallest encoding of the profile" => chosen == min_bytes && chosen < raw - raw / 20,
        " is smaller, but its estimate from a sample was larger" => min_bytes < chosen,
        "several blocks would take over 5 % more space" => {
            in_blocks && !is_blocked(&choice.encoding) && (chosen < 8 << 10 || choice.encoding == "planes-zstd")
        }
        reason => {
            let best = reason.strip_prefix("no encoding saves 5 %, so the values are stored raw; the smallest is ");
            best == Some(name) && is_raw(&choice.encoding) && min_bytes >= raw - raw / 20
        }
    };
    assert!(is_true, "{choice:?} of {explanation:?}");
}

/// Returns how much an encoding that decodes more slowly would have to save, if that is the reason.
fn required_percent(reason: &str) -> Option<u64> {
    let rest = reason.strip_prefix(" is smaller, but decodes more slowly and would have to be ")?;
    rest.strip_suffix(" % smaller")?.parse().ok()
}

fn is_raw(encoding: &str) -> bool {
    ["raw", "raw in blocks"].contains(&encoding)
}
