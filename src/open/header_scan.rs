//! Scans a file for region headers at multiples of 64, without following any offset in the file.
//!
//! Two searches use this scan. Opening scans backwards from the end for the last trailer. Salvage
//! and verification scan forwards for the next region. A candidate is 64 bytes that start with the
//! magic bytes of a region. Few other bytes start this way, so checking the CRC of every candidate
//! is cheap.
//!
//! No byte is read twice, unless a read fails. A scan keeps the bytes of its last read in a
//! [`Window`], and examines all of them before it reads again. The first header examined is usually
//! the right one, so reads start short and grow. To skip unreadable sectors, the reads of a forward
//! scan end at a sector boundary, and a read that fails is repeated one sector at a time.

use super::source::{Source, fetch, slice};
use crate::bytes::le::u64_of;
use crate::format::region::{HEADER_BYTES, HEADER_LEN, RegionKind};
use crate::{Error, ErrorKind, Result};

/// The smallest unit that a disk reads, in bytes.
const SECTOR: u64 = 4 << 10;

/// The sizes in bytes of the reads of a scan, unless the file is in memory.
#[derive(Clone, Copy)]
pub(crate) struct ReadSizes {
    /// The first read: 64 if the first header examined is probably the right one.
    pub first: u64,
    /// The second read. Each read after it is twice as long.
    pub second: u64,
    /// The longest read.
    pub max: u64,
}

impl ReadSizes {
    fn after(self, read: u64) -> u64 {
        if read < self.second { self.second } else { read.saturating_mul(2).min(self.max) }
    }
}

/// 64 bytes that start with the magic bytes of a region header.
pub(crate) struct Candidate<'b> {
    pub kind: RegionKind,
    pub offset: u64,
    pub bytes: &'b [u8; HEADER_BYTES],
}

/// A scan for headers. Keeps the bytes of its last read.
///
/// Cost: one pass over the scanned bytes, and memory for the longest read, or none if the file is
/// in memory.
pub(crate) struct HeaderScan<'a> {
    source: &'a dyn Source,
    sizes: ReadSizes,
    window: Window,
    skips_unreadable: bool,
}

impl<'a> HeaderScan<'a> {
    pub(crate) fn new(source: &'a dyn Source, sizes: ReadSizes) -> Self {
        Self { source, sizes, window: Window::default(), skips_unreadable: false }
    }

    /// Skips sectors that cannot be read. By default, such a sector ends the scan with an error.
    pub(crate) fn skip_unreadable(mut self) -> Self {
        self.skips_unreadable = true;
        self
    }

    /// Returns the bytes from `start` to `end`, or to the end of the file if it comes first. Keeps
    /// them for the next scan.
    pub(crate) fn bytes(&mut self, start: u64, end: u64) -> Result<&[u8]> {
        self.window.until(self.source, start, end)
    }

    /// Calls `accept` with each candidate from `from`, a multiple of 64, to `end`, and returns the
    /// first result that is `Some`.
    pub(crate) fn first<T>(
        &mut self,
        from: u64,
        end: u64,
        mut accept: impl FnMut(Candidate<'_>) -> Option<T>,
    ) -> Result<Option<T>> {
        let mut at = from;
        let mut read_bytes = self.sizes.first;
        while at.saturating_add(HEADER_LEN) <= end {
            // reads end at a sector boundary, so an unreadable sector does not make bytes of its
            // neighbors unreadable
            let length = if read_bytes < SECTOR { read_bytes } else { read_bytes - at % SECTOR };
            let buffered = self.window.bytes_from(at) & !(HEADER_LEN - 1);
            let length = if buffered > 0 { buffered } else { length }.min(end - at) & !(HEADER_LEN - 1);
            match self.window.until(self.source, at, at.saturating_add(length)) {
                Ok(bytes) => {
                    if let Some(found) = candidates(at, bytes).find_map(&mut accept) {
                        return Ok(Some(found));
                    }
                    at = at.saturating_add(length);
                    read_bytes = self.sizes.after(read_bytes);
                }
                Err(error) if !self.skips_unreadable => return Err(error),
                Err(error) if !matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::Io) => return Err(error),
                Err(_) if read_bytes > SECTOR => read_bytes = SECTOR,
                Err(_) => {
                    at = at.saturating_add(length);
                    read_bytes = read_bytes.max(SECTOR);
                }
            }
        }
        Ok(None)
    }

    /// Calls `accept` with each candidate from `end` back to `from`, both multiples of 64, and
    /// returns the first result that is `Some`.
    pub(crate) fn last<T>(
        &mut self,
        from: u64,
        end: u64,
        mut accept: impl FnMut(Candidate<'_>) -> Option<T>,
    ) -> Result<Option<T>> {
        let mut end = end;
        let mut read_bytes = self.sizes.first;
        while end > from {
            let buffered = self.window.bytes_before(end) & !(HEADER_LEN - 1);
            let length = if buffered > 0 { buffered } else { read_bytes }.min(end - from);
            let start = end - length;
            let bytes = self.window.until(self.source, start, end)?;
            if let Some(found) = candidates(start, bytes).rev().find_map(&mut accept) {
                return Ok(Some(found));
            }
            end = start;
            read_bytes = self.sizes.after(read_bytes);
        }
        Ok(None)
    }
}

/// Returns the candidates in `bytes`, which are the bytes of the file from `start` on. `start` is a
/// multiple of 64.
fn candidates(start: u64, bytes: &[u8]) -> impl DoubleEndedIterator<Item = Candidate<'_>> {
    let headers = bytes.as_chunks::<HEADER_BYTES>().0.iter().enumerate();
    headers.filter_map(move |(number, bytes)| {
        let kind = RegionKind::of(bytes)?;
        let offset = start.saturating_add(u64_of(number).saturating_mul(HEADER_LEN));
        Some(Candidate { kind, offset, bytes })
    })
}

/// The range of the file that was read last. It is empty for a file in memory.
#[derive(Default)]
struct Window {
    start: u64,
    bytes: Vec<u8>,
}

impl Window {
    /// Returns the bytes from `start` to `end`, or to the end of the file if it comes first. Reads
    /// them if the window does not contain them.
    fn until<'b>(&'b mut self, source: &'b dyn Source, start: u64, end: u64) -> Result<&'b [u8]> {
        let length = usize::try_from(end.min(source.byte_count()).saturating_sub(start)).unwrap_or(usize::MAX);
        if let Some(file) = source.as_bytes() {
            return slice(file, start, length);
        }
        if self.get(start, length).is_none() {
            self.start = start;
            let fetched = fetch(source, start, length, &mut self.bytes).map(|_| ());
            fetched.inspect_err(|_| self.bytes.clear())?;
        }
        self.get(start, length).ok_or_else(|| Error::internal("the scan window lacks bytes that were just read"))
    }

    /// Returns the number of bytes in the window from `start` on.
    fn bytes_from(&self, start: u64) -> u64 {
        if start < self.start { 0 } else { self.end().saturating_sub(start) }
    }

    /// Returns the number of bytes in the window before `end`.
    fn bytes_before(&self, end: u64) -> u64 {
        if end > self.end() { 0 } else { end.saturating_sub(self.start) }
    }

    fn end(&self) -> u64 {
        self.start.saturating_add(u64_of(self.bytes.len()))
    }

    fn get(&self, start: u64, length: usize) -> Option<&[u8]> {
        let at = usize::try_from(start.checked_sub(self.start)?).ok()?;
        self.bytes.get(at..)?.get(..length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::open::InMemory;
    use crate::open::source::Source;
    use std::io;
    use std::sync::Mutex;

    /// A file that is not in memory. It records its reads. If `bad_sectors` is set, sector 1 cannot
    /// be read.
    struct Disk {
        bytes: Vec<u8>,
        bad_sectors: bool,
        reads: Mutex<Vec<(u64, usize)>>,
    }

    impl Source for Disk {
        fn byte_count(&self) -> u64 {
            u64_of(self.bytes.len())
        }

        fn read_exact_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
            self.reads.lock().unwrap().push((offset, out.len()));
            let bad = offset < 2 * SECTOR && offset + u64_of(out.len()) > SECTOR;
            if self.bad_sectors && bad {
                return Err(io::ErrorKind::Other.into());
            }
            InMemory(&self.bytes).read_exact_at(offset, out)
        }
    }

    const SIZES: ReadSizes = ReadSizes { first: HEADER_LEN, second: SECTOR, max: 16 << 10 };

    /// Forty sectors, with a candidate at each of these offsets.
    fn disk(offsets: &[usize], bad_sectors: bool) -> Disk {
        let mut bytes = vec![1; 40 << 12];
        offsets.iter().for_each(|&at| bytes[at..at + 4].copy_from_slice(b"TSLC"));
        Disk { bytes, bad_sectors, reads: Mutex::default() }
    }

    fn forwards(scan: &mut HeaderScan<'_>, end: u64) -> Vec<u64> {
        let mut found = Vec::new();
        let mut from = 0;
        while let Some(at) = scan.first(from, end, |candidate| Some(candidate.offset)).unwrap() {
            found.push(at);
            from = at + HEADER_LEN;
        }
        found
    }

    fn backwards(scan: &mut HeaderScan<'_>, from: u64, mut end: u64) -> Vec<u64> {
        let mut found = Vec::new();
        while let Some(at) = scan.last(from, end, |candidate| Some(candidate.offset)).unwrap() {
            found.push(at);
            end = at;
        }
        found
    }

    #[test]
    fn both_directions_find_the_same_in_memory_and_by_position() {
        let offsets = [0, 64, 4032, 4096, 8191, 40_000, 100_032, (40 << 12) - 64];
        let expected = [0, 64, 4032, 4096, 40_000, 100_032, (40 << 12) - 64];
        let disk = disk(&offsets, false);
        let memory = InMemory(disk.bytes.clone());
        let end = disk.byte_count();
        for source in [&disk as &dyn Source, &memory] {
            assert_eq!(forwards(&mut HeaderScan::new(source, SIZES), end), expected);
            let mut reversed = expected;
            reversed.reverse();
            assert_eq!(backwards(&mut HeaderScan::new(source, SIZES), 0, end), reversed);
        }
        let mut scan = HeaderScan::new(&memory, SIZES);
        assert_eq!(backwards(&mut scan, 64, (end - 1) & !63), [100_032, 40_000, 4096, 4032, 64]);
        assert_eq!(forwards(&mut scan, 4096 + 63), [0, 64, 4032], "a candidate must end before the end of the scan");
    }

    #[test]
    fn no_byte_is_read_twice_and_reads_grow() {
        let offsets: Vec<usize> = (0..600).map(|i| i * 256).collect();
        let disk = disk(&offsets, false);
        assert_eq!(forwards(&mut HeaderScan::new(&disk, SIZES), disk.byte_count()).len(), 600);
        let reads = std::mem::take(&mut *disk.reads.lock().unwrap());
        assert_eq!(reads.iter().map(|(_, bytes)| bytes).sum::<usize>(), 40 << 12);
        let empty = super::tests::disk(&[], false);
        assert_eq!(forwards(&mut HeaderScan::new(&empty, SIZES), empty.byte_count()), [0_u64; 0]);
        let sizes: Vec<usize> = empty.reads.lock().unwrap().iter().map(|(_, bytes)| *bytes).collect();
        assert_eq!(sizes[..4], [64, 4096 - 64, 8192, 16_384]);
    }

    #[test]
    fn an_unreadable_sector_costs_no_other() {
        let disk = disk(&[64, 4032, 4096, 8128, 8192, 40_000], true);
        let mut scan = HeaderScan::new(&disk, SIZES).skip_unreadable();
        assert_eq!(forwards(&mut scan, disk.byte_count()), [64, 4032, 8192, 40_000]);
        let error = HeaderScan::new(&disk, SIZES).first(4096, 8192, |_| Some(()));
        assert_eq!(error.unwrap_err().kind(), ErrorKind::Io);
    }
}
