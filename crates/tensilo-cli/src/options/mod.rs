//! Options that several subcommands share, and parsers of option values.

mod encoding;
mod inputs;
mod null_elements;
pub(crate) mod values;

pub(crate) use encoding::EncodingArgs;
pub(crate) use inputs::{check_inputs, store};
pub(crate) use null_elements::OnNullElement;
pub(crate) use values::{Names, threads};
