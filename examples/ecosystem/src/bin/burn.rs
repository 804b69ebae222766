//! Feeds `burn` in two ways: through its own data loader, and directly from a tensilo loader.
//!
//! burn's data loader requests samples one by one or in lists, and collates them. tensilo's loader
//! delivers whole batches, and can resume its order after a stop.

use burn::data::dataloader::DataLoaderBuilder;
use burn::data::dataloader::batcher::Batcher;
use burn::data::dataset::{Dataset, DatasetError};
use burn::tensor::{Device, Int, Tensor, TensorData};
use std::sync::Mutex;
use tensilo::DType;
use tensilo_data::{DataError, Loader, LoaderOptions, SampleReader, View};
use tensilo_ecosystem::{SAMPLES, WIDTH, dataset};

/// A sample as burn's data loader passes it to a batcher.
#[derive(Clone, Debug)]
struct Sample {
    embedding: Vec<f32>,
    label: i32,
}

/// The samples of a loader's view. burn's threads share one reader.
struct Samples {
    reader: Mutex<SampleReader>,
}

impl Samples {
    fn new(loader: &Loader) -> Self {
        Self { reader: Mutex::new(loader.reader()) }
    }

    fn read(&self, indices: &[usize]) -> Result<Vec<Sample>, DataError> {
        let samples: Vec<u64> = indices.iter().map(|&index| index as u64).collect();
        let mut reader = self.reader.lock().map_err(|_| DataError::BadArgument("a thread has panicked".to_owned()))?;
        let batch = reader.take(&samples)?;
        let embeddings = batch.column("embedding")?.values::<f32>()?.chunks_exact(WIDTH);
        let labels = batch.column("label")?.values::<i32>()?;
        Ok(embeddings.zip(labels).map(|(values, &label)| Sample { embedding: values.to_vec(), label }).collect())
    }
}

impl Dataset<Sample> for Samples {
    fn get(&self, index: usize) -> Result<Sample, DatasetError> {
        let mut samples = self.read(&[index]).map_err(DatasetError::new)?;
        samples.pop().ok_or_else(|| DatasetError::new(DataError::BadArgument("no sample".to_owned())))
    }

    fn get_many(&self, indices: Vec<usize>) -> Result<Vec<Sample>, DatasetError> {
        self.read(&indices).map_err(DatasetError::new)
    }

    fn len(&self) -> usize {
        SAMPLES as usize
    }
}

/// A batch of tensors.
#[derive(Clone, Debug)]
struct Tensors {
    embeddings: Tensor<2>,
    labels: Tensor<1, Int>,
}

struct ToTensors;

impl Batcher<Sample, Tensors> for ToTensors {
    fn batch(&self, items: Vec<Sample>, device: &Device) -> Tensors {
        let count = items.len();
        let labels: Vec<i32> = items.iter().map(|item| item.label).collect();
        let values: Vec<f32> = items.into_iter().flat_map(|item| item.embedding).collect();
        Tensors {
            embeddings: Tensor::from_data(TensorData::new(values, [count, WIDTH]), device),
            labels: Tensor::from_data(TensorData::new(labels, [count]), device),
        }
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let view = View::all(&dataset(&folder.path().join("train"))?);
    let loader = LoaderOptions::new(100).cast("embedding", DType::F32).loader(&view)?;
    let device = Device::default();

    // with burn's data loader
    let burns = DataLoaderBuilder::new(ToTensors).batch_size(100).shuffle(1).build(Samples::new(&loader));
    let mut samples = 0;
    for batch in burns.iter() {
        let batch = batch?;
        assert_eq!(batch.embeddings.dims(), [100, WIDTH]);
        samples += batch.labels.dims()[0];
    }
    println!("{samples} samples from burn's data loader");

    // with tensilo's loader
    let mut sum = 0.0;
    for batch in loader.epoch(0) {
        let batch = batch?;
        let values = batch.column("embedding")?.values::<f32>()?.to_vec();
        let embeddings: Tensor<2> = Tensor::from_data(TensorData::new(values, [100, WIDTH]), &device);
        sum += embeddings.mean().into_scalar::<f32>();
    }
    println!("the mean of all elements is {:.4}", sum / 10.0);
    assert!((sum / 10.0 - 0.4995).abs() < 1e-3);
    Ok(())
}
