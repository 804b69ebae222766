//! The columns that features become, and their arrays.

use super::example::{Example, FeatureValues};
use std::collections::BTreeMap;
use std::sync::Arc;
use tensilo::import::arrow::array::{
    ArrayRef, BinaryBuilder, Float32Builder, Int64Builder, ListBuilder, RecordBatch, RecordBatchOptions,
};
use tensilo::import::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use tensilo::import::refused_field;
use tensilo::{Error, Result, limits};

/// The facts that all examples tell about a feature.
#[derive(Clone, Debug)]
struct FoundFeature {
    /// `bytes_list`, `float_list` or `int64_list`.
    type_name: &'static str,
    /// Whether each example that has the feature has one value.
    is_single: bool,
    /// The number of examples that have it.
    count: u64,
    /// The reason why its values cannot be stored.
    refused: Option<String>,
}

/// The features of all examples of a file, in the order of their names: a map has no other.
#[derive(Clone, Debug, Default)]
pub(super) struct FoundFeatures {
    features: BTreeMap<String, FoundFeature>,
    pub example_count: u64,
}

impl FoundFeatures {
    /// Takes an example into account, which is `record` in errors.
    pub(super) fn observe(&mut self, example: &Example, record: &dyn Fn() -> String) -> Result<()> {
        for (name, feature) in example.features.iter().flat_map(|features| &features.feature) {
            let Some(values) = &feature.values else { continue };
            let is_single = values.count() == 1;
            let new = FoundFeature { type_name: values.type_name(), is_single, count: 0, refused: None };
            if !self.features.contains_key(name) && self.features.len() >= limits::COLUMNS {
                return Err(Error::bad_input(format!("more than {} features", limits::COLUMNS)));
            }
            let found = self.features.entry(name.clone()).or_insert(new);
            if found.type_name != values.type_name() {
                let reason = || format!("{}: a {} after a {}", record(), values.type_name(), found.type_name);
                found.refused = Some(found.refused.take().unwrap_or_else(reason));
            }
            found.is_single &= is_single;
            found.count = found.count.saturating_add(1);
        }
        self.example_count = self.example_count.saturating_add(1);
        Ok(())
    }

    pub(super) fn schema(&self) -> SchemaRef {
        let field = |(name, found): (&String, &FoundFeature)| {
            if let Some(reason) = &found.refused {
                return refused_field(name, reason);
            }
            let element = match found.type_name {
                "bytes_list" => DataType::Binary,
                "float_list" => DataType::Float32,
                _ => DataType::Int64,
            };
            let data_type = if found.is_single { element } else { DataType::List(list_item(element)) };
            Field::new(name, data_type, found.count < self.example_count)
        };
        Arc::new(Schema::new(self.features.iter().map(field).collect::<Vec<_>>()))
    }
}

fn list_item(element: DataType) -> Arc<Field> {
    Arc::new(Field::new_list_field(element, false))
}

/// Returns some fields of examples as arrays.
pub(super) fn record_batch(examples: &[Example], schema: &SchemaRef) -> Result<RecordBatch> {
    let arrays = schema.fields().iter().map(|field| {
        array(
            field,
            examples.iter().map(|example| example.features.as_ref()?.feature.get(field.name())?.values.as_ref()),
        )
    });
    let arrays = arrays.collect::<Result<Vec<_>>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(examples.len()));
    let batch = RecordBatch::try_new_with_options(Arc::clone(schema), arrays, &options);
    batch.map_err(|error| Error::bad_input(error.to_string()))
}

/// Makes an array of a feature: values of the examples, or lists of them. The second pass finds the
/// types of the first, unless the file was changed, which is found at its end.
fn array<'a>(field: &Field, values: impl Iterator<Item = Option<&'a FeatureValues>>) -> Result<ArrayRef> {
    macro_rules! build {
        ($builder:expr, $variant:ident, $value:expr) => {{
            match field.data_type() {
                DataType::List(item) => {
                    let mut lists = ListBuilder::new($builder).with_field(Arc::clone(item));
                    for values in values {
                        if let Some(FeatureValues::$variant(list)) = values {
                            list.value.iter().map($value).for_each(|value| lists.values().append_value(value));
                            lists.append(true);
                        } else {
                            lists.append(false);
                        }
                    }
                    Arc::new(lists.finish())
                }
                _ => {
                    let mut builder = $builder;
                    for values in values {
                        if let Some(FeatureValues::$variant(list)) = values {
                            builder.append_option(list.value.first().map($value));
                        } else {
                            builder.append_null();
                        }
                    }
                    Arc::new(builder.finish())
                }
            }
        }};
    }
    let element = if let DataType::List(item) = field.data_type() { item.data_type() } else { field.data_type() };
    let array: ArrayRef = match element {
        DataType::Binary => build!(BinaryBuilder::new(), Bytes, Vec::as_slice),
        DataType::Float32 => build!(Float32Builder::new(), Floats, |value: &f32| *value),
        _ => build!(Int64Builder::new(), Integers, |value: &i64| *value),
    };
    Ok(array)
}
