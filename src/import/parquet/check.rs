//! A look at the schema in a Parquet footer before its decoder believes it.
//!
//! The decoder follows nested groups by recursion, and some thousand levels, which take a few bytes
//! each, would exhaust the stack and abort the process. So would the memory that it takes for as
//! many children as a group claims to have.

use super::thrift::{BINARY, I32, I64, LIST, STOP, STRUCT, Thrift};
use crate::{Error, Result};
use std::collections::BTreeSet;

/// Far more than a tensor has dimensions: a list takes two levels.
const LEVELS: usize = 256;

/// The fields of the file's metadata, and that with the schema.
const METADATA: [u8; 9] = [I32, LIST, I64, LIST, LIST, BINARY, LIST, STRUCT, BINARY];
const SCHEMA: i16 = 2;
const ROW_GROUPS: i16 = 4;
const ENCRYPTION: i16 = 8;
/// The field of a row group with its columns, and that of a column with how it is encrypted.
const COLUMNS: i16 = 1;
const CRYPTO: i16 = 8;
/// The fields of a schema element, and that with the number of its children.
const ELEMENT: [u8; 10] = [I32, I32, I32, BINARY, I32, I32, I32, I32, I32, STRUCT];
const CHILDREN: i16 = 5;

/// Refuses a schema nested too deeply; `metadata` is the footer without its last 8 bytes.
pub(super) fn check(metadata: &[u8]) -> Result<()> {
    let depth = depth(&mut Thrift::new(metadata));
    match depth {
        None => Err(Error::bad_input("the Parquet file is malformed: its footer cannot be parsed")),
        Some(depth) if depth > LEVELS => {
            Err(Error::bad_input(format!("the Parquet schema is nested more than {LEVELS} levels deep")))
        }
        Some(_) => Ok(()),
    }
}

/// Returns the numbers of the columns that are encrypted, of a file whose footer is not.
pub(super) fn encrypted(metadata: &[u8]) -> BTreeSet<usize> {
    let mut columns = BTreeSet::new();
    let is_encrypted = field_of(&mut Thrift::new(metadata), ENCRYPTION, STRUCT).is_some();
    let mut thrift = Thrift::new(metadata);
    if is_encrypted && field_of(&mut thrift, ROW_GROUPS, LIST).is_some() {
        // the decoder says what is malformed
        let _ = encrypted_in_groups(&mut thrift, &mut columns);
    }
    columns
}

fn encrypted_in_groups(thrift: &mut Thrift, found: &mut BTreeSet<usize>) -> Option<()> {
    let (groups, _) = thrift.list_head()?;
    for _ in 0..groups {
        let mut id = 0;
        loop {
            match (thrift.field(&mut id, &[])?, id) {
                (STOP, _) => break,
                (LIST, COLUMNS) => {
                    let (columns, _) = thrift.list_head()?;
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

/// Returns whether the next struct, a column of a row group, says how it is encrypted.
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

/// Goes to the field of this id and type of the struct ahead.
fn field_of(thrift: &mut Thrift, wanted: i16, of_type: u8) -> Option<()> {
    let mut id = 0;
    loop {
        match (thrift.field(&mut id, &METADATA)?, id) {
            (STOP, _) => return None,
            (found, id) if (found, id) == (of_type, wanted) => return Some(()),
            (other, _) => thrift.skip(other)?,
        }
    }
}

/// Returns the depth to which groups are nested, within bounds, or `None` if this is no footer.
fn depth(thrift: &mut Thrift) -> Option<usize> {
    let (mut id, mut deepest) = (0, 0);
    loop {
        match (thrift.field(&mut id, &METADATA)?, id) {
            (STOP, _) => return Some(deepest), // of no schema the decoder will say so
            (_, SCHEMA) => deepest = deepest.max(schema_depth(thrift)?),
            (other, _) => thrift.skip(other)?,
        }
        if deepest > LEVELS {
            return Some(deepest);
        }
    }
}

/// Returns the depth of a schema. Parents precede their children, and each states their number.
/// Returns `None` if they state more than there are.
fn schema_depth(thrift: &mut Thrift) -> Option<usize> {
    let (count, _) = thrift.list_head()?;
    let mut open: Vec<i32> = Vec::new(); // children still to come, for each group around
    let (mut deepest, mut stated) = (0, 1_u64); // the root is the child of none
    for _ in 0..count {
        let children = children(thrift)?;
        stated = stated.saturating_add(u64::try_from(children).ok()?);
        if stated > count {
            return None;
        }
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

/// Returns the number of children of a schema element.
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
