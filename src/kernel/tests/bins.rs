//! Bins.

use super::support::{Guarded, Misaligned, Random, counts, offsets};
use crate::kernel::bins::encode::{self, BinEncoder};
use crate::kernel::bins::{BINS, BinModel, Bins, CLASSES, CodedBlock, GROUP, available};

/// Bins and frequencies, and what encoding needs besides.
pub(super) struct Model {
    pub tables: BinModel,
    /// `K` of each bin.
    pub bits: Vec<u8>,
    class_count: usize,
    /// The bins that have a frequency in each class.
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

    /// Returns the classes of the groups of `count` windows, random windows, and their bins.
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

    /// Decodes the first `wanted` of `count` windows.
    fn decode(&self, bins: &Bins, classes: &[u8], count: usize, stored: &[u8], wanted: usize) -> Option<Vec<u8>> {
        let (source, destination) = offsets(count);
        let mut out = Guarded::zeros(2 * wanted, destination);
        let stored = Misaligned::new(stored, source);
        let out_windows = out.get().as_chunks_mut().0;
        let is_right = bins.decode(&self.tables, CodedBlock { classes, count, stored: stored.get(), out: out_windows });
        let out = out.into_bytes(|| bins.name().to_owned());
        is_right.then_some(out)
    }
}

/// What [`Model::decode`] takes of a block.
#[derive(Clone, Copy)]
struct Stored<'a> {
    classes: &'a [u8],
    count: usize,
    stored: &'a [u8],
    wanted: usize,
}

impl Model {
    /// Decodes two blocks together. Checks that the results are those of each alone.
    fn check_two(&self, bins: &Bins, blocks: [Stored<'_>; 2], context: impl Fn() -> String) {
        let due =
            blocks.map(|Stored { classes, count, stored, wanted }| self.decode(bins, classes, count, stored, wanted));
        let mut outs = blocks.map(|block| Guarded::zeros(2 * block.wanted, offsets(block.count).1));
        let copies = blocks.map(|block| Misaligned::new(block.stored, offsets(block.count).0));
        let [a, b] = &mut outs;
        let given = |block: usize, out| {
            let Stored { classes, count, .. } = blocks[block];
            CodedBlock { classes, count, stored: copies[block].get(), out }
        };
        let given = [given(0, a.get().as_chunks_mut().0), given(1, b.get().as_chunks_mut().0)];
        let are_right = bins.decode_two(&self.tables, given);
        for ((out, is_right), due) in outs.into_iter().zip(are_right).zip(due) {
            let out = out.into_bytes(|| bins.name().to_owned());
            assert!(is_right.then_some(out) == due, "two blocks: {} {}", bins.name(), context());
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
            for kernel in available() {
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
fn the_first_windows_are_decoded_alone() {
    for (seed, model) in models() {
        for count in [1, 63, 64, 65, 128, 200] {
            let (classes, windows, bins) = model.windows(&mut Random::new(seed + count), count);
            let stored = model.encode(&classes, &windows, &bins);
            for (kernel, wanted) in
                available().iter().flat_map(|kernel| (0..=count).map(move |wanted| (kernel, wanted)))
            {
                let decoded = model.decode(kernel, &classes, count, &stored, wanted);
                let due = windows[..wanted].as_flattened();
                assert!(decoded.as_deref() == Some(due), "{} model {seed} {wanted} of {count}", kernel.name());
            }
            for kernel in available() {
                assert_eq!(model.decode(kernel, &classes, count, &stored, count + 1), None, "{}", kernel.name());
            }
        }
    }
}

/// Two blocks that have as many groups, or not; of which all windows are wanted, or some or none.
#[test]
fn two_blocks_are_decoded_as_each_is_alone() {
    let all = [[1, 1], [64, 65], [128, 127], [129, 500], [500, 64], [640, 640], [700, 650]];
    let some = if cfg!(miri) { &all[..2] } else { &all };
    for (seed, model) in models() {
        for &counts in some {
            let encoded = counts.map(|count| {
                let (classes, windows, bins) = model.windows(&mut Random::new(seed + count), count);
                (model.encode(&classes, &windows, &bins), classes)
            });
            for (kernel, parts) in available().iter().flat_map(|kernel| (0..9).map(move |parts| (kernel, parts))) {
                let block = |i: usize, part: usize| Stored {
                    classes: &encoded[i].1,
                    count: counts[i],
                    stored: &encoded[i].0,
                    wanted: [counts[i], counts[i] / 2, 0][part],
                };
                let blocks = [block(0, parts / 3), block(1, parts % 3)];
                model.check_two(kernel, blocks, || format!("model {seed} counts {counts:?} parts {parts}"));
            }
        }
    }
}

/// What is refused does not depend on the kernel, and neither does what is read of bytes that no
/// encoder wrote.
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
                let wanted = if round % 3 == 0 { count } else { random.next() as usize % (count + 1) };
                let due = model.decode(&available()[0], &classes, count, &changed, wanted);
                assert!(
                    wanted < count || due.as_deref() != Some(windows.as_flattened()) || round % 4 == 2,
                    "not noticed"
                );
                for kernel in available() {
                    let found = model.decode(kernel, &classes, count, &changed, wanted);
                    assert!(found == due, "{} model {seed} count {count} round {round}", kernel.name());
                    let right = Stored { classes: &classes, count, stored: &stored, wanted: count };
                    let any = Stored { stored: &changed, wanted, ..right };
                    let blocks = if round % 2 == 0 { [any, right] } else { [right, any] };
                    model.check_two(kernel, blocks, || format!("model {seed} count {count} round {round}"));
                }
            }
        }
    }
}

/// A model that no file can have is safe.
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
        let due = decode(&available()[0]);
        assert!(available().iter().all(|kernel| decode(kernel) == due));
    }
}
