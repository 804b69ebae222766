//! The Arrow fields of columns.
//!
//! A [`Target`] describes the export of a column as far as it follows from the column itself: the
//! field, the form of its samples in an array ([`Form`]), and the type of its elements. If a column
//! was imported from a type such as a date or a decimal, its metadata names the Arrow type. The
//! metadata can be wrong, so this type is used only if importing an array of this type would
//! produce the same column again.
//!
//! The metadata of extension types is checked before it is exported, because a single malformed
//! field would make readers refuse the whole file.

use crate::format::{CastFacts, ListLevel};
use crate::logical::arrow_type::{
    self, ArrowType, CAST_TYPE, DIM_NAMES, FIXED_SHAPE_TENSOR, INFERRED_SHAPE, VARIABLE_SHAPE_TENSOR, stored_element,
};
use crate::{CastSource, ColumnSchema, DType, Error, Extent, Metadata, Result, Shape};
use arrow_schema::extension::{EXTENSION_TYPE_METADATA_KEY, EXTENSION_TYPE_NAME_KEY};
use arrow_schema::{DataType, Field, FieldRef, IntervalUnit};
use std::collections::HashMap;
use std::sync::Arc;

/// The metadata key for a human-readable summary of a column's cast.
pub(super) const CAST: &str = "tensilo.cast";
/// The maximum width of fixed-size strings. Longer strings are exported as `Binary`. A null takes
/// as many bytes as any other sample, and only the metadata states the width, so without a limit,
/// wrong metadata could request any amount of memory.
const FIXED_STRING_BYTES: i32 = 16 << 20;

/// How to export tensors whose shape is fixed or has more than one dimension.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum TensorForm {
    /// As in the source of the file, if that was Arrow or Parquet; otherwise as extension types.
    #[default]
    AsImported,
    /// As the extension types `arrow.fixed_shape_tensor` and `arrow.variable_shape_tensor`.
    Extension,
    /// As nested lists, with one level for each dimension.
    Lists,
}

/// The form of a column's samples in an array.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Form {
    /// One element.
    Scalar,
    /// No values: all samples are null.
    Null,
    /// Bytes or text.
    String,
    /// A fixed number of bytes.
    FixedString(i32),
    /// A tensor of a fixed shape, with this number of elements.
    FixedTensor(i32),
    /// A list of any number of elements.
    List,
    /// A tensor of variable shape: a list of its elements, and its shape, with these types.
    Tensor { data: DataType, shape: DataType },
    /// Nested lists, with one level for each dimension.
    Lists,
}

impl Form {
    /// Returns whether tensors of this form have an extension type.
    pub(super) fn is_extension(&self) -> bool {
        matches!(self, Self::FixedTensor(_) | Self::Tensor { .. })
    }
}

/// Whether the schema declares the components of a tensor (elements, list of elements, shape)
/// nullable. They are never null, except in a null tensor.
///
/// Arrow's Rust library recognizes a tensor only if its components are *required*. The C++ library,
/// on which the Python library is based, accepts required and optional components in an IPC file.
/// From a Parquet file, however, it restores a tensor only if all components are *optional*, and it
/// cannot read a required shape in a null tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Repetition {
    Required,
    Optional,
}

/// The choice of types, which depends on the format and the caller.
#[derive(Clone, Copy)]
pub(super) struct TypeChoice {
    pub repetition: Repetition,
    pub tensors: TensorForm,
    pub stored_types: bool,
    /// Whether dictionaries may be declared ordered. This is not allowed if a sample has a value
    /// that was not in the dictionary of the source.
    pub ordered: bool,
}

impl TypeChoice {
    /// The types of the source, for an export to Arrow.
    pub(super) const AS_IMPORTED: Self =
        Self { repetition: Repetition::Required, tensors: TensorForm::AsImported, stored_types: false, ordered: true };
}

/// The Arrow field of a column.
#[derive(Clone, Debug)]
pub(super) struct Target {
    pub field: FieldRef,
    /// The type of the items. If the column is not nested, this is the type of the field.
    pub items: DataType,
    pub form: Form,
    /// The shape of an item, counted in elements of the type `element`.
    pub shape: Shape,
    /// The type of the elements or, if samples are strings, the type of the array.
    pub element: DataType,
    /// The type of the values before their conversion to Arrow.
    pub dtype: DType,
    pub repetition: Repetition,
}

impl Target {
    /// Creates the target of a column. Tensors become nested lists if `as_lists`.
    pub(super) fn new(
        column: &ColumnSchema,
        cast: Option<&CastFacts>,
        choice: TypeChoice,
        as_lists: bool,
    ) -> Result<Self> {
        let repetition = choice.repetition;
        let dtype = if choice.stored_types { column.dtype } else { exported_dtype(column) };
        let restored = restored_type(column, repetition);
        let element = restored.clone().unwrap_or_else(|| plain_type(dtype));
        let column = &in_elements(column, &element);
        let form = match form(column, &element, repetition) {
            Ok(Form::FixedTensor(_) | Form::Tensor { .. }) if as_lists => Ok(Form::Lists),
            form => form.map_err(|error| error.with_column(&column.name)),
        }?;
        let mut metadata = column.metadata.clone();
        metadata.remove(INFERRED_SHAPE);
        metadata.remove(CAST_TYPE);
        if restored.is_some() {
            metadata.remove(arrow_type::KEY); // the type implies it
        }
        if let (Some(spec), Some(facts)) = (column.cast, cast) {
            metadata.insert(CAST.to_owned(), cast_text(spec.source, column.dtype, facts));
        }
        let mut item_metadata = Metadata::new();
        if column.levels.is_empty() {
            add_extension(column, &form, &mut metadata);
        } else {
            item_metadata.extend(metadata.remove(DIM_NAMES).map(|names| (DIM_NAMES.to_owned(), names)));
            add_extension(column, &form, &mut item_metadata);
            metadata.extend(item_metadata.remove(DIM_NAMES).map(|names| (DIM_NAMES.to_owned(), names)));
        }
        let metadata: HashMap<String, String> = metadata.into_iter().collect();
        let items = match form {
            Form::Lists => {
                lists_type(column.shape.extents(), &element).map_err(|error| error.with_column(&column.name))?
            }
            _ => data_type(&form, &element, repetition),
        };
        let list = |members: DataType, level: &ListLevel| {
            let item_metadata: HashMap<String, String> = std::mem::take(&mut item_metadata).into_iter().collect();
            DataType::List(Arc::new(Field::new("item", members, level.nullable).with_metadata(item_metadata)))
        };
        let data_type = column.levels.iter().rev().fold(items.clone(), list);
        let field = Field::new(&column.name, data_type, column.nullable).with_metadata(metadata);
        Ok(Self { field: Arc::new(field), items, form, shape: column.shape.clone(), element, dtype, repetition })
    }
}

/// Returns the column with its shape counted in elements of the type `element`. If such an element,
/// for example a decimal, is stored as several values, the innermost dimension is dropped.
fn in_elements(column: &ColumnSchema, element: &DataType) -> ColumnSchema {
    let mut extents = column.shape.extents().to_vec();
    if stored_element(element).is_some_and(|stored| stored.extent.is_some()) {
        extents.pop();
    }
    ColumnSchema { shape: Shape::new(extents), ..column.clone() }
}

/// Returns the type of the exported elements. This is the type before a cast if it can represent
/// all values of the stored type. (f16 cannot represent all values of bf16, and integers cannot
/// represent fractions.)
fn exported_dtype(column: &ColumnSchema) -> DType {
    match (column.dtype, column.pushed_dtype()) {
        (DType::Bf16, DType::F16) | (DType::F16, DType::Bf16) => DType::F32,
        (stored, pushed) if pushed.is_float() && pushed.element_bytes() > stored.element_bytes() => pushed,
        (stored, _) => stored,
    }
}

/// Returns the Arrow type from which a column was imported, such as a decimal or a timestamp, if
/// the type of the column does not imply it. Returns `None` if the metadata of the column
/// (`arrow.type`) does not name a type, or names a type that its elements cannot have.
pub fn imported_type(column: &ColumnSchema) -> Option<DataType> {
    restored_type(column, Repetition::Required)
}

/// Returns the type from which a column was imported, according to its metadata. Returns `None` if
/// the elements cannot have this type, or if the output format does not support it.
fn restored_type(column: &ColumnSchema, repetition: Repetition) -> Option<DataType> {
    let text = column.metadata.get(arrow_type::KEY)?;
    let source_type = ArrowType::from_text(text)?;
    let data_type = source_type.to_arrow();
    let is_possible = match &data_type {
        DataType::FixedSizeBinary(bytes) => (0..=FIXED_STRING_BYTES).contains(bytes),
        DataType::Null => {
            let nullable = column.levels.last().map_or(column.nullable, |level| level.nullable);
            column.shape.ndim() == 0 && nullable
        }
        _ => true,
    };
    let is_in_file = repetition == Repetition::Required || is_in_parquet(&data_type);
    let is_canonical = source_type.to_string() == *text; // an import would give this text again
    (source_type.fits(column) && is_possible && is_in_file && is_canonical).then_some(data_type)
}

/// Returns whether Parquet has a type. Columns with other types are exported with their stored
/// type, and with the metadata that names the Arrow type.
fn is_in_parquet(data_type: &DataType) -> bool {
    match data_type {
        DataType::FixedSizeBinary(bytes) => *bytes > 0,
        DataType::Decimal32(precision, scale)
        | DataType::Decimal64(precision, scale)
        | DataType::Decimal128(precision, scale)
        | DataType::Decimal256(precision, scale) => u8::try_from(*scale).is_ok_and(|scale| scale <= *precision),
        DataType::Interval(unit) => *unit != IntervalUnit::MonthDayNano,
        _ => true,
    }
}

/// Returns Arrow's type for elements; bf16 becomes f32.
pub(super) fn plain_type(dtype: DType) -> DataType {
    match dtype {
        DType::Bf16 | DType::F32 | DType::Complex64 => DataType::Float32,
        DType::F16 => DataType::Float16,
        DType::F64 => DataType::Float64,
        DType::I8 => DataType::Int8,
        DType::I16 => DataType::Int16,
        DType::I32 => DataType::Int32,
        DType::I64 => DataType::Int64,
        DType::U8 | DType::F8E4M3Fn | DType::F8E4M3Fnuz | DType::F8E5M2 | DType::F8E5M2Fnuz => DataType::UInt8,
        DType::F8E8M0Fnu | DType::F6E2M3 | DType::F6E3M2 | DType::F4E2M1 | DType::I4 | DType::U4 => DataType::UInt8,
        DType::U16 => DataType::UInt16,
        DType::U32 => DataType::UInt32,
        DType::U64 => DataType::UInt64,
        DType::Bool => DataType::Boolean,
        DType::Bytes => DataType::Binary,
        DType::Utf8 => DataType::Utf8,
        DType::Unknown { .. } => DataType::Null, // such columns are not exported
    }
}

fn form(column: &ColumnSchema, element: &DataType, repetition: Repetition) -> Result<Form> {
    if let DataType::FixedSizeBinary(bytes) = element {
        return Ok(Form::FixedString(*bytes));
    }
    if *element == DataType::Null {
        return Ok(Form::Null);
    }
    if column.dtype.is_string() {
        return Ok(Form::String);
    }
    match column.shape.extents() {
        [] => Ok(Form::Scalar),
        [Extent::Varying] => Ok(Form::List),
        _ if column.shape.is_ragged() => tensor(column, element, repetition),
        _ => {
            let elements = column.shape.inner_elements().and_then(|elements| i32::try_from(elements).ok());
            let message = || format!("a sample of shape {} has more elements than Arrow supports", column.shape);
            elements.map(Form::FixedTensor).ok_or_else(|| Error::over_limit(message()))
        }
    }
}

fn tensor(column: &ColumnSchema, element: &DataType, repetition: Repetition) -> Result<Form> {
    for extent in column.shape.extents() {
        if let Extent::Fixed(extent) = extent {
            extent_of(*extent)?;
        }
    }
    let ndim = i32::try_from(column.shape.ndim()).unwrap_or(i32::MAX); // at most 16
    let shape = DataType::FixedSizeList(item(&DataType::Int32, repetition), ndim);
    Ok(Form::Tensor { data: DataType::List(item(element, repetition)), shape })
}

/// Returns an extent as Arrow's variable-shape tensors store it.
pub(super) fn extent_of(extent: u32) -> Result<i32> {
    i32::try_from(extent).map_err(|_| Error::over_limit(format!("an extent of {extent} is too large for Arrow")))
}

/// Returns the nested list type for tensors of a shape.
fn lists_type(extents: &[Extent], element: &DataType) -> Result<DataType> {
    extents.iter().rev().try_fold(element.clone(), |members, extent| {
        let item = Arc::new(Field::new_list_field(members, false));
        Ok(match extent {
            Extent::Fixed(extent) => DataType::FixedSizeList(item, extent_of(*extent)?),
            Extent::Varying => DataType::List(item),
        })
    })
}

fn data_type(form: &Form, element: &DataType, repetition: Repetition) -> DataType {
    match form {
        Form::Scalar | Form::Null | Form::String | Form::FixedString(_) | Form::Lists => element.clone(),
        Form::FixedTensor(elements) => DataType::FixedSizeList(item(element, repetition), *elements),
        Form::List => DataType::List(item(element, Repetition::Required)),
        Form::Tensor { data, shape } => {
            let part =
                |name, data_type: &DataType| Field::new(name, data_type.clone(), repetition == Repetition::Optional);
            DataType::Struct([part("data", data), part("shape", shape)].into_iter().collect())
        }
    }
}

/// Returns the field of a list's elements.
fn item(element: &DataType, repetition: Repetition) -> FieldRef {
    Arc::new(Field::new_list_field(element.clone(), repetition == Repetition::Optional))
}

/// Adds the name and metadata of the extension type, if the form has one.
fn add_extension(column: &ColumnSchema, form: &Form, metadata: &mut Metadata) {
    let extents = column.shape.extents().iter().map(|extent| match extent {
        Extent::Fixed(extent) => extent.to_string(),
        Extent::Varying => "null".to_owned(),
    });
    let extents = join(extents);
    let any_fixed = column.shape.varying_count() < column.shape.ndim();
    let (name, shape) = match form {
        Form::FixedTensor(_) => (FIXED_SHAPE_TENSOR, Some(format!("\"shape\":[{extents}]"))),
        Form::Tensor { .. } => (VARIABLE_SHAPE_TENSOR, any_fixed.then(|| format!("\"uniform_shape\":[{extents}]"))),
        Form::Scalar | Form::Null | Form::String | Form::FixedString(_) | Form::List | Form::Lists => return,
    };
    let names = metadata.get(DIM_NAMES).filter(|text| is_string_array(text, column.shape.ndim()));
    let names = names.map(|text| format!("\"dim_names\":{text}"));
    if names.is_some() {
        metadata.remove(DIM_NAMES); // the extension type states the names
    }
    let members = join([shape, names].into_iter().flatten());
    metadata.insert(EXTENSION_TYPE_NAME_KEY.to_owned(), name.to_owned());
    metadata.insert(EXTENSION_TYPE_METADATA_KEY.to_owned(), format!("{{{members}}}"));
}

/// Returns whether `text` is a JSON array of `count` strings.
fn is_string_array(text: &str, count: usize) -> bool {
    serde_json::from_str::<Vec<String>>(text).is_ok_and(|strings| strings.len() == count)
}

fn join(texts: impl Iterator<Item = String>) -> String {
    texts.collect::<Vec<_>>().join(",")
}

fn cast_text(source: CastSource, target: DType, facts: &CastFacts) -> String {
    format!(
        "from {source} to {target}, to nearest, ties to even; largest absolute error {:e}, largest relative error {:e}; \
         {} values became infinite, {} subnormal or zero",
        facts.max_abs_error, facts.max_rel_error, facts.to_infinite, facts.to_subnormal
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_of_strings() {
        assert!(is_string_array(r#" [ "C", "H\n\u00e9" ] "#, 2));
        for text in
            ["", "[]", r#"["a"]"#, r#"["a","b"#, r#"["a","b"]]"#, r#"["a","\x"]"#, r#"["a","\ud800"]"#, r#"["a",1]"#]
        {
            assert!(!is_string_array(text, 2), "{text}");
        }
    }
}
