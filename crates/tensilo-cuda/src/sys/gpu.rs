//! A GPU that decodes lists, and its memory, streams and events, which are freed when they are
//! dropped.
//!
//! A launch consists of three operations: the list is copied to the device, the kernel decodes it,
//! and the report is copied back. Copies have a separate stream, so the list of the next batch
//! arrives while the kernel decodes the current batch. The stream of the kernel waits for the list,
//! and for the operations of the caller's stream on the memory of the batch. Then the caller's
//! stream waits for the kernel. No host thread waits before [`PendingLaunch::finish`].
//!
//! Invariant: memory is neither freed nor changed while an operation uses it. A [`PendingLaunch`]
//! owns its list and its [`Slot`], returns them only after it has waited, and waits when it is
//! dropped. If waiting fails, it leaks them, because the device may still use them.

use super::driver::{Address, Driver, EventId, Gather, Launch, StreamId};
use crate::block_list::{BlockList, Refusal};
use crate::error::Result;
use std::mem;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tensilo::source::ReadMemory;

/// A GPU. Clones share the GPU.
#[derive(Clone, Debug)]
pub struct Gpu(pub(super) Arc<GpuState>);

#[derive(Debug)]
pub(super) struct GpuState {
    pub driver: Arc<dyn Driver>,
    pub copies: Stream,
    pub kernels: Stream,
    /// Memory and events that launches reuse.
    slots: Mutex<Vec<Slot>>,
    /// Lists without blocks, for reuse. The report of a gather is copied to the pinned memory of
    /// one.
    reports: Mutex<Vec<BlockList>>,
}

/// Device memory.
#[derive(Debug)]
pub(super) struct DeviceMemory {
    driver: Arc<dyn Driver>,
    pub address: Address,
    pub bytes: usize,
}

impl DeviceMemory {
    /// Returns an empty allocation.
    fn none(driver: &Arc<dyn Driver>) -> Self {
        Self { driver: driver.clone(), address: 0, bytes: 0 }
    }

    /// Allocates `bytes` bytes, but at least one.
    fn new(driver: &Arc<dyn Driver>, bytes: usize) -> Result<Self> {
        let bytes = bytes.max(1);
        Ok(Self { driver: driver.clone(), address: driver.allocate(bytes)?, bytes })
    }

    /// Grows the memory to at least `bytes` bytes. The content is lost.
    fn reserve(&mut self, bytes: usize) -> Result<()> {
        if self.bytes < bytes {
            let address = self.driver.allocate(bytes.next_power_of_two())?;
            let longer = Self { driver: self.driver.clone(), address, bytes: bytes.next_power_of_two() };
            drop(mem::replace(self, longer));
        }
        Ok(())
    }
}

impl Drop for DeviceMemory {
    fn drop(&mut self) {
        if self.bytes > 0 {
            // SAFETY: it is allocated, and freed once. `PendingLaunch` waits for the operations on
            // a slot before the slot is dropped or its memory is replaced.
            unsafe { self.driver.free(self.address) };
        }
    }
}

/// Host memory that the device copies from.
#[derive(Debug)]
struct PinnedMemory {
    driver: Arc<dyn Driver>,
    memory: NonNull<u8>,
    bytes: usize,
}

// SAFETY: this value owns the memory, like a `Vec`.
unsafe impl Send for PinnedMemory {}
// SAFETY: as above; a shared reference only reads.
unsafe impl Sync for PinnedMemory {}

impl PinnedMemory {
    fn none(driver: &Arc<dyn Driver>) -> Self {
        Self { driver: driver.clone(), memory: NonNull::dangling(), bytes: 0 }
    }
}

impl Drop for PinnedMemory {
    fn drop(&mut self) {
        if self.bytes > 0 {
            // SAFETY: as for `DeviceMemory`.
            unsafe { self.driver.free_pinned(self.memory) };
        }
    }
}

impl ReadMemory for PinnedMemory {
    fn bytes(&self) -> &[u8] {
        // SAFETY: the memory has `self.bytes` bytes, possibly none. It was zeroed when it was
        // allocated. No operation writes to it while this can be called: `PendingLaunch` owns the
        // list until it has waited for them.
        unsafe { std::slice::from_raw_parts(self.memory.as_ptr(), self.bytes) }
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above; `self` is borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.memory.as_ptr(), self.bytes) }
    }

    fn reserve(&mut self, used: usize, bytes: usize) -> tensilo::Result<()> {
        if self.bytes >= bytes {
            return Ok(());
        }
        let bytes = bytes.next_power_of_two();
        let allocated = self.driver.allocate_pinned(bytes);
        let memory = allocated.map_err(|error| tensilo::Error::bad_argument(error.to_string()))?;
        // SAFETY: the memory was just allocated with `bytes` bytes.
        unsafe { memory.write_bytes(0, bytes) };
        let mut longer = Self { driver: self.driver.clone(), memory, bytes };
        let used = used.min(self.bytes);
        if let (Some(to), Some(from)) = (longer.bytes_mut().get_mut(..used), self.bytes().get(..used)) {
            to.copy_from_slice(from); // equal lengths
        }
        drop(mem::replace(self, longer));
        Ok(())
    }
}

#[derive(Debug)]
pub(super) struct Stream {
    driver: Arc<dyn Driver>,
    pub id: StreamId,
}

impl Stream {
    fn new(driver: &Arc<dyn Driver>) -> Result<Self> {
        Ok(Self { driver: driver.clone(), id: driver.new_stream()? })
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        // SAFETY: the driver created it, and it is destroyed once.
        unsafe { self.driver.destroy_stream(self.id) };
    }
}

#[derive(Debug)]
struct Event {
    driver: Arc<dyn Driver>,
    id: EventId,
}

impl Event {
    fn new(driver: &Arc<dyn Driver>) -> Result<Self> {
        Ok(Self { driver: driver.clone(), id: driver.new_event()? })
    }

    /// Records the position of a stream, which must exist.
    fn record(&self, on: StreamId) -> Result<()> {
        // SAFETY: both exist.
        unsafe { self.driver.record(self.id, on) }
    }

    /// Makes a stream wait for this event. The stream must exist.
    fn make_wait(&self, stream: StreamId) -> Result<()> {
        // SAFETY: both exist.
        unsafe { self.driver.wait(self.id, stream) }
    }

    fn wait(&self) -> Result<()> {
        // SAFETY: it exists.
        unsafe { self.driver.synchronize(self.id) }
    }

    /// Returns the time from this event to another. Streams must have reached both.
    fn elapsed(&self, to: &Self) -> Result<Duration> {
        // SAFETY: both exist.
        unsafe { self.driver.elapsed(self.id, to.id) }
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        // SAFETY: as for `Stream`.
        unsafe { self.driver.destroy_event(self.id) };
    }
}

/// The memory and the events of a launch.
#[derive(Debug)]
struct Slot {
    /// The list, on the device.
    list: DeviceMemory,
    scratch: DeviceMemory,
    /// Reached when the copy of the list starts.
    begun: Event,
    /// Reached when the list has arrived on the device.
    copied: Event,
    /// Reached when the memory of the batch can be written to.
    free: Event,
    /// Reached when the kernel starts.
    ready: Event,
    /// Reached when the kernel has finished and its report has been copied back.
    done: Event,
}

impl Slot {
    fn new(driver: &Arc<dyn Driver>) -> Result<Self> {
        Ok(Self {
            list: DeviceMemory::none(driver),
            scratch: DeviceMemory::none(driver),
            begun: Event::new(driver)?,
            copied: Event::new(driver)?,
            free: Event::new(driver)?,
            ready: Event::new(driver)?,
            done: Event::new(driver)?,
        })
    }
}

/// Memory of a GPU, for callers that do not have an allocator of their own.
#[derive(Debug)]
pub struct DeviceBuffer {
    gpu: Gpu,
    memory: DeviceMemory,
    bytes: usize,
}

impl DeviceBuffer {
    /// Returns the address of the memory, which is a multiple of 256.
    pub fn address(&self) -> u64 {
        self.memory.address
    }

    /// Returns the size of the memory in bytes.
    pub fn byte_count(&self) -> usize {
        self.bytes
    }

    /// Returns this memory as the memory of a batch that is used on the default stream.
    pub fn as_batch(&self) -> BatchMemory {
        BatchMemory { address: self.memory.address, bytes: self.bytes, stream: 0 }
    }

    /// Copies the memory to the host, and waits. Launches that write to it must be finished.
    ///
    /// Fails if `out` is longer than the memory, or if the driver fails.
    pub fn read(&self, out: &mut [u8]) -> Result<()> {
        if out.len() > self.bytes {
            let message = format!("cannot read {} bytes from a buffer of {} bytes", out.len(), self.bytes);
            return Err(tensilo::Error::bad_argument(message).into());
        }
        let GpuState { driver, copies, .. } = &*self.gpu.0;
        let mut staging = StagingBuffer::new(driver)?;
        for (start, staged) in (0..).step_by(STAGING_BYTES).zip(out.chunks_mut(STAGING_BYTES)) {
            let from = self.memory.address + start as u64;
            staging.memory.reserve(0, staged.len())?;
            // SAFETY: both ranges live, and nothing else uses either before the wait for the event.
            let copied = unsafe { driver.copy_to_host(staging.memory.memory, from, staged.len(), copies.id) };
            staging.wait_for(copies.id)?;
            copied?;
            // equal lengths
            staged.copy_from_slice(staging.memory.bytes().get(..staged.len()).unwrap_or(&[]));
        }
        Ok(())
    }
}

impl Gpu {
    /// Allocates uninitialized memory of the GPU. Cost: up to a few hundred microseconds. Freeing
    /// the memory waits for the GPU, so reuse it.
    pub fn new_buffer(&self, bytes: usize) -> Result<DeviceBuffer> {
        let memory = DeviceMemory::new(&self.0.driver, bytes)?;
        Ok(DeviceBuffer { gpu: self.clone(), memory, bytes })
    }

    /// Waits for all operations that the process has enqueued on the GPU, on any stream.
    pub fn synchronize(&self) -> Result<()> {
        self.0.driver.synchronize_all()
    }

    /// Returns the stream on which lists are decoded, as a `CUstream`. If a caller allocates the
    /// memory of batches for this stream, it does not have to wait for other streams; see
    /// [`BatchMemory::stream`]. To use a batch on another stream, wait for
    /// [`PendingLaunch::finish`] first.
    pub fn stream(&self) -> u64 {
        self.0.kernels.id.0
    }

    /// Allocates memory of the GPU and copies bytes to it.
    pub fn buffer_from(&self, bytes: &[u8]) -> Result<DeviceBuffer> {
        let memory = self.0.upload(bytes, &mut StagingBuffer::new(&self.0.driver)?)?;
        Ok(DeviceBuffer { gpu: self.clone(), memory, bytes: bytes.len() })
    }
}

/// The memory of a batch on a GPU.
#[derive(Clone, Copy, Debug)]
pub struct BatchMemory {
    /// The address of the memory, which is a multiple of the element size of each column.
    pub address: u64,
    /// The size of the memory in bytes.
    pub bytes: usize,
    /// The stream on which the caller uses the memory, as a `CUstream`. 0 is the default stream.
    pub stream: u64,
}

impl GpuState {
    /// Allocates device memory, copies bytes to it, and waits.
    pub(super) fn upload(&self, bytes: &[u8], pinned: &mut StagingBuffer) -> Result<DeviceMemory> {
        let memory = DeviceMemory::new(&self.driver, bytes.len())?;
        for (start, staged) in (0..).step_by(STAGING_BYTES).zip(bytes.chunks(STAGING_BYTES)) {
            let to = memory.address + start as u64;
            let from = pinned.copy(staged)?;
            // SAFETY: both ranges live, and nothing else uses either before the wait for the event.
            let copied = unsafe { self.driver.copy_to_device(to, from, staged.len(), self.copies.id) };
            if let Err(error) = pinned.wait_for(self.copies.id) {
                mem::forget(memory); // the device may still write to it
                return Err(error);
            }
            copied?;
        }
        Ok(memory)
    }
}

/// The number of bytes that are copied at a time.
const STAGING_BYTES: usize = 8 << 20;

/// Pinned memory through which bytes are copied to and from the device.
pub(super) struct StagingBuffer {
    memory: PinnedMemory,
    event: Event,
}

impl StagingBuffer {
    pub(super) fn new(driver: &Arc<dyn Driver>) -> Result<Self> {
        Ok(Self { memory: PinnedMemory::none(driver), event: Event::new(driver)? })
    }

    /// Waits for the operations of a stream. If that fails, the memory is leaked, because the
    /// device may still use it.
    fn wait_for(&mut self, stream: StreamId) -> Result<()> {
        let waited = self.event.record(stream).and_then(|()| self.event.wait());
        waited.inspect_err(|_| {
            let none = PinnedMemory::none(&self.memory.driver);
            mem::forget(mem::replace(&mut self.memory, none));
        })
    }

    /// Copies bytes to the pinned memory, and returns the address of the memory.
    fn copy(&mut self, bytes: &[u8]) -> Result<NonNull<u8>> {
        self.memory.reserve(0, bytes.len())?;
        if let Some(to) = self.memory.bytes_mut().get_mut(..bytes.len()) {
            to.copy_from_slice(bytes); // equal lengths
        }
        Ok(self.memory.memory)
    }
}

impl Gpu {
    /// Returns an emulated GPU; see `Emulator`. Its operations run when a caller waits for them.
    #[cfg(feature = "emulator")]
    pub fn emulated() -> Self {
        let driver: Arc<dyn Driver> = Arc::new(super::emulated::EmulatedDriver::default());
        Self::from_driver(driver).unwrap_or_else(|error| unreachable!("{error}"))
    }

    /// Returns the GPU of a driver.
    pub(crate) fn from_driver(driver: Arc<dyn Driver>) -> Result<Self> {
        let (copies, kernels) = (Stream::new(&driver)?, Stream::new(&driver)?);
        Ok(Self(Arc::new(GpuState { driver, copies, kernels, slots: Mutex::default(), reports: Mutex::default() })))
    }

    /// Returns the name of the GPU.
    pub fn name(&self) -> &str {
        self.0.driver.name()
    }

    /// Returns whether the GPU is emulated. If so, its memory is host memory.
    pub fn is_emulated(&self) -> bool {
        self.0.driver.is_emulated()
    }

    /// Returns pinned memory, from which the GPU copies directly, for
    /// [`tensilo::stages::FetchedBytes::set_memory`]. The memory begins at a page boundary.
    pub fn new_memory(&self) -> Box<dyn ReadMemory> {
        Box::new(PinnedMemory::none(&self.0.driver))
    }

    /// Returns an empty list in pinned memory, from which the GPU copies directly. Cost: pinned
    /// memory is slow to allocate, so reuse the list that [`PendingLaunch::finish`] returns.
    pub fn new_list(&self) -> BlockList {
        BlockList::in_memory(Box::new(PinnedMemory::none(&self.0.driver)))
    }

    /// Decodes a list to the memory of a batch, after the operations that are already enqueued on
    /// the caller's stream. Returns once everything is enqueued; later operations on that stream
    /// see the batch.
    ///
    /// Fails if the memory is too short, or if the driver fails. A list that [`BlockList::new`]
    /// returned is slower, because the driver first copies it to pinned memory.
    ///
    /// # Safety
    ///
    /// The memory is on this GPU. It stays allocated until [`PendingLaunch::finish`] has returned,
    /// the [`PendingLaunch`] has been dropped, or a later operation on the stream has run. Until
    /// then, no other stream uses it. The stream exists.
    pub unsafe fn launch(&self, mut list: BlockList, batch: BatchMemory) -> Result<PendingLaunch> {
        list.check_batch(batch.bytes)?;
        let GpuState { driver, copies, kernels, .. } = &*self.0;
        let mut slot = self.0.take_slot()?;
        let stage_bytes = list.stage_bytes();
        let bytes = list.byte_count();
        slot.list.reserve(bytes)?;
        slot.scratch.reserve(driver.scratch_bytes(stage_bytes))?;
        let segments: Vec<(u64, NonNull<u8>, usize)> = list
            .segments()?
            .into_iter()
            .map(|(offset, bytes)| (slot.list.address + offset as u64, NonNull::from(bytes).cast(), bytes.len()))
            .collect();
        let addresses: Vec<u64> = segments.iter().map(|(address, ..)| *address).collect();
        let layout = list.write_records(slot.list.address, &addresses, batch.address)?;
        let launch = Launch {
            blocks: slot.list.address + layout.blocks as u64,
            block_count: list.block_count() as u32, // all records lie within 4 GiB
            copies: slot.list.address + layout.copies as u64,
            stage_bytes,
            scratch: slot.scratch.address,
            report: slot.list.address,
        };
        let memory = NonNull::from(list.reserve_records()?).cast();
        // from here on, dropping `launched` waits for everything that was enqueued, even if an
        // operation fails
        let launched = PendingLaunch { gpu: self.clone(), slot: Some(slot), list: Some(list), read: None };
        let Some(slot) = &launched.slot else { return Ok(launched) };
        // SAFETY: `launched` owns the slot and the list with the memory of its segments until
        // `done`. Records refer to ranges of the list on the device, and of the batch, whose length
        // `check_batch` has checked. The caller guarantees that the batch is allocated.
        let enqueued = unsafe {
            slot.begun.record(copies.id).and_then(|()| {
                driver.copy_to_device(slot.list.address, memory, layout.end, copies.id)?;
                for &(to, from, bytes) in segments.iter().filter(|(.., bytes)| *bytes > 0) {
                    driver.copy_to_device(to, from, bytes, copies.id)?;
                }
                slot.copied.record(copies.id)?;
                slot.free.record(StreamId(batch.stream))?;
                slot.copied.make_wait(kernels.id)?;
                slot.free.make_wait(kernels.id)?;
                slot.ready.record(kernels.id)?;
                driver.decode(launch, kernels.id)?;
                driver.copy_to_host(memory, slot.list.address, size_of::<u64>(), kernels.id)
            })
        };
        let settled = slot.done.record(kernels.id).and_then(|()| match &enqueued {
            Ok(()) => Ok(()),
            Err(_) => slot.copied.record(copies.id).and_then(|()| slot.copied.wait()),
        });
        if let Err(error) = settled {
            launched.leak();
            return Err(error);
        }
        enqueued?;
        slot.done.make_wait(StreamId(batch.stream))?;
        Ok(launched)
    }
}

impl GpuState {
    /// Takes a slot that a launch has returned, or makes a new one.
    fn take_slot(&self) -> Result<Slot> {
        let unused = self.slots.lock().ok().and_then(|mut slots| slots.pop());
        unused.map_or_else(|| Slot::new(&self.driver), Ok)
    }
}

impl Gpu {
    /// Gathers samples to the memory of a batch, after the operations that are already enqueued on
    /// the caller's stream. Sets the addresses of the scratch memory and the report in `gather`.
    ///
    /// # Safety
    ///
    /// Same as for [`Gpu::launch`]. The samples of `gather` are in `read`, and its rows and indices
    /// are on this GPU.
    pub(super) unsafe fn gather(
        &self,
        mut gather: Gather,
        read: Arc<Vec<DeviceMemory>>,
        stream: u64,
    ) -> Result<PendingLaunch> {
        let GpuState { driver, kernels, .. } = &*self.0;
        let mut slot = self.0.take_slot()?;
        slot.list.reserve(size_of::<u128>())?;
        slot.scratch.reserve(driver.scratch_bytes(gather.stage_bytes))?;
        (gather.scratch, gather.report) = (slot.scratch.address, slot.list.address);
        let unused = self.0.reports.lock().ok().and_then(|mut reports| reports.pop());
        let mut list = unused.unwrap_or_else(|| self.new_list());
        list.write_records(0, &[], 0)?;
        let memory = NonNull::from(list.reserve_records()?).cast();
        let launched = PendingLaunch { gpu: self.clone(), slot: Some(slot), list: Some(list), read: Some(read) };
        let Some(slot) = &launched.slot else { return Ok(launched) };
        // SAFETY: `launched` owns the report and the slot until `done`. The caller guarantees the
        // rest.
        let enqueued = unsafe {
            slot.free.record(StreamId(stream)).and_then(|()| {
                slot.free.make_wait(kernels.id)?;
                slot.begun.record(kernels.id)?;
                driver.copy_to_device(slot.list.address, memory, size_of::<u64>(), kernels.id)?;
                slot.copied.record(kernels.id)?;
                slot.ready.record(kernels.id)?;
                driver.gather(gather, kernels.id)?;
                driver.copy_to_host(memory, slot.list.address, size_of::<u64>(), kernels.id)
            })
        };
        if let Err(error) = slot.done.record(kernels.id) {
            launched.leak();
            return Err(error);
        }
        enqueued?;
        slot.done.make_wait(StreamId(stream))?;
        Ok(launched)
    }
}

/// The outcome of a launch.
#[derive(Debug)]
#[non_exhaustive]
pub struct LaunchReport {
    /// The list, for reuse.
    pub list: BlockList,
    /// The first block that breaks a rule. If there is one, the content of the batch is
    /// unspecified.
    pub refusal: Option<Refusal>,
    /// How long it took to copy the list to the GPU.
    pub copying: Duration,
    /// How long the kernel and the copy of its report took.
    pub decoding: Duration,
}

/// A list that is being decoded. Dropping this value waits until the list is decoded.
#[derive(Debug)]
#[must_use = "`finish` reports whether a block was refused"]
pub struct PendingLaunch {
    gpu: Gpu,
    slot: Option<Slot>,
    list: Option<BlockList>,
    /// Other memory that the kernel reads.
    read: Option<Arc<Vec<DeviceMemory>>>,
}

impl PendingLaunch {
    /// Leaks the memory, because operations may still use it.
    fn leak(mut self) {
        mem::forget((self.slot.take(), self.list.take(), self.read.take()));
    }

    /// Like [`PendingLaunch::finish`], but returns the list to the [`Gpu`] for reuse.
    pub(super) fn finish_gather(self) -> Result<(Option<Refusal>, Duration)> {
        let gpu = self.gpu.clone();
        let LaunchReport { list, refusal, decoding, .. } = self.finish()?;
        if let Ok(mut reports) = gpu.0.reports.lock() {
            reports.push(list);
        }
        Ok((refusal, decoding))
    }

    /// Waits until the list is decoded.
    pub fn finish(mut self) -> Result<LaunchReport> {
        let (mut copying, mut decoding) = Default::default();
        if let Some(Slot { begun, copied, ready, done, .. }) = &self.slot {
            done.wait()?;
            (copying, decoding) = (begun.elapsed(copied)?, ready.elapsed(done)?);
        }
        self.wait()?;
        let list = self.list.take().unwrap_or_else(|| self.gpu.new_list()); // never missing
        let refusal = list.report();
        Ok(LaunchReport { list, refusal, copying, decoding })
    }

    /// Waits for the launch, and returns its slot to the [`Gpu`] for reuse.
    fn wait(&mut self) -> Result<()> {
        let Some(slot) = &self.slot else { return Ok(()) };
        slot.done.wait()?;
        if let Some(slot) = self.slot.take()
            && let Ok(mut slots) = self.gpu.0.slots.lock()
        {
            slots.push(slot);
        }
        Ok(())
    }
}

impl Drop for PendingLaunch {
    fn drop(&mut self) {
        if self.wait().is_err() {
            // the driver has failed: leak the memory, because the device may still use it
            mem::forget((self.slot.take(), self.list.take(), self.read.take()));
        }
    }
}
