//! Sparse files in a tar archive: segments of data between holes, which read as zeros.
//!
//! GNU tar writes them in four formats. The old format has a table of offsets and lengths in the
//! header. Versions 0.0 and 0.1 of the POSIX format have it in PAX records, and version 1.0 before
//! the data. In all formats, the segments follow one another, and each starts at a 512-byte block.
//!
//! A few bytes of an archive can describe a file of many gigabytes, so growth is bounded: see
//! [`MAX_GROWTH`].

/// The maximum size of a table in bytes.
pub(super) const MAX_TABLE_BYTES: usize = 16 << 20;

/// A file that is larger than this is refused if it exceeds [`MAX_GROWTH`] times its data.
/// Otherwise a block of the archive could claim gigabytes of memory. The holes of all files
/// together have the same bounds, relative to the size of the archive.
pub(super) const UNBOUNDED_BYTES: u64 = 16 << 20;
/// The maximum size of a large sparse file divided by the size of its data. Deflate compresses by
/// about this factor at most.
pub(super) const MAX_GROWTH: u64 = 1_024;

/// The size and the sparse map of a sparse file.
#[derive(Debug)]
pub(super) struct HoleTable {
    size: u64,
    /// The offset and the length of each segment, alternating.
    pub numbers: Vec<u64>,
    /// Whether the numbers are stored before the data, from where they must still be read.
    pub is_in_data: bool,
}

/// The size of a sparse file, and its segments of data. All other bytes are zero.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SparseMap {
    pub size: u64,
    /// In the order of offsets, without overlap.
    pub segments: Vec<Segment>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Segment {
    pub offset: u64,
    pub length: u64,
}

impl HoleTable {
    /// Parses the table of the old format, which consists of 12-byte fields.
    pub(super) fn from_gnu(size: &[u8], table: &[u8]) -> Result<Self, String> {
        const FIELD: usize = 12;
        let fields = table.as_chunks::<{ 2 * FIELD }>().0.iter().filter(|pair| pair.iter().any(|byte| *byte != 0));
        let numbers: Option<Vec<u64>> =
            fields.flat_map(|pair| pair.as_chunks::<FIELD>().0).map(|f| number(f)).collect();
        match (number(size), numbers) {
            (Some(size), Some(numbers)) => Ok(Self { size, numbers, is_in_data: false }),
            _ => Err(malformed()),
        }
    }

    /// Parses the table of the POSIX format, from the records that begin with `GNU.sparse.`.
    pub(super) fn from_pax(records: &[(String, Vec<u8>)]) -> Result<Self, String> {
        let value = |name: &str| records.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_slice());
        let size = value("realsize").or(value("size")).and_then(decimal).ok_or_else(malformed)?;
        let version = (value("major").unwrap_or(b"0"), value("minor").unwrap_or(b"0"));
        let numbers: Option<Vec<u64>> = match (version, value("map")) {
            ((b"1", b"0"), _) => return Ok(Self { size, numbers: Vec::new(), is_in_data: true }),
            ((b"0", _), Some(b"")) => Some(Vec::new()),
            ((b"0", _), Some(map)) => map.split(|byte| *byte == b',').map(decimal).collect(),
            ((b"0", _), None) => {
                let numbers = records.iter().filter(|(key, _)| key == "offset" || key == "numbytes");
                numbers.map(|(_, value)| decimal(value)).collect()
            }
            ((major, minor), _) => {
                let version = [major, b".", minor].concat();
                return Err(format!("version {:?} of the format is unknown", String::from_utf8_lossy(&version)));
            }
        };
        Ok(Self { size, numbers: numbers.ok_or_else(malformed)?, is_in_data: false })
    }
}

impl SparseMap {
    /// Makes the map of a file whose data takes `stored` bytes in the archive.
    pub(super) fn new(table: &HoleTable, stored: u64) -> Result<Self, String> {
        const BLOCK_BYTES: u64 = 512;
        let (pairs, rest) = table.numbers.as_chunks();
        if !rest.is_empty() {
            return Err(malformed());
        }
        let (mut segments, mut end, mut data) = (Vec::new(), 0_u64, 0_u64);
        for &[offset, length] in pairs {
            // the data of a segment begins at a block
            let is_aligned = length == 0 || data.is_multiple_of(BLOCK_BYTES);
            let next = offset.checked_add(length).filter(|next| *next <= table.size);
            let (Some(next), Some(sum)) = (next, data.checked_add(length)) else { return Err(malformed()) };
            if offset < end || !is_aligned {
                return Err(malformed());
            }
            (end, data) = (next, sum);
            segments.push(Segment { offset, length });
        }
        if data != stored {
            return Err(format!("its sparse map lists {data} bytes of data, but {stored} bytes are stored"));
        }
        let size = table.size;
        if size > UNBOUNDED_BYTES && size / MAX_GROWTH > stored {
            return Err(format!(
                "only {stored} of {size} bytes are stored, less than 1 in {MAX_GROWTH}; create the archive without \
                 --sparse"
            ));
        }
        Ok(Self { size, segments })
    }
}

fn malformed() -> String {
    "its sparse map is malformed".to_owned()
}

/// Parses the decimal number in a record.
pub(super) fn decimal(text: &[u8]) -> Option<u64> {
    str::from_utf8(text).ok()?.parse().ok()
}

/// Parses the number in a field of a header: octal digits, or a marker and a 64-bit binary number.
/// Returns `None` if it is malformed, negative or too large.
pub(super) fn number(field: &[u8]) -> Option<u64> {
    if let Some((first @ 0x80.., rest)) = field.split_first() {
        let (high_bytes, bits) = rest.split_last_chunk::<8>().or(match rest {
            // a field of 8 bytes
            &[a, b, c, d, e, f, g] => return (*first == 0x80).then(|| u64::from_be_bytes([0, a, b, c, d, e, f, g])),
            _ => None,
        })?;
        let is_small = *first == 0x80 && high_bytes.iter().all(|byte| *byte == 0);
        return is_small.then(|| u64::from_be_bytes(*bits));
    }
    let digits = field.split(|byte| *byte == 0).next().unwrap_or_default();
    match str::from_utf8(digits).ok()?.trim() {
        "" => Some(0),
        digits => u64::from_str_radix(digits, 8).ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_octal_or_binary() {
        assert_eq!(number(b"0000644\0"), Some(0o644));
        assert_eq!(number(b"   644 \0   "), Some(0o644));
        assert_eq!(number(&[0; 12]), Some(0));
        assert_eq!(number(b"\x80\0\0\0\0\0\0\x02\0\0\0\x01"), Some(0x2_0000_0001));
        for field in [&b"\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF"[..], b"\x80\0\0\x01\0\0\0\0\0\0\0\0", b"9\0"]
        {
            assert_eq!(number(field), None, "{field:?}");
        }
    }

    #[test]
    fn maps_that_contradict_themselves_are_refused() {
        let map = |numbers: &[u64], size, stored| {
            SparseMap::new(&HoleTable { size, numbers: numbers.to_vec(), is_in_data: false }, stored)
        };
        assert!(map(&[512, 512, 2_048, 5], 4_096, 517).is_ok());
        assert!(map(&[4_096, 0], 4_096, 0).is_ok());
        for (numbers, size, stored) in [
            (&[512, 512, 512, 5][..], 4_096, 517), // overlap
            (&[512, 5, 1_024, 5], 4_096, 10),      // not a whole block
            (&[512, 512], 1_000, 512),             // beyond the end
            (&[512, 512], 4_096, 511),
            (&[512], 4_096, 0),
            (&[u64::MAX, 2], u64::MAX, 2),
            (&[], 1 << 30, 0), // nothing bounds the size
        ] {
            assert!(map(numbers, size, stored).is_err(), "{numbers:?}");
        }
    }
}
