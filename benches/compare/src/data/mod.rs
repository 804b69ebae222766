//! The tensors that are compared, all of a fixed shape.
//!
//! The data sets of [`NAMES`] are BF16. If a folder is given, they are read from its files.
//! Otherwise they come from the repository or are generated, the same on every machine. Another
//! folder may have more data sets, also of other element types (`more.rs`). Each data set states
//! its origin, which the reports repeat.

mod element;
mod files;
mod generated;
pub mod more;

use anyhow::{Result, bail};
pub use element::Element;
use half::bf16;
use std::path::Path;

/// The names of the data sets, in the order of the reports.
pub const NAMES: [&str; 5] = ["embeddings", "weights", "mel", "posterior", "f0"];

/// Consecutive samples of one shape.
pub struct Dataset<T = bf16> {
    pub name: String,
    pub shape: Vec<u32>,
    pub values: Vec<T>,
    /// The origin of the values.
    pub origin: String,
}

impl<T: Element> Dataset<T> {
    fn new(name: &str, shape: &[u32], values: Vec<T>, origin: String) -> Result<Self> {
        let dataset = Self { name: name.to_owned(), shape: shape.to_vec(), values, origin };
        let elements = dataset.elements();
        if elements == 0 || dataset.values.is_empty() || !dataset.values.len().is_multiple_of(elements) {
            bail!("{name}: {} values are not whole samples of shape {shape:?}", dataset.values.len());
        }
        Ok(dataset)
    }

    /// Returns the number of elements in a sample.
    pub fn elements(&self) -> usize {
        self.shape.iter().map(|&extent| extent as usize).product()
    }

    /// Returns the bytes of a sample.
    pub fn sample_bytes(&self) -> usize {
        size_of::<T>() * self.elements()
    }

    pub fn samples(&self) -> usize {
        self.values.len() / self.elements()
    }

    pub fn raw_bytes(&self) -> usize {
        size_of_val(self.values.as_slice())
    }

    pub fn bytes(&self) -> &[u8] {
        bytemuck::cast_slice(&self.values)
    }

    pub fn sample(&self, i: usize) -> &[T] {
        &self.values[i * self.elements()..][..self.elements()]
    }

    /// Returns the number of samples that fit `bytes`, at least one. Every peer divides its chunks
    /// like this, as tensilo does.
    pub fn samples_in(&self, bytes: usize) -> usize {
        (bytes / self.sample_bytes()).max(1)
    }
}

/// Returns the mel spectra as 32-bit floats, the number of values per frame, and their origin.
pub fn mel_values(folder: Option<&Path>) -> Result<(Vec<f32>, usize, String)> {
    let (values, origin) = match folder {
        Some(folder) => files::speech_values(folder, "mel")?,
        None => generated::mel_values()?,
    };
    Ok((values, files::MEL_SHAPE[1] as usize, origin))
}

/// Loads the data set of this name.
pub fn load(name: &str, folder: Option<&Path>) -> Result<Dataset> {
    match (name, folder) {
        ("embeddings", Some(folder)) => files::embeddings(folder),
        ("weights", Some(folder)) => files::weights(folder),
        ("mel", Some(folder)) => files::speech(folder, "mel", "mel", &files::MEL_SHAPE),
        ("posterior", Some(folder)) => files::speech(folder, "posterior", "pitch_posterior", &files::POSTERIOR_SHAPE),
        ("f0", Some(folder)) => files::speech(folder, "f0", "f0_hz", &files::F0_SHAPE),
        ("embeddings", None) => generated::embeddings(),
        ("weights", None) => generated::weights(),
        ("mel", None) => generated::mel(),
        ("posterior", None) => generated::posterior(),
        ("f0", None) => generated::f0(),
        _ => bail!("there is no data set {name}"),
    }
}
