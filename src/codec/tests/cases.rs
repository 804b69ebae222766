//! Parts of all kinds, and the encoders that they are tried with.

use crate::DType;
use crate::codec::{
    bins::BinBlocks,
    blocked::{Blocked, Constant, Encoding, RawBlocks},
    encoding::Encoder,
    geometry::{FloatType, Geometry},
    part::PartSpec,
    registry::written_by,
    tiers::{ExponentBlocks, ResidualBlocks},
    zstandard::{BitshuffleBlocks, PlaneBlocks, ZstdBlocks},
};
use proptest::prelude::*;
use tensilo_testing::{Pattern, Random};

pub(super) static ENCODERS: [&dyn Encoder; 9] = [
    &Blocked(Constant),
    EXPONENTS,
    RESIDUALS,
    &Blocked(RawBlocks),
    &Blocked(BinBlocks { for_size: false }),
    &Blocked(BinBlocks { for_size: true }),
    &Blocked(BitshuffleBlocks),
    &Blocked(ZstdBlocks),
    &Blocked(PlaneBlocks),
];

pub(super) const EXPONENTS: &dyn Encoder = &Blocked(ExponentBlocks);
pub(super) const RESIDUALS: &dyn Encoder = &Blocked(ResidualBlocks);

/// A part, and how it is encoded.
#[derive(Clone)]
pub(super) struct Case {
    pub encoder: &'static dyn Encoder,
    pub geometry: Geometry<'static>,
    pub pattern: Pattern,
    pub count: usize,
    pub seed: u64,
}

impl std::fmt::Debug for Case {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { encoder, geometry, pattern, count, seed } = self;
        write!(f, "{}: {count} of {pattern:?}, seed {seed}, {geometry:?}", encoder.name())
    }
}

impl Case {
    pub(super) fn raw(&self) -> Vec<u8> {
        self.pattern.elements(self.geometry.element_bytes, self.count, self.seed)
    }

    /// The ends of blocks of any length, or of one.
    pub(super) fn blocks(&self) -> Vec<u32> {
        let (count, mut random, mut ends) = (self.count as u32, Random(self.seed), vec![]);
        if self.seed.is_multiple_of(3) && count <= 65_535 {
            return vec![count];
        }
        while ends.last() != Some(&count) {
            let most = [1, 64, 200, 4096, 65_535][random.index(5)];
            let start: u32 = ends.last().copied().unwrap_or(0);
            ends.push(count.min(start + 1 + random.below(most) as u32).min(start + 65_535));
        }
        ends
    }

    /// The encoding of what the encoder writes.
    pub(super) fn encoding(&self) -> Encoding {
        written_by(self.encoder, self.blocks().len() > 1).expect("it is known")
    }

    pub(super) fn spec(&self) -> PartSpec<'static> {
        let element_bytes = self.geometry.element_bytes;
        PartSpec::new(element_bytes, self.count * element_bytes)
    }
}

pub(super) fn cases(count: impl Strategy<Value = usize>) -> impl Strategy<Value = Case> {
    let built = ENCODERS.into_iter().filter(|encoder| encoder.check_built().is_ok()).collect::<Vec<_>>();
    let geometry = (
        prop::sample::select(vec![1, 2, 4, 8]),
        any::<bool>(),
        prop::sample::select(vec![1, 7, 64, 101, 1024, 50_000, u32::MAX]),
        prop::sample::select(vec![[0, 0], [3, 0], [128, 0], [12, 3], [2048, 128]]),
    );
    let geometry = geometry.prop_map(|(element_bytes, float, restart, strides)| Geometry {
        element_bytes,
        float,
        float_type: float.then(|| float_type(element_bytes)).flatten(),
        restart,
        strides,
        blocks: &[],
    });
    let pattern = prop::sample::select(Pattern::ALL.to_vec());
    (0..built.len(), geometry, pattern, count, any::<u64>()).prop_map(
        move |(encoder, geometry, pattern, count, seed)| Case {
            encoder: built[encoder],
            geometry,
            pattern,
            count,
            seed,
        },
    )
}

/// The type of floats of this length.
pub(super) fn float_type(element_bytes: usize) -> Option<FloatType> {
    let dtype = match element_bytes {
        2 => DType::Bf16,
        4 => DType::F32,
        8 => DType::F64,
        _ => return None,
    };
    FloatType::of_column(dtype)
}

pub(super) fn few() -> impl Strategy<Value = usize> {
    1..=300_usize
}

/// So many that sampling, blocks and all match finders have something to do.
pub(super) fn many() -> impl Strategy<Value = usize> {
    prop_oneof![24 => 1..=300_usize, 8 => 4_000..=6_000_usize, 1 => 69_900..=70_100_usize]
}
