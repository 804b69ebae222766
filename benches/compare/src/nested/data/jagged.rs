//! Jagged lists of 32-bit floats: of each frame of mel spectra, the values above its mean.

use crate::data;
use crate::measure::Random;
use crate::nested::columns::{Columns, Element, Values};
use anyhow::Result;
use std::path::Path;

/// The maximum number of frames in a sample.
const MAX_FRAMES: usize = 20;

/// Returns the frames of the spectra in this folder, or of the generated ones, and their origin.
pub fn frames(folder: Option<&Path>) -> Result<(Columns, String)> {
    let (values, bins, origin) = data::mel_values(folder)?;
    let mut columns = Columns { lists: Vec::new(), fields: vec![Values::default()] };
    let mut random = Random::new(7);
    let mut frames = values.chunks_exact(bins);
    while frames.len() > 0 {
        let count = frames.len().min(1 + random.below(MAX_FRAMES));
        columns.lists.push(count as u32); // at most `MAX_FRAMES`
        for frame in frames.by_ref().take(count) {
            let mean = frame.iter().sum::<f32>() / bins as f32;
            let above: Vec<f32> = frame.iter().copied().filter(|&value| value > mean).collect();
            columns.fields[0].push(bytemuck::cast_slice(&above), Element::F32);
        }
    }
    Ok((columns, format!("{origin}, the values of each frame above its mean")))
}
