//! The format of an export.

use super::args::{ExportArgs, OnExport};
use crate::failure::{Failure, Outcome};
use crate::output::shown;
use tensilo::export::ExportFormat;
use tensilo_convert::TargetFormat;

/// A format to export to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AnyFormat {
    /// A table with all types of Arrow.
    Table(ExportFormat),
    /// One that has fewer types.
    Other(TargetFormat),
    /// An indexed dataset: two files.
    Megatron,
}

impl AnyFormat {
    /// Returns the format that the arguments ask for, by name or by the extension of the output.
    pub(super) fn of(args: &ExportArgs) -> Outcome<Self> {
        let by_extension = || {
            let table = ExportFormat::of(&args.output).map(Self::Table);
            let is_index = args.output.extension().is_some_and(|extension| extension == "idx");
            let other =
                || TargetFormat::of(&args.output).map(Self::Other).or_else(|| is_index.then_some(Self::Megatron));
            table.or_else(other)
        };
        let format = args.format.map(Self::from).or_else(by_extension).ok_or_else(|| {
            let path = shown(&args.output);
            Failure::Usage(format!(
                "{path}: the name tells no format; end it in .parquet, .arrow, .arrows, .npy, .npz, \
                 .safetensors, .tar or .idx, or use --format"
            ))
        })?;
        if !matches!(format, Self::Table(_)) && (args.tensors.is_some() || args.stored_types) {
            let message =
                "--tensors and --stored-types choose types of Parquet and Arrow, which this format does not have";
            return Err(Failure::Usage(message.to_owned()));
        }
        Ok(format)
    }

    /// Returns the extension of files of the format.
    pub(super) fn extension(self) -> &'static str {
        match self {
            Self::Table(ExportFormat::Arrow) => "arrow",
            Self::Table(ExportFormat::ArrowStream) => "arrows",
            Self::Table(_) => "parquet",
            Self::Other(format) => format.extension(),
            Self::Megatron => "idx",
        }
    }
}

impl From<OnExport> for AnyFormat {
    fn from(format: OnExport) -> Self {
        match format {
            OnExport::Parquet => Self::Table(ExportFormat::Parquet),
            OnExport::Arrow => Self::Table(ExportFormat::Arrow),
            OnExport::Arrows => Self::Table(ExportFormat::ArrowStream),
            OnExport::Npy => Self::Other(TargetFormat::Npy),
            OnExport::Npz => Self::Other(TargetFormat::Npz),
            OnExport::Safetensors => Self::Other(TargetFormat::Safetensors),
            OnExport::Tar => Self::Other(TargetFormat::WebDataset),
            OnExport::Megatron => Self::Megatron,
        }
    }
}
