//! Recognizes other file formats by their first bytes, and explains why a path cannot be opened as
//! a file.
//!
//! A user who opens the wrong file learns more from "is a Parquet file" than from a message about a
//! wrong magic number. Messages also give advice about placeholders and URLs: a Git LFS pointer,
//! the error page of a failed download, or a URL that no backend supports.

#[cfg(feature = "import")]
use crate::Error;
use std::io;
use std::path::Path;

/// The offset, magic bytes and description of each format. If the magic bytes of one format are a
/// prefix of others, the longer ones come first.
const KNOWN: [(usize, &[u8], &str); 44] = [
    (0, b"version https://git-lfs.github.com/spec/", GIT_LFS),
    (0, b"PAR1", "a Parquet file"),
    (0, b"ARROW1", "an Arrow file"),
    (0, b"FEA1", "a Feather file of version 1"),
    (0, b"ORC", "an ORC file"),
    (0, b"Obj\x01", "an Avro file"),
    (0, b"\x89HDF\r\n\x1a\n", "an HDF5 file"),
    (0, b"CDF\x01", NETCDF),
    (0, b"CDF\x02", NETCDF),
    (0, b"CDF\x05", NETCDF),
    (0, b"MATLAB 5.0 MAT-file", "a MATLAB file"),
    (0, b"SIMPLE  =", "a FITS file"),
    (0, b"GGUF", "a GGUF file"),
    (0, b"\x93NUMPY", "a NumPy array"),
    (0, b"\x80\x02", PICKLE),
    (0, b"\x80\x03", PICKLE),
    (0, b"\x80\x04\x95", PICKLE),
    (0, b"\x80\x05\x95", PICKLE),
    (16, b"\xde\xc0\xef\xbe", "an LMDB database"),
    (0, b"SQLite format 3", "an SQLite database"),
    (0, b"\x0a\x23\xd7\xce", "an MXNet RecordIO file"),
    (257, b"ustar", "a tar archive"),
    (0, b"PK\x03\x04", "a zip archive"),
    (0, b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
    (0, b"Rar!", "a RAR archive"),
    (12, b"BC\x02\x00", "block-compressed with gzip (BGZF), as BAM and VCF files are"),
    (0, b"\x1f\x8b", "compressed with gzip"),
    (0, b"\x28\xb5\x2f\xfd", "compressed with Zstandard"),
    (0, b"\x04\x22\x4d\x18", "compressed with LZ4"),
    (0, b"\xff\x06\x00\x00sNaPpY", "compressed with Snappy"),
    (0, b"BZh", "compressed with bzip2"),
    (0, b"\xfd7zXZ\x00", "compressed with xz"),
    (0, b"\xff\xd8\xff", "a JPEG image"),
    (0, b"\x89PNG\r\n\x1a\n", "a PNG image"),
    (0, b"GIF8", "a GIF image"),
    (0, b"II*\x00", "a TIFF image"),
    (0, b"MM\x00*", "a TIFF image"),
    (8, b"WEBP", "a WebP image"),
    (8, b"WAVE", "a WAV file"),
    (0, b"fLaC", "a FLAC file"),
    (0, b"OggS", "an Ogg file"),
    (0, b"ID3", "an MP3 file"),
    (4, b"ftyp", "an MP4 or HEIF file"),
    (0, b"%PDF-", "a PDF document"),
];
const NETCDF: &str = "a NetCDF file";
const PICKLE: &str = "a Python pickle";
const GIT_LFS: &str = "a Git LFS pointer, not the data; run \"git lfs pull\" in the clone";
const HTML: &str = "an HTML page, not the data; the host may require a login, or the address may name a web page";

/// Replaces a "not found" error with an explanation if the path is a URL that cannot be read.
pub fn explain_missing(path: &Path, error: io::Error) -> io::Error {
    let Some((scheme, rest)) = path.to_str().and_then(|text| text.split_once("://")) else { return error };
    // a single letter is a Windows drive
    let is_scheme = scheme.len() > 1 && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if error.kind() != io::ErrorKind::NotFound || !is_scheme {
        return error;
    }
    let advice = match scheme {
        "file" => {
            format!("file:// is not supported; give the path {:?}", rest.strip_prefix("localhost").unwrap_or(rest))
        }
        "hf" => "hf:// is not supported; download the files with huggingface_hub, or give an address like \
                 https://huggingface.co/datasets/OWNER/NAME/resolve/main/FILE for each file"
            .to_owned(),
        "s3" | "s3a" | "gs" | "gcs" | "az" | "azure" | "abfs" | "abfss" | "http" | "https" => {
            format!("{scheme}:// addresses are read through an object store (crate tensilo-object), not as files")
        }
        _ => format!("{scheme}:// is not supported; addresses start with s3://, gs://, az:// or https://"),
    };
    io::Error::new(io::ErrorKind::NotFound, advice)
}

/// The number of leading bytes that [`kind`] needs.
#[cfg(feature = "import")]
pub(crate) const FIRST_BYTES: usize = 512;

/// Describes a file, given its first bytes. The result completes the phrase "the file is".
pub(crate) fn kind(first: &[u8]) -> Option<&'static str> {
    let of = |&&(at, magic, _): &&(usize, &[u8], &str)| first.get(at..).is_some_and(|rest| rest.starts_with(magic));
    let is_of_gzip = first.starts_with(b"\x1f\x8b");
    let known = KNOWN.iter().filter(|(at, ..)| *at != 12 || is_of_gzip).find(of).map(|(_, _, what)| *what);
    known.or_else(|| text_kind(first))
}

/// Describes a file that is only a placeholder for the data, such as the result of a failed
/// download.
#[cfg(feature = "import")]
pub(crate) fn placeholder(first: &[u8]) -> Option<&'static str> {
    kind(first).filter(|what| [GIT_LFS, HTML].contains(what))
}

fn text_kind(first: &[u8]) -> Option<&'static str> {
    let text = first.strip_prefix(b"\xef\xbb\xbf").unwrap_or(first).trim_ascii_start();
    let begins = |with: &[u8]| text.get(..with.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(with));
    if begins(b"<!doctype html") || begins(b"<html") {
        return Some(HTML);
    }
    if begins(b"<?xml") || begins(b"<error>") {
        return Some("an XML document, such as an error message of an object store");
    }
    if first.len() >= 16 && first.iter().all(|byte| *byte == 0) {
        return Some("filled with zero bytes in the part that was read, for example after an interrupted download");
    }
    let line = text.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let is_json = text.starts_with(b"{") || text.starts_with(b"[");
    let is_text =
        !is_json && !line.is_empty() && line.iter().all(|byte| *byte >= b' ' || matches!(byte, b'\t' | b'\r'));
    let has_fields = |separator: u8| line.contains(&separator) && text.contains(&b'\n');
    (is_text && (has_fields(b',') || has_fields(b'\t') || has_fields(b';')))
        .then_some("text, perhaps CSV; convert it to Parquet first, with a library that handles its types")
}

/// The number of leading bytes that the message about an unknown format shows.
#[cfg(feature = "import")]
const SHOWN: usize = 8;

/// Returns the error for a file that starts with these bytes and is not accepted. `accepted` lists
/// the accepted formats.
#[cfg(feature = "import")]
pub(crate) fn unknown(first: &[u8], accepted: &str) -> Error {
    if first.is_empty() {
        return Error::bad_input(format!("the file is empty; {accepted}"));
    }
    if let Some(what) = placeholder(first) {
        return Error::bad_input(format!("the file is {what}"));
    }
    if let Some(what) = kind(first) {
        return Error::bad_input(format!("the file is {what}; {accepted}"));
    }
    let shown = first.get(..SHOWN).unwrap_or(first);
    let hex: Vec<String> = shown.iter().map(|byte| format!("{byte:02x}")).collect();
    let is_text = shown.iter().all(|byte| byte.is_ascii_graphic() || *byte == b' ');
    let text = if is_text { format!(" ({:?})", String::from_utf8_lossy(shown)) } else { String::new() };
    Error::bad_input(format!(
        "the file begins with the bytes {}{text}, which match no known format; {accepted}",
        hex.join(" ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_that_cannot_be_read_are_explained() {
        let explained = |path: &str| explain_missing(Path::new(path), io::ErrorKind::NotFound.into()).to_string();
        assert!(explained("file:///data/x.tsl").ends_with("give the path \"/data/x.tsl\""));
        assert!(explained("hf://datasets/a/b").contains("huggingface_hub"));
        assert!(explained("file://localhost/localhost/x").ends_with("give the path \"/localhost/x\""));
        assert!(explained("ftp://host/x").starts_with("ftp:// is not supported"));
        assert!(explained("s3://b/x.parquet").contains("through an object store"));
        for path in ["a/x.tsl", "C://data", "://x"] {
            assert_eq!(explained(path), io::Error::from(io::ErrorKind::NotFound).to_string(), "{path}");
        }
    }

    #[test]
    fn files_are_recognized() {
        for (first, expected) in [
            (&b"version https://git-lfs.github.com/spec/v1\noid"[..], Some(GIT_LFS)),
            (b"<!DOCTYPE html><html>", Some(HTML)),
            (b"\xef\xbb\xbf\n <HTML lang=\"en\">", Some(HTML)),
            (b"<?xml version=\"1.0\"?><Error>", Some("an XML document, such as an error message of an object store")),
            (b"\x1f\x8b\x08\x04\0\0\0\0\0\xff\x06\0BC\x02\0\x1b\0", Some(KNOWN[25].2)),
            (b"\x1f\x8b\x08", Some("compressed with gzip")),
            (b"RIFF\0\0\0\0WAVEfmt ", Some("a WAV file")),
            (b"\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\xde\xc0\xef\xbe\x01", Some("an LMDB database")),
            (b"\x80\x04\x95\x10", Some(PICKLE)),
            (
                b"id,name\n1,a",
                Some("text, perhaps CSV; convert it to Parquet first, with a library that handles its types"),
            ),
            (b"{\"a\":1,\"b\":2}\n{}", None),
            (b"[1,2]\n", None),
            (b"hello, world", None),
            (b"\x93", None),
            (b"", None),
        ] {
            assert_eq!(kind(first), expected, "{}", first.escape_ascii());
        }
        assert!(kind(&[0; 64]).is_some_and(|what| what.contains("interrupted download")));
    }
}
