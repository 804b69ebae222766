//! A safetensors file with one tensor, read whole.

use super::super::outcome::ReadOutcome;
use super::Format;
use crate::data::Dataset;
use anyhow::{Result, ensure};
use safetensors::tensor::{Dtype, SafeTensors, TensorView, serialize_to_file};
use std::fs;
use std::path::Path;

pub struct Safetensors;

const NAME: &str = "x";

impl Format for Safetensors {
    fn name(&self) -> String {
        "safetensors".to_owned()
    }

    fn about(&self) -> String {
        let version = env!("SAFETENSORS_VERSION");
        format!("safetensors {version}, one tensor, `SafeTensors::deserialize`; the header is validated, no checksums")
    }

    fn write(&self, data: &Dataset, file: &Path) -> Result<()> {
        let view = TensorView::new(Dtype::BF16, shape(data), data.bytes())?;
        Ok(serialize_to_file([(NAME, view)], None, file)?)
    }

    fn read(&self, data: &Dataset, file: &Path, outcome: &mut ReadOutcome) -> Result<()> {
        let bytes = fs::read(file)?;
        let file = SafeTensors::deserialize(&bytes)?;
        let tensor = file.tensor(NAME)?;
        ensure!(tensor.dtype() == Dtype::BF16 && tensor.shape() == shape(data), "wrong type or shape");
        outcome.samples(0, &bytemuck::pod_collect_to_vec(tensor.data()));
        Ok(())
    }
}

fn shape(data: &Dataset) -> Vec<usize> {
    std::iter::once(data.samples()).chain(data.shape.iter().map(|&extent| extent as usize)).collect()
}
