//! Many reads of a file at the same time, by io_uring.

use io_uring::{IoUring, opcode, types};
use std::io;
use std::ops::Range;
use std::os::fd::{AsRawFd, BorrowedFd};
use tensilo::source::ReadMemory;

/// The alignment of memory and offsets that files opened with O_DIRECT ask for at most.
const ALIGNMENT: usize = 4096;

/// A read of consecutive bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ReadAt {
    /// The offset in the file.
    pub offset: u64,
    /// The place in the memory.
    pub buffer_range: Range<usize>,
}

/// A function that takes the number of a read, and what was read.
type OnComplete<'a> = dyn FnMut(usize, io::Result<&[u8]>) + 'a;

/// Reads in flight.
///
/// A read owns the memory that the kernel writes to, and returns it when all reads are done. If the
/// ring cannot wait for its reads, it leaks the memory, so that the kernel never writes to memory
/// that is reused.
pub(crate) struct Ring {
    ring: IoUring,
    depth: usize,
    /// Reads may be in flight that nobody waits for.
    is_broken: bool,
}

/// Memory for reads, aligned for any file.
#[derive(Default)]
pub(crate) struct AlignedMemory {
    memory: Vec<u8>,
    /// The first byte that is aligned.
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
        let no_memory = |_| tensilo::Error::io("making memory for reads", io::ErrorKind::OutOfMemory.into());
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
    /// Makes a ring for `depth` reads at the same time. Fails if the kernel does not have io_uring,
    /// or forbids it.
    pub(crate) fn new(depth: u32) -> io::Result<Self> {
        let ring = IoUring::builder().dontfork().build(depth)?;
        Ok(Self { ring, depth: usize::try_from(depth).unwrap_or(1), is_broken: false })
    }

    /// Reads from a file, and calls `on_complete` with the number of each read when it is done, and
    /// with what was read: fewer bytes at the end of the file. Returns the memory, unless it is
    /// leaked.
    ///
    /// The places of reads ascend and do not overlap. Fails if they do not, if the memory is too
    /// short, or if the kernel takes no more reads.
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
        // moving a `Box` may invalidate earlier pointers to its content, so it moves first
        let mut flight = InFlightReads { in_flight: 0, ring: self, base: std::ptr::null_mut(), memory: Some(memory) };
        let bytes = flight.memory.as_mut().map_or(&mut [][..], |memory| memory.bytes_mut());
        let (base, checked) = (bytes.as_mut_ptr(), check(reads, bytes.len()));
        flight.base = base;
        let read = checked.and_then(|()| flight.read_all(file, reads, on_complete));
        flight.drain();
        (flight.memory.take(), read)
    }

    /// Returns whether the ring could not wait for its reads: it is of no use any more.
    pub(crate) fn is_broken(&self) -> bool {
        self.is_broken
    }
}

/// Checks that the places of reads ascend and are inside of memory of `bytes` bytes.
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

/// Reads that the kernel may be doing, and the memory that it writes to.
struct InFlightReads<'r> {
    ring: &'r mut Ring,
    in_flight: usize,
    /// The first byte of the memory.
    base: *mut u8,
    memory: Option<Box<dyn ReadMemory>>,
}

impl InFlightReads<'_> {
    /// Does all reads. Their places are inside of the memory.
    fn read_all(&mut self, file: BorrowedFd<'_>, reads: &[ReadAt], on_complete: &mut OnComplete<'_>) -> io::Result<()> {
        let (depth, descriptor) = (self.ring.depth, types::Fd(file.as_raw_fd()));
        let mut next = 0;
        loop {
            while self.in_flight < depth {
                let Some(read) = reads.get(next) else { break };
                // SAFETY: `check` has found the place in the memory, and that it overlaps no other.
                // `self` owns the memory, and waits for the read or leaks it. `file` is borrowed
                // until then.
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
                    // SAFETY: the place is in the memory, and the read is done. The kernel writes
                    // to other places meanwhile, so there is no reference to the whole memory.
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

    /// Waits for all reads, if the kernel has refused one, or leaks the memory.
    fn drain(&mut self) {
        while self.in_flight > 0 {
            if self.wait().is_err() {
                std::mem::forget(self.memory.take());
                self.ring.is_broken = true;
                self.in_flight = 0;
            }
        }
    }

    /// Hands a read to the kernel.
    ///
    /// # Safety
    ///
    /// The place is in the memory, and no other read that is in flight has a part of
    /// it. The file stays open until the read is done.
    unsafe fn push(&mut self, file: types::Fd, number: usize, read: &ReadAt) -> io::Result<()> {
        // SAFETY: inside of the memory, by the caller's promise.
        let to = unsafe { self.base.add(read.buffer_range.start) };
        let length = u32::try_from(read.buffer_range.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
        // exact: usize has at most 64 bits
        let entry = opcode::Read::new(file, to, length).offset(read.offset).build().user_data(number as u64);
        // SAFETY: file and memory are valid until the read is done, by the caller's promise.
        let pushed = unsafe { self.ring.ring.submission().push(&entry) };
        pushed.map_err(|_| io::Error::from(io::ErrorKind::WouldBlock))?;
        self.in_flight += 1;
        Ok(())
    }

    /// Waits until a read is done. Returns those that are, and their results.
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
    /// `on_complete` may have panicked.
    fn drop(&mut self) {
        self.drain();
    }
}
