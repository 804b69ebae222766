//! Parquet: BYTE_STREAM_SPLIT and Zstandard 9, row groups of about 1 MiB, read by the Arrow reader
//! out of a map.
//!
//! Parquet has no BF16: a value is a FIXED_LEN_BYTE_ARRAY(2). A row is one value, which saves
//! Parquet the levels of lists. A sample is rows in sequence, never in two row groups. No
//! dictionary and no statistics: they would only cost. Footer and offset index are read once. With
//! pages of 64 KiB the index lets a random sample decode one or two pages; with pages of 1 MiB the
//! ratio is better. Both are shown.

use super::{Peer, Store, map, size};
use crate::data::Dataset;
use anyhow::{Context, Result, ensure};
use arrow_array::cast::AsArray;
use arrow_array::{FixedSizeBinaryArray, RecordBatch};
use arrow_buffer::Buffer;
use arrow_schema::{DataType, Field, Schema};
use bytes::Bytes;
use half::bf16;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder, RowSelection, RowSelector,
};
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::file::metadata::PageIndexPolicy;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

pub struct Parquet {
    page_bytes: usize,
}

pub const COLUMN: &str = "x";
const LEVEL: i32 = 9;
const GROUP_BYTES: usize = 1 << 20;

impl Parquet {
    pub fn new(page_bytes: usize) -> Self {
        Self { page_bytes }
    }

    pub fn properties(&self, data: &Dataset) -> Result<WriterProperties> {
        let builder = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::try_new(LEVEL)?))
            .set_encoding(Encoding::BYTE_STREAM_SPLIT)
            .set_dictionary_enabled(false)
            .set_statistics_enabled(EnabledStatistics::None)
            .set_data_page_size_limit(self.page_bytes)
            .set_data_page_row_count_limit(usize::MAX)
            .set_max_row_group_row_count(Some(data.samples_in(GROUP_BYTES) * data.elements()));
        Ok(builder.build())
    }
}

impl Peer for Parquet {
    fn name(&self) -> String {
        format!("Parquet {} pages", size(self.page_bytes))
    }

    fn about(&self) -> String {
        let (version, pages, groups) = (env!("PARQUET_VERSION"), size(self.page_bytes), size(GROUP_BYTES));
        format!(
            "parquet-rs {version}, BYTE_STREAM_SPLIT and Zstandard level {LEVEL}, pages of {pages}, row groups of {groups}"
        )
    }

    fn encode(&self, data: &Dataset, file: &Path) -> Result<()> {
        write(data, self.properties(data)?, File::create_new(file)?)
    }

    fn open(&self, data: &Dataset, file: &Path) -> Result<Box<dyn Store>> {
        let file = Bytes::from_owner(map(file)?);
        let options = ArrowReaderOptions::new().with_offset_index_policy(PageIndexPolicy::Required);
        let metadata = ArrowReaderMetadata::load(&file, options)?;
        let group_samples = data.samples_in(GROUP_BYTES);
        ensure!(
            metadata.metadata().num_row_groups() == data.samples().div_ceil(group_samples),
            "the row groups are not as asked for"
        );
        Ok(Box::new(Open {
            file,
            metadata,
            elements: data.elements(),
            group_samples,
            out: vec![bf16::ZERO; data.values.len()],
            order: Vec::new(),
            sorted: Vec::new(),
        }))
    }
}

/// Writes the tensors with these options, row groups as they say.
pub fn write(data: &Dataset, properties: WriterProperties, file: impl Write + Send) -> Result<()> {
    let group_rows = properties.max_row_group_row_count().context("no limit of rows")?;
    let schema = Arc::new(Schema::new(vec![Field::new(COLUMN, DataType::FixedSizeBinary(2), false)]));
    let mut writer = ArrowWriter::try_new(file, schema.clone(), Some(properties))?;
    for values in data.values.chunks(group_rows) {
        let array = FixedSizeBinaryArray::try_new(2, Buffer::from(bytemuck::cast_slice::<_, u8>(values)), None)?;
        writer.write(&RecordBatch::try_new(schema.clone(), vec![Arc::new(array)])?)?;
    }
    writer.close()?;
    Ok(())
}

struct Open {
    file: Bytes,
    metadata: ArrowReaderMetadata,
    elements: usize,
    group_samples: usize,
    out: Vec<bf16>,
    /// Samples of a request with their positions in it.
    order: Vec<(usize, usize)>,
    /// The samples of a request, each once, ascending.
    sorted: Vec<bf16>,
}

impl Open {
    fn builder(&self) -> ParquetRecordBatchReaderBuilder<Bytes> {
        ParquetRecordBatchReaderBuilder::new_with_metadata(self.file.clone(), self.metadata.clone())
    }

    /// Reads samples that ascend, each once, to `out`.
    fn read(&self, samples: impl Iterator<Item = usize>, out: &mut [bf16]) -> Result<()> {
        let (mut groups, mut selectors) = (Vec::new(), Vec::new());
        let mut next = 0; // the first sample not spoken of yet, of those in `groups`
        for i in samples {
            let group = i / self.group_samples;
            if groups.last() != Some(&group) {
                // the rest of the group before; only the last group of the file is shorter, and
                // none follows it
                if let Some(last) = groups.last() {
                    selectors.push(RowSelector::skip(((last + 1) * self.group_samples - next) * self.elements));
                }
                next = group * self.group_samples;
                groups.push(group);
            }
            selectors.push(RowSelector::skip((i - next) * self.elements));
            selectors.push(RowSelector::select(self.elements));
            next = i + 1;
        }
        selectors.retain(|selector| selector.row_count > 0);
        let builder = self.builder().with_row_groups(groups).with_row_selection(RowSelection::from(selectors));
        copy(builder.with_batch_size(out.len()), out)
    }
}

/// Copies all that a reader gives.
fn copy(builder: ParquetRecordBatchReaderBuilder<Bytes>, out: &mut [bf16]) -> Result<()> {
    let out: &mut [u8] = bytemuck::cast_slice_mut(out);
    let mut at = 0;
    for batch in builder.build()? {
        let batch = batch?;
        let values = batch.column(0).as_fixed_size_binary_opt().context("no bytes")?.value_data();
        out.get_mut(at..at + values.len()).context("too many values")?.copy_from_slice(values);
        at += values.len();
    }
    ensure!(at == out.len(), "too few values");
    Ok(())
}

impl Store for Open {
    fn decode_all(&mut self) -> Result<&[bf16]> {
        let builder = self.builder().with_batch_size(self.group_samples * self.elements);
        copy(builder, &mut self.out)?;
        Ok(&self.out)
    }

    fn sample(&mut self, i: usize, out: &mut [bf16]) -> Result<()> {
        self.read(std::iter::once(i), out)
    }

    fn gather(&mut self, request: &[usize], out: &mut [bf16]) -> Result<()> {
        let mut order = std::mem::take(&mut self.order);
        order.clear();
        order.extend(request.iter().copied().zip(0..));
        order.sort_unstable();
        let distinct = || order.chunk_by(|a, b| a.0 == b.0);
        let mut sorted = std::mem::take(&mut self.sorted);
        sorted.resize(distinct().count() * self.elements, bf16::ZERO);
        self.read(distinct().map(|same| same[0].0), &mut sorted)?;
        for (same, sample) in distinct().zip(sorted.chunks_exact(self.elements)) {
            for &(_, at) in same {
                out[at * self.elements..][..self.elements].copy_from_slice(sample);
            }
        }
        (self.order, self.sorted) = (order, sorted);
        Ok(())
    }
}
