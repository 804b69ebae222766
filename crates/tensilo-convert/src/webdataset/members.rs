//! Reads the members of a tar archive, in order.
//!
//! Archives come from many programs, and the format has grown four ways to state a name, two to
//! state a size and four to store a sparse file. If a member were skipped, a sample would silently
//! lack a value. So every member that could belong to a sample is either read, or returned with the
//! reason why it cannot be read.
//!
//! The crate `tar` parses headers. Its iterator is not used, for three reasons: it stops at the
//! first block of zeros, although concatenated archives continue after it; it includes the table of
//! holes in the content of a sparse file; and it ignores PAX records that it cannot parse.

use super::sparse::{HoleTable, MAX_GROWTH, MAX_TABLE_BYTES, Segment, SparseMap, UNBOUNDED_BYTES, decimal, number};
use crate::stream::{ByteStream, MAX_VALUE_BYTES, cut_off, stream_error};
use std::io::{self, Read};
use tar::Header;
use tensilo::import::FormatFile;
use tensilo::{Error, Result};

const BLOCK: usize = 512;
const BLOCK_BYTES: u64 = 512;

/// The maximum size in bytes of a name, or of the PAX records of a member.
const MAX_RECORD_BYTES: u64 = 1 << 20;

/// The name of the archive in errors that do not concern a member.
const ARCHIVE: &str = "the archive";

/// Reads members front to back. Content that is not requested is skipped.
pub(super) struct Members {
    stream: ByteStream,
    /// The number of bytes read so far.
    position: u64,
    /// The offset of the next header.
    next: u64,
    /// The total size in bytes of the holes in all sparse files read so far.
    holes: u64,
    /// The name of the current member in errors; before the first member, [`ARCHIVE`].
    what: String,
}

/// A member that has content, or should have it.
pub(super) struct Member {
    pub path: String,
    form: Form,
}

enum Form {
    /// The number of bytes.
    Plain(u64),
    Sparse(SparseMap),
    /// The reason why the member cannot be read.
    Refused(String),
}

/// The bytes of a member, or the reason why it cannot be read.
pub(super) type Content = std::result::Result<Vec<u8>, String>;

/// Facts about a member that are stored in members before it.
#[derive(Default)]
struct ExtendedHeader {
    long_name: Option<Vec<u8>>,
    pax: Option<Pax>,
}

/// The relevant PAX records of a member.
#[derive(Default)]
struct Pax {
    path: Option<Vec<u8>>,
    size: Option<u64>,
    /// The records whose key begins with `GNU.sparse.`, without this prefix.
    sparse: Vec<(String, Vec<u8>)>,
}

impl Members {
    pub(super) fn open(file: &FormatFile) -> Result<Self> {
        Ok(Self { stream: ByteStream::open(file)?, position: 0, next: 0, holes: 0, what: ARCHIVE.to_owned() })
    }

    /// Advances to the next member. Skips directories, and the blocks of zeros at the end of an
    /// archive, because another archive can follow.
    ///
    /// The last call reads to the end of the file, where a compressed archive has its checksum.
    pub(super) fn next_member(&mut self) -> Result<Option<Member>> {
        let mut extended = ExtendedHeader::default();
        loop {
            self.skip_rest()?;
            let Some(header) = self.header()? else {
                let is_done = extended.long_name.is_none() && extended.pax.is_none();
                return if is_done { Ok(None) } else { Err(cut_off(ARCHIVE)) };
            };
            let kind = header.entry_type().as_byte();
            let stored = number(&header.as_old().size).ok_or_else(|| self.malformed("the size is not a number"))?;
            match kind {
                b'L' => extended.long_name = Some(self.record(stored)?),
                b'K' => drop(self.record(stored)?), // the target of a link
                b'x' | b'X' => extended.pax = Some(self.pax(stored)?),
                b'g' => {
                    let pax = self.pax(stored)?;
                    if pax.path.is_some() || pax.size.is_some() || !pax.sparse.is_empty() {
                        return Err(self.malformed("it sets names or sizes for all members that follow"));
                    }
                }
                _ => {
                    let member = self.member(&header, kind, stored, std::mem::take(&mut extended))?;
                    if let Some(member) = member {
                        return Ok(Some(member));
                    }
                }
            }
        }
    }

    /// Returns the member with this header, or `None` if members of its type never have content.
    fn member(&mut self, header: &Header, kind: u8, stored: u64, extended: ExtendedHeader) -> Result<Option<Member>> {
        let pax = extended.pax.unwrap_or_default();
        let stored = pax.size.unwrap_or(stored);
        let sparse_name = pax.sparse.iter().find(|(key, _)| key == "name").map(|(_, name)| name.clone());
        let path = sparse_name.or(pax.path).or(extended.long_name);
        let path = path.unwrap_or_else(|| header.path_bytes().into_owned());
        let path = String::from_utf8(path).map_err(|error| {
            let lossy = String::from_utf8_lossy(error.as_bytes()).into_owned();
            Error::bad_input(format!("the name {lossy:?} in the archive is not UTF-8"))
        })?;
        self.what = format!("{path:?} in the archive");
        // links, devices, folders and pipes have no bytes, regardless of their size field
        let has_bytes = !(b'1'..=b'6').contains(&kind);
        if kind == b'1' && stored > 0 {
            return Err(self.malformed("it is a hard link with content"));
        }
        let target = || String::from_utf8_lossy(&header.link_name_bytes().unwrap_or_default()).into_owned();
        let sparse = match kind {
            b'S' => Some(self.gnu_table(header)?),
            _ if !pax.sparse.is_empty() => Some(HoleTable::from_pax(&pax.sparse)),
            _ => None,
        };
        self.next = has_bytes.then_some(stored).and_then(|bytes| self.padded_end(bytes)).unwrap_or(self.position);
        if has_bytes && stored > 0 && self.next == self.position {
            return Err(self.malformed("the size exceeds 2^63"));
        }
        let form = match (kind, sparse) {
            (b'5' | b'D' | b'V', _) => return Ok(None),
            (b'M', _) => return Err(self.malformed("it is the continuation of a file in another archive")),
            (b'0' | b'7' | b'S', Some(table)) => match self.sparse_map(table, stored)? {
                Ok(map) => Form::Sparse(map),
                Err(reason) => Form::Refused(format!("it is a sparse file that cannot be read: {reason}")),
            },
            (b'0' | b'7', None) => Form::Plain(stored),
            (b'1', _) => Form::Refused(format!(
                "it is a hard link to {:?}; create the archive with tar --hard-dereference",
                target()
            )),
            (b'2', _) => Form::Refused(format!(
                "it is a symbolic link to {:?}; create the archive with tar --dereference",
                target()
            )),
            (b'3' | b'4' | b'6', _) => Form::Refused("it is a device or a named pipe".to_owned()),
            (kind, _) => Form::Refused(format!("it is a member of unknown type {:?}", char::from(kind))),
        };
        let size = match &form {
            Form::Plain(size) => *size,
            Form::Sparse(map) => map.size,
            Form::Refused(_) => 0,
        };
        Ok(Some(match size > MAX_VALUE_BYTES {
            true => Member { path, form: Form::Refused(format!("it has {size} bytes, more than {MAX_VALUE_BYTES}")) },
            false => Member { path, form },
        }))
    }

    /// Reads the content of the member that was returned last, at most `max_bytes` bytes. Memory is
    /// allocated only for bytes that are present, and for holes.
    pub(super) fn read(&mut self, member: Member, max_bytes: u64) -> Result<Content> {
        let mut bytes = Vec::new();
        match member.form {
            Form::Refused(reason) => return Ok(Err(reason)),
            Form::Plain(size) => self.take(size.min(max_bytes), &mut bytes)?,
            Form::Sparse(map) => {
                let size = map.size.min(max_bytes);
                if bytes.try_reserve_exact(usize::try_from(size).unwrap_or(usize::MAX)).is_err() {
                    return Ok(Err(format!("{size} bytes of memory cannot be allocated")));
                }
                for &Segment { offset, length } in &map.segments {
                    // the size is below 2^31
                    bytes.resize(usize::try_from(offset.min(size)).unwrap_or(0), 0);
                    self.take(length.min(size.saturating_sub(offset)), &mut bytes)?;
                }
                bytes.resize(usize::try_from(size).unwrap_or(0), 0);
            }
        }
        Ok(Ok(bytes))
    }

    /// Appends the next `count` bytes to `bytes`.
    fn take(&mut self, count: u64, bytes: &mut Vec<u8>) -> Result<()> {
        let read = (&mut self.stream).take(count).read_to_end(bytes);
        let read = read.map_err(|error| stream_error(&error, &self.what))?;
        let read = u64::try_from(read).unwrap_or(u64::MAX);
        self.position = self.position.saturating_add(read);
        if read == count { Ok(()) } else { Err(cut_off(&self.what)) }
    }

    /// Skips to the next header.
    fn skip_rest(&mut self) -> Result<()> {
        let rest = self.next.saturating_sub(self.position);
        let skipped = io::copy(&mut (&mut self.stream).take(rest), &mut io::sink());
        let skipped = skipped.map_err(|error| stream_error(&error, &self.what))?;
        self.position = self.position.saturating_add(skipped);
        if skipped == rest { Ok(()) } else { Err(cut_off(&self.what)) }
    }

    /// Reads the next header. Returns `None` at the end of the file.
    fn header(&mut self) -> Result<Option<Header>> {
        loop {
            let mut block = Vec::new();
            let read = (&mut self.stream).take(BLOCK_BYTES).read_to_end(&mut block);
            read.map_err(|error| stream_error(&error, ARCHIVE))?;
            let is_zero = block.iter().all(|byte| *byte == 0);
            let Ok(block) = <[u8; BLOCK]>::try_from(block) else {
                return if is_zero { Ok(None) } else { Err(cut_off(ARCHIVE)) };
            };
            (self.position, self.next) = (self.position + BLOCK_BYTES, self.position + BLOCK_BYTES);
            if is_zero {
                continue;
            }
            self.what = format!("the member at offset {} of the archive", self.position - BLOCK_BYTES);
            let header = Header::from_byte_slice(&block).clone();
            // old programs added up signed bytes
            let others = || block.iter().take(148).chain(block.iter().skip(156));
            let unsigned = others().map(|byte| i64::from(*byte)).sum::<i64>() + 8 * 32;
            let signed = others().map(|byte| i64::from(byte.cast_signed())).sum::<i64>() + 8 * 32;
            let checksum = number(&header.as_old().cksum).and_then(|sum| i64::try_from(sum).ok());
            if checksum != Some(unsigned) && checksum != Some(signed) {
                return Err(self.malformed("the checksum of its header is wrong, or other bytes follow the archive"));
            }
            return Ok(Some(header));
        }
    }

    /// Returns the offset after the next `bytes` bytes and their padding.
    fn padded_end(&self, bytes: u64) -> Option<u64> {
        let end = self.position.checked_add(bytes)?.checked_next_multiple_of(BLOCK_BYTES)?;
        (end < 1 << 63).then_some(end)
    }

    /// Reads the content of a member that describes the next member.
    fn record(&mut self, bytes: u64) -> Result<Vec<u8>> {
        if bytes > MAX_RECORD_BYTES {
            return Err(self.malformed(&format!("it has {bytes} bytes of metadata, more than {MAX_RECORD_BYTES}")));
        }
        self.next = self.padded_end(bytes).unwrap_or(self.position);
        let mut record = Vec::new();
        self.take(bytes, &mut record)?;
        // a name ends with a zero byte
        let end = record.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        record.truncate(end);
        Ok(record)
    }

    fn pax(&mut self, bytes: u64) -> Result<Pax> {
        let record = self.record(bytes)?;
        let mut pax = Pax::default();
        let records = pax_records(&record).ok_or_else(|| self.malformed("its PAX records are malformed"))?;
        for (key, value) in records {
            match (key, key.strip_prefix(b"GNU.sparse.")) {
                (b"path", _) => pax.path = Some(value.to_vec()),
                (b"size", _) => {
                    let size = str::from_utf8(value).ok().and_then(|size| size.parse().ok());
                    pax.size = Some(size.ok_or_else(|| self.malformed("the size is not a number"))?);
                }
                (_, Some(key)) => pax.sparse.push((String::from_utf8_lossy(key).into_owned(), value.to_vec())),
                _ => {}
            }
        }
        Ok(pax)
    }

    /// Reads the sparse map of a sparse file in GNU's old format, from its header and the
    /// blocks that follow.
    fn gnu_table(&mut self, header: &Header) -> Result<std::result::Result<HoleTable, String>> {
        const IN_HEADER: std::ops::Range<usize> = 386..482;
        let block = header.as_bytes();
        let Some(gnu) = header.as_gnu() else { return Ok(Err("its header is not in GNU format".to_owned())) };
        let mut table = block.get(IN_HEADER).unwrap_or_default().to_vec();
        let mut continues = gnu.is_extended();
        while continues {
            const IN_BLOCK: usize = 504;
            let mut block = Vec::new();
            self.take(BLOCK_BYTES, &mut block)?;
            continues = block.get(IN_BLOCK).is_some_and(|byte| *byte != 0);
            table.extend(block.into_iter().take(IN_BLOCK));
            if table.len() > MAX_TABLE_BYTES {
                return Err(self.malformed("its sparse map is too long"));
            }
        }
        Ok(HoleTable::from_gnu(&gnu.realsize, &table))
    }

    /// Reads the sparse map of a sparse file in version 1.0 of the POSIX format. The table
    /// precedes the data. It consists of decimal numbers, one per line; the first is the number of
    /// segments. It is padded to whole blocks.
    fn table_in_data(&mut self, stored: u64) -> Result<std::result::Result<Vec<u64>, String>> {
        let (mut text, mut lines, mut expected) = (Vec::new(), 0_usize, None);
        while expected.is_none_or(|expected| lines < expected) {
            let end = text.len() + BLOCK;
            if end > MAX_TABLE_BYTES || u64::try_from(end).is_ok_and(|end| end > stored) {
                return Ok(Err("its sparse map is truncated or too long".to_owned()));
            }
            self.take(BLOCK_BYTES, &mut text)?;
            let block = text.get(end - BLOCK..).unwrap_or_default();
            lines += block.iter().filter(|byte| **byte == b'\n').count();
            if expected.is_none() && lines > 0 {
                let count = text.split(|byte| *byte == b'\n').next().and_then(decimal);
                let expected_lines =
                    count.and_then(|count| usize::try_from(count).ok()?.checked_mul(2)?.checked_add(1));
                let Some(count) = expected_lines else { return Ok(Err("its sparse map is malformed".to_owned())) };
                expected = Some(count);
            }
        }
        let numbers = text.split(|byte| *byte == b'\n').take(expected.unwrap_or(0)).skip(1).map(decimal);
        Ok(numbers.collect::<Option<_>>().ok_or_else(|| "its sparse map is malformed".to_owned()))
    }

    /// Returns the map of a sparse file. The next `stored` bytes are its data, or its table of
    /// holes followed by its data.
    fn sparse_map(
        &mut self,
        table: std::result::Result<HoleTable, String>,
        stored: u64,
    ) -> Result<std::result::Result<SparseMap, String>> {
        let mut table = match table {
            Ok(table) => table,
            Err(reason) => return Ok(Err(reason)),
        };
        let start = self.position;
        if table.is_in_data {
            match self.table_in_data(stored)? {
                Ok(numbers) => table.numbers = numbers,
                Err(reason) => return Ok(Err(reason)),
            }
        }
        let read = self.position.saturating_sub(start);
        let data = stored.saturating_sub(read);
        let map = match SparseMap::new(&table, data) {
            Ok(map) => map,
            Err(reason) => return Ok(Err(reason)),
        };
        // each file is bounded, but an archive can have many
        let holes = self.holes.saturating_add(map.size.saturating_sub(data));
        let archive_bytes = self.position.saturating_add(data);
        if holes > UNBOUNDED_BYTES.saturating_add(archive_bytes.saturating_mul(MAX_GROWTH)) {
            return Ok(Err(format!(
                "the sparse files up to this one have {holes} bytes of holes, more than {MAX_GROWTH} times the size \
                 of the archive; create the archive without --sparse"
            )));
        }
        self.holes = holes;
        Ok(Ok(map))
    }

    fn malformed(&self, what: &str) -> Error {
        Error::bad_input(format!("{} is malformed or unsupported: {what}", self.what))
    }
}

/// Returns the keys and values of PAX records, or `None` if they are malformed.
fn pax_records(mut rest: &[u8]) -> Option<Vec<(&[u8], &[u8])>> {
    let mut records = Vec::new();
    while !rest.is_empty() {
        let space = rest.iter().position(|byte| *byte == b' ')?;
        let length = usize::try_from(decimal(rest.get(..space)?)?).ok()?;
        let record = rest.get(space + 1..length)?.strip_suffix(b"\n")?;
        let equals = record.iter().position(|byte| *byte == b'=')?;
        records.push((record.get(..equals)?, record.get(equals + 1..)?));
        rest = rest.get(length..)?;
    }
    Some(records)
}
