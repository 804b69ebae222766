//! The formats of inputs, recognised by the first bytes of a file.

use super::input_file::InputFile;
use super::magic;
use super::native;
use super::other_formats::OtherFormats;
use super::source::SharedSource;
use super::store::OptionalStore;
use crate::Result;
use crate::foreign;
use std::io::{self, Read, Seek, SeekFrom};
use std::sync::Arc;

/// An open file, and bytes on which the id of a file made from it depends.
type Opened = Result<(SharedSource, Vec<u8>)>;

/// Opens a file of one of the formats of this crate, or of `others`. Returns its content, and bytes
/// on which the id of a file made from it depends.
pub(super) fn open(file: &Arc<InputFile>, others: &OtherFormats, store: &OptionalStore) -> Opened {
    let first = file.first_bytes()?;
    match first.as_slice() {
        [b'P', b'A', b'R', b'1', ..] => parquet(file),
        [b'P', b'A', b'R', b'E', ..] => encrypted_parquet(),
        [b'A', b'R', b'R', b'O', b'W', b'1', ..] => arrow_file(file),
        first if first.starts_with(&native::MAGIC) => tensilo_file(file),
        first if foreign::placeholder(first).is_some() => Err(magic::unknown(first, &magic::accepted(others.names()))),
        _ => match others.open(file, store)? {
            Some(content) => {
                let mut origin = ends(file)?;
                for companion in file.companions() {
                    origin.extend(ends(&companion)?);
                }
                Ok((Arc::new(content), origin))
            }
            None => arrow_stream(file, &magic::accepted(others.names())),
        },
    }
}

/// Returns length, first and last bytes of a file: schema, some data, and the footer.
fn ends(file: &InputFile) -> Result<Vec<u8>> {
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

#[cfg(feature = "arrow")]
use with_arrow::{arrow_file, arrow_stream};
#[cfg(feature = "parquet")]
use with_parquet::{encrypted_parquet, parquet};
#[cfg(not(feature = "arrow"))]
use without_arrow::{arrow_file, arrow_stream};
#[cfg(not(feature = "parquet"))]
use without_parquet::{encrypted_parquet, parquet};

fn tensilo_file(file: &Arc<InputFile>) -> Opened {
    let (content, origin) = native::open(file)?;
    Ok((Arc::new(content), origin))
}

#[cfg(feature = "parquet")]
mod with_parquet {
    use super::Opened;
    use crate::import::input_file::InputFile;
    use crate::import::parquet;
    use std::sync::Arc;

    pub(super) fn parquet(file: &Arc<InputFile>) -> Opened {
        let (content, footer) = parquet::open(file)?;
        Ok((Arc::new(content), footer))
    }

    pub(super) fn encrypted_parquet() -> Opened {
        Err(parquet::encrypted_footer())
    }
}

#[cfg(not(feature = "parquet"))]
mod without_parquet {
    use super::Opened;
    use crate::Error;
    use crate::import::input_file::InputFile;
    use std::sync::Arc;

    pub(super) fn parquet(_file: &Arc<InputFile>) -> Opened {
        encrypted_parquet()
    }

    pub(super) fn encrypted_parquet() -> Opened {
        Err(Error::not_built("parquet", "reading Parquet files"))
    }
}

#[cfg(feature = "arrow")]
mod with_arrow {
    use super::{Opened, ends};
    use crate::import::arrow::ipc_files;
    use crate::import::input_file::InputFile;
    use std::sync::Arc;

    pub(super) fn arrow_file(file: &Arc<InputFile>) -> Opened {
        Ok((Arc::new(ipc_files::open_file(file)?), ends(file)?))
    }

    pub(super) fn arrow_stream(file: &Arc<InputFile>, accepted: &str) -> Opened {
        Ok((Arc::new(ipc_files::open_stream(file, accepted)?), ends(file)?))
    }
}

#[cfg(not(feature = "arrow"))]
mod without_arrow {
    use super::Opened;
    use crate::Error;
    use crate::import::input_file::InputFile;
    use crate::import::magic;
    use std::sync::Arc;

    pub(super) fn arrow_file(_file: &Arc<InputFile>) -> Opened {
        Err(Error::not_built("arrow", "reading Arrow files"))
    }

    pub(super) fn arrow_stream(file: &Arc<InputFile>, accepted: &str) -> Opened {
        Err(magic::unknown(&file.first_bytes()?, accepted))
    }
}
