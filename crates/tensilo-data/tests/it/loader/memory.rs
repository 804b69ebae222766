//! Memory of batches: supplied by the caller, or reused by the loader.

use super::model::{check, create};
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tensilo_data::{BatchAllocator, BatchMemory, DataError, LoaderOptions, Order, Padding, View};
use tensilo_testing::Folder;

/// Memory that is counted.
struct LentMemory(Vec<u64>, usize, Arc<AtomicUsize>);

impl BatchMemory for LentMemory {
    fn bytes(&self) -> &[u8] {
        &bytemuck::cast_slice(&self.0)[..self.1]
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        &mut bytemuck::cast_slice_mut(&mut self.0)[..self.1]
    }
}

impl Drop for LentMemory {
    fn drop(&mut self) {
        self.2.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Allocates memory full of ones, longer than requested by a number of bytes.
#[derive(Default)]
pub struct Lender(Arc<AtomicUsize>, usize);

impl BatchAllocator for Lender {
    fn allocate(&self, byte_count: usize) -> Result<Box<dyn BatchMemory>, DataError> {
        self.0.fetch_add(1, Ordering::Relaxed);
        let bytes = byte_count + self.1;
        Ok(Box::new(LentMemory(vec![u64::MAX; bytes.div_ceil(8)], bytes, self.0.clone())))
    }
}

#[test]
fn values_are_in_memory_of_the_caller() {
    let folder = Folder::new();
    let view = View::all(&create(&folder.path("data")));
    let count = Arc::new(AtomicUsize::new(0));
    let options = LoaderOptions::new(16).order(Order::Shuffled);
    let loader = options.clone().allocator(Arc::new(Lender(count.clone(), 0))).loader(&view).unwrap();
    let mut retained = Vec::new();
    for batch in loader.epoch(0) {
        let mut batch = batch.unwrap();
        check(&batch, batch.indices());
        let expected: Vec<Vec<u8>> = batch.columns().iter().map(|column| column.bytes().to_vec()).collect();
        for (column, expected) in batch.columns_mut().iter_mut().zip(expected) {
            let memory = column.take_memory().expect("memory of the caller");
            assert_eq!(memory.bytes(), expected);
            assert!(column.take_memory().is_none());
            retained.push(memory);
        }
    }
    assert_eq!(count.load(Ordering::Relaxed), retained.len());
    drop(retained);
    assert_eq!(count.load(Ordering::Relaxed), 0);
    // dropped batches return their memory at once
    let loader = options.clone().allocator(Arc::new(Lender(count.clone(), 0))).loader(&view).unwrap();
    let mut batches = loader.epochs(0..3);
    assert!(batches.by_ref().all(|batch| batch.is_ok()));
    assert_eq!(count.load(Ordering::Relaxed), 0);
    let loader = options.allocator(Arc::new(Lender(count, 1))).loader(&view).unwrap();
    assert!(
        loader.epoch(0).all(|batch| batch.is_err_and(|error| error.to_string().contains("the allocator returned")))
    );
}

#[test]
fn memory_is_aligned_and_used_again() {
    let folder = Folder::new();
    let view = View::all(&create(&folder.path("data")));
    let options =
        LoaderOptions::new(16).order(Order::Shuffled).decode_threads(1).prefetch(2).columns(["vector", "tokens"]);
    let loader = options.pad("tokens", Padding::new().multiple(16)).loader(&view).unwrap();
    let (mut seen, mut batches) = (HashSet::new(), 0);
    for batch in loader.epochs(0..50) {
        for column in batch.unwrap().columns() {
            assert!(column.bytes().as_ptr().addr().is_multiple_of(4096));
            seen.insert(column.bytes().as_ptr().addr());
        }
        batches += 1;
    }
    assert!(batches == 450 && seen.len() <= 2 * 5, "{} addresses in {batches} batches", seen.len());
}
