//! The driver of a GPU, called through `libcuda`, which is loaded when the first GPU is opened.
//!
//! Each thread has its own current context. So each operation first makes the context of its GPU
//! current, and restores the previous context afterwards. The context is the primary context of the
//! GPU, which other libraries in the process also use.

use super::driver::{Address, Driver, EventId, Gather, Launch, StreamId};
use super::gpu::Gpu;
use crate::error::{CudaError, Result};
use cudarc::driver::result::{self, DriverError};
use cudarc::driver::sys::{self, CUdevice_attribute as Attribute};
use std::ffi::{CString, c_void};
use std::ptr::{NonNull, from_mut};
use std::sync::Arc;
use std::time::Duration;

/// The machine code for each compute capability. Later capabilities use [`PTX`]. `build.py`
/// generates both.
const KERNELS: [(i32, &[u8]); 6] = [
    (80, include_bytes!("../../kernels/compiled/sm_80.cubin.zst")),
    (86, include_bytes!("../../kernels/compiled/sm_86.cubin.zst")),
    (89, include_bytes!("../../kernels/compiled/sm_89.cubin.zst")),
    (90, include_bytes!("../../kernels/compiled/sm_90.cubin.zst")),
    (100, include_bytes!("../../kernels/compiled/sm_100.cubin.zst")),
    (120, include_bytes!("../../kernels/compiled/sm_120.cubin.zst")),
];
const PTX: &[u8] = include_bytes!("../../kernels/compiled/compute_80.ptx.zst");
/// An upper bound on the size of decompressed kernels, in bytes.
const MAX_KERNEL_BYTES: usize = 16 << 20;

/// The number of warps in a thread block. Must match `WARPS` in `kernels/decode.cu`.
const WARPS: u32 = 4;
const LANES: u32 = 32;
/// The approximate size in bytes of the shared memory of a thread block, without the staging
/// buffers of its warps.
const TABLE_BYTES: u32 = 7 << 10;
/// Blocks that need more bytes than this are decoded in device memory, so that several thread
/// blocks fit in a multiprocessor.
const MAX_SHARED_STAGE: u32 = 22 << 10;
// the limit of a thread block on GPUs of compute capability 8.6, 8.9 and 12.0 is 99 KiB
const _: () = assert!(WARPS * MAX_SHARED_STAGE + TABLE_BYTES <= 99 << 10);
/// The maximum number of thread blocks that run on a multiprocessor at the same time: its registers
/// do not suffice for more.
const MAX_RESIDENT: u32 = 4;
/// The maximum size in bytes of the memory for blocks that do not fit in shared memory.
const MAX_SCRATCH_BYTES: usize = 256 << 20;

#[derive(Debug)]
struct CudaDriver {
    name: String,
    device: sys::CUdevice,
    context: sys::CUcontext,
    module: sys::CUmodule,
    decode: sys::CUfunction,
    gather: sys::CUfunction,
    multiprocessors: u32,
    /// The size of the shared memory of a multiprocessor in bytes.
    shared_bytes: u32,
}

// SAFETY: the fields are handles of the driver, which any thread may use.
unsafe impl Send for CudaDriver {}
// SAFETY: as above.
unsafe impl Sync for CudaDriver {}

/// Converts an error of the driver.
fn failed(operation: &'static str) -> impl Fn(DriverError) -> CudaError {
    move |error| CudaError::Driver { operation, message: format!("{error:?}") }
}

impl Gpu {
    /// Opens a GPU by its number, counted from 0.
    ///
    /// Cost: loads the driver and the kernels, which takes a few hundred milliseconds if the
    /// process has not used the GPU yet. Fails if there is no driver or no such GPU, or if the
    /// kernels cannot be loaded: they need driver release 580 or later, and compute capability 8.0
    /// or later.
    ///
    /// With the feature `emulator`, if the environment variable `TENSILO_EMULATED_GPU` is set, the
    /// GPU is emulated, so that programs can be tested without a GPU.
    pub fn open(ordinal: usize) -> Result<Self> {
        #[cfg(feature = "emulator")]
        if std::env::var_os("TENSILO_EMULATED_GPU").is_some() {
            return Ok(Self::emulated());
        }
        Gpu::from_driver(Arc::new(CudaDriver::open(ordinal)?))
    }
}

impl CudaDriver {
    fn open(ordinal: usize) -> Result<Self> {
        // SAFETY: loading the library runs its initialization, which is meant to be run this way.
        if !unsafe { sys::is_culib_present() } {
            return Err(CudaError::NoDriver);
        }
        result::init().map_err(failed("initializing the driver"))?;
        let count = result::device::get_count().map_err(failed("counting the GPUs"))?;
        let count = usize::try_from(count).unwrap_or(0);
        let number = i32::try_from(ordinal).ok().filter(|_| ordinal < count);
        let device = result::device::get(number.ok_or(CudaError::NoDevice { ordinal, count })?);
        let device = device.map_err(failed("opening the GPU"))?;
        let name = result::device::get_name(device).map_err(failed("reading the name of the GPU"))?;
        let attribute = |attribute| {
            // SAFETY: the device was just opened.
            unsafe { result::device::get_attribute(device, attribute) }
                .map_err(failed("reading an attribute of the GPU"))
        };
        let major = attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?;
        let minor = attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?;
        let multiprocessors = attribute(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?.unsigned_abs();
        let shared = attribute(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR)?.unsigned_abs();
        let image = kernel_image(major, minor)?;
        // SAFETY: the device was just opened. The image is generated by `build.py`, and ends with a
        // zero. The kernels belong to the module, which lives as long as this driver.
        unsafe {
            let context = result::primary_ctx::retain(device).map_err(failed("opening the context of the GPU"))?;
            let before = result::ctx::get_current().map_err(failed("reading the current context"))?;
            let guard = ContextGuard { before: before.unwrap_or(std::ptr::null_mut()) };
            let load = || {
                result::ctx::set_current(context)?;
                let module = result::module::load_data(image.as_ptr().cast())?;
                let kernel = |name| {
                    let kernel = result::module::get_function(module, CString::from(name))?;
                    let dynamic = sys::CUfunction_attribute_enum::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
                    let bytes = i32::try_from(WARPS * MAX_SHARED_STAGE).unwrap_or(i32::MAX);
                    result::function::set_function_attribute(kernel, dynamic, bytes)?;
                    Ok(kernel)
                };
                let kernels = kernel(c"tensilo_decode").and_then(|decode| Ok((decode, kernel(c"tensilo_gather")?)));
                let (decode, gather) = kernels.inspect_err(|_| {
                    let _ = result::module::unload(module); // the first error is returned
                })?;
                Ok((module, decode, gather))
            };
            let loaded = load();
            drop(guard);
            match loaded {
                Ok((module, decode, gather)) => {
                    Ok(Self { name, device, context, module, decode, gather, multiprocessors, shared_bytes: shared })
                }
                Err(error) => {
                    let _ = result::primary_ctx::release(device); // the first error is returned
                    Err(failed("loading the kernels (driver release 580 or later is required)")(error))
                }
            }
        }
    }

    /// Makes the context current until the returned guard is dropped.
    fn enter(&self, operation: &'static str) -> Result<ContextGuard> {
        let before = result::ctx::get_current().map_err(failed(operation))?;
        // SAFETY: the context is retained as long as this value lives.
        unsafe { result::ctx::set_current(self.context) }.map_err(failed(operation))?;
        Ok(ContextGuard { before: before.unwrap_or(std::ptr::null_mut()) })
    }

    /// Returns the size of a warp's shared memory in bytes and the number of concurrent thread
    /// blocks, for a launch whose warps need `stage_bytes` bytes.
    fn launch_config(&self, stage_bytes: u32) -> (u32, u32) {
        let shared = stage_bytes.min(MAX_SHARED_STAGE).next_multiple_of(16);
        let resident = (self.shared_bytes / (WARPS * shared + TABLE_BYTES)).clamp(1, MAX_RESIDENT);
        let blocks = self.multiprocessors.max(1).saturating_mul(resident);
        if stage_bytes <= MAX_SHARED_STAGE {
            return (shared, blocks);
        }
        let max_blocks = MAX_SCRATCH_BYTES / (WARPS as usize * stage_bytes as usize);
        (shared, blocks.min(u32::try_from(max_blocks).unwrap_or(1).max(1)))
    }

    /// Returns the number of thread blocks for `count` tasks that take one warp each.
    fn grid(&self, count: u32, stage_bytes: u32) -> u32 {
        count.div_ceil(WARPS).min(self.launch_config(stage_bytes).1)
    }
}

/// Launches a kernel whose warps have `shared` bytes of shared memory each.
///
/// # Safety
///
/// The arguments match the parameters of the kernel, which may use the memory that they refer to.
unsafe fn launch_warps(
    kernel: sys::CUfunction,
    grid: u32,
    shared: u32,
    on: sys::CUstream,
    arguments: &mut [*mut c_void],
) -> std::result::Result<(), DriverError> {
    // SAFETY: upheld by the caller.
    unsafe { result::launch_kernel(kernel, (grid, 1, 1), (WARPS * LANES, 1, 1), WARPS * shared, on, arguments) }
}

/// Returns the kernels for a GPU, decompressed and followed by a zero.
fn kernel_image(major: i32, minor: i32) -> Result<Vec<u8>> {
    let capability = 10 * major + minor;
    // machine code also runs on GPUs with a later minor version of the same major version
    let of_major = KERNELS.iter().filter(|(code, _)| code / 10 == major && *code <= capability);
    let compressed = of_major.max_by_key(|(code, _)| *code).map_or(PTX, |(_, bytes)| bytes);
    let expanded = zstd::bulk::decompress(compressed, MAX_KERNEL_BYTES);
    let mut image = expanded
        .map_err(|error| CudaError::Driver { operation: "decompressing the kernels", message: error.to_string() })?;
    image.push(0);
    Ok(image)
}

/// Keeps a context current. Dropping this restores the previous context, because the caller chooses
/// which GPU its thread uses.
struct ContextGuard {
    before: sys::CUcontext,
}

impl Drop for ContextGuard {
    fn drop(&mut self) {
        // SAFETY: it was current before, or is null. An error comes from an earlier operation.
        let _ = unsafe { result::ctx::set_current(self.before) };
    }
}

fn stream(id: StreamId) -> sys::CUstream {
    std::ptr::with_exposed_provenance_mut(id.0 as usize)
}

fn event(id: EventId) -> sys::CUevent {
    std::ptr::with_exposed_provenance_mut(id.0 as usize)
}

impl Driver for CudaDriver {
    fn name(&self) -> &str {
        &self.name
    }

    fn is_emulated(&self) -> bool {
        false
    }

    fn allocate(&self, bytes: usize) -> Result<Address> {
        const DOING: &str = "allocating GPU memory";
        let _guard = self.enter(DOING)?;
        // SAFETY: the memory is written before it is read.
        unsafe { result::malloc_sync(bytes) }.map_err(failed(DOING))
    }

    fn allocate_pinned(&self, bytes: usize) -> Result<NonNull<u8>> {
        const DOING: &str = "allocating pinned memory";
        let _guard = self.enter(DOING)?;
        // SAFETY: the caller writes to it before anything reads it.
        let memory = unsafe { result::malloc_host(bytes, 0) }.map_err(failed(DOING))?;
        NonNull::new(memory.cast()).ok_or(CudaError::Driver { operation: DOING, message: "a null address".to_owned() })
    }

    fn new_stream(&self) -> Result<StreamId> {
        const DOING: &str = "creating a stream";
        let _guard = self.enter(DOING)?;
        let made = result::stream::create(result::stream::StreamKind::NonBlocking).map_err(failed(DOING))?;
        Ok(StreamId(made.expose_provenance() as u64))
    }

    fn new_event(&self) -> Result<EventId> {
        const DOING: &str = "creating an event";
        let _guard = self.enter(DOING)?;
        let made = result::event::create(sys::CUevent_flags::CU_EVENT_DEFAULT).map_err(failed(DOING))?;
        Ok(EventId(made.expose_provenance() as u64))
    }

    fn scratch_bytes(&self, stage_bytes: u32) -> usize {
        match stage_bytes <= MAX_SHARED_STAGE {
            true => 0,
            false => self.launch_config(stage_bytes).1 as usize * WARPS as usize * stage_bytes as usize,
        }
    }

    unsafe fn free(&self, address: Address) {
        // an error here comes from an earlier operation, which has reported it
        let _guard = self.enter("freeing memory");
        // SAFETY: upheld by the caller.
        let _ = unsafe { result::free_sync(address) };
    }

    unsafe fn free_pinned(&self, memory: NonNull<u8>) {
        let _guard = self.enter("freeing memory");
        // SAFETY: upheld by the caller.
        let _ = unsafe { result::free_host(memory.as_ptr().cast()) };
    }

    unsafe fn destroy_stream(&self, id: StreamId) {
        let _guard = self.enter("destroying a stream");
        // SAFETY: upheld by the caller.
        let _ = unsafe { result::stream::destroy(stream(id)) };
    }

    unsafe fn destroy_event(&self, id: EventId) {
        let _guard = self.enter("destroying an event");
        // SAFETY: upheld by the caller.
        let _ = unsafe { result::event::destroy(event(id)) };
    }

    unsafe fn copy_to_device(&self, to: Address, from: NonNull<u8>, bytes: usize, on: StreamId) -> Result<()> {
        const DOING: &str = "copying a batch to the GPU";
        let _guard = self.enter(DOING)?;
        let from = from.as_ptr().cast_const().cast();
        // SAFETY: upheld by the caller.
        unsafe { sys::cuMemcpyHtoDAsync_v2(to, from, bytes, stream(on)) }.result().map_err(failed(DOING))
    }

    unsafe fn copy_to_host(&self, to: NonNull<u8>, from: Address, bytes: usize, on: StreamId) -> Result<()> {
        const DOING: &str = "copying a report from the GPU";
        let _guard = self.enter(DOING)?;
        // SAFETY: upheld by the caller.
        unsafe { sys::cuMemcpyDtoHAsync_v2(to.as_ptr().cast(), from, bytes, stream(on)) }
            .result()
            .map_err(failed(DOING))
    }

    unsafe fn decode(&self, launch: Launch, on: StreamId) -> Result<()> {
        const DOING: &str = "launching the kernel";
        if launch.block_count == 0 {
            return Ok(());
        }
        let _guard = self.enter(DOING)?;
        let Launch { mut blocks, mut block_count, mut copies, mut stage_bytes, mut scratch, mut report } = launch;
        let mut shared = self.launch_config(stage_bytes).0;
        let grid = self.grid(block_count, stage_bytes);
        // the arguments of `tensilo_decode`, in its order
        let mut arguments: [*mut c_void; 7] = [
            from_mut(&mut blocks).cast(),
            from_mut(&mut block_count).cast(),
            from_mut(&mut copies).cast(),
            from_mut(&mut shared).cast(),
            from_mut(&mut scratch).cast(),
            from_mut(&mut stage_bytes).cast(),
            from_mut(&mut report).cast(),
        ];
        // SAFETY: upheld by the caller. The arguments match the parameters of the kernel, and the
        // driver copies them before it returns. If any block needs scratch memory, each warp of the
        // grid has `stage_bytes` bytes of it.
        let launched = unsafe { launch_warps(self.decode, grid, shared, stream(on), &mut arguments) };
        launched.map_err(failed(DOING))
    }

    unsafe fn gather(&self, gather: Gather, on: StreamId) -> Result<()> {
        const DOING: &str = "launching the kernel";
        if gather.count == 0 {
            return Ok(());
        }
        let _guard = self.enter(DOING)?;
        let Gather { mut samples, mut indices, mut count, mut rows, mut row_bytes, .. } = gather;
        let (mut stage_bytes, mut scratch, mut report) = (gather.stage_bytes, gather.scratch, gather.report);
        let mut shared = self.launch_config(stage_bytes).0;
        let grid = self.grid(count, stage_bytes);
        // the arguments of `tensilo_gather`, in its order
        let mut arguments: [*mut c_void; 9] = [
            from_mut(&mut samples).cast(),
            from_mut(&mut indices).cast(),
            from_mut(&mut count).cast(),
            from_mut(&mut rows).cast(),
            from_mut(&mut row_bytes).cast(),
            from_mut(&mut shared).cast(),
            from_mut(&mut scratch).cast(),
            from_mut(&mut stage_bytes).cast(),
            from_mut(&mut report).cast(),
        ];
        // SAFETY: as in `decode`.
        let launched = unsafe { launch_warps(self.gather, grid, shared, stream(on), &mut arguments) };
        launched.map_err(failed(DOING))
    }

    unsafe fn record(&self, id: EventId, on: StreamId) -> Result<()> {
        const DOING: &str = "recording an event";
        let _guard = self.enter(DOING)?;
        // SAFETY: upheld by the caller.
        unsafe { result::event::record(event(id), stream(on)) }.map_err(failed(DOING))
    }

    unsafe fn wait(&self, id: EventId, on: StreamId) -> Result<()> {
        const DOING: &str = "making a stream wait";
        let _guard = self.enter(DOING)?;
        let flags = sys::CUevent_wait_flags::CU_EVENT_WAIT_DEFAULT;
        // SAFETY: upheld by the caller.
        unsafe { result::stream::wait_event(stream(on), event(id), flags) }.map_err(failed(DOING))
    }

    unsafe fn synchronize(&self, id: EventId) -> Result<()> {
        const DOING: &str = "waiting for the GPU";
        let _guard = self.enter(DOING)?;
        // SAFETY: upheld by the caller.
        unsafe { result::event::synchronize(event(id)) }.map_err(failed(DOING))
    }

    unsafe fn elapsed(&self, from: EventId, to: EventId) -> Result<Duration> {
        const DOING: &str = "measuring the elapsed time";
        let _guard = self.enter(DOING)?;
        // SAFETY: upheld by the caller.
        let milliseconds = unsafe { result::event::elapsed(event(from), event(to)) }.map_err(failed(DOING))?;
        Ok(Duration::try_from_secs_f32(milliseconds / 1e3).unwrap_or_default())
    }

    fn synchronize_all(&self) -> Result<()> {
        const DOING: &str = "waiting for the GPU";
        let _guard = self.enter(DOING)?;
        result::ctx::synchronize().map_err(failed(DOING))
    }
}

impl Drop for CudaDriver {
    fn drop(&mut self) {
        let _guard = self.enter("closing the GPU");
        // SAFETY: all users of the kernels and the context hold this driver, so none is left.
        unsafe {
            let _ = result::module::unload(self.module);
            let _ = result::primary_ctx::release(self.device);
        }
    }
}
