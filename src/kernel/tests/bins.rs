//! Bins: decoding, encoding, and the costs of groups in classes.
//!
//! A [`Model`] has random bins and frequencies. Each kernel must decode the blocks that an encoder
//! writes with this model. For any other bytes, all kernels must return the same result, and no
//! kernel may read or write outside of its buffers.

use super::{Guarded, Misaligned, Random, counts, offsets};
use crate::kernel::bins::{
    self, BINS, BinModel, Bins, CLASSES, CodedBlock, GROUP,
    costs::{self, GroupCounts},
    encode::{self, BinEncoder, BinEncoding, Coder, EncoderModel, MAX_BYTES_PER_ELEMENT, SLACK},
};

/// Random bins and frequencies, and everything else that encoding needs.
pub(super) struct Model {
    pub tables: BinModel,
    /// The `K` of each bin.
    pub bits: Vec<u8>,
    class_count: usize,
    /// The bins of each class whose frequency is not 0.
    present: Vec<Vec<usize>>,
}

impl Model {
    /// Returns random bins and frequencies.
    pub(super) fn new(random: &mut Random, bin_count: usize, class_count: usize) -> Self {
        let mut bits = vec![16_u8];
        while bits.len() < bin_count {
            let at = random.next() as usize % bits.len();
            if bits[at] > 0 {
                bits[at] -= 1;
                bits.insert(at, bits[at]);
            }
        }
        let mut tables = BinModel::default();
        tables.set_bins(&bits);
        let mut present = Vec::new();
        for class in 0..class_count {
            let mut frequencies = vec![0_u8; bin_count];
            (frequencies[0], frequencies[bin_count - 1]) = (1, 1);
            for _ in 0..254 {
                let near = (random.next() % 3 + class as u64 * 5) as usize % bin_count;
                let bin = if random.next().is_multiple_of(4) { random.next() as usize % bin_count } else { near };
                let bin = if frequencies[bin] < 254 { bin } else { 0 };
                frequencies[bin] += 1;
            }
            tables.set_class(class, 0, &frequencies);
            present.push((0..bin_count).filter(|&bin| frequencies[bin] > 0).collect());
        }
        Self { tables, bits, class_count, present }
    }

    /// Returns the classes of random groups, `count` random windows in these groups, and the bins
    /// of the windows.
    pub(super) fn windows(&self, random: &mut Random, count: usize) -> (Vec<u8>, Vec<[u8; 2]>, Vec<u8>) {
        let classes: Vec<u8> =
            (0..count.div_ceil(GROUP)).map(|_| (random.next() as usize % self.class_count) as u8).collect();
        let (mut windows, mut bins) = (Vec::new(), Vec::new());
        for i in 0..count {
            let present = &self.present[usize::from(classes[i / GROUP])];
            let bin = present[random.next() as usize % present.len()];
            let start: u32 = self.bits[..bin].iter().map(|&bits| 1 << bits).sum();
            let offset = random.next() as u32 & ((1 << self.bits[bin]) - 1);
            windows.push(((start + offset) as u16).to_le_bytes());
            bins.push(bin as u8);
        }
        (classes, windows, bins)
    }

    fn encode(&self, classes: &[u8], windows: &[[u8; 2]], bins: &[u8]) -> Vec<u8> {
        let (mut encoder, mut stored) = (BinEncoder::default(), Vec::new());
        encoder.set_model(&self.tables);
        assert!(encode::best().encode(&mut encoder, classes, windows, bins, &mut stored));
        stored
    }

    /// Decodes the first `requested` of `count` windows.
    fn decode(&self, bins: &Bins, classes: &[u8], count: usize, stored: &[u8], requested: usize) -> Option<Vec<u8>> {
        let (source, destination) = offsets(count);
        let mut out = Guarded::zeros(2 * requested, destination);
        let stored = Misaligned::new(stored, source);
        let out_windows = out.get().as_chunks_mut().0;
        let is_valid = bins.decode(&self.tables, CodedBlock { classes, count, stored: stored.get(), out: out_windows });
        let out = out.into_bytes(|| bins.name().to_owned());
        is_valid.then_some(out)
    }
}

/// The arguments of [`Model::decode`] for a block.
#[derive(Clone, Copy)]
struct Stored<'a> {
    classes: &'a [u8],
    count: usize,
    stored: &'a [u8],
    requested: usize,
}

impl Model {
    /// Decodes two blocks together, and compares each with the result of decoding it individually.
    fn check_two(&self, bins: &Bins, blocks: [Stored<'_>; 2], context: impl Fn() -> String) {
        let expected = blocks
            .map(|Stored { classes, count, stored, requested }| self.decode(bins, classes, count, stored, requested));
        let mut outs = blocks.map(|block| Guarded::zeros(2 * block.requested, offsets(block.count).1));
        let copies = blocks.map(|block| Misaligned::new(block.stored, offsets(block.count).0));
        let [a, b] = &mut outs;
        let given = |block: usize, out| {
            let Stored { classes, count, .. } = blocks[block];
            CodedBlock { classes, count, stored: copies[block].get(), out }
        };
        let given = [given(0, a.get().as_chunks_mut().0), given(1, b.get().as_chunks_mut().0)];
        let are_valid = bins.decode_two(&self.tables, given);
        for ((out, is_valid), expected) in outs.into_iter().zip(are_valid).zip(expected) {
            let out = out.into_bytes(|| bins.name().to_owned());
            assert!(is_valid.then_some(out) == expected, "two blocks: {} {}", bins.name(), context());
        }
    }
}

pub(super) fn models() -> impl Iterator<Item = (usize, Model)> {
    let shapes = [(2, 1), (3, 2), (16, 4), (17, 3), (32, 2), (33, 4), (BINS, CLASSES), (BINS, 1)];
    shapes
        .into_iter()
        .enumerate()
        .step_by(if cfg!(miri) { 3 } else { 1 })
        .map(|(seed, (bins, classes))| (seed, Model::new(&mut Random::new(seed), bins, classes)))
}

#[test]
fn every_kernel_decodes_what_was_encoded() {
    for (seed, model) in models() {
        for count in counts().filter(|count| *count > 0 && (count % 5 == seed % 5 || *count < 140)) {
            let (classes, windows, bins) = model.windows(&mut Random::new(seed + count), count);
            let stored = model.encode(&classes, &windows, &bins);
            for kernel in bins::available() {
                let decoded = model.decode(kernel, &classes, count, &stored, count);
                assert!(
                    decoded.as_deref() == Some(windows.as_flattened()),
                    "{} model {seed} count {count}",
                    kernel.name()
                );
            }
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "large")]
fn the_first_windows_are_decoded_without_the_rest() {
    for (seed, model) in models() {
        for count in [1, 63, 64, 65, 128, 200] {
            let (classes, windows, bins) = model.windows(&mut Random::new(seed + count), count);
            let stored = model.encode(&classes, &windows, &bins);
            for (kernel, requested) in
                bins::available().iter().flat_map(|kernel| (0..=count).map(move |requested| (kernel, requested)))
            {
                let decoded = model.decode(kernel, &classes, count, &stored, requested);
                let expected = windows[..requested].as_flattened();
                assert!(decoded.as_deref() == Some(expected), "{} model {seed} {requested} of {count}", kernel.name());
            }
            for kernel in bins::available() {
                assert_eq!(model.decode(kernel, &classes, count, &stored, count + 1), None, "{}", kernel.name());
            }
        }
    }
}

/// Tests pairs of blocks with equal and different numbers of groups. Requests all, some or none of
/// the windows.
#[test]
fn two_blocks_decode_as_they_do_individually() {
    let all = [[1, 1], [64, 65], [128, 127], [129, 500], [500, 64], [640, 640], [700, 650]];
    let some = if cfg!(miri) { &all[..2] } else { &all };
    for (seed, model) in models() {
        for &counts in some {
            let encoded = counts.map(|count| {
                let (classes, windows, bins) = model.windows(&mut Random::new(seed + count), count);
                (model.encode(&classes, &windows, &bins), classes)
            });
            for (kernel, parts) in bins::available().iter().flat_map(|kernel| (0..9).map(move |parts| (kernel, parts)))
            {
                let block = |i: usize, part: usize| Stored {
                    classes: &encoded[i].1,
                    count: counts[i],
                    stored: &encoded[i].0,
                    requested: [counts[i], counts[i] / 2, 0][part],
                };
                let blocks = [block(0, parts / 3), block(1, parts % 3)];
                model.check_two(kernel, blocks, || format!("model {seed} counts {counts:?} parts {parts}"));
            }
        }
    }
}

/// All kernels refuse the same blocks, and decode the same windows from bytes that no encoder
/// wrote.
#[test]
fn all_kernels_agree_about_any_bytes() {
    for (seed, model) in models() {
        let mut random = Random::new(seed);
        for &count in if cfg!(miri) { &[1, 65, 129][..] } else { &[1, 64, 65, 127, 128, 129, 500] } {
            let (classes, windows, bins) = model.windows(&mut random, count);
            let stored = model.encode(&classes, &windows, &bins);
            for round in 0..if cfg!(miri) { 2 } else { 200 } {
                let mut changed = stored.clone();
                match round % 4 {
                    0 => changed.truncate(random.next() as usize % stored.len()),
                    1 => changed.push(random.byte()),
                    2 => changed = random.bytes(stored.len()),
                    _ => {
                        let at = random.next() as usize % stored.len();
                        changed[at] ^= 1 << (random.next() % 8);
                    }
                }
                let requested = if round % 3 == 0 { count } else { random.next() as usize % (count + 1) };
                let expected = model.decode(&bins::available()[0], &classes, count, &changed, requested);
                assert!(
                    requested < count || expected.as_deref() != Some(windows.as_flattened()) || round % 4 == 2,
                    "the change was not detected"
                );
                for kernel in bins::available() {
                    let found = model.decode(kernel, &classes, count, &changed, requested);
                    assert!(found == expected, "{} model {seed} count {count} round {round}", kernel.name());
                    let right = Stored { classes: &classes, count, stored: &stored, requested: count };
                    let any = Stored { stored: &changed, requested, ..right };
                    let blocks = if round % 2 == 0 { [any, right] } else { [right, any] };
                    model.check_two(kernel, blocks, || format!("model {seed} count {count} round {round}"));
                }
            }
        }
    }
}

/// Decoding with a model that no file can have is safe.
#[test]
fn any_model_is_safe() {
    let mut random = Random::new(7);
    for _ in 0..if cfg!(miri) { 10 } else { 100 } {
        let mut tables = BinModel::default();
        let bin_count = random.next() as usize % 100;
        tables.set_bins(&random.bytes(bin_count));
        for class in 0..20 {
            let (first, frequency_count) = (random.next() as usize % 80, random.next() as usize % 80);
            tables.set_class(class, first, &random.bytes(frequency_count));
        }
        let (classes, stored) = (random.bytes(10), random.bytes(800));
        let decode = |kernel: &Bins| {
            let mut out = [[0; 2]; 300];
            let block = CodedBlock { classes: &classes, count: 300, stored: &stored, out: &mut out };
            kernel.decode(&tables, block).then_some(out)
        };
        let expected = decode(&bins::available()[0]);
        assert!(bins::available().iter().all(|kernel| decode(kernel) == expected));
    }
}

// ---- encoding

/// Returns the bytes that an encoder appends, or `None` if it refuses the block. Memory of the
/// encoder is reused: it has encoded another block before.
fn encoded(
    kernel: &BinEncoding,
    model: &BinModel,
    classes: &[u8],
    windows: &[[u8; 2]],
    bins: &[u8],
) -> Option<Vec<u8>> {
    let mut encoder = BinEncoder::default();
    encoder.set_model(&Model::new(&mut Random::new(99), BINS, CLASSES).tables);
    let _ = kernel.encode(&mut encoder, &[0; 3], &[[0; 2]; 150], &[0; 150], &mut Vec::new());
    encoder.set_model(model);
    let mut stored = vec![1, 2, 3];
    let is_encoded = kernel.encode(&mut encoder, classes, windows, bins, &mut stored);
    assert!(stored.starts_with(&[1, 2, 3]) && (is_encoded || stored.len() == 3), "{}", kernel.name());
    is_encoded.then(|| stored.split_off(3))
}

fn is_decoded(model: &BinModel, classes: &[u8], windows: &[[u8; 2]], stored: &[u8]) -> bool {
    let mut out = vec![[0; 2]; windows.len()];
    let block = CodedBlock { classes, count: windows.len(), stored, out: &mut out };
    bins::available()[0].decode(model, block) && out == windows
}

#[test]
fn every_kernel_encodes_the_same_bytes() {
    let counts = if cfg!(miri) { [0..3, 63..67, 128..130] } else { [0..401, 4090..4100, 8191..8194] };
    for (seed, model) in models() {
        for count in counts.clone().into_iter().flatten() {
            let (classes, windows, bins) = model.windows(&mut Random::new(seed + count), count);
            let expected = encoded(&encode::available()[0], &model.tables, &classes, &windows, &bins).unwrap();
            assert!(is_decoded(&model.tables, &classes, &windows, &expected), "model {seed} count {count}");
            for kernel in encode::available() {
                let found = encoded(kernel, &model.tables, &classes, &windows, &bins);
                assert!(found.as_ref() == Some(&expected), "{} model {seed} count {count}", kernel.name());
            }
        }
    }
}

/// Each element takes nearly the maximum number of bytes in the stream.
#[test]
fn the_longest_stream_fits() {
    let mut tables = BinModel::default();
    tables.set_bins(&[15, 14, 14]);
    tables.set_class(0, 0, &[1, 254, 1]);
    for count in [64, 65, 128, 1000] {
        let windows = vec![[0xFF, 0x7F]; count];
        let (classes, bins) = (vec![0; count.div_ceil(GROUP)], vec![0; count]);
        let expected = encoded(&encode::available()[0], &tables, &classes, &windows, &bins).unwrap();
        assert!(expected.len() > count * (MAX_BYTES_PER_ELEMENT - 1) * 9 / 10, "{count}: {}", expected.len());
        for kernel in encode::available() {
            let found = encoded(kernel, &tables, &classes, &windows, &bins);
            assert!(found.as_ref() == Some(&expected), "{} count {count}", kernel.name());
        }
    }
}

/// Changes one window, bin or class at a time. Most changes are invalid.
#[test]
fn every_kernel_refuses_what_cannot_be_encoded() {
    for (seed, model) in models() {
        let mut random = Random::new(seed);
        for round in 0..if cfg!(miri) { 4 } else { 400 } {
            let count = 1 + random.next() as usize % 200;
            let (mut classes, mut windows, mut bins) = model.windows(&mut random, count);
            let at = random.next() as usize % count;
            match round % 5 {
                0 => windows[at] = [random.byte(), random.byte()],
                1 => bins[at] = random.byte(),
                2 => classes[at / GROUP] = random.byte(),
                3 => bins[at] = (bins[at] + 1) % model.bits.len() as u8,
                _ => windows[at][round % 2] ^= 1 << (random.next() % 8),
            }
            let expected = encoded(&encode::available()[0], &model.tables, &classes, &windows, &bins);
            if let Some(stored) = &expected {
                assert!(is_decoded(&model.tables, &classes, &windows, stored), "model {seed} round {round}");
            }
            for kernel in encode::available() {
                let found = encoded(kernel, &model.tables, &classes, &windows, &bins);
                assert!(found == expected, "{} model {seed} round {round}", kernel.name());
            }
        }
    }
}

#[test]
fn what_cannot_be_encoded_is_refused() {
    let mut tables = BinModel::default();
    tables.set_bins(&[15, 15]);
    tables.set_class(0, 0, &[255, 1]);
    tables.set_class(1, 1, &[255]);
    for kernel in encode::available() {
        let encode = |classes: &[u8], windows: &[[u8; 2]], bins: &[u8]| {
            encoded(kernel, &tables, classes, windows, bins).is_some()
        };
        assert!(encode(&[0], &[[1, 2], [3, 0x84]], &[0, 1]));
        assert!(!encode(&[0], &[[1, 2], [3, 0x84]], &[0, 0]), "a window outside of its bin");
        assert!(!encode(&[1], &[[1, 2]], &[0]), "a bin without a frequency");
        assert!(!encode(&[], &[[1, 2]], &[0]), "a missing class");
        assert!(!encode(&[0], &[[1, 2]; 65], &[0; 65]), "a missing class of the last group");
        assert!(!encode(&[0], &[[1, 2]], &[]), "a missing bin");
        assert!(!encode(&[0], &[[1, 2]], &[64]), "a bin that does not exist");
        for at in [0, 63, 64, 100, 127, 128, 129] {
            let (mut windows, mut bins) = ([[1, 2]; 130], [0; 130]);
            (windows[at], bins[at]) = ([1, 0x80], 1);
            assert!(encode(&[0; 3], &windows, &bins));
            windows[at] = [1, 0x7F];
            assert!(!encode(&[0; 3], &windows, &bins), "{}: element {at}", kernel.name());
        }
    }
}

/// Encoding with a model that no file can have is safe. Blocks that this model could not decode are
/// refused.
#[test]
fn any_model_is_safe_to_encode_with() {
    let mut random = Random::new(7);
    for round in 0..if cfg!(miri) { 4 } else { 400 } {
        let mut tables = BinModel::default();
        let bin_count = random.next() as usize % 100;
        let limit = [17, 255][round % 2];
        let bits: Vec<u8> = (0..bin_count).map(|_| random.byte() % limit).collect();
        tables.set_bins(&bits);
        for class in 0..20 {
            let (first, frequency_count) = (random.next() as usize % 80, random.next() as usize % 80);
            tables.set_class(class, first, &random.bytes(frequency_count));
        }
        let classes = random.bytes(10);
        let count = random.next() as usize % 300;
        let bin = random.byte() % 64;
        let window = [random.byte(), random.byte()];
        let (windows, bins): (Vec<_>, Vec<_>) = match round % 3 {
            0 => (0..count).map(|_| ([random.byte(), random.byte()], random.byte())).unzip(),
            1 => (0..count).map(|_| ([random.byte(), random.byte()], bin)).unzip(),
            _ => (0..count).map(|_| (window, bin)).unzip(),
        };
        let expected = encoded(&encode::available()[0], &tables, &classes, &windows, &bins);
        assert!(
            encode::available().iter().all(|kernel| encoded(kernel, &tables, &classes, &windows, &bins) == expected)
        );
    }
}

/// In each kernel, divides each state by each frequency.
#[test]
#[cfg_attr(miri, ignore = "large")]
fn every_division_is_exact() {
    for frequency in 1..=u8::MAX {
        let mut tables = BinModel::default();
        tables.set_bins(&[0]);
        tables.set_class(0, 0, &[frequency, 1]);
        let mut model = EncoderModel::default();
        model.set(&tables);
        for first in (256..=u16::MAX).step_by(GROUP) {
            let states = std::array::from_fn(|i| first + i as u16);
            for kernel in encode::available() {
                let mut stream = [0; SLACK + GROUP];
                let mut coder = Coder::new(states, &mut stream);
                kernel.kernel.groups(&model, &[0], &[[[0; 2]; GROUP]], &[[0; GROUP]], &mut coder);
                let mut stored = Vec::new();
                assert!(coder.finish(GROUP, &mut stored), "{}", kernel.name());
                assert!(stored == divided(&states, frequency), "{} {first} / {frequency}", kernel.name());
            }
        }
    }
}

/// Divides states by a frequency. Returns the lower bytes, the upper bytes and the stream after a
/// group whose elements are all in one bin. The bin contains a single value, and its slots start at
/// 0.
fn divided(states: &[u16; GROUP], frequency: u8) -> Vec<u8> {
    let frequency = u32::from(frequency);
    let (mut lower, mut upper, mut stream) = (Vec::new(), Vec::new(), Vec::new());
    for state in states {
        let mut state = u32::from(*state);
        if state >= frequency * 256 {
            stream.push(state as u8);
            state >>= 8;
        }
        lower.push((state % frequency) as u8);
        upper.push((state / frequency) as u8);
    }
    [lower, upper, stream].concat()
}

/// Kernels write only to the stream, and refuse a stream that is too short.
#[test]
fn every_kernel_stays_inside_the_stream() {
    for (seed, model) in models() {
        for count in [GROUP, 2 * GROUP, 5 * GROUP] {
            let (classes, windows, bins) = model.windows(&mut Random::new(seed + count), count);
            let mut tables = EncoderModel::default();
            tables.set(&model.tables);
            let run = |kernel: &BinEncoding, len: usize| {
                let mut stream = Guarded::zeros(len, offsets(len).0);
                let mut coder = Coder::new([256; GROUP], stream.get());
                let (windows, bins) = (windows.as_chunks().0, bins.as_chunks().0);
                kernel.kernel.groups(&tables, &classes, windows, bins, &mut coder);
                let mut stored = Vec::new();
                let is_encoded = coder.finish(GROUP, &mut stored);
                stream.into_bytes(|| kernel.name().to_owned());
                is_encoded.then_some(stored)
            };
            let enough = SLACK + count * MAX_BYTES_PER_ELEMENT;
            let expected = run(&encode::available()[0], enough);
            for kernel in encode::available() {
                assert!(expected.is_some() && run(kernel, enough) == expected, "{} model {seed}", kernel.name());
                for len in [0, 1, 63, 64, SLACK - 1, SLACK, SLACK + 1, SLACK + 100] {
                    assert!(run(kernel, len).is_none_or(|found| Some(found) == expected), "{} {len}", kernel.name());
                }
            }
        }
    }
}

// ---- costs

/// Returns the counts of groups of 64 random bins each.
fn groups(random: &mut Random, count: usize) -> Vec<GroupCounts> {
    let mut groups = vec![[0; BINS]; count];
    for group in &mut groups {
        (0..64).for_each(|_| group[usize::from(random.byte()) % BINS] += 1);
    }
    groups
}

#[test]
fn every_kernel_adds_the_same_costs() {
    for count in if cfg!(miri) { 0..3 } else { 0..70 } {
        let mut random = Random::new(count);
        let groups = groups(&mut random, count);
        // below 2^17
        let costs = std::array::from_fn(|_| std::array::from_fn(|_| (random.next() >> 47) as f32));
        let before = f32::from(random.byte());
        let mut expected = vec![[before; CLASSES]; count];
        for (group, sums) in groups.iter().zip(&mut expected) {
            for (costs, &count) in costs.iter().zip(group) {
                sums.iter_mut().zip(costs).for_each(|(sum, cost)| *sum += cost * f32::from(count));
            }
        }
        for kernel in costs::available() {
            let mut found = vec![[before; CLASSES]; count];
            kernel.add(&costs, &groups, &mut found);
            assert_eq!(found, expected, "{} {count}", kernel.name());
        }
    }
}

#[test]
fn groups_that_both_have() {
    for kernel in costs::available() {
        let groups = [[1; BINS]; 3];
        let mut sums = [[0.0; CLASSES]; 2];
        kernel.add(&[[1.0; CLASSES]; BINS], &groups, &mut sums);
        kernel.add(&[[1.0; CLASSES]; BINS], &groups[..1], &mut sums);
        assert_eq!(sums, [[128.0; CLASSES], [64.0; CLASSES]], "{}", kernel.name());
    }
}
