//! The options of a loader, as Python names them.

use crate::error::OrRaise;
use crate::options::{Dict, members};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyInt;
use tensilo_data::{Mode, OnDamage, Padding, RunsAndWindows, Tail};

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

/// Returns the paddings that a caller asks for.
pub fn paddings(pad: Option<&Dict<'_>>) -> PyResult<Vec<(String, Padding)>> {
    let Some(pad) = pad else { return Ok(Vec::new()) };
    let padding = |(name, how): (String, Bound<'_, PyAny>)| {
        let wrong = |_| PyTypeError::new_err("pad: a dict from names to values, or to (value, multiple)");
        let (value, multiple) = match how.extract::<(PaddingValue, u32)>() {
            Ok(both) => both,
            Err(_) => (how.extract().map_err(wrong)?, 1),
        };
        Ok((name, Padding::new().value(value.0).multiple(multiple)))
    };
    members(pad)?.into_iter().map(padding).collect()
}

pub fn mode(order: &str, window: Option<(u32, u32)>, of_dataset: RunsAndWindows, py: Python<'_>) -> PyResult<Mode> {
    match (order, window) {
        ("windowed", Some((run, window))) => RunsAndWindows::new(run, window).or_raise(py).map(Mode::Windowed),
        ("windowed", None) => Ok(Mode::Windowed(of_dataset)),
        (_, Some(_)) => Err(PyValueError::new_err("window is for order=\"windowed\"")),
        ("shuffled", None) => Ok(Mode::Shuffled),
        ("sequential", None) => Ok(Mode::Sequential),
        (other, None) => {
            Err(PyValueError::new_err(format!("{other:?} is no order; there are windowed, shuffled and sequential")))
        }
    }
}

pub fn tail(name: &str) -> PyResult<Tail> {
    match name {
        "drop" => Ok(Tail::Drop),
        "pad" => Ok(Tail::Pad),
        "exact" => Ok(Tail::Exact),
        other => Err(PyValueError::new_err(format!("{other:?} is no tail; there are drop, pad and exact"))),
    }
}

pub fn on_damage(name: &str) -> PyResult<OnDamage> {
    match name {
        "error" => Ok(OnDamage::Fail),
        "substitute" => Ok(OnDamage::Substitute),
        other => Err(PyValueError::new_err(format!("on_damage={other:?}: pass \"error\" or \"substitute\""))),
    }
}
