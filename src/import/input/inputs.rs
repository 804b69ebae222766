//! The inputs of a conversion.

use super::opened::OpenInput;
use super::{find, partition, stored};
#[cfg(feature = "arrow")]
use crate::import::arrow::united::{UnitedSchema, column_count, fields_of_file};
use crate::import::options::InputPlaces;
use crate::le::u64_of;
use crate::open::{FileIdentity, default_open_files, refuse_same};
use crate::{Error, Result, Schema};
#[cfg(feature = "arrow")]
use arrow_schema::Fields;
use std::path::{Path, PathBuf};

/// Opens all inputs. Those of a folder or pattern follow one another. `-` is the standard input if
/// `places` say so. If `threads` is more than 1, other threads read the inputs.
///
/// [`default_open_files`] of them stay open. Others are closed after their schema was read, and
/// opened again for each pass.
pub(in crate::import) fn open_all(inputs: &[PathBuf], places: &InputPlaces, threads: usize) -> Result<Vec<OpenInput>> {
    let is_stdin = |input: &Path| places.dash_is_stdin && input == Path::new("-");
    if inputs.iter().filter(|input| is_stdin(input)).count() > 1 {
        return Err(Error::bad_argument("the standard input is given twice, and can be read once"));
    }
    let mut left = default_open_files();
    let mut out = Vec::new();
    for input in inputs {
        if is_stdin(input) {
            out.push(OpenInput::standard_input(places)?);
            continue;
        }
        let paths = match places.store.of(input) {
            Some(store) => stored::inputs(input, &**store)?,
            None => find::files(input)?,
        };
        for path in paths {
            let input = OpenInput::open(&path, places)?;
            match left.checked_sub(input.file_count()) {
                Some(rest) => left = rest,
                None => input.release(),
            }
            out.push(input);
        }
    }
    if out.is_empty() {
        return Err(Error::bad_argument("there is no input"));
    }
    unite(&mut out)?;
    partition::settle_types(out.iter_mut().map(OpenInput::partition_mut));
    out.iter_mut().for_each(OpenInput::complete_columns);
    out.iter_mut().for_each(|input| input.read_on(threads));
    Ok(out)
}

/// Gives inputs the columns that they have together, as far as they differ only a little.
#[cfg(feature = "arrow")]
fn unite(inputs: &mut [OpenInput]) -> Result<()> {
    let schemas = with_columns(inputs).into_iter().filter_map(OpenInput::own_schema);
    let united = schemas.fold(None, |united: Option<UnitedSchema>, (schema, origin)| match united {
        None => Some(UnitedSchema::new(schema, origin)),
        Some(mut united) => {
            united.join(schema, origin);
            Some(united)
        }
    });
    let Some(united) = united else { return Ok(()) };
    align(inputs, &united.into_fields())
}

/// Gives inputs these fields. Refuses more columns than there is memory for: each input keeps a
/// description of each column, also of those that it lacks.
#[cfg(feature = "arrow")]
fn align(inputs: &mut [OpenInput], fields: &Fields) -> Result<()> {
    /// The columns that inputs lack, of all together. Each takes about 1 KiB.
    const MAX_ADDED: usize = 4 << 20;
    let all = column_count(fields);
    let own = inputs.iter().filter_map(|input| Some(column_count(input.own_schema()?.0.fields())));
    let added = own.fold(0_usize, |added, own| added.saturating_add(all.saturating_sub(own)));
    if added > MAX_ADDED {
        return Err(Error::bad_input(format!(
            "{} inputs have {all} columns together, and most inputs lack most of them; convert fewer inputs to a \
             file, or store keys that differ from row to row as values, not as names of columns",
            inputs.len()
        )));
    }
    inputs.iter_mut().try_for_each(|input| input.align(fields))
}

#[cfg(not(feature = "arrow"))]
fn unite(_: &mut [OpenInput]) -> Result<()> {
    Ok(())
}

/// Gives inputs the columns of a file, as far as they differ only a little, and columns that names
/// of folders become the type that they have in the file.
pub(in crate::import) fn adapt(inputs: &mut [OpenInput], schema: &Schema) -> Result<()> {
    #[cfg(feature = "arrow")]
    align(inputs, &fields_of_file(schema))?;
    for input in inputs {
        input.partition_mut().adapt(schema);
        input.complete_columns();
    }
    Ok(())
}

/// Returns the inputs that have samples. The others add none, whatever their columns are.
pub(in crate::import) fn with_samples(inputs: &[OpenInput]) -> Vec<&OpenInput> {
    inputs.iter().filter(|input| input.has_samples()).collect()
}

/// Returns the inputs that tell the columns of a new file: those that have samples. If none has,
/// these are the inputs that have columns, or the first.
pub(in crate::import) fn with_columns(inputs: &[OpenInput]) -> Vec<&OpenInput> {
    let with_samples = with_samples(inputs);
    if !with_samples.is_empty() {
        return with_samples;
    }
    let has_columns = |input: &&OpenInput| !input.source().columns().is_empty();
    let with_columns: Vec<&OpenInput> = inputs.iter().filter(has_columns).collect();
    if with_columns.is_empty() { inputs.iter().take(1).collect() } else { with_columns }
}

/// Refuses an output that is one of the inputs.
pub(in crate::import) fn check_output(
    inputs: &[OpenInput],
    output: Option<FileIdentity>,
    path: Option<&Path>,
) -> Result<()> {
    refuse_same(output, path, inputs.iter().map(|input| (input.identity().cloned(), Some(input.name()))))
}

/// Returns the bytes that ids of files made from these inputs depend on: those of the inputs, and
/// the names of folders that become columns.
pub(in crate::import) fn origin(inputs: &[OpenInput]) -> Vec<u8> {
    let mut out = Vec::new();
    for origin in inputs.iter().map(OpenInput::origin) {
        out.extend(u64_of(origin.len()).to_le_bytes());
        out.extend(origin);
    }
    out
}
