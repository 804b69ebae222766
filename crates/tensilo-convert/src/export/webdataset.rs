//! Samples as files of a tar archive, as WebDataset reads them.

use super::batches::{Exported, ExportedBatch, sample_bytes};
use super::npy::{Bf16, element_descr, npy_header, write_elements, written};
use crate::webdataset::{KEY, SuffixKind, kind_of};
use std::io::{self, Write};
use tar::{Builder, EntryType, Header};
use tensilo::export::Table;
use tensilo::{ColumnBuffer, ColumnSchema, DType, Error, Extent, Result};

/// Writes a `.tar` file. Nulls are left out.
pub(super) fn write<T: Table>(
    mut exported: Exported<'_, T>,
    out: &mut impl Write,
) -> std::result::Result<(), T::Error> {
    let columns = exported.columns().map(Cell::of).collect::<Result<Vec<_>>>()?;
    let mut archive = Builder::new(out);
    exported.for_each(&mut |batch| {
        (0..batch.sample_count).try_for_each(|i| write_sample(&mut archive, &columns, &batch, i))
    })?;
    archive.finish().map_err(written)?;
    Ok(())
}

/// The form of a column's samples as files.
struct Cell {
    /// Set if the column has the keys.
    is_key: bool,
    suffix: String,
    form: CellForm,
    dtype: DType,
    extents: Vec<Extent>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CellForm {
    /// The bytes of a text or of a string of bytes.
    Plain,
    /// A decimal number.
    Integer,
    /// An array of NumPy.
    Npy,
}

impl Cell {
    /// Returns the form of a column. Its name is the suffix, with an ending that tells its type,
    /// unless it has that.
    fn of(column: &ColumnSchema) -> Result<Self> {
        let refused = |what: &str| Err(Error::bad_input(format!("column {:?}: {what}", column.name)));
        if !column.levels.is_empty() || column.is_struct_nulls() {
            return refused("lists and structs are no files; export to .parquet or .arrow");
        }
        let name = column.name.to_lowercase();
        if name.contains('/') || name.is_empty() {
            return refused("the name cannot be a suffix of files");
        }
        let is_integer = !column.dtype.is_float() && !column.dtype.is_string() && column.dtype != DType::Bool;
        let kind = kind_of(&name);
        let (form, ending, has_ending) = match column.dtype {
            DType::Utf8 => (CellForm::Plain, "txt", kind == SuffixKind::Text),
            DType::Bytes => (CellForm::Plain, "bin", kind == SuffixKind::Bytes),
            _ if is_integer && column.shape.rank() == 0 && kind != SuffixKind::Npy => {
                (CellForm::Integer, "cls", kind == SuffixKind::Integer)
            }
            _ => (CellForm::Npy, "npy", kind == SuffixKind::Npy),
        };
        let suffix = if has_ending { name } else { format!("{name}.{ending}") };
        let is_key = column.name == KEY && column.dtype == DType::Utf8;
        Ok(Self { is_key, suffix, form, dtype: column.dtype, extents: column.shape.extents().to_vec() })
    }

    /// Returns the content of the file of a sample.
    fn content(&self, buffer: &ColumnBuffer, i: usize) -> io::Result<Vec<u8>> {
        let bytes = sample_bytes(buffer, i, self.dtype, &self.extents);
        match self.form {
            CellForm::Plain => Ok(bytes.to_vec()),
            CellForm::Integer => Ok(decimal(self.dtype, bytes).into_bytes()),
            CellForm::Npy => {
                let varying = self.extents.iter().filter(|extent| **extent == Extent::Varying).count();
                // they are in memory
                let own = buffer.extents().get(i * varying..(i + 1) * varying).unwrap_or_default();
                let mut own = own.iter();
                let extent = |extent: &Extent| match extent {
                    Extent::Fixed(extent) => u64::from(*extent),
                    Extent::Varying => own.next().copied().unwrap_or(0).into(),
                };
                let shape: Vec<u64> = self.extents.iter().map(extent).collect();
                let mut file = npy_header(element_descr(self.dtype), &shape);
                write_elements(self.dtype, Bf16::Widened, bytes, &mut file)?;
                Ok(file)
            }
        }
    }
}

fn decimal(dtype: DType, bytes: &[u8]) -> String {
    macro_rules! number {
        ($type:ty) => {
            bytes.try_into().map(|bytes| <$type>::from_ne_bytes(bytes).to_string()).unwrap_or_default()
        };
    }
    match dtype {
        DType::I8 => number!(i8),
        DType::I16 => number!(i16),
        DType::I32 => number!(i32),
        DType::I64 => number!(i64),
        DType::U16 => number!(u16),
        DType::U32 => number!(u32),
        DType::U64 => number!(u64),
        _ => number!(u8),
    }
}

fn write_sample(archive: &mut Builder<impl Write>, cells: &[Cell], batch: &ExportedBatch<'_>, i: usize) -> Result<()> {
    let number = batch.first.saturating_add(u64::try_from(i).unwrap_or(u64::MAX));
    let refused = |what: String| Error::bad_input(format!("sample {number}: {what}"));
    let mut key = format!("{number:09}");
    let present = |buffer: &'_ Option<ColumnBuffer>| buffer.as_ref().is_some_and(|buffer| !buffer.is_null(i));
    for (cell, buffer) in cells.iter().zip(batch.columns).filter(|(cell, buffer)| cell.is_key && present(buffer)) {
        let bytes = buffer.as_ref().map_or(&[][..], |buffer| sample_bytes(buffer, i, cell.dtype, &cell.extents));
        key = String::from_utf8_lossy(bytes).into_owned(); // a text
        let name = key.rsplit('/').next().unwrap_or_default();
        if name.is_empty() || name.contains('.') || key.starts_with('/') || key.split('/').any(|part| part == "..") {
            return Err(refused(format!("the key {key:?} is no name of a file without a dot")));
        }
    }
    for (cell, buffer) in cells.iter().zip(batch.columns).filter(|(cell, buffer)| !cell.is_key && present(buffer)) {
        let Some(buffer) = buffer else { continue };
        let content = cell.content(buffer, i).map_err(written)?;
        let mut header = Header::new_ustar();
        header.set_entry_type(EntryType::Regular);
        header.set_mode(0o644);
        header.set_mtime(0);
        header.set_uid(0);
        header.set_gid(0);
        header.set_size(u64::try_from(content.len()).unwrap_or(u64::MAX)); // in memory
        let path = format!("{key}.{}", cell.suffix);
        archive.append_data(&mut header, &path, content.as_slice()).map_err(written)?;
    }
    Ok(())
}
