//! The compression graphs that are tried.

use anyhow::{Result, ensure};
use openzl_sys::{self as ffi, ZL_Compressor, ZL_GraphID, ZL_NodeID};
use std::ptr::NonNull;
use tensilo::DType;

/// A compression graph for numbers.
#[derive(Clone, Copy)]
pub enum Graph {
    /// The library's choice for numbers.
    Numbers,
    /// The library's trained model, which chooses transforms one by one.
    Model,
    /// LZ matches of whole numbers.
    FieldLz,
    /// Byte planes, compressed separately.
    Planes,
    /// Differences of neighbors, as byte planes.
    Deltas,
    /// Exponents separate from signs and mantissas.
    Bfloat16,
    Float32,
    Float64,
    /// The distinct values in order, and indices into them.
    Tokens,
}

impl Graph {
    /// The graphs for a type.
    pub fn of_type(dtype: DType) -> Vec<Self> {
        let mut graphs = vec![Self::Numbers, Self::Model, Self::FieldLz, Self::Planes, Self::Deltas, Self::Tokens];
        match dtype {
            DType::Bf16 => graphs.push(Self::Bfloat16),
            DType::F32 => graphs.push(Self::Float32),
            DType::F64 => graphs.push(Self::Float64),
            _ => {}
        }
        graphs
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Numbers => "its selector of numbers",
            Self::Model => "its trained model of numbers",
            Self::FieldLz => "field LZ",
            Self::Planes => "byte planes",
            Self::Deltas => "deltas",
            Self::Bfloat16 | Self::Float32 | Self::Float64 => "deconstructed floats",
            Self::Tokens => "tokens",
        }
    }

    /// Builds the graph in a compressor.
    pub fn select(self, compressor: NonNull<ZL_Compressor>) -> Result<ZL_GraphID> {
        let build = Builder(compressor);
        match self {
            Self::Numbers => Ok(standard(ffi::ZL_StandardGraphID_select_numeric)),
            Self::Model => Ok(standard(ffi::ZL_StandardGraphID_transformer_numeric)),
            Self::FieldLz => Ok(standard(ffi::ZL_StandardGraphID_field_lz)),
            Self::Planes => build.planes(),
            Self::Deltas => build.after(ffi::ZL_StandardNodeID_delta_int, &[build.planes()?]),
            Self::Bfloat16 => build.float(ffi::ZL_StandardNodeID_bfloat16_deconstruct),
            Self::Float32 => build.float(ffi::ZL_StandardNodeID_float32_deconstruct),
            Self::Float64 => build.after(ffi::ZL_StandardNodeID_bitsplit_fp, &[build.best()?]),
            Self::Tokens => build.tokens(),
        }
    }
}

fn standard(gid: ffi::ZL_StandardGraphID) -> ZL_GraphID {
    ZL_GraphID { gid }
}

/// Builds graphs in a compressor that outlives it.
struct Builder(NonNull<ZL_Compressor>);

impl Builder {
    /// Returns a graph that tries several codecs for a stream of any type, and takes the smallest
    /// result.
    fn best(&self) -> Result<ZL_GraphID> {
        let planes = self.planes()?;
        self.smallest(&[
            planes,
            standard(ffi::ZL_StandardGraphID_field_lz),
            standard(ffi::ZL_StandardGraphID_huffman),
            standard(ffi::ZL_StandardGraphID_fse),
            standard(ffi::ZL_StandardGraphID_zstd),
            standard(ffi::ZL_StandardGraphID_bitpack),
        ])
    }

    fn planes(&self) -> Result<ZL_GraphID> {
        let bytes = self.smallest(&[
            standard(ffi::ZL_StandardGraphID_huffman),
            standard(ffi::ZL_StandardGraphID_fse),
            standard(ffi::ZL_StandardGraphID_zstd),
            standard(ffi::ZL_StandardGraphID_constant),
        ])?;
        self.after(ffi::ZL_StandardNodeID_transpose_split, &[bytes])
    }

    fn float(&self, node: ffi::ZL_StandardNodeID) -> Result<ZL_GraphID> {
        let best = self.best()?;
        self.after(node, &[best, best])
    }

    fn tokens(&self) -> Result<ZL_GraphID> {
        let alphabet = self.after(ffi::ZL_StandardNodeID_delta_int, &[self.best()?])?;
        let indices = self.best()?;
        // SAFETY: the compressor lives, and the graphs are its own.
        let graph = unsafe {
            ffi::ZL_Compressor_registerTokenizeGraph(self.0.as_ptr(), ffi::ZL_Type_numeric, true, alphabet, indices)
        };
        valid(graph)
    }

    /// Returns a graph of a node, with a graph for each of its outputs.
    fn after(&self, nid: ffi::ZL_StandardNodeID, graphs: &[ZL_GraphID]) -> Result<ZL_GraphID> {
        // SAFETY: the compressor lives, and pointer and length come from a slice.
        valid(unsafe {
            ffi::ZL_Compressor_registerStaticGraph_fromNode(
                self.0.as_ptr(),
                ZL_NodeID { nid },
                graphs.as_ptr(),
                graphs.len(),
            )
        })
    }

    fn smallest(&self, graphs: &[ZL_GraphID]) -> Result<ZL_GraphID> {
        // SAFETY: the compressor lives, and pointer and length come from a slice. The result is a
        // graph if its code is 0.
        unsafe {
            let result =
                ffi::ZL_Compressor_buildBruteForceSelectorGraph(self.0.as_ptr(), graphs.as_ptr(), graphs.len());
            ensure!(
                result._code == ffi::ZL_ErrorCode_no_error,
                "OpenZL cannot build a selector: error {}",
                result._code
            );
            Ok(result._value._value)
        }
    }
}

fn valid(graph: ZL_GraphID) -> Result<ZL_GraphID> {
    // SAFETY: it takes any identifier.
    ensure!(unsafe { ffi::ZL_GraphID_isValid(graph) } != 0, "OpenZL cannot build a graph");
    Ok(graph)
}
