//! Argument types shared by several functions.
//!
//! Each type accepts every form that a Python caller may use: a dict or another mapping, `"1GiB"`
//! or a number, `"auto"` or a number. Its error says what to pass instead; an error of PyO3's own
//! conversions would name Rust types.
//!
//! Nothing here depends on what an argument is for; writer options are in `write/options.rs`.

use crate::array::dtype::DTypeArgument;
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyInt, PyString};
use std::thread;
use tensilo::DType;

/// A dict, or a copy of any other mapping as a dict.
pub struct Dict<'py>(pub Bound<'py, PyDict>);

impl<'a, 'py> FromPyObject<'a, 'py> for Dict<'py> {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(dict) = object.cast::<PyDict>() {
            return Ok(Self(dict.to_owned()));
        }
        if !object.hasattr("keys")? {
            let name = object.get_type().name()?;
            return Err(PyTypeError::new_err(format!("expected a dict keyed by column name, not {name}")));
        }
        let dict = object.py().get_type::<PyDict>().call1((object,))?;
        Ok(Self(dict.cast_into()?))
    }
}

/// An integer from 0 to the maximum of `T`.
pub struct Natural<T>(pub T);

impl<'a, 'py, T: FromPyObject<'a, 'py, Error = PyErr>> FromPyObject<'a, 'py> for Natural<T> {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        object.extract().map(Self).map_err(|error: PyErr| {
            if !error.is_instance_of::<PyOverflowError>(object.py()) {
                return error;
            }
            let text = object.repr().map_or(String::new(), |text| text.to_string());
            let why = if text.starts_with('-') { "below 0, the minimum" } else { "too large for this argument" };
            PyValueError::new_err(format!("{text} is {why}"))
        })
    }
}

/// A number of bytes: an integer, or a string such as "1GiB".
pub struct ByteCount(pub u64);

impl<'a, 'py> FromPyObject<'a, 'py> for ByteCount {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let Ok(text) = object.cast::<PyString>() else { return Natural::extract(object).map(|count| Self(count.0)) };
        let text = text.to_str()?;
        let count = tensilo::parse_byte_count(text).ok_or_else(|| {
            PyValueError::new_err(format!(
                "{text:?} is not a valid number of bytes: pass an integer, or a string such as \"64KiB\", \"1MiB\" or \"1GiB\""
            ))
        });
        count.map(Self)
    }
}

/// A number of threads: an integer, or "auto".
pub struct Threads(pub usize);

impl<'a, 'py> FromPyObject<'a, 'py> for Threads {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        match object.cast::<PyString>() {
            Ok(text) if text.to_str()? == "auto" => Ok(Self(0)),
            Ok(text) => Err(PyValueError::new_err(format!(
                "{text:?} is not a valid number of threads: pass \"auto\" or an integer"
            ))),
            Err(_) => match Natural::extract(object)?.0 {
                0 => Err(PyValueError::new_err("the number of threads is 0: pass \"auto\" or at least 1")),
                threads => Ok(Self(threads)),
            },
        }
    }
}

impl Threads {
    /// Returns the explicit number of threads, or the number of CPUs for "auto".
    pub fn or_all_cpus(&self) -> usize {
        let cpus = || thread::available_parallelism().map_or(1, |cpus| cpus.get());
        if self.0 == 0 { cpus() } else { self.0 }
    }
}

/// A padding value: a number that an `f64` represents exactly.
pub struct PaddingValue(pub f64);

impl<'a, 'py> FromPyObject<'a, 'py> for PaddingValue {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let value: f64 = object.extract()?;
        if object.is_instance_of::<PyInt>() && !object.eq(value)? {
            return Err(PyValueError::new_err(format!(
                "padding value {} cannot be represented exactly as a float",
                object.repr()?
            )));
        }
        Ok(Self(value))
    }
}

/// Returns a snapshot of the items of a dict, because converting a value runs Python code that may
/// change the dict.
pub fn members<'py>(dict: &Dict<'py>) -> PyResult<Vec<(String, Bound<'py, PyAny>)>> {
    dict.0.items().iter().map(|item| item.extract()).collect()
}

/// Parses a dict that maps column names to dtypes.
pub fn casts(casts: Option<&Dict<'_>>) -> PyResult<Vec<(String, DType)>> {
    let Some(casts) = casts else { return Ok(Vec::new()) };
    members(casts)?.into_iter().map(|(name, dtype)| Ok((name, dtype.extract::<DTypeArgument>()?.0))).collect()
}
