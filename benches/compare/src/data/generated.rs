//! Data that needs only the repository: variations of an excerpt, and generated values.
//!
//! Anyone can run the comparison with it, and speeds are realistic. Ratios are meaningful only for
//! real data.
//!
//! * `mel`, `f0`: the clips of `tests/data/speech.parquet`, repeated. Each repetition differs as
//!   another recording would: rotated by a random number of frames, louder or quieter (a constant
//!   added to all log-mel values), higher or lower (a factor on all frequencies), and then rounded
//!   to BF16.
//! * `posterior`: a bell around a pitch that walks randomly through 360 bins, with random width and
//!   height in each frame, over a small random floor. Every tenth sample is unvoiced and has only
//!   the floor.
//! * `embeddings`: independent normal values, each sample normalized to length 1.
//! * `weights`: independent normal values. Each row has its own deviation, between 0.01 and 0.05.

use super::Dataset;
use super::files::{F0_SHAPE, MEL_SHAPE, POSTERIOR_SHAPE, WEIGHTS_ROW, column, to_bf16};
use crate::measure::Random;
use anyhow::Result;
use half::bf16;
use std::path::Path;

const SPEECH: &str = "tests/data/speech.parquet";
const FRAMES: usize = 101;

pub fn embeddings() -> Result<Dataset> {
    let mut random = Random::new(1);
    let mut values = Vec::new();
    for _ in 0..2500 {
        let sample: Vec<f32> = (0..384).map(|_| random.normal()).collect();
        let length = sample.iter().map(|value| value * value).sum::<f32>().sqrt();
        values.extend(sample.iter().map(|value| bf16::from_f32(value / length)));
    }
    Dataset::new("embeddings", &[384], values, "generated: normalized Gaussian vectors".to_owned())
}

pub fn weights() -> Result<Dataset> {
    let mut random = Random::new(2);
    let mut values = Vec::new();
    for _ in 0..1300 {
        let deviation = 0.01 + 0.04 * random.uniform();
        values.extend((0..WEIGHTS_ROW).map(|_| bf16::from_f32(deviation * random.normal())));
    }
    let origin = "generated: Gaussian, each row with its own deviation".to_owned();
    Dataset::new("weights", &[WEIGHTS_ROW as u32], values, origin)
}

pub fn posterior() -> Result<Dataset> {
    let bins = POSTERIOR_SHAPE[1] as usize;
    let mut random = Random::new(3);
    let mut values = Vec::new();
    for sample in 0..200 {
        let mut center = 60.0 + 200.0 * random.uniform();
        for _ in 0..FRAMES {
            center = (center + 1.5 * random.normal()).clamp(5.0, bins as f32 - 5.0);
            let (width, mut height) = (2.0 + 2.0 * random.uniform(), 0.5 + 0.5 * random.uniform());
            if sample % 10 == 9 {
                height = 0.0;
            }
            values.extend((0..bins).map(|bin| {
                let distance = (bin as f32 - center) / width;
                let floor = 1e-4 * (1.0 + 0.2 * random.normal()).abs();
                bf16::from_f32(height * (-0.5 * distance * distance).exp() + floor)
            }));
        }
    }
    let origin = "generated: bells around a walking pitch, over a floor".to_owned();
    Dataset::new("posterior", &POSTERIOR_SHAPE, values, origin)
}

pub fn mel() -> Result<Dataset> {
    let (values, origin) = mel_values()?;
    Dataset::new("mel", &MEL_SHAPE, to_bf16(&values), format!("{origin}, cast to BF16"))
}

/// Returns the values of `mel` before rounding, and their origin.
pub fn mel_values() -> Result<(Vec<f32>, String)> {
    varied("mel", &MEL_SHAPE, 200, |random| {
        let gain = 2.0 * random.uniform() - 1.0;
        Box::new(move |value| value + gain)
    })
}

pub fn f0() -> Result<Dataset> {
    let (values, origin) = varied("f0_hz", &F0_SHAPE, 5000, |random| {
        let factor = (random.uniform() - 0.5).exp2();
        Box::new(move |value| value * factor)
    })?;
    Dataset::new("f0", &F0_SHAPE, to_bf16(&values), format!("{origin}, cast to BF16"))
}

/// The change of each value of a clip.
type Change = Box<dyn Fn(f32) -> f32>;

/// Returns `count` variations of the clips of the excerpt, and their origin.
fn varied(
    field: &str,
    shape: &[u32],
    count: usize,
    variation: fn(&mut Random) -> Change,
) -> Result<(Vec<f32>, String)> {
    let clips = column(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(SPEECH), field)?;
    let elements = shape.iter().product::<u32>() as usize;
    let mut random = Random::new(4);
    let mut values = Vec::with_capacity(count * elements);
    for clip in clips.chunks_exact(elements).cycle().take(count) {
        let (late, early) = clip.split_at(random.below(FRAMES) * (elements / FRAMES));
        let change = variation(&mut random);
        values.extend(early.iter().chain(late).map(|&value| change(value)));
    }
    Ok((values, format!("column {field} of {SPEECH}, {count} variations of its clips")))
}
