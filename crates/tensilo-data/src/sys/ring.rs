//! Reads through an io_uring ring.
//!
//! The danger of io_uring is memory corruption: until a read completes, the kernel can write to its
//! destination at any time, whatever the program does in the meantime. So a call to [`Ring::read`]
//! owns the memory of its reads ([`InFlightReads`]). It returns the memory only after all reads
//! have completed, even if a callback panics. If it cannot wait for them, it leaks the memory and
//! marks the ring as broken.
//!
//! Invariant: the kernel never writes to memory that is borrowed, freed or reused.

use io_uring::{IoUring, opcode, types};
use std::io;
use std::ops::Range;
use std::os::fd::{AsRawFd, BorrowedFd};
use tensilo::source::ReadMemory;

/// The alignment of memory and offsets that suits every file opened with `O_DIRECT`.
const ALIGNMENT: usize = 4096;

/// A read of consecutive bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ReadAt {
    /// The offset in the file.
    pub offset: u64,
    /// The destination in the memory.
    pub buffer_range: Range<usize>,
}

/// A callback that gets the number of a read and the bytes that were read.
type OnComplete<'a> = dyn FnMut(usize, io::Result<&[u8]>) + 'a;

/// An io_uring ring.
///
/// [`Ring::read`] owns the memory that the kernel writes to, and returns it when all reads are
/// complete. If it cannot wait for them, it leaks the memory.
pub(crate) struct Ring {
    ring: IoUring,
    depth: usize,
    /// Whether waiting for the reads failed, so that some may still be in flight.
    is_broken: bool,
}

/// Memory for reads, aligned for any file.
#[derive(Default)]
pub(crate) struct AlignedMemory {
    memory: Vec<u8>,
    /// The offset of the first aligned byte.
    start: usize,
}

impl ReadMemory for AlignedMemory {
    fn bytes(&self) -> &[u8] {
        self.memory.get(self.start..).unwrap_or(&[])
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        self.memory.get_mut(self.start..).unwrap_or(&mut [])
    }

    fn reserve(&mut self, used: usize, bytes: usize) -> tensilo::Result<()> {
        if self.bytes().len() >= bytes {
            return Ok(());
        }
        let no_memory = |_| tensilo::Error::io("allocating memory for reads", io::ErrorKind::OutOfMemory.into());
        let needed = bytes.saturating_add(ALIGNMENT);
        let mut longer = Self::default();
        longer.memory.try_reserve_exact(needed).map_err(no_memory)?;
        longer.memory.resize(needed, 0);
        longer.start = longer.memory.as_ptr().align_offset(ALIGNMENT).min(ALIGNMENT);
        if let (Some(to), Some(from)) = (longer.bytes_mut().get_mut(..used), self.bytes().get(..used)) {
            to.copy_from_slice(from); // equal lengths
        }
        *self = longer;
        Ok(())
    }
}

impl Ring {
    /// Creates a ring for up to `depth` concurrent reads. Fails if the kernel does not support
    /// io_uring, or forbids it.
    pub(crate) fn new(depth: u32) -> io::Result<Self> {
        let ring = IoUring::builder().dontfork().build(depth)?;
        Ok(Self { ring, depth: usize::try_from(depth).unwrap_or(1), is_broken: false })
    }

    /// Reads from a file. Calls `on_complete` with the number and the bytes of each read as it
    /// completes. A read that extends past the end of the file has fewer bytes. Returns the memory
    /// unless it was leaked.
    ///
    /// The destinations of reads must ascend and must not overlap. Fails if they do not, if the
    /// memory is too short, or if the kernel accepts no more reads.
    pub(crate) fn read(
        &mut self,
        file: BorrowedFd<'_>,
        reads: &[ReadAt],
        memory: Box<dyn ReadMemory>,
        on_complete: &mut OnComplete<'_>,
    ) -> (Option<Box<dyn ReadMemory>>, io::Result<()>) {
        if self.is_broken {
            return (Some(memory), Err(io::ErrorKind::Unsupported.into()));
        }
        // moving a `Box` may invalidate earlier pointers to its content, so it is moved first
        let mut flight = InFlightReads { in_flight: 0, ring: self, base: std::ptr::null_mut(), memory: Some(memory) };
        let bytes = flight.memory.as_mut().map_or(&mut [][..], |memory| memory.bytes_mut());
        let (base, checked) = (bytes.as_mut_ptr(), check(reads, bytes.len()));
        flight.base = base;
        let read = checked.and_then(|()| flight.read_all(file, reads, on_complete));
        flight.drain();
        (flight.memory.take(), read)
    }

    /// Returns whether waiting for reads has failed, so that the ring can no longer be used.
    pub(crate) fn is_broken(&self) -> bool {
        self.is_broken
    }
}

/// Checks that the destinations of reads ascend and lie within memory of `bytes` bytes.
fn check(reads: &[ReadAt], bytes: usize) -> io::Result<()> {
    let mut end = 0;
    for ReadAt { buffer_range, .. } in reads {
        let is_short = u32::try_from(buffer_range.len()).is_ok_and(|length| length > 0);
        if buffer_range.start < end || buffer_range.end < buffer_range.start || buffer_range.end > bytes || !is_short {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        end = buffer_range.end;
    }
    Ok(())
}

/// Reads that may be in flight, and the memory that the kernel writes to.
struct InFlightReads<'r> {
    ring: &'r mut Ring,
    in_flight: usize,
    /// The first byte of the memory.
    base: *mut u8,
    memory: Option<Box<dyn ReadMemory>>,
}

impl InFlightReads<'_> {
    /// Submits all reads and waits for them. Their destinations are within the memory.
    fn read_all(&mut self, file: BorrowedFd<'_>, reads: &[ReadAt], on_complete: &mut OnComplete<'_>) -> io::Result<()> {
        let (depth, descriptor) = (self.ring.depth, types::Fd(file.as_raw_fd()));
        let mut next = 0;
        loop {
            while self.in_flight < depth {
                let Some(read) = reads.get(next) else { break };
                // SAFETY: `check` has verified that the destination is within the memory and
                // overlaps no other. `self` owns the memory, and waits for the read or leaks it.
                // `file` is borrowed until then.
                unsafe { self.push(descriptor, next, read) }?;
                next += 1;
            }
            if self.in_flight == 0 {
                return Ok(());
            }
            for (number, result) in self.wait()? {
                let Some(read) = reads.get(number) else { continue };
                let count = usize::try_from(result).map_err(|_| io::Error::from_raw_os_error(-result));
                let bytes = count.map(|count| {
                    // SAFETY: the destination is within the memory, and the read is complete. The
                    // kernel may write to other destinations at the same time, so there is no
                    // reference to the whole memory.
                    unsafe {
                        std::slice::from_raw_parts(
                            self.base.add(read.buffer_range.start),
                            count.min(read.buffer_range.len()),
                        )
                    }
                });
                on_complete(number, bytes);
            }
        }
    }

    /// Waits for the reads that are still in flight, or leaks the memory.
    fn drain(&mut self) {
        while self.in_flight > 0 {
            if self.wait().is_err() {
                std::mem::forget(self.memory.take());
                self.ring.is_broken = true;
                self.in_flight = 0;
            }
        }
    }

    /// Queues a read. The next wait submits it to the kernel.
    ///
    /// # Safety
    ///
    /// The destination is within the memory, and overlaps no other read in flight. The file stays
    /// open until the read completes.
    unsafe fn push(&mut self, file: types::Fd, number: usize, read: &ReadAt) -> io::Result<()> {
        // SAFETY: the caller promises that this is within the memory.
        let to = unsafe { self.base.add(read.buffer_range.start) };
        let length = u32::try_from(read.buffer_range.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
        // exact: usize has at most 64 bits
        let entry = opcode::Read::new(file, to, length).offset(read.offset).build().user_data(number as u64);
        // SAFETY: the caller promises that the file and the memory are valid until the read
        // completes.
        let pushed = unsafe { self.ring.ring.submission().push(&entry) };
        pushed.map_err(|_| io::Error::from(io::ErrorKind::WouldBlock))?;
        self.in_flight += 1;
        Ok(())
    }

    /// Submits queued reads, and waits until at least one read completes. Returns the numbers and
    /// results of all completed reads.
    fn wait(&mut self) -> io::Result<Vec<(usize, i32)>> {
        loop {
            match self.ring.ring.submit_and_wait(1) {
                Ok(_) => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        let done: Vec<(usize, i32)> = self
            .ring
            .ring
            .completion()
            .map(|entry| (usize::try_from(entry.user_data()).unwrap_or(usize::MAX), entry.result()))
            .collect();
        self.in_flight = self.in_flight.saturating_sub(done.len());
        Ok(done)
    }
}

impl Drop for InFlightReads<'_> {
    /// Waits for the reads even if `on_complete` panicked.
    fn drop(&mut self) {
        self.drain();
    }
}
