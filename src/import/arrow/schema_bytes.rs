//! Repairs an encoded Arrow schema that the decoder would refuse.
//!
//! The encoded schema is a flatbuffer. It is in the footer of an IPC file, in the first message of
//! a stream, and in the metadata of a Parquet file. The decoder refuses the whole schema if it
//! contains one of two things that other readers accept: metadata that is not UTF-8, which pyarrow
//! writes for pickled types, or 128-bit integers, which polars writes.
//!
//! Both are changed in place, so every offset stays valid. The bytes of a string that is not UTF-8
//! become [`FILLER`], so the decoded schema shows which entries to drop. The type of a 128-bit
//! integer becomes a fixed-size binary type of 16 bytes, which has the same buffers.

use crate::bytes::le::u64_of;
use crate::logical::arrow_type::with_members;
pub(in crate::import) use crate::logical::saved_schema::message_in;
use crate::logical::saved_schema::verifier;
use arrow_ipc::{
    Field as EncodedField, FixedSizeBinary, Footer, Int, Schema as EncodedSchema, Type, root_as_footer_with_opts,
};
use arrow_schema::extension::{EXTENSION_TYPE_METADATA_KEY, EXTENSION_TYPE_NAME_KEY};
use arrow_schema::{DataType, Field, FieldRef, Fields, Metadata, Schema};
use flatbuffers::{InvalidFlatbuffer, Table, VOffsetT};
use std::sync::Arc;

/// Replaces each byte of a string that is not UTF-8. No real string consists only of this control
/// character (substitute).
const FILLER: u8 = 0x1A;
/// The maximum number of bytes to verify in total. After each repair, verification starts again at
/// the first byte.
const MAX_WORK_BYTES: u64 = 256 << 20;
const WIDE_BITS: i32 = 128;
const WIDE_BYTES: i32 = 16;

/// Repairs the schema in a message. Returns whether a byte changed.
pub(in crate::import) fn repair_message(bytes: &mut [u8]) -> bool {
    repair(bytes, |bytes| Ok(message_in(bytes)?.header_as_schema()))
}

/// Repairs the schema in the footer of an IPC file. Returns whether a byte changed.
pub(super) fn repair_footer(bytes: &mut [u8]) -> bool {
    repair(bytes, |bytes| Ok(footer_in(bytes)?.schema()))
}

/// Returns the footer of an IPC file.
pub(super) fn footer_in(bytes: &[u8]) -> Result<Footer<'_>, InvalidFlatbuffer> {
    root_as_footer_with_opts(&verifier(bytes), bytes)
}

/// Repairs an encoded schema. The decoder reports other faults.
fn repair(
    bytes: &mut [u8],
    schema_of: impl for<'a> Fn(&'a [u8]) -> Result<Option<EncodedSchema<'a>>, InvalidFlatbuffer>,
) -> bool {
    let (mut is_changed, mut work) = (false, 0_u64);
    let wide = loop {
        work = work.saturating_add(u64_of(bytes.len()));
        match schema_of(bytes) {
            Ok(schema) => break schema.map(|schema| wide_integers(&schema)).unwrap_or_default(),
            Err(InvalidFlatbuffer::Utf8Error { range, .. }) if work < MAX_WORK_BYTES => {
                let Some(text) = bytes.get_mut(range) else { return is_changed };
                text.fill(FILLER);
                is_changed = true;
            }
            Err(_) => return is_changed,
        }
    };
    for integer in wide {
        let width = integer.width.checked_add(4).and_then(|end| bytes.get_mut(integer.width..end));
        width.into_iter().for_each(|width| width.copy_from_slice(&WIDE_BYTES.to_le_bytes()));
        bytes.get_mut(integer.kind).into_iter().for_each(|kind| *kind = Type::FixedSizeBinary.0);
        is_changed = true;
    }
    is_changed
}

/// A 128-bit integer type: the offsets of its type byte and of its width.
struct WideInteger {
    kind: usize,
    width: usize,
}

fn wide_integers(schema: &EncodedSchema) -> Vec<WideInteger> {
    // a fixed-size binary type stores its width in the same slot
    const { assert!(Int::VT_BITWIDTH == FixedSizeBinary::VT_BYTEWIDTH) };
    let mut found = Vec::new();
    schema.fields().into_iter().flatten().for_each(|field| collect_wide(&field, &mut found));
    found
}

/// Collects the 128-bit integer types of a field. The verifier has limited the depth.
fn collect_wide(field: &EncodedField, found: &mut Vec<WideInteger>) {
    let slot = |table: &Table, slot: VOffsetT| match table.vtable().get(slot) {
        0 => None,
        offset => Some(table.loc() + usize::from(offset)), // in bounds
    };
    if let Some(integer) = field.type_as_int().filter(|integer| integer.bitWidth() == WIDE_BITS) {
        let positions = slot(&field._tab, EncodedField::VT_TYPE_TYPE).zip(slot(&integer._tab, Int::VT_BITWIDTH));
        found.extend(positions.map(|(kind, width)| WideInteger { kind, width }));
    }
    field.children().into_iter().flatten().for_each(|child| collect_wide(&child, found));
}

/// Returns a schema without the entries that were not UTF-8, and the keys of these entries.
pub(in crate::import) fn without_filler(schema: Schema) -> (Schema, Vec<String>) {
    let mut dropped = Vec::new();
    let fields: Fields = schema.fields().iter().map(|field| clean_field(field, &mut dropped)).collect();
    let mut metadata = schema.metadata;
    clean(&mut metadata, |key| dropped.push(key));
    (Schema::new_with_metadata(fields, metadata), dropped)
}

fn clean_field(field: &FieldRef, dropped: &mut Vec<String>) -> FieldRef {
    let data_type = match field.data_type() {
        DataType::Struct(fields) => {
            Some(DataType::Struct(fields.iter().map(|field| clean_field(field, dropped)).collect()))
        }
        other => with_members(other, |item| clean_field(item, dropped)),
    };
    let mut cleaned = Field::clone(field);
    let count = dropped.len();
    clean(cleaned.metadata_mut(), |key| dropped.push(format!("{key} of {}", field.name())));
    match data_type {
        Some(data_type) => Arc::new(cleaned.with_data_type(data_type)),
        None if dropped.len() > count => Arc::new(cleaned),
        None => Arc::clone(field),
    }
}

/// Removes the entries whose key or value was not UTF-8. If this removes the parameters of an
/// extension type, its name is also removed, because another program could refuse or misinterpret
/// an extension type without its parameters.
fn clean(metadata: &mut Metadata, mut dropped: impl FnMut(String)) {
    let is_filler = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte == FILLER);
    let mut found: Vec<String> =
        metadata.iter().filter(|(key, value)| is_filler(key) || is_filler(value)).map(|(key, _)| key.clone()).collect();
    if found.iter().any(|key| key == EXTENSION_TYPE_METADATA_KEY) {
        found.push(EXTENSION_TYPE_NAME_KEY.to_owned());
    }
    found.sort_unstable();
    for key in found {
        if metadata.remove(&key).is_some() {
            dropped(if is_filler(&key) { "a key that is not UTF-8".to_owned() } else { key });
        }
    }
}
