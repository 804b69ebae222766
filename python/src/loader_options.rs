//! The options of a loader, as Python names them.

use crate::error::OrRaise;
use crate::options::members;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use tensilo_data::{Mode, OnDamage, Padding, RunsAndWindows, Tail};

/// Returns the paddings that a caller asks for.
pub fn paddings(pad: Option<&Bound<'_, PyDict>>) -> PyResult<Vec<(String, Padding)>> {
    let Some(pad) = pad else { return Ok(Vec::new()) };
    let padding = |(name, how): (String, Bound<'_, PyAny>)| {
        let padding = match how.extract::<(f64, u32)>() {
            Ok((value, multiple)) => Padding::new().value(value).multiple(multiple),
            Err(_) => Padding::new().value(
                how.extract()
                    .map_err(|_| PyTypeError::new_err("pad: a dict from names to values, or to (value, multiple)"))?,
            ),
        };
        Ok((name, padding))
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
