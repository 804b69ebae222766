//! All kernels that this machine can run, by family, on a chunk of 64 KiB.
//!
//! A chunk and its result fit in the second-level cache. Compare each row with `memcpy` of its
//! group, which only moves the same bytes. `bitshuffle 64 MiB` streams from memory, except on
//! machines with a shared cache of more than 128 MiB. Throughput counts each input byte once:
//! elements; symbols in `tiers`; numbers in `float multiples` and `dictionaries`.

#[allow(dead_code, unused_imports, reason = "the benchmarks use only a part of the module")]
#[path = "../src/kernel/mod.rs"]
mod kernel;
mod support;

use criterion::{BenchmarkGroup, Criterion, Throughput, criterion_group, criterion_main, measurement::WallTime};
use kernel::bins::costs::{self, GroupCounts};
use kernel::bins::encode::{self, BinEncoder};
use kernel::bins::{BinModel, CodedBlock};
use kernel::byte_planes::BytePlanes;
use kernel::dictionaries::DictionaryTables;
use kernel::float_multiples::{FloatFormat, FloatMultipleTerms, NumberDetails};
use kernel::predict::{FilterBank, MAX_FILTERS, MAX_TAPS, Prediction, Predictor, SEGMENT, Weights};
use kernel::tiers::{GROUP_BYTES, code_bytes};
use kernel::{Width, bins, bitshuffle, byte_planes, dictionaries, extra_bits, float_multiples, predict, tiers};
use std::hint::black_box;
use std::ops::Range;
use support::{Random, criterion};

const CHUNK: usize = 64 << 10;

const WIDTHS: [Width; 4] = [Width::W1, Width::W2, Width::W4, Width::W8];

fn random(bytes: usize) -> Vec<u8> {
    let mut random = Random::new();
    (0..bytes / 8).flat_map(|_| random.next().to_le_bytes()).collect()
}

/// Starts a group of rows that move `from.len()` bytes, with the row `memcpy`.
fn group<'c>(c: &'c mut Criterion, name: &str, from: &[u8]) -> BenchmarkGroup<'c, WallTime> {
    let mut to = vec![0; from.len()];
    let mut group = c.benchmark_group(name);
    group.throughput(Throughput::Bytes(from.len() as u64));
    if from.len() > CHUNK {
        group.sample_size(10);
    }
    group.bench_function("memcpy", |b| b.iter(|| black_box(&mut to).copy_from_slice(black_box(from))));
    group
}

fn shuffles(c: &mut Criterion, name: &str, bytes: usize, widths: &[Width]) {
    let from = random(bytes);
    let mut to = vec![0; bytes];
    let mut group = group(c, name, &from);
    for kernel in bitshuffle::available() {
        for &width in widths {
            let row = |direction: &str| format!("{}/width {}/{direction}", kernel.name(), width.bytes());
            group.bench_function(row("shuffle"), |b| {
                b.iter(|| kernel.shuffle(width, black_box(&from), black_box(&mut to)));
            });
            group.bench_function(row("unshuffle"), |b| {
                b.iter(|| kernel.unshuffle(width, black_box(&from), black_box(&mut to)));
            });
        }
    }
}

fn shuffles_of_chunks(c: &mut Criterion) {
    shuffles(c, "bitshuffle", CHUNK, &WIDTHS);
}

fn shuffles_of_memory(c: &mut Criterion) {
    shuffles(c, "bitshuffle 64 MiB", 64 << 20, &[Width::W2]);
}

fn planes(c: &mut Criterion) {
    let from = random(CHUNK);
    let mut to = vec![0; CHUNK];
    let mut group = group(c, "byte planes", &from);
    for kernel in byte_planes::available() {
        for width in WIDTHS {
            planes_of_width(&mut group, kernel, width, &from, &mut to);
        }
    }
}

fn planes_of_width(
    group: &mut BenchmarkGroup<'_, WallTime>,
    kernel: &BytePlanes,
    width: Width,
    from: &[u8],
    to: &mut [u8],
) {
    let row = |name: &str| format!("{}/width {}/{name}", kernel.name(), width.bytes());
    let planes: Vec<&[u8]> = from.chunks_exact(CHUNK / width.bytes()).collect();
    if let [low @ .., top] = &planes[..] {
        group.bench_function(row("join"), |b| b.iter(|| kernel.join(width, true, low, top, black_box(&mut *to))));
    }
    let mut planes: Vec<&mut [u8]> = to.chunks_exact_mut(CHUNK / width.bytes()).collect();
    if let [low @ .., top] = &mut planes[..] {
        group.bench_function(row("split"), |b| b.iter(|| kernel.split(width, true, black_box(from), low, top)));
    }
    group.bench_function(row("rotate"), |b| b.iter(|| kernel.rotate_right(width, black_box(&mut *to))));
}

const SEPARABLE: Predictor = Predictor::Separable(Weights { left: 5, above: 4 });
const WITHOUT_STEPS: Predictor = Predictor::Separable(Weights { left: 6, above: 0 });

const PREDICTIONS: [(&str, Prediction); 13] = [
    ("lorenzo 128", Prediction { predictor: Predictor::Lorenzo, restart: 101 * 128, stride: 128 }),
    ("lorenzo 360", Prediction { predictor: Predictor::Lorenzo, restart: 101 * 360, stride: 360 }),
    ("separable 128", Prediction { predictor: SEPARABLE, restart: 101 * 128, stride: 128 }),
    ("separable 360", Prediction { predictor: SEPARABLE, restart: 101 * 360, stride: 360 }),
    ("separable 127", Prediction { predictor: SEPARABLE, restart: 101 * 127, stride: 127 }),
    ("separable 9", Prediction { predictor: SEPARABLE, restart: 101 * 9, stride: 9 }),
    ("lorenzo 9", Prediction { predictor: Predictor::Lorenzo, restart: 101 * 9, stride: 9 }),
    ("delta 128", Prediction { predictor: Predictor::Delta, restart: 101 * 128, stride: 128 }),
    ("delta 1", Prediction { predictor: Predictor::Delta, restart: 101, stride: 1 }),
    // channels of pixels
    ("delta 3", Prediction { predictor: Predictor::Delta, restart: 64 * 64 * 3, stride: 3 }),
    ("lorenzo 3", Prediction { predictor: Predictor::Lorenzo, restart: 64 * 64 * 3, stride: 3 }),
    ("separable 3", Prediction { predictor: WITHOUT_STEPS, restart: 64 * 64 * 3, stride: 3 }),
    ("separable 4", Prediction { predictor: WITHOUT_STEPS, restart: 64 * 64 * 4, stride: 4 }),
];

/// Measures predictors. `undo` works in place, on the result of its last call: its time does not
/// depend on the data.
fn predictions(c: &mut Criterion) {
    let from = random(CHUNK);
    let mut to = vec![0; CHUNK];
    let mut group = group(c, "predict", &from);
    for kernel in predict::available() {
        for width in WIDTHS {
            for (name, prediction) in &PREDICTIONS {
                let row = |direction: &str| format!("{}/width {}/{name}/{direction}", kernel.name(), width.bytes());
                group.bench_function(row("residuals"), |b| {
                    b.iter(|| kernel.residuals(prediction, width, black_box(&from), black_box(&mut to)));
                });
                group.bench_function(row("undo"), |b| {
                    b.iter(|| kernel.undo(prediction, width, black_box(&mut to)));
                });
            }
        }
    }
}

/// Measures the filters that writers choose for speed (8 taps) and for size (16 taps). With 2-byte
/// numbers, restarts after 8 segments make 32 rows. `undo_filter` works in place, as `undo` does.
fn filters(c: &mut Criterion) {
    let from = random(CHUNK);
    let mut to = vec![0; CHUNK];
    let codes: Vec<u8> = (0..MAX_FILTERS as u8).cycle().take(CHUNK / 2 / SEGMENT).collect();
    let mut group = group(c, "filters", &from);
    for kernel in predict::available() {
        for taps in [8, 16] {
            let mut coefficients = [[0; MAX_TAPS]; MAX_FILTERS];
            let used = coefficients.iter_mut().flat_map(|filter| &mut filter[..taps]);
            used.zip(from.as_chunks().0).for_each(|(to, bytes)| *to = i16::from_le_bytes(*bytes) / 8);
            let bank = FilterBank { coefficients, taps, restart: 8, zero: 0x8000 };
            let row = |name: &str| format!("{}/{taps} taps/{name}", kernel.name());
            group.bench_function(row("filter"), |b| {
                b.iter(|| kernel.filter(&bank, &codes, black_box(&from), black_box(&mut to)));
            });
            group.bench_function(row("undo"), |b| {
                b.iter(|| kernel.undo_filter(&bank, &codes, black_box(&mut to)));
            });
        }
    }
}

/// The elements of a bf16 chunk. Each has one symbol.
const COUNT: usize = CHUNK / 2;

/// The bits of a code in the first tier.
const CODE_BITS: usize = 3;

/// Returns the symbol of each code and the code of each symbol, ranked by frequency.
fn ranks(symbols: &[u8]) -> ([u8; 16], [u8; 256]) {
    let mut frequent: Vec<u8> = (0..=255).collect();
    frequent.sort_by_key(|symbol| std::cmp::Reverse(symbols.iter().filter(|other| *other == symbol).count()));
    let (mut table, mut code_of) = ([0; 16], [0xFF; 256]);
    for (code, symbol) in frequent.into_iter().take((1 << CODE_BITS) - 1).enumerate() {
        table[code] = symbol;
        code_of[usize::from(symbol)] = code as u8;
    }
    (table, code_of)
}

/// Measures tiers. Symbols are the top bytes of rotated embeddings, as in `exponent-tiers`.
fn symbols(c: &mut Criterion) {
    let symbols: Vec<u8> = support::embeddings(COUNT).iter().map(|x| (x.to_bits().rotate_left(1) >> 8) as u8).collect();
    let (table, code_of) = ranks(&symbols);
    let mut codes = vec![0; code_bytes(CODE_BITS, COUNT)];
    let mut escaped = vec![0; COUNT];
    let mut out = vec![0; COUNT];
    let last = [0; GROUP_BYTES]; // all groups are full
    let mut group = group(c, "tiers", &symbols);
    for kernel in tiers::available() {
        let name = kernel.name();
        kernel.split(CODE_BITS, &code_of, &symbols, &mut codes, &mut escaped);
        group.bench_function(format!("{name}/merge"), |b| {
            b.iter(|| {
                kernel.merge(CODE_BITS, black_box(&codes), &last, &table, black_box(&escaped), black_box(&mut out))
            });
        });
        group.bench_function(format!("{name}/split"), |b| {
            b.iter(|| {
                kernel.split(CODE_BITS, &code_of, black_box(&symbols), black_box(&mut codes), black_box(&mut escaped))
            });
        });
        group.bench_function(format!("{name}/escapes"), |b| {
            b.iter(|| kernel.escapes(CODE_BITS, black_box(&codes), black_box(0..COUNT)));
        });
    }
}

/// Returns zigzag-coded residuals of 4 bits on average. Like residuals of audio, they have heavier
/// tails than a normal distribution.
fn residuals() -> Vec<u8> {
    let mut random = Random::new();
    let mut next = || {
        let residual = (random.normal() * random.normal() * 16.0).round() as i16;
        ((residual << 1) ^ (residual >> 15)) as u16
    };
    (0..COUNT).flat_map(|_| next().to_le_bytes()).collect()
}

fn lengths_and_bits(c: &mut Criterion) {
    let elements = residuals();
    let mut lengths = vec![0; COUNT];
    let mut words = vec![0_u64; COUNT / 4 + 1];
    let mut out = vec![0; elements.len()];
    let mut group = group(c, "extra bits", &elements);
    for kernel in extra_bits::available() {
        let name = kernel.name();
        kernel.lengths(Width::W2, &elements, &mut lengths);
        words.fill(0);
        kernel.extract(Width::W2, &lengths, &elements, &mut words, 0);
        let bits: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        group.bench_function(format!("{name}/deposit"), |b| {
            b.iter(|| kernel.deposit(Width::W2, black_box(&lengths), black_box(&bits), 0, black_box(&mut out)));
        });
        group.bench_function(format!("{name}/lengths"), |b| {
            b.iter(|| kernel.lengths(Width::W2, black_box(&elements), black_box(&mut lengths)));
        });
        group.bench_function(format!("{name}/extract"), |b| {
            b.iter(|| {
                words[0] = 0; // `extract` keeps the bits before the first
                kernel.extract(Width::W2, black_box(&lengths), black_box(&elements), black_box(&mut words), 0)
            });
        });
    }
}

/// Measures typical float multiples: log-mel with details, 16-bit audio, and cents.
fn float_multiples_of_numbers(c: &mut Criterion) {
    let numbers = random(CHUNK);
    let (mut lengths, mut out) = (vec![0; CHUNK], vec![0; 4 * CHUNK]);
    let mut group = group(c, "float multiples", &numbers);
    for kernel in float_multiples::available() {
        for format in [FloatFormat::Bf16, FloatFormat::F16, FloatFormat::F32] {
            let row = |name: &str| format!("{}/{format:?}/{name}", kernel.name());
            let terms = FloatMultipleTerms { format, detail_bits: 11, divisor: 1, exponent: 14, base: -32_768 };
            let lengths = &mut lengths[..COUNT];
            group.bench_function(row("detail lengths"), |b| {
                b.iter(|| kernel.detail_lengths(&terms, Width::W2, black_box(&numbers), black_box(&mut *lengths)));
            });
            let integers: Vec<_> = lengths.iter().map(|length| (1_u16 << (length - 1)).to_le_bytes()).collect();
            let details = NumberDetails { integers: &integers, lengths };
            let out = &mut out[..COUNT * format.width().bytes()];
            group.bench_function(row("join"), |b| {
                b.iter(|| kernel.join(&terms, Width::W2, black_box(&numbers), details, black_box(&mut *out)));
            });
            for divisor in [1, 25] {
                let terms = FloatMultipleTerms { detail_bits: 0, divisor, ..terms };
                group.bench_function(row(&format!("divide by {divisor}")), |b| {
                    b.iter(|| kernel.divide(&terms, Width::W2, black_box(&numbers), black_box(&mut *out)));
                });
            }
        }
    }
}

/// Measures one-byte numbers with full dictionaries.
fn values_of_dictionaries(c: &mut Criterion) {
    let numbers = random(CHUNK);
    let mut out = vec![0; 4 * CHUNK];
    let mut group = group(c, "dictionaries", &numbers);
    for kernel in dictionaries::available() {
        for width in [Width::W2, Width::W4] {
            for count in [1, 3] {
                let ends: Vec<usize> = (1..=count).map(|count| 256 * count).collect();
                let values = random(256 * count * width.bytes());
                let tables = DictionaryTables { width, is_wide: false, values: &values, ends: &ends };
                let out = &mut out[..CHUNK * width.bytes()];
                group.bench_function(format!("{}/width {}/{count} tables", kernel.name(), width.bytes()), |b| {
                    b.iter(|| assert!(kernel.look_up(&tables, 0, black_box(&numbers), black_box(&mut *out))));
                });
            }
        }
    }
}

/// Returns bins for zigzag-coded residuals: four of 2 values, up to 8, then two for each bit
/// length.
fn bins_of_residuals() -> Vec<u8> {
    [1; 4].into_iter().chain((2..=13).flat_map(|bits| [bits; 2])).chain([15]).collect()
}

/// Returns the bin of each window, and the frequency of each bin.
fn bins_and_frequencies(bits: &[u8], windows: &[[u8; 2]]) -> (Vec<u8>, Vec<u8>) {
    let bins_of_values: Vec<u8> = (0..).zip(bits).flat_map(|(bin, &bits)| vec![bin; 1 << bits]).collect();
    let bins: Vec<u8> = windows.iter().map(|&window| bins_of_values[usize::from(u16::from_le_bytes(window))]).collect();
    let count = |bin: usize| bins.iter().filter(|other| usize::from(**other) == bin).count();
    let share = |bin| count(bin) * (256 - bits.len()) / windows.len();
    let mut frequencies: Vec<u8> = (0..bits.len()).map(|bin| 1 + share(bin) as u8).collect();
    let sum: usize = frequencies.iter().map(|&frequency| usize::from(frequency)).sum();
    frequencies[4] += (256 - sum) as u8;
    (bins, frequencies)
}

/// Measures the costs of all groups of a chunk.
fn costs_of_groups(c: &mut Criterion) {
    let elements = residuals();
    let groups: Vec<GroupCounts> = (0..COUNT / bins::GROUP).map(|group| [(group % 3) as u16; bins::BINS]).collect();
    let costs: Vec<[f32; bins::CLASSES]> = (0..bins::BINS).map(|bin| [bin as f32; bins::CLASSES]).collect();
    let Some(costs) = costs.first_chunk() else { return };
    let mut sums = vec![[0.0; bins::CLASSES]; groups.len()];
    let mut group = group(c, "costs", &elements);
    for kernel in costs::available() {
        group.bench_function(kernel.name(), |b| {
            b.iter(|| kernel.add(black_box(costs), black_box(&groups), black_box(&mut sums)));
        });
    }
}

/// Measures bins. `decode` decodes one block, `decode two` two blocks with half the elements each.
fn bins_of_blocks(c: &mut Criterion) {
    let elements = residuals();
    let (windows, _) = elements.as_chunks();
    let bits = bins_of_residuals();
    let (bins_of_windows, frequencies) = bins_and_frequencies(&bits, windows);
    let mut model = BinModel::default();
    model.set_bins(&bits);
    (0..bins::CLASSES).for_each(|class| model.set_class(class, 0, &frequencies));
    let classes: Vec<u8> = (0..bins::CLASSES as u8).cycle().take(COUNT / bins::GROUP).collect();
    let mut encoder = BinEncoder::default();
    encoder.set_model(&model);
    let mut stored = |range: Range<usize>| {
        let (windows, bins_of_windows) = (&windows[range.clone()], &bins_of_windows[range]);
        let mut stored = Vec::new();
        assert!(encode::best().encode(&mut encoder, &classes, windows, bins_of_windows, &mut stored));
        stored
    };
    let (whole, halves) = (stored(0..COUNT), [stored(0..COUNT / 2), stored(COUNT / 2..COUNT)]);
    let mut out = vec![[0; 2]; COUNT];
    let mut group = group(c, "bins", &elements);
    for kernel in encode::available() {
        let mut stored = Vec::new();
        group.bench_function(format!("{}/encode", kernel.name()), |b| {
            b.iter(|| {
                stored.clear();
                assert!(kernel.encode(&mut encoder, &classes, black_box(windows), &bins_of_windows, &mut stored));
            });
        });
    }
    for kernel in bins::available() {
        group.bench_function(format!("{}/decode", kernel.name()), |b| {
            b.iter(|| {
                let block = CodedBlock { classes: &classes, count: COUNT, stored: &whole, out: black_box(&mut out) };
                assert!(kernel.decode(&model, block));
            });
        });
        group.bench_function(format!("{}/decode two", kernel.name()), |b| {
            b.iter(|| {
                let [first, second] = &halves;
                let (a, b) = black_box(&mut out).split_at_mut(COUNT / 2);
                let block = |stored, out| CodedBlock { classes: &classes, count: COUNT / 2, stored, out };
                assert_eq!(kernel.decode_two(&model, [block(first, a), block(second, b)]), [true; 2]);
            });
        });
    }
}

criterion_group! {
    name = benches;
    config = criterion();
    targets = shuffles_of_chunks, shuffles_of_memory, planes, predictions, filters, symbols, lengths_and_bits, costs_of_groups, bins_of_blocks, float_multiples_of_numbers, values_of_dictionaries
}
criterion_main!(benches);
