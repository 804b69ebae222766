//! Columns that are fields of the same struct, joined again (chapter 3.4 of the specification).

use crate::format::{FieldNode, path};
use crate::{Error, Result};
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, ListArray, StructArray};
use arrow_schema::{DataType, Field, FieldRef, Fields};
use std::sync::Arc;

impl FieldNode {
    /// Returns the field, inside `depth` levels of lists. `columns` are the fields of all columns.
    pub(super) fn arrow_field(&self, columns: &[FieldRef], depth: usize) -> Option<FieldRef> {
        match self {
            Self::Column { number, name } => {
                let column = columns.get(*number)?;
                let mut metadata = column.metadata().clone();
                metadata.remove(path::KEY);
                let (data_type, nullable) = member(column, depth)?;
                Some(Arc::new(Field::new(name, data_type.clone(), nullable).with_metadata(metadata)))
            }
            Self::Struct { name, lists, nulls, children } => {
                let inner = depth.checked_add(*lists)?;
                let fields: Option<Fields> = children.iter().map(|child| child.arrow_field(columns, inner)).collect();
                let fields = fields?;
                let column = columns.get(*self.columns().first()?)?;
                let mut nullable = match nulls {
                    Some(number) => member(columns.get(*number)?, inner)?.1,
                    None => fields.iter().all(|field| field.is_nullable()),
                };
                let mut data_type = DataType::Struct(fields);
                for level in (depth..inner).rev() {
                    data_type = DataType::List(Arc::new(Field::new("item", data_type, nullable)));
                    nullable = member(column, level)?.1;
                }
                Some(Arc::new(Field::new(name, data_type, nullable)))
            }
        }
    }

    /// Returns the array of the field. `columns` are the arrays of all columns, as fields have it.
    pub(super) fn array(&self, field: &Field, columns: &[ArrayRef], depth: usize) -> Result<ArrayRef> {
        let Self::Struct { name, lists, nulls, children } = self else {
            let Self::Column { number, .. } = self else { return Err(mismatch()) };
            return columns.get(*number).and_then(|column| entries(column, depth)).ok_or_else(mismatch);
        };
        let inner = depth.saturating_add(*lists);
        let mut data_type = field.data_type();
        let mut items: Vec<&FieldRef> = Vec::with_capacity(*lists);
        for _ in 0..*lists {
            let DataType::List(item) = data_type else { return Err(mismatch()) };
            items.push(item);
            data_type = item.data_type();
        }
        let DataType::Struct(fields) = data_type else { return Err(mismatch()) };
        let arrays = children.iter().zip(fields).map(|(child, field)| child.array(field, columns, inner));
        let arrays: Vec<ArrayRef> = arrays.collect::<Result<_>>()?;
        let own =
            nulls.map(|number| columns.get(number).and_then(|column| entries(column, inner)).ok_or_else(mismatch));
        let own = own.transpose()?;
        let count = own.as_ref().or(arrays.first()).map_or(0, |array| array.len());
        let nulls = own.and_then(|own| own.nulls().cloned());
        let structs = StructArray::try_new_with_length(fields.clone(), arrays, nulls, count);
        let mut array: ArrayRef = Arc::new(structs.map_err(|error| self.unfit(&error.to_string()))?);
        for (level, item) in (depth..inner).zip(items).rev() {
            let lists = self.lists(name, columns, level)?;
            let wrapped = ListArray::try_new(item.clone(), lists.offsets().clone(), array, lists.nulls().cloned());
            array = Arc::new(wrapped.map_err(|error| self.unfit(&error.to_string()))?);
        }
        Ok(array)
    }

    /// Returns the lists of a level, which all columns of the struct share.
    fn lists(&self, name: &str, columns: &[ArrayRef], level: usize) -> Result<ListArray> {
        let mut shared: Option<ListArray> = None;
        for number in self.columns() {
            let array = columns.get(number).and_then(|column| entries(column, level)).ok_or_else(mismatch)?;
            let lists = array.as_list_opt::<i32>().ok_or_else(mismatch)?;
            let is_same = shared
                .as_ref()
                .is_none_or(|shared| shared.offsets() == lists.offsets() && shared.nulls() == lists.nulls());
            if !is_same {
                let message = format!("the fields of the struct {name:?} have lists of different lengths");
                return Err(Error::bad_input(message));
            }
            shared.get_or_insert_with(|| lists.clone());
        }
        shared.ok_or_else(mismatch)
    }

    /// Returns the error about columns that are no fields of one struct, whatever their paths say.
    fn unfit(&self, error: &str) -> Error {
        Error::bad_input(format!("the fields of the struct {:?} do not fit together: {error}", self.name()))
    }
}

/// Returns the type of the entries of a column inside `depth` levels of lists, and whether they may
/// be null.
fn member(column: &Field, depth: usize) -> Option<(&DataType, bool)> {
    let (mut data_type, mut nullable) = (column.data_type(), column.is_nullable());
    for _ in 0..depth {
        let DataType::List(item) = data_type else { return None };
        (data_type, nullable) = (item.data_type(), item.is_nullable());
    }
    Some((data_type, nullable))
}

/// Returns the entries of a column inside `depth` levels of lists.
fn entries(column: &ArrayRef, depth: usize) -> Option<ArrayRef> {
    (0..depth).try_fold(column.clone(), |array, _| Some(array.as_list_opt::<i32>()?.values().clone()))
}

#[cold]
fn mismatch() -> Error {
    Error::internal("a column is not what the path in its metadata says")
}
