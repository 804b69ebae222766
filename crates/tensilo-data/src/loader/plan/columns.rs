//! The columns that a loader delivers, and how each of them is delivered.
//!
//! Names, casts and paddings are resolved once, against the schemas of all datasets of the view, so
//! an invalid option is an error before any thread starts. From then on, a column is identified by
//! its *slot*, which is its position among the delivered columns. Its number in a schema would not
//! be enough, because the datasets of a mixture can number their columns differently.

use crate::error::{DataError, Result};
use crate::loader::transform::conversion::Conversion;
use crate::loader::transform::padding::{PadPlan, Padding};
use crate::view::View;
use std::sync::Arc;
use tensilo::{ColumnSchema, DType, LogicalType};

/// The columns that a loader delivers.
#[derive(Clone, Debug)]
pub(in crate::loader) struct ColumnSpecs {
    pub columns: Vec<ColumnSpec>,
    /// For each dataset of the view, the number of each column in its schema.
    pub in_datasets: Vec<Vec<usize>>,
}

/// A column that a loader delivers.
#[derive(Clone, Debug)]
pub(in crate::loader) struct ColumnSpec {
    /// The schema of the stored column.
    pub stored: Arc<ColumnSchema>,
    /// The schema of the delivered column. If the column is cast, this schema has the new type.
    pub delivered: Arc<ColumnSchema>,
    /// The size of a stored sample in bytes, if the column has a fixed shape and is not nested.
    pub fixed_bytes: Option<usize>,
    pub conversion: Option<Conversion>,
    pub padding: Option<PadPlan>,
}

impl ColumnSpecs {
    pub(in crate::loader) fn new(
        view: &View,
        names: Option<&[String]>,
        casts: &[(String, DType)],
        paddings: &[(String, Padding)],
        stored_elements: bool,
    ) -> Result<Self> {
        let first = view.datasets().first().ok_or_else(|| bad("the view has no dataset".to_owned()))?;
        let all = || first.schema().columns.iter().map(|column| column.name.clone()).collect();
        let names: Vec<String> = names.map_or_else(all, <[String]>::to_vec);
        let mut in_datasets = Vec::new();
        for dataset in view.datasets() {
            let columns = &dataset.schema().columns;
            let number = |name: &String| {
                let found = columns.iter().position(|column| column.name == *name);
                found.ok_or_else(|| {
                    let all: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
                    bad(format!("the dataset has no column {name:?}; it has {}", all.join(", ")))
                })
            };
            let numbers: Vec<usize> = names.iter().map(number).collect::<Result<_>>()?;
            for (name, &column) in names.iter().zip(&numbers) {
                check_alike(name, find(first.schema(), name), columns.get(column))?;
                let Some(column) = columns.get(column) else { continue };
                // a cast converts values, so the stored elements must be the values
                let cast = casts.iter().rfind(|(cast, _)| cast == name);
                if !stored_elements || cast.is_some_and(|(_, to)| *to != column.dtype) {
                    LogicalType::check_values(column)?;
                }
            }
            in_datasets.push(numbers);
        }
        check_names("cast", &names, casts)?;
        check_names("padding", &names, paddings)?;
        let spec = |name: &String| {
            let stored = find(first.schema(), name).ok_or_else(|| bad(format!("there is no column {name:?}")))?;
            let of = |(column, _): &&(String, DType)| column == name;
            let cast = casts.iter().rfind(of).map(|(_, to)| *to);
            let padding = paddings.iter().rfind(|(column, _)| column == name).map(|(_, padding)| *padding);
            ColumnSpec::new(stored, cast, padding)
        };
        let columns = names.iter().map(spec).collect::<Result<_>>()?;
        Ok(Self { columns, in_datasets })
    }
}

impl ColumnSpecs {
    /// Returns whether any column is ragged or nested.
    pub(in crate::loader) fn has_ragged(&self) -> bool {
        self.columns.iter().any(|column| column.fixed_bytes.is_none())
    }
}

#[cfg(feature = "cuda")]
impl ColumnSpec {
    /// Returns the size in bytes of a delivered sample in a tensor of these extents; the first
    /// extent is the number of samples.
    pub(in crate::loader) fn row_bytes(&self, extents: &[u64]) -> Option<usize> {
        let times = |bytes: usize, extent: &u64| bytes.checked_mul(usize::try_from(*extent).ok()?);
        extents.iter().skip(1).try_fold(self.delivered.dtype.element_bytes(), times)
    }

    /// Returns the element that fills the rest of a row, and the size of a delivered element in
    /// bytes.
    pub(in crate::loader) fn filler(&self) -> (Vec<u8>, usize) {
        let width = self.delivered.dtype.element_bytes();
        let value = self.padding.as_ref().map_or([0; 8], PadPlan::value);
        (value.get(..width).unwrap_or(&[]).to_vec(), width)
    }
}

impl ColumnSpec {
    fn new(stored: &ColumnSchema, cast: Option<DType>, padding: Option<Padding>) -> Result<Self> {
        let conversion = cast.filter(|to| *to != stored.dtype).map(|to| Conversion::new(stored, to)).transpose()?;
        let dtype = conversion.map_or(stored.dtype, |conversion| conversion.to);
        let delivered = ColumnSchema { dtype, ..stored.clone() };
        let is_fixed = !stored.shape.is_ragged() && stored.levels.is_empty();
        let padding = match (padding, is_fixed) {
            (Some(padding), false) => Some(PadPlan::new(padding, &delivered)?),
            (Some(_), true) => {
                let message = format!("column {:?} has a fixed shape, so there is nothing to pad", stored.name);
                return Err(bad(message));
            }
            (None, _) => None,
        };
        let elements = stored.shape.inner_elements().and_then(|elements| usize::try_from(elements).ok());
        let bytes = elements.and_then(|elements| elements.checked_mul(stored.dtype.element_bytes()));
        let too_large = || bad(format!("the samples of column {:?} do not fit in memory", stored.name));
        let fixed_bytes = if is_fixed { Some(bytes.ok_or_else(too_large)?) } else { None };
        Ok(Self { stored: Arc::new(stored.clone()), delivered: Arc::new(delivered), fixed_bytes, conversion, padding })
    }
}

fn find<'s>(schema: &'s tensilo::Schema, name: &str) -> Option<&'s ColumnSchema> {
    schema.columns.iter().find(|column| column.name == name)
}

/// Fails if an option names a column that is not delivered.
fn check_names<T>(what: &str, names: &[String], options: &[(String, T)]) -> Result<()> {
    match options.iter().find(|(name, _)| !names.contains(name)) {
        Some((name, _)) => Err(bad(format!("the {what} is for column {name:?}, which the loader does not deliver"))),
        None => Ok(()),
    }
}

/// Fails if a column is not the same in all datasets of a view.
fn check_alike(name: &str, first: Option<&ColumnSchema>, other: Option<&ColumnSchema>) -> Result<()> {
    let of = |column: &ColumnSchema| (column.dtype, column.shape.clone(), column.levels.len(), LogicalType::of(column));
    if first.map(of) == other.map(of) {
        return Ok(());
    }
    Err(bad(format!("column {name:?} has different types or shapes in the datasets of the mixture")))
}

fn bad(message: String) -> DataError {
    DataError::BadArgument(message)
}
