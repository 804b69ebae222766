//! Parquet, read from a map with the Arrow reader.
//!
//! Zstandard 3, one row group, BYTE_STREAM_SPLIT for numbers, no statistics. Only the roles of
//! chats, which have few values, have a dictionary: for other texts, each random sample would have
//! to decode a dictionary of all texts. Footer and offset index are read once. With the offset
//! index, a random sample decodes only its pages: small pages make this faster, large ones make the
//! file smaller.

use super::arrow::{self, Arrays};
use super::{LEVEL, Peer, Store};
use crate::nested::columns::{Columns, Element, Layout};
use crate::nested::data::Dataset;
use crate::peers::{map, size};
use anyhow::{Context, Result, ensure};
use arrow_array::RecordBatch;
use bytes::Bytes;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder, RowSelection, RowSelectionPolicy,
    RowSelector,
};
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::file::metadata::PageIndexPolicy;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::schema::types::ColumnPath;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

pub struct Parquet {
    pub page_bytes: usize,
}

/// The rows of a batch when everything is decoded.
const BATCH_ROWS: usize = 8192;
/// The path of the field with few distinct texts.
const ROLE: [&str; 4] = ["messages", "list", "item", "role"];

impl Peer<Dataset> for Parquet {
    fn name(&self) -> String {
        format!("Parquet {} pages", size(self.page_bytes))
    }

    fn about(&self) -> String {
        let (version, pages) = (env!("PARQUET_VERSION"), size(self.page_bytes));
        format!(
            "parquet-rs {version}, Zstandard level {LEVEL} (numbers: BYTE_STREAM_SPLIT), pages of {pages}, one row group"
        )
    }

    fn encode(&self, data: &Dataset, file: &Path) -> Result<()> {
        let mut properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::try_new(LEVEL)?))
            .set_dictionary_enabled(false)
            .set_column_dictionary_enabled(ColumnPath::new(ROLE.map(str::to_owned).to_vec()), true)
            .set_statistics_enabled(EnabledStatistics::None)
            .set_data_page_size_limit(self.page_bytes)
            .set_data_page_row_count_limit(usize::MAX);
        if data.samples.layout().element == Element::F32 {
            properties = properties.set_encoding(Encoding::BYTE_STREAM_SPLIT);
        }
        let schema = Arc::new(arrow::schema(data.samples.layout()));
        let mut writer = ArrowWriter::try_new(File::create_new(file)?, schema.clone(), Some(properties.build()))?;
        writer.write(&arrow::batch(&data.samples, 0..data.samples.samples(), schema)?)?;
        writer.close()?;
        Ok(())
    }

    fn open(&self, data: &Dataset, file: &Path) -> Result<Box<dyn Store>> {
        let file = Bytes::from_owner(map(file)?);
        let options = ArrowReaderOptions::new().with_offset_index_policy(PageIndexPolicy::Required);
        let metadata = ArrowReaderMetadata::load(&file, options)?;
        ensure!(metadata.metadata().num_row_groups() == 1, "expected one row group");
        let layout = *data.samples.layout();
        let out = Columns::new(&layout);
        Ok(Box::new(Open { file, metadata, layout, batches: Vec::new(), order: Vec::new(), out }))
    }
}

struct Open {
    file: Bytes,
    metadata: ArrowReaderMetadata,
    layout: Layout,
    /// All batches, decoded.
    batches: Vec<RecordBatch>,
    /// The samples of a request, with their positions in it and their ranks among its distinct
    /// samples.
    order: Vec<(usize, usize, usize)>,
    /// Gathered samples.
    out: Columns,
}

impl Open {
    fn builder(&self) -> ParquetRecordBatchReaderBuilder<Bytes> {
        ParquetRecordBatchReaderBuilder::new_with_metadata(self.file.clone(), self.metadata.clone())
    }

    /// Reads distinct samples in ascending order.
    fn read(&self, samples: impl Iterator<Item = usize>) -> Result<Arrays> {
        let (mut selectors, mut next, mut count) = (Vec::new(), 0, 0);
        for i in samples {
            if i > next {
                selectors.push(RowSelector::skip(i - next));
            }
            selectors.push(RowSelector::select(1));
            (next, count) = (i + 1, count + 1);
        }
        // with the default policy, a request of many samples would also decode the pages between
        // them
        let builder = self.builder().with_row_selection_policy(RowSelectionPolicy::Selectors);
        let builder = builder.with_row_selection(RowSelection::from(selectors)).with_batch_size(count);
        let batch = builder.build()?.next().context("no batch")??;
        ensure!(batch.num_rows() == count, "too few samples");
        Arrays::new(&self.layout, &batch)
    }
}

impl Store for Open {
    fn decode_all(&mut self) -> Result<()> {
        self.batches.clear();
        self.out.clear();
        for batch in self.builder().with_batch_size(BATCH_ROWS).build()? {
            self.batches.push(batch?);
        }
        Ok(())
    }

    fn sample(&mut self, i: usize, out: &mut Columns) -> Result<()> {
        self.read(std::iter::once(i))?.copy(0..1, out);
        Ok(())
    }

    fn gather(&mut self, request: &[usize]) -> Result<()> {
        let mut order = std::mem::take(&mut self.order);
        order.clear();
        order.extend(request.iter().enumerate().map(|(at, &i)| (i, at, 0)));
        order.sort_unstable();
        for (rank, same) in order.chunk_by_mut(|a, b| a.0 == b.0).enumerate() {
            same.iter_mut().for_each(|sample| sample.2 = rank);
        }
        let arrays = self.read(order.chunk_by(|a, b| a.0 == b.0).map(|same| same[0].0))?;
        order.sort_unstable_by_key(|sample| sample.1);
        self.batches.clear();
        self.out.clear();
        order.iter().for_each(|&(_, _, rank)| arrays.copy(rank..rank + 1, &mut self.out));
        self.order = order;
        Ok(())
    }

    fn results(&self, out: &mut Columns) -> Result<()> {
        out.clone_from(&self.out);
        for batch in &self.batches {
            Arrays::new(&self.layout, batch)?.copy(0..batch.num_rows(), out);
        }
        Ok(())
    }
}
