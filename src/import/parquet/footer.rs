//! Checks and repairs a Parquet footer before the decoder sees it.
//!
//! The decoder recurses into nested groups. A few thousand levels, each encoded in a few bytes,
//! would overflow the stack and abort the process. The decoder also allocates memory for as many
//! children as a group claims, and aborts the process if that fails. [`check`] refuses both.
//!
//! The decoder also refuses a whole file because of two things that other readers accept: an empty
//! list without an element type, which fastparquet writes, and metadata that is not UTF-8. In
//! addition, it makes several copies of all metadata, and one more of the metadata in the embedded
//! Arrow schema. So [`readable`] makes a copy of the footer. In the copy, such lists have a type,
//! and only the metadata that a tensilo file can store is left.

use super::thrift::{BINARY, I32, I64, LIST, STOP, STRUCT, Thrift};
use crate::import::arrow::schema_bytes::{message_in, repair_message};
use crate::import::run::found::fitting;
use crate::logical::saved_schema::CONTINUATION;
use crate::{Error, Result, limits};
use ::parquet::arrow::{ARROW_SCHEMA_META_KEY, encode_arrow_schema};
use arrow_ipc::convert::try_fb_to_schema;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flatbuffers::InvalidFlatbuffer;
use std::collections::{BTreeSet, HashSet};
use std::ops::Range;

/// The maximum depth of groups. It is far more than a tensor needs, because a tensor has two levels
/// per dimension.
const MAX_LEVELS: usize = 256;

/// The field types of the file's metadata, and the ids of the fields used here.
const METADATA: [u8; 9] = [I32, LIST, I64, LIST, LIST, BINARY, LIST, STRUCT, BINARY];
const SCHEMA: i16 = 2;
const ROW_GROUPS: i16 = 4;
const ENCRYPTION: i16 = 8;
/// The id of the field that lists the columns of a row group, and of the field that describes the
/// encryption of a column.
const COLUMNS: i16 = 1;
const CRYPTO: i16 = 8;
/// The field types of a schema element, and the id of the field that states its number of children.
const ELEMENT: [u8; 10] = [I32, I32, I32, BINARY, I32, I32, I32, I32, I32, STRUCT];
const CHILDREN: i16 = 5;

/// Refuses a schema that is nested too deeply. `metadata` is the footer without its last 8 bytes.
pub(super) fn check(metadata: &[u8]) -> Result<()> {
    let depth = depth(&mut Thrift::new(metadata));
    match depth {
        None => Err(Error::bad_input("the Parquet file is malformed: its footer cannot be parsed")),
        Some(depth) if depth > MAX_LEVELS => {
            Err(Error::bad_input(format!("the Parquet schema is nested more than {MAX_LEVELS} levels deep")))
        }
        Some(_) => Ok(()),
    }
}

/// Returns the numbers of the encrypted columns in a file whose footer is not encrypted.
pub(super) fn encrypted(metadata: &[u8]) -> BTreeSet<usize> {
    let mut columns = BTreeSet::new();
    let is_encrypted = field_of(&mut Thrift::new(metadata), ENCRYPTION, STRUCT).is_some();
    let mut thrift = Thrift::new(metadata);
    if is_encrypted && field_of(&mut thrift, ROW_GROUPS, LIST).is_some() {
        // the decoder reports malformed metadata
        let _ = encrypted_in_groups(&mut thrift, &mut columns);
    }
    columns
}

fn encrypted_in_groups(thrift: &mut Thrift, found: &mut BTreeSet<usize>) -> Option<()> {
    let (groups, _) = thrift.list_header()?;
    for _ in 0..groups {
        let mut id = 0;
        loop {
            match (thrift.field(&mut id, &[])?, id) {
                (STOP, _) => break,
                (LIST, COLUMNS) => {
                    let (columns, _) = thrift.list_header()?;
                    for column in 0..columns {
                        if is_encrypted(thrift)? {
                            found.insert(usize::try_from(column).ok()?);
                        }
                    }
                }
                (other, _) => thrift.skip(other)?,
            }
        }
    }
    Some(())
}

/// Returns whether the next struct, a column of a row group, states how it is encrypted.
fn is_encrypted(thrift: &mut Thrift) -> Option<bool> {
    let (mut id, mut encrypted) = (0, false);
    loop {
        match (thrift.field(&mut id, &[])?, id) {
            (STOP, _) => return Some(encrypted),
            (other, _) => {
                encrypted |= (other, id) == (STRUCT, CRYPTO);
                thrift.skip(other)?;
            }
        }
    }
}

/// Advances to the field with this id and type in the next struct.
fn field_of(thrift: &mut Thrift, field_id: i16, field_type: u8) -> Option<()> {
    let mut id = 0;
    loop {
        match (thrift.field(&mut id, &METADATA)?, id) {
            (STOP, _) => return None,
            (found, id) if (found, id) == (field_type, field_id) => return Some(()),
            (other, _) => thrift.skip(other)?,
        }
    }
}

/// Returns the maximum depth of nested groups, or `None` if the bytes are not a footer. Stops as
/// soon as the depth exceeds [`MAX_LEVELS`].
fn depth(thrift: &mut Thrift) -> Option<usize> {
    let (mut id, mut max_depth) = (0, 0);
    loop {
        match (thrift.field(&mut id, &METADATA)?, id) {
            (STOP, _) => return Some(max_depth), // the decoder reports a missing schema
            (_, SCHEMA) => max_depth = max_depth.max(schema_depth(thrift)?),
            (other, _) => thrift.skip(other)?,
        }
        if max_depth > MAX_LEVELS {
            return Some(max_depth);
        }
    }
}

/// Returns the depth of a schema. A parent precedes its children, and states their number. Returns
/// `None` if the parents state more children than the schema has elements.
fn schema_depth(thrift: &mut Thrift) -> Option<usize> {
    let (count, _) = thrift.list_header()?;
    let mut open: Vec<i32> = Vec::new(); // remaining children of each enclosing group
    let (mut max_depth, mut stated) = (0, 1_u64); // the root has no parent
    for _ in 0..count {
        let children = children(thrift)?;
        stated = stated.saturating_add(u64::try_from(children).ok()?);
        if stated > count {
            return None;
        }
        if let Some(rest) = open.last_mut() {
            *rest -= 1; // positive: exhausted groups are popped
        }
        if children > 0 {
            open.push(children);
        }
        max_depth = max_depth.max(open.len());
        if max_depth > MAX_LEVELS {
            break;
        }
        // like the decoder, leave all groups that are complete
        while open.last() == Some(&0) {
            open.pop();
        }
    }
    Some(max_depth)
}

/// Reads a schema element, and returns its number of children.
fn children(thrift: &mut Thrift) -> Option<i32> {
    let (mut id, mut children) = (0, 0);
    loop {
        match (thrift.field(&mut id, &ELEMENT)?, id) {
            (STOP, _) => return Some(children),
            (_, CHILDREN) => children = thrift.i32()?,
            (other, _) => thrift.skip(other)?,
        }
    }
}

/// The maximum size of the metadata in a file, in bytes.
const MAX_METADATA_BYTES: usize = limits::SCHEMA_BYTES as usize; // exact: 16 MiB
/// The maximum size in bytes of the metadata that an embedded schema may repeat.
const MAX_EMBEDDED_BYTES: usize = 64 << 10;

/// The fields of a struct that contain lists, by id. The decoder reads these fields.
struct Struct(&'static [(i16, Content)]);

/// The content of a field that contains lists.
enum Content {
    /// A list of elements of this type.
    List(u8),
    Structs(&'static Struct),
    Struct(&'static Struct),
}

const FILE: Struct = Struct(&[
    (2, Content::List(STRUCT)), // schema
    (4, Content::Structs(&ROW_GROUP)),
    (ENTRIES, Content::List(STRUCT)),
    (7, Content::List(STRUCT)), // column orders
]);
const ENTRIES: i16 = 5;
const ROW_GROUP: Struct = Struct(&[(1, Content::Structs(&COLUMN)), (4, Content::List(STRUCT))]);
const COLUMN: Struct = Struct(&[(3, Content::Struct(&COLUMN_METADATA))]);
const COLUMN_METADATA: Struct = Struct(&[
    (2, Content::List(I32)),     // encodings
    (3, Content::List(BINARY)),  // path
    (8, Content::List(STRUCT)),  // metadata
    (13, Content::List(STRUCT)), // encoding statistics
]);

/// A footer in a form that the decoder can read.
pub(super) struct ReadableFooter {
    pub bytes: Vec<u8>,
    /// The keys of the metadata entries that were dropped.
    pub dropped: Vec<String>,
}

/// Returns a copy of a footer, in a form that the decoder can read. The footer must have been
/// [checked](check).
pub(super) fn readable(footer: &[u8]) -> ReadableFooter {
    let mut walk = Walk { footer, thrift: Thrift::new(footer), untyped: Vec::new(), entries: None };
    // the decoder reports malformed metadata
    let _ = walk.fields(&FILE, true);
    let Walk { untyped, entries, .. } = walk;
    let list = entries.and_then(|range| Some((range.clone(), entries_of(footer.get(range)?)?)));
    let (range, entries) = list.unwrap_or((footer.len()..footer.len(), Vec::new()));
    let fits = fitting(MAX_METADATA_BYTES, &entries.iter().map(Entry::preserved_bytes).collect::<Vec<_>>());
    let mut dropped = Vec::new();
    let mut preserved = Vec::new();
    let own: HashSet<&[u8]> = entries.iter().map(|entry| entry.key).collect();
    // the decoder uses the last schema
    let schema = entries.iter().rposition(|entry| entry.is_schema() && entry.value.is_some());
    for (number, (entry, fits)) in entries.iter().zip(fits).enumerate() {
        let value = match entry.is_schema() {
            true if Some(number) != schema => continue,
            true => readable_schema(entry.value, &own, &mut dropped),
            false => (fits && entry.is_text()).then_some(None),
        };
        match value {
            Some(value) => preserved.push((entry, value)),
            None => dropped.push(String::from_utf8_lossy(entry.key).into_owned()),
        }
    }
    let is_same = preserved.len() == entries.len() && preserved.iter().all(|(_, value)| value.is_none());
    let mut bytes = Vec::new();
    if is_same {
        bytes.extend_from_slice(footer);
    } else {
        bytes.extend_from_slice(footer.get(..range.start).unwrap_or(&[]));
        put_entries(&preserved, &mut bytes);
        bytes.extend_from_slice(footer.get(range.end..).unwrap_or(&[]));
    }
    for (at, field_type) in untyped {
        // positions after the metadata have moved
        let at = if at < range.start { Some(at) } else { (at + bytes.len()).checked_sub(footer.len()) };
        at.and_then(|at| bytes.get_mut(at)).into_iter().for_each(|header| *header = field_type);
    }
    ReadableFooter { bytes, dropped }
}

struct Walk<'a> {
    footer: &'a [u8],
    thrift: Thrift<'a>,
    /// The positions of empty lists, with the type that their elements should have.
    untyped: Vec<(usize, u8)>,
    /// The position of the list of metadata entries.
    entries: Option<Range<usize>>,
}

impl Walk<'_> {
    fn at(&self) -> usize {
        self.footer.len() - self.thrift.rest().len() // `rest` is a suffix of the footer
    }

    fn fields(&mut self, of: &Struct, is_file: bool) -> Option<()> {
        let mut id = 0;
        loop {
            let found = self.thrift.field(&mut id, &[])?;
            if found == STOP {
                return Some(());
            }
            let content = of.0.iter().find(|(of_id, _)| *of_id == id).map(|(_, content)| content);
            let start = self.at();
            match content {
                Some(Content::Struct(inner)) if found == STRUCT => self.fields(inner, false)?,
                Some(Content::Structs(inner)) if found == LIST => {
                    let length = self.header(STRUCT)?;
                    (0..length).try_for_each(|_| self.fields(inner, false))?;
                }
                Some(Content::List(field_type)) if found == LIST && self.thrift.rest().first() == Some(&0) => {
                    self.header(*field_type)?;
                }
                _ => self.thrift.skip(found)?,
            }
            if is_file && id == ENTRIES {
                self.entries = Some(start..self.at());
            }
        }
    }

    /// Reads the header of a list, and returns its length.
    fn header(&mut self, field_type: u8) -> Option<u64> {
        let at = self.at();
        let (length, found) = self.thrift.list_header()?;
        self.untyped.extend((length == 0 && found == 0).then_some((at, field_type)));
        Some(length)
    }
}

/// A metadata entry.
struct Entry<'a> {
    key: &'a [u8],
    value: Option<&'a [u8]>,
}

impl Entry<'_> {
    fn is_schema(&self) -> bool {
        self.key == ARROW_SCHEMA_META_KEY.as_bytes()
    }

    fn is_text(&self) -> bool {
        [Some(self.key), self.value].into_iter().flatten().all(|text| std::str::from_utf8(text).is_ok())
    }

    /// Returns the size of the entry in bytes. Returns 0 for an entry that is dropped, and for the
    /// embedded schema.
    fn preserved_bytes(&self) -> usize {
        let bytes = self.key.len().saturating_add(self.value.map_or(0, <[u8]>::len));
        if self.is_schema() || !self.is_text() { 0 } else { bytes }
    }
}

/// Parses a list of metadata entries. Returns `None` if it contains anything else.
fn entries_of(list: &[u8]) -> Option<Vec<Entry<'_>>> {
    let mut thrift = Thrift::new(list);
    let (length, _) = thrift.list_header()?;
    let mut entries = Vec::new();
    for _ in 0..length {
        let (mut id, mut key, mut value) = (0, None, None);
        loop {
            match (thrift.field(&mut id, &[BINARY, BINARY])?, id) {
                (STOP, _) => break,
                (BINARY, 1) => key = Some(text(&mut thrift)?),
                (BINARY, 2) => value = Some(text(&mut thrift)?),
                (other, _) => thrift.skip(other)?,
            }
        }
        entries.push(Entry { key: key?, value });
    }
    Some(entries)
}

fn text<'a>(thrift: &mut Thrift<'a>) -> Option<&'a [u8]> {
    let bytes = thrift.varint()?;
    thrift.take(bytes)
}

/// Writes a list of metadata entries, each optionally with a new value.
fn put_entries(entries: &[(&Entry<'_>, Option<String>)], out: &mut Vec<u8>) {
    const LONG_LIST: u8 = 0xF0;
    const NEXT_BINARY: u8 = 0x10 | BINARY;
    out.push(LONG_LIST | STRUCT);
    put_varint(entries.len(), out);
    for (entry, other) in entries {
        let value = other.as_ref().map(String::as_bytes).or(entry.value);
        for text in [Some(entry.key), value].into_iter().flatten() {
            out.push(NEXT_BINARY);
            put_varint(text.len(), out);
            out.extend_from_slice(text);
        }
        out.push(STOP);
    }
}

fn put_varint(mut value: usize, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push((value & 0x7F) as u8 | 0x80); // exact: 7 bits
        value >>= 7;
    }
    out.push(value as u8); // exact: below 0x80
}

/// Returns a new value for an embedded Arrow schema, in a form that the decoder can read.
/// `Some(None)` means that the value stays unchanged. `None` means that the schema is dropped, so
/// the columns have their Parquet types. If the schema is long, entries whose keys are in `own` are
/// dropped from it, because the footer also has them.
fn readable_schema(value: Option<&[u8]>, own: &HashSet<&[u8]>, dropped: &mut Vec<String>) -> Option<Option<String>> {
    let Some(mut bytes) = value.and_then(|value| STANDARD.decode(value).ok()) else { return Some(None) };
    let start = if bytes.starts_with(&CONTINUATION) && bytes.len() > 8 { 8 } else { 0 };
    let is_changed = repair_message(bytes.get_mut(start..).unwrap_or(&mut []));
    let message = match message_in(bytes.get(start..).unwrap_or(&[])) {
        Err(InvalidFlatbuffer::ApparentSizeTooLarge) => return None, // the decoder would copy the whole schema
        message => message.ok(),
    };
    let Some(schema) = message.and_then(|message| message.header_as_schema()) else { return Some(None) };
    let texts = schema.custom_metadata().into_iter().flatten();
    let texts = texts.filter_map(|entry| entry.value()).map(str::len);
    let has_long_texts = texts.fold(0, usize::saturating_add) > MAX_EMBEDDED_BYTES;
    let Ok(mut decoded) = try_fb_to_schema(schema) else { return None };
    if !has_long_texts {
        return Some(is_changed.then(|| STANDARD.encode(&bytes)));
    }
    drop(bytes);
    decoded.metadata.retain(|key, _| !own.contains(key.as_bytes()));
    let bytes: Vec<usize> = decoded.metadata.iter().map(|(key, value)| key.len().saturating_add(value.len())).collect();
    let mut fits = fitting(MAX_METADATA_BYTES, &bytes).into_iter();
    decoded.metadata.retain(|key, _| {
        let fits = fits.next().unwrap_or(true);
        dropped.extend((!fits).then(|| key.clone()));
        fits
    });
    Some(Some(encode_arrow_schema(&decoded)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a footer of version 1 without row groups, with this list of metadata.
    fn footer(entries: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0x15, 2, 0x19, 0x00, 0x16, 0, 0x19, 0x00, 0x19];
        bytes.extend_from_slice(entries);
        bytes.extend([0x18, 1, b'w', 0x19, 0x00, STOP]); // the writer, and the orders of columns
        bytes
    }

    #[test]
    fn empty_lists_get_the_type_of_their_elements() {
        let readable = readable(&footer(&[0x00]));
        let typed = vec![0x15, 2, 0x19, 0x0C, 0x16, 0, 0x19, 0x0C, 0x19, 0x0C, 0x18, 1, b'w', 0x19, 0x0C, STOP];
        assert_eq!(readable.bytes, typed);
        assert!(readable.dropped.is_empty());
    }

    #[test]
    fn metadata_that_are_not_utf_8_are_left_out() {
        let entries = [0x2C, 0x18, 1, b'a', 0x18, 1, 0xFF, STOP, 0x18, 1, b'b', 0x18, 1, b'x', STOP];
        let readable = readable(&footer(&entries));
        assert_eq!(readable.dropped, ["a"]);
        let preserved = [0xFC, 1, 0x18, 1, b'b', 0x18, 1, b'x', STOP];
        assert!(readable.bytes.windows(preserved.len()).any(|bytes| bytes == preserved), "{:x?}", readable.bytes);
        assert!(readable.bytes.ends_with(&[0x18, 1, b'w', 0x19, 0x0C, STOP]), "{:x?}", readable.bytes);
    }

    #[test]
    fn only_the_last_embedded_schema_stays() {
        let entry = |value: &[u8]| {
            let value = if value.is_empty() { Vec::new() } else { [&[0x18, 1], value].concat() };
            [&[0x18, 12], ARROW_SCHEMA_META_KEY.as_bytes(), &value, &[STOP]].concat()
        };
        let entries = [vec![0x3C], entry(b"x"), entry(b"y"), entry(b"")].concat();
        let readable = readable(&footer(&entries));
        let preserved = [vec![0xFC, 1], entry(b"y")].concat();
        assert!(readable.bytes.windows(preserved.len()).any(|bytes| bytes == preserved), "{:x?}", readable.bytes);
        assert!(readable.dropped.is_empty());
    }

    #[test]
    fn what_cannot_be_parsed_stays() {
        let footer = [0x15, 2, 0x19, 0xFF];
        assert_eq!(readable(&footer).bytes, footer);
    }
}
