//! The Arrow IPC file of the comparison, read with arrow-rs' `FileReader`, batch by batch.

use super::super::outcome::ReadOutcome;
use super::Format;
use crate::data::Dataset;
use crate::peers::{Peer, arrow_ipc as peer};
use anyhow::{Context, Result, ensure};
use arrow_ipc::reader::FileReader;
use half::bf16;
use std::fs::File;
use std::path::Path;

pub struct ArrowIpc;

impl Format for ArrowIpc {
    fn name(&self) -> String {
        "Arrow IPC".to_owned()
    }

    fn about(&self) -> String {
        let (version, batch) = (env!("ARROW_IPC_VERSION"), peer::BATCH_BYTES >> 20);
        format!(
            "arrow-rs {version}, fixed-size lists of u16, uncompressed, record batches of {batch} MiB, `FileReader`; \
             messages and arrays are validated, no checksums"
        )
    }

    fn write(&self, data: &Dataset, file: &Path) -> Result<()> {
        peer::ArrowIpc.encode(data, file)
    }

    fn read(&self, data: &Dataset, file: &Path, outcome: &mut ReadOutcome) -> Result<()> {
        let mut reader = FileReader::try_new_buffered(File::open(file)?, None)?;
        let per_batch = data.samples_in(peer::BATCH_BYTES);
        ensure!(reader.num_batches() == data.samples().div_ceil(per_batch), "wrong number of batches");
        for number in 0..reader.num_batches() {
            let mut batch = || {
                reader.set_index(number)?;
                let batch = reader.next().context("no batch")??;
                ensure!(batch.num_rows() <= per_batch, "too many samples");
                peer::values::<bf16>(&batch)
            };
            match batch() {
                Ok(values) => outcome.samples(number * per_batch, bytemuck::cast_slice(&values)),
                Err(_) => outcome.error(),
            }
        }
        Ok(())
    }
}
