//! Samples that stay on a GPU in stored form and are gathered there by index.
//!
//! If the stored form of the data fits in GPU memory, training needs neither a loader nor transfers
//! from the host: each sample is decoded where it is used. The stored bytes and their tables are
//! checked and uploaded once, with an array that contains the block and the first element of each
//! sample. To gather a sample, a warp decodes its block and writes only the elements of the sample.
//! A batch is thus a single launch, whatever the order of its samples, and the host need not know
//! which samples it contains.

use super::driver::{Gather, Samples};
use super::gpu::{BatchMemory, DeviceMemory, Gpu, PendingLaunch, StagingBuffer};
use crate::block_list::{BlockList, Conversion, Destination, Refusal};
use crate::error::{CudaError, Result};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tensilo::stages::{BlockSamples, Decoder, FetchedBytes, ReadPlan};
use tensilo::{Column, ColumnBuffer, DType, Error};

/// A column that stays in GPU memory in stored form.
pub struct Resident {
    gpu: Gpu,
    samples: Samples,
    stage_bytes: u32,
    row_bytes: usize,
    /// The uploaded arrays: stored bytes and tables, block records, and the place and length of
    /// each sample.
    memory: Arc<Vec<DeviceMemory>>,
}

impl fmt::Debug for Resident {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} samples in {} bytes of {}", self.samples.sample_count, self.byte_count(), self.gpu.name())
    }
}

/// The target size of an upload.
const UPLOAD_BYTES: usize = 64 << 20;
/// The number of samples in the first upload.
const FIRST_UPLOAD_SAMPLES: usize = 64;
const MAX_UPLOAD_SAMPLES: usize = 1 << 14;

impl Resident {
    /// Reads, checks and uploads all samples of a numeric column. [`ResidentBuilder`] does this for
    /// the samples of many files.
    ///
    /// Fails if the column holds strings or bytes, if a sample is damaged, or if GPU memory is too
    /// small. Cost: reads the column once, and allocates pinned memory for one upload.
    pub fn new(gpu: &Gpu, column: &Column, conversion: Conversion) -> Result<Self> {
        let mut builder = ResidentBuilder::new(gpu, column.schema().dtype, conversion)?;
        let (mut plan, mut bytes, mut decoder) = (ReadPlan::new(), FetchedBytes::new(), Decoder::new());
        let mut shapes = ColumnBuffer::new();
        let count = column.sample_count();
        let mut start = 0;
        while start < count {
            let end = count.min(start.saturating_add(builder.next_upload_samples() as u64)); // exact
            plan.select_range(std::slice::from_ref(column), start..end)?;
            plan.fetch(&mut bytes)?;
            builder.begin_upload((end - start) as usize); // at most MAX_UPLOAD_SAMPLES
            builder.add(&mut decoder, &plan, &bytes, 0, None, &mut shapes)?;
            builder.end_upload()?;
            start = end;
        }
        builder.finish()
    }

    /// Returns the number of samples.
    pub fn sample_count(&self) -> u64 {
        self.samples.sample_count
    }

    /// Returns the size in bytes of the longest delivered sample. A row must be at least this long.
    pub fn row_bytes(&self) -> usize {
        self.row_bytes
    }

    /// Returns how many bytes of GPU memory the column uses.
    pub fn byte_count(&self) -> usize {
        self.memory.iter().map(|memory| memory.bytes).sum()
    }

    /// Decodes samples into rows of `row_bytes` bytes. The indices of the samples are on the GPU:
    /// `count` 8-byte integers at address `indices`. The gather runs after all operations that are
    /// already enqueued on the stream of the rows. This function returns as soon as the gather is
    /// enqueued, and later operations on that stream see its result. If a sample is shorter than
    /// its row, the remaining bytes of the row are not written.
    ///
    /// Fails if the memory for the rows is too small, or if the driver fails.
    /// [`PendingGather::finish`] reports an index that is out of range.
    ///
    /// # Safety
    ///
    /// The rows and the indices are on the GPU of this column. The address of the rows is a
    /// multiple of the element size, and the address of the indices is a multiple of 8. Both stay
    /// allocated until [`PendingGather::finish`] has returned, the [`PendingGather`] has been
    /// dropped, or a later operation on the stream has run. Until then, no other stream uses the
    /// rows, and nothing writes to the indices. The stream exists.
    pub unsafe fn gather(
        &self,
        indices: u64,
        count: usize,
        rows: BatchMemory,
        row_bytes: usize,
    ) -> Result<PendingGather> {
        let needed = count.checked_mul(row_bytes).filter(|needed| *needed <= rows.bytes);
        let (Some(_), Ok(count)) = (needed, u32::try_from(count)) else {
            let message = format!("{count} rows of {row_bytes} bytes do not fit in {} bytes of memory", rows.bytes);
            return Err(Error::bad_argument(message).into());
        };
        let gather = Gather {
            samples: self.samples,
            indices,
            count,
            rows: rows.address,
            row_bytes: row_bytes as u64,
            stage_bytes: self.stage_bytes,
            scratch: 0, // set from the slot, like `report`
            report: 0,
        };
        // SAFETY: the launch keeps the memory of the samples alive, and the kernel reads nothing
        // outside its arrays. The caller guarantees everything else.
        let launched = unsafe { self.gpu.gather(gather, self.memory.clone(), rows.stream) }?;
        Ok(PendingGather(launched))
    }
}

/// A gather in flight. Dropping it waits until the gather is complete.
#[derive(Debug)]
#[must_use = "`finish` reports an index that is out of range"]
pub struct PendingGather(PendingLaunch);

impl PendingGather {
    /// Waits until the samples are decoded. Returns the first row whose sample does not exist, does
    /// not fit or breaks a rule, if any, and the run time of the kernel. If there is such a row,
    /// the contents of all rows are unspecified.
    pub fn finish(self) -> Result<(Option<Refusal>, Duration)> {
        self.0.finish_gather()
    }
}

/// Builds a [`Resident`] column from several uploads. Begin an upload, add its samples file by
/// file, and end it to send them together. To discard an upload, begin the next one or finish the
/// column without ending it.
pub struct ResidentBuilder {
    gpu: Gpu,
    conversion: u8,
    zero_bits: u8,
    delivered_bytes: u8,
    /// The records of the uploaded blocks, with their addresses on the GPU.
    blocks: Vec<u8>,
    block_count: u64,
    /// For each sample, its block and the index of its first element in the block.
    places: Vec<[u32; 2]>,
    lengths: Vec<u32>,
    stage_bytes: u32,
    memory: Vec<DeviceMemory>,
    /// The number of samples in the ended uploads.
    uploaded_count: usize,
    next_upload_samples: usize,
    /// The blocks of the current upload.
    list: BlockList,
    staging: StagingBuffer,
}

impl fmt::Debug for ResidentBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} samples in {} bytes of {}", self.uploaded_count, self.byte_count(), self.gpu.name())
    }
}

impl ResidentBuilder {
    /// Starts a column whose elements have this type. Fails for strings and bytes, or if the
    /// conversion is for a different type.
    pub fn new(gpu: &Gpu, dtype: DType, conversion: Conversion) -> Result<Self> {
        if dtype.is_string() {
            return Err(Error::bad_argument("text and bytes cannot stay on a GPU").into());
        }
        let destination = Destination { dtype, conversion, offset: 0, row_bytes: None };
        let (conversion, zero_bits, delivered) = destination.kernel_fields()?;
        Ok(Self {
            gpu: gpu.clone(),
            conversion,
            zero_bits,
            delivered_bytes: delivered as u8, // at most 8
            blocks: Vec::new(),
            block_count: 0,
            places: Vec::new(),
            lengths: Vec::new(),
            stage_bytes: 0,
            memory: Vec::new(),
            uploaded_count: 0,
            next_upload_samples: FIRST_UPLOAD_SAMPLES,
            list: gpu.new_list(),
            staging: StagingBuffer::new(&gpu.0.driver)?,
        })
    }

    /// Returns how many samples to put into the next upload, so that it has about 64 MiB. The first
    /// upload is small; later ones are sized according to the upload before them.
    pub fn next_upload_samples(&self) -> usize {
        self.next_upload_samples
    }

    /// Begins an upload of `count` samples, which have no elements until they are added. Discards
    /// the current upload if it was not ended.
    pub fn begin_upload(&mut self, count: usize) {
        self.list.clear();
        self.places.truncate(self.uploaded_count);
        self.lengths.truncate(self.uploaded_count);
        let samples = self.uploaded_count.saturating_add(count);
        self.places.resize(samples, [0; 2]);
        self.lengths.resize(samples, 0);
    }

    /// Adds the samples of column number `column` of a plan to the upload. `rows` contains the row
    /// of each sample in the upload; if it is `None`, the rows are in the order of the samples.
    /// `shapes` receives the shapes and nulls of the samples.
    ///
    /// Fails if a sample is damaged, or if its row is outside the upload.
    pub fn add(
        &mut self,
        decoder: &mut Decoder,
        plan: &ReadPlan,
        bytes: &FetchedBytes,
        column: usize,
        rows: Option<&[usize]>,
        shapes: &mut ColumnBuffer,
    ) -> Result<()> {
        let mut entries = Vec::new();
        let Self { list, places, lengths, block_count, uploaded_count, .. } = self;
        decoder.visit_blocks(plan, bytes, column, shapes, &mut |samples: BlockSamples<'_>| {
            // a sample may continue in the next block, which must therefore be a separate one even
            // if it equals this block
            let block = list.push_distinct(&samples)?;
            let width = samples.block.element_bytes();
            entries.push((samples.position, samples.offset / width, samples.elements, block, width));
            Ok(())
        })?;
        // if there are no blocks, no sample has any elements
        let width = entries.first().map_or(1, |(.., width)| *width);
        let start_of =
            |position: usize| shapes.value_start(position).map(|byte| byte / width).ok_or_else(missing_sample);
        let row_of = |position: usize| {
            let row = rows.map_or(Some(position), |rows| rows.get(position).copied());
            row.and_then(|row| row.checked_add(*uploaded_count)).ok_or_else(no_such_row)
        };
        let mut by_start = entries
            .into_iter()
            .map(|(position, offset, elements, block, _)| {
                Ok((start_of(position)?.saturating_add(offset), elements, block))
            })
            .collect::<Result<Vec<_>>>()?;
        // `visit_blocks` visits raw samples last, so the entries may not be in order
        by_start.sort_by_key(|(at, ..)| *at);
        let mut position = 0;
        for (at, elements, block) in by_start {
            let block = u32::try_from(block_count.saturating_add(block as u64)).map_err(|_| too_many_blocks())?;
            while position < shapes.sample_count() && start_of(position)? < at.saturating_add(elements.len()) {
                let in_block = start_of(position)?.checked_sub(at).ok_or_else(missing_sample)?;
                let in_block = u32::try_from(elements.start.saturating_add(in_block)).map_err(|_| sample_too_long())?;
                *places.get_mut(row_of(position)?).ok_or_else(no_such_row)? = [block, in_block];
                position += 1;
            }
        }
        for position in 0..shapes.sample_count() {
            let length = start_of(position + 1)?.saturating_sub(start_of(position)?);
            *lengths.get_mut(row_of(position)?).ok_or_else(no_such_row)? =
                u32::try_from(length).map_err(|_| sample_too_long())?;
        }
        Ok(())
    }

    /// Returns how many bytes of GPU memory the column uses, including the current upload.
    pub fn byte_count(&self) -> usize {
        let sent: usize = self.memory.iter().map(|memory| memory.bytes).sum();
        let samples = self.places.len().saturating_mul(size_of::<[u32; 2]>() + size_of::<u32>());
        let blocks = self.blocks.len().saturating_add(self.list.byte_count());
        sent.saturating_add(samples).saturating_add(blocks)
    }

    /// Sends the upload to the GPU.
    pub fn end_upload(&mut self) -> Result<()> {
        let samples = self.places.len().saturating_sub(self.uploaded_count);
        let target_samples = samples.saturating_mul(UPLOAD_BYTES) / self.list.byte_count().max(1);
        self.next_upload_samples = target_samples.min(samples.saturating_mul(4)).clamp(1, MAX_UPLOAD_SAMPLES);
        self.stage_bytes = self.stage_bytes.max(self.list.stage_bytes());
        let (blocks, memory, used) = self.list.stored();
        let uploaded = self.gpu.0.upload(memory.get(..used).unwrap_or(&[]), &mut self.staging)?;
        for block in blocks {
            let (stored, tables) = (block.stored + uploaded.address, block.tables + uploaded.address);
            let block = crate::block_list::Block { stored, tables, ..*block };
            self.blocks.extend_from_slice(bytemuck::bytes_of(&block));
        }
        self.block_count += blocks.len() as u64;
        self.memory.push(uploaded);
        self.list.clear();
        self.uploaded_count = self.places.len();
        Ok(())
    }

    /// Returns the column with the samples of all ended uploads.
    pub fn finish(mut self) -> Result<Resident> {
        self.begin_upload(0);
        let Self { gpu, blocks, block_count, places, lengths, stage_bytes, mut memory, mut staging, .. } = self;
        let mut upload = |bytes: &[u8]| -> Result<u64> {
            let uploaded = gpu.0.upload(bytes, &mut staging)?;
            memory.push(uploaded);
            Ok(memory.last().map_or(0, |memory| memory.address))
        };
        let elements = lengths.first().copied().unwrap_or(0);
        let are_equal = lengths.iter().all(|length| *length == elements);
        let longest = lengths.iter().copied().max().unwrap_or(0);
        let samples = Samples {
            blocks: upload(&blocks)?,
            block_count,
            places: upload(bytemuck::cast_slice(&places))?,
            lengths: if are_equal { 0 } else { upload(bytemuck::cast_slice(&lengths))? },
            sample_count: places.len() as u64, // exact
            elements,
            conversion: self.conversion,
            zero_bits: self.zero_bits,
            delivered_bytes: self.delivered_bytes,
            unused: 0,
        };
        let row_bytes = longest as usize * usize::from(self.delivered_bytes);
        Ok(Resident { gpu, samples, stage_bytes, row_bytes, memory: Arc::new(memory) })
    }
}

#[cold]
fn missing_sample() -> CudaError {
    Error::bad_argument("the blocks of a column do not contain all of its samples").into()
}

#[cold]
fn no_such_row() -> CudaError {
    Error::bad_argument("a row is outside the upload").into()
}

#[cold]
fn too_many_blocks() -> CudaError {
    Error::bad_argument("a column has more than 2^32 blocks").into()
}

#[cold]
fn sample_too_long() -> CudaError {
    Error::bad_argument("a sample has more than 2^32 elements").into()
}
