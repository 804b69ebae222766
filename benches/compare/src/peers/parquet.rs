//! Parquet: BYTE_STREAM_SPLIT and Zstandard 9, row groups of about 1 MiB, read from a map with the
//! Arrow reader. The row "best" is the smallest file of several encodings.
//!
//! Parquet has no BF16, so its values are FIXED_LEN_BYTE_ARRAY(2). A row is one value, which saves
//! Parquet the levels of lists. A sample is consecutive rows, always in one row group. There are no
//! statistics, which would only cost bytes. Footer and offset index are read once. With pages of
//! 64 KiB, the offset index lets a random sample decode one or two pages; pages of 1 MiB have a
//! better ratio. Both are shown.

use super::{Peer, Store, WHOLE, map, size};
use crate::data::{Dataset, Element};
use anyhow::{Context, Result, ensure};
use arrow_array::cast::AsArray;
use arrow_array::{ArrayRef, ArrowPrimitiveType, FixedSizeBinaryArray, PrimitiveArray, RecordBatch};
use arrow_buffer::Buffer;
use arrow_schema::{DataType, Field, Schema};
use bytes::Bytes;
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
use tensilo::DType;

pub struct Parquet {
    page_bytes: usize,
    group_bytes: usize,
    layout: Layout,
}

/// An encoding of values, before Zstandard.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Layout {
    Split,
    Dictionary,
    /// For integers only.
    Delta,
}

impl Layout {
    fn name(self) -> &'static str {
        match self {
            Self::Split => "BYTE_STREAM_SPLIT",
            Self::Dictionary => "a dictionary",
            Self::Delta => "DELTA_BINARY_PACKED",
        }
    }
}

pub const COLUMN: &str = "x";
const LEVEL: i32 = 9;
const GROUP_BYTES: usize = 1 << 20;

impl Parquet {
    pub fn new(page_bytes: usize) -> Self {
        Self { page_bytes, group_bytes: GROUP_BYTES, layout: Layout::Split }
    }

    /// Returns the number of samples in a row group.
    fn group_samples<T: Element>(&self, data: &Dataset<T>) -> usize {
        data.samples_in(self.group_bytes).min(data.samples())
    }

    pub fn properties<T: Element>(&self, data: &Dataset<T>) -> Result<WriterProperties> {
        let builder = WriterProperties::builder().set_compression(Compression::ZSTD(ZstdLevel::try_new(LEVEL)?));
        let builder = match self.layout {
            Layout::Split => builder.set_encoding(Encoding::BYTE_STREAM_SPLIT).set_dictionary_enabled(false),
            Layout::Delta => builder.set_encoding(Encoding::DELTA_BINARY_PACKED).set_dictionary_enabled(false),
            Layout::Dictionary => builder.set_dictionary_enabled(true).set_dictionary_page_size_limit(data.raw_bytes()),
        };
        let builder = builder
            .set_statistics_enabled(EnabledStatistics::None)
            .set_data_page_size_limit(self.page_bytes)
            .set_data_page_row_count_limit(usize::MAX)
            .set_max_row_group_row_count(Some(self.group_samples(data) * data.elements()));
        Ok(builder.build())
    }
}

impl<T: Element> Peer<Dataset<T>> for Parquet {
    fn name(&self) -> String {
        format!("Parquet {} pages", size(self.page_bytes))
    }

    fn about(&self) -> String {
        let (version, layout) = (env!("PARQUET_VERSION"), self.layout.name());
        let (pages, groups) = (size(self.page_bytes), size(self.group_bytes));
        format!("parquet-rs {version}, {layout} and Zstandard level {LEVEL}, pages of {pages}, row groups of {groups}")
    }

    fn encode(&self, data: &Dataset<T>, file: &Path) -> Result<()> {
        write(data, self.properties(data)?, File::create_new(file)?)
    }

    fn open(&self, data: &Dataset<T>, file: &Path) -> Result<Box<dyn Store<T>>> {
        let file = Bytes::from_owner(map(file)?);
        let options = ArrowReaderOptions::new().with_offset_index_policy(PageIndexPolicy::Required);
        let metadata = ArrowReaderMetadata::load(&file, options)?;
        let group_samples = self.group_samples(data);
        ensure!(
            metadata.metadata().num_row_groups() == data.samples().div_ceil(group_samples),
            "wrong number of row groups"
        );
        Ok(Box::new(Open {
            file,
            metadata,
            elements: data.elements(),
            group_samples,
            out: vec![T::default(); data.values.len()],
            order: Vec::new(),
            sorted: Vec::new(),
        }))
    }
}

/// Returns the settings that are tried for the smallest file.
pub fn candidates(dtype: DType) -> Vec<Parquet> {
    let mut layouts = vec![Layout::Split, Layout::Dictionary];
    if matches!(dtype, DType::I32 | DType::I64) {
        layouts.push(Layout::Delta);
    }
    let sizes = [GROUP_BYTES, WHOLE];
    let of_layout = |layout| sizes.map(|group_bytes| Parquet { page_bytes: GROUP_BYTES, group_bytes, layout });
    layouts.into_iter().flat_map(of_layout).collect()
}

pub fn about_best() -> String {
    let (version, groups) = (env!("PARQUET_VERSION"), size(GROUP_BYTES));
    format!(
        "parquet-rs {version}, Zstandard level {LEVEL}, the smallest file of BYTE_STREAM_SPLIT, a dictionary and, for \
         integers, DELTA_BINARY_PACKED, in row groups of {groups} or in one"
    )
}

/// Returns the Arrow type of a value, which determines the Parquet type.
fn data_type<T: Element>() -> DataType {
    if T::DTYPE == DType::Bf16 { DataType::FixedSizeBinary(2) } else { T::Arrow::DATA_TYPE }
}

fn array<T: Element>(values: &[T]) -> Result<ArrayRef> {
    let bytes = Buffer::from(bytemuck::cast_slice::<_, u8>(values));
    if T::DTYPE == DType::Bf16 {
        return Ok(Arc::new(FixedSizeBinaryArray::try_new(2, bytes, None)?));
    }
    Ok(Arc::new(PrimitiveArray::<T::Arrow>::try_new(bytes.into(), None)?))
}

/// Returns the bytes of the values of a batch.
fn bytes<T: Element>(batch: &RecordBatch) -> Result<&[u8]> {
    let column = batch.column(0);
    if T::DTYPE == DType::Bf16 {
        return Ok(column.as_fixed_size_binary_opt().context("wrong element type")?.value_data());
    }
    let values = column.as_primitive_opt::<T::Arrow>().context("wrong element type")?.values();
    Ok(bytemuck::cast_slice(values))
}

/// Writes the tensors with these options, which also set the size of row groups.
pub fn write<T: Element>(data: &Dataset<T>, properties: WriterProperties, file: impl Write + Send) -> Result<()> {
    let group_rows = properties.max_row_group_row_count().context("the row groups have no limit of rows")?;
    let schema = Arc::new(Schema::new(vec![Field::new(COLUMN, data_type::<T>(), false)]));
    let mut writer = ArrowWriter::try_new(file, schema.clone(), Some(properties))?;
    for values in data.values.chunks(group_rows) {
        writer.write(&RecordBatch::try_new(schema.clone(), vec![array(values)?])?)?;
    }
    writer.close()?;
    Ok(())
}

struct Open<T> {
    file: Bytes,
    metadata: ArrowReaderMetadata,
    elements: usize,
    group_samples: usize,
    out: Vec<T>,
    /// The samples of a request, with their positions in it.
    order: Vec<(usize, usize)>,
    /// The distinct samples of a request, in ascending order.
    sorted: Vec<T>,
}

impl<T: Element> Open<T> {
    fn builder(&self) -> ParquetRecordBatchReaderBuilder<Bytes> {
        ParquetRecordBatchReaderBuilder::new_with_metadata(self.file.clone(), self.metadata.clone())
    }

    /// Reads distinct samples in ascending order to `out`.
    fn read(&self, samples: impl Iterator<Item = usize>, out: &mut [T]) -> Result<()> {
        let (mut groups, mut selectors) = (Vec::new(), Vec::new());
        let mut next = 0; // the first sample of `groups` that no selector covers yet
        for i in samples {
            let group = i / self.group_samples;
            if groups.last() != Some(&group) {
                // skip the rest of the previous group, which has the full size: only the last group
                // of the file is shorter
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

/// Copies all values of a reader to `out`.
fn copy<T: Element>(builder: ParquetRecordBatchReaderBuilder<Bytes>, out: &mut [T]) -> Result<()> {
    let out: &mut [u8] = bytemuck::cast_slice_mut(out);
    let mut at = 0;
    for batch in builder.build()? {
        let batch = batch?;
        let values = bytes::<T>(&batch)?;
        out.get_mut(at..at + values.len()).context("too many values")?.copy_from_slice(values);
        at += values.len();
    }
    ensure!(at == out.len(), "too few values");
    Ok(())
}

impl<T: Element> Store<T> for Open<T> {
    fn decode_all(&mut self) -> Result<&[T]> {
        let builder = self.builder().with_batch_size(self.group_samples * self.elements);
        copy(builder, &mut self.out)?;
        Ok(&self.out)
    }

    fn sample(&mut self, i: usize, out: &mut [T]) -> Result<()> {
        self.read(std::iter::once(i), out)
    }

    fn gather(&mut self, request: &[usize], out: &mut [T]) -> Result<()> {
        let mut order = std::mem::take(&mut self.order);
        order.clear();
        order.extend(request.iter().copied().zip(0..));
        order.sort_unstable();
        let distinct = || order.chunk_by(|a, b| a.0 == b.0);
        let mut sorted = std::mem::take(&mut self.sorted);
        sorted.resize(distinct().count() * self.elements, T::default());
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
