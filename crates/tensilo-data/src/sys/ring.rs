//! Many reads of a file at the same time, by io_uring.

use io_uring::{IoUring, opcode, types};
use std::io;
use std::ops::Range;
use std::os::fd::{AsRawFd, BorrowedFd};

/// The alignment of memory and offsets that files opened with O_DIRECT ask for at most.
const ALIGNMENT: usize = 4096;

/// A read of consecutive bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ReadAt {
    /// The offset in the file.
    pub offset: u64,
    /// The place in the memory of the ring.
    pub place: Range<usize>,
}

/// A function that takes the number of a read, and what was read.
type OnArrival<'a> = dyn FnMut(usize, io::Result<&[u8]>) + 'a;

/// Reads in flight, and the memory that they write to.
///
/// The memory is the ring's own: if it ever cannot wait for its reads, it leaks the memory, so that
/// the kernel never writes to any that is used again.
pub(crate) struct Ring {
    ring: IoUring,
    depth: usize,
    memory: Vec<u8>,
    /// The first byte of the memory that is aligned.
    start: usize,
    /// Reads may be in flight that nobody waits for.
    is_broken: bool,
}

impl Ring {
    /// Makes a ring for `depth` reads at the same time. Fails if the kernel does not have io_uring,
    /// or forbids it.
    pub(crate) fn new(depth: u32) -> io::Result<Self> {
        let ring = IoUring::builder().dontfork().build(depth)?;
        Ok(Self { ring, depth: usize::try_from(depth).unwrap_or(1), memory: Vec::new(), start: 0, is_broken: false })
    }

    /// Reads from a file, and calls `arrived` with the number of each read when it is done, and
    /// with what was read: fewer bytes at the end of the file.
    ///
    /// The places of reads ascend and do not overlap. Fails if they do not, or if the kernel takes
    /// no more reads.
    pub(crate) fn read(
        &mut self,
        file: BorrowedFd<'_>,
        reads: &[ReadAt],
        arrived: &mut OnArrival<'_>,
    ) -> io::Result<()> {
        if self.is_broken {
            return Err(io::ErrorKind::Unsupported.into());
        }
        self.reserve(reads)?;
        let (depth, descriptor) = (self.depth, types::Fd(file.as_raw_fd()));
        let mut flight = Flight { in_flight: 0, ring: self };
        let mut next = 0;
        loop {
            while flight.in_flight < depth {
                let Some(read) = reads.get(next) else { break };
                // SAFETY: `reserve` has checked that the place is in the memory and overlaps no
                // other. The memory is not moved, freed or touched there before the read is done:
                // `flight` waits for it or leaks the memory. `file` is borrowed as long as that.
                unsafe { flight.push(descriptor, next, read) }?;
                next += 1;
            }
            if flight.in_flight == 0 {
                return Ok(());
            }
            for (number, result) in flight.wait()? {
                let Some(read) = reads.get(number) else { continue };
                let count = usize::try_from(result).map_err(|_| io::Error::from_raw_os_error(-result));
                let bytes = count.map(|count| flight.ring.bytes(read, count));
                arrived(number, bytes);
            }
        }
    }

    /// Returns whether the ring could not wait for its reads: it is of no use any more.
    pub(crate) fn is_broken(&self) -> bool {
        self.is_broken
    }

    /// Checks the places of reads, and makes memory for them.
    fn reserve(&mut self, reads: &[ReadAt]) -> io::Result<()> {
        let mut end = 0;
        for ReadAt { place, .. } in reads {
            let is_short = u32::try_from(place.len()).is_ok_and(|length| length > 0);
            if place.start < end || place.end < place.start || !is_short {
                return Err(io::ErrorKind::InvalidInput.into());
            }
            end = place.end;
        }
        let needed = end.checked_add(ALIGNMENT).ok_or(io::ErrorKind::OutOfMemory)?;
        if self.memory.len() < needed {
            self.memory = Vec::new();
            self.memory.try_reserve_exact(needed).map_err(|_| io::ErrorKind::OutOfMemory)?;
            self.memory.resize(needed, 0);
            self.start = self.memory.as_ptr().align_offset(ALIGNMENT).min(ALIGNMENT);
        }
        Ok(())
    }

    /// Returns the bytes that a read has written, which is done.
    fn bytes(&self, read: &ReadAt, count: usize) -> &[u8] {
        let count = count.min(read.place.len());
        // SAFETY: `reserve` has checked that the place is in the memory. The kernel writes to other
        // places meanwhile, so there is no reference to the memory as a whole.
        unsafe { std::slice::from_raw_parts(self.memory.as_ptr().add(self.start).add(read.place.start), count) }
    }
}

/// Reads that the kernel may be doing.
struct Flight<'r> {
    ring: &'r mut Ring,
    in_flight: usize,
}

impl Flight<'_> {
    /// Hands a read to the kernel.
    ///
    /// # Safety
    ///
    /// The place is in the memory of the ring, and no other read that is in flight has a part of
    /// it. The file stays open until the read is done.
    unsafe fn push(&mut self, file: types::Fd, number: usize, read: &ReadAt) -> io::Result<()> {
        let Ring { ring, memory, start, .. } = &mut *self.ring;
        // SAFETY: inside of the memory, by the caller's promise.
        let to = unsafe { memory.as_mut_ptr().add(*start).add(read.place.start) };
        let length = u32::try_from(read.place.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
        // exact: usize has at most 64 bits
        let entry = opcode::Read::new(file, to, length).offset(read.offset).build().user_data(number as u64);
        // SAFETY: file and memory are valid until the read is done, by the caller's promise.
        let pushed = unsafe { ring.submission().push(&entry) };
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

impl Drop for Flight<'_> {
    /// Waits for all reads, if the kernel has refused one.
    fn drop(&mut self) {
        while self.in_flight > 0 {
            if self.wait().is_err() {
                std::mem::forget(std::mem::take(&mut self.ring.memory));
                self.ring.is_broken = true;
                self.in_flight = 0;
            }
        }
    }
}
