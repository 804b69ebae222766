//! Options that several functions have.

use crate::dtype::DTypeArgument;
use crate::schema::ShapeArgument;
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::thread;
use tensilo::import::NullElements;
use tensilo::{DType, Profile, Shape, WriterOptions};

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
    pub fn of_writer(&self) -> usize {
        let processors = || thread::available_parallelism().map_or(1, |processors| processors.get());
        if self.0 == 0 { processors() } else { self.0 }
    }
}

/// The profile of all columns, or of columns by name: the others have the default.
#[derive(FromPyObject)]
pub enum Profiles {
    #[pyo3(annotation = "str")]
    OfAll(String),
    #[pyo3(annotation = "dict")]
    OfColumns(BTreeMap<String, String>),
}

impl Default for Profiles {
    fn default() -> Self {
        Self::OfAll(Profile::default().name().to_owned())
    }
}

/// Returns the profile of a name.
fn profile(name: &str) -> PyResult<Profile> {
    name.parse().map_err(|error: tensilo::Error| PyValueError::new_err(error.message().to_owned()))
}

/// Returns the options of a writer.
pub fn writer_options(profiles: &Profiles, threads: &Threads) -> PyResult<WriterOptions> {
    let options = WriterOptions::new().threads(threads.of_writer());
    match profiles {
        Profiles::OfAll(name) => Ok(options.profile(profile(name)?)),
        Profiles::OfColumns(columns) => columns
            .iter()
            .try_fold(options, |options, (column, name)| Ok(options.column_profile(column, profile(name)?))),
    }
}

/// Returns one path, or several.
pub fn paths(object: &Bound<'_, PyAny>) -> PyResult<Vec<PathBuf>> {
    if let Ok(path) = object.extract::<PathBuf>() {
        return Ok(vec![path]);
    }
    let wrong = |_| {
        let name = object.get_type().name().map_or(String::new(), |name| name.to_string());
        PyTypeError::new_err(format!(
            "inputs are a path, a list of paths, or a table of Arrow, not {name}: from_iterable takes samples"
        ))
    };
    let paths: Vec<PathBuf> = object.extract().map_err(wrong)?;
    if paths.is_empty() { Err(PyValueError::new_err("the list of inputs is empty")) } else { Ok(paths) }
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

/// Returns the shapes that columns are declared to have.
pub fn shapes(shapes: Option<&Dict<'_>>) -> PyResult<Vec<(String, Shape)>> {
    let Some(shapes) = shapes else { return Ok(Vec::new()) };
    members(shapes)?.into_iter().map(|(name, extents)| Ok((name, extents.extract::<ShapeArgument>()?.0))).collect()
}

/// Returns the treatment of null elements.
pub fn null_elements(name: &str) -> PyResult<NullElements> {
    Ok(match name {
        "keep" => NullElements::Keep,
        "refuse" => NullElements::Refuse,
        "nan" => NullElements::Nan,
        "zero" => NullElements::Zero,
        other => {
            let message = format!("null_elements={other:?}: pass \"keep\", \"refuse\", \"nan\" or \"zero\"");
            return Err(PyValueError::new_err(message));
        }
    })
}
