//! Restores the fields of the source, as far as the file records them.
//!
//! Columns that are fields of one struct are combined again (chapter 3.4 of the specification). The
//! result is the *implied* field. It is compared with the field of the source that the file
//! records. If the two are compatible, arrays are converted to the types of the source
//! ([`Retype`]). Otherwise, the implied field is exported.
//!
//! Another library, such as pandas, can describe fields in its metadata. This metadata is exported
//! only if all these fields are the same as in the source.
//!
//! There is one special case. A list of 0 bools in a struct has no path, because with a path it
//! would look like the nulls of a struct. The schema of the source states its position
//! ([`with_paths`]).

use super::field::{Form, Target, TensorForm, TypeChoice};
use super::retype::Retype;
use crate::error::Advice;
use crate::format::{CastFacts, FieldNode, path};
use crate::logical::arrow_type::{in_arrow, is_tensor, members};
use crate::logical::saved_schema;
use crate::{ColumnSchema, DType, Error, Extent, Metadata, Result, Schema};
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, ListArray, StructArray};
use arrow_schema::{ArrowError, DataType, Field, FieldRef, Fields};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// A field of an export.
pub(super) struct OutputField {
    pub node: FieldNode,
    /// The field that follows from the columns.
    pub plain: FieldRef,
    pub retype: Option<Retype>,
}

impl OutputField {
    /// Returns the field that is exported.
    pub(super) fn field(&self) -> &FieldRef {
        self.retype.as_ref().map_or(&self.plain, |retype| &retype.field)
    }

    /// Returns the array of the field. `columns` has the arrays of all columns.
    pub(super) fn array(&mut self, columns: &[ArrayRef]) -> Result<ArrayRef> {
        let plain = node_array(&self.node, &self.plain, columns, 0)?;
        let Some(retype) = &mut self.retype else { return Ok(plain) };
        retype.apply(&plain).map_err(|error| {
            let expected = retype.field.data_type();
            let message = format!("the samples do not fit {expected}, their Arrow type in the source: {error}");
            Error::bad_argument(message).with_advice([Advice::StoredTypes])
        })
    }
}

/// The fields of an export.
pub(super) struct OutputFields {
    /// The target of each column.
    pub targets: Vec<Target>,
    pub all: Vec<OutputField>,
    pub metadata: HashMap<String, String>,
}

impl OutputFields {
    /// Plans the export of columns, which are given with their cast facts. `all` has all columns of
    /// the file, and `metadata` is the metadata of the file.
    pub(super) fn of(
        columns: &[(ColumnSchema, Option<CastFacts>)],
        all: &[ColumnSchema],
        metadata: &Metadata,
        choice: TypeChoice,
    ) -> Result<Self> {
        let saved = saved_schema::fields(metadata);
        let whole = FieldNode::of_columns(with_paths(all.iter(), &saved).iter().map(|column| &**column));
        let whole: HashMap<&str, usize> = whole.iter().map(|node| (node.name(), node.columns().len())).collect();
        let by_name: HashMap<&str, &FieldRef> = saved.iter().map(|field| (field.name().as_str(), field)).collect();
        let as_lists = choice.tensors == TensorForm::Lists;
        let targets = columns.iter().map(|(column, cast)| Target::new(column, cast.as_ref(), choice, as_lists));
        let mut chosen = Targets { columns, choice, targets: targets.collect::<Result<_>>()? };
        let (mut outputs, mut restored) = (Vec::new(), HashSet::new());
        let exported = with_paths(columns.iter().map(|(column, _)| column), &saved);
        for node in FieldNode::of_columns(exported.iter().map(|column| &**column)) {
            let source_field = by_name.get(node.name()).copied();
            let retype = match source_field.filter(|_| !choice.stored_types) {
                Some(source_field) => chosen.retype(&node, source_field)?,
                None => None,
            };
            let is_whole = whole.get(node.name()) == Some(&node.columns().len());
            let is_exact = retype.as_ref().is_some_and(|retype| retype.is_exact);
            let is_restored = is_exact || (source_field.is_none() && chosen.has_default_form(&node));
            if is_whole && is_restored && chosen.has_source_types(&node) {
                restored.insert(node.name().to_owned());
            }
            let plain = chosen.plain(&node)?;
            outputs.push(OutputField { node, plain, retype });
        }
        let is_preserved = |key: &str, value: &str| {
            key != saved_schema::KEY
                && described_fields(key, value).is_none_or(|names| names.iter().all(|name| restored.contains(name)))
        };
        let preserved = metadata.iter().filter(|(key, value)| is_preserved(key, value));
        let metadata = preserved.map(|(key, value)| (key.clone(), value.clone())).collect();
        Ok(Self { targets: chosen.targets, all: outputs, metadata })
    }
}

/// The targets of columns. [`Targets::retype`] replaces a target if another form of its tensors
/// fits the field of the source.
struct Targets<'a> {
    columns: &'a [(ColumnSchema, Option<CastFacts>)],
    choice: TypeChoice,
    targets: Vec<Target>,
}

impl Targets<'_> {
    /// Returns the columns of a node, each with its target.
    fn node_columns(&self, node: &FieldNode) -> impl Iterator<Item = (&ColumnSchema, &Target)> {
        let number = |number: usize| Some((&self.columns.get(number)?.0, self.targets.get(number)?));
        node.columns().into_iter().filter_map(number)
    }

    /// Returns whether a field has the form that it would have if the caller did not request one.
    fn has_default_form(&self, node: &FieldNode) -> bool {
        self.choice.tensors == TensorForm::AsImported
            || !self.node_columns(node).any(|(_, target)| target.form == Form::Lists)
    }

    /// Returns whether rounded columns have the types that they had before they were rounded.
    fn has_source_types(&self, node: &FieldNode) -> bool {
        self.node_columns(node)
            .all(|(column, target)| column.cast.is_none_or(|cast| Some(target.dtype) == cast.source.dtype()))
    }

    /// Returns the conversion to a field of the source; `None` if the columns do not fit that
    /// field. Tensors that were not extension types in the source get targets that are lists.
    fn retype(&mut self, node: &FieldNode, source_field: &Field) -> Result<Option<Retype>> {
        let choice = self.choice;
        let mut tensors = Vec::new();
        tensor_columns(source_field, source_field.name().clone(), &mut tensors);
        if !self.can_have_form(node, &tensors) {
            return Ok(None);
        }
        if choice.tensors == TensorForm::AsImported {
            self.replace(node, |name| !tensors.contains(name))?;
        }
        let retype = Retype::between(&*self.plain(node)?, source_field, choice.repetition, choice.ordered);
        if retype.is_none() && choice.tensors == TensorForm::AsImported {
            self.replace(node, |_| false)?;
        }
        Ok(retype)
    }

    /// Returns whether a field can have the tensor form that the caller requests. `tensors` has the
    /// names of its columns that were tensors with an extension type in the source.
    fn can_have_form(&self, node: &FieldNode, tensors: &[String]) -> bool {
        let is_list = |(column, target): (&ColumnSchema, &Target)| {
            target.form.is_extension() && column.levels.is_empty() && !tensors.contains(&column.name)
        };
        match self.choice.tensors {
            TensorForm::AsImported => true,
            TensorForm::Lists => tensors.is_empty(),
            TensorForm::Extension => !self.node_columns(node).any(is_list),
        }
    }

    /// Replaces the targets of the columns of a node.
    fn replace(&mut self, node: &FieldNode, as_lists: impl Fn(&String) -> bool) -> Result<()> {
        for number in node.columns() {
            if let (Some(target), Some((column, cast))) = (self.targets.get_mut(number), self.columns.get(number)) {
                *target = Target::new(column, cast.as_ref(), self.choice, as_lists(&column.name))?;
            }
        }
        Ok(())
    }

    fn plain(&self, node: &FieldNode) -> Result<FieldRef> {
        let field = node_field(node, &self.targets, 0);
        field.ok_or_else(|| Error::internal("a column is missing from the field to which it is exported"))
    }
}

/// Collects the names of the columns in a field that are tensors with an extension type.
fn tensor_columns(field: &Field, name: String, tensors: &mut Vec<String>) {
    if is_tensor(field) {
        tensors.push(name);
        return;
    }
    match field.data_type() {
        DataType::Struct(fields) => {
            for field in fields {
                tensor_columns(field, format!("{name}.{}", field.name()), tensors);
            }
        }
        other => members(other).into_iter().for_each(|item| tensor_columns(item, name.clone(), tensors)),
    }
}

/// Returns the fields that an export of this schema has if the file does not record the fields of
/// the source.
pub(crate) fn plain_fields(schema: &Schema) -> Vec<FieldRef> {
    let plain = schema.columns.iter().map(|column| Ok((in_arrow(column)?.into_owned(), None)));
    let plain: Vec<_> = plain.collect::<Result<_>>().unwrap_or_default();
    let outputs = OutputFields::of(&plain, &schema.columns, &Metadata::new(), TypeChoice::AS_IMPORTED);
    outputs.map_or_else(|_| Vec::new(), |outputs| outputs.all.into_iter().map(|output| output.plain).collect())
}

/// Returns the names of the fields that the metadata of another library describes; `None` if the
/// metadata does not describe fields.
fn described_fields(key: &str, text: &str) -> Option<Vec<String>> {
    let document = || serde_json::from_str::<Value>(text).ok();
    match key {
        "pandas" => {
            let name = |column: &Value| {
                let name = ["field_name", "name"].iter().find_map(|key| column.get(key)?.as_str());
                name.map(str::to_owned)
            };
            Some(document()?.get("columns")?.as_array()?.iter().filter_map(name).collect())
        }
        // from the library `datasets`
        "huggingface" => Some(document()?.pointer("/info/features")?.as_object()?.keys().cloned().collect()),
        _ => None,
    }
}

/// Returns the columns, and adds the paths that only the fields of the source (`saved`) reveal. A
/// column to which a path is added also gets a type other than bool, because otherwise it would
/// look like the nulls of a struct.
pub(super) fn with_paths<'a>(
    columns: impl Iterator<Item = &'a ColumnSchema>,
    saved: &[FieldRef],
) -> Vec<Cow<'a, ColumnSchema>> {
    let mut paths = None;
    let mut with_path = |column: &'a ColumnSchema| {
        let is_empty = column.dtype == DType::Bool && column.shape.extents() == [Extent::Fixed(0)];
        if !is_empty || column.path().is_some() {
            return Cow::Borrowed(column);
        }
        let paths = paths.get_or_insert_with(|| paths_of(saved));
        let Some(path) = paths.get(&column.name) else { return Cow::Borrowed(column) };
        let mut column = ColumnSchema { dtype: DType::U8, ..column.clone() };
        column.metadata.insert(path::KEY.to_owned(), path.clone());
        Cow::Owned(column)
    };
    columns.map(&mut with_path).collect()
}

/// Returns the paths of all lists of 0 bools in structs, by column name.
fn paths_of(saved: &[FieldRef]) -> HashMap<String, String> {
    let mut paths = HashMap::new();
    for field in saved {
        collect(field, field.name().clone(), path::escaped(field.name()), false, &mut paths);
    }
    paths
}

/// Collects the paths in a field. The recursion is bounded, because the depth of a field is
/// limited.
fn collect(field: &Field, name: String, path: String, in_struct: bool, paths: &mut HashMap<String, String>) {
    match field.data_type() {
        DataType::Struct(fields) if !is_tensor(field) => {
            for field in fields {
                let child = (format!("{name}.{}", field.name()), format!("{path}.{}", path::escaped(field.name())));
                collect(field, child.0, child.1, true, paths);
            }
        }
        DataType::FixedSizeList(item, 0) if in_struct && *item.data_type() == DataType::Boolean => {
            paths.insert(name, path);
        }
        other => {
            if let Some(item) = members(other) {
                collect(item, name, format!("{path}[]"), in_struct, paths);
            }
        }
    }
}

/// Returns the field of a node, inside `depth` levels of lists.
fn node_field(node: &FieldNode, columns: &[Target], depth: usize) -> Option<FieldRef> {
    let column = |number: usize| columns.get(number).map(|target| &target.field);
    match node {
        FieldNode::Column { number, name } => {
            let column = column(*number)?;
            let mut metadata = column.metadata().clone();
            metadata.remove(path::KEY);
            let (data_type, nullable) = member(column, depth)?;
            Some(Arc::new(Field::new(name, data_type.clone(), nullable).with_metadata(metadata)))
        }
        FieldNode::Struct { name, lists, nulls, children } => {
            let inner = depth.checked_add(*lists)?;
            let fields: Option<Fields> = children.iter().map(|child| node_field(child, columns, inner)).collect();
            let fields = fields?;
            let first = column(*node.columns().first()?)?;
            let mut nullable = match nulls {
                Some(number) => member(column(*number)?, inner)?.1,
                None => fields.iter().all(|field| field.is_nullable()),
            };
            let mut data_type = DataType::Struct(fields);
            for level in (depth..inner).rev() {
                data_type = DataType::List(Arc::new(Field::new("item", data_type, nullable)));
                nullable = member(first, level)?.1;
            }
            Some(Arc::new(Field::new(name, data_type, nullable)))
        }
    }
}

/// Returns the array of a node, inside `depth` levels of lists. `field` is the node's field.
fn node_array(node: &FieldNode, field: &Field, columns: &[ArrayRef], depth: usize) -> Result<ArrayRef> {
    let FieldNode::Struct { lists, nulls, children, .. } = node else {
        let FieldNode::Column { number, .. } = node else { return Err(mismatch()) };
        return column_entries(columns, *number, depth);
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
    let arrays = children.iter().zip(fields).map(|(child, field)| node_array(child, field, columns, inner));
    let arrays: Vec<ArrayRef> = arrays.collect::<Result<_>>()?;
    let own = nulls.map(|number| column_entries(columns, number, inner)).transpose()?;
    let count = own.as_ref().or(arrays.first()).map_or(0, |array| array.len());
    let nulls = own.and_then(|own| own.nulls().cloned());
    let structs = StructArray::try_new_with_length(fields.clone(), arrays, nulls, count);
    let mut array: ArrayRef = Arc::new(structs.map_err(|error| unfit(node, &error))?);
    for (level, item) in (depth..inner).zip(items).rev() {
        let lists = shared_lists(node, columns, level)?;
        let wrapped = ListArray::try_new(item.clone(), lists.offsets().clone(), array, lists.nulls().cloned());
        array = Arc::new(wrapped.map_err(|error| unfit(node, &error))?);
    }
    Ok(array)
}

/// Returns the lists of a level, which all columns of the struct share.
fn shared_lists(node: &FieldNode, columns: &[ArrayRef], level: usize) -> Result<ListArray> {
    let mut shared: Option<ListArray> = None;
    for number in node.columns() {
        let array = column_entries(columns, number, level)?;
        let lists = array.as_list_opt::<i32>().ok_or_else(mismatch)?;
        let is_same =
            shared.as_ref().is_none_or(|shared| shared.offsets() == lists.offsets() && shared.nulls() == lists.nulls());
        if !is_same {
            let message = format!("the fields of the struct {:?} have lists of different lengths", node.name());
            return Err(Error::bad_input(message));
        }
        shared.get_or_insert_with(|| lists.clone());
    }
    shared.ok_or_else(mismatch)
}

/// Returns the error for columns whose paths make them fields of one struct, although they do not
/// fit together.
fn unfit(node: &FieldNode, error: &ArrowError) -> Error {
    Error::bad_input(format!("the fields of the struct {:?} do not fit together: {error}", node.name()))
}

/// Returns the type of a column's entries inside `depth` levels of lists, and whether the entries
/// can be null.
fn member(column: &Field, depth: usize) -> Option<(&DataType, bool)> {
    let (mut data_type, mut nullable) = (column.data_type(), column.is_nullable());
    for _ in 0..depth {
        let DataType::List(item) = data_type else { return None };
        (data_type, nullable) = (item.data_type(), item.is_nullable());
    }
    Some((data_type, nullable))
}

/// Returns a column's entries inside `depth` levels of lists.
fn column_entries(columns: &[ArrayRef], number: usize, depth: usize) -> Result<ArrayRef> {
    let column = columns.get(number).ok_or_else(mismatch)?.clone();
    let entries = (0..depth).try_fold(column, |array, _| Some(array.as_list_opt::<i32>()?.values().clone()));
    entries.ok_or_else(mismatch)
}

#[cold]
fn mismatch() -> Error {
    Error::internal("the type of a column does not match the path in its metadata")
}
