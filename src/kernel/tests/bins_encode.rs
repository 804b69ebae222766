//! The encoder of bins.

use super::bins::{Model, models};
use super::support::{Guarded, Random, offsets};
use crate::kernel::bins::encode::{BinEncoder, BinEncoding, Coder, EncoderModel, MOST_BYTES, SLACK, available};
use crate::kernel::bins::{self, BINS, BinModel, CLASSES, CodedBlock, GROUP};

/// Returns the bytes that an encoder appends, or `None` if it refuses. Its memory was used before.
fn encode(kernel: &BinEncoding, model: &BinModel, classes: &[u8], windows: &[[u8; 2]], bins: &[u8]) -> Option<Vec<u8>> {
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
            let due = encode(&available()[0], &model.tables, &classes, &windows, &bins).unwrap();
            assert!(is_decoded(&model.tables, &classes, &windows, &due), "model {seed} count {count}");
            for kernel in available() {
                let found = encode(kernel, &model.tables, &classes, &windows, &bins);
                assert!(found.as_ref() == Some(&due), "{} model {seed} count {count}", kernel.name());
            }
        }
    }
}

/// Each element has nearly all of the bytes that it can have in the stream.
#[test]
fn the_longest_stream_fits() {
    let mut tables = BinModel::default();
    tables.set_bins(&[15, 14, 14]);
    tables.set_class(0, 0, &[1, 254, 1]);
    for count in [64, 65, 128, 1000] {
        let windows = vec![[0xFF, 0x7F]; count];
        let (classes, bins) = (vec![0; count.div_ceil(GROUP)], vec![0; count]);
        let due = encode(&available()[0], &tables, &classes, &windows, &bins).unwrap();
        assert!(due.len() > count * (MOST_BYTES - 1) * 9 / 10, "{count}: {}", due.len());
        for kernel in available() {
            let found = encode(kernel, &tables, &classes, &windows, &bins);
            assert!(found.as_ref() == Some(&due), "{} count {count}", kernel.name());
        }
    }
}

/// One window, bin or class after the other is made wrong.
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
            let due = encode(&available()[0], &model.tables, &classes, &windows, &bins);
            if let Some(stored) = &due {
                assert!(is_decoded(&model.tables, &classes, &windows, stored), "model {seed} round {round}");
            }
            for kernel in available() {
                let found = encode(kernel, &model.tables, &classes, &windows, &bins);
                assert!(found == due, "{} model {seed} round {round}", kernel.name());
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
    for kernel in available() {
        let encode = |classes: &[u8], windows: &[[u8; 2]], bins: &[u8]| {
            encode(kernel, &tables, classes, windows, bins).is_some()
        };
        assert!(encode(&[0], &[[1, 2], [3, 0x84]], &[0, 1]));
        assert!(!encode(&[0], &[[1, 2], [3, 0x84]], &[0, 0]), "outside of its bin");
        assert!(!encode(&[1], &[[1, 2]], &[0]), "no frequency");
        assert!(!encode(&[], &[[1, 2]], &[0]), "no class");
        assert!(!encode(&[0], &[[1, 2]; 65], &[0; 65]), "no class of the last group");
        assert!(!encode(&[0], &[[1, 2]], &[]), "no bin");
        assert!(!encode(&[0], &[[1, 2]], &[64]), "no such bin");
        for at in [0, 63, 64, 100, 127, 128, 129] {
            let (mut windows, mut bins) = ([[1, 2]; 130], [0; 130]);
            (windows[at], bins[at]) = ([1, 0x80], 1);
            assert!(encode(&[0; 3], &windows, &bins));
            windows[at] = [1, 0x7F];
            assert!(!encode(&[0; 3], &windows, &bins), "{}: element {at}", kernel.name());
        }
    }
}

/// A model that no file can have is safe, and what cannot be decoded with it is refused.
#[test]
fn any_model_is_safe_to_encode_with() {
    let mut random = Random::new(7);
    for round in 0..if cfg!(miri) { 4 } else { 400 } {
        let mut tables = BinModel::default();
        let bin_count = random.next() as usize % 100;
        let most = [17, 255][round % 2];
        let bits: Vec<u8> = (0..bin_count).map(|_| random.byte() % most).collect();
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
        let due = encode(&available()[0], &tables, &classes, &windows, &bins);
        assert!(available().iter().all(|kernel| encode(kernel, &tables, &classes, &windows, &bins) == due));
    }
}

/// Each state is divided by each frequency, in each kernel.
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
            for kernel in available() {
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

/// Divides states by a frequency. Returns their lower and upper bytes, and the stream, after a
/// group whose elements are all in a bin of one value that has the first slots.
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

/// Kernels write to nothing but the stream, and refuse one that is too short.
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
            let enough = SLACK + count * MOST_BYTES;
            let due = run(&available()[0], enough);
            for kernel in available() {
                assert!(due.is_some() && run(kernel, enough) == due, "{} model {seed}", kernel.name());
                for len in [0, 1, 63, 64, SLACK - 1, SLACK, SLACK + 1, SLACK + 100] {
                    assert!(run(kernel, len).is_none_or(|found| Some(found) == due), "{} {len}", kernel.name());
                }
            }
        }
    }
}
