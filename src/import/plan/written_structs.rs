//! The nulls of structs: which of these columns are written.

use super::column::Column;
use super::merge::{Plan, is_name};
use crate::error::Advice;
use crate::{Error, Result};
use std::collections::HashSet;

impl Plan {
    /// Leaves out the nulls of structs that are not written, when that is known of all.
    pub(in crate::import) fn settle_structs(&mut self) -> Result<()> {
        let is_written = |column: &Column| column.struct_nulls.is_none_or(|nulls| nulls.is_written);
        let kept: Vec<bool> = self.columns.iter().map(is_written).collect();
        self.keep(&kept);
        let values = self.columns.iter().filter(|column| !column.follows_fields());
        let mut names: HashSet<&str> = values.map(|column| column.name.as_str()).collect();
        for column in self.columns.iter().filter(|column| column.follows_fields()) {
            if !is_name(&column.name) || !names.insert(&column.name) {
                return Err(no_name(column));
            }
        }
        Ok(())
    }

    /// Writes the nulls of all structs that may be null.
    #[cfg(feature = "arrow")]
    pub(in crate::import) fn write_all_structs(&mut self) -> Result<()> {
        for nulls in self.columns.iter_mut().filter_map(|column| column.struct_nulls.as_mut()) {
            nulls.is_written |= nulls.may_be_null;
        }
        self.settle_structs()
    }
}

/// Returns the error about nulls of a struct that cannot have the struct's name.
fn no_name(column: &Column) -> Error {
    let message = "cannot be stored: it is a struct with nulls, which become a column of the struct's name, and that \
                   name is taken or not allowed; rename the struct";
    Error::bad_input(message).with_column(&column.name).with_advice([Advice::SkipColumns])
}
