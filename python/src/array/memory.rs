//! `Memory`: a pointer and its owner, which arrays and other libraries share.
//!
//! A batch, a vector or a file mapping owns the bytes; Python libraries get a pointer to them. A
//! [`Memory`] pairs the pointer with a reference-counted owner, so a view of a few bytes keeps the
//! whole allocation alive.
//!
//! As long as Python can reach the memory, any Python thread can write to it. Therefore this file
//! never creates a Rust reference to the bytes; it copies them through the pointer.

use std::any::Any;
use std::ptr::NonNull;
use std::sync::Arc;
use tensilo::DType;
use tensilo_data::{Batch, BatchMemory};

/// A range of memory and its owner. Clones share both.
///
/// While Python can reach the memory, this package copies through the pointer and creates no
/// references to the bytes.
#[derive(Clone)]
pub struct Memory {
    pointer: NonNull<u8>,
    byte_count: usize,
    is_writable: bool,
    /// Only keeps the memory alive.
    _owner: Arc<dyn Any + Send + Sync>,
}

const CACHE_LINE_BYTES: usize = 64;

#[derive(Clone, Copy)]
#[repr(align(64))]
struct CacheLine([u8; CACHE_LINE_BYTES]);

/// Keeps the memory of an allocator alive.
struct MemoryOwner(#[expect(dead_code, reason = "dropping it frees the memory")] Box<dyn BatchMemory>);

// SAFETY: the owner is `Send` and `Sync`, and the pointer is valid on every thread while it lives.
// Ordering the writes of several Python threads is up to the caller, as with any array.
unsafe impl Send for Memory {}
// SAFETY: see `Send`.
unsafe impl Sync for Memory {}

impl Memory {
    /// Copies bytes to memory that is aligned to a cache line.
    pub fn copied(bytes: &[u8]) -> Self {
        let mut lines = vec![CacheLine([0; CACHE_LINE_BYTES]); bytes.len().div_ceil(CACHE_LINE_BYTES)];
        for (line, bytes) in lines.iter_mut().zip(bytes.chunks(CACHE_LINE_BYTES)) {
            line.0.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
        }
        let pointer = NonNull::from(lines.as_mut_slice()).cast();
        Self { pointer, byte_count: bytes.len(), is_writable: true, _owner: Arc::new(lines) }
    }

    /// Takes ownership of memory from a batch allocator.
    pub fn from_batch_memory(mut memory: Box<dyn BatchMemory>) -> Self {
        let bytes = memory.bytes_mut();
        let (byte_count, pointer) = (bytes.len(), NonNull::from(bytes).cast());
        Self { pointer, byte_count, is_writable: true, _owner: Arc::new(MemoryOwner(memory)) }
    }

    /// Takes ownership of the memory of a vector.
    pub fn from_numbers(mut numbers: Vec<i64>) -> Self {
        let (pointer, byte_count) = (NonNull::from(numbers.as_mut_slice()).cast(), size_of_val(numbers.as_slice()));
        Self { pointer, byte_count, is_writable: true, _owner: Arc::new(numbers) }
    }

    /// Separates a batch from the memory of its values, which is returned column by column. The
    /// values must no longer be accessed through the batch.
    pub fn from_batch(mut batch: Batch) -> (Arc<Batch>, Vec<Self>) {
        let values = batch.columns_mut().iter_mut().map(|column| {
            let bytes = column.bytes_mut();
            (NonNull::from(&mut *bytes).cast(), bytes.len())
        });
        let values: Vec<(NonNull<u8>, usize)> = values.collect();
        let batch = Arc::new(batch);
        let memory = |(pointer, byte_count)| Self { pointer, byte_count, is_writable: true, _owner: batch.clone() };
        let memories = values.into_iter().map(memory).collect();
        (batch, memories)
    }

    /// Returns bytes of an owner as read-only memory.
    ///
    /// # Safety
    ///
    /// The bytes must neither move nor change while the owner lives.
    pub unsafe fn from_owner(bytes: &[u8], owner: Arc<dyn Any + Send + Sync>) -> Self {
        Self { pointer: NonNull::from(bytes).cast(), byte_count: bytes.len(), is_writable: false, _owner: owner }
    }

    /// Returns the address of the first byte.
    pub fn pointer(&self) -> *mut u8 {
        self.pointer.as_ptr()
    }

    pub fn byte_count(&self) -> usize {
        self.byte_count
    }

    pub fn is_writable(&self) -> bool {
        self.is_writable
    }

    /// Returns a range of the memory; `None` if it is out of bounds.
    pub fn slice(&self, start: usize, byte_count: usize) -> Option<Self> {
        let end = start.checked_add(byte_count)?;
        if end > self.byte_count {
            return None;
        }
        // SAFETY: `start` is at most `byte_count`, so the result is inside the same memory or at
        // its end.
        let pointer = unsafe { self.pointer.add(start) };
        Some(Self { pointer, byte_count, ..self.clone() })
    }

    /// Returns whether the memory overlaps another range.
    pub fn overlaps(&self, pointer: *const u8, byte_count: usize) -> bool {
        let (start, other) = (self.pointer.as_ptr().addr(), pointer.addr());
        start < other.saturating_add(byte_count) && other < start.saturating_add(self.byte_count)
    }

    /// Returns a copy of the current bytes.
    pub fn to_vec(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.append_to(&mut bytes);
        bytes
    }

    /// Appends a copy of the current bytes.
    pub fn append_to(&self, bytes: &mut Vec<u8>) {
        bytes.reserve(self.byte_count);
        // SAFETY: the memory has `byte_count` bytes, the vector has capacity for as many more, and
        // the two do not overlap. The copy initializes all bytes up to the new length.
        unsafe {
            let end = bytes.as_mut_ptr().add(bytes.len());
            std::ptr::copy_nonoverlapping(self.pointer.as_ptr(), end, self.byte_count);
            bytes.set_len(bytes.len() + self.byte_count);
        }
    }

    /// Reads the element at byte offset `start`; returns `None` if it is out of bounds.
    pub fn element(&self, start: usize, dtype: DType) -> Option<[u8; 8]> {
        let width = dtype.element_bytes();
        let mut bytes = [0; 8];
        if start.checked_add(width)? > self.byte_count || width > bytes.len() {
            return None;
        }
        // SAFETY: `width` bytes from `start` on are inside the memory, and `bytes` has room for
        // them.
        unsafe { std::ptr::copy_nonoverlapping(self.pointer.as_ptr().add(start), bytes.as_mut_ptr(), width) };
        Some(bytes)
    }
}
