//! Fragments of ranges, put together.

use super::arrived::Arrived;
use crate::open::Fragment;
use crate::{Error, Result, memory};

/// Puts fragments of ranges together, in memory that it reuses. A range that arrives as one
/// fragment is not copied.
#[derive(Default)]
pub(super) struct Assembler {
    incomplete: Vec<Incomplete>,
    /// The range that was completed last.
    complete: Vec<u8>,
    free: Vec<Incomplete>,
}

#[derive(Default)]
struct Incomplete {
    range: usize,
    arrived: Arrived,
    bytes: Vec<u8>,
}

impl Assembler {
    /// Forgets what has arrived.
    pub(super) fn clear(&mut self) {
        self.free.append(&mut self.incomplete);
    }

    /// Adds a fragment of a range of `length` bytes. Returns the bytes of the range once all
    /// have arrived.
    pub(super) fn add<'a>(&'a mut self, length: usize, fragment: Fragment<'a>) -> Result<Option<&'a [u8]>> {
        if fragment.offset == 0 && fragment.bytes.len() == length {
            return Ok(Some(fragment.bytes));
        }
        let found = self.incomplete.iter().position(|incomplete| incomplete.range == fragment.range);
        let at = match found {
            Some(at) => at,
            None => {
                let mut incomplete = self.free.pop().unwrap_or_default();
                incomplete.range = fragment.range;
                incomplete.arrived.clear();
                memory::resize(&mut incomplete.bytes, length, 0)?;
                memory::reserve(&mut self.incomplete, 1)?;
                self.incomplete.push(incomplete);
                self.incomplete.len() - 1 // one was pushed
            }
        };
        let lost = || Error::internal("a range that is being put together is lost");
        let incomplete = self.incomplete.get_mut(at).ok_or_else(lost)?;
        let out = incomplete.bytes.get_mut(fragment.offset..).and_then(|rest| rest.get_mut(..fragment.bytes.len()));
        let Some(out) = out else {
            return Err(Error::bad_argument("the source delivered bytes outside the range that was asked for"));
        };
        out.copy_from_slice(fragment.bytes); // equal lengths
        let end = fragment.offset.saturating_add(fragment.bytes.len());
        incomplete.arrived.add(fragment.offset..end)?;
        if incomplete.arrived.count() < length {
            return Ok(None);
        }
        let mut whole = self.incomplete.swap_remove(at);
        std::mem::swap(&mut self.complete, &mut whole.bytes);
        self.free.push(whole);
        self.complete.get(..length).map(Some).ok_or_else(lost)
    }
}
