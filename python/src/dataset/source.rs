//! The source of a dataset: what was opened and how, and which subset of its samples is read.
//!
//! A pickled dataset is opened again in another process, so its pickle contains these facts and no
//! samples: absolute paths, the version, and the subset. A subset is all samples, a split (a seed
//! and a range of hashes), or a list of indices.

use crate::error::Result;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tensilo_data::{DataError, Dataset, DatasetOptions, SampleList, Split, View};
use tensilo_object::Address;

/// The location of a dataset, as the caller passed it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Uri {
    /// A file, a folder, a pattern or a URL.
    Path(PathBuf),
    Files(Vec<PathBuf>),
}

/// Everything that another process needs to open the same dataset.
#[derive(Clone, Debug)]
pub struct Source {
    pub uri: Uri,
    /// `uri` with absolute paths, because another process can have a different working directory.
    pub absolute: Uri,
    pub version: Option<u64>,
    pub io: String,
    pub max_open_files: Option<usize>,
}

impl Uri {
    pub fn from_object(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        if let Ok(path) = object.extract::<PathBuf>() {
            return Ok(Self::Path(path));
        }
        let wrong = || PyTypeError::new_err("source must be a path or a list of paths");
        let files = object.try_iter().map_err(|_| wrong())?;
        let files: Vec<PathBuf> = files.map(|file| file?.extract().map_err(|_| wrong())).collect::<PyResult<_>>()?;
        if files.is_empty() {
            return Err(PyValueError::new_err("the list of files is empty"));
        }
        Ok(Self::Files(files))
    }

    pub fn to_object<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(match self {
            Self::Path(path) => path.as_os_str().into_pyobject(py)?.into_any(),
            Self::Files(files) => PyList::new(py, files.iter().map(|file| file.as_os_str()))?.into_any(),
        })
    }

    /// Returns a short name for messages.
    pub fn text(&self) -> String {
        match self {
            Self::Path(path) => path.to_string_lossy().into_owned(),
            Self::Files(files) => match files.as_slice() {
                [file] => file.to_string_lossy().into_owned(),
                files => format!("{} files", files.len()),
            },
        }
    }
}

fn absolute(path: &PathBuf) -> PyResult<PathBuf> {
    // URLs are absolute, and `open` refuses an empty path
    if path.as_os_str().is_empty() || Address::is_url_path(path) {
        Ok(path.clone())
    } else {
        Ok(std::path::absolute(path)?)
    }
}

/// Returns whether a path is a glob pattern. An existing path is not a pattern, even if it contains
/// wildcards.
pub fn is_pattern(path: &Path) -> bool {
    let text = path.to_string_lossy();
    text.contains(['*', '?', '[']) && !Address::is_url_path(path) && !path.exists()
}

impl Source {
    pub fn new(uri: Uri, version: Option<u64>, io: String, max_open_files: Option<usize>) -> PyResult<Self> {
        let absolute = match &uri {
            Uri::Path(path) => Uri::Path(absolute(path)?),
            Uri::Files(files) => Uri::Files(files.iter().map(absolute).collect::<PyResult<_>>()?),
        };
        Ok(Self { uri, absolute, version, io, max_open_files })
    }

    pub fn open(&self) -> Result<Dataset> {
        let options = self.options()?;
        match &self.uri {
            Uri::Files(files) => options.open_files(files),
            Uri::Path(path) if is_pattern(path) => options.open_glob(path),
            Uri::Path(path) => options.open(path),
        }
    }

    fn options(&self) -> Result<DatasetOptions> {
        let mut options = DatasetOptions::new();
        if let Some(version) = self.version {
            options = options.version(version);
        }
        if let Some(files) = self.max_open_files {
            options = options.max_open_files(files.max(1));
        }
        Ok(match self.io.as_str() {
            // SAFETY: as below.
            "auto" => unsafe { options.mmap_if_cached() },
            // SAFETY: the documentation of `open` requires that no file changes while it is mapped.
            "mmap" => unsafe { options.mmap() },
            "pread" => options.pread(),
            #[cfg(target_os = "linux")]
            "io_uring" => options.io_uring(),
            #[cfg(target_os = "linux")]
            "direct" => options.direct(),
            other => {
                let message = format!(
                    "{other:?} is not a valid io: use \"auto\", \"mmap\", \"pread\" or, on Linux, \"io_uring\" or \
                     \"direct\""
                );
                return Err(DataError::BadArgument(message));
            }
        })
    }

    /// Returns the arguments for another process to open the same dataset.
    pub fn arguments<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyDict>)> {
        let options = PyDict::new(py);
        options.set_item("version", self.version)?;
        options.set_item("io", &self.io)?;
        options.set_item("max_open_files", self.max_open_files)?;
        Ok((self.absolute.to_object(py)?, options))
    }
}

/// The seed, and the start and the end of the range of hashes.
type SplitState = (u64, u64, u64);

/// The subset of a dataset that is read.
#[derive(Clone, Debug, Default)]
pub enum Subset {
    #[default]
    All,
    /// The samples whose hash is in a range.
    Split { seed: u64, start: u64, end: u64 },
    /// The listed samples, in this order.
    List(Arc<[u64]>),
}

impl Subset {
    pub fn is_all(&self) -> bool {
        matches!(self, Self::All)
    }

    /// Returns a view of the subset.
    pub fn view(&self, dataset: &Dataset) -> Result<View> {
        match self {
            Self::All => Ok(View::all(dataset)),
            Self::Split { seed, start, end } => {
                View::split(dataset, &Split::new(dataset.sample_count(), *seed, *start..*end)?)
            }
            Self::List(samples) => View::list(dataset, &SampleList::new(samples.clone())),
        }
    }

    /// Returns disjoint subsets with these fractions of the samples.
    pub fn from_fractions(fractions: &[f64], seed: u64) -> PyResult<Vec<Self>> {
        let sum: f64 = fractions.iter().sum();
        if fractions.is_empty()
            || fractions.iter().any(|fraction| fraction.is_nan() || *fraction <= 0.0)
            || sum > 1.0 + 1e-9
        {
            return Err(PyValueError::new_err("fractions must be above 0 and sum to at most 1, such as [0.9, 0.1]"));
        }
        let (mut subsets, mut before, mut start) = (Vec::new(), 0.0, 0);
        for fraction in fractions {
            before += fraction;
            // at most `Split::END`, which is far below 2^53, so an `f64` represents it exactly
            let end = ((before.min(1.0) * Split::END as f64).round() as u64).min(Split::END);
            if end <= start {
                return Err(PyValueError::new_err(format!("the fraction {fraction} is too small to contain samples")));
            }
            subsets.push(Self::Split { seed, start, end });
            start = end;
        }
        Ok(subsets)
    }

    /// Returns the split or the list for a pickle. Both are `None` if the subset has all samples.
    pub fn to_pickle(&self) -> (Option<SplitState>, Option<Vec<u8>>) {
        match self {
            Self::All => (None, None),
            Self::Split { seed, start, end } => (Some((*seed, *start, *end)), None),
            Self::List(samples) => (None, Some(samples.iter().flat_map(|sample| sample.to_le_bytes()).collect())),
        }
    }

    /// Restores the subset from a pickle.
    pub fn from_pickle(split: Option<SplitState>, list: Option<&[u8]>) -> Self {
        match (split, list) {
            (Some((seed, start, end)), _) => Self::Split { seed, start, end },
            (None, Some(samples)) => {
                Self::List(samples.as_chunks().0.iter().map(|sample| u64::from_le_bytes(*sample)).collect())
            }
            (None, None) => Self::All,
        }
    }
}
