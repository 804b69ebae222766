//! Loaders: batches that threads read before they are asked for.

use crate::arguments::{array, fill, memory, options as read_options, shared};
use crate::batches::{copy_state, tensilo_batches};
use crate::call::{HandlePlace, call, close};
use crate::dataset::tensilo_dataset;
use crate::error::tensilo_error;
use crate::loader_options::{loader_options, tensilo_loader_options};
use crate::status::tensilo_status;
use crate::versioned::Output;
use tensilo_data::{Loader, State};

/// A loader: it delivers the batches of a rank, in an order that is the same on every machine.
///
/// Threads: any number may use a loader at the same time, but not while one closes it. It has no
/// threads itself; `tensilo_batches` has.
pub struct tensilo_loader(Loader);

/// Facts about a loader.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tensilo_loader_info {
    /// `sizeof(tensilo_loader_info)`, set by the caller.
    pub struct_size: usize,
    /// The number of batches of an epoch.
    pub batches_per_epoch: u64,
}

// SAFETY: `repr(C)`, and begins with its size.
unsafe impl Output for tensilo_loader_info {}

/// Makes a loader of a dataset. Starts no thread and opens no file. Close it with
/// `tensilo_loader_close`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tensilo_loader_new(
    dataset: *const tensilo_dataset,
    options: *const tensilo_loader_options,
    loader: *mut *mut tensilo_loader,
    error: *mut *mut tensilo_error,
) -> tensilo_status {
    // SAFETY: the caller keeps the rules of the header.
    unsafe {
        call(error, || {
            let place = HandlePlace::new(loader, "loader")?;
            let view = shared(dataset, "dataset")?.view();
            let options = loader_options(&read_options(options, "options")?, view)?;
            place.fill(tensilo_loader(options.loader(view)?));
            Ok(())
        })
    }
}

/// Closes a loader, and sets the pointer to NULL. Its iterators and batches stay. Does nothing if
/// `loader` or `*loader` is NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tensilo_loader_close(loader: *mut *mut tensilo_loader) {
    // SAFETY: the caller keeps the rules of the header.
    unsafe { close(loader) }
}

/// Gives facts about a loader.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tensilo_loader_get_info(
    loader: *const tensilo_loader,
    info: *mut tensilo_loader_info,
    error: *mut *mut tensilo_error,
) -> tensilo_status {
    // SAFETY: the caller keeps the rules of the header.
    unsafe {
        call(error, || {
            let batches_per_epoch = shared(loader, "loader")?.0.batches_per_epoch();
            fill(info, tensilo_loader_info { struct_size: 0, batches_per_epoch }, "info")
        })
    }
}

/// Begins an epoch, counted from 0: starts threads that read ahead. Close the iterator with
/// `tensilo_batches_close`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tensilo_loader_begin(
    loader: *const tensilo_loader,
    epoch: u64,
    batches: *mut *mut tensilo_batches,
    error: *mut *mut tensilo_error,
) -> tensilo_status {
    // SAFETY: the caller keeps the rules of the header.
    unsafe {
        call(error, || {
            let place = HandlePlace::new(batches, "batches")?;
            place.fill(tensilo_batches::new(shared(loader, "loader")?.0.epoch(epoch)));
            Ok(())
        })
    }
}

/// Goes on from a state to the end of its epoch: starts threads that read ahead. The batch size and
/// the number of ranks may differ from those before. Close the iterator with
/// `tensilo_batches_close`.
///
/// Fails with `TENSILO_BAD_STATE` if the state is damaged, or of another dataset, or if the loader
/// was told another order, seed or tail.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tensilo_loader_resume(
    loader: *const tensilo_loader,
    state: *const u8,
    state_bytes: usize,
    batches: *mut *mut tensilo_batches,
    error: *mut *mut tensilo_error,
) -> tensilo_status {
    // SAFETY: the caller keeps the rules of the header.
    unsafe {
        call(error, || {
            let place = HandlePlace::new(batches, "batches")?;
            let state = State::from_bytes(array(state, state_bytes, "state")?)?;
            place.fill(tensilo_batches::new(shared(loader, "loader")?.0.resume(&state)?));
            Ok(())
        })
    }
}

/// Writes the state at the begin of an epoch to `state`, which has `TENSILO_STATE_BYTES` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tensilo_loader_get_state(
    loader: *const tensilo_loader,
    epoch: u64,
    state: *mut u8,
    state_bytes: usize,
    error: *mut *mut tensilo_error,
) -> tensilo_status {
    // SAFETY: the caller keeps the rules of the header.
    unsafe {
        call(error, || {
            let found = shared(loader, "loader")?.0.state(epoch);
            copy_state(&found, memory(state, state_bytes, "state")?)
        })
    }
}
