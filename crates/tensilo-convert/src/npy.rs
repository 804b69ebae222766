//! NumPy files: `.npy`, a single array, and `.npz`, a zip archive of arrays.
//!
//! The first axis of an array is the sample axis. An array file becomes one column, and an archive
//! one column for each array. A header is a Python literal. Only the literals that headers contain
//! are parsed: strings, integers, booleans, tuples, lists and dictionaries. The crates `npyz` and
//! `py_literal` parse the same literals, but need a generated parser and big integers, and allocate
//! as much memory as a header claims.

use crate::stream::{read_error, stream_error};
use crate::tensor::{ArchiveStream, ColumnBytes, FormatOptions, Order, TensorColumn, TensorTable};
use flate2::read::DeflateDecoder;
use std::io::{Read, Seek, SeekFrom};
use tensilo::import::{FormatFile, InputFormat, InputReader, RecordSource};
use tensilo::{DType, Error, Result};
use zip::read::ZipFile;
use zip::{CompressionMethod, ZipArchive};

/// The name of the only column. It is constant, because several files can be concatenated only if
/// they have the same columns.
const COLUMN: &str = "array";

/// NumPy array files.
pub(crate) struct Npy;

impl InputFormat for Npy {
    fn name(&self) -> &str {
        "NumPy arrays (.npy)"
    }

    fn open(&self, file: &FormatFile) -> Result<Option<Box<dyn RecordSource>>> {
        let mut first = Vec::new();
        let read = file.reader()?.take(6).read_to_end(&mut first);
        read.map_err(read_error)?;
        if first != MAGIC {
            return Ok(None);
        }
        let mut reader = file.reader()?;
        let header = NpyHeader::read(&mut reader)?;
        let bytes = ColumnBytes::Plain { file: file.clone(), offset: header.byte_count };
        let column = column(COLUMN, &header, bytes)?;
        let rest = reader.byte_count().saturating_sub(header.byte_count);
        check_length(&column, &header, rest)?;
        Ok(Some(Box::new(TensorTable::new(vec![(COLUMN.to_owned(), Ok(column))], [], "")?)))
    }
}

/// Returns the column of an array.
fn column(name: &str, header: &NpyHeader, bytes: ColumnBytes) -> Result<TensorColumn> {
    let column = TensorColumn::new(name, header.dtype, &header.extents, bytes)?;
    Ok(TensorColumn { is_swapped: header.is_swapped, order: header.order, ..column })
}

/// Refuses an array with fewer or more bytes than its shape implies.
fn check_length(column: &TensorColumn, header: &NpyHeader, found: u64) -> Result<()> {
    if column.byte_count() == Some(found) {
        return Ok(());
    }
    let expected = column.byte_count().unwrap_or(u64::MAX); // checked earlier
    let what = if found < expected { "is truncated" } else { "has bytes after its elements" };
    let NpyHeader { dtype, extents, .. } = header;
    Err(Error::bad_input(format!(
        "the array {what}: {dtype} of shape {extents:?} takes {expected} bytes, but the file has {found}"
    )))
}

/// NumPy archives.
pub(crate) struct Npz(pub FormatOptions);

impl InputFormat for Npz {
    fn name(&self) -> &str {
        "NumPy archives (.npz)"
    }

    fn open(&self, file: &FormatFile) -> Result<Option<Box<dyn RecordSource>>> {
        let mut reader = file.reader()?;
        let mut first = Vec::new();
        (&mut reader).take(4).read_to_end(&mut first).map_err(read_error)?;
        if !matches!(first.as_slice(), b"PK\x03\x04" | b"PK\x05\x06") {
            return Ok(None);
        }
        let mut archive = ZipArchive::new(reader).map_err(|error| malformed(&error))?;
        if archive.has_duplicate_names() {
            let message =
                "the archive has two files with the same name, but only one can be read; save the arrays again";
            return Err(Error::bad_input(message));
        }
        let (mut columns, mut other, mut array_count) = (Vec::new(), None, 0_usize);
        for i in 0..archive.len() {
            let (name, entry) = Entry::of(&mut archive, i)?;
            let Some(name) = name.strip_suffix(".npy") else {
                let no_array = format!("the archive has {name:?}, which is not an array (.npy)");
                other.get_or_insert_with(|| no_array.clone());
                columns.push((name, Err(Error::bad_input(no_array))));
                continue;
            };
            array_count += 1;
            let array = entry.and_then(|entry| array(file, name, &entry)).and_then(|(column, extents)| {
                if self.0.file_is_sample { column.into_sample(&extents) } else { Ok(column) }
            });
            columns.push((name.to_owned(), array));
        }
        if let Some(other) = other.filter(|_| array_count == 0) {
            return Err(Error::bad_input(other)); // not a NumPy archive
        }
        Ok(Some(Box::new(TensorTable::new(columns, [], FormatOptions::SAMPLE_ADVICE)?)))
    }
}

fn malformed(error: &zip::result::ZipError) -> Error {
    Error::bad_input(format!("the zip archive is malformed: {error}"))
}

/// A file in a zip archive.
struct Entry {
    is_deflated: bool,
    /// The offset of its bytes in the archive.
    offset: u64,
    stored_bytes: u64,
    byte_count: u64,
    crc: u32,
}

impl Entry {
    /// Returns the name of file number `i` in the archive, and either its entry or the reason why
    /// the file cannot be read.
    fn of(archive: &mut ZipArchive<InputReader>, i: usize) -> Result<(String, Result<Self>)> {
        let entry = archive.by_index_raw(i).map_err(|error| malformed(&error))?;
        let name = entry.name().map_err(|error| malformed(&error))?.into_owned();
        Ok((name, Self::locate(&entry)))
    }

    fn locate<R: Read>(entry: &ZipFile<'_, R>) -> Result<Self> {
        let refused = |what: &str| Err(Error::bad_input(format!("the file in the archive {what}")));
        if entry.encrypted() {
            return refused("is encrypted");
        }
        let is_deflated = match entry.compression() {
            CompressionMethod::Stored if entry.compressed_size() != entry.size() => {
                return refused("is not compressed, but its stored size differs from its uncompressed size");
            }
            CompressionMethod::Stored => false,
            CompressionMethod::Deflated => true,
            other => {
                return refused(&format!("is compressed with {other}; expected stored or deflated, as saved by NumPy"));
            }
        };
        let Some(offset) = entry.data_start() else { return refused("has no data offset") };
        Ok(Self {
            offset,
            stored_bytes: entry.compressed_size(),
            byte_count: entry.size(),
            crc: entry.crc32(),
            is_deflated,
        })
    }
}

/// Returns the column of an array, and the extents of the array.
fn array(file: &FormatFile, name: &str, entry: &Entry) -> Result<(TensorColumn, Vec<u64>)> {
    let mut reader = file.reader()?;
    if entry.offset.checked_add(entry.stored_bytes).is_none_or(|end| end > reader.byte_count()) {
        return Err(Error::bad_input("the archive is truncated"));
    }
    reader.seek(SeekFrom::Start(entry.offset)).map_err(read_error)?;
    let stored = reader.take(entry.stored_bytes);
    let header = match entry.is_deflated {
        true => NpyHeader::read(&mut DeflateDecoder::new(stored))?,
        false => NpyHeader::read(&mut { stored })?,
    };
    let Entry { offset, stored_bytes, is_deflated, crc, .. } = *entry;
    let stream = ArchiveStream { offset, stored_bytes, is_deflated, crc };
    let bytes = ColumnBytes::Archived { file: file.clone(), stream, skip_bytes: header.byte_count };
    let column = column(name, &header, bytes)?;
    check_length(&column, &header, entry.byte_count.saturating_sub(header.byte_count))?;
    Ok((column, header.extents))
}

/// The first bytes of an array file.
const MAGIC: &[u8] = b"\x93NUMPY";

/// The maximum size of a header's text in bytes. NumPy writes headers of a few hundred bytes, and
/// reads at most 10,000 bytes by default.
const MAX_HEADER_BYTES: u64 = 1 << 20;

/// The header of an array file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NpyHeader {
    pub dtype: DType,
    /// Whether the byte order of elements differs from this machine's.
    pub is_swapped: bool,
    pub order: Order,
    pub extents: Vec<u64>,
    /// The number of bytes before the elements.
    pub byte_count: u64,
}

impl NpyHeader {
    /// Reads a header with format version 1 to 3. `reader` must be at the first byte of the file.
    pub(crate) fn read(reader: &mut impl Read) -> Result<Self> {
        let cut_off = || Error::bad_input("the array is truncated inside its header");
        let mut take = |count: u64| {
            let mut bytes = Vec::new();
            reader
                .take(count)
                .read_to_end(&mut bytes)
                .map_err(|error| stream_error(&error, "the header of the array"))?;
            if u64::try_from(bytes.len()).ok() == Some(count) { Ok(bytes) } else { Err(cut_off()) }
        };
        let start = take(8)?;
        let version = match start.strip_prefix(MAGIC) {
            Some([major @ 1..=3, 0]) => *major,
            Some(version) => {
                return Err(Error::bad_input(format!("the array has format version {version:?}, expected 1 to 3")));
            }
            None => return Err(Error::bad_input("the array does not begin with the magic bytes of a .npy file")),
        };
        let size_bytes = if version == 1 { 2 } else { 4 };
        let size = take(size_bytes)?.iter().rev().fold(0_u64, |size, byte| size << 8 | u64::from(*byte));
        if size > MAX_HEADER_BYTES {
            return Err(Error::bad_input(format!(
                "the header of the array has {size} bytes, more than {MAX_HEADER_BYTES}"
            )));
        }
        let text = take(size)?;
        let text = match version {
            3 => String::from_utf8(text).ok(),
            _ => Some(text.into_iter().map(char::from).collect()), // Latin-1
        };
        let malformed = || {
            Error::bad_input(
                "the header of the array is malformed: expected a dictionary with descr, fortran_order and shape",
            )
        };
        let header = Self::of(&text.ok_or_else(malformed)?).ok_or_else(malformed)?;
        Ok(Self { byte_count: 8 + size_bytes + size, ..header? }) // no overflow: about 1 MiB at most
    }

    /// Parses the text of a header. Returns `None` if it is malformed.
    fn of(text: &str) -> Option<Result<Self>> {
        let Literal::Dict(members) = parse_literal(text)? else { return None };
        let member = |name: &str| members.iter().find(|(key, _)| key == name).map(|(_, value)| value);
        let (Literal::Bool(is_fortran), Literal::Sequence(shape)) = (member("fortran_order")?, member("shape")?) else {
            return None;
        };
        let extent = |extent: &Literal| if let Literal::Integer(extent) = extent { Some(*extent) } else { None };
        let extents: Vec<u64> = shape.iter().map(extent).collect::<Option<_>>()?;
        // with one dimension, both orders are the same
        let order = if *is_fortran && extents.len() > 1 { Order::Fortran } else { Order::C };
        Some(match member("descr")? {
            Literal::Text(descr) => {
                element_type(descr).map(|(dtype, is_swapped)| Self { dtype, is_swapped, order, extents, byte_count: 0 })
            }
            _ => Err(Error::bad_input("the elements of the array are records; save each field as a separate array")),
        })
    }
}

/// Returns the type of the elements, and whether their bytes must be swapped.
fn element_type(descr: &str) -> Result<(DType, bool)> {
    let (order, name) = match descr.split_at_checked(1) {
        Some((order @ ("<" | ">" | "|" | "="), name)) => (order, name),
        _ => ("|", descr),
    };
    let dtype = match name {
        "f2" => DType::F16,
        "f4" => DType::F32,
        "f8" => DType::F64,
        "i1" => DType::I8,
        "i2" => DType::I16,
        "i4" => DType::I32,
        "i8" => DType::I64,
        "u1" => DType::U8,
        "u2" => DType::U16,
        "u4" => DType::U32,
        "u8" => DType::U64,
        "c8" => DType::Complex64,
        "b1" | "?" => DType::Bool,
        _ => return Err(unsupported_type(descr, name)),
    };
    let is_swapped = match order {
        "<" => cfg!(target_endian = "big"),
        ">" => cfg!(target_endian = "little"),
        _ if dtype.element_bytes() == 1 || order == "=" => false,
        _ => {
            return Err(Error::bad_input(format!(
                "the type {descr:?} of the elements does not state their byte order"
            )));
        }
    };
    Ok((dtype, is_swapped))
}

fn unsupported_type(descr: &str, name: &str) -> Error {
    let advice = match name.get(..1) {
        _ if name.starts_with('V') || name == "f1" => {
            "the type does not say what its bytes mean (ml_dtypes saves bfloat16, float8 and int4 like this); save \
                      the array as float32 and convert with --bf16, or save it as safetensors"
        }
        Some("O") => "the elements are pickled Python objects, which are never loaded",
        Some("c") => "save the array as complex64, as a view of floats, or as two arrays, one real and one imaginary",
        Some("M" | "m") => "save an int64 view of the array",
        Some("U" | "S") => "import texts from Parquet, Arrow or JSON lines",
        _ => "save the array with another type",
    };
    Error::bad_input(format!("the elements of the array have type {descr:?}: {advice}"))
}

/// The value of a Python literal.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Literal {
    Text(String),
    Integer(u64),
    Bool(bool),
    /// A tuple or a list.
    Sequence(Vec<Literal>),
    Dict(Vec<(String, Literal)>),
}

/// The maximum depth of nested sequences; `descr` of records has depth 3.
const MAX_DEPTH: usize = 8;

/// Parses a literal. Only whitespace may follow it. Returns `None` if the literal is malformed, or
/// if its type is not supported.
fn parse_literal(text: &str) -> Option<Literal> {
    let mut rest = text;
    let literal = value(&mut rest, 0)?;
    rest.trim_start().is_empty().then_some(literal)
}

fn value(rest: &mut &str, depth: usize) -> Option<Literal> {
    *rest = rest.trim_start();
    let first = rest.chars().next()?;
    match first {
        _ if depth > MAX_DEPTH => None,
        '\'' | '"' => {
            let (text, after) = rest.get(1..)?.split_once(first)?;
            *rest = after;
            (!text.contains('\\')).then(|| Literal::Text(text.to_owned()))
        }
        '0'..='9' => {
            let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
            let (digits, after) = rest.split_at_checked(end)?;
            // the suffix of long integers in Python 2
            *rest = after.strip_prefix('L').unwrap_or(after);
            digits.parse().ok().map(Literal::Integer)
        }
        'T' => after(rest, "True").then_some(Literal::Bool(true)),
        'F' => after(rest, "False").then_some(Literal::Bool(false)),
        '(' => sequence(rest, ")", depth),
        '[' => sequence(rest, "]", depth),
        '{' => dict(rest, depth),
        _ => None,
    }
}

/// Skips a token if it is next, and returns whether it was.
fn after(rest: &mut &str, token: &str) -> bool {
    *rest = rest.trim_start();
    match rest.strip_prefix(token) {
        Some(behind) => {
            *rest = behind;
            true
        }
        None => false,
    }
}

fn sequence(rest: &mut &str, close: &str, depth: usize) -> Option<Literal> {
    *rest = rest.get(1..)?;
    let mut members = Vec::new();
    while !after(rest, close) {
        members.push(value(rest, depth + 1)?);
        if !after(rest, ",") {
            return after(rest, close).then_some(Literal::Sequence(members));
        }
    }
    Some(Literal::Sequence(members))
}

fn dict(rest: &mut &str, depth: usize) -> Option<Literal> {
    *rest = rest.get(1..)?;
    let mut members = Vec::new();
    while !after(rest, "}") {
        let Literal::Text(key) = value(rest, depth + 1)? else { return None };
        if !after(rest, ":") {
            return None;
        }
        members.push((key, value(rest, depth + 1)?));
        if !after(rest, ",") {
            return after(rest, "}").then_some(Literal::Dict(members));
        }
    }
    Some(Literal::Dict(members))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn element_types_have_a_byte_order() {
        let little = cfg!(target_endian = "little");
        assert_eq!(element_type("<f4").unwrap(), (DType::F32, !little));
        assert_eq!(element_type(">i8").unwrap(), (DType::I64, little));
        assert_eq!(element_type("|b1").unwrap(), (DType::Bool, false));
        assert_eq!(element_type(">c8").unwrap(), (DType::Complex64, little));
        for descr in ["|V1", "|V2", "|O", "<c16", "|c8", "<M8[us]", "<U3", "|f4", "<f16", "", "ä"] {
            assert!(element_type(descr).is_err(), "{descr}");
        }
    }

    #[test]
    fn literals_of_headers_are_parsed() {
        let literal =
            parse_literal("{'descr': '<f4', \"order\": False, 'shape': (3, 4L,), 'n': [(1), True], }\n").unwrap();
        let Literal::Dict(members) = literal else { panic!() };
        assert_eq!(members[0], ("descr".to_owned(), Literal::Text("<f4".to_owned())));
        assert_eq!(members[1].1, Literal::Bool(false));
        assert_eq!(members[2].1, Literal::Sequence(vec![Literal::Integer(3), Literal::Integer(4)]));
        assert_eq!(parse_literal("()"), Some(Literal::Sequence(Vec::new())));
    }

    #[test]
    fn other_texts_are_refused() {
        let deep = "(".repeat(1 << 16);
        for text in
            ["", "{", "{'a'}", "{'a': }", "(1", "(1 2)", "'a", "'\\x41'", "-1", "99999999999999999999", "() x", &deep]
        {
            assert_eq!(parse_literal(text), None, "{}", text.get(..20).unwrap_or(text));
        }
    }
}
