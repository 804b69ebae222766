//! Loaders and sample readers, and their options. A loader delivers batches in the order of an
//! epoch. A sample reader delivers batches of chosen samples.
//!
//! A [`tensilo_loader`] starts epochs and resumes them from a state. Threads read ahead only while
//! one of its iterators is open; see `batch.rs`. A [`tensilo_sample_reader`] reads the samples that
//! the caller chooses, without threads. Both take the same [`tensilo_loader_options`], in which
//! zero selects the default.

use crate::batch::{BatchSchema, copy_state, tensilo_batch, tensilo_batches};
use crate::boundary::call::{
    HandleSlot, array, call, close, exclusive, fill, flag, memory, options as read_options, shared, text, texts,
};
use crate::boundary::error::{Result, tensilo_error, tensilo_status};
use crate::boundary::values::{Options, Output};
use crate::dataset::tensilo_dataset;
use crate::lent_memory::{CallerAllocator, tensilo_allocator};
use crate::schema::{dtype_from_number, tensilo_dtype};
use std::ffi::c_char;
use std::sync::Arc;
use tensilo_data::{
    LastBatch, Loader, LoaderOptions, OnDamage, Order, Padding, SampleReader, State, View, WindowSizes,
};

/// How samples are shuffled.
pub type tensilo_order = u32;

/// Like `TENSILO_ORDER_WINDOWED`, with the sizes that the dataset records, or, when a loader
/// resumes, as recorded in the state.
pub const TENSILO_ORDER_DEFAULT: tensilo_order = 0;
/// Runs of consecutive samples are shuffled first, then the samples within each window of runs. So
/// files are read in long ranges.
pub const TENSILO_ORDER_WINDOWED: tensilo_order = 1;
/// Any sample may follow any other.
pub const TENSILO_ORDER_SHUFFLED: tensilo_order = 2;
/// Samples are in the order of the dataset.
pub const TENSILO_ORDER_SEQUENTIAL: tensilo_order = 3;

/// How an epoch ends.
pub type tensilo_last_batch = u32;

/// Like `TENSILO_LAST_BATCH_DROP`, or, when a loader resumes, as recorded in the state.
pub const TENSILO_LAST_BATCH_DEFAULT: tensilo_last_batch = 0;
/// The last samples are dropped if they do not fill a batch for each rank.
pub const TENSILO_LAST_BATCH_DROP: tensilo_last_batch = 1;
/// Samples from the start of the epoch are repeated to fill the last batches.
pub const TENSILO_LAST_BATCH_PAD: tensilo_last_batch = 2;
/// Each sample is delivered once. The last batches can be smaller.
pub const TENSILO_LAST_BATCH_EXACT: tensilo_last_batch = 3;

/// How a loader treats damaged samples.
pub type tensilo_on_damage = u32;

/// Reading the batch fails.
pub const TENSILO_ON_DAMAGE_ERROR: tensilo_on_damage = 0;
/// Other samples replace damaged ones. All ranks choose the same replacements.
pub const TENSILO_ON_DAMAGE_SUBSTITUTE: tensilo_on_damage = 1;

/// A conversion of a column to another type.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tensilo_cast {
    /// The name of the column.
    pub column: *const c_char,
    /// The new type. Floats can be cast to any float type; a cast to a narrower type rounds to
    /// nearest, with ties to even. Integers of at most 2 bytes and bools can be cast to `float`,
    /// and integers of 4 bytes to `double`. Integers and bools can be cast to wider integers that
    /// represent all of their values.
    pub dtype: tensilo_dtype,
}

/// The padding of a column, which turns samples of different shapes into one tensor.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tensilo_padding {
    /// The name of the column.
    pub column: *const c_char,
    /// The value of added elements.
    pub value: f64,
    /// Varying extents are rounded up to a multiple of this number; 0 means 1.
    pub multiple: u32,
}

/// The options of a loader. Zero in each member selects the default, but `batch_size` must be set.
/// The call that takes the options copies everything they point to.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tensilo_loader_options {
    /// `sizeof(tensilo_loader_options)`, set by the caller.
    pub struct_size: usize,
    /// The number of samples in a batch of this rank.
    pub batch_size: u32,
    /// The number of this rank, counted from 0.
    pub rank: u32,
    /// The number of ranks; 0 means 1.
    pub world_size: u32,
    /// How samples are shuffled.
    pub order: tensilo_order,
    /// The number of samples in a run of `TENSILO_ORDER_WINDOWED`; 0 selects the size that the
    /// dataset records.
    pub run_samples: u32,
    /// The number of runs in a window of `TENSILO_ORDER_WINDOWED`; 0 selects the size that the
    /// dataset records.
    pub window_runs: u32,
    /// The number of streams of `TENSILO_ORDER_WINDOWED`, a power of two up to 1024; 0 selects the
    /// number that the dataset records.
    pub streams: u32,
    /// How an epoch ends.
    pub last_batch: tensilo_last_batch,
    /// How damaged samples are treated.
    pub on_damage: tensilo_on_damage,
    /// The seed of the order, if `has_seed` is 1. Otherwise, the seed is 0 or, if a loader resumes,
    /// the seed in the state.
    pub seed: u64,
    /// Whether `seed` is set: 0 or 1.
    pub has_seed: u32,
    /// The maximum number of threads that decode at the same time; 0 means one less than the number
    /// of CPUs, but at least 1. Raise this number if `tensilo_metrics` shows more time for
    /// decoding than for fetching.
    pub decode_threads: u32,
    /// The number of batches that are fetched at the same time; 0 means the number of decode
    /// threads, but at least 4 for objects in a store. Raise this number for storage with a high
    /// latency.
    pub io_depth: u32,
    /// The prefetch depth: the maximum number of batches that are ready or in progress; 0 means
    /// twice the I/O depth. Raise this number if the duration of steps or of reads varies a lot.
    pub prefetch: u32,
    /// The names of `column_count` columns; NULL for all. Intervals, and decimals with a scale or
    /// with more than 18 digits, are refused, because their stored elements are not their values.
    pub columns: *const *const c_char,
    /// The number of columns.
    pub column_count: usize,
    /// The `cast_count` casts.
    pub casts: *const tensilo_cast,
    /// The number of casts.
    pub cast_count: usize,
    /// The `padding_count` paddings.
    pub paddings: *const tensilo_padding,
    /// The number of paddings.
    pub padding_count: usize,
    /// Allocates the caller's memory for values, such as pinned memory; NULL for library memory.
    pub allocator: *const tensilo_allocator,
}

// SAFETY: `repr(C)`, and starts with its size.
unsafe impl Output for tensilo_loader_options {}
// SAFETY: integers and pointers only.
unsafe impl Options for tensilo_loader_options {}

fn order(given: &tensilo_loader_options, view: &View) -> Result<Option<Order>> {
    let sizes = || {
        let recorded_sizes = view.datasets().first().map(tensilo_data::Dataset::window_sizes);
        let or = |given, recorded: fn(WindowSizes) -> u32| match given {
            0 => recorded_sizes.map_or(0, recorded),
            given => given,
        };
        WindowSizes::new(
            or(given.run_samples, WindowSizes::run_samples),
            or(given.window_runs, WindowSizes::window_runs),
        )?
        .with_streams(or(given.streams, WindowSizes::streams))
    };
    let is_sized = given.run_samples > 0 || given.window_runs > 0 || given.streams > 0;
    match given.order {
        TENSILO_ORDER_DEFAULT if !is_sized => Ok(None),
        TENSILO_ORDER_DEFAULT | TENSILO_ORDER_WINDOWED => Ok(Some(Order::Windowed(sizes()?))),
        TENSILO_ORDER_SHUFFLED | TENSILO_ORDER_SEQUENTIAL if is_sized => {
            Err(tensilo_error::bad_argument("run_samples, window_runs and streams need TENSILO_ORDER_WINDOWED"))
        }
        TENSILO_ORDER_SHUFFLED => Ok(Some(Order::Shuffled)),
        TENSILO_ORDER_SEQUENTIAL => Ok(Some(Order::Sequential)),
        other => Err(tensilo_error::bad_argument(format!("{other} is not a valid tensilo_order"))),
    }
}

fn last_batch(number: tensilo_last_batch) -> Result<Option<LastBatch>> {
    match number {
        TENSILO_LAST_BATCH_DEFAULT => Ok(None),
        TENSILO_LAST_BATCH_DROP => Ok(Some(LastBatch::Drop)),
        TENSILO_LAST_BATCH_PAD => Ok(Some(LastBatch::Pad)),
        TENSILO_LAST_BATCH_EXACT => Ok(Some(LastBatch::Exact)),
        other => Err(tensilo_error::bad_argument(format!("{other} is not a valid tensilo_last_batch"))),
    }
}

fn on_damage(number: tensilo_on_damage) -> Result<OnDamage> {
    match number {
        TENSILO_ON_DAMAGE_ERROR => Ok(OnDamage::Error),
        TENSILO_ON_DAMAGE_SUBSTITUTE => Ok(OnDamage::Substitute),
        other => Err(tensilo_error::bad_argument(format!("{other} is not a valid tensilo_on_damage"))),
    }
}

/// Returns the options for a loader of a view.
///
/// # Safety
///
/// All pointers in `given` are valid as `tensilo.h` requires.
unsafe fn loader_options(given: &tensilo_loader_options, view: &View) -> Result<LoaderOptions> {
    let count = |count: u32| usize::try_from(count).unwrap_or(usize::MAX);
    let mut options = LoaderOptions::new(given.batch_size)
        .rank(given.rank, given.world_size.max(1))
        .on_damage(on_damage(given.on_damage)?)
        .decode_threads(count(given.decode_threads))
        .io_depth(count(given.io_depth))
        .prefetch(count(given.prefetch));
    if let Some(order) = order(given, view)? {
        options = options.order(order);
    }
    if let Some(last_batch) = last_batch(given.last_batch)? {
        options = options.last_batch(last_batch);
    }
    if flag(given.has_seed, "has_seed")? {
        options = options.seed(given.seed);
    }
    // SAFETY: the caller's promise, here and below.
    unsafe {
        if !given.columns.is_null() || given.column_count > 0 {
            options = options.columns(texts(given.columns, given.column_count, "columns")?);
        }
        for cast in array(given.casts, given.cast_count, "casts")? {
            options = options.cast(text(cast.column, "the column of a cast")?, dtype_from_number(cast.dtype)?);
        }
        for padding in array(given.paddings, given.padding_count, "paddings")? {
            let how = Padding::new().value(padding.value).multiple(padding.multiple.max(1));
            options = options.pad(text(padding.column, "the column of a padding")?, how);
        }
        if let Some(memory) = CallerAllocator::from_caller(given.allocator)? {
            options = options.allocator(Arc::new(memory));
        }
    }
    Ok(options)
}

/// A loader delivers the batches of a rank, in an order that is the same on every machine.
///
/// Threads: any number may use a loader at the same time, but not while it is being closed. It has
/// no threads of its own; `tensilo_batches` does.
pub struct tensilo_loader(Loader);

/// Facts about a loader.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tensilo_loader_info {
    /// `sizeof(tensilo_loader_info)`, set by the caller.
    pub struct_size: usize,
    /// The number of batches in an epoch.
    pub batches_per_epoch: u64,
}

// SAFETY: `repr(C)`, and starts with its size.
unsafe impl Output for tensilo_loader_info {}

/// Creates a loader for a dataset, without starting threads or opening files. Close it with
/// `tensilo_loader_close`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tensilo_loader_new(
    dataset: *const tensilo_dataset,
    options: *const tensilo_loader_options,
    loader: *mut *mut tensilo_loader,
    error: *mut *mut tensilo_error,
) -> tensilo_status {
    // SAFETY: the caller upholds the rules in `tensilo.h`.
    unsafe {
        call(error, || {
            let slot = HandleSlot::new(loader, "loader")?;
            let view = shared(dataset, "dataset")?.view();
            let options = loader_options(&read_options(options, "options")?, view)?;
            slot.fill(tensilo_loader(options.loader(view)?));
            Ok(())
        })
    }
}

/// Closes a loader and sets the pointer to NULL. Its iterators and batches stay valid. Does nothing
/// if `loader` or `*loader` is NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tensilo_loader_close(loader: *mut *mut tensilo_loader) {
    // SAFETY: the caller upholds the rules in `tensilo.h`.
    unsafe { close(loader) }
}

/// Fills `info` with facts about a loader.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tensilo_loader_get_info(
    loader: *const tensilo_loader,
    info: *mut tensilo_loader_info,
    error: *mut *mut tensilo_error,
) -> tensilo_status {
    // SAFETY: the caller upholds the rules in `tensilo.h`.
    unsafe {
        call(error, || {
            let batches_per_epoch = shared(loader, "loader")?.0.batches_per_epoch();
            fill(info, tensilo_loader_info { struct_size: 0, batches_per_epoch }, "info")
        })
    }
}

/// Starts epoch number `epoch`, counted from 0, and threads that read ahead. Close the iterator
/// with `tensilo_batches_close`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tensilo_loader_begin(
    loader: *const tensilo_loader,
    epoch: u64,
    batches: *mut *mut tensilo_batches,
    error: *mut *mut tensilo_error,
) -> tensilo_status {
    // SAFETY: the caller upholds the rules in `tensilo.h`.
    unsafe {
        call(error, || {
            let slot = HandleSlot::new(batches, "batches")?;
            slot.fill(tensilo_batches::new(shared(loader, "loader")?.0.epoch(epoch)));
            Ok(())
        })
    }
}

/// Continues from a state to the end of its epoch, and starts threads that read ahead. The job that
/// saved the state may have had a different batch size and number of ranks. Close the iterator with
/// `tensilo_batches_close`.
///
/// Fails with `TENSILO_ERROR_BAD_STATE` if the state is damaged or belongs to a different dataset,
/// or if the options of the loader set a different order, seed or `last_batch`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tensilo_loader_resume(
    loader: *const tensilo_loader,
    state: *const u8,
    state_bytes: usize,
    batches: *mut *mut tensilo_batches,
    error: *mut *mut tensilo_error,
) -> tensilo_status {
    // SAFETY: the caller upholds the rules in `tensilo.h`.
    unsafe {
        call(error, || {
            let slot = HandleSlot::new(batches, "batches")?;
            let state = State::from_bytes(array(state, state_bytes, "state")?)?;
            slot.fill(tensilo_batches::new(shared(loader, "loader")?.0.resume(&state)?));
            Ok(())
        })
    }
}

/// Writes the state at the start of an epoch to `state`, which is `TENSILO_STATE_BYTES` bytes long.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tensilo_loader_get_state(
    loader: *const tensilo_loader,
    epoch: u64,
    state: *mut u8,
    state_bytes: usize,
    error: *mut *mut tensilo_error,
) -> tensilo_status {
    // SAFETY: the caller upholds the rules in `tensilo.h`.
    unsafe {
        call(error, || {
            let found = shared(loader, "loader")?.0.state(epoch);
            copy_state(&found, memory(state, state_bytes, "state")?)
        })
    }
}

/// A sample reader reads batches of any samples of a dataset. It has no threads, and keeps files
/// open.
///
/// Threads: one at a time; give each thread its own reader.
pub struct tensilo_sample_reader {
    reader: SampleReader,
    schema: BatchSchema,
}

/// Creates a reader for any samples of a dataset. It uses the columns, casts, paddings and
/// allocator of `options`, whose `batch_size` must be at least 1. Close it with
/// `tensilo_sample_reader_close`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tensilo_sample_reader_new(
    dataset: *const tensilo_dataset,
    options: *const tensilo_loader_options,
    reader: *mut *mut tensilo_sample_reader,
    error: *mut *mut tensilo_error,
) -> tensilo_status {
    // SAFETY: the caller upholds the rules in `tensilo.h`.
    unsafe {
        call(error, || {
            let slot = HandleSlot::new(reader, "reader")?;
            let view = shared(dataset, "dataset")?.view();
            let options = loader_options(&read_options(options, "options")?, view)?;
            slot.fill(tensilo_sample_reader { reader: options.reader(view)?, schema: BatchSchema::default() });
            Ok(())
        })
    }
}

/// Reads `count` samples in the order of `indices`. Indices may repeat. Close the batch with
/// `tensilo_batch_close`.
///
/// Cost: reads each sample into memory that is reused after the batch is closed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tensilo_sample_reader_take(
    reader: *mut tensilo_sample_reader,
    indices: *const u64,
    count: usize,
    batch: *mut *mut tensilo_batch,
    error: *mut *mut tensilo_error,
) -> tensilo_status {
    // SAFETY: the caller upholds the rules in `tensilo.h`.
    unsafe {
        call(error, || {
            let slot = HandleSlot::new(batch, "batch")?;
            let tensilo_sample_reader { reader, schema } = exclusive(reader, "reader")?;
            slot.fill(schema.batch(reader.take(array(indices, count, "indices")?)?));
            Ok(())
        })
    }
}

/// Closes a reader and sets the pointer to NULL. Its batches stay valid. Does nothing if `reader`
/// or `*reader` is NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tensilo_sample_reader_close(reader: *mut *mut tensilo_sample_reader) {
    // SAFETY: the caller upholds the rules in `tensilo.h`.
    unsafe { close(reader) }
}
