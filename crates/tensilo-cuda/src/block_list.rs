//! The blocks of a batch and where their elements go: the input of one launch.
//!
//! A few large copies to a device are faster than many small ones, but samples are stored in many
//! small blocks. So a list concatenates the stored bytes of its blocks, each block at a multiple of
//! 16 bytes, and one copy sends them to the device. The tables of a part are stored once for all
//! consecutive blocks that share them. A block with several samples is decoded once, and its
//! elements are copied several times. Fetched bytes are not copied to the list if they are already
//! in memory that the device can copy from: they become *segments*, and are sent from there.
//!
//! Offsets are relative to the list and to the memory of the batch. They are checked before they
//! become addresses, which happens when the list is launched. So a kernel cannot write anywhere
//! outside the list and the batch.

use bytemuck::{Pod, Zeroable};
use std::fmt;
use std::ops::Range;
use tensilo::source::ReadMemory;
use tensilo::stages::{BlockSamples, FetchedBytes};
use tensilo::{ColumnBuffer, DType, Error, Result};

/// The conversion of elements on delivery.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Conversion {
    /// The type stays the same.
    #[default]
    None,
    /// From bf16 to f32.
    Bf16ToF32,
    /// From f16 to f32.
    F16ToF32,
}

impl Conversion {
    const fn code(self) -> u8 {
        match self {
            Self::None => 0,
            Self::Bf16ToF32 => 1,
            Self::F16ToF32 => 2,
        }
    }

    /// Returns the size of a delivered element in bytes, given the size of a stored element.
    pub const fn element_bytes(self, stored: usize) -> usize {
        match self {
            Self::None => stored,
            Self::Bf16ToF32 | Self::F16ToF32 => 4,
        }
    }
}

/// Where the samples of a column go.
#[derive(Clone, Copy, Debug)]
pub struct Destination {
    /// The type of the elements in the file.
    pub dtype: DType,
    /// The conversion of elements on delivery.
    pub conversion: Conversion,
    /// The offset in the batch's memory at which the column begins. It must be a multiple of the
    /// size of a delivered element.
    pub offset: usize,
    /// The size of a row in bytes: samples begin at multiples of this, counted from `offset`. The
    /// bytes of a row after its sample are not written; see [`BlockList::fill`]. `None` if samples
    /// are contiguous.
    pub row_bytes: Option<usize>,
}

/// Samples of a column that were read together, from one file.
#[derive(Clone, Copy, Debug)]
pub struct SampleRows<'a> {
    /// The shapes of the samples, as [`visit_blocks`](tensilo::stages::Decoder::visit_blocks)
    /// returns them.
    pub shapes: &'a ColumnBuffer,
    /// The row of each sample, for destinations with rows. `None` if the samples go to consecutive
    /// rows, starting at row 0.
    pub rows: Option<&'a [usize]>,
}

impl Destination {
    fn check(&self) -> Result<()> {
        let converted = match self.conversion {
            Conversion::None => self.dtype,
            Conversion::Bf16ToF32 => DType::Bf16,
            Conversion::F16ToF32 => DType::F16,
        };
        if converted != self.dtype {
            return Err(Error::bad_argument(format!(
                "conversion {:?} does not apply to elements of type {}",
                self.conversion,
                self.dtype.name()
            )));
        }
        let delivered = self.conversion.element_bytes(self.dtype.coded_bytes());
        match self.offset.is_multiple_of(delivered) && self.row_bytes.unwrap_or(0).is_multiple_of(delivered) {
            true => Ok(()),
            false => {
                let message = format!(
                    "offset {} and row_bytes {:?} must be multiples of the element size, {delivered} bytes",
                    self.offset, self.row_bytes
                );
                Err(Error::bad_argument(message))
            }
        }
    }
}

/// A block, in the layout that kernels read. Must match the struct in `kernels/decode.h`.
#[derive(Clone, Copy, Debug, Default, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Block {
    pub stored: u64,
    pub tables: u64,
    pub stored_bytes: u32,
    pub table_bytes: u32,
    pub elements: u32,
    pub encoding: u8,
    pub element_bytes: u8,
    pub conversion: u8,
    pub zero_bits: u8,
    pub first_copy: u32,
    pub copy_count: u32,
}

impl Block {
    /// Returns a block whose bytes are stored unchanged at `stored`.
    fn raw(stored: usize) -> Self {
        Self { stored: stored as u64, element_bytes: 1, ..Self::default() }
    }
}

/// Some elements of a block, and where they go. Must match the struct in `kernels/decode.h`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Copy {
    pub to: u64,
    pub first: u32,
    pub count: u32,
}

/// The alignment of stored bytes, tables and records.
pub(crate) const ALIGNMENT: usize = size_of::<u128>();

/// Heap memory.
#[derive(Debug, Default)]
struct Heap(Vec<u128>);

impl ReadMemory for Heap {
    fn bytes(&self) -> &[u8] {
        bytemuck::cast_slice(&self.0)
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        bytemuck::cast_slice_mut(&mut self.0)
    }

    fn reserve(&mut self, _used: usize, bytes: usize) -> Result<()> {
        let words = bytes.div_ceil(ALIGNMENT);
        self.0.try_reserve(words.saturating_sub(self.0.len())).map_err(|_| too_long())?;
        self.0.resize(words.max(self.0.len()), 0);
        Ok(())
    }
}

/// The size of the header of a list: the report of the kernel, whose bits are initially all ones,
/// and zeros up to the first block.
const HEADER_BYTES: usize = ALIGNMENT;

/// The offsets of the records of a list, the blocks and the copies, in its memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RecordLayout {
    pub blocks: usize,
    pub copies: usize,
    /// The total size in bytes.
    pub end: usize,
}

/// A block that a launch refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The number of the block in the list, or of the row in a gather.
    pub block: usize,
    /// The number, after `R-5.`, of the rule that the block breaks. Unspecified if the kernel
    /// cannot determine it; [`StoredBlock::decode`](tensilo::stages::StoredBlock::decode) names the
    /// rule.
    pub rule: u32,
}

impl Refusal {
    /// Parses the report of a launch: the block in the upper half, the rule in the lower.
    pub(crate) fn from_report(report: u64) -> Option<Self> {
        let block = usize::try_from(report >> 32).unwrap_or(usize::MAX);
        (report != u64::MAX).then_some(Self { block, rule: report as u32 }) // the lower half
    }
}

/// The blocks of a batch, in memory that is reused.
pub struct BlockList {
    /// The report, followed by stored bytes and tables, and by the records once the list is
    /// launched.
    memory: Box<dyn ReadMemory>,
    /// The number of bytes of `memory` in use, without records.
    used: usize,
    blocks: Vec<Block>,
    /// The number of blocks whose elements have destinations.
    assigned: usize,
    /// Elements of the blocks that do not have destinations yet.
    pending: Vec<PendingElements>,
    copies: Vec<Copy>,
    /// The part of the last block.
    part: Option<Part>,
    /// The end of the last range of the batch that a copy writes to.
    end: usize,
    segments: Vec<Segment>,
    /// The memory of segments of earlier batches, for reuse.
    unused: Vec<Box<dyn ReadMemory>>,
}

/// Fetched bytes in memory that a device can copy from. Their blocks are not copied to the list.
struct Segment {
    /// The addresses of the bytes on the host.
    range: Range<usize>,
    /// The value of [`FetchedBytes::fetches`] when the segment was added.
    fetches: u64,
    /// The smallest range of offsets that contains all blocks that the list uses. The start is a
    /// multiple of [`ALIGNMENT`].
    used: Range<usize>,
    /// The memory of the bytes, once [`BlockList::adopt`] has taken it.
    memory: Option<Box<dyn ReadMemory>>,
}

impl fmt::Debug for BlockList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} blocks in {} bytes", self.blocks.len(), self.byte_count())
    }
}

/// The number of low bits of [`Block::stored`] that hold an offset. The bits above hold the number
/// of the segment, counted from 1, or 0 for the memory of the list.
const OFFSET_BITS: u32 = 40;
const OFFSET_MASK: u64 = (1 << OFFSET_BITS) - 1;

/// Elements of a block that do not have a destination yet.
#[derive(Clone, Copy, Debug)]
struct PendingElements {
    block: usize,
    part: usize,
    first: usize,
    count: usize,
    position: usize,
    offset: usize,
}

/// What all blocks of a part have in common.
#[derive(Debug)]
struct Part {
    encoding: u16,
    element_bytes: usize,
    tables: Vec<u8>,
    /// The offset of the tables in the list, where they have the layout for devices.
    at: usize,
    device_bytes: usize,
}

impl Default for BlockList {
    fn default() -> Self {
        Self::new()
    }
}

impl BlockList {
    /// Returns an empty list in heap memory.
    pub fn new() -> Self {
        Self::in_memory(Box::new(Heap::default()))
    }

    /// Returns an empty list in the given memory.
    pub(crate) fn in_memory(memory: Box<dyn ReadMemory>) -> Self {
        Self {
            memory,
            used: HEADER_BYTES,
            blocks: Vec::new(),
            assigned: 0,
            pending: Vec::new(),
            copies: Vec::new(),
            part: None,
            end: 0,
            segments: Vec::new(),
            unused: Vec::new(),
        }
    }

    /// Removes all blocks, but keeps the memory for reuse.
    pub fn clear(&mut self) {
        self.unused.extend(self.segments.drain(..).filter_map(|segment| segment.memory));
        self.used = HEADER_BYTES;
        self.blocks.clear();
        self.assigned = 0;
        self.pending.clear();
        self.copies.clear();
        self.part = None;
        self.end = 0;
    }

    /// Returns the number of blocks.
    pub fn block_count(&self) -> usize {
        self.blocks.len()
    }

    /// Returns the number of bytes that a launch sends to the device: stored bytes, tables and
    /// records.
    pub fn byte_count(&self) -> usize {
        self.segment_offsets().last().map_or(0, |end| *end)
    }

    /// Adds fetched bytes as a segment if they are in memory that the caller provided
    /// ([`FetchedBytes::set_memory`]). Blocks in a segment are sent from there instead of being
    /// copied to the list. Call [`BlockList::adopt`] before the launch.
    pub fn add_segment(&mut self, bytes: &FetchedBytes) {
        let start = bytes.memory().map_or(1, |memory| memory.as_ptr().addr());
        if let Some(memory) = bytes.memory().filter(|_| start.is_multiple_of(ALIGNMENT)) {
            let range = start..start.saturating_add(memory.len());
            self.segments.push(Segment { range, fetches: bytes.fetches(), used: 0..0, memory: None });
        }
    }

    /// Takes the memory of a segment if it contains blocks of the list, and keeps it until the list
    /// is cleared.
    pub fn adopt(&mut self, bytes: &mut FetchedBytes) {
        let Some(start) = bytes.memory().map(|memory| memory.as_ptr().addr()) else { return };
        let matches = |segment: &&mut Segment| segment.range.start == start && segment.fetches == bytes.fetches();
        let segment = self.segments.iter_mut().find(matches);
        if let Some(segment) = segment.filter(|segment| segment.memory.is_none() && !segment.used.is_empty()) {
            segment.memory = bytes.set_memory(None);
        }
    }

    /// Returns adopted memory that the list no longer needs.
    pub fn take_unused(&mut self) -> Option<Box<dyn ReadMemory>> {
        self.unused.pop()
    }

    /// Returns the offsets of the segments on the device, relative to the start of the list,
    /// followed by the end of the last segment.
    fn segment_offsets(&self) -> Vec<usize> {
        let mut end = self.layout().end.next_multiple_of(ALIGNMENT);
        let mut offsets = vec![end];
        for segment in &self.segments {
            end = (end + segment.used.len()).next_multiple_of(ALIGNMENT); // in memory
            offsets.push(end);
        }
        offsets
    }

    /// Returns the used bytes of each segment, and their offset on the device, relative to the
    /// start of the list.
    pub(crate) fn segments(&self) -> Result<Vec<(usize, &[u8])>> {
        let mut ranges = Vec::new();
        for (segment, offset) in self.segments.iter().zip(self.segment_offsets()) {
            let bytes = match segment.used.is_empty() {
                true => Some(&[][..]),
                false => segment.memory.as_ref().and_then(|memory| memory.bytes().get(segment.used.clone())),
            };
            ranges.push((offset, bytes.ok_or_else(not_adopted)?));
        }
        Ok(ranges)
    }

    /// Returns the segment that contains these bytes, and their offset in it. Returns `None` if no
    /// segment contains them at a multiple of [`ALIGNMENT`].
    fn find_in_segments(&self, bytes: &[u8]) -> Option<(usize, usize)> {
        let start = bytes.as_ptr().addr();
        let end = start.checked_add(bytes.len())?;
        let contains = |segment: &Segment| segment.range.contains(&start) && end <= segment.range.end;
        let number = self.segments.iter().position(contains)?;
        let offset = start.checked_sub(self.segments.get(number)?.range.start)?;
        (offset.is_multiple_of(ALIGNMENT) && !bytes.is_empty()).then_some((number, offset))
    }

    /// Extends the used range of a segment to include a block. Returns its [`Block::stored`].
    fn extend_segment(&mut self, number: usize, offset: usize, byte_count: usize) -> u64 {
        if let Some(Segment { used, .. }) = self.segments.get_mut(number) {
            let end = offset + byte_count; // in memory
            *used = match used.start == used.end {
                true => offset..end,
                false => used.start.min(offset)..used.end.max(end),
            };
        }
        stored_in_segment(number, offset)
    }

    /// Returns the minimum size of the batch's memory, in bytes.
    pub fn batch_bytes(&self) -> usize {
        self.end
    }

    /// Adds elements of a block. `part` is the index of their samples in the `parts` that are later
    /// passed to [`BlockList::place`]. Copies the stored bytes of the block to the list, unless it
    /// is the block that was added last.
    ///
    /// Fails if the tables of the block break a rule of the specification, or if the list becomes
    /// too long for a launch (4 GiB of stored bytes).
    pub fn push(&mut self, part: usize, samples: &BlockSamples<'_>) -> Result<()> {
        if !self.is_last(samples) {
            self.push_block(samples)?;
        }
        let BlockSamples { elements, position, offset, .. } = samples;
        let (first, count) = (elements.start, elements.len());
        let block = self.blocks.len().saturating_sub(1); // at least one exists
        self.pending.push(PendingElements { block, part, first, count, position: *position, offset: *offset });
        Ok(())
    }

    /// Adds a block separately, even if it equals the previous block. Its elements have no
    /// destination. Returns the number of the block.
    pub(crate) fn push_distinct(&mut self, samples: &BlockSamples<'_>) -> Result<usize> {
        self.push_block(samples)?;
        Ok(self.blocks.len().saturating_sub(1)) // at least one exists
    }

    /// Sets the destination of all elements that were added since the last call. They belong to one
    /// column, whose samples are in `parts`.
    ///
    /// Fails if the conversion or a block does not match the type of the destination, or if a
    /// sample is longer than a row.
    pub fn place(&mut self, destination: &Destination, parts: &[SampleRows<'_>]) -> Result<()> {
        destination.check()?;
        let zero_bits = zero_bits(destination.dtype);
        let width = destination.dtype.coded_bytes();
        let unassigned = self.blocks.get(self.assigned..).unwrap_or(&[]);
        if let Some(block) = unassigned.iter().find(|block| usize::from(block.element_bytes) != width) {
            let (name, found) = (destination.dtype.name(), block.element_bytes);
            return Err(Error::bad_argument(format!(
                "a block has elements of {found} bytes, but the destination has type {name}"
            )));
        }
        for block in self.blocks.iter_mut().skip(self.assigned) {
            block.conversion = destination.conversion.code();
            block.zero_bits = zero_bits;
        }
        let mut pending = std::mem::take(&mut self.pending);
        let assigned = pending.iter().try_for_each(|pending| {
            let part = parts.get(pending.part).ok_or_else(sample_mismatch)?;
            self.push_copies(destination, part, pending)
        });
        pending.clear();
        (self.pending, self.assigned) = (pending, self.blocks.len());
        assigned
    }

    /// Adds bytes that are already decoded. They go to the batch, starting at byte `offset`.
    pub fn push_bytes(&mut self, offset: usize, bytes: &[u8]) -> Result<()> {
        self.check_assigned()?;
        if bytes.is_empty() {
            return Ok(());
        }
        let stored = self.append(bytes)?;
        let elements = to_u32(bytes.len())?;
        self.push_whole(offset, bytes.len(), Block { stored_bytes: elements, elements, ..Block::raw(stored) })
    }

    /// Fills `count` elements of the batch, starting at byte `offset`, with an element of 1, 2, 4
    /// or 8 bytes.
    pub fn fill(&mut self, offset: usize, element: &[u8], count: usize) -> Result<()> {
        if !matches!(element.len(), 1 | 2 | 4 | 8) {
            return Err(Error::bad_argument(format!(
                "cannot fill with an element of {} bytes: expected 1, 2, 4 or 8",
                element.len()
            )));
        }
        self.check_assigned()?;
        if count == 0 {
            return Ok(());
        }
        let bytes = count.checked_mul(element.len()).ok_or_else(too_long)?;
        let stored = self.append(element)?;
        let width = element.len() as u8; // at most 8
        let block = Block { encoding: 1, element_bytes: width, stored_bytes: width.into(), ..Block::raw(stored) };
        self.push_whole(offset, bytes, Block { elements: to_u32(count)?, ..block })
    }

    /// Fails if any block has no destination.
    fn check_assigned(&self) -> Result<()> {
        match self.assigned == self.blocks.len() {
            true => Ok(()),
            false => Err(Error::bad_argument("some blocks do not have a destination yet; call BlockList::place first")),
        }
    }

    /// Adds a block that goes to one range of the batch.
    fn push_whole(&mut self, offset: usize, bytes: usize, block: Block) -> Result<()> {
        let end = offset.checked_add(bytes).ok_or_else(too_long)?;
        let first_copy = to_u32(self.copies.len())?;
        self.copies.push(Copy { to: offset as u64, first: 0, count: block.elements });
        self.blocks.push(Block { first_copy, copy_count: 1, ..block });
        (self.assigned, self.part, self.end) = (self.blocks.len(), None, self.end.max(end));
        Ok(())
    }

    /// Adds the copies of elements: one for each row that they belong to, or a single copy if
    /// samples are contiguous.
    fn push_copies(
        &mut self,
        destination: &Destination,
        part: &SampleRows<'_>,
        pending: &PendingElements,
    ) -> Result<()> {
        let stored = destination.dtype.coded_bytes();
        let delivered = destination.conversion.element_bytes(stored);
        let samples = part.shapes;
        let start_of =
            |position: usize| samples.value_start(position).map(|byte| byte / stored).ok_or_else(sample_mismatch);
        // elements are counted from the start of the values of all samples
        let (mut first, mut position) = (pending.first, pending.position);
        let mut at = start_of(position)?.checked_add(pending.offset / stored).ok_or_else(sample_mismatch)?;
        let end = at.checked_add(pending.count).ok_or_else(sample_mismatch)?;
        if end > start_of(samples.sample_count())? {
            return Err(sample_mismatch());
        }
        while at < end {
            let (to, count) = match destination.row_bytes {
                None => (at.checked_mul(delivered), end - at),
                Some(row_bytes) => {
                    while start_of(position + 1)? <= at {
                        position += 1; // terminates: some sample ends at or after `end`
                    }
                    let (start, next) = (start_of(position)?, start_of(position + 1)?);
                    if (next - start).saturating_mul(delivered) > row_bytes {
                        return Err(Error::bad_argument("a sample is longer than a row of its destination"));
                    }
                    let row = part.rows.map_or(Some(position), |rows| rows.get(position).copied());
                    let row = row.ok_or_else(sample_mismatch)?.checked_mul(row_bytes);
                    let to = row.and_then(|row| (at - start).checked_mul(delivered)?.checked_add(row));
                    (to, next.min(end) - at)
                }
            };
            let to = to.and_then(|to| to.checked_add(destination.offset)).ok_or_else(too_long)?;
            let copy_end = count.checked_mul(delivered).and_then(|bytes| bytes.checked_add(to)).ok_or_else(too_long)?;
            let copy = Copy { to: to as u64, first: to_u32(first)?, count: to_u32(count)? };
            self.push_copy(pending.block, copy, delivered)?;
            self.end = self.end.max(copy_end);
            (at, first) = (at + count, first + count);
        }
        Ok(())
    }

    /// Adds a copy to a block, or extends the previous copy if the two are adjacent.
    fn push_copy(&mut self, block: usize, copy: Copy, delivered: usize) -> Result<()> {
        let copies = to_u32(self.copies.len())?;
        let block = self.blocks.get_mut(block).ok_or_else(sample_mismatch)?;
        if block.copy_count == 0 {
            block.first_copy = copies;
        } else if let Some(last) = self.copies.last_mut() {
            let bytes = u64::from(last.count) * delivered as u64;
            if last.first + last.count == copy.first && last.to + bytes == copy.to {
                last.count += copy.count; // at most the number of elements in the block
                return Ok(());
            }
        }
        block.copy_count += 1; // calls come in the order of blocks
        self.copies.push(copy);
        Ok(())
    }

    /// Returns whether the last block is the block of these samples.
    fn is_last(&self, samples: &BlockSamples<'_>) -> bool {
        let block = &samples.block;
        let (Some(last), Some(part)) = (self.blocks.get(self.assigned..).and_then(<[_]>::last), &self.part) else {
            return false;
        };
        let is_as_long = last.elements as usize == block.element_count();
        if last.stored >> OFFSET_BITS > 0 {
            return part.matches(samples)
                && is_as_long
                && last.stored_bytes as usize == block.bytes().len()
                && self.find_in_segments(block.bytes()).map(|(number, offset)| stored_in_segment(number, offset))
                    == Some(last.stored);
        }
        let start = last.stored as usize; // in memory
        part.matches(samples)
            && is_as_long
            && self.bytes().get(start..start + last.stored_bytes as usize) == Some(block.bytes())
    }

    fn push_block(&mut self, samples: &BlockSamples<'_>) -> Result<()> {
        let block = &samples.block;
        if !self.part.as_ref().is_some_and(|part| part.matches(samples)) {
            let mut tables = self.part.take().map_or_else(Vec::new, |part| part.tables);
            tables.clear();
            block.device_tables(&mut tables)?;
            let (at, device_bytes) = (self.append(&tables)?, tables.len());
            tables.clear();
            tables.extend_from_slice(block.tables());
            let (encoding, element_bytes) = (block.encoding(), block.element_bytes());
            self.part = Some(Part { encoding, element_bytes, tables, at, device_bytes });
        }
        let part = self.part.as_ref().ok_or_else(too_long)?;
        let (tables, table_bytes) = (part.at as u64, to_u32(part.device_bytes)?);
        let stored = match self.find_in_segments(block.bytes()) {
            Some((number, offset)) => self.extend_segment(number, offset, block.bytes().len()),
            None => self.append(block.bytes())? as u64,
        };
        self.blocks.push(Block {
            stored,
            tables,
            stored_bytes: to_u32(block.bytes().len())?,
            table_bytes,
            elements: to_u32(block.element_count())?,
            encoding: u8::try_from(block.encoding()).unwrap_or(u8::MAX), // unknown to kernels
            element_bytes: block.element_bytes() as u8,                  // at most 8
            ..Block::default()
        });
        Ok(())
    }

    /// Appends bytes at the next multiple of [`ALIGNMENT`]. Returns their offset.
    fn append(&mut self, bytes: &[u8]) -> Result<usize> {
        let start = self.used.next_multiple_of(ALIGNMENT);
        let end = start.checked_add(bytes.len()).ok_or_else(too_long)?;
        to_u32(end)?;
        self.memory.reserve(self.used, end)?;
        let to = self.memory.bytes_mut().get_mut(start..end).ok_or_else(too_long)?;
        to.copy_from_slice(bytes); // equal lengths
        self.used = end;
        Ok(start)
    }

    fn bytes(&self) -> &[u8] {
        self.memory.bytes().get(..self.used).unwrap_or(&[])
    }

    fn layout(&self) -> RecordLayout {
        let blocks = self.used.next_multiple_of(ALIGNMENT);
        let copies = (blocks + size_of_val(self.blocks.as_slice())).next_multiple_of(ALIGNMENT);
        RecordLayout { blocks, copies, end: copies + size_of_val(self.copies.as_slice()) }
    }

    /// Reserves memory for the records. Returns the memory of the list, which does not move
    /// afterwards.
    pub(crate) fn reserve_records(&mut self) -> Result<&mut [u8]> {
        let RecordLayout { end, .. } = self.layout();
        to_u32(end)?;
        self.memory.reserve(self.used, end)?;
        Ok(self.memory.bytes_mut())
    }

    /// Writes the initial report and the records for a launch. `list`, `segments` and `batch` are
    /// the addresses of the list, of the used bytes of the segments, and of the batch.
    pub(crate) fn write_records(&mut self, list: u64, segments: &[u64], batch: u64) -> Result<RecordLayout> {
        self.reserve_records()?;
        let layout = self.layout();
        let memory = self.memory.bytes_mut();
        let header = memory.get_mut(..HEADER_BYTES).ok_or_else(too_long)?;
        header.copy_from_slice(&[[0xFF; 8], [0; 8]].concat()); // equal lengths, here and below
        let blocks = memory.get_mut(layout.blocks..).ok_or_else(too_long)?.chunks_exact_mut(size_of::<Block>());
        for (to, block) in blocks.zip(&self.blocks) {
            let offset = block.stored & OFFSET_MASK;
            let stored = match (block.stored >> OFFSET_BITS).checked_sub(1) {
                None => list + offset,
                Some(number) => {
                    let start = segments.get(number as usize).ok_or_else(not_adopted)?;
                    let used = self.segments.get(number as usize).map_or(0, |segment| segment.used.start as u64);
                    start + (offset - used)
                }
            };
            let tables = block.tables + list; // addresses
            to.copy_from_slice(bytemuck::bytes_of(&Block { stored, tables, ..*block }));
        }
        let copies = memory.get_mut(layout.copies..).ok_or_else(too_long)?.chunks_exact_mut(size_of::<Copy>());
        for (to, copy) in copies.zip(&self.copies) {
            to.copy_from_slice(bytemuck::bytes_of(&Copy { to: copy.to + batch, ..*copy }));
        }
        Ok(layout)
    }

    /// Returns the blocks, the memory of the list, and the length of the stored bytes and tables at
    /// its start.
    pub(crate) fn stored(&mut self) -> (&[Block], &mut [u8], usize) {
        (&self.blocks, self.memory.bytes_mut(), self.used)
    }

    /// Returns the report of a launch, once it has been copied back to the list.
    pub(crate) fn report(&self) -> Option<Refusal> {
        let report = self.memory.bytes().first_chunk().map_or(u64::MAX, |bytes| u64::from_le_bytes(*bytes));
        Refusal::from_report(report)
    }

    /// Returns the number of bytes that a warp needs to decode any of the blocks.
    pub(crate) fn stage_bytes(&self) -> u32 {
        let coded = self.blocks.iter().filter(|block| block.encoding > 1);
        let bytes = coded.map(|block| stage_bytes(block.elements as usize, block.element_bytes.into())).max();
        // kernels refuse a block of tiers or bins with more than 2^16 elements
        let bytes = bytes.unwrap_or(0).next_multiple_of(ALIGNMENT);
        u32::try_from(bytes).unwrap_or(u32::MAX).min(MAX_STAGE_BYTES)
    }

    /// Fails if the memory of a batch is too short.
    pub(crate) fn check_batch(&self, bytes: usize) -> Result<()> {
        match bytes >= self.end {
            true => Ok(()),
            false => Err(Error::bad_argument(format!(
                "the memory of the batch has {bytes} bytes, but the list needs {}",
                self.end
            ))),
        }
    }
}

/// The number of bytes that a warp needs to decode the longest possible block.
const MAX_STAGE_BYTES: u32 = 8 * 65_536 + 8 * 2_048;

/// Returns the number of bytes that a warp needs to decode a block: its elements, and two bitmaps
/// with a bit for each element. Must match `kernels/decode.h`.
fn stage_bytes(elements: usize, element_bytes: usize) -> usize {
    (elements * element_bytes).next_multiple_of(ALIGNMENT) + 8 * elements.div_ceil(32)
}

impl Part {
    fn matches(&self, samples: &BlockSamples<'_>) -> bool {
        let block = &samples.block;
        (self.encoding, self.element_bytes) == (block.encoding(), block.element_bytes())
            && self.tables == block.tables()
    }
}

impl Destination {
    /// Returns the code of the conversion, the bits that are zero in all elements, and the size of
    /// a delivered element in bytes.
    pub(crate) fn kernel_fields(&self) -> Result<(u8, u8, usize)> {
        self.check()?;
        let delivered = self.conversion.element_bytes(self.dtype.coded_bytes());
        Ok((self.conversion.code(), zero_bits(self.dtype), delivered))
    }
}

/// For types with elements of one byte, returns the bits that are zero in every element.
fn zero_bits(dtype: DType) -> u8 {
    match dtype.element_bytes() {
        1 => u8::MAX.checked_shl(dtype.value_bits()).unwrap_or(0),
        _ => 0,
    }
}

fn to_u32(count: usize) -> Result<u32> {
    u32::try_from(count).map_err(|_| too_long())
}

fn stored_in_segment(number: usize, offset: usize) -> u64 {
    ((number as u64) + 1) << OFFSET_BITS | offset as u64
}

#[cold]
fn not_adopted() -> Error {
    Error::bad_argument("some blocks are in a segment that the list does not own; call BlockList::adopt first")
}

#[cold]
fn sample_mismatch() -> Error {
    Error::bad_argument("the samples passed to BlockList::place do not match the added blocks")
}

#[cold]
fn too_long() -> Error {
    Error::bad_argument("a batch has over 4 GiB of stored bytes, or a block over 2^32 elements; request fewer samples")
}
