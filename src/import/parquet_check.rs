//! A look at the schema in a Parquet footer before its decoder believes it.
//!
//! The decoder follows nested groups by recursion, and some thousand levels, which take a few bytes each, would exhaust the
//! stack and abort the process. The footer is in Thrift's compact protocol.

use crate::{Error, Result};

/// Far more than a tensor has dimensions: a list takes two levels.
const LEVELS: usize = 256;
/// Structs in structs that are skipped; there are few in a schema element.
const SKIPPED_LEVELS: usize = 16;

/// The field of the file's metadata with the schema, and that of a schema element with the number of its children.
const SCHEMA: i64 = 2;
const CHILDREN: i64 = 5;

const STOP: u8 = 0;
const TRUE: u8 = 1;
const FALSE: u8 = 2;
const BYTE: u8 = 3;
const I16: u8 = 4;
const I64: u8 = 6;
const DOUBLE: u8 = 7;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const SET: u8 = 10;
const MAP: u8 = 11;
const STRUCT: u8 = 12;

/// Refuses a schema nested too deeply; `metadata` is the footer without its last 8 bytes.
pub(super) fn check(metadata: &[u8]) -> Result<()> {
    let depth = depth(&mut Thrift { rest: metadata });
    match depth {
        None => Err(Error::bad_input("the Parquet file is malformed: its footer cannot be parsed")),
        Some(depth) if depth > LEVELS => {
            Err(Error::bad_input(format!("the Parquet schema is nested more than {LEVELS} levels deep")))
        }
        Some(_) => Ok(()),
    }
}

/// How deeply groups are nested, as far as that is within bounds. `None`: this is no footer.
fn depth(thrift: &mut Thrift) -> Option<usize> {
    let mut id = 0;
    loop {
        match thrift.field(&mut id)? {
            STOP => return Some(0), // no schema: the decoder will say so
            LIST if id == SCHEMA => return schema_depth(thrift),
            other => thrift.skip(other, SKIPPED_LEVELS)?,
        }
    }
}

/// Elements stand parents first; each says how many children follow.
fn schema_depth(thrift: &mut Thrift) -> Option<usize> {
    let (count, _) = thrift.list_head()?;
    let mut open: Vec<i64> = Vec::new(); // children still to come, for each group around
    let mut deepest = 0;
    for _ in 0..count {
        let children = thrift.children()?;
        if let Some(rest) = open.last_mut() {
            *rest -= 1; // positive, as it is on the stack
        }
        if children > 0 {
            open.push(children);
        }
        deepest = deepest.max(open.len());
        if deepest > LEVELS {
            break;
        }
        // the decoder, too, comes back to a group that has all of its children
        while open.last() == Some(&0) {
            open.pop();
        }
    }
    Some(deepest)
}

/// Bytes in the compact protocol.
struct Thrift<'a> {
    rest: &'a [u8],
}

impl Thrift<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*first)
    }

    fn advance(&mut self, bytes: u64) -> Option<()> {
        self.rest = self.rest.get(usize::try_from(bytes).ok()?..)?;
        Some(())
    }

    fn varint(&mut self) -> Option<u64> {
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

    /// The type of the next field of a struct, and its id.
    fn field(&mut self, id: &mut i64) -> Option<u8> {
        let head = self.byte()?;
        if head == STOP {
            return Some(STOP);
        }
        *id = match head >> 4 {
            0 => self.zigzag()?,
            delta => id.checked_add(delta.into())?,
        };
        Some(head & 0x0F)
    }

    /// Length and type of a list's elements.
    fn list_head(&mut self) -> Option<(u64, u8)> {
        let head = self.byte()?;
        let length = match head >> 4 {
            15 => self.varint()?,
            length => length.into(),
        };
        Some((length, head & 0x0F))
    }

    /// The number of children of a schema element.
    fn children(&mut self) -> Option<i64> {
        let (mut id, mut children) = (0, 0);
        loop {
            match self.field(&mut id)? {
                STOP => return Some(children),
                I16..=I64 if id == CHILDREN => children = self.zigzag()?,
                other => self.skip(other, SKIPPED_LEVELS)?,
            }
        }
    }

    /// Passes over a field of a struct.
    fn skip(&mut self, of_type: u8, levels: usize) -> Option<()> {
        let levels = levels.checked_sub(1)?;
        match of_type {
            TRUE | FALSE => Some(()),
            BYTE => self.advance(1),
            I16..=I64 => self.varint().map(|_| ()),
            DOUBLE => self.advance(8),
            BINARY => self.varint().and_then(|bytes| self.advance(bytes)),
            LIST | SET => {
                let (length, element) = self.list_head()?;
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
                    match self.field(&mut id)? {
                        STOP => return Some(()),
                        other => self.skip(other, levels)?,
                    }
                }
            }
            _ => None,
        }
    }

    /// Passes over an element of a list or map, where a bool has a byte.
    fn skip_element(&mut self, of_type: u8, levels: usize) -> Option<()> {
        if matches!(of_type, TRUE | FALSE) { self.advance(1) } else { self.skip(of_type, levels) }
    }
}
