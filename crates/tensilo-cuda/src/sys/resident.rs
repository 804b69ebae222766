//! Samples that stay in the memory of a GPU as they are stored, and are gathered there by their
//! numbers.
//!
//! A data set that fits in the memory of a GPU in its stored form needs no loader and no link: each
//! sample is decoded where it is used. Stored bytes and tables are checked and uploaded once; an
//! array says in which block each sample begins. A warp decodes the block of a sample and keeps the
//! sample, so that a batch costs a launch, whatever the order of its samples, and the host need not
//! know which samples they are.

use super::driver::{Gather, Samples};
use super::gpu::{BatchMemory, DeviceMemory, Gpu, Launched, Staging};
use crate::block_list::{BlockList, Conversion, Destination, Refusal};
use crate::error::{CudaError, Result};
use std::fmt;
use std::sync::Arc;
use tensilo::stages::{BlockSamples, Decoder, FetchedBytes, ReadPlan};
use tensilo::{Column, ColumnBuffer, Error};

/// How a column becomes resident.
#[derive(Clone, Copy, Debug)]
pub struct ResidentOptions {
    /// How elements are delivered.
    pub conversion: Conversion,
    /// The most memory of the GPU that it takes.
    pub max_bytes: usize,
}

impl Default for ResidentOptions {
    /// Returns elements as they are stored, and any memory.
    fn default() -> Self {
        Self { conversion: Conversion::None, max_bytes: usize::MAX }
    }
}

/// A column in the memory of a GPU, as it is stored.
pub struct Resident {
    gpu: Gpu,
    samples: Samples,
    stage_bytes: u32,
    row_bytes: usize,
    /// Stored bytes and tables, blocks, places and lengths.
    memory: Arc<Vec<DeviceMemory>>,
}

impl fmt::Debug for Resident {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} samples in {} bytes of {}", self.samples.sample_count, self.byte_count(), self.gpu.name())
    }
}

/// Samples whose blocks are uploaded together.
const PIECE_SAMPLES: u64 = 1 << 14;

/// What is known of the samples, before it is uploaded.
#[derive(Default)]
struct Collected {
    blocks: Vec<u8>,
    block_count: u64,
    places: Vec<[u32; 2]>,
    lengths: Vec<u32>,
    stage_bytes: u32,
}

impl Resident {
    /// Reads, checks and uploads all samples of a column, which are numbers.
    ///
    /// Fails if the column is of texts, if a sample is damaged, or if more memory would be taken
    /// than the options allow. Cost: reading the column once, and pinned memory for a part of it.
    pub fn new(gpu: &Gpu, column: &Column, options: ResidentOptions) -> Result<Self> {
        let dtype = column.schema().dtype;
        if dtype.is_string() {
            return Err(Error::bad_argument("texts and bytes do not become resident on a GPU").into());
        }
        let destination = Destination { dtype, conversion: options.conversion, offset: 0, row_bytes: None };
        let (conversion, zero_bits, delivered) = destination.kernel_fields()?;
        let (mut collected, mut memory) = (Collected::default(), Vec::new());
        let (mut list, mut staging) = (gpu.new_list(), Staging::new(&gpu.0.driver)?);
        let (mut plan, mut bytes, mut decoder) = (ReadPlan::new(), FetchedBytes::new(), Decoder::new());
        let count = column.sample_count();
        let (mut start, mut taken) = (0, 0_usize);
        while start < count {
            let end = count.min(start.saturating_add(PIECE_SAMPLES));
            plan.select_range(std::slice::from_ref(column), start..end)?;
            plan.fetch(&mut bytes)?;
            collected.add_piece(&plan, &bytes, &mut decoder, &mut list)?;
            let piece = collected.upload_piece(gpu, &mut list, &mut staging)?;
            taken = taken.saturating_add(piece.bytes).saturating_add(collected.blocks.len() / 8);
            check_memory(taken, options.max_bytes)?;
            memory.push(piece);
            start = end;
        }
        let Collected { blocks, block_count, places, lengths, stage_bytes } = collected;
        let mut upload = |bytes: &[u8]| -> Result<u64> {
            taken = taken.saturating_add(bytes.len());
            check_memory(taken, options.max_bytes)?;
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
            sample_count: count,
            elements,
            conversion,
            zero_bits,
            delivered_bytes: delivered as u8, // at most 8
            unused: 0,
        };
        Ok(Self {
            gpu: gpu.clone(),
            samples,
            stage_bytes,
            row_bytes: longest as usize * delivered,
            memory: Arc::new(memory),
        })
    }

    /// Returns the number of samples.
    pub fn sample_count(&self) -> u64 {
        self.samples.sample_count
    }

    /// Returns the bytes of the longest sample, as it is delivered: the least length of a row.
    pub fn row_bytes(&self) -> usize {
        self.row_bytes
    }

    /// Returns the memory of the GPU that it takes.
    pub fn byte_count(&self) -> usize {
        self.memory.iter().map(|memory| memory.bytes).sum()
    }

    /// Decodes samples to rows of `row_bytes` each, after what the caller's stream does now. The
    /// numbers of the samples are on the GPU: `count` integers of 8 bytes at address `indices`.
    /// Returns when that is enqueued: operations that are put on the stream of the rows later see
    /// them. What a row has after a shorter sample is left as it is.
    ///
    /// Fails if the rows are too short, or if the driver fails. A number that no sample has is
    /// reported by [`Gathered::finish`].
    ///
    /// # Safety
    ///
    /// Rows and indices are on the GPU of this column, at multiples of the bytes of an element and
    /// of 8, and stay allocated until [`Gathered::finish`] has returned, or [`Gathered`] was
    /// dropped, or later operations of the stream have run. Nobody uses the rows on other streams
    /// meanwhile, or writes to the indices. The stream exists.
    pub unsafe fn gather(&self, indices: u64, count: usize, rows: BatchMemory, row_bytes: usize) -> Result<Gathered> {
        let needed = count.checked_mul(row_bytes).filter(|needed| *needed <= rows.bytes);
        let (Some(_), Ok(count)) = (needed, u32::try_from(count)) else {
            let message = format!("{} bytes for {count} rows of {row_bytes}", rows.bytes);
            return Err(Error::bad_argument(message).into());
        };
        let gather = Gather {
            samples: self.samples,
            indices,
            count,
            rows: rows.address,
            row_bytes: row_bytes as u64,
            stage_bytes: self.stage_bytes,
            scratch: 0, // those of a slot
            report: 0,
        };
        // SAFETY: the memory of the samples lives as long as the launch, which has it; a kernel
        // reads nothing beyond its arrays. The rest is the caller's promise.
        let launched = unsafe { self.gpu.gather(gather, self.memory.clone(), rows.stream) }?;
        Ok(Gathered(launched))
    }
}

/// Samples that are being gathered. Dropping it waits.
#[derive(Debug)]
#[must_use = "a wrong number is reported by `finish`"]
pub struct Gathered(Launched);

impl Gathered {
    /// Waits until the samples are decoded. Returns the first row whose sample does not exist, does
    /// not fit, or breaks a rule: what the rows then have is any.
    pub fn finish(self) -> Result<Option<Refusal>> {
        self.0.finish_gather()
    }
}

impl Collected {
    /// Adds the blocks of a plan to the list, and notes where its samples are.
    fn add_piece(
        &mut self,
        plan: &ReadPlan,
        bytes: &FetchedBytes,
        decoder: &mut Decoder,
        list: &mut BlockList,
    ) -> Result<()> {
        list.clear();
        let (mut shapes, mut pieces) = (ColumnBuffer::new(), Vec::new());
        decoder.visit_blocks(plan, bytes, 0, &mut shapes, &mut |samples: BlockSamples<'_>| {
            // a sample goes on in the block that follows, though it may be equal
            let block = list.push_apart(&samples)?;
            let width = samples.block.element_bytes();
            pieces.push((samples.position, samples.offset / width, samples.elements, block, width));
            Ok(())
        })?;
        let Some(width) = pieces.first().map(|(.., width)| *width) else {
            // samples without elements
            self.places.extend((0..shapes.sample_count()).map(|_| [0; 2]));
            self.lengths.extend((0..shapes.sample_count()).map(|_| 0));
            return Ok(());
        };
        let start_of = |position: usize| shapes.value_start(position).map(|byte| byte / width).ok_or_else(lost);
        let mut placed = pieces
            .into_iter()
            .map(|(position, offset, elements, block, _)| {
                Ok((start_of(position)?.saturating_add(offset), elements, block))
            })
            .collect::<Result<Vec<_>>>()?;
        // samples that are used as they are stored are handed out last
        placed.sort_by_key(|(at, ..)| *at);
        let first_block = self.block_count;
        let mut position = 0;
        for (at, elements, block) in placed {
            let block = u32::try_from(first_block.saturating_add(block as u64)).map_err(|_| too_many())?;
            while position < shapes.sample_count() && start_of(position)? < at.saturating_add(elements.len()) {
                let in_block = start_of(position)?.checked_sub(at).ok_or_else(lost)?;
                let in_block = u32::try_from(elements.start.saturating_add(in_block)).map_err(|_| too_many())?;
                self.places.push([block, in_block]);
                position += 1;
            }
        }
        // empty ones at the end
        self.places.extend((position..shapes.sample_count()).map(|_| [0; 2]));
        for position in 0..shapes.sample_count() {
            let length = start_of(position + 1)?.saturating_sub(start_of(position)?);
            self.lengths.push(u32::try_from(length).map_err(|_| too_many())?);
        }
        Ok(())
    }

    /// Uploads stored bytes and tables, and keeps the blocks, with their addresses.
    fn upload_piece(&mut self, gpu: &Gpu, list: &mut BlockList, staging: &mut Staging) -> Result<DeviceMemory> {
        self.stage_bytes = self.stage_bytes.max(list.stage_bytes());
        let (blocks, memory, used) = list.stored();
        let uploaded = gpu.0.upload(memory.get(..used).unwrap_or(&[]), staging)?;
        for block in blocks {
            let (stored, tables) = (block.stored + uploaded.address, block.tables + uploaded.address);
            let block = crate::block_list::Block { stored, tables, ..*block };
            self.blocks.extend_from_slice(bytemuck::bytes_of(&block));
        }
        self.block_count += blocks.len() as u64;
        Ok(uploaded)
    }
}

fn check_memory(taken: usize, max_bytes: usize) -> Result<()> {
    match taken <= max_bytes {
        true => Ok(()),
        false => {
            let message = format!("the column takes more than {max_bytes} bytes of the GPU: load it batch by batch");
            Err(Error::bad_argument(message).into())
        }
    }
}

#[cold]
fn lost() -> CudaError {
    Error::bad_argument("the blocks of a column do not have all of its samples").into()
}

#[cold]
fn too_many() -> CudaError {
    Error::bad_argument("a column of more than 2^32 blocks, or a sample of as many elements").into()
}
