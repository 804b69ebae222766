//! The nulls of structs, as far as the statistics of a Parquet file tell.

use crate::import::arrow::column_path::{ColumnPath, Step};
use ::parquet::file::metadata::ParquetMetaData;
use arrow_schema::{DataType, Fields, Schema};
use std::ops::Range;

/// Returns whether a struct, or a struct or list around it, may be null or empty. None is if a
/// field of the struct is null nowhere.
pub(super) fn may_occur(metadata: &ParquetMetaData, schema: &Schema, path: &ColumnPath) -> bool {
    let leaf_count = leaves_of_all(schema.fields());
    if metadata.file_metadata().schema_descr().num_columns() != leaf_count {
        return true; // the schemas do not match
    }
    !leaves(schema, path).unwrap_or(0..0).any(|leaf| is_never_null(metadata, leaf))
}

/// Returns whether the statistics say that a leaf has no nulls. They count those of all structs and
/// lists around it.
fn is_never_null(metadata: &ParquetMetaData, leaf: usize) -> bool {
    metadata.row_groups().iter().all(|group| {
        let statistics = group.columns().get(leaf).and_then(|column| column.statistics());
        statistics.and_then(|statistics| statistics.null_count_opt()) == Some(0)
    })
}

/// Returns the leaves below a struct, in the order of the file.
fn leaves(schema: &Schema, path: &ColumnPath) -> Option<Range<usize>> {
    let (root, inner) = path.fields.split_first()?;
    let steps = inner.iter().map(|&field| Step::Field(field)).chain(path.steps.iter().copied());
    let (mut start, mut data_type) = enter(schema.fields(), *root)?;
    for step in steps {
        data_type = match (step, data_type) {
            (Step::Field(field), DataType::Struct(fields)) => {
                let (before, inner) = enter(fields, field)?;
                start = start.checked_add(before)?;
                inner
            }
            (Step::List, list) => item(list)?,
            _ => return None,
        };
    }
    Some(start..start.checked_add(leaf_count(data_type))?)
}

/// Returns the leaves before a field, and its type.
fn enter(fields: &Fields, i: usize) -> Option<(usize, &DataType)> {
    let before = fields.iter().take(i).map(|field| leaf_count(field.data_type())).sum();
    Some((before, fields.get(i)?.data_type()))
}

fn item(data_type: &DataType) -> Option<&DataType> {
    match data_type {
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::FixedSizeList(item, _)
        | DataType::ListView(item)
        | DataType::LargeListView(item)
        | DataType::Map(item, _) => Some(item.data_type()),
        _ => None,
    }
}

/// Returns the leaves of a type. Its depth is that of the schema, which the decoder has bounded.
fn leaf_count(data_type: &DataType) -> usize {
    match (data_type, item(data_type)) {
        (DataType::Struct(fields), _) => leaves_of_all(fields),
        (_, Some(item)) => leaf_count(item),
        _ => 1,
    }
}

fn leaves_of_all(fields: &Fields) -> usize {
    fields.iter().map(|field| leaf_count(field.data_type())).sum()
}
