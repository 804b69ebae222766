//! Helpers of the tests: arbitrary schemas, data and ways to write them ([`plan`]), an in-memory
//! model of a file ([`Table`]), and a check of every read path against it ([`check`]).
#![allow(dead_code, reason = "each test binary uses a part of it")]

pub mod bin_options;
pub mod bins;
pub mod blocked;
pub mod check;
pub mod damage;
pub mod data;
pub mod explained;
pub mod files;
pub mod plan;
pub mod sound;
pub mod vectors;

use proptest::test_runner::{Config, FileFailurePersistence};
use tensilo::{ColumnSchema, DType, Extent, Schema};

/// One sample in the model; `None` is a null.
pub type ModelSample = Option<TensorValue>;

/// The varying extents, outermost first, and the elements in the byte order of this machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TensorValue {
    pub extents: Vec<u32>,
    pub bytes: Vec<u8>,
}

/// The expected content of a file.
#[derive(Clone, Debug)]
pub struct Table {
    pub schema: Schema,
    pub sample_count: usize,
    /// The samples of each column.
    pub columns: Vec<Vec<ModelSample>>,
}

impl Table {
    /// Returns the first `sample_count` samples.
    pub fn head(&self, sample_count: usize) -> Self {
        let columns = self.columns.iter().map(|samples| samples[..sample_count].to_vec()).collect();
        Self { schema: self.schema.clone(), sample_count, columns }
    }

    pub fn names(&self) -> Vec<&str> {
        self.schema.columns.iter().map(|column| column.name.as_str()).collect()
    }
}

/// Returns the bytes of one count: the product of the fixed extents and the element bytes.
pub fn inner_bytes(column: &ColumnSchema) -> usize {
    let fixed = column.shape.extents().iter().filter_map(|extent| match extent {
        Extent::Fixed(extent) => Some(*extent as usize),
        Extent::Varying => None,
    });
    fixed.product::<usize>() * column.dtype.element_bytes()
}

/// Returns all extents of a sample, including the fixed ones.
pub fn full_shape(column: &ColumnSchema, sample: &ModelSample) -> Vec<u32> {
    let mut varying = sample.iter().flat_map(|value| value.extents.iter().copied());
    let extent = |extent: &Extent| match extent {
        Extent::Fixed(extent) => *extent,
        Extent::Varying => varying.next().unwrap_or(0),
    };
    column.shape.extents().iter().map(extent).collect()
}

/// Returns the bytes that reading a sample gives. A null of a fixed shape gives zeros, a null of a
/// ragged shape nothing.
pub fn stored_bytes(column: &ColumnSchema, sample: &ModelSample) -> Vec<u8> {
    match sample {
        Some(value) => value.bytes.clone(),
        None if column.shape.is_ragged() => Vec::new(),
        None => vec![0; inner_bytes(column)],
    }
}

/// Returns the decoded bytes of the shape part for one sample (chapter 4.3).
pub fn shape_bytes(column: &ColumnSchema) -> usize {
    match column.shape.varying_count() {
        0 => 0,
        1 => 4,
        varying => 4 + 4 * varying,
    }
}

/// Returns the proptest configuration: `cases`, or the number in PROPTEST_CASES. Failures are
/// stored next to the test, in a file that is committed.
pub fn config(cases: u32) -> Config {
    let env_number = |name| std::env::var(name).ok().and_then(|number| number.parse().ok());
    Config {
        cases: env_number("PROPTEST_CASES").unwrap_or(cases),
        failure_persistence: Some(Box::new(FileFailurePersistence::WithSource("proptest-regressions"))),
        max_shrink_iters: env_number("PROPTEST_MAX_SHRINK_ITERS").unwrap_or(2_000),
        ..Config::default()
    }
}

/// Runs `$body` with `$element` as the Rust type of the elements of a column of type `$dtype`.
macro_rules! with_element {
    ($dtype:expr, $element:ident => $body:expr) => {
        $crate::common::with_element!($dtype, $element => $body,
            Bf16 half::bf16, F16 half::f16, F32 f32, F64 f64,
            I8 i8, I16 i16, I32 i32, I64 i64, U16 u16, U32 u32, U64 u64, Complex64 [f32; 2])
    };
    ($dtype:expr, $element:ident => $body:expr, $($variant:ident $rust:ty),*) => {
        match $dtype {
            $(tensilo::DType::$variant => {
                type $element = $rust;
                $body
            })*
            _ => {
                type $element = u8;
                $body
            }
        }
    };
}
pub(crate) use with_element;

/// Copies elements from bytes of any alignment.
pub fn elements<T: tensilo::Element + bytemuck::Pod>(bytes: &[u8]) -> Vec<T> {
    bytemuck::pod_collect_to_vec(bytes)
}

/// Returns whether elements of a type can be read as bytes.
pub fn is_byte_like(dtype: DType) -> bool {
    dtype == DType::U8 || dtype.is_byte()
}
