//! An Arrow IPC file, uncompressed and mapped: record batches of about 1 MiB of fixed-size lists.
//!
//! Arrow has no BF16, so its bits are stored as `UInt16`. Opening decodes all batch headers;
//! reading copies from the map.

use super::{Family, Peer, Store, map, size};
use crate::data::{Dataset, Element};
use anyhow::{Context, Result, ensure};
use arrow_array::cast::AsArray;
use arrow_array::{ArrowPrimitiveType, FixedSizeListArray, PrimitiveArray, RecordBatch};
use arrow_buffer::{Buffer, ScalarBuffer};
use arrow_ipc::convert::try_fb_to_schema;
use arrow_ipc::reader::{FileDecoder, read_footer_length};
use arrow_ipc::writer::FileWriter;
use arrow_ipc::{Block, root_as_footer};
use arrow_schema::{DataType, Field, Schema};
use std::fs::File;
use std::io::BufWriter;
use std::path::Path;
use std::sync::Arc;

pub struct ArrowIpc;

pub const BATCH_BYTES: usize = 1 << 20;

impl<T: Element> Peer<Dataset<T>> for ArrowIpc {
    fn name(&self) -> String {
        "Arrow IPC mmap".to_owned()
    }

    fn about(&self) -> String {
        let (version, batch) = (env!("ARROW_IPC_VERSION"), size(BATCH_BYTES));
        format!("arrow-rs {version}, fixed-size lists (of u16 for BF16), uncompressed, batches of {batch}, mapped")
    }

    fn family(&self) -> Family {
        Family::Memory
    }

    fn encode(&self, data: &Dataset<T>, file: &Path) -> Result<()> {
        let elements = i32::try_from(data.elements())?;
        let item = Arc::new(Field::new("item", T::Arrow::DATA_TYPE, false));
        let field = Field::new("x", DataType::FixedSizeList(item.clone(), elements), false);
        let schema = Arc::new(Schema::new(vec![field]));
        let mut writer = FileWriter::try_new(BufWriter::new(File::create_new(file)?), &schema)?;
        for values in data.values.chunks(data.samples_in(BATCH_BYTES) * data.elements()) {
            let native: &[Native<T>] = bytemuck::cast_slice(values);
            let bits = PrimitiveArray::<T::Arrow>::from_iter_values(native.iter().copied());
            let list = FixedSizeListArray::try_new(item.clone(), elements, Arc::new(bits), None)?;
            writer.write(&RecordBatch::try_new(schema.clone(), vec![Arc::new(list)])?)?;
        }
        writer.finish()?;
        Ok(())
    }

    fn open(&self, data: &Dataset<T>, file: &Path) -> Result<Box<dyn Store<T>>> {
        let file = Buffer::from(bytes::Bytes::from_owner(map(file)?));
        let blocks = Blocks::new(&file, true)?;
        let per_batch = data.samples_in(BATCH_BYTES);
        let values = (0..blocks.len()).map(|number| values::<T>(&blocks.read(number)?)).collect::<Result<Vec<_>>>()?;
        let in_file = file.as_slice().as_ptr_range();
        ensure!(values.iter().all(|values| in_file.contains(&values.as_ptr().cast())), "the values were copied");
        let out = vec![T::default(); data.values.len()];
        Ok(Box::new(Open { values, per_batch, elements: data.elements(), out }))
    }
}

/// The record batches of a file, not decoded yet.
pub struct Blocks {
    file: Buffer,
    decoder: FileDecoder,
    blocks: Vec<Block>,
}

impl Blocks {
    /// Reads the footer. With `in_place`, reading a misaligned batch is an error; it would be
    /// copied.
    pub fn new(file: &Buffer, in_place: bool) -> Result<Self> {
        let end = file.len().checked_sub(10).context("the file is too short")?;
        let footer_bytes = read_footer_length(*file[end..].first_chunk().context("the file is too short")?)?;
        let footer =
            root_as_footer(&file[end - footer_bytes..end]).map_err(|error| anyhow::anyhow!("footer: {error}"))?;
        let schema = Arc::new(try_fb_to_schema(footer.schema().context("no schema")?)?);
        let decoder = FileDecoder::new(schema, footer.version()).with_require_alignment(in_place);
        let blocks = footer.recordBatches().context("no batches")?.iter().copied().collect();
        Ok(Self { file: file.clone(), decoder, blocks })
    }

    pub fn len(&self) -> usize {
        self.blocks.len()
    }

    /// Decodes a batch. An uncompressed batch borrows from the file.
    pub fn read(&self, number: usize) -> Result<RecordBatch> {
        let block = self.blocks.get(number).context("no such batch")?;
        let length = usize::try_from(block.bodyLength())? + usize::try_from(block.metaDataLength())?;
        let bytes = self.file.slice_with_length(usize::try_from(block.offset())?, length);
        self.decoder.read_record_batch(block, &bytes)?.context("an empty batch")
    }
}

/// Returns the values of a batch that this competitor wrote.
pub fn values<T: Element>(batch: &RecordBatch) -> Result<ScalarBuffer<Native<T>>> {
    let list = batch.column(0).as_fixed_size_list_opt().context("no fixed-size list")?;
    Ok(list.values().as_primitive_opt::<T::Arrow>().context("wrong element type")?.values().clone())
}

/// The native Arrow type of an element.
type Native<T> = <<T as Element>::Arrow as ArrowPrimitiveType>::Native;

struct Open<T: Element> {
    values: Vec<ScalarBuffer<Native<T>>>,
    per_batch: usize,
    elements: usize,
    out: Vec<T>,
}

impl<T: Element> Open<T> {
    fn get(&self, i: usize) -> Result<&[T]> {
        let start = i % self.per_batch * self.elements;
        let batch = self.values.get(i / self.per_batch).and_then(|batch| batch.get(start..start + self.elements));
        Ok(bytemuck::cast_slice(batch.context("no such sample")?))
    }
}

impl<T: Element> Store<T> for Open<T> {
    fn decode_all(&mut self) -> Result<&[T]> {
        for (values, out) in self.values.iter().zip(self.out.chunks_mut(self.per_batch * self.elements)) {
            out.copy_from_slice(bytemuck::cast_slice(values));
        }
        Ok(&self.out)
    }

    fn view(&self, i: usize) -> Result<Option<&[T]>> {
        self.get(i).map(Some)
    }
}
