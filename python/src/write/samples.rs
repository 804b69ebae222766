//! Converts Python samples to the form that the writer of the crates accepts.
//!
//! A call of `Writer.write` passes an array, a batch column or a list of samples for each column.
//! An [`Input`] converts these samples to values, extents, lists and validity. The whole call is
//! converted before anything is written, so a call that fails writes nothing. Errors name the
//! column and the sample.
//!
//! Values must fit the column: numbers are rounded only if the column declares `cast_from`.

use crate::array::elements::{self, Elements, widened, widened_floats};
use crate::batch::column::BatchColumn;
use crate::schema::check_values;
use pyo3::exceptions::{PyBufferError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{
    PyByteArray, PyBytes, PyComplex, PyComplexMethods, PyDict, PyFrozenSet, PyInt, PyList, PySet, PyString, PyTuple,
};
use tensilo::nested::ListBatch;
use tensilo::{ColumnBatch, ColumnSchema, DType, Extent, LogicalType};

/// The maximum number of samples in a call. Without a limit, a call with samples of 0 bytes could
/// take arbitrarily long.
const MAX_SAMPLES: usize = 1 << 30;

/// The maximum number of characters of the representation of an object in a message.
const MAX_TEXT_CHARS: usize = 80;

/// The samples of one column in a call.
#[derive(Default)]
pub struct Input {
    dtype: Option<DType>,
    item_count: usize,
    extents: Vec<u32>,
    values: Vec<u8>,
    /// A bit per item; `None` until the first null.
    validity: Option<Vec<u8>>,
    levels: Vec<Level>,
}

/// The lists of one level.
#[derive(Default)]
struct Level {
    lengths: Vec<u32>,
    validity: Option<Vec<u8>>,
}

/// Records whether entry `count` is present. The bitmap is created at the first null.
fn push_validity(validity: &mut Option<Vec<u8>>, count: usize, is_present: bool) {
    if is_present && validity.is_none() {
        return;
    }
    let bitmap = validity.get_or_insert_with(|| vec![u8::MAX; count / 8 + 1]);
    bitmap.resize(bitmap.len().max(count / 8 + 1), u8::MAX);
    if let Some(byte) = bitmap.get_mut(count / 8).filter(|_| !is_present) {
        *byte &= !(1 << (count % 8));
    }
}

impl Input {
    /// Converts an array whose first dimension is the sample index, a `BatchColumn`, or a sequence
    /// of samples.
    pub fn new(column: &ColumnSchema, object: &Bound<'_, PyAny>) -> PyResult<Self> {
        Self::read(column, object).map_err(|error| prefixed(object.py(), error, &format!("column {:?}", column.name)))
    }

    fn read(column: &ColumnSchema, object: &Bound<'_, PyAny>) -> PyResult<Self> {
        let mut this = Self { levels: column.levels.iter().map(|_| Level::default()).collect(), ..Self::default() };
        // if both columns have the same logical type, the stored elements can be written unchanged
        let stored = match object.cast::<BatchColumn>() {
            Ok(samples) if LogicalType::of(&samples.get().0.schema) == LogicalType::of(column) => {
                Some(Bound::new(object.py(), samples.get().stored())?.into_any())
            }
            _ => None,
        };
        let object = stored.as_ref().unwrap_or(object);
        if let Ok(samples) = object.cast::<BatchColumn>()
            && !column.dtype.is_string()
            && let Some(tensor) = samples.get().0.tensor()?
            && samples.get().0.column().null_count() == 0
        {
            check_values(&samples.get().0.schema)?;
            let elements = Elements { dtype: tensor.dtype, shape: tensor.shape, bytes: tensor.memory.to_vec() };
            this.add_tensor(column, elements)?;
            return Ok(this);
        }
        let is_array = !column.dtype.is_string() && column.levels.is_empty();
        if is_array && let Some(elements) = elements(object)? {
            this.add_tensor(column, elements)?;
            return Ok(this);
        }
        if is_non_list_iterable(object) {
            let name = object.get_type().name()?;
            return Err(PyTypeError::new_err(format!(
                "samples must be an array or a list, not {name}: put a single sample in a list"
            )));
        }
        let samples = object.try_iter().map_err(|_| {
            let name = object.get_type().name().map_or(String::new(), |name| name.to_string());
            PyTypeError::new_err(format!("samples must be an array or a list, not {name}"))
        })?;
        for (number, sample) in samples.enumerate() {
            let added = this.add(column, 0, &sample?);
            added.map_err(|error| prefixed(object.py(), error, &format!("sample {number} of the call")))?;
        }
        Ok(this)
    }

    /// Returns the number of samples.
    pub fn sample_count(&self) -> usize {
        self.levels.first().map_or(self.item_count, |level| level.lengths.len())
    }

    /// Returns the size of the values, in bytes.
    pub fn byte_count(&self) -> usize {
        self.values.len()
    }

    /// Returns the lists to pass to [`Input::batch`].
    pub fn lists(&self) -> Vec<ListBatch<'_>> {
        let lists = self.levels.iter().map(|level| match &level.validity {
            Some(validity) => ListBatch::new(&level.lengths).with_validity(validity),
            None => ListBatch::new(&level.lengths),
        });
        lists.collect()
    }

    /// Returns the samples for a writer.
    pub fn batch<'a>(&'a self, column: &ColumnSchema, lists: &'a [ListBatch<'a>]) -> ColumnBatch<'a> {
        let dtype = self.dtype.unwrap_or_else(|| column.pushed_dtype());
        let batch = ColumnBatch::from_bytes(dtype, self.item_count, &self.extents, &self.values);
        let batch = if lists.is_empty() { batch } else { batch.in_lists(lists) };
        match &self.validity {
            Some(validity) => batch.with_validity(validity),
            None => batch,
        }
    }

    /// Adds a tensor whose first dimension is the sample index.
    fn add_tensor(&mut self, column: &ColumnSchema, elements: Elements) -> PyResult<()> {
        let Some((&count, sample)) = elements.shape.split_first() else {
            return Err(PyValueError::new_err(
                "a 0-dimensional array has no samples: the first dimension must be the sample index",
            ));
        };
        if count > MAX_SAMPLES {
            return Err(PyValueError::new_err(format!(
                "{count} samples in one call exceed the maximum of {MAX_SAMPLES}; write them in several calls"
            )));
        }
        let extents = own_extents(column, sample)?;
        let dtype = column.pushed_dtype();
        self.values = coerce(column, elements)?;
        self.dtype = Some(dtype);
        self.item_count = count;
        self.extents.extend((0..count).flat_map(|_| extents.iter().copied()));
        Ok(())
    }

    /// Adds a sample, or a member of a list.
    fn add(&mut self, column: &ColumnSchema, level: usize, sample: &Bound<'_, PyAny>) -> PyResult<()> {
        if level == self.levels.len() {
            return self.add_item(column, sample);
        }
        let length = if sample.is_none() {
            0
        } else {
            if is_non_list_iterable(sample) {
                return Err(PyTypeError::new_err("a sample of this column must be a list"));
            }
            let members =
                sample.try_iter().map_err(|_| PyTypeError::new_err("a sample of this column must be a list"))?;
            let mut length = 0_u32;
            for member in members {
                self.add(column, level.saturating_add(1), &member?)?;
                length = length.saturating_add(1);
            }
            length
        };
        if let Some(lists) = self.levels.get_mut(level) {
            push_validity(&mut lists.validity, lists.lengths.len(), !sample.is_none());
            lists.lengths.push(length);
        }
        Ok(())
    }

    fn add_item(&mut self, column: &ColumnSchema, sample: &Bound<'_, PyAny>) -> PyResult<()> {
        push_validity(&mut self.validity, self.item_count, !sample.is_none());
        if sample.is_none() {
            self.add_null(column);
        } else {
            match column.dtype {
                DType::Utf8 => {
                    let text = sample.cast::<PyString>().map_err(|_| wrong_sample_type(sample, "a str"))?;
                    self.add_string(text.to_str()?.as_bytes())?;
                }
                DType::Bytes => match sample.cast::<PyBytes>() {
                    Ok(bytes) => self.add_string(bytes.as_bytes())?,
                    Err(_) => match elements(sample)? {
                        Some(elements) if elements.dtype == DType::U8 => self.add_string(&elements.bytes)?,
                        _ => return Err(wrong_sample_type(sample, "bytes")),
                    },
                },
                _ => self.add_array(column, sample)?,
            }
        }
        self.item_count = self.item_count.saturating_add(1);
        Ok(())
    }

    fn add_null(&mut self, column: &ColumnSchema) {
        if column.shape.is_ragged() {
            self.extents.extend((0..column.shape.varying_count()).map(|_| 0));
            return;
        }
        let elements = column.shape.inner_elements().and_then(|elements| usize::try_from(elements).ok()).unwrap_or(0);
        let bytes = elements.saturating_mul(column.pushed_dtype().element_bytes());
        self.values.resize(self.values.len().saturating_add(bytes), 0);
    }

    fn add_string(&mut self, bytes: &[u8]) -> PyResult<()> {
        self.extents.push(u32::try_from(bytes.len())?);
        self.values.extend_from_slice(bytes);
        Ok(())
    }

    /// Adds a tensor: an array, or numbers in nested lists.
    fn add_array(&mut self, column: &ColumnSchema, sample: &Bound<'_, PyAny>) -> PyResult<()> {
        if let Some(elements) = elements(sample)? {
            self.extents.extend(own_extents(column, &elements.shape)?);
            self.values.extend_from_slice(&coerce(column, elements)?);
            return Ok(());
        }
        let mut shape = Vec::new();
        self.add_numbers(column.pushed_dtype(), 0, &mut shape, sample)?;
        let shape: Vec<usize> = shape.into_iter().flatten().collect();
        self.extents.extend(own_extents(column, &shape)?);
        Ok(())
    }

    /// Adds numbers in nested lists. `shape` has the extent at each depth. `None` marks the depth
    /// of the numbers, where no list may occur.
    fn add_numbers(
        &mut self,
        dtype: DType,
        depth: usize,
        shape: &mut Vec<Option<usize>>,
        object: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let max = tensilo::limits::DIMENSIONS;
        if depth > max {
            return Err(PyValueError::new_err(format!("lists are nested deeper than {max} dimensions, the maximum")));
        }
        let is_list = object.is_instance_of::<PyList>() || object.is_instance_of::<PyTuple>();
        if !is_list {
            match shape.get(depth) {
                None => shape.push(None),
                Some(None) => {}
                Some(Some(_)) => return Err(PyValueError::new_err("lists of different depths do not form a tensor")),
            }
            return self.add_number(dtype, object);
        }
        let length = object.len()?;
        match shape.get(depth) {
            None => shape.push(Some(length)),
            Some(None) => return Err(PyValueError::new_err("lists of different depths do not form a tensor")),
            Some(Some(extent)) if *extent != length => {
                return Err(PyValueError::new_err("lists of different lengths do not form a tensor"));
            }
            Some(Some(_)) => {}
        }
        for member in object.try_iter()? {
            self.add_numbers(dtype, depth.saturating_add(1), shape, &member?)?;
        }
        Ok(())
    }

    fn add_number(&mut self, dtype: DType, number: &Bound<'_, PyAny>) -> PyResult<()> {
        macro_rules! add {
            ($number:ty) => {
                self.values.extend_from_slice(
                    &number.extract::<$number>().map_err(|_| invalid_element(number, dtype))?.to_ne_bytes(),
                )
            };
        }
        match dtype {
            DType::F32 => {
                let wide = float(number, dtype, f64::from(f32::MAX))?;
                // rounds like a float literal
                self.values.extend_from_slice(&(wide as f32).to_ne_bytes());
            }
            DType::F64 => self.values.extend_from_slice(&float(number, dtype, f64::MAX)?.to_ne_bytes()),
            DType::Bf16 => {
                let wide = float(number, dtype, half::bf16::MAX.to_f64())?;
                self.values.extend_from_slice(&half::bf16::from_f64(wide).to_ne_bytes());
            }
            DType::F16 => {
                let wide = float(number, dtype, half::f16::MAX.to_f64())?;
                self.values.extend_from_slice(&half::f16::from_f64(wide).to_ne_bytes());
            }
            DType::I8 => add!(i8),
            DType::I16 => add!(i16),
            DType::I32 => add!(i32),
            DType::I64 => add!(i64),
            DType::U8 => add!(u8),
            DType::U16 => add!(u16),
            DType::U32 => add!(u32),
            DType::U64 => add!(u64),
            DType::Bool => {
                self.values.push(number.extract::<bool>().map_err(|_| invalid_element(number, dtype))?.into())
            }
            DType::Complex64 => {
                let complex = number.cast::<PyComplex>();
                let (real, imaginary) = match complex {
                    Ok(complex) => (complex.real(), complex.imag()),
                    Err(_) => (float(number, dtype, f64::from(f32::MAX))?, 0.0),
                };
                // rounds like a float literal
                for component in [real as f32, imaginary as f32] {
                    self.values.extend_from_slice(&component.to_ne_bytes());
                }
            }
            small if small.is_small() => {
                let value = number.extract::<f64>().map_err(|_| invalid_element(number, dtype))?;
                // exact values only, because rounding to these types has its own rules
                let is_value = |element: &u8| {
                    small.small_value(*element).is_some_and(|own| f64::from(own).to_bits() == value.to_bits())
                };
                let element = (0..=u8::MAX >> (8 - small.value_bits())).find(is_value);
                self.values.push(element.ok_or_else(|| invalid_element(number, dtype))?);
            }
            _ => return Err(invalid_element(number, dtype)),
        }
        Ok(())
    }
}

/// Returns the elements of an array, or `None` for other objects. A `BatchColumn` is a sequence of
/// samples here, although it supports DLPack.
fn elements(object: &Bound<'_, PyAny>) -> PyResult<Option<Elements>> {
    if object.is_instance_of::<BatchColumn>() { Ok(None) } else { elements::elements(object) }
}

/// Returns whether an object is iterable, but is not a list of samples.
fn is_non_list_iterable(object: &Bound<'_, PyAny>) -> bool {
    object.is_instance_of::<PyString>()
        || object.is_instance_of::<PyBytes>()
        || object.is_instance_of::<PyByteArray>()
        || object.is_instance_of::<PyDict>()
        || object.is_instance_of::<PySet>()
        || object.is_instance_of::<PyFrozenSet>()
}

/// Returns the value of a Python number for a float type with maximum `max`. Refuses integers that
/// an `f64` cannot represent exactly, and finite values that would become infinite.
fn float(number: &Bound<'_, PyAny>, dtype: DType, max: f64) -> PyResult<f64> {
    let wide: f64 = number.extract().map_err(|_| invalid_element(number, dtype))?;
    let is_whole = !number.is_instance_of::<PyInt>() || number.eq(wide)?;
    if (wide.is_finite() && wide.abs() > max) || !is_whole { Err(invalid_element(number, dtype)) } else { Ok(wide) }
}

/// Prefixes the message of an error with its location.
fn prefixed(py: Python<'_>, error: PyErr, location: &str) -> PyErr {
    let text = error.value(py).str().map_or_else(|_| error.to_string(), |text| text.to_string());
    let message = format!("{location}: {text}");
    if error.is_instance_of::<PyTypeError>(py) || error.is_instance_of::<PyBufferError>(py) {
        PyTypeError::new_err(message)
    } else if error.is_instance_of::<PyValueError>(py) {
        PyValueError::new_err(message)
    } else {
        error
    }
}

/// Returns the varying extents of a sample. Fails if a fixed extent differs from the column's.
fn own_extents(column: &ColumnSchema, shape: &[usize]) -> PyResult<Vec<u32>> {
    let expected = column.shape.extents();
    let fits = |(extent, expected): (&usize, &Extent)| match expected {
        Extent::Fixed(expected) => usize::try_from(*expected) == Ok(*extent),
        Extent::Varying => true,
    };
    // the dimensions inside an empty list are unknown
    let is_empty = shape.len() < expected.len() && shape.last() == Some(&0);
    if !(shape.len() == expected.len() || is_empty) || !shape.iter().zip(expected).all(fits) {
        return Err(PyValueError::new_err(format!(
            "sample shape {shape:?} does not match the column shape {}",
            column.shape
        )));
    }
    let extent = |(i, expected): (usize, &Extent)| match expected {
        Extent::Fixed(_) => None,
        Extent::Varying => Some(u32::try_from(shape.get(i).copied().unwrap_or(0))),
    };
    Ok(expected.iter().enumerate().filter_map(extent).collect::<Result<_, _>>()?)
}

/// Converts elements to the dtype in which the values of a column are written. Integers may be
/// narrower. If the column rounds its values, the elements may already be rounded.
fn coerce(column: &ColumnSchema, elements: Elements) -> PyResult<Vec<u8>> {
    let (found, expected) = (elements.dtype, column.pushed_dtype());
    if found == expected || (expected == DType::Bool && found == DType::U8) {
        return Ok(elements.bytes);
    }
    if let Some(bytes) = widened(&elements, expected) {
        return Ok(bytes);
    }
    // widening is exact, and so is rounding back to the dtype of the column
    if found == column.dtype
        && let Some(bytes) = widened_floats(&elements, expected)
    {
        return Ok(bytes);
    }
    let own = if expected == column.dtype {
        expected.to_string()
    } else {
        format!("{} rounded from {expected}", column.dtype)
    };
    let way = match found.is_float() && expected.is_float() && expected == column.dtype {
        true => format!(": declare the column with cast_from={:?}, or convert the values", found.name()),
        false => ": convert the values".to_owned(),
    };
    Err(PyTypeError::new_err(format!("elements of dtype {found} do not fit a column of {own}{way}")))
}

#[cold]
fn wrong_sample_type(found: &Bound<'_, PyAny>, expected: &str) -> PyErr {
    let name = found.get_type().name().map_or(String::new(), |name| name.to_string());
    PyTypeError::new_err(format!("a sample must be {expected}, not {name}"))
}

#[cold]
fn invalid_element(found: &Bound<'_, PyAny>, dtype: DType) -> PyErr {
    let text = found.repr().map_or(String::new(), |text| text.to_string());
    let start: String = text.chars().take(MAX_TEXT_CHARS).collect();
    let rest = if start.len() == text.len() { "" } else { "..." };
    PyTypeError::new_err(format!("{start}{rest} is not a valid {dtype} element"))
}
