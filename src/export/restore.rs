//! The fields of an export: those of the source as far as the file knows them, and otherwise those
//! that the columns imply.

use super::described;
use super::field::{Form, Parts, Target, exported_dtype};
use super::member_paths::with_paths;
use super::options::TensorForm;
use super::retype::Retype;
use crate::arrow_type::{in_arrow, is_tensor, members};
use crate::error::Advice;
use crate::format::{CastFacts, FieldNode};
use crate::saved_schema;
use crate::{ColumnSchema, Error, Metadata, Result, Schema};
use arrow_array::ArrayRef;
use arrow_schema::{DataType, Field, FieldRef};
use std::collections::HashMap;

/// The choice of types by format and caller.
#[derive(Clone, Copy)]
pub(super) struct TypeChoice {
    pub parts: Parts,
    pub tensors: TensorForm,
    pub stored_types: bool,
    /// Whether dictionaries may say that their values are ordered: unless values were appended.
    pub ordered: bool,
}

/// A field of an export.
pub(super) struct Output {
    pub node: FieldNode,
    /// The field that the columns imply.
    pub plain: FieldRef,
    pub retype: Option<Retype>,
}

impl Output {
    /// Returns the field that is exported.
    pub(super) fn field(&self) -> &FieldRef {
        self.retype.as_ref().map_or(&self.plain, |retype| &retype.field)
    }

    /// Returns the array of the field. `columns` are those of all columns.
    pub(super) fn array(&mut self, columns: &[ArrayRef]) -> Result<ArrayRef> {
        let plain = self.node.array(&self.plain, columns, 0)?;
        let Some(retype) = &mut self.retype else { return Ok(plain) };
        retype.apply(&plain).map_err(|error| {
            let due = retype.field.data_type();
            let message = format!("the samples do not fit {due}, the Arrow type that they had in the source: {error}");
            Error::bad_argument(message).with_advice([Advice::StoredTypes])
        })
    }
}

/// The fields of an export.
pub(super) struct Outputs {
    /// For each column.
    pub targets: Vec<Target>,
    /// The fields of the targets.
    fields: Vec<FieldRef>,
    pub all: Vec<Output>,
    pub metadata: HashMap<String, String>,
}

impl Outputs {
    /// Plans the export of columns from a file with columns `all` and this metadata.
    pub(super) fn of(
        columns: &[ExportedColumn<'_>],
        all: &[ColumnSchema],
        metadata: &Metadata,
        choice: TypeChoice,
    ) -> Result<Self> {
        let saved = saved_schema::fields(metadata);
        let whole = FieldNode::of_columns(with_paths(all.iter(), &saved).iter().map(|column| &**column));
        let whole: HashMap<&str, usize> = whole.iter().map(|node| (node.name(), node.columns().len())).collect();
        let by_name: HashMap<&str, &FieldRef> = saved.iter().map(|field| (field.name().as_str(), field)).collect();
        let targets: Vec<Target> = columns
            .iter()
            .map(|column| column.target(choice, choice.tensors == TensorForm::Lists))
            .collect::<Result<_>>()?;
        let fields = targets.iter().map(|target| target.field.clone()).collect();
        let mut this = Self { targets, fields, all: Vec::new(), metadata: HashMap::new() };
        let mut restored = described::ExportedFields::default();
        let exported = with_paths(columns.iter().map(|column| column.schema), &saved);
        for node in FieldNode::of_columns(exported.iter().map(|column| &**column)) {
            let wanted = by_name.get(node.name()).copied();
            let retype = match wanted.filter(|_| !choice.stored_types) {
                Some(wanted) => this.retype(&node, wanted, columns, choice)?,
                None => None,
            };
            let is_whole = whole.get(node.name()) == Some(&node.columns().len());
            let is_exact = retype.as_ref().is_some_and(|retype| retype.is_exact);
            let is_restored = is_exact || (wanted.is_none() && this.is_as_implied(&node, choice.tensors));
            restored.add(node.name(), is_whole && is_restored && this.has_source_types(&node, columns));
            let plain = this.plain(&node)?;
            this.all.push(Output { node, plain, retype });
        }
        let kept = metadata.iter().filter(|(key, value)| restored.describes_all(key, value));
        let kept = kept.filter(|(key, _)| key.as_str() != saved_schema::KEY);
        this.metadata = kept.map(|(key, value)| (key.clone(), value.clone())).collect();
        Ok(this)
    }

    /// Returns whether a field has the form that its columns imply if the caller asks for none.
    fn is_as_implied(&self, node: &FieldNode, form: TensorForm) -> bool {
        let is_lists = |number: usize| self.targets.get(number).is_some_and(|target| target.form == Form::Lists);
        form == TensorForm::AsImported || !node.columns().into_iter().any(is_lists)
    }

    /// Returns whether columns that were rounded have the types that they were rounded from.
    fn has_source_types(&self, node: &FieldNode, columns: &[ExportedColumn<'_>]) -> bool {
        node.columns().into_iter().all(|number| {
            let source = columns.get(number).and_then(|column| column.schema.cast).map(|cast| cast.source);
            source.is_none_or(|source| {
                self.targets.get(number).is_some_and(|target| Some(target.dtype) == source.dtype())
            })
        })
    }

    /// Returns the change to a field of the source. `None`: the columns do not fit it. Tensors that
    /// were no extension types there get targets that are lists.
    fn retype(
        &mut self,
        node: &FieldNode,
        wanted: &Field,
        columns: &[ExportedColumn<'_>],
        choice: TypeChoice,
    ) -> Result<Option<Retype>> {
        let mut tensors = Vec::new();
        tensor_columns(wanted, wanted.name().clone(), &mut tensors);
        if !self.can_be(node, &tensors, columns, choice.tensors) {
            return Ok(None);
        }
        if choice.tensors == TensorForm::AsImported {
            self.replace(node, columns, choice, |name| !tensors.iter().any(|tensor| tensor == name))?;
        }
        let retype = Retype::between(&*self.plain(node)?, wanted, choice.parts, choice.ordered);
        if retype.is_none() && choice.tensors == TensorForm::AsImported {
            self.replace(node, columns, choice, |_| false)?;
        }
        Ok(retype)
    }

    /// Returns whether a field can have the form of tensors that the caller asks for. `tensors` are
    /// its columns that are tensors of an extension type.
    fn can_be(&self, node: &FieldNode, tensors: &[String], columns: &[ExportedColumn<'_>], form: TensorForm) -> bool {
        let is_list = |number: usize| {
            let (Some(target), Some(column)) = (self.targets.get(number), columns.get(number)) else { return false };
            let is_extension = target.form.is_extension() && column.schema.levels.is_empty();
            is_extension && !tensors.contains(&column.schema.name)
        };
        match form {
            TensorForm::AsImported => true,
            TensorForm::Lists => tensors.is_empty(),
            TensorForm::Extension => !node.columns().into_iter().any(is_list),
        }
    }

    /// Replaces the targets of the columns of a node.
    fn replace(
        &mut self,
        node: &FieldNode,
        columns: &[ExportedColumn<'_>],
        choice: TypeChoice,
        as_lists: impl Fn(&str) -> bool,
    ) -> Result<()> {
        for number in node.columns() {
            if let (Some(target), Some(column)) = (self.targets.get_mut(number), columns.get(number)) {
                *target = column.target(choice, as_lists(&column.schema.name))?;
                self.fields.get_mut(number).into_iter().for_each(|field| *field = target.field.clone());
            }
        }
        Ok(())
    }

    fn plain(&self, node: &FieldNode) -> Result<FieldRef> {
        let field = node.arrow_field(&self.fields, 0);
        field.ok_or_else(|| Error::internal("a column is not in the field that it is exported to"))
    }
}

/// A column to export.
pub(super) struct ExportedColumn<'a> {
    pub schema: &'a ColumnSchema,
    pub cast: Option<CastFacts>,
}

impl ExportedColumn<'_> {
    fn target(&self, choice: TypeChoice, as_lists: bool) -> Result<Target> {
        let dtype = if choice.stored_types { self.schema.dtype } else { exported_dtype(self.schema) };
        Target::new(self.schema, dtype, self.cast.as_ref(), choice.parts, as_lists)
    }
}

/// Collects the names of the columns in a field that are tensors of an extension type.
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

/// Returns the fields that an export of a file gives if the file does not know those of the source.
pub(crate) fn plain_fields(schema: &Schema) -> Vec<FieldRef> {
    let plain: Result<Vec<_>> = schema.columns.iter().map(in_arrow).collect();
    let plain = plain.unwrap_or_default();
    let columns: Vec<ExportedColumn<'_>> = plain.iter().map(|schema| ExportedColumn { schema, cast: None }).collect();
    let choice =
        TypeChoice { parts: Parts::Required, tensors: TensorForm::AsImported, stored_types: false, ordered: true };
    let outputs = Outputs::of(&columns, &schema.columns, &Metadata::new(), choice);
    outputs.map_or_else(|_| Vec::new(), |outputs| outputs.all.into_iter().map(|output| output.plain).collect())
}
