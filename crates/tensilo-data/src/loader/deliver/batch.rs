//! Batches, as their consumers see them.
//!
//! A batch owns its memory, column by column, and gives it back to the loader when it is dropped.
//! The values of a column can be in different places, depending on how they were read ([`Values`]):
//! in the buffer that they were decoded to, in memory of the loader or of the caller, or on a GPU.
//! In all cases, consumers see one tensor, or a ragged or nested buffer.

use super::memory::{AlignedBuffer, BatchMemory, Pool};
use crate::error::{DataError, Result};
use crate::loader::transform::padding::{PadPlan, Padding};
use crate::order::Receipt;
use std::fmt;
use std::sync::Arc;
use tensilo::nested::ListBuffer;
use tensilo::{ColumnBatch, ColumnBuffer, ColumnSchema, Element, Extent};

/// The samples of one step of one rank, column by column.
///
/// When the batch is dropped, the loader reuses its memory.
pub struct Batch {
    pub(in crate::loader) epoch: u64,
    pub(in crate::loader) position: u64,
    pub(in crate::loader) samples: Vec<u64>,
    pub(in crate::loader) substituted: Vec<usize>,
    pub(in crate::loader) receipt: Receipt,
    pub(in crate::loader) columns: Vec<BatchColumn>,
    pub(in crate::loader) pool: Option<Arc<Pool<Vec<BatchColumn>>>>,
    /// The blocks that a GPU decodes.
    #[cfg(feature = "cuda")]
    pub(in crate::loader) blocks: Option<crate::loader::device::blocks::BatchBlocks>,
}

/// The samples of one column of a batch.
#[derive(Default)]
pub struct BatchColumn {
    pub(in crate::loader) schema: Option<Arc<ColumnSchema>>,
    pub(in crate::loader) sample_count: usize,
    pub(in crate::loader) values: Values,
    /// The extents of the values as a tensor, if the shape is fixed or the samples are padded.
    pub(in crate::loader) tensor: Option<Vec<u64>>,
    /// The samples of a ragged or nested column, before padding.
    pub(in crate::loader) buffer: ColumnBuffer,
    /// The validity bitmap of the samples, if the shape is fixed.
    pub(in crate::loader) validity: Vec<u8>,
    pub(in crate::loader) null_count: usize,
}

/// Where the values of a column are.
#[derive(Default)]
pub(in crate::loader) enum Values {
    /// In [`BatchColumn::buffer`].
    #[default]
    Buffer,
    Owned(AlignedBuffer),
    External(Box<dyn BatchMemory>),
    /// On a GPU, in this range of the batch's memory.
    #[cfg(feature = "cuda")]
    Device(std::ops::Range<usize>),
}

impl fmt::Debug for Batch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { epoch, position, samples, columns, .. } = self;
        write!(f, "{} samples of {} columns, epoch {epoch}, position {position}", samples.len(), columns.len())
    }
}

impl fmt::Debug for BatchColumn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} samples of {}", self.sample_count, self.name())
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        if let Some(pool) = self.pool.take() {
            // the caller's memory goes back to the caller
            let lent = self.columns.iter_mut().filter(|column| matches!(column.values, Values::External(_)));
            lent.for_each(|column| column.values = Values::Buffer);
            pool.put(std::mem::take(&mut self.columns));
        }
    }
}

impl Batch {
    /// Creates a batch from the indices of the caller's samples, and from the columns with their
    /// values. The epoch and the position of the batch are 0.
    ///
    /// Fails if a column has a different number of samples, or if its values do not fit its schema.
    ///
    /// Cost: copies the values.
    pub fn from_columns<'c>(
        samples: Vec<u64>,
        columns: impl IntoIterator<Item = (Arc<ColumnSchema>, ColumnBatch<'c>)>,
    ) -> Result<Self> {
        let mut found = Vec::new();
        for (schema, batch) in columns {
            if batch.sample_count() != samples.len() {
                let (name, count, expected) = (&schema.name, batch.sample_count(), samples.len());
                return Err(DataError::BadArgument(format!(
                    "column {name:?} has {count} samples, but the batch has {expected}"
                )));
            }
            found.push(BatchColumn::of_samples(schema, &batch)?);
        }
        let mut receipt = Receipt::default();
        samples.iter().for_each(|&sample| receipt.add(sample, 0));
        Ok(Self {
            epoch: 0,
            position: 0,
            samples,
            substituted: Vec::new(),
            receipt,
            columns: found,
            pool: None,
            #[cfg(feature = "cuda")]
            blocks: None,
        })
    }

    /// Sets the epoch and the position of the batch, and which of its samples replace damaged ones,
    /// as indices within the batch. The arguments are not checked.
    ///
    /// Cost: computes the receipt of the samples.
    pub fn at(mut self, epoch: u64, position: u64, substituted: Vec<usize>) -> Self {
        let mut receipt = Receipt::default();
        self.samples.iter().for_each(|&sample| receipt.add(sample, epoch));
        (self.epoch, self.position, self.substituted, self.receipt) = (epoch, position, substituted, receipt);
        self
    }

    /// Returns the epoch, counted from 0.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Returns the position at which the step starts, that is, the position of the first sample of
    /// rank 0.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Returns the index of each sample in the view, in the order of the batch.
    pub fn indices(&self) -> &[u64] {
        &self.samples
    }

    /// Returns which samples of the batch replace damaged ones, as indices within the batch.
    pub fn substituted(&self) -> &[usize] {
        &self.substituted
    }

    /// Returns the receipt of the samples.
    pub fn receipt(&self) -> Receipt {
        self.receipt
    }

    /// Returns the columns, in the requested order.
    pub fn columns(&self) -> &[BatchColumn] {
        &self.columns
    }

    /// Returns the columns mutably, so that the caller can take their memory.
    pub fn columns_mut(&mut self) -> &mut [BatchColumn] {
        &mut self.columns
    }

    /// Returns a column. Fails if the loader does not deliver it.
    pub fn column(&self, name: &str) -> Result<&BatchColumn> {
        let found = self.columns.iter().find(|column| column.name() == name);
        found.ok_or_else(|| self.no_column(name))
    }

    /// Returns a column mutably, so that the caller can change its values. Fails if the loader does
    /// not deliver it.
    pub fn column_mut(&mut self, name: &str) -> Result<&mut BatchColumn> {
        match self.columns.iter().position(|column| column.name() == name) {
            Some(at) => self
                .columns
                .get_mut(at)
                .ok_or_else(|| DataError::Internal("a column of the batch has disappeared".to_owned())),
            None => Err(self.no_column(name)),
        }
    }

    #[cold]
    fn no_column(&self, name: &str) -> DataError {
        tensilo::Error::unknown_column(name, self.columns.iter().map(BatchColumn::name)).into()
    }

    /// Returns how many bytes of GPU memory the batch needs. Returns `None` without
    /// [`LoaderOptions::decode_on`](crate::LoaderOptions::decode_on), because all values are then
    /// in host memory.
    #[cfg(feature = "cuda")]
    pub fn device_bytes(&self) -> Option<usize> {
        self.blocks.as_ref().map(|blocks| blocks.bytes)
    }
}

impl BatchColumn {
    fn of_samples(schema: Arc<ColumnSchema>, batch: &ColumnBatch<'_>) -> Result<Self> {
        let mut buffer = ColumnBuffer::new();
        buffer.fill(&schema, batch)?;
        let sample_count = buffer.sample_count();
        let mut column = Self { schema: Some(schema), sample_count, buffer, ..Self::default() };
        if column.is_fixed() {
            let extents = column.buffer.shape().extents().iter().map(|extent| match extent {
                Extent::Fixed(extent) => u64::from(*extent),
                Extent::Varying => 0, // unreachable: the shape is fixed
            });
            column.tensor = Some(std::iter::once(sample_count as u64).chain(extents).collect()); // exact
            let nulls: Vec<usize> = (0..sample_count).filter(|&i| column.buffer.is_null(i)).collect();
            column.set_nulls(&nulls);
        }
        Ok(column)
    }

    fn name(&self) -> &str {
        self.schema.as_ref().map_or("", |schema| &schema.name)
    }

    /// Returns the schema of the delivered column. If the column is cast, this schema has the new
    /// type. Returns `None` only for a column that was never in a batch.
    pub fn schema(&self) -> Option<&ColumnSchema> {
        self.schema.as_deref()
    }

    /// Returns the same schema as [`BatchColumn::schema`], shared by all batches of a loader.
    pub fn shared_schema(&self) -> Option<&Arc<ColumnSchema>> {
        self.schema.as_ref()
    }

    /// Returns the number of samples.
    pub fn sample_count(&self) -> usize {
        self.sample_count
    }

    /// Returns the extents of the values as a tensor; the first is the number of samples. Returns
    /// `None` for ragged or nested samples that are not padded.
    pub fn tensor_extents(&self) -> Option<&[u64]> {
        self.tensor.as_deref()
    }

    /// Returns the elements as bytes in memory order. If the column has a fixed shape or is padded,
    /// the loader's own memory is aligned to 4096 bytes. Returns no bytes if the values are on a
    /// GPU.
    pub fn bytes(&self) -> &[u8] {
        match &self.values {
            Values::Buffer => self.buffer.bytes(),
            Values::Owned(memory) => memory.bytes(),
            Values::External(memory) => memory.bytes(),
            #[cfg(feature = "cuda")]
            Values::Device(_) => &[],
        }
    }

    /// Returns the range of the values in the GPU memory of the batch, or `None` if they are in
    /// host memory.
    #[cfg(feature = "cuda")]
    pub fn device_range(&self) -> Option<std::ops::Range<usize>> {
        match &self.values {
            Values::Device(range) => Some(range.clone()),
            _ => None,
        }
    }

    /// Returns the size of the values in bytes, on the host or on a GPU.
    pub(in crate::loader) fn byte_count(&self) -> usize {
        match &self.values {
            #[cfg(feature = "cuda")]
            Values::Device(range) => range.len(),
            _ => self.bytes().len(),
        }
    }

    /// Prepares the column for `count` samples.
    pub(in crate::loader) fn begin(&mut self, delivered: &Arc<ColumnSchema>, count: usize) {
        self.schema = Some(delivered.clone());
        self.sample_count = count;
    }

    /// Returns the elements as mutable bytes in memory order, for example to normalize them in
    /// place.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        match &mut self.values {
            Values::Buffer => self.buffer.bytes_mut(),
            Values::Owned(memory) => memory.bytes_mut(),
            Values::External(memory) => memory.bytes_mut(),
            #[cfg(feature = "cuda")]
            Values::Device(_) => &mut [],
        }
    }

    /// Returns the extents of a ragged or nested column after it is padded to one tensor; the first
    /// is the number of samples.
    ///
    /// Fails if the samples have a fixed shape or are already padded, or if the column's type
    /// cannot represent the padding value.
    pub fn padded_extents(&self, padding: Padding) -> Result<Vec<u64>> {
        Ok(self.pad_plan(padding)?.extents(&self.buffer))
    }

    /// Copies the samples of a ragged or nested column to a tensor with the extents that
    /// [`BatchColumn::padded_extents`] returns, and fills the rest of the tensor. `values` are the
    /// bytes of the column, or replacements of the same length.
    ///
    /// Fails if [`BatchColumn::padded_extents`] fails, or if `out` does not have the length of the
    /// tensor.
    pub fn pad_into(&self, padding: Padding, values: &[u8], out: &mut [u8]) -> Result<()> {
        let plan = self.pad_plan(padding)?;
        let extents = plan.extents(&self.buffer);
        let byte_count = plan.byte_count(&extents)?;
        if out.len() != byte_count {
            let (name, found) = (self.name(), out.len());
            let message = format!("column {name:?}: the output has {found} bytes, but the tensor has {byte_count}");
            return Err(DataError::BadArgument(message));
        }
        plan.run(&self.buffer, values, &extents, out)
    }

    /// Like [`BatchColumn::pad_into`], but copies to new aligned memory. Returns the extents and
    /// the memory.
    pub fn padded(&self, padding: Padding, values: &[u8]) -> Result<(Vec<u64>, Box<dyn BatchMemory>)> {
        let plan = self.pad_plan(padding)?;
        let extents = plan.extents(&self.buffer);
        let mut tensor = AlignedBuffer::default();
        tensor.resize(plan.byte_count(&extents)?)?;
        plan.run(&self.buffer, values, &extents, tensor.bytes_mut())?;
        Ok((extents, Box::new(tensor)))
    }

    fn pad_plan(&self, padding: Padding) -> Result<PadPlan> {
        let schema = self.schema.as_deref().filter(|_| self.tensor.is_none()).ok_or_else(|| {
            let message =
                format!("column {:?}: the samples are already one tensor, so there is nothing to pad", self.name());
            DataError::BadArgument(message)
        })?;
        PadPlan::new(padding, schema)
    }

    /// Returns the elements. Fails if `T` is not the delivered type (bools, bytes and text are
    /// `u8`), or if the caller's memory is not aligned.
    pub fn values<T: Element>(&self) -> Result<&[T]> {
        T::slice_of(self.bytes()).filter(|_| self.has_elements::<T>()).ok_or_else(|| self.other_type::<T>())
    }

    /// Returns the elements mutably. Fails if [`BatchColumn::values`] fails.
    pub fn values_mut<T: Element>(&mut self) -> Result<&mut [T]> {
        if !self.has_elements::<T>() || T::slice_of(self.bytes()).is_none() {
            return Err(self.other_type::<T>());
        }
        Ok(T::slice_of_mut(self.bytes_mut()).unwrap_or_default()) // checked above
    }

    fn has_elements<T: Element>(&self) -> bool {
        let dtype = self.schema.as_ref().map(|schema| schema.dtype);
        let is_bytes = T::DTYPE == tensilo::DType::U8 && dtype.is_some_and(tensilo::DType::is_byte);
        dtype == Some(T::DTYPE) || is_bytes
    }

    #[cold]
    fn other_type<T: Element>(&self) -> DataError {
        let found = self.schema.as_ref().map_or("not in a batch", |schema| schema.dtype.name());
        let requested = T::DTYPE.name();
        let message = format!(
            "column {:?} is {found}, but was requested as {requested}; LoaderOptions::cast delivers another type",
            self.name()
        );
        tensilo::Error::wrong_type(message).into()
    }

    /// Returns the offsets of a ragged column; see [`ColumnBuffer::offsets`]. For a padded column,
    /// these are the offsets before padding.
    pub fn offsets(&self) -> &[u64] {
        self.buffer.offsets()
    }

    /// Returns the varying extents of the items of a ragged column; see
    /// [`ColumnBuffer::varying_extents`].
    pub fn varying_extents(&self) -> &[u32] {
        self.buffer.varying_extents()
    }

    /// Returns the lists of a nested column; see [`ColumnBuffer::lists`].
    pub fn lists(&self) -> &[ListBuffer] {
        self.buffer.lists()
    }

    /// Returns the validity bitmap of the samples, or of the items of a nested column, in Arrow's
    /// format. Returns `None` if none of them is null.
    pub fn validity(&self) -> Option<&[u8]> {
        match self.is_fixed() {
            true => (self.null_count > 0).then_some(self.validity.as_slice()),
            false => self.buffer.validity(),
        }
    }

    /// Returns the number of null samples, or of null items if the column is nested.
    pub fn null_count(&self) -> usize {
        if self.is_fixed() { self.null_count } else { self.buffer.null_count() }
    }

    /// Returns whether sample `i`, or item `i` of a nested column, is null.
    pub fn is_null(&self, i: usize) -> bool {
        let is_absent = |byte: &u8| byte >> (i % 8) & 1 == 0;
        match self.is_fixed() {
            true => i < self.sample_count && self.null_count > 0 && self.validity.get(i / 8).is_some_and(is_absent),
            false => self.buffer.is_null(i),
        }
    }

    /// Takes the memory that the caller's allocator returned for the values. Returns `None` if the
    /// values are not in such memory.
    pub fn take_memory(&mut self) -> Option<Box<dyn BatchMemory>> {
        match std::mem::take(&mut self.values) {
            Values::External(memory) => Some(memory),
            other => {
                self.values = other;
                None
            }
        }
    }

    fn is_fixed(&self) -> bool {
        self.schema.as_ref().is_some_and(|schema| schema.levels.is_empty() && !schema.shape.is_ragged())
    }

    /// Sets which samples of a column of fixed shape are null.
    pub(in crate::loader) fn set_nulls(&mut self, nulls: &[usize]) {
        self.null_count = nulls.len();
        self.validity.clear();
        self.validity.resize(self.sample_count.div_ceil(8), u8::MAX);
        for null in nulls {
            if let Some(byte) = self.validity.get_mut(null / 8) {
                *byte &= !(1 << (null % 8));
            }
        }
    }

    /// Allocates memory for the values, and returns it.
    pub(in crate::loader) fn room(
        &mut self,
        byte_count: usize,
        allocator: Option<&dyn crate::loader::BatchAllocator>,
    ) -> Result<&mut [u8]> {
        if let Some(allocator) = allocator {
            self.values = Values::Buffer; // first, return any memory left over from a failed batch
            self.values = Values::External(allocator.allocate(byte_count)?);
        } else if !matches!(self.values, Values::Owned(_)) {
            self.values = Values::Owned(AlignedBuffer::default());
        }
        let room = match &mut self.values {
            Values::Owned(memory) => {
                memory.resize(byte_count)?;
                memory.bytes_mut()
            }
            Values::External(memory) => memory.bytes_mut(),
            _ => &mut [],
        };
        match room.len() == byte_count {
            true => Ok(room),
            false => {
                let message = format!("the allocator returned {} bytes, but {byte_count} were requested", room.len());
                Err(DataError::BadArgument(message))
            }
        }
    }

    /// Returns the memory that [`BatchColumn::room`] has allocated.
    pub(in crate::loader) fn current_room(&mut self) -> &mut [u8] {
        match &mut self.values {
            Values::Owned(memory) => memory.bytes_mut(),
            Values::External(memory) => memory.bytes_mut(),
            _ => &mut [],
        }
    }
}
