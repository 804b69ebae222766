//! Writes samples as the files of a tar archive, in the layout of WebDataset.
//!
//! An archive has neither a schema nor a list of samples: readers find samples by the names of
//! files. Samples that a reader would lose, or merge with another sample, are refused: samples
//! without any value, with a repeated key, or with a key that a reader would split differently.

use super::batches::{ExportBatch, TableExport, sample_bytes};
use super::npy::{Bf16, check_numpy, npy_header, write_elements, write_error};
use crate::webdataset::{KEY, Keys, SuffixKind, key_and_suffix, kind_of};
use std::collections::HashMap;
use std::io::{self, Write};
use tar::{Builder, EntryType, Header};
use tensilo::export::Table;
use tensilo::{ColumnBuffer, ColumnSchema, DType, Error, ErrorKind, Extent, LogicalType, Result, limits};

/// Writes a `.tar` file. A null gets no file.
pub(super) fn write<T: Table>(
    mut export: TableExport<'_, T>,
    out: &mut impl Write,
) -> std::result::Result<(), T::Error> {
    let columns = export.columns().map(FileColumn::of).collect::<Result<Vec<_>>>()?;
    if columns.iter().all(|column| column.is_key) {
        return Err(Error::bad_input("there is no column to export except the keys").into());
    }
    check_suffixes(&columns)?;
    let mut samples = Samples { archive: Builder::new(out), columns, keys: Keys::default(), last: String::new() };
    export.for_each(&mut |batch| {
        for (column, buffer) in samples.columns.iter_mut().zip(batch.columns) {
            let has_value = |buffer: &ColumnBuffer| (0..batch.sample_count).any(|i| !buffer.is_null(i));
            column.has_values |= buffer.as_ref().is_some_and(has_value);
        }
        (0..batch.sample_count).try_for_each(|i| samples.write(&batch, i))
    })?;
    let has_samples = samples.columns.iter().any(|column| column.has_values);
    if let Some(column) = samples.columns.iter().find(|column| has_samples && !column.has_values) {
        let what = "all samples are null, so the archive would have no file for it; skip it, or export to .parquet";
        return Err(Error::bad_input(format!("column {:?}: {what}", column.name)).into());
    }
    samples.archive.finish().map_err(write_error)?;
    Ok(())
}

/// Refuses columns whose files would have the same name.
fn check_suffixes(columns: &[FileColumn]) -> Result<()> {
    let mut names: HashMap<&str, &str> = HashMap::new();
    for column in columns.iter().filter(|column| !column.is_key) {
        if let Some(other) = names.insert(&column.suffix, &column.name) {
            let (name, suffix) = (&column.name, &column.suffix);
            return Err(Error::bad_input(format!(
                "columns {other:?} and {name:?} would have the same suffix {suffix:?} in an archive; export only one \
                 of them, or rename one"
            )));
        }
    }
    Ok(())
}

/// How the samples of a column are written as files.
struct FileColumn {
    /// Whether the column holds the keys.
    is_key: bool,
    name: String,
    suffix: String,
    form: FileForm,
    dtype: DType,
    extents: Vec<Extent>,
    /// Whether a sample that is not null has been found.
    has_values: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FileForm {
    /// The bytes of a text or of a byte string.
    Plain,
    /// A decimal number.
    Integer,
    /// A NumPy array.
    Npy,
}

impl FileColumn {
    /// Returns how the samples of a column are written. The suffix is the name of the column, with
    /// an extension for its type unless the name already has one.
    fn of(column: &ColumnSchema) -> Result<Self> {
        let refused = |what: &str| Err(Error::bad_input(format!("column {:?}: {what}", column.name)));
        if !column.levels.is_empty() || column.is_struct_nulls() {
            return refused("lists and structs cannot be written as files; export to .parquet or .arrow");
        }
        LogicalType::check_numbers(column)?;
        check_numpy(column)?;
        if column.dtype == DType::Complex64 {
            return refused("an archive cannot hold complex numbers; export to .npz, .parquet or .arrow");
        }
        let name = column.name.to_lowercase();
        if name.contains('/') || name.is_empty() {
            return refused("the name cannot be a file suffix; rename the column");
        }
        let is_integer = !column.dtype.is_float() && !column.dtype.is_string() && column.dtype != DType::Bool;
        let kind = kind_of(&name);
        let (form, ending, has_ending) = match column.dtype {
            DType::Utf8 => (FileForm::Plain, "txt", kind == SuffixKind::Text),
            DType::Bytes => (FileForm::Plain, "bin", kind == SuffixKind::Bytes),
            _ if is_integer && column.shape.ndim() == 0 && kind != SuffixKind::Npy => {
                (FileForm::Integer, "cls", kind == SuffixKind::Integer)
            }
            _ => (FileForm::Npy, "npy", kind == SuffixKind::Npy),
        };
        let suffix = if has_ending { name } else { format!("{name}.{ending}") };
        let is_key = column.name == KEY && column.dtype == DType::Utf8;
        if suffix == KEY && !is_key || suffix.len() > limits::NAME_BYTES {
            return refused("the name cannot be a file suffix; rename the column");
        }
        let (name, extents) = (column.name.clone(), column.shape.extents().to_vec());
        Ok(Self { is_key, name, suffix, form, dtype: column.dtype, extents, has_values: false })
    }

    /// Returns the content of the file for a sample.
    fn content(&self, buffer: &ColumnBuffer, i: usize) -> Result<Vec<u8>> {
        let bytes = sample_bytes(buffer, i, self.dtype, &self.extents);
        match self.form {
            FileForm::Plain => Ok(bytes.to_vec()),
            FileForm::Integer => {
                let text = decimal(self.dtype, bytes);
                if text.parse::<i64>().is_err() {
                    let what = format!("{text} is beyond the range of i64, which readers expect");
                    return Err(Error::bad_input(format!("{what}; export to .parquet or .npz")));
                }
                Ok(text.into_bytes())
            }
            FileForm::Npy => {
                let varying = self.extents.iter().filter(|extent| **extent == Extent::Varying).count();
                // fits: the samples are in memory
                let own = buffer.varying_extents().get(i * varying..(i + 1) * varying).unwrap_or_default();
                let mut own = own.iter();
                let extent = |extent: &Extent| match extent {
                    Extent::Fixed(extent) => u64::from(*extent),
                    Extent::Varying => own.next().copied().unwrap_or(0).into(),
                };
                let shape: Vec<u64> = self.extents.iter().map(extent).collect();
                let mut file = npy_header(self.dtype, &shape);
                write_elements(self.dtype, Bf16::AsF32, bytes, &mut file).map_err(write_error)?;
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

/// The samples of an archive that is being written.
struct Samples<W: Write> {
    archive: Builder<W>,
    columns: Vec<FileColumn>,
    /// The keys in the key column. Without a key column, the numbers of the samples are the keys;
    /// these are distinct.
    keys: Keys,
    /// The last key.
    last: String,
}

impl<W: Write> Samples<W> {
    fn write(&mut self, batch: &ExportBatch<'_>, i: usize) -> Result<()> {
        let number = batch.first.saturating_add(u64::try_from(i).unwrap_or(u64::MAX));
        let refused = |what: String| Error::bad_input(format!("sample {number}: {what}"));
        let present = |buffer: &'_ Option<ColumnBuffer>| buffer.as_ref().is_some_and(|buffer| !buffer.is_null(i));
        let columns = || self.columns.iter().zip(batch.columns);
        let files = || columns().filter(|(column, buffer)| !column.is_key && present(buffer));
        if files().next().is_none() {
            let what = "all its values are null, so it would have no file; export to .parquet or .arrow".to_owned();
            return Err(refused(what));
        }
        let key = match columns().find(|(column, _)| column.is_key) {
            None => format!("{number:09}"),
            Some((column, Some(buffer))) if !buffer.is_null(i) => {
                let bytes = sample_bytes(buffer, i, column.dtype, &column.extents);
                let key = String::from_utf8_lossy(bytes).into_owned(); // keys are UTF-8
                let suffixes = files().map(|(column, _)| column.suffix.as_str());
                let split_from = self.keys.split_from(&key, suffixes);
                if key == self.last && number > 0 {
                    return Err(refused(format!("it has the same key as the previous sample, {key:?}")));
                }
                if let Some(other) = split_from {
                    let what = format!(
                        "it has the same key as sample {other}, {key:?}, but values in other columns, so readers \
                         would take the two for parts of one sample; make the keys distinct"
                    );
                    return Err(refused(what));
                }
                key
            }
            Some(_) => return Err(refused(format!("its key ({KEY}) is null"))),
        };
        for (column, buffer) in files() {
            let Some(buffer) = buffer else { continue };
            let content = column.content(buffer, i).map_err(|error| match error.kind() {
                ErrorKind::BadInput => refused(format!("column {:?}: {}", column.name, error.message())),
                _ => error,
            })?;
            let path = format!("{key}.{}", column.suffix);
            if !is_safe_path(&key) || key_and_suffix(&path) != Some((key.as_str(), column.suffix.clone())) {
                return Err(refused(format!(
                    "no file can have the key {key:?} and the suffix {:?}: readers would split its name differently, \
                     or its path would be unsafe to unpack; change the key",
                    column.suffix
                )));
            }
            write_file(&mut self.archive, &path, &content).map_err(write_error)?;
        }
        self.last = key;
        Ok(())
    }
}

/// Returns whether programs that unpack an archive write a file with this key inside the target
/// folder, under its full name.
fn is_safe_path(key: &str) -> bool {
    !key.starts_with('/') && !key.contains('\0') && key.split('/').all(|part| part != "..")
}

fn write_file(archive: &mut Builder<impl Write>, path: &str, content: &[u8]) -> io::Result<()> {
    let mut header = Header::new_ustar();
    header.set_entry_type(EntryType::Regular);
    header.set_mode(0o644);
    header.set_mtime(0);
    header.set_uid(0);
    header.set_gid(0);
    header.set_size(u64::try_from(content.len()).unwrap_or(u64::MAX)); // in memory
    let folders = path.rsplit_once('/').map_or("", |(folders, _)| folders);
    if path.starts_with("./") || folders.split('/').any(|part| part == "." || part.is_empty() && !folders.is_empty()) {
        // the crate `tar` would normalize such a path, which would change the key
        let name = [path.as_bytes(), b"\0"].concat();
        let mut long_name = Header::new_gnu();
        long_name.set_entry_type(EntryType::GNULongName);
        long_name.set_path("././@LongLink")?;
        long_name.set_size(u64::try_from(name.len()).unwrap_or(u64::MAX)); // in memory
        long_name.set_cksum();
        archive.append(&long_name, name.as_slice())?;
        header.set_path("long-name")?;
        header.set_cksum();
        return archive.append(&header, content);
    }
    archive.append_data(&mut header, path, content)
}
