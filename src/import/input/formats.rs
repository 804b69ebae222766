//! Recognizes the format of an input by its first bytes, and opens it.
//!
//! Built-in formats have magic bytes, except Arrow IPC streams, which begin with a length. So
//! formats that the program adds are tried before streams.

use super::file::InputFile;
use crate::Result;
#[cfg(feature = "arrow")]
use crate::import::arrow::ipc_files;
use crate::import::options::InputOptions;
#[cfg(feature = "parquet")]
use crate::import::parquet;
use crate::import::source::SharedSource;
use crate::import::tensilo_file;
use crate::open::foreign::{placeholder, unknown};
use std::io;
use std::io::{Read, Seek, SeekFrom};
use std::sync::Arc;

/// The content of an input file, and the bytes from which the id of the output file is derived.
type OpenResult = Result<(SharedSource, Vec<u8>)>;

/// Opens a file of a built-in format or of a format that the program has added. Also returns the
/// bytes from which the id of a file made from it is derived.
pub(in crate::import) fn open(file: &Arc<InputFile>, options: &InputOptions) -> OpenResult {
    let first = file.first_bytes()?;
    match first.as_slice() {
        [b'P', b'A', b'R', b'1', ..] => parquet(file),
        [b'P', b'A', b'R', b'E', ..] => encrypted_parquet(),
        [b'A', b'R', b'R', b'O', b'W', b'1', ..] => arrow_file(file),
        first if first.starts_with(&tensilo_file::MAGIC) => tensilo_file(file),
        first if placeholder(first).is_some() => Err(unknown(first, &accepted(options))),
        _ => match custom_format(file, options)? {
            Some(content) => {
                let mut origin = fingerprint(file)?;
                for companion in file.companions() {
                    origin.extend(fingerprint(&companion)?);
                }
                Ok((content, origin))
            }
            None => arrow_stream(file, &accepted(options)),
        },
    }
}

/// Opens a file in a format that the program has added.
#[cfg(feature = "arrow")]
fn custom_format(file: &Arc<InputFile>, options: &InputOptions) -> Result<Option<SharedSource>> {
    Ok(options.formats.open(file, &options.store)?.map(|content| -> SharedSource { Arc::new(content) }))
}

#[cfg(not(feature = "arrow"))]
fn custom_format(_: &Arc<InputFile>, _: &InputOptions) -> Result<Option<SharedSource>> {
    Ok(None)
}

/// Returns a list of the accepted formats, for messages.
fn accepted(options: &InputOptions) -> String {
    #[cfg(feature = "arrow")]
    return list_formats(options.formats.names());
    #[cfg(not(feature = "arrow"))]
    {
        let InputOptions { .. } = options;
        list_formats(std::iter::empty())
    }
}

/// Returns the length and the first and last bytes of a file, which include its schema, some data,
/// and its footer.
fn fingerprint(file: &InputFile) -> Result<Vec<u8>> {
    const END_BYTES: u64 = 64 << 10;
    let mut reader = file.reader()?;
    let mut read = || -> io::Result<Vec<u8>> {
        let length = reader.byte_count();
        let mut out = length.to_le_bytes().to_vec();
        for start in [0, length.saturating_sub(END_BYTES)] {
            reader.seek(SeekFrom::Start(start))?;
            (&mut reader).take(END_BYTES).read_to_end(&mut out)?;
        }
        Ok(out)
    };
    read().map_err(|error| file.io("reading the file", error))
}

fn tensilo_file(file: &Arc<InputFile>) -> OpenResult {
    let (content, origin) = tensilo_file::open(file)?;
    Ok((Arc::new(content), origin))
}

#[cfg(feature = "parquet")]
fn parquet(file: &Arc<InputFile>) -> OpenResult {
    let (content, footer) = parquet::open(file)?;
    Ok((Arc::new(content), footer))
}

#[cfg(feature = "parquet")]
fn encrypted_parquet() -> OpenResult {
    Err(parquet::encrypted_footer())
}

#[cfg(not(feature = "parquet"))]
fn parquet(_: &Arc<InputFile>) -> OpenResult {
    encrypted_parquet()
}

#[cfg(not(feature = "parquet"))]
fn encrypted_parquet() -> OpenResult {
    Err(crate::Error::not_built("parquet", "reading Parquet files"))
}

#[cfg(feature = "arrow")]
fn arrow_file(file: &Arc<InputFile>) -> OpenResult {
    Ok((Arc::new(ipc_files::open_file(file)?), fingerprint(file)?))
}

#[cfg(feature = "arrow")]
fn arrow_stream(file: &Arc<InputFile>, accepted: &str) -> OpenResult {
    Ok((Arc::new(ipc_files::open_stream(file, accepted)?), fingerprint(file)?))
}

#[cfg(not(feature = "arrow"))]
fn arrow_file(_: &Arc<InputFile>) -> OpenResult {
    Err(crate::Error::not_built("arrow", "reading Arrow files"))
}

#[cfg(not(feature = "arrow"))]
fn arrow_stream(file: &Arc<InputFile>, accepted: &str) -> OpenResult {
    Err(unknown(&file.first_bytes()?, accepted))
}

/// Returns a list of the built-in formats and `others`.
fn list_formats<'a>(others: impl Iterator<Item = &'a str>) -> String {
    let own = ["Parquet files", "Arrow IPC files and streams", "tensilo files"];
    let all: Vec<&str> = own.into_iter().chain(others).collect();
    match all.split_last() {
        Some((last, rest)) => format!("inputs are {}, and {last}", rest.join(", ")),
        None => String::new(), // unreachable: there are at least three formats
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_it_is_or_how_it_begins() {
        let cases = [
            (&b""[..], "the file is empty"),
            (b"\x1f\x8b\x08", "compressed with gzip"),
            (b"\x93NUMPY\x01\x00", "a NumPy array"),
            (b"id,name\n1,a", "perhaps CSV"),
            (b"id:name\n1,a", "69 64 3a 6e 61 6d 65 0a, which"),
            (b"hello, world", "68 65 6c 6c 6f 2c 20 77 (\"hello, w\"), which"),
        ];
        for (first, text) in cases {
            let error = unknown(first, &list_formats(["x files"].into_iter())).to_string();
            assert!(error.contains(text) && error.contains("Parquet"), "{error}");
            assert!(error.ends_with("tensilo files, and x files"), "{error}");
        }
    }
}
