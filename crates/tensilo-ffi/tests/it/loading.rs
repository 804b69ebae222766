//! Loaders, their states, and values in the caller's memory.

use crate::support::*;
use std::ffi::{c_char, c_void};
use std::path::Path;
use std::ptr;
use std::slice;
use std::sync::atomic::{AtomicUsize, Ordering};
use tensilo::{ColumnSchema, DType, Profile, Schema, Shape, Value, Writer, WriterOptions};
use tensilo_ffi::*;
use tensilo_testing::Folder;

fn open_dataset(path: &Path) -> Handle<tensilo_dataset> {
    let (path, mut dataset) = (c_path(path), ptr::null_mut());
    // SAFETY: arguments as the header requires.
    done(|e| unsafe { tensilo_dataset_open(path.as_ptr(), ptr::null(), &raw mut dataset, e) });
    Handle(dataset, tensilo_dataset_close)
}

fn options(batch_size: u32) -> tensilo_loader_options {
    // SAFETY: zeros are a valid value.
    let mut options: tensilo_loader_options = unsafe { sized() };
    (options.batch_size, options.last_batch) = (batch_size, TENSILO_LAST_BATCH_EXACT);
    (options.order, options.decode_threads) = (TENSILO_ORDER_SHUFFLED, 2);
    options
}

fn new_loader(dataset: &Handle<tensilo_dataset>, options: &tensilo_loader_options) -> Handle<tensilo_loader> {
    let mut loader = ptr::null_mut();
    // SAFETY: arguments as the header requires.
    done(|e| unsafe { tensilo_loader_new(dataset.0, options, &raw mut loader, e) });
    Handle(loader, tensilo_loader_close)
}

fn begin(loader: &Handle<tensilo_loader>) -> Handle<tensilo_batches> {
    let mut batches = ptr::null_mut();
    // SAFETY: arguments as the header requires.
    done(|e| unsafe { tensilo_loader_begin(loader.0, 0, &raw mut batches, e) });
    Handle(batches, tensilo_batches_close)
}

/// Takes the next batch; `None` at the end.
fn next(batches: &Handle<tensilo_batches>) -> Option<Handle<tensilo_batch>> {
    let mut batch = ptr::null_mut();
    // SAFETY: arguments as the header requires.
    done(|e| unsafe { tensilo_batches_next(batches.0, &raw mut batch, e) });
    (!batch.is_null()).then_some(Handle(batch, tensilo_batch_close))
}

fn numbers(batch: &Handle<tensilo_batch>) -> Vec<u64> {
    // SAFETY: arguments as the header requires.
    unsafe {
        let mut info: tensilo_batch_info = sized();
        done(|e| tensilo_batch_get_info(batch.0, &raw mut info, e));
        slice::from_raw_parts(info.indices, info.sample_count).to_vec()
    }
}

fn column(batch: &Handle<tensilo_batch>, name: &str) -> tensilo_samples {
    let (name, mut index) = (c_text(name), 0);
    // SAFETY: arguments as the header requires.
    unsafe {
        let mut samples: tensilo_samples = sized();
        done(|e| tensilo_batch_find_column(batch.0, name.as_ptr(), &raw mut index, e));
        done(|e| tensilo_batch_get_samples(batch.0, index, &raw mut samples, e));
        samples
    }
}

#[test]
fn a_column_that_a_batch_lacks_is_unknown() {
    let folder = Folder::new();
    let dataset = open_dataset(&file(&folder, Profile::Balanced));
    let batch = next(&begin(&new_loader(&dataset, &options(64)))).unwrap();
    let (name, mut index) = (c_text("nothing"), 0);
    // SAFETY: arguments as the header requires.
    let (status, text) = refused(|e| unsafe { tensilo_batch_find_column(batch.0, name.as_ptr(), &raw mut index, e) });
    assert!(status == TENSILO_ERROR_UNKNOWN_COLUMN && text.contains("there is no column \"nothing\""), "{text}");
}

#[test]
fn another_loader_goes_on_with_a_state() {
    let folder = Folder::new();
    let dataset = open_dataset(&file(&folder, Profile::Balanced));
    let whole: Vec<u64> = {
        let batches = begin(&new_loader(&dataset, &options(64)));
        std::iter::from_fn(|| next(&batches)).flat_map(|batch| numbers(&batch)).collect()
    };
    let mut sorted = whole.clone();
    sorted.sort_unstable();
    assert!(sorted.into_iter().eq(0..SAMPLES) && whole[..3] != [0, 1, 2]);

    let mut state = [0_u8; TENSILO_STATE_BYTES];
    let mut taken = Vec::new();
    // SAFETY: arguments as the header requires.
    unsafe {
        let batches = begin(&new_loader(&dataset, &options(64)));
        let mut is_ready = false;
        done(|e| tensilo_batches_wait(batches.0, 60_000, &raw mut is_ready, e));
        assert!(is_ready);
        for _ in 0..3 {
            taken.extend(numbers(&next(&batches).unwrap()));
        }
        done(|e| tensilo_batches_get_state(batches.0, state.as_mut_ptr(), state.len(), e));
        let mut metrics: tensilo_metrics = sized();
        done(|e| tensilo_batches_get_metrics(batches.0, &raw mut metrics, e));
        assert!(metrics.batches == 3 && metrics.samples == 192 && !text(metrics.verdict).is_empty());
        let (status, _) = refused(|e| tensilo_batches_get_state(batches.0, state.as_mut_ptr(), 95, e));
        assert_eq!(status, TENSILO_ERROR_BAD_ARGUMENT);
    }
    // with another batch size
    let loader = new_loader(&dataset, &options(50));
    let mut batches = ptr::null_mut();
    // SAFETY: arguments as the header requires.
    done(|e| unsafe { tensilo_loader_resume(loader.0, state.as_ptr(), state.len(), &raw mut batches, e) });
    let batches = Handle(batches, tensilo_batches_close);
    taken.extend(std::iter::from_fn(|| next(&batches)).flat_map(|batch| numbers(&batch)));
    assert_eq!(taken, whole);

    state[60] ^= 1;
    let mut other = ptr::null_mut();
    // SAFETY: arguments as the header requires.
    let (status, _) =
        refused(|e| unsafe { tensilo_loader_resume(loader.0, state.as_ptr(), state.len(), &raw mut other, e) });
    assert!(status == TENSILO_ERROR_BAD_STATE && other.is_null());
}

#[test]
fn columns_are_chosen_cast_and_padded() {
    let folder = Folder::new();
    let dataset = open_dataset(&file(&folder, Profile::Raw));
    let (embedding, pitch, label) = (c_text("embedding"), c_text("pitch"), c_text("label"));
    let columns: [*const c_char; 3] = [pitch.as_ptr(), embedding.as_ptr(), label.as_ptr()];
    let casts = [tensilo_cast { column: embedding.as_ptr(), dtype: TENSILO_DTYPE_F64 }];
    let paddings = [tensilo_padding { column: pitch.as_ptr(), value: -1.0, multiple: 8 }];
    let mut options = options(10);
    options.order = TENSILO_ORDER_SEQUENTIAL;
    (options.columns, options.column_count) = (columns.as_ptr(), columns.len());
    (options.casts, options.cast_count) = (casts.as_ptr(), casts.len());
    (options.paddings, options.padding_count) = (paddings.as_ptr(), paddings.len());
    let batch = next(&begin(&new_loader(&dataset, &options))).unwrap(); // it needs no other handle
    // SAFETY: pointers and lengths of the library, whose batch lives.
    unsafe {
        let samples = column(&batch, "pitch");
        assert_eq!(slice::from_raw_parts(samples.tensor_extents, samples.tensor_ndim), [10, 8]);
        let values = slice::from_raw_parts(samples.values.cast::<f32>(), 80);
        assert_eq!(values[16..24], [0.0, 1.0, -1.0, -1.0, -1.0, -1.0, -1.0, -1.0]);
        let samples = column(&batch, "embedding");
        assert_eq!(samples.dtype, TENSILO_DTYPE_F64);
        let values = slice::from_raw_parts(samples.values.cast::<f64>(), 60);
        assert_eq!(values[6..12], [37.0, 38.0, 39.0, 40.0, 41.0, 42.0]);
        let samples = column(&batch, "label");
        assert_eq!((samples.null_count, *samples.validity), (2, 0b0111_1110));
        let schema = tensilo_batch_schema(batch.0);
        let mut info: tensilo_column_info = sized();
        done(|e| tensilo_schema_get_column(schema, 1, &raw mut info, e));
        assert!(text(info.name) == "embedding" && info.dtype == TENSILO_DTYPE_F64);
    }
}

/// Bytes that are allocated and not released yet.
static LENT_BYTES: AtomicUsize = AtomicUsize::new(0);

unsafe extern "C" fn allocate(user: *mut c_void, byte_count: usize) -> *mut c_void {
    assert_eq!(user, ptr::dangling_mut());
    LENT_BYTES.fetch_add(byte_count, Ordering::Relaxed);
    Box::into_raw(vec![0_u64; byte_count.div_ceil(8)].into_boxed_slice()).cast()
}

unsafe extern "C" fn release(_: *mut c_void, memory: *mut c_void, byte_count: usize) {
    LENT_BYTES.fetch_sub(byte_count, Ordering::Relaxed);
    // SAFETY: allocated by `allocate`, with this length.
    drop(unsafe { Box::from_raw(ptr::slice_from_raw_parts_mut(memory.cast::<u64>(), byte_count.div_ceil(8))) });
}

#[test]
fn values_are_in_memory_of_the_caller() {
    let folder = Folder::new();
    let dataset = open_dataset(&file(&folder, Profile::Balanced));
    let allocator = tensilo_allocator {
        struct_size: size_of::<tensilo_allocator>(),
        allocate: Some(allocate),
        release: Some(release),
        user: ptr::dangling_mut(),
    };
    let mut options = options(100);
    options.allocator = &raw const allocator;
    let batches = begin(&new_loader(&dataset, &options));
    let batch = next(&batches).unwrap();
    assert!(LENT_BYTES.load(Ordering::Relaxed) >= 100 * 24);
    let first = numbers(&batch)[0];
    // SAFETY: pointers and lengths of the library, whose batch lives.
    let values = unsafe { slice::from_raw_parts(column(&batch, "embedding").values.cast::<f32>(), 600) };
    assert_eq!(values[0], (first * 37 % 101) as f32);
    drop(batches);
    drop(batch);
    assert_eq!(LENT_BYTES.load(Ordering::Relaxed), 0, "all memory is released");
}

#[test]
fn any_samples_are_read_as_a_batch() {
    let folder = Folder::new();
    let dataset = open_dataset(&file(&folder, Profile::Balanced));
    let (mut reader, mut batch) = (ptr::null_mut(), ptr::null_mut());
    let (options, indices) = (options(1), [7_u64, 999, 7, 3]);
    // SAFETY: arguments as the header requires.
    unsafe {
        done(|e| tensilo_sample_reader_new(dataset.0, &raw const options, &raw mut reader, e));
        let reader = Handle(reader, tensilo_sample_reader_close);
        drop(dataset);
        done(|e| tensilo_sample_reader_take(reader.0, indices.as_ptr(), 4, &raw mut batch, e));
        let batch = Handle(batch, tensilo_batch_close);
        assert_eq!(numbers(&batch), indices);
        let words = column(&batch, "words");
        assert_eq!((words.level_count, words.sample_count, words.item_count), (1, 4, 6));
        let mut lists: tensilo_lists = sized();
        done(|e| tensilo_batch_get_lists(batch.0, 4, 0, &raw mut lists, e));
        assert_eq!(slice::from_raw_parts(lists.offsets, 5), [0, 0, 3, 3, 6]);
        assert_eq!(lists.null_count, 2);
        let mut other = ptr::null_mut();
        let (status, _) = refused(|e| tensilo_sample_reader_take(reader.0, [SAMPLES].as_ptr(), 1, &raw mut other, e));
        assert!(status == TENSILO_ERROR_BAD_ARGUMENT && other.is_null());
    }
}

/// The stored 150 means 1.50: a loader refuses to deliver it, a cursor reads the stored integer.
#[test]
fn the_integers_of_decimals_are_not_delivered() {
    let folder = Folder::new();
    let path = folder.path("a.tsl");
    let mut column = ColumnSchema::tensor("price", DType::I64, Shape::scalar());
    column.metadata.insert("arrow.type".to_owned(), "decimal64[12, 2]".to_owned());
    let mut writer = Writer::create(&path, Schema::new([column]), &WriterOptions::new()).unwrap();
    writer.push(&[Value::tensor(&[150_i64])]).unwrap();
    writer.finish().unwrap();
    let (dataset, options) = (open_dataset(&path), options(1));
    let (mut loader, mut reader) = (ptr::null_mut(), ptr::null_mut());
    // SAFETY: arguments as the header requires.
    unsafe {
        for (status, text) in [
            refused(|e| tensilo_loader_new(dataset.0, &raw const options, &raw mut loader, e)),
            refused(|e| tensilo_sample_reader_new(dataset.0, &raw const options, &raw mut reader, e)),
        ] {
            assert_eq!(status, TENSILO_ERROR_BAD_ARGUMENT);
            assert!(text.contains("decimal64[12, 2]") && text.contains("a cast to f64"), "{text}");
        }
    }
    let (cursor, buffer) = (open_cursor(&open_reader(&path, TENSILO_IO_AUTO), "price"), new_buffer());
    // SAFETY: arguments as the header requires.
    done(|e| unsafe { tensilo_cursor_fill_buffer(cursor.0, [0].as_ptr(), 1, buffer.0, e) });
}
