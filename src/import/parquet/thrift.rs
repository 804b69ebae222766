//! A minimal parser of Thrift's compact protocol, in which Parquet metadata is written.
//!
//! It is used only to check metadata before the Parquet decoder uses the metadata. A check is
//! worthless if the decoder parses the same bytes differently. So input that the decoder could
//! parse differently is refused.

/// The maximum depth of nested structs that are skipped. Valid files have few levels.
const MAX_SKIPPED_LEVELS: usize = 16;

pub(super) const STOP: u8 = 0;
const TRUE: u8 = 1;
pub(super) const BOOL: u8 = 2; // also stands for `false`
const BYTE: u8 = 3;
const I16: u8 = 4;
pub(super) const I32: u8 = 5;
pub(super) const I64: u8 = 6;
const DOUBLE: u8 = 7;
pub(super) const BINARY: u8 = 8;
pub(super) const LIST: u8 = 9;
const SET: u8 = 10;
const MAP: u8 = 11;
pub(super) const STRUCT: u8 = 12;

/// A reader of bytes in the compact protocol.
pub(super) struct Thrift<'a> {
    rest: &'a [u8],
}

impl<'a> Thrift<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// Returns the bytes that have not been read.
    pub(super) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*first)
    }

    /// Takes the next `bytes` bytes. Returns `None` if fewer bytes are left.
    pub(super) fn take(&mut self, bytes: u64) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(usize::try_from(bytes).ok()?)?;
        self.rest = rest;
        Some(taken)
    }

    pub(super) fn varint(&mut self) -> Option<u64> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7F) << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }

    fn zigzag(&mut self) -> Option<i64> {
        let value = self.varint()?;
        let half = i64::try_from(value >> 1).ok()?;
        Some(if value & 1 == 0 { half } else { -half - 1 })
    }

    pub(super) fn i32(&mut self) -> Option<i32> {
        i32::try_from(self.zigzag()?).ok()
    }

    /// Reads the type and id of the next field of a struct. `types` lists the field types on which
    /// the decoder relies, by id, starting at 1.
    pub(super) fn field(&mut self, id: &mut i16, types: &[u8]) -> Option<u8> {
        let header = self.byte()?;
        if header == STOP {
            return Some(STOP);
        }
        *id = match header >> 4 {
            0 => self.zigzag().and_then(|id| i16::try_from(id).ok())?,
            delta => id.checked_add(delta.into())?,
        };
        let field_type = if header & 0x0F == TRUE { BOOL } else { header & 0x0F };
        let expected = id.checked_sub(1).and_then(|at| types.get(usize::try_from(at).ok()?));
        expected.is_none_or(|expected| *expected == field_type).then_some(field_type)
    }

    /// Reads the length of a list and the type of its elements.
    pub(super) fn list_header(&mut self) -> Option<(u64, u8)> {
        let header = self.byte()?;
        let length = match header >> 4 {
            15 => self.varint()?,
            length => length.into(),
        };
        Some((length, header & 0x0F))
    }

    /// Skips a field of a struct.
    pub(super) fn skip(&mut self, field_type: u8) -> Option<()> {
        self.skip_within(field_type, MAX_SKIPPED_LEVELS)
    }

    fn skip_within(&mut self, field_type: u8, levels: usize) -> Option<()> {
        let levels = levels.checked_sub(1)?;
        match field_type {
            BOOL => Some(()),
            BYTE => self.byte().map(|_| ()),
            I16..=I64 => self.varint().map(|_| ()),
            DOUBLE => self.take(8).map(|_| ()),
            BINARY => self.varint().and_then(|bytes| self.take(bytes)).map(|_| ()),
            LIST | SET => {
                let (length, element) = self.list_header()?;
                (0..length).try_for_each(|_| self.skip_element(element, levels))
            }
            MAP => {
                let length = self.varint()?;
                let types = if length == 0 { 0 } else { self.byte()? };
                (0..length).try_for_each(|_| {
                    self.skip_element(types >> 4, levels)?;
                    self.skip_element(types & 0x0F, levels)
                })
            }
            STRUCT => {
                let mut id = 0;
                loop {
                    match self.field(&mut id, &[])? {
                        STOP => return Some(()),
                        other => self.skip_within(other, levels)?,
                    }
                }
            }
            _ => None,
        }
    }

    /// Skips an element of a list or map. Bools are refused, because the decoder assumes that they
    /// take no bytes.
    fn skip_element(&mut self, field_type: u8, levels: usize) -> Option<()> {
        if matches!(field_type, TRUE | BOOL) { None } else { self.skip_within(field_type, levels) }
    }
}
