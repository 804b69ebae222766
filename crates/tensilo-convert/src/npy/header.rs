//! The header of an array file.

use super::literal::{Literal, parse};
use crate::stream::stream_error;
use crate::tensor::Order;
use std::io::Read;
use tensilo::{DType, Error, Result};

/// The first bytes of an array file.
pub(super) const MAGIC: &[u8] = b"\x93NUMPY";

/// The most bytes of a header's text. NumPy itself writes headers of some hundred bytes, and reads
/// no longer ones by default than 10,000.
const MOST_BYTES: u64 = 1 << 20;

/// The header of an array file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NpyHeader {
    pub dtype: DType,
    /// Whether elements are in the other byte order than those of this machine.
    pub is_swapped: bool,
    pub order: Order,
    pub extents: Vec<u64>,
    /// The number of bytes before the elements.
    pub byte_count: u64,
}

impl NpyHeader {
    /// Reads a header, of versions 1 to 3. The reader begins with the first byte of the file.
    pub(crate) fn read(reader: &mut impl Read) -> Result<Self> {
        let cut_off = || Error::bad_input("the array is cut off inside its header");
        let mut take = |count: u64| {
            let mut bytes = Vec::new();
            reader
                .take(count)
                .read_to_end(&mut bytes)
                .map_err(|error| stream_error(&error, "the header of the array"))?;
            if u64::try_from(bytes.len()).ok() == Some(count) { Ok(bytes) } else { Err(cut_off()) }
        };
        let start = take(8)?;
        let version = match start.strip_prefix(MAGIC) {
            Some([major @ 1..=3, 0]) => *major,
            Some(version) => {
                return Err(Error::bad_input(format!(
                    "the array has version {version:?} of the format, and 1 to 3 are read"
                )));
            }
            None => return Err(Error::bad_input("the array does not begin as a .npy file does")),
        };
        let size_bytes = if version == 1 { 2 } else { 4 };
        let size = take(size_bytes)?.iter().rev().fold(0_u64, |size, byte| size << 8 | u64::from(*byte));
        if size > MOST_BYTES {
            return Err(Error::bad_input(format!("the header of the array has {size} bytes, more than {MOST_BYTES}")));
        }
        let text = take(size)?;
        let text = match version {
            3 => String::from_utf8(text).ok(),
            _ => Some(text.into_iter().map(char::from).collect()), // Latin-1
        };
        let malformed = || {
            Error::bad_input(
                "the header of the array is malformed: it is no dictionary of descr, fortran_order and shape",
            )
        };
        let header = Self::of(&text.ok_or_else(malformed)?).ok_or_else(malformed)?;
        Ok(Self { byte_count: 8 + size_bytes + size, ..header? }) // at most 1 MiB and some
    }

    /// Returns the header that a text states. `None`: it is malformed.
    fn of(text: &str) -> Option<Result<Self>> {
        let Literal::Dict(members) = parse(text)? else { return None };
        let member = |name: &str| members.iter().find(|(key, _)| key == name).map(|(_, value)| value);
        let (Literal::Bool(is_fortran), Literal::Sequence(shape)) = (member("fortran_order")?, member("shape")?) else {
            return None;
        };
        let extent = |extent: &Literal| if let Literal::Integer(extent) = extent { Some(*extent) } else { None };
        let extents: Vec<u64> = shape.iter().map(extent).collect::<Option<_>>()?;
        // of one dimension, both orders are the same
        let order = if *is_fortran && extents.len() > 1 { Order::Fortran } else { Order::C };
        Some(match member("descr")? {
            Literal::Text(descr) => {
                element_type(descr).map(|(dtype, is_swapped)| Self { dtype, is_swapped, order, extents, byte_count: 0 })
            }
            _ => Err(Error::bad_input("the elements of the array are records; save each field as an array of its own")),
        })
    }
}

/// Returns the type of elements, and whether their bytes have to be swapped.
fn element_type(descr: &str) -> Result<(DType, bool)> {
    let (order, name) = match descr.split_at_checked(1) {
        Some((order @ ("<" | ">" | "|" | "="), name)) => (order, name),
        _ => ("|", descr),
    };
    let dtype = match name {
        "f2" => DType::F16,
        "f4" => DType::F32,
        "f8" => DType::F64,
        "i1" => DType::I8,
        "i2" => DType::I16,
        "i4" => DType::I32,
        "i8" => DType::I64,
        "u1" => DType::U8,
        "u2" => DType::U16,
        "u4" => DType::U32,
        "u8" => DType::U64,
        "c8" => DType::Complex64,
        "b1" | "?" => DType::Bool,
        _ => return Err(refused(descr, name)),
    };
    let is_swapped = match order {
        "<" => cfg!(target_endian = "big"),
        ">" => cfg!(target_endian = "little"),
        _ if dtype.element_bytes() == 1 || order == "=" => false,
        _ => {
            return Err(Error::bad_input(format!(
                "the type {descr:?} of the elements does not state their byte order"
            )));
        }
    };
    Ok((dtype, is_swapped))
}

fn refused(descr: &str, name: &str) -> Error {
    let advice = match name.get(..1) {
        _ if name.starts_with('V') || name == "f1" => {
            "it does not tell what its bytes mean (bfloat16, float8 and int4 of ml_dtypes are saved so); save \
                      the array as float32 and convert with --bf16, or save it in safetensors"
        }
        Some("O") => "it is Python objects, pickled, which are never loaded",
        Some("c") => "save real and imaginary part as two arrays, a view of floats, or complex64",
        Some("M" | "m") => "save a view of int64",
        Some("U" | "S") => "texts are stored from Parquet, Arrow or JSON lines",
        _ => "save the array with another type",
    };
    Error::bad_input(format!("the elements of the array have the type {descr:?}: {advice}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn element_types_have_a_byte_order() {
        let little = cfg!(target_endian = "little");
        assert_eq!(element_type("<f4").unwrap(), (DType::F32, !little));
        assert_eq!(element_type(">i8").unwrap(), (DType::I64, little));
        assert_eq!(element_type("|b1").unwrap(), (DType::Bool, false));
        assert_eq!(element_type(">c8").unwrap(), (DType::Complex64, little));
        for descr in ["|V1", "|V2", "|O", "<c16", "|c8", "<M8[us]", "<U3", "|f4", "<f16", "", "ä"] {
            assert!(element_type(descr).is_err(), "{descr}");
        }
    }
}
