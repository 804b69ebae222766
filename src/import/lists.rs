//! The lists of nested columns in batches.

use super::batch::{InputLists, in_lists};
use super::problem::Problem;
use crate::list_buffer::ListBuffer;
use crate::{Error, Result};
use std::ops::Range;

/// Returns the lists of some samples as they are pushed, and the range of their items.
/// `may_be_null` tells which levels may have nulls, the samples first.
pub(super) fn select(
    levels: &[InputLists],
    rows: Range<usize>,
    may_be_null: impl Fn(usize) -> bool,
) -> std::result::Result<(Vec<ListBuffer>, Range<usize>), Problem> {
    let outside = || Problem::from("the lists of a sample lie outside the batch".to_owned());
    let mut entries = rows;
    let mut selected = Vec::with_capacity(levels.len());
    for (level, lists) in levels.iter().enumerate() {
        if let Some(null) = entries.clone().find(|&i| !may_be_null(level) && lists.is_null(i)) {
            let problem = Problem::at(null, "a null in a column or list that is declared to have none");
            return Err(in_lists(problem, levels.get(..level).unwrap_or(&[])));
        }
        selected.push(buffer(lists, &entries).map_err(|error| Problem::from(error.message().to_owned()))?);
        entries = lists.members(&entries).ok_or_else(outside)?;
    }
    Ok((selected, entries))
}

fn buffer(lists: &InputLists, entries: &Range<usize>) -> Result<ListBuffer> {
    let mut buffer = ListBuffer::default();
    buffer.clear()?;
    for i in entries.clone() {
        let length = lists.lengths.get(i).copied().ok_or_else(|| Error::internal("a list is outside its batch"))?;
        buffer.push((!lists.is_null(i)).then_some(length))?;
    }
    Ok(buffer)
}
