//! The dtype names and codes of other libraries.
//!
//! NumPy, PyTorch, JAX, ml_dtypes, DLPack and the buffer protocol each name element types in their
//! own way. Only this file contains these names. It matches strings and codes and imports none of
//! the libraries, so none of them has to be installed.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyString;
use tensilo::DType;

/// The `DLDataTypeCode` values of DLPack.
pub mod dlpack_code {
    pub const INT: u8 = 0;
    pub const UINT: u8 = 1;
    pub const FLOAT: u8 = 2;
    pub const BFLOAT: u8 = 4;
    pub const COMPLEX: u8 = 5;
    pub const BOOL: u8 = 6;
    pub const FLOAT8_E4M3FN: u8 = 10;
    pub const FLOAT8_E4M3FNUZ: u8 = 11;
    pub const FLOAT8_E5M2: u8 = 12;
    pub const FLOAT8_E5M2FNUZ: u8 = 13;
    pub const FLOAT8_E8M0FNU: u8 = 14;
}

/// A dtype, given by name or as an object of another library: `"bf16"`, `"float32"`, `np.int64`,
/// `torch.bfloat16`, `str`, `bytes`.
pub struct DTypeArgument(pub DType);

impl<'a, 'py> FromPyObject<'a, 'py> for DTypeArgument {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let name = match object.cast::<PyString>() {
            Ok(text) => text.to_str()?.to_owned(),
            // a class, or an object such as `torch.bfloat16` whose `str` is its name
            Err(_) => match object.getattr("__name__") {
                Ok(name) => name.extract::<String>()?,
                Err(_) => object.str()?.to_str()?.to_owned(),
            },
        };
        let short = name.rsplit('.').next().unwrap_or(&name);
        match named(short) {
            Some(dtype) => Ok(Self(dtype)),
            None if object.is_instance_of::<PyString>() => {
                Err(PyValueError::new_err(format!("{name:?} is not a valid dtype: use one of {}", all_names())))
            }
            None => Err(PyTypeError::new_err(format!("{name} is not a valid dtype: use one of {}", all_names()))),
        }
    }
}

fn all_names() -> String {
    DType::ALL.map(DType::name).join(", ")
}

/// Returns the dtype that this package or another library calls `name`.
pub fn named(name: &str) -> Option<DType> {
    let long = match name {
        "bfloat16" => DType::Bf16,
        "float16" | "half" => DType::F16,
        "float32" => DType::F32,
        "float64" | "float" | "double" => DType::F64,
        "int8" => DType::I8,
        "int16" => DType::I16,
        "int32" => DType::I32,
        "int64" | "int" => DType::I64,
        "uint8" => DType::U8,
        "uint16" => DType::U16,
        "uint32" => DType::U32,
        "uint64" => DType::U64,
        "bool_" => DType::Bool,
        "float8_e4m3fn" => DType::F8E4M3Fn,
        "float8_e4m3fnuz" => DType::F8E4M3Fnuz,
        "float8_e5m2" => DType::F8E5M2,
        "float8_e5m2fnuz" => DType::F8E5M2Fnuz,
        "float8_e8m0fnu" => DType::F8E8M0Fnu,
        "float6_e2m3fn" => DType::F6E2M3,
        "float6_e3m2fn" => DType::F6E3M2,
        "float4_e2m1fn" => DType::F4E2M1,
        "int4" => DType::I4,
        "uint4" => DType::U4,
        "str" | "string" => DType::Utf8,
        "binary" => DType::Bytes,
        short => return short.parse().ok(),
    };
    Some(long)
}

/// Returns the DLPack code and width in bits of a dtype. Text and bytes become `u8`. Numbers of 4
/// and 6 bits also become `u8`, because DLPack packs them and tensilo does not.
pub fn to_dlpack(dtype: DType) -> (u8, u8) {
    use dlpack_code::{BFLOAT, BOOL, COMPLEX, FLOAT, INT, UINT};
    use dlpack_code::{FLOAT8_E4M3FN, FLOAT8_E4M3FNUZ, FLOAT8_E5M2, FLOAT8_E5M2FNUZ, FLOAT8_E8M0FNU};
    match dtype {
        DType::F8E4M3Fn => (FLOAT8_E4M3FN, 8),
        DType::F8E4M3Fnuz => (FLOAT8_E4M3FNUZ, 8),
        DType::F8E5M2 => (FLOAT8_E5M2, 8),
        DType::F8E5M2Fnuz => (FLOAT8_E5M2FNUZ, 8),
        DType::F8E8M0Fnu => (FLOAT8_E8M0FNU, 8),
        DType::Complex64 => (COMPLEX, 64),
        DType::Bf16 => (BFLOAT, 16),
        DType::F16 => (FLOAT, 16),
        DType::F32 => (FLOAT, 32),
        DType::F64 => (FLOAT, 64),
        DType::I8 => (INT, 8),
        DType::I16 => (INT, 16),
        DType::I32 => (INT, 32),
        DType::I64 => (INT, 64),
        DType::U16 => (UINT, 16),
        DType::U32 => (UINT, 32),
        DType::U64 => (UINT, 64),
        DType::Bool => (BOOL, 8),
        _ => (UINT, 8),
    }
}

/// Returns the dtype of a DLPack code and width in bits.
pub fn from_dlpack(code: u8, bits: u8) -> Option<DType> {
    let numbers = DType::ALL.into_iter().filter(|dtype| !dtype.is_string());
    let mut numbers = numbers.filter(|dtype| to_dlpack(*dtype) == (code, bits));
    numbers.next()
}

/// Returns the buffer protocol format of a dtype, or `None` for bf16, floats of 4 to 8 bits and
/// integers of 4 bits.
pub fn buffer_format(dtype: DType) -> Option<&'static std::ffi::CStr> {
    Some(match dtype {
        DType::Bf16 => return None,
        small if small.is_small() => return None,
        DType::Complex64 => c"Zf",
        DType::F16 => c"e",
        DType::F32 => c"f",
        DType::F64 => c"d",
        DType::I8 => c"b",
        DType::I16 => c"h",
        DType::I32 => c"i",
        DType::I64 => c"q",
        DType::U16 => c"H",
        DType::U32 => c"I",
        DType::U64 => c"Q",
        DType::Bool => c"?",
        _ => c"B",
    })
}

/// Returns the dtype of a buffer protocol format in native byte order.
pub fn from_buffer_format(format: &[u8], item_bytes: usize) -> Option<DType> {
    if let (b"Zf" | b"@Zf" | b"=Zf", 8) = (format, item_bytes) {
        return Some(DType::Complex64);
    }
    let kind = match format {
        [b'@' | b'=', kind] | [kind] => kind,
        #[cfg(target_endian = "little")]
        [b'<', kind] => kind,
        #[cfg(target_endian = "big")]
        [b'>' | b'!', kind] => kind,
        _ => return None,
    };
    Some(match (kind, item_bytes) {
        (b'e', 2) => DType::F16,
        (b'f', 4) => DType::F32,
        (b'd', 8) => DType::F64,
        (b'?', 1) => DType::Bool,
        (b'b', 1) => DType::I8,
        (b'h' | b'i' | b'l' | b'q' | b'n', 2) => DType::I16,
        (b'h' | b'i' | b'l' | b'q' | b'n', 4) => DType::I32,
        (b'h' | b'i' | b'l' | b'q' | b'n', 8) => DType::I64,
        (b'B' | b'c', 1) => DType::U8,
        (b'H' | b'I' | b'L' | b'Q' | b'N', 2) => DType::U16,
        (b'H' | b'I' | b'L' | b'Q' | b'N', 4) => DType::U32,
        (b'H' | b'I' | b'L' | b'Q' | b'N', 8) => DType::U64,
        _ => return None,
    })
}
