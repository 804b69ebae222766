//! Arguments that several functions have, as Python writes them.
//!
//! Each type takes what a caller may pass, and refuses the rest with a text that says what to pass
//! instead: a dict or another mapping, `"1GiB"` or a number, `"auto"` or a number. PyO3's own
//! conversions would speak of Rust's types.
//!
//! Nothing here knows what the arguments are for: options of writers are in `write/options.rs`.

use crate::array::dtype::DTypeArgument;
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyInt, PyString};
use std::thread;
use tensilo::DType;

/// A dict, or any mapping as one.
pub struct Dict<'py>(pub Bound<'py, PyDict>);

impl<'a, 'py> FromPyObject<'a, 'py> for Dict<'py> {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(dict) = object.cast::<PyDict>() {
            return Ok(Self(dict.to_owned()));
        }
        if !object.hasattr("keys")? {
            let name = object.get_type().name()?;
            return Err(PyTypeError::new_err(format!("a dict from names is wanted, not {name}")));
        }
        let dict = object.py().get_type::<PyDict>().call1((object,))?;
        Ok(Self(dict.cast_into()?))
    }
}

/// A number from 0 to the most that `T` has.
pub struct Natural<T>(pub T);

impl<'a, 'py, T: FromPyObject<'a, 'py, Error = PyErr>> FromPyObject<'a, 'py> for Natural<T> {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        object.extract().map(Self).map_err(|error: PyErr| {
            if !error.is_instance_of::<PyOverflowError>(object.py()) {
                return error;
            }
            let text = object.repr().map_or(String::new(), |text| text.to_string());
            let why = if text.starts_with('-') { "below 0" } else { "too large" };
            PyValueError::new_err(format!("{text} is {why}"))
        })
    }
}

/// A number of bytes: an integer, or a text such as "1GiB".
pub struct ByteCount(pub u64);

impl<'a, 'py> FromPyObject<'a, 'py> for ByteCount {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let Ok(text) = object.cast::<PyString>() else { return Natural::extract(object).map(|count| Self(count.0)) };
        let text = text.to_str()?;
        let count = tensilo::parse_byte_count(text).ok_or_else(|| {
            PyValueError::new_err(format!(
                "{text:?} is no number of bytes: write 65536, or units of 1024 bytes, as in \"64KiB\", \"1MiB\" or \"1GiB\""
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
            Ok(text) => Err(PyValueError::new_err(format!("{text:?} threads: pass \"auto\" or a number"))),
            Err(_) => match Natural::extract(object)?.0 {
                0 => Err(PyValueError::new_err("0 threads do nothing: pass \"auto\" or a number")),
                threads => Ok(Self(threads)),
            },
        }
    }
}

impl Threads {
    /// Returns how many threads encode: all processors, unless a number was given.
    pub fn or_all_cpus(&self) -> usize {
        let processors = || thread::available_parallelism().map_or(1, |processors| processors.get());
        if self.0 == 0 { processors() } else { self.0 }
    }
}

/// The value of a padding: a number that floats have.
pub struct PaddingValue(pub f64);

impl<'a, 'py> FromPyObject<'a, 'py> for PaddingValue {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let value: f64 = object.extract()?;
        if object.is_instance_of::<PyInt>() && !object.eq(value)? {
            return Err(PyValueError::new_err(format!("a padding of {}: beyond 2^53", object.repr()?)));
        }
        Ok(Self(value))
    }
}

/// Returns the names and values of a dict as they are now: what converts a value can change it.
pub fn members<'py>(dict: &Dict<'py>) -> PyResult<Vec<(String, Bound<'py, PyAny>)>> {
    dict.0.items().iter().map(|item| item.extract()).collect()
}

/// Returns the dtypes that columns are rounded to.
pub fn dtypes(casts: Option<&Dict<'_>>) -> PyResult<Vec<(String, DType)>> {
    let Some(casts) = casts else { return Ok(Vec::new()) };
    members(casts)?.into_iter().map(|(name, dtype)| Ok((name, dtype.extract::<DTypeArgument>()?.0))).collect()
}
