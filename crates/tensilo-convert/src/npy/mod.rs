//! NumPy's files: `.npy` and `.npz`.

mod archive;
mod array;
mod header;
mod literal;

pub(crate) use archive::Npz;
pub(crate) use array::Npy;
pub(crate) use header::NpyHeader;
