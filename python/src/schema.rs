//! Schemas and column types in Python.
//!
//! In Python, a schema is a dict from column names to types, which `tensor`, `utf8`, `binary` and
//! `list_` create. In the crates, a `ColumnSchema` has both the name and the type of a column. A
//! [`ColumnType`] wraps a `ColumnSchema` and ignores its name. Types and schemas are values:
//! frozen, compared and pickled by content.

use crate::arguments::{Dict, Natural, members};
use crate::array::dtype::DTypeArgument;
use pyo3::exceptions::{PyKeyError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyInt, PyTuple};
use tensilo::nested::ListLevel;
use tensilo::{CastSource, ColumnSchema, DType, Extent, LogicalType, Metadata, Shape};

/// The type of a column: the dtype of its elements, the shape of a sample, and whether samples may
/// be null.
///
/// ``tensor``, ``utf8``, ``binary`` and ``list_`` create column types.
#[pyclass(frozen, module = "tensilo", eq)]
#[derive(Clone)]
pub struct ColumnType(pub ColumnSchema);

impl PartialEq for ColumnType {
    /// Compares everything but the name.
    fn eq(&self, other: &Self) -> bool {
        let without_name = |column: &ColumnSchema| ColumnSchema { name: String::new(), ..column.clone() };
        without_name(&self.0) == without_name(&other.0)
    }
}

/// The columns of a dataset: a mapping from names to ``ColumnType``.
#[pyclass(frozen, mapping, module = "tensilo", eq)]
#[derive(PartialEq)]
pub struct Schema(pub tensilo::Schema);

/// Returns bytes as hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns a shape as a tuple, with None where an extent varies.
pub fn shape_tuple<'py>(py: Python<'py>, shape: &Shape) -> PyResult<Bound<'py, PyTuple>> {
    let extents = shape.extents().iter().map(|extent| match extent {
        Extent::Fixed(extent) => Some(*extent),
        Extent::Varying => None,
    });
    PyTuple::new(py, extents.collect::<Vec<_>>())
}

/// A shape argument: a single extent, or a sequence of extents with None where an extent varies.
pub struct ShapeArgument(pub Shape);

impl<'a, 'py> FromPyObject<'a, 'py> for ShapeArgument {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let extents: Vec<Option<Natural<u32>>> = match object.is_instance_of::<PyInt>() {
            true => vec![Some(object.extract()?)],
            false => object.extract()?,
        };
        Ok(Self(shape_of(extents.into_iter().map(|extent| extent.map(|extent| extent.0)).collect())))
    }
}

/// Creates a shape from extents, where `None` is a varying extent.
fn shape_of(extents: Vec<Option<u32>>) -> Shape {
    Shape::new(extents.into_iter().map(|extent| extent.map_or(Extent::Varying, Extent::Fixed)))
}

/// Converts a mapping from names to column types to a schema.
pub fn schema_of(columns: &Bound<'_, PyAny>) -> PyResult<tensilo::Schema> {
    if let Ok(schema) = columns.cast::<Schema>() {
        return Ok(schema.get().0.clone());
    }
    let columns: Dict<'_> = columns.extract().map_err(|_| {
        PyTypeError::new_err(
            "a schema is a dict from column names to types such as tensilo.tensor() and tensilo.utf8()",
        )
    })?;
    let column = |(name, column): (String, Bound<'_, PyAny>)| {
        let column = column.cast::<ColumnType>().map_err(|_| {
            PyTypeError::new_err(format!("column {name:?} needs a type, such as tensilo.tensor(\"f32\", (80,))"))
        })?;
        Ok(ColumnSchema { name, ..column.get().0.clone() })
    };
    Ok(tensilo::Schema {
        columns: members(&columns)?.into_iter().map(column).collect::<PyResult<_>>()?,
        metadata: Metadata::new(),
    })
}

/// Returns the type that the elements of a column represent, if they are not plain values.
pub fn logical_type(column: &ColumnSchema) -> Option<String> {
    LogicalType::of(column).map(|logical| logical.to_string())
}

/// Fails if the elements of a column are only an encoding of its values, such as the integers of
/// decimals.
pub fn check_values(column: &ColumnSchema) -> PyResult<()> {
    LogicalType::check_values(column).map_err(|error| {
        let ways =
            "; use an Arrow library for the values (pyarrow.array), or .stored of a batch column for the stored elements";
        PyTypeError::new_err(format!("{}{ways}", crate::error::text(&error)))
    })
}

#[pymethods]
impl ColumnType {
    /// The dtype of the elements, such as "bf16".
    #[getter]
    fn dtype(&self) -> &'static str {
        self.0.dtype.name()
    }

    /// The type that the elements represent, such as "decimal128[22, 2]" or "timestamp[us, UTC]";
    /// None if they are plain numbers, text or bytes.
    #[getter]
    fn logical_type(&self) -> Option<String> {
        logical_type(&self.0)
    }

    /// What to do before training on this column, if its elements only encode its values; otherwise
    /// None.
    #[getter]
    fn _advice(&self) -> Option<String> {
        LogicalType::check_values(&self.0).err().map(|error| crate::error::text(&error))
    }

    /// The shape of a sample, or of an item of its lists; None where an extent varies.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        shape_tuple(py, &self.0.shape)
    }

    /// Whether samples may be null.
    #[getter]
    fn nullable(&self) -> bool {
        self.0.nullable
    }

    /// For each level of lists around the items, outermost first, whether its members may be null.
    /// Empty if samples are not lists.
    #[getter]
    fn levels(&self) -> Vec<bool> {
        self.0.levels.iter().map(|level| level.nullable).collect()
    }

    /// The dtype that values were rounded from, or None.
    #[getter]
    fn cast_from(&self) -> Option<&'static str> {
        self.0.cast.map(|cast| cast.source.name())
    }

    /// The metadata of the column: a dict of strings.
    #[getter]
    fn metadata(&self) -> Metadata {
        self.0.metadata.clone()
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let make = py.import("tensilo._tensilo")?.getattr("_column_type")?;
        let cast = self.0.cast.map(|cast| cast.source.name());
        let shape = shape_tuple(py, &self.0.shape)?;
        let nulls: Vec<bool> = self.levels().into_iter().chain([self.0.nullable]).collect();
        Ok((make, (self.0.dtype.name(), shape, nulls, cast, self.metadata()).into_pyobject(py)?))
    }

    fn __repr__(&self) -> String {
        let null = if self.0.nullable { ", nullable" } else { "" };
        let cast = self.0.cast.map_or(String::new(), |cast| format!(", from {}", cast.source));
        format!("ColumnType({} {}{null}{cast})", self.0.type_name(), self.0.shape)
    }
}

/// Rebuilds a schema from its pickled state.
#[pyfunction]
pub fn _schema(columns: &Bound<'_, PyAny>, metadata: Metadata) -> PyResult<Schema> {
    Schema::new(columns, Some(metadata))
}

/// Rebuilds a column type from its pickled state. The last entry of `nulls` says whether samples
/// may be null; the entries before it belong to the levels of lists.
#[pyfunction]
pub fn _column_type(
    dtype: DTypeArgument,
    shape: Vec<Option<u32>>,
    nulls: Vec<bool>,
    cast_from: Option<&str>,
    metadata: Metadata,
) -> PyResult<ColumnType> {
    let (nullable, levels) = nulls
        .split_last()
        .ok_or_else(|| PyValueError::new_err("the pickle of the column type is damaged: nulls is empty"))?;
    let mut column = ColumnSchema::tensor("", dtype.0, shape_of(shape));
    (column.nullable, column.metadata) = (*nullable, metadata);
    column.levels = levels.iter().map(|nullable| ListLevel { nullable: *nullable }).collect();
    let unknown = || PyValueError::new_err("the pickle of the column type is damaged: unknown cast_from");
    Ok(ColumnType(match cast_from {
        Some(source) => column.cast_from(CastSource::of_name(source).ok_or_else(unknown)?),
        None => column,
    }))
}

#[pymethods]
impl Schema {
    #[new]
    #[pyo3(signature = (columns, *, metadata=None))]
    fn new(columns: &Bound<'_, PyAny>, metadata: Option<Metadata>) -> PyResult<Self> {
        let mut schema = schema_of(columns)?;
        schema.metadata.extend(metadata.unwrap_or_default());
        Ok(Self(schema))
    }

    /// Returns the type of a column, or ``default`` if the schema does not have it.
    #[pyo3(signature = (name, default=None))]
    fn get<'py>(&self, py: Python<'py>, name: &str, default: Option<Bound<'py, PyAny>>) -> PyResult<Bound<'py, PyAny>> {
        match self.__getitem__(name) {
            Ok(column) => Ok(column.into_pyobject(py)?.into_any()),
            Err(_) => Ok(default.unwrap_or_else(|| py.None().into_bound(py))),
        }
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let py = slf.py();
        let columns = PyDict::new(py);
        for (name, column) in slf.get().items() {
            columns.set_item(name, column)?;
        }
        let make = py.import("tensilo._tensilo")?.getattr("_schema")?;
        Ok((make, (columns, slf.get().metadata()).into_pyobject(py)?))
    }

    fn keys(&self) -> Vec<&str> {
        self.0.columns.iter().map(|column| column.name.as_str()).collect()
    }

    fn values(&self) -> Vec<ColumnType> {
        self.0.columns.iter().map(|column| ColumnType(column.clone())).collect()
    }

    fn items(&self) -> Vec<(&str, ColumnType)> {
        self.0.columns.iter().map(|column| (column.name.as_str(), ColumnType(column.clone()))).collect()
    }

    /// The metadata of the dataset: a dict of strings.
    #[getter]
    fn metadata(&self) -> Metadata {
        self.0.metadata.clone()
    }

    fn __len__(&self) -> usize {
        self.0.columns.len()
    }

    fn __contains__(&self, name: &str) -> bool {
        self.0.columns.iter().any(|column| column.name == name)
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(self.keys().into_pyobject(py)?.try_iter()?.into_any())
    }

    fn __getitem__(&self, name: &str) -> PyResult<ColumnType> {
        let column = self.0.columns.iter().find(|column| column.name == name);
        column.map(|column| ColumnType(column.clone())).ok_or_else(|| {
            PyKeyError::new_err(format!("no column {name:?}: the columns are {}", self.keys().join(", ")))
        })
    }

    fn __repr__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("tensilo._show")?.call_method1("schema_text", (slf,))
    }

    fn _repr_html_<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("tensilo._show")?.call_method1("schema_html", (slf,))
    }
}

/// Returns the type of a column of tensors.
///
/// Args:
///     dtype (str or dtype): "bf16", "f16", "f32", "f64", "i8" to "i64", "u8" to "u64", "bool", or
///         a dtype of another library.
///     shape (tuple or int, optional): the extents of a sample, with None where they vary between
///         samples; an int for one dimension. Default: ``()``, a scalar.
///     nullable (bool, optional): whether samples may be null. Default: False.
///     cast_from (str or dtype, optional): the dtype of the values to write, which are rounded to
///         ``dtype``. Default: ``dtype``.
///     metadata (dict, optional): strings to store with the column. Default: none.
#[pyfunction]
#[pyo3(signature = (dtype, shape=ShapeArgument(Shape::fixed(&[])), *, nullable=false, cast_from=None, metadata=None))]
pub fn tensor(
    dtype: DTypeArgument,
    shape: ShapeArgument,
    nullable: bool,
    cast_from: Option<DTypeArgument>,
    metadata: Option<Metadata>,
) -> PyResult<ColumnType> {
    if dtype.0.is_string() {
        return Err(PyValueError::new_err("tensor() needs a numeric dtype: use utf8() for text or binary() for bytes"));
    }
    let mut column = ColumnSchema::tensor("", dtype.0, shape.0);
    column.nullable = nullable;
    column.metadata = metadata.unwrap_or_default();
    Ok(ColumnType(match cast_from {
        Some(source) => column.cast_from(source.0),
        None => column,
    }))
}

/// Returns the type of a column of text.
///
/// Args:
///     nullable (bool, optional): whether samples may be null. Default: False.
///     metadata (dict, optional): strings to store with the column. Default: none.
#[pyfunction]
#[pyo3(signature = (*, nullable=false, metadata=None))]
pub fn utf8(nullable: bool, metadata: Option<Metadata>) -> ColumnType {
    string(DType::Utf8, nullable, metadata)
}

/// Returns the type of a column of byte strings, such as encoded images.
///
/// Args:
///     nullable (bool, optional): whether samples may be null. Default: False.
///     metadata (dict, optional): strings to store with the column. Default: none.
#[pyfunction]
#[pyo3(signature = (*, nullable=false, metadata=None))]
pub fn binary(nullable: bool, metadata: Option<Metadata>) -> ColumnType {
    string(DType::Bytes, nullable, metadata)
}

fn string(dtype: DType, nullable: bool, metadata: Option<Metadata>) -> ColumnType {
    let mut column = ColumnSchema::tensor("", dtype, Shape::ragged());
    (column.nullable, column.metadata) = (nullable, metadata.unwrap_or_default());
    ColumnType(column)
}

/// Returns the type of a column whose samples are lists of another type.
///
/// Args:
///     item (ColumnType): the type of the members. If it is nullable, members may be null.
///     nullable (bool, optional): whether samples may be null. Default: False.
#[pyfunction]
#[pyo3(signature = (item, *, nullable=false))]
pub fn list_(item: &ColumnType, nullable: bool) -> ColumnType {
    let mut column = item.0.clone();
    column.levels.insert(0, ListLevel { nullable: column.nullable });
    column.nullable = nullable;
    ColumnType(column)
}
